"""`scaleout doctor`: looks at this machine and this environment, and shows what diagnosis.py concludes.

What loads TensorFlow, Horovod, mpi4py or daal4py runs in processes of its own (see probe.py), and every wait ends.
"""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import diagnosis, hosts, launch, machine, paths, reaper
from .diagnosis import Check, Job
from .errors import ScaleoutError
from .machine import Machine
from .site import Site

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["checks", "frame", "main"]

JOB_LIMIT_S = 90.0  # for two processes that load everything, from a slow disk; a warm one needs about 5 s
ASK_LIMIT_S = 20.0
WORDS = {"ok": ("ok", "32"), "warn": ("warn", "33"), "fail": ("FAIL", "31")}  # text, terminal colour
FIND_KERNEL = """
import json, sys
from jupyter_client.kernelspec import KernelSpecManager
spec = KernelSpecManager().get_kernel_spec("python3")
# Jupyter itself puts its own Python in the place of these names.
own = ("python", f"python{sys.version_info[0]}", "python%d.%d" % sys.version_info[:2])
program = sys.executable if spec.argv[0] in own else spec.argv[0]
print(json.dumps({"argv": [program, *spec.argv[1:]], "folder": spec.resource_dir}))
"""


def _ask(command: Sequence[str]) -> str:
    """What a command prints, or "" when it fails, is missing or takes longer than ASK_LIMIT_S."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=ASK_LIMIT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@contextmanager
def _job(mpirun: str, limit_s: float) -> Iterator[Callable[[], Job]]:
    """Starts two processes of probe.py; the function it gives waits for them. None of them outlives the block."""
    run_id = f"doctor-{os.getpid()}-{time.monotonic_ns()}"
    more = {"SCALEOUT_RUN_ID": run_id, "ONEDNN_VERBOSE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory(prefix="scaleout-doctor-") as name:
        folder = Path(name)
        guard = reaper.guard(run_id)  # ends the job should the doctor be killed
        with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
            started = subprocess.Popen(
                [mpirun, "-n", "2", sys.executable, "-m", "scaleout.probe", name, str(limit_s)],
                env=launch.clean_environment(os.environ) | more,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches the doctor alone, who ends them in order
            )

        def wait() -> Job:
            try:
                status = started.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            output, errors = ((folder / stream).read_text(errors="replace") for stream in ("output", "errors"))
            return Job(status, output, errors, tuple(json.loads(path.read_text()) for path in folder.glob("*.json")))

        try:
            yield wait
        finally:
            reaper.end(run_id, started.pid)
            started.kill()  # gone by now; but the wait below has no limit, so nothing may be left to chance
            started.wait()
            guard.communicate(b"done")


def _pins(pyproject: Path) -> dict[str, str]:
    """{package: version specifier}, "python" too, as pyproject.toml pins them, or else the installed scaleout."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        python, lines = project["requires-python"], project["dependencies"]
    else:
        about = importlib.metadata.metadata("scaleout")
        python, lines = about["Requires-Python"], about.get_all("Requires-Dist") or []
    wanted = [Requirement(line) for line in lines]
    return {"python": python, **{canonicalize_name(want.name): str(want.specifier) for want in wanted}}


def _versions(facts: Machine) -> dict[str, str]:
    """{package: installed version}; conda's mpich is no Python package, its mpirun speaks for it."""
    conda = {"mpich": facts.mpi_version} if facts.mpi == "MPICH" else {}
    return conda | machine.versions(diagnosis.PACKAGES)


def _horovod_built_for() -> str:
    """The TensorFlow that Horovod was compiled against, as its build wrote it down; "" when that is unknown."""
    try:
        path = importlib.metadata.distribution("horovod").locate_file("horovod/metadata.json")
        return json.loads(Path(str(path)).read_text())["tensorflow"]
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError, KeyError):
        return ""


def _bytecode(package: str) -> Check:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return diagnosis.bytecode(package, sys.prefix, False)
    cached = Path(importlib.util.cache_from_source(spec.origin))
    return diagnosis.bytecode(package, str(Path(spec.origin).parents[1]), cached.is_file())


def _compiler(environ: Mapping[str, str]) -> Check:
    names = [environ.get("CXX", "").partition(" ")[0], "g++", "c++", "clang++"]
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    return diagnosis.compiler(path, _ask([path, "-dumpfullversion", "-dumpversion"]) if path else "")


def _results() -> Check:
    """Writes a file where runs write theirs, and deletes it: a full or read-only disk shows only then."""
    try:
        folder = paths.results()
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * 4096)
        return diagnosis.results(diagnosis.short(folder), shutil.disk_usage(folder).free / 2**30)
    except ScaleoutError as error:
        return diagnosis.results("", None, str(error).partition(": type ")[0])
    except OSError as error:
        return diagnosis.results("", None, f"nothing can be written to {diagnosis.short(folder)}: {error.strerror}")


def _kernel(environ: Mapping[str, str]) -> Check:
    said = _ask([sys.executable, "-c", FIND_KERNEL])
    spec: dict[str, Any] = json.loads(said) if said else {}
    prefix = _ask([spec["argv"][0], "-c", "import sys; print(sys.prefix)"]) if spec else ""
    return diagnosis.kernel(spec, prefix, environ)


def _examine(facts: Machine) -> list[Check]:
    environ = dict(os.environ)
    wanted = _pins(Path(__file__).parents[2] / "pyproject.toml")
    found = _versions(facts)
    mpirun = diagnosis.mpirun(facts, wanted.get("mpich", ""))
    if mpirun.status != "fail":
        with _job(facts.mpirun, JOB_LIMIT_S) as wait:
            quick = _quick(facts, wanted, found, environ)  # meanwhile
            job = wait()
    else:
        quick, job = _quick(facts, wanted, found, environ), Job(127, errors=mpirun.seen)
    return [
        *quick,
        mpirun,
        diagnosis.two_processes(job, facts, wanted, environ),
        diagnosis.imports(job, wanted),
        diagnosis.one_libmpi(job, environ),
        diagnosis.horovod(job, _horovod_built_for(), found.get("tensorflow-cpu", "")),
        diagnosis.onednn(job, environ),
        _bytecode("tensorflow"),  # last: the job itself may have compiled it
    ]


def _quick(
    facts: Machine, wanted: Mapping[str, str], found: Mapping[str, str], environ: Mapping[str, str]
) -> list[Check]:
    """All checks that need no MPI job."""
    shm = Path("/dev/shm")
    path = shutil.which("mpirun")
    return [
        diagnosis.cores(facts),
        diagnosis.processor(facts),
        diagnosis.bf16(facts),
        diagnosis.memory(facts.memory_gib, facts.memory_limit_gib, machine.memory_gib("MemAvailable")),
        diagnosis.shared_memory(shutil.disk_usage(shm).free / 2**20 if shm.is_dir() else None),
        _results(),
        diagnosis.user(os.getuid()),
        *diagnosis.versions(wanted, found, ".".join(map(str, sys.version_info[:3]))),
        _compiler(environ),
        _kernel(environ),
        diagnosis.thread_variables(environ),
        diagnosis.scheduler(environ),
        diagnosis.mpirun_on_path(facts, path, _ask([path, "--version"]) if path else ""),
    ]


def checks() -> list[Check]:
    """Looks at this machine and this environment. About 5 s: two processes load everything there is."""
    return _examine(machine.facts())


def frame() -> "pd.DataFrame":
    """The checks as a table, a row each: check, status, seen, fix; and more, where docs/errors.md explains one."""
    import pandas as pd

    found = checks()
    table = pd.DataFrame([asdict(check) for check in found]).rename(columns={"name": "check"})
    return table.assign(more=[check.page for check in found]) if any(check.page for check in found) else table


def _table(found: Sequence[Check], width: int, colour: bool) -> Iterator[str]:
    """The checks as lines: word, name, what was seen (wrapped); below it the fix, unbroken, to be copied."""
    column = max(len(check.name) for check in found) + 2
    margin = " " * (6 + column)
    for check in found:
        text, number = WORDS[check.status]
        word = f"\033[{number}m{text:<6}\033[0m" if colour else f"{text:<6}"
        first, *more = textwrap.wrap(check.seen, max(30, width - len(margin)), break_long_words=False) or [""]
        yield f"{word}{check.name:<{column}}{first}"
        yield from (margin + line for line in more)
        if check.fix:
            yield f"{margin}fix: {check.fix}"
        if check.page:
            yield f"{margin}more: {check.page}"


def main(as_json: bool = False, site: Site | None = None) -> int:
    """Prints the checks as a table, or with the machine's facts as JSON; returns 1 when something required fails.

    site: its hosts, or its Slurm, are looked at too.
    """
    facts = machine.facts()
    if sys.stderr.isatty():
        print(f"Looking at {facts.host} ...", file=sys.stderr)
    found = _examine(facts) + (hosts.checks(site) if site else [])
    failed, warned = (sum(check.status == status for check in found) for status in ("fail", "warn"))
    if as_json:
        print(json.dumps({"machine": asdict(facts), "checks": [asdict(c) | {"page": c.page} for c in found]}, indent=1))
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print("\n".join(_table(found, shutil.get_terminal_size((100, 24)).columns, colour)))
        print(f"\n{len(found)} checks: {failed} failed, {diagnosis.count(warned, 'warning')}.")
    return 1 if failed else 0
