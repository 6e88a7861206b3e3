"""Judge facts that are handed in: what is well, what is not, and the fix to type.

Nothing here looks at the machine (examine.py does), so that a test can hand over facts of broken
ones."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import machine
from ..base import paths, words
from ..jobs import messages
from ..jobs.environment import clean_environment
from ..machine import Machine, Pace
from ..site import allocated_nodes

REBUILD = "make clean && make lab"
# Below the first of each pair is a failure, below the second a warning.
MEMORY_GIB = (2.5, 5.0)  # training ResNet-50 at batch 16 peaks at 2.3 GiB a process
DISK_GIB = (0.2, 2.0)
SHARED_MEMORY_MIB = 60.0  # containers have 64 unless told otherwise, enough for a few ranks
PACE = 0.85  # of the speed of one core alone
BUSY = 0.25  # of the cores: above it, whoever computes besides is seen in every figure
THREAD_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR|TF_NUM|ONEDNN|DNNL)_|TF_ENABLE_ONEDNN_OPTS$|(TF_)?XLA_FLAGS$"
)
# scikit-learn sets these two in its own process; they change no thread count.
HARMLESS = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "MPI4PY_LIBMPI", "MPI4PY_MPIABI")
# What a process of the job loads, and the packages that bring it.
PARTS = {
    "mpi4py": "mpi4py",
    "daal4py": "scikit-learn-intelex",
    "tensorflow": "tensorflow-cpu",
    "horovod": "horovod",
}
# One stack, built against each other: another version is a failure. The notebook's may differ with
# a warning.
BUILT_TOGETHER = (*PARTS.values(), "mpich")
EXAMINED = (*BUILT_TOGETHER, "ipyparallel", "ipykernel", "jupyter-server")
# The versions below which a package is known to be broken here.
BROKEN = {
    "ipykernel": ("<7.1", "7.0 breaks ipyparallel"),
    "jupyter-server": ("<2.21.1", "older ones have known security holes"),
}
PYTORCH_FIX = "rm -r .side/torch && make torch"
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One finding: its name, "ok", "warn" or "fail", what was seen, and the fix to type."""

    name: str
    status: str
    seen: str
    fix: str = ""

    @property
    def page(self) -> str:
        """Where it is explained, such as "docs/errors.md#nosuchkernel"; "" when it is ok, or nobody
        knows it."""
        return "" if self.status == "ok" else messages.finding(self.seen) or ""


@dataclass(frozen=True)
class Pair:
    """The doctor's job of two processes, ended; status None where it ran out of time."""

    status: int | None
    output: str = ""
    errors: str = ""
    reports: tuple[Report, ...] = ()


def short(path: Path | str) -> str:
    """Write the path as typed from the current folder, where that is shorter."""
    return min(paths.show(Path(path)), str(path), key=len)


def _inside(path: str) -> bool:
    """Tell whether a file is this environment's."""
    return Path(path).is_relative_to(os.path.realpath(sys.prefix))


def _pip(requirement: str, *options: str) -> str:
    return shlex.join([short(sys.executable), "-m", "pip", "install", *options, requirement])


def _first(name: str) -> str:
    return f"mend `{name}` first"


def _level(value: float, limits: tuple[float, float]) -> str:
    return "fail" if value < limits[0] else "warn" if value < limits[1] else "ok"


# The machine


def cores(facts: Machine) -> Check:
    """Check the cores that a job may fill, by affinity and control group."""
    quota = (
        "no cgroup limit"
        if facts.cgroup_cpus is None
        else f"cgroup limit {facts.cgroup_cpus:g} CPUs"
    )
    seen = (
        f"{facts.usable_cores} to fill ({facts.cores} of {len(facts.layout)} allowed, {quota}); "
        f"{words.count(facts.sockets, 'socket')}, "
        f"{words.count(facts.hardware_threads, 'hardware thread')}"
    )
    if facts.layout_source == "unknown":
        seen += "; which of them share a core is unknown"
    if facts.slow:
        slow = {cpu for core in facts.slow for cpu in core.cpus}
        fast = ",".join(str(cpu) for cpu in facts.allowed if cpu not in slow)
        seen += f"; {facts.cores - len(facts.slow)} fast and {len(facts.slow)} slow: ranks wait for these"
        return Check("cores", "warn", seen, f"taskset -cp {fast} $$   (to measure on equal ones)")
    if facts.usable_cores > 1:
        return Check("cores", "ok", seen)
    seen += ". Ranks will share one core: all of it runs, nothing gets faster"
    if facts.cores > 1:
        fix = "docker run --cpus=2 ...   (a container with 2 CPUs or more)"
    elif len(facts.layout) > 1:
        fix = f"taskset -cp 0-{facts.hardware_threads - 1} $$   (under Slurm: srun -c 4 ...)"
    else:
        fix = "nothing here: take a machine with 2 cores or more"
    return Check("cores", "warn", seen, fix)


def processor(facts: Machine) -> Check:
    """Check the processor for the instruction sets that the libraries ask for."""
    if "avx" in facts.isa:
        newer = " ".join(facts.isa[facts.isa.index("avx") + 1 :]) or "nothing newer than AVX"
        return Check("processor", "ok", f"{facts.cpu}: {newer}")
    fix = "nothing here: take a newer CPU"
    return Check("processor", "fail", f"{facts.cpu}: no AVX, so TensorFlow will not start", fix)


def others(load: float, facts: Machine) -> Check:
    """Check who else computes: how many processes wanted to run, on average, in the last minute."""
    seen = f"{load:.1f} processes at work in the last minute"
    if load <= BUSY * facts.usable_cores:
        return Check("others", "ok", seen)
    fix = "measure when they have ended (`top` shows them), or ask for a node of your own"
    return Check("others", "warn", f"{seen}, on {words.count(facts.usable_cores, 'core')}", fix)


def pace(found: Pace) -> Check:
    """Check that each core is as fast while all of them work as it is alone, and say why it is not."""
    name, many = "pace", words.count(found.cores, "core")
    seen = (
        f"{many} at work: the slowest runs at {words.percent(found.kept)} of the speed of one alone"
    )
    if found.kept >= PACE:
        return Check(name, "ok", seen)
    reasons = [
        (
            found.held,
            "a control group's limit held it back",
            "docker run --cpus=... (a larger limit)",
        ),
        (
            found.stolen,
            "the host ran other virtual machines",
            "nothing here: ask for a machine of your own",
        ),
        (
            found.waited - found.held - found.stolen,
            "others had its core",
            "measure when they have ended (`top` shows them)",
        ),
    ]
    share, why, fix = max(reasons)
    if share < (1 - found.kept) / 2:
        why = "it had its core all the time, so they share one, or a clock that falls when all work"
        return Check(name, "warn", f"{seen}: {why}", "lscpu -e   (which CPUs share a core)")
    return Check(name, "warn", f"{seen}: for {words.percent(share)} of the time {why}", fix)


def memory(total: float | None, limit: float | None, available: float | None) -> Check:
    """Check that there is memory for a rank that trains ResNet-50; all in GiB."""
    if total is None or available is None:
        return Check("memory", "warn", "unknown: /proc/meminfo does not tell", "free -h")
    usable = min(available, limit or available)
    seen = f"{usable:.1f} of {total:.1f} GiB to use"
    seen += f" (cgroup limit {limit:.1f})" if limit else ""
    if (status := _level(usable, MEMORY_GIB)) == "ok":
        return Check("memory", "ok", seen)
    fix = "top -o %MEM   (end what you do not need)"
    if limit:
        fix = "docker run --memory=8g ...   (a larger limit)"
    return Check("memory", status, f"{seen}; ResNet-50 wants {MEMORY_GIB[0]:g} GiB a rank", fix)


def shared_memory(free_mib: float | None) -> Check:
    """Check the room in /dev/shm, through which ranks on one machine talk.

    It is in MiB; None when there is no /dev/shm.
    """
    name, fix = "shared memory", "ls -lS /dev/shm   (delete old files; docker: --shm-size=1g)"
    if free_mib is None:
        return Check(name, "warn", "there is no /dev/shm", "docker run --shm-size=1g ...")
    seen = f"{free_mib:,.0f} MiB free in /dev/shm"
    enough = free_mib >= SHARED_MEMORY_MIB
    return Check(name, "ok", seen) if enough else Check(name, "warn", seen, fix)


def results(folder: str, free_gib: float | None, error: str = "") -> Check:
    """Check that results can be written, and that there is room."""
    fix = "export SCALEOUT_RESULTS=$HOME/scaleout-results"
    if error or free_gib is None:
        return Check("results", "fail", error or f"{folder}: room unknown", fix)
    status = _level(free_gib, DISK_GIB)
    fix = f"{fix}   (or make room: du -sh {shlex.quote(folder)}/* | sort -h)"
    seen = f"{folder}: writable, {free_gib:.1f} GiB free"
    return Check("results", status, seen, "" if status == "ok" else fix)


# The environment and the shell


def packages(wanted: Mapping[str, str], found: Mapping[str, str], python: str) -> Iterator[Check]:
    """Check Python and those of EXAMINED that are asked for."""
    from packaging.specifiers import SpecifierSet

    def fits(version: str, specifier: str) -> bool:
        return SpecifierSet(specifier).contains(version, prereleases=True)

    if fits(python, wanted.get("python", "")):
        yield Check("python", "ok", f"{python}, {short(sys.prefix)}")
    else:
        seen = f"{python}, but the workshop needs {wanted['python']}"
        yield Check("python", "fail", seen, f"{REBUILD} PYTHON=python3.11")
    for name in (name for name in EXAMINED if name in wanted):
        asked, version = wanted[name], found.get(name)
        broken, why = BROKEN.get(name, ("", ""))
        fix = REBUILD if name == "horovod" else _pip(name + (asked or broken.replace("<", ">=")))
        if version is None:
            yield Check(name, "fail", "is not installed", fix)
        elif broken and fits(version, broken):
            yield Check(name, "fail", f"{version}: {why}", fix)
        elif not fits(version, asked):
            seen = f"{version}, but the workshop needs {asked}"
            yield Check(name, "fail" if name in BUILT_TOGETHER else "warn", seen, fix)
        else:
            yield Check(name, "ok", version)


def kernel(spec: Mapping[str, Any], prefix: str, environ: Mapping[str, str]) -> Check:
    """Check that the `python3` kernel is this environment's."""
    name = "notebook kernel"
    install = f"{short(sys.executable)} -m ipykernel install --sys-prefix"
    if not spec:
        return Check(name, "fail", "Jupyter finds no kernel named python3", install)
    if prefix and os.path.realpath(prefix) == os.path.realpath(sys.prefix):
        return Check(name, "ok", f"python3 is this environment, {short(spec['folder'])}")
    whose = prefix or f"{spec['argv'][0]}, which does not run"
    seen = f"python3 is another environment's: {whose} (from {spec['folder']})"
    for variable in ("JUPYTER_PATH", "JUPYTER_DATA_DIR"):
        folders = [folder for folder in environ.get(variable, "").split(os.pathsep) if folder]
        if any(Path(spec["folder"]).is_relative_to(folder) for folder in folders):
            return Check(name, "fail", seen, f"unset {variable}")
    return Check(name, "fail", seen, f"{install} && export JUPYTER_PREFER_ENV_PATH=1")


def thread_settings(environ: Mapping[str, str]) -> list[str]:
    """Name the variables that change how many threads run, or which kernels."""
    return sorted(key for key in environ if THREAD_VARIABLES.match(key) and key not in HARMLESS)


def thread_variables(environ: Mapping[str, str]) -> Check:
    """Check for variables that change how many threads run, or which kernels.

    They are those that were set before the workshop sets its own.
    """
    name = "thread variables"
    found = thread_settings(environ)
    if not found:
        return Check(name, "ok", "none set in this shell")
    seen = ", ".join(f"{key}={environ[key]}" for key in found)
    fix = f"unset {' '.join(found)}"
    return Check(name, "warn", f"{seen}: they change what you measure", fix)


def scheduler(environ: Mapping[str, str]) -> Check:
    """Report variables of a scheduler or of another MPI job; good to know, no fault."""
    found = sorted(set(environ) - set(clean_environment(environ)))
    if not found:
        return Check("scheduler", "ok", "no variables of a scheduler or of another MPI job")
    if (nodes := allocated_nodes(environ)) > 1:
        inside = f"inside Slurm job {environ['SLURM_JOB_ID']}, {nodes} nodes"
        return Check("scheduler", "ok", f"{inside}: scaleout run uses all of them")
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Check("scheduler", "ok", f"{', '.join(found[:3])}{more} set: local runs leave them out")


# MPI


def mpirun(facts: Machine, asked: str) -> Check:
    """Check this environment's own mpirun."""
    path = Path(facts.mpirun)
    fix = _pip(f"mpich{asked}", "--force-reinstall")
    if not path.is_file():
        return Check("mpirun", "fail", f"there is no {short(path)}", fix)
    if facts.mpi == "unknown":
        seen = f"{short(path)} does not run, or does not say which MPI it is"
        return Check("mpirun", "fail", seen, fix)
    if not _inside(real := os.path.realpath(path)):
        seen = f"{short(path)} is {real} ({facts.mpi}), not this environment's"
        return Check("mpirun", "warn", seen, fix)
    return Check("mpirun", "ok", f"{facts.mpi} {facts.mpi_version}, {short(path)}")


def mpirun_on_path(facts: Machine, found: str | None, said: str) -> Check:
    """Check what a hand-typed `mpirun` starts."""
    name = "mpirun on PATH"
    if found is None:
        return Check(name, "ok", "none; scaleout run knows its own")
    if os.path.realpath(found) == os.path.realpath(facts.mpirun):
        return Check(name, "ok", "the same")
    version = " ".join(machine.parse_mpi_version(said))
    seen = f"{found} ({version}): typed by hand, it can start worlds of one"
    folder = shlex.quote(str(Path(facts.mpirun).parent))
    return Check(name, "warn", seen, f"export PATH={folder}:$PATH")


def _wrong(report: Report, part: str) -> str:
    """Say why this part did not load in that process; "" where it did."""
    if part in report:
        return " ".join(report[part].get("error", "").split())[:300]
    return "did not come back" if report.get("stage") == part else "was not reached"


def _libraries(job: Pair) -> list[str]:
    return sorted({path for report in job.reports for path in report.get("libmpi", ())})


def _library_fix(environ: Mapping[str, str], otherwise: str) -> str:
    variables = [name for name in LIBRARY_VARIABLES if environ.get(name)]
    return f"unset {' '.join(variables)}" if variables else otherwise


def two_processes(
    job: Pair, facts: Machine, wanted: Mapping[str, str], environ: Mapping[str, str]
) -> Check:
    """Check that two processes see a world of two: in mpi4py, in daal4py and in Horovod."""
    name, own = "two processes", short(facts.mpirun)
    by_hand = (
        f"{own} -n 2 {short(sys.executable)} -m mpi4py.bench helloworld   (and read what it says)"
    )
    worlds: dict[str, list[list[int]]] = {}
    for part in PARTS:
        seen_by = [
            report[part]["world"] for report in job.reports if "world" in report.get(part, {})
        ]
        if seen_by:
            worlds[part] = sorted(seen_by)
    each = [world for both in worlds.values() for world in both]
    if len(job.reports) > 1 and each and all(world == [0, 1] for world in each):
        foreign = [path for path in _libraries(job) if not _inside(path)]
        why = f"{own} starts them, but tells them nothing of each other; it is not mpich's own"
        package = "mpich"
        if foreign:
            why, package = f"they load {foreign[0]}, which is not the MPI of {own}", "mpi4py"
        again = _pip(package + wanted.get(package, ""), "--force-reinstall", "--no-deps")
        seen = f"every process is rank 0 of 1: {why}"
        return Check(name, "fail", seen, _library_fix(environ, again))
    if job.status is None:
        stages = ", ".join(report["stage"] for report in job.reports) or "before Python ran"
        seen = f"did not end in time and were ended; they stood at: {stages}"
        return Check(name, "fail", seen, by_hand)
    if job.status or not worlds:
        wrong = [why for report in job.reports if (why := _wrong(report, "mpi4py"))]
        last = [line for line in (job.output + job.errors).splitlines() if line.strip()][-1:]
        why = (wrong or last or ["it said nothing"])[0]
        return Check(name, "fail", f"mpirun ended with status {job.status}: {why[:300]}", by_hand)
    for part, world in worlds.items():
        if world != [[0, 2], [1, 2]]:
            said = " and ".join(f"rank {rank} of {size}" for rank, size in world)
            seen = f"{part} says {said}; expected rank 0 of 2 and rank 1 of 2"
            return Check(name, "fail", seen, REBUILD)
    *first, last_part = worlds
    where = f"{', '.join(first)} and {last_part}" if first else last_part
    return Check(name, "ok", f"ranks 0 and 1 of 2 in {where}")


def imports(job: Pair, wanted: Mapping[str, str]) -> Check:
    """Check that mpi4py loads, and with the course daal4py, TensorFlow and Horovod, in one process."""
    if not job.reports:
        return Check("imports", "fail", "not tried: no process started", _first("two processes"))
    parts = [part for part, package in PARTS.items() if package in wanted]
    for part in parts:
        for report in job.reports:
            if why := _wrong(report, part):
                again = _pip(PARTS[part] + wanted[PARTS[part]], "--force-reinstall", "--no-deps")
                fix = REBUILD if part == "horovod" else again
                return Check("imports", "fail", f"{part}: {why}", fix)
    return Check("imports", "ok", f"{', '.join(parts)} load in one process")


def one_libmpi(job: Pair, environ: Mapping[str, str]) -> Check:
    """Check that the processes that have loaded everything have one MPI library.

    It is to be this environment's.
    """
    name, libraries, fix = "one libmpi", _libraries(job), _library_fix(environ, REBUILD)
    if not libraries:
        seen = "not seen: no process loaded everything"
        return Check(name, "fail", seen, _first("two processes"))
    if len(libraries) > 1:
        seen = f"{len(libraries)} MPI libraries: {', '.join(libraries)}"
        return Check(name, "fail", seen, fix)
    if not _inside(libraries[0]):
        return Check(name, "warn", f"{libraries[0]}, not this environment's", fix)
    return Check(name, "ok", short(libraries[0]))


def horovod(job: Pair, built_for: str, tensorflow: str) -> Check:
    """Check that Horovod was built for this TensorFlow, with MPI, and sums over two ranks."""
    name = "horovod works"
    if built_for and tensorflow and built_for != tensorflow:
        seen = f"was built for TensorFlow {built_for}, but {tensorflow} is installed"
        return Check(name, "fail", seen, REBUILD)
    if not job.reports:
        return Check(name, "fail", "not tried: no process started", _first("two processes"))
    for report in job.reports:
        if why := _wrong(report, "horovod"):
            earlier = any(_wrong(report, part) for part in PARTS if part != "horovod")
            return Check(name, "fail", why, _first("imports") if earlier else REBUILD)
        if not report["horovod"]["built"]["mpi"]:
            return Check(name, "fail", "was built without MPI", REBUILD)
        if report["horovod"]["sum"] != 3.0:
            seen = f"1 + 2, summed over two ranks, gives {report['horovod']['sum']:g}"
            return Check(name, "fail", seen, _first("two processes"))
    gloo = " and Gloo" if all(report["horovod"]["built"]["gloo"] for report in job.reports) else ""
    about = f"built for TensorFlow {built_for or tensorflow} with MPI{gloo}"
    return Check(name, "ok", f"{about}; sums over two ranks")


def onednn(job: Pair, environ: Mapping[str, str]) -> Check:
    """Report what TensorFlow's convolutions run on by default here, in oneDNN's own words."""
    if not any("version" in report.get("tensorflow", {}) for report in job.reports):
        return Check("oneDNN", "fail", "not seen: TensorFlow did not load", _first("imports"))
    setting = environ.get("TF_ENABLE_ONEDNN_OPTS")
    why = f"because TF_ENABLE_ONEDNN_OPTS={setting}" if setting else "by default on this CPU"
    if not re.search(r"primitive,exec,cpu,convolution", job.output):
        return Check("oneDNN", "ok", f"off {why}; TF_ENABLE_ONEDNN_OPTS=1 turns it on")
    version = re.search(r"oneDNN v([\d.]+)", job.output)
    isa = re.search(r"cpu,isa:(.+)", job.output)
    about = f"{version[1] if version else 'version unknown'}, {isa[1].strip() if isa else 'instructions unknown'}"
    return Check("oneDNN", "ok", f"on {why}: {about}")


def pytorch(report: Report, environ: Mapping[str, str]) -> Check:
    """Check that the PyTorch that `make torch` has brought loads, with Gloo, and with one MPI."""
    if "error" in report:
        return Check("PyTorch", "warn", report["error"], PYTORCH_FIX)
    seen = f"{report['version']} in .side/torch"
    if not report["gloo"]:
        seen += " was built without Gloo: ranks cannot talk"
        return Check("PyTorch", "warn", seen, PYTORCH_FIX)
    if len(report["libmpi"]) != 1:
        names = ", ".join(short(path) for path in report["libmpi"]) or "none"
        seen += f" loads not one MPI but: {names}"
        return Check("PyTorch", "warn", seen, _library_fix(environ, PYTORCH_FIX))
    return Check("PyTorch", "ok", f"{seen}, Gloo built, one MPI")


# Other hosts, and Slurm


def host(name: str, answer: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[Check]:
    """Check one host, by its answer beside what is here."""
    title = f"host {name}"
    if "error" in answer and not answer.get("reached"):
        fix = f"ssh-copy-id {name}   (and try  ssh {name} true)"
        seen = f"cannot be reached without a password: {answer['error']}"
        yield Check(title, "fail", seen, fix)
        return
    if why := answer.get("error") or answer.get("broken"):
        fix = f"share that folder with {name}, or run  make lab  there in the same place"
        yield Check(title, "fail", f"has no environment in {short(ours['prefix'])}: {why}", fix)
        return

    def check(part: str, bad: bool, good: str, wrong: str, fix: str) -> Check:
        full = f"{title}: {part}" if part else title
        return Check(full, "fail", wrong, fix) if bad else Check(full, "ok", good)

    differ = ", ".join(
        f"{key} {answer['versions'].get(key, 'missing')} (here {value})"
        for key, value in ours["versions"].items()
        if answer["versions"].get(key) != value
    )
    wrong = f"not the environment that is here: {differ}"
    again = "git pull && make lab   (on that host)"
    yield check("", bool(differ), "the same environment", wrong, again)
    theirs = answer["mpirun"]
    wrong = f"its mpirun is {theirs}, ours is {ours['mpirun']}"
    again = f"make clean && make lab   (on {name})"
    yield check("MPI", theirs != ours["mpirun"], theirs, wrong, again)
    wrong = f"cannot reach us at {ours['home']}: {answer['back']}"
    fix = "open the firewall between the hosts for all ports above 1024"
    if answer["back"] and not answer["address_back"]:
        by = f"({answer['back']}), but by {answer['address']}"
        wrong = f"cannot reach us by the name {ours['home']} {by}"
        fix = f'options = ["-localhost", "{answer["address"]}"]   (site file)'
    yield check("way back", bool(answer["back"]), f"reaches us at {ours['home']}", wrong, fix)
    what = "our results folder" if answer["folder"] else "this folder"
    fix = "share it between the hosts, or  export SCALEOUT_RESULTS=A_SHARED_FOLDER"
    blind = not (answer["folder"] and answer["shared"])
    yield check("files", blind, "sees this folder and our results", f"does not see {what}", fix)
