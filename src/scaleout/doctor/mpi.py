"""What the doctor concludes from a small MPI job: two processes that load everything."""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..machine import Machine
from .checks import REBUILD, Check, _first, _inside, _pip, short

PARTS = {
    "mpi4py": "mpi4py",
    "daal4py": "scikit-learn-intelex",
    "tensorflow": "tensorflow-cpu",
    "horovod": "horovod",
}
LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "MPI4PY_LIBMPI", "MPI4PY_MPIABI")
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """The doctor's job of two processes, ended."""

    status: int | None
    output: str = ""
    errors: str = ""
    reports: tuple[Report, ...] = ()


def _wrong(report: Report, part: str) -> str:
    """Why this part did not load in that process, or ""."""
    if part in report:
        return " ".join(report[part].get("error", "").split())[:300]
    return "did not come back" if report.get("stage") == part else "was not reached"


def _libraries(job: Job) -> list[str]:
    return sorted({path for report in job.reports for path in report.get("libmpi", ())})


def _library_fix(environ: Mapping[str, str], otherwise: str) -> str:
    variables = [name for name in LIBRARY_VARIABLES if environ.get(name)]
    return f"unset {' '.join(variables)}" if variables else otherwise


def two_processes(
    job: Job, facts: Machine, wanted: Mapping[str, str], environ: Mapping[str, str]
) -> Check:
    """Two processes see a world of two: in mpi4py, in daal4py and in Horovod."""
    name = "two processes"
    own = short(facts.mpirun)
    by_hand = (
        f"{own} -n 2 {short(sys.executable)} -m mpi4py.bench helloworld   (and read what it says)"
    )
    worlds = {
        part: world
        for part in PARTS
        if (
            world := sorted(
                report[part]["world"] for report in job.reports if "world" in report.get(part, {})
            )
        )
    }
    places = [place for world in worlds.values() for place in world]
    if len(job.reports) > 1 and places and all(place == [0, 1] for place in places):
        foreign = [path for path in _libraries(job) if not _inside(path)]
        why = f"{own} starts them, but tells them nothing of each other; it is not mpich's own"
        package = "mpich"
        if foreign:
            why, package = f"they load {foreign[0]}, which is not the MPI of {own}", "mpi4py"
        fix = _library_fix(
            environ, _pip(package + wanted.get(package, ""), "--force-reinstall", "--no-deps")
        )
        return Check(name, "fail", f"every process is rank 0 of 1: {why}", fix)
    if job.status is None:
        stages = ", ".join(report["stage"] for report in job.reports) or "before Python ran"
        return Check(
            name, "fail", f"did not end in time and were ended; they stood at: {stages}", by_hand
        )
    if job.status or not worlds:
        wrong = [why for report in job.reports if (why := _wrong(report, "mpi4py"))]
        last = [line for line in (job.output + job.errors).splitlines() if line.strip()][-1:]
        why = (wrong or last or ["it said nothing"])[0]
        return Check(name, "fail", f"mpirun ended with status {job.status}: {why[:300]}", by_hand)
    for part, world in worlds.items():
        if world != [[0, 2], [1, 2]]:
            said = " and ".join(f"rank {rank} of {size}" for rank, size in world)
            return Check(
                name, "fail", f"{part} says {said}; expected rank 0 of 2 and rank 1 of 2", REBUILD
            )
    *others, end = worlds
    where = f"{', '.join(others)} and {end}" if others else end
    return Check(name, "ok", f"ranks 0 and 1 of 2 in {where}")


def imports(job: Job, wanted: Mapping[str, str]) -> Check:
    """mpi4py, daal4py, TensorFlow and Horovod load in one process."""
    if not job.reports:
        return Check("imports", "fail", "not tried: no process started", _first("two processes"))
    parts = [part for part, package in PARTS.items() if package in wanted]
    wrong = (
        (part, why) for report in job.reports for part in parts if (why := _wrong(report, part))
    )
    part, why = next(wrong, ("", ""))
    if not part:
        return Check("imports", "ok", f"{', '.join(parts)} load in one process")
    again = _pip(PARTS[part] + wanted.get(PARTS[part], ""), "--force-reinstall", "--no-deps")
    return Check("imports", "fail", f"{part}: {why}", REBUILD if part == "horovod" else again)


def one_libmpi(job: Job, environ: Mapping[str, str]) -> Check:
    """One MPI library, this environment's, in the processes that have loaded everything."""
    libraries = _libraries(job)
    fix = _library_fix(environ, REBUILD)
    if not libraries:
        return Check(
            "one libmpi", "fail", "not seen: no process loaded everything", _first("two processes")
        )
    if len(libraries) > 1:
        return Check(
            "one libmpi", "fail", f"{len(libraries)} MPI libraries: {', '.join(libraries)}", fix
        )
    if not _inside(libraries[0]):
        return Check("one libmpi", "warn", f"{libraries[0]}, not this environment's", fix)
    return Check("one libmpi", "ok", short(libraries[0]))


def horovod(job: Job, built_for: str, tensorflow: str) -> Check:
    """Horovod was built for this TensorFlow, with MPI, and sums over two ranks."""
    if built_for and tensorflow and built_for != tensorflow:
        seen = f"was built for TensorFlow {built_for}, but {tensorflow} is installed"
        return Check("horovod works", "fail", seen, REBUILD)
    if not job.reports:
        return Check(
            "horovod works", "fail", "not tried: no process started", _first("two processes")
        )
    for report in job.reports:
        if why := _wrong(report, "horovod"):
            earlier = [part for part in PARTS if part != "horovod" and _wrong(report, part)]
            return Check("horovod works", "fail", why, _first("imports") if earlier else REBUILD)
        if not report["horovod"]["built"]["mpi"]:
            return Check("horovod works", "fail", "was built without MPI", REBUILD)
        if report["horovod"]["sum"] != 3.0:
            seen = f"1 + 2, summed over two ranks, gives {report['horovod']['sum']:g}"
            return Check("horovod works", "fail", seen, _first("two processes"))
    gloo = all(report["horovod"]["built"]["gloo"] for report in job.reports)
    seen = f"built for TensorFlow {built_for or tensorflow} with MPI{' and Gloo' if gloo else ''}; sums over two ranks"
    return Check("horovod works", "ok", seen)


def onednn(job: Job, environ: Mapping[str, str]) -> Check:
    """What TensorFlow's convolutions run on by default here, in oneDNN's own words."""
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
