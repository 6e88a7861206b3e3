"""Looks at this machine and this environment, a check at a time, and judges by the pure checks.

What loads TensorFlow, Horovod, mpi4py or daal4py runs in processes of its own (see probe.py), and
every wait ends."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import machine, paths
from ..machine import Machine, noise
from . import checks as pure
from . import launcher, mpi, packages, pytorch, quiet
from .checks import Check
from .mpi import Job
from .packages import PACKAGES
from .pair import pair

JOB_LIMIT_S = 90.0  # for two processes that load everything, from a slow disk; a warm one needs 5 s
ASK_LIMIT_S = 20.0
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
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _pins(pyproject: Path, course: bool = True) -> dict[str, str]:
    """{package: version specifier}, "python" too, as pyproject.toml names them, or else the
    installed scaleout; without the course, those of the tool alone."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    if pyproject.is_file():
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        python, lines = project["requires-python"], [*project["dependencies"]]
        lines += project.get("optional-dependencies", {}).get("course", [])
    else:
        about = importlib.metadata.metadata("scaleout")
        python, lines = about["Requires-Python"], about.get_all("Requires-Dist") or []
    extras = ("", "course") if course else ("",)
    wanted = [
        want
        for want in map(Requirement, lines)
        if not want.marker or any(want.marker.evaluate({"extra": extra}) for extra in extras)
    ]
    return {
        "python": python,
        **{canonicalize_name(want.name): str(want.specifier) for want in wanted},
    }


def _versions(facts: Machine) -> dict[str, str]:
    """{package: installed version}; conda's mpich is no Python package, its mpirun speaks for
    it."""
    conda = {"mpich": facts.mpi_version} if facts.mpi == "MPICH" else {}
    return conda | machine.versions(PACKAGES)


def _horovod_built_for() -> str:
    """The TensorFlow that Horovod was compiled against, as its build wrote it down; "" when that is
    unknown."""
    try:
        path = importlib.metadata.distribution("horovod").locate_file("horovod/metadata.json")
        return str(json.loads(Path(str(path)).read_text())["tensorflow"])
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError, KeyError):
        return ""


def _bytecode(package: str) -> Check:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return packages.bytecode(package, sys.prefix, False)
    cached = Path(importlib.util.cache_from_source(spec.origin))
    return packages.bytecode(package, str(Path(spec.origin).parents[1]), cached.is_file())


def _compiler(environ: Mapping[str, str]) -> Check:
    names = [environ.get("CXX", "").partition(" ")[0], "g++", "c++", "clang++"]
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    return packages.compiler(path, _ask([path, "-dumpfullversion", "-dumpversion"]) if path else "")


def _results() -> Check:
    """Writes a file where runs write theirs, or will, and deletes it: a full or read-only disk
    shows only then."""
    folder = paths.results_path()
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x" * 4096)
        return pure.results(pure.short(folder), shutil.disk_usage(there).free / 2**30)
    except OSError as error:
        return pure.results(
            "", None, f"nothing can be written to {pure.short(folder)}: {error.strerror}"
        )


def _kernel(environ: Mapping[str, str]) -> Check:
    said = _ask([sys.executable, "-c", FIND_KERNEL])
    spec: dict[str, Any] = json.loads(said) if said else {}
    prefix = _ask([spec["argv"][0], "-c", "import sys; print(sys.prefix)"]) if spec else ""
    return packages.kernel(spec, prefix, environ)


def examine(facts: Machine) -> list[Check]:
    """All checks of this machine and this environment. Takes about 5 s."""
    environ = dict(os.environ)
    load, before = noise.load(), noise.ticks()  # before our own work
    found = _versions(facts)
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    # pip install scaleout, without the course: TensorFlow, Horovod and notebooks are not missed
    course = pyproject.is_file() or bool({"tensorflow-cpu", "horovod"} & found.keys())
    wanted = _pins(pyproject, course)
    mpirun = launcher.mpirun(facts, wanted.get("mpich", ""))
    if mpirun.status != "fail":
        with pair(facts.mpirun, JOB_LIMIT_S) as wait:
            quick = _quick(facts, wanted, found, environ)  # meanwhile
            job = wait()
    else:
        quick, job = _quick(facts, wanted, found, environ), Job(127, errors=mpirun.seen)
    beside = paths.side("torch")
    return [
        *quick,
        quiet.others(load, facts),
        quiet.stolen(noise.ticks().share(before)),
        quiet.clock(noise.clock()),
        quiet.huge_pages(noise.huge_pages()),
        quiet.numa(facts),
        mpirun,
        mpi.two_processes(job, facts, wanted, environ),
        mpi.imports(job, wanted),
        mpi.one_libmpi(job, environ),
        *([pytorch.pytorch(pytorch.ask(beside, environ))] if beside else []),
        *(_of_course(job, found, environ) if course else []),
    ]


def _of_course(job: Job, found: Mapping[str, str], environ: Mapping[str, str]) -> list[Check]:
    """What only the notebooks and labs need."""
    return [
        mpi.horovod(job, _horovod_built_for(), found.get("tensorflow-cpu", "")),
        mpi.onednn(job, environ),
        _compiler(environ),
        _kernel(environ),
        _bytecode("tensorflow"),  # last: the job itself may have compiled it
    ]


def _quick(
    facts: Machine, wanted: Mapping[str, str], found: Mapping[str, str], environ: Mapping[str, str]
) -> list[Check]:
    """All checks that need no MPI job."""
    shm = Path("/dev/shm")
    path = shutil.which("mpirun")
    return [
        pure.cores(facts),
        pure.processor(facts),
        pure.bf16(facts),
        pure.memory(facts.memory_gib, facts.memory_limit_gib, machine.memory_gib("MemAvailable")),
        pure.shared_memory(shutil.disk_usage(shm).free / 2**20 if shm.is_dir() else None),
        _results(),
        pure.user(os.getuid()),
        *packages.versions(wanted, found, ".".join(map(str, sys.version_info[:3]))),
        pure.thread_variables(environ),
        pure.scheduler(environ),
        launcher.mpirun_on_path(facts, path, _ask([path, "--version"]) if path else ""),
    ]
