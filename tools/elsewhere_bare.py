"""Measure headline comparisons on a machine with many cores, without a network, in a few minutes.

    python tools/elsewhere_bare.py pack .side/pack              where there is a network
    python3 tools/elsewhere_bare.py measure .side/pack OUT      on the other machine

The first puts the wheels of all that the measurements need into one file, .side/pack/wheels.tar.xz (40 MiB).
The second needs that file, this checkout and a Python 3.12 with pip; where that Python has PyTorch, 09 is
measured too. No TensorFlow, no Horovod. It never takes longer than --seconds (480), whatever the machine:
each headline has a share of them, and what one leaves goes to the next. A file a lesson comes to OUT, such
as 03_spmd.jsonl, with the rows of elsewhere.jsonl; each is whole when its line is printed."""

import argparse
import contextlib
import functools
import importlib.util
import lzma
import os
import re
import shutil
import signal
import site
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headlines import Headline

    from scaleout import Comparison, Lab

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements/workshop.lock"
PACKAGES = (
    *("mpi4py", "mpich", "msgspec", "numpy", "pandas", "psutil", "python-dateutil"),
    *("scipy", "six", "threadpoolctl", "tqdm"),
)
WHEELS = "wheels.tar.xz"
MOST_MIB = 60
GLIBC = (39, 35, 34, 31, 28, 27, 24, 17)  # whose wheels may be taken, the newest first
COMPRESSED = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
SECONDS = 480.0  # in all
INSTALL_S = 180.0  # at most
END_S = 40.0  # of these are kept for the end of the last job, and for tidying up
KILL_S = 22.0  # of those, for a process that does not end by itself
MIB = 2**20
ROUNDS = 5
LEAST = 3  # rounds that a verdict takes


def pack(folder: Path, python: str) -> int:
    """Fetch the wheels, and put them into one file: it compresses better than each wheel does."""
    with tempfile.TemporaryDirectory() as temporary:
        fetched, stored = Path(temporary, "fetched"), Path(temporary, "stored")
        stored.mkdir()
        wanted = Path(temporary, "wanted.txt")
        wanted.write_text(locked(LOCK.read_text(), PACKAGES))
        platforms = [f"--platform=manylinux_2_{n}_x86_64" for n in GLIBC]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--require-hashes", "--only-binary", ":all:", "--implementation", "cp"]
        command += ["--python-version", python, *platforms, "--platform=manylinux2014_x86_64"]
        subprocess.run([*command, "-d", str(fetched), "-r", str(wanted)], check=True, timeout=900)
        for wheel in sorted(fetched.glob("*.whl")):
            _without_tests(wheel, stored / wheel.name)
        folder.mkdir(parents=True, exist_ok=True)
        whole = folder / WHEELS
        print("Compressing takes two minutes ...", flush=True)
        with (
            lzma.open(whole, "w", format=lzma.FORMAT_XZ, filters=COMPRESSED) as file,
            tarfile.open(fileobj=file, mode="w") as tar,
        ):
            for wheel in sorted(stored.iterdir()):
                tar.add(wheel, wheel.name)
    mib = whole.stat().st_size / MIB
    print(f"{whole}: {mib:.1f} MiB, for Python {python}.")
    if mib > MOST_MIB:
        print(f"That is more than {MOST_MIB} MiB: leave something out of PACKAGES.")
    return int(mib > MOST_MIB)


def locked(lock: str, names: Sequence[str]) -> str:
    """The lines of a lock, with their hashes, that are about these packages."""
    blocks = re.split(r"(?m)^(?=[a-z0-9])", lock)
    found = {block.partition("==")[0]: block for block in blocks}
    return "".join(found[name] for name in names)


def _without_tests(wheel: Path, new: Path) -> None:
    """Copy a wheel, not compressed, without the tests of what it brings, and without their lines in
    its list of files."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as kept:
        for entry in old.infolist():
            if "/tests/" in entry.filename:
                continue
            raw = old.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                lines = raw.splitlines(keepends=True)
                raw = b"".join(line for line in lines if b"/tests/" not in line)
            copy = zipfile.ZipInfo(entry.filename, entry.date_time)
            copy.external_attr = entry.external_attr
            kept.writestr(copy, raw)


def measure(folder: Path, out: Path, seconds: float, lessons: Sequence[str]) -> int:
    """Install the pack, and measure in a process of its own, which is ended when the time is up."""
    began = time.monotonic()
    end = began + seconds
    out.mkdir(parents=True, exist_ok=True)
    out = out.absolute()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="elsewhere-", ignore_cleanup_errors=True) as temporary:
        work = Path(temporary)
        try:
            python = _environment(folder / WHEELS, work)
        except (OSError, subprocess.SubprocessError, lzma.LZMAError, tarfile.TarError) as error:
            print(f"The pack cannot be installed ({error}): make it anew for this Python.")
            return 1
        print(f"Installed after {time.monotonic() - began:.0f} s.", flush=True)
        inside = [python, str(Path(__file__).resolve()), "inside", str(out), str(end - END_S)]
        child = subprocess.Popen(
            [*inside, *lessons], cwd=ROOT, env=_variables(work), start_new_session=True
        )
        try:
            status = child.wait(max(1.0, end - time.monotonic() - KILL_S))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            status = _ended(child)
            print("The time was up, or it was broken off: the rows that were told are kept.")
    print(f"{time.monotonic() - began:.0f} s of {seconds:.0f} s.", flush=True)
    return status


def _environment(wheels: Path, work: Path) -> str:
    """Make an environment with the wheels, which also finds what is beside this Python, such as
    PyTorch; return its Python."""
    env, unpacked = work / "env", work / "wheels"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(env)], check=True, timeout=INSTALL_S
    )
    with lzma.open(wheels) as file, tarfile.open(fileobj=file) as tar:
        tar.extractall(unpacked, filter="data")
    python = str(env / "bin/python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    install += ["--no-deps", "--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run(
        [*install, *map(str, sorted(unpacked.glob("*.whl")))], check=True, timeout=INSTALL_S
    )
    shutil.rmtree(unpacked)
    beside = [path for path in site.getsitepackages() if Path(path).is_dir()]
    packages = next(env.glob("lib/python3*/site-packages"))
    packages.joinpath("beside.pth").write_text("".join(f"{path}\n" for path in beside))
    return python


def _variables(work: Path) -> dict[str, str]:
    """What the measurements are told: where the package is, and that neither a network nor a graphics
    card is used."""
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "SCALEOUT_RESULTS": str(work / "results"),
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "UCX_NET_DEVICES": "lo",
    }


def _ended(child: "subprocess.Popen[bytes]") -> int:
    """End a process and all of its session, kindly at first; return its status."""
    for number, within_s in ((signal.SIGINT, 12.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(within_s)
            break
    return child.returncode or 1


class Budget:
    """The seconds until an end, shared out: what one headline leaves, the next ones have."""

    def __init__(
        self, end: float, shares: Mapping[str, float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._end, self._left, self._now = end, dict(shares), now

    def take(self, name: str) -> float:
        """The seconds that this headline may take, from now on; each asks once."""
        left = self._end - self._now()
        whole = sum(self._left.values())
        return max(0.0, left * self._left.pop(name) / whole)


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[list[bool]]:
    """Interrupt, as Ctrl-C does, what is done meanwhile once the time is up; the list then holds True."""
    late: list[bool] = []

    def ring(*_: object) -> None:
        late.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def affordable(
    variants: Mapping[str, Any], cost_s: Mapping[str, float], seconds: float
) -> dict[str, Any]:
    """The variants of which LEAST rounds fit into the time, in their order.

    The first, the baseline, runs twice a round; the last is the first to come with it, as it takes all
    cores, and then the others from the end.
    """
    baseline, *others = variants
    left = seconds / LEAST - 2 * cost_s[baseline]
    kept = {baseline}
    for name in reversed(others):
        left -= cost_s[name]
        if left >= 0 or len(kept) == 1:
            kept.add(name)
    return {name: how for name, how in variants.items() if name in kept}


def in_rounds(
    name: str, lab: "Lab", variants: Mapping[str, Mapping[str, Any]], **how: Any
) -> "Comparison":
    """Compare; where the time is up, or a job fails, return the whole rounds that there are."""
    from scaleout import Comparison, JobInterrupted, ScaleoutError, compare
    from scaleout.base.paths import results_path

    how = {"rounds": ROUNDS, "threads": 1, "echo": lambda text: None, **how}
    try:
        return compare(lab.run, variants, name=name, **how)
    except (JobInterrupted, ScaleoutError) as error:
        try:
            return Comparison.read(results_path("compare", name))
        except ScaleoutError:
            raise error from None


def first_runs(
    lab: "Lab", variants: Mapping[str, Mapping[str, Any]], **how: Any
) -> dict[str, float]:
    """Run the dearest variants once, the first and the last, so that files are in memory; return what
    each may cost in seconds, from the dearer of both."""
    baseline, *_, last = variants
    cost = {}
    for name in (baseline, last):
        start = time.monotonic()
        lab.run(**{"threads": 1, "echo": False, **how, **variants[name]})
        cost[name] = time.monotonic() - start
    return {name: cost.get(name, max(cost.values())) for name in variants}


def ranks_in_rounds(
    name: str,
    lab: "Lab",
    variants: Mapping[str, Mapping[str, Any]],
    seconds: float,
    job: Mapping[str, Any],
    **how: Any,
) -> "Comparison":
    """Compare as many of the variants as there is time for; a sentence names those left out."""
    began = time.monotonic()
    cost_s = first_runs(lab, variants, **job)
    fitting = affordable(variants, cost_s, seconds - (time.monotonic() - began))
    if dropped := [variant for variant in variants if variant not in fitting]:
        print(f"{name}: no time for {', '.join(dropped)}.", flush=True)
    return in_rounds(name, lab, fitting, **job, **how)


def by_ranks(**more: Any) -> dict[str, dict[str, Any]]:
    """A variant for each number of ranks, from one to all cores; what is more is not for one rank."""
    import headlines

    return {headlines.ranks(n): {"ranks": n, **(more if n > 1 else {})} for n in headlines.steps()}


def message(seconds: float) -> "Iterator[Headline]":
    """One way of one message, and alpha and beta."""
    import headlines

    from scaleout import lab

    yield headlines.messages(functools.partial(lab("03", solution=True).run, timeout=60))


def allreduce(mib: int, seconds: float, ranks: int = 0) -> "Iterator[Headline]":
    """The ring against gather and broadcast, and MPI's own; on all cores, or on fewer."""
    import headlines

    from scaleout import lab

    all_ = max(2, headlines.CORES)
    name = f"allreduce-{mib}MiB" + (f"-{headlines.ranks(ranks)}".replace(" ", "-") if ranks else "")
    ways = ("gather and broadcast", "ring", "mpi")
    variants = {way: {"algorithm": way.replace(" and ", "-")} for way in ways}
    job = {"ranks": ranks or all_, "sizes": [mib * MIB // 4], "repeats": 12, "warmup": 3}
    judged = {"metric": "step_median_s", "lower": True}
    lesson = lab("03", solution=True)
    yield headlines.Headline(name, in_rounds(name, lesson, variants, **job, **judged))


def fewer_ranks(seconds: float) -> "Iterator[Headline]":
    """The same sums of 16 MiB on fewer ranks."""
    import headlines

    end = time.monotonic() + seconds
    for n in headlines.steps(2)[:-1]:
        if time.monotonic() < end:  # an interrupted comparison comes back with its whole rounds
            yield from allreduce(16, seconds, n)


def kmeans(seconds: float) -> "Iterator[Headline]":
    """K-means by NumPy and mpi4py, the same points on more and more ranks."""
    import headlines

    from scaleout import lab

    name = "k-means-numpy"
    job = {"script": "fourways.py", "way": "numpy", "rows": 400_000, "iterations": 10}
    found = ranks_in_rounds(
        name, lab("04", solution=True), by_ranks(), seconds, job, metric="step_median_s"
    )
    yield headlines.Headline(name, found, ("fourways.py",))


def weak(seconds: float) -> "Iterator[Headline]":
    """Weak scaling: as many rows for each rank, however many there are."""
    import headlines

    from scaleout import lab

    name = "weak-scaling"
    variants = by_ranks(mode="weak")
    found = ranks_in_rounds(name, lab("07", solution=True), variants, seconds, {"steps": 20})
    yield headlines.Headline(name, found, facts=headlines.exchanges(found))


def ddp(seconds: float) -> "Iterator[Headline]":
    """PyTorch's DDP, 32 images for each rank, on cores of their own and on any."""
    import headlines

    from scaleout import lab

    name = "ddp"
    variants: dict[str, dict[str, Any]] = {}
    for n in headlines.steps():
        job: dict[str, Any] = {"ranks": n, "batch": 32 * n}
        variants[headlines.ranks(n)] = job
        if n > 1:
            variants[f"{headlines.ranks(n)}, not bound"] = {**job, "bind": "none"}
    # from a cold disk, the first import takes many times as long
    subprocess.run([sys.executable, "-c", "import torch"], check=True, timeout=seconds)
    job = {"framework": "torch", "network": "cnn", "steps": 12, "warmup": 2}
    found = ranks_in_rounds(name, lab("09", solution=True), variants, seconds, job)
    yield headlines.Headline(name, found)


def together(network: str, seconds: float) -> "Iterator[Headline]":
    """One process with all cores against copies and against DDP, taking turns in one job."""
    import headlines

    from scaleout import Comparison, lab

    many = max(2, headlines.CORES)
    job = lab("09", solution=True).run(
        script="turns.py", framework="torch", networks=[network], batches=[8 * many], side=64,
        rounds=ROUNDS, ranks=1 + many, threads=many, bind="none", echo=False, timeout=SECONDS,
    )  # fmt: skip
    found = Comparison(job.records["metrics.runs"].iloc[0], metric="images/s")
    yield headlines.Headline(f"together-{network}", found, ("turns.py",))


def crossing(seconds: float) -> "Iterator[Headline]":
    """Data against tensor parallelism, a job for each batch: the ends and the middle first."""
    import headlines

    from scaleout import lab

    run = lab("11", solution=True).run
    for part in (16, 4, 64, 8, 32):
        job = run(
            ranks=max(2, headlines.CORES), threads=1, script="which.py", parts=[part], repeats=11,
            echo=False, timeout=SECONDS,
        )  # fmt: skip
        yield from headlines.crossings(job.records)


class Measured:
    """A headline of a lesson: how it is measured, and its share of the time."""

    def __init__(
        self, lesson: str, share: float, measure: "Callable[[float], Iterator[Headline]]"
    ) -> None:
        self.lesson, self.share, self.measure = lesson, share, measure


# In this order: what waits behind the others may have no time.
HEADLINES = {
    "message": Measured("03", 6, message),
    "allreduce-4MiB": Measured("03", 9, functools.partial(allreduce, 4)),
    "allreduce-16MiB": Measured("03", 10, functools.partial(allreduce, 16)),
    "k-means-numpy": Measured("04", 15, kmeans),
    "weak-scaling": Measured("07", 18, weak),
    "crossing": Measured("11", 10, crossing),
    "ddp": Measured("09", 22, ddp),
    "together-cnn": Measured("09", 6, functools.partial(together, "cnn")),
    "together-resnet50": Measured("09", 8, functools.partial(together, "resnet50")),
    "allreduce-16MiB on fewer ranks": Measured("03", 10, fewer_ranks),
}


def inside(out: Path, end: float, lessons: Sequence[str]) -> int:
    """Measure one headline after the other, until the end; return how many failed."""
    from scaleout import machine

    broken_off: list[int] = []

    def stop(number: int, _: object) -> None:
        broken_off.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    print(machine.stamp(), flush=True)
    wanted = {name: one for name, one in HEADLINES.items() if not lessons or one.lesson in lessons}
    if importlib.util.find_spec("torch") is None and any(o.lesson == "09" for o in wanted.values()):
        print("09 is left out, as this Python has no PyTorch.", flush=True)
        wanted = {name: one for name, one in wanted.items() if one.lesson != "09"}
    budget = Budget(end, {name: one.share for name, one in wanted.items()})
    failed = 0
    for name, one in wanted.items():
        seconds = budget.take(name)
        if seconds < 5:
            print(f"{name}: dropped, as the time is up.", flush=True)
            continue
        began, told = time.monotonic(), 0
        try:
            with no_longer_than(seconds) as late:
                for found in one.measure(seconds):
                    keep(out, one.lesson, found)
                    told += 1
        except KeyboardInterrupt:
            if late and not broken_off:
                what = "the rest is" if told else "it is"
                print(f"{name}: {what} dropped, as its {seconds:.0f} s are over.", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name} failed: {' '.join(str(error).split())[:400]}", flush=True)
        if broken_off:
            return 1 + failed
        print(f"    {name}: {time.monotonic() - began:.0f} of {seconds:.0f} s", flush=True)
    return failed


def keep(out: Path, lesson: str, one: "Headline") -> None:
    """Append the rows of a headline to its lesson's file, and say what was found."""
    from scaleout.base import paths
    from scaleout.base.words import count
    from scaleout.comparisons import elsewhere

    topic = paths.topic(lesson)
    with out.joinpath(f"{topic}.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(f"{elsewhere.line(row)}\n" for row in rows(topic, one)))
    found = one.found
    few = "" if found.rounds >= LEAST else f" A verdict takes {LEAST} rounds."
    print(f"{topic}, {one.name}, {count(found.rounds, 'round')}: {found.summary}{few}", flush=True)


def rows(topic: str, one: "Headline") -> "list[Any]":
    """The rows of a headline, as elsewhere.jsonl has them."""
    import outputs

    from scaleout.comparisons import elsewhere

    code = outputs.code(ROOT / "solutions" / topic, one.scripts)
    return elsewhere.headlines(one.found, one.name, code, one.scripts, one.facts)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetch = verbs.add_parser("pack", help="fetch the wheels, into one file")
    fetch.add_argument("folder", type=Path, help="where the file goes")
    fetch.add_argument("--python", default="3.12", help="of the other machine (3.12)")
    there = verbs.add_parser("measure", help="measure on this machine")
    there.add_argument("folder", type=Path, help="with the file that pack has made")
    there.add_argument("out", type=Path, help="where the rows go")
    there.add_argument("--seconds", type=float, default=SECONDS, help=f"at most ({SECONDS:.0f})")
    there.add_argument("--only", nargs="+", default=[], metavar="03", help="these lessons alone")
    rest = verbs.add_parser("inside")  # what measure starts in the environment that it has made
    rest.add_argument("out", type=Path)
    rest.add_argument("end", type=float)
    rest.add_argument("lessons", nargs="*")
    args = parser.parse_args(words)
    if args.verb == "pack":
        return pack(args.folder, args.python)
    if args.verb == "measure":
        return measure(args.folder, args.out, args.seconds, args.only)
    return min(1, inside(args.out, args.end, args.lessons))


if __name__ == "__main__":
    sys.exit(main())
