"""What the doctor concludes: each function judges facts that it is handed, and names the fix to type.

Nothing here looks at the machine (doctor.py does), so that a test can hand over facts of broken ones.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import known, launch, machine, paths
from .machine import Machine
from .site import allocated_nodes

__all__ = [
    "PACKAGES",
    "Check",
    "Job",
    "bf16",
    "bytecode",
    "compiler",
    "cores",
    "count",
    "horovod",
    "imports",
    "kernel",
    "memory",
    "mpirun",
    "mpirun_on_path",
    "one_libmpi",
    "onednn",
    "processor",
    "results",
    "scheduler",
    "shared_memory",
    "short",
    "thread_variables",
    "two_processes",
    "user",
    "versions",
]

REBUILD = "make clean && make lab"
PARTS = {"mpi4py": "mpi4py", "daal4py": "scikit-learn-intelex", "tensorflow": "tensorflow-cpu", "horovod": "horovod"}
# The versions below which a package is known to be broken here; of the others only the pin speaks.
BROKEN = {
    "ipykernel": ("<7.1", "7.0 breaks ipyparallel"),
    "jupyter-server": ("<2.21.1", "older ones have known security holes"),
}
# One stack, built against each other: another version is a failure. The notebook's may differ with a warning.
STACK = ("tensorflow-cpu", "horovod", "mpich", "mpi4py", "scikit-learn-intelex")
PACKAGES = (*STACK, "ipyparallel", "ipykernel", "jupyter-server")
THREAD_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR|TF_NUM|ONEDNN|DNNL)_|TF_ENABLE_ONEDNN_OPTS$|(TF_)?XLA_FLAGS$"
)
# scikit-learn sets these two in its own process; they change no thread count.
HARMLESS = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "MPI4PY_LIBMPI", "MPI4PY_MPIABI")
# Below the first of each pair is a failure, below the second a warning.
MEMORY_GIB = (2.5, 5.0)  # training ResNet-50 at batch 16 peaks at 2.3 GiB a process
DISK_GIB = (0.2, 2.0)
SHARED_MEMORY_MIB = 60.0  # containers have 64 MiB unless told otherwise, which is enough for a few ranks

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One finding. status: "ok", "warn" or "fail" (something required); fix: what to type, empty when ok."""

    name: str
    status: str
    seen: str
    fix: str = ""

    @property
    def page(self) -> str:
        """Where it is explained, such as "docs/errors.md#nosuchkernel"; "" when it is ok, or nobody knows it."""
        return "" if self.status == "ok" else known.finding(self.seen) or ""


@dataclass(frozen=True)
class Job:
    """The doctor's job of two processes, ended.

    status: mpirun's, None when it ran out of time.  reports: what each process wrote (see probe.py).
    """

    status: int | None
    output: str = ""
    errors: str = ""
    reports: tuple[Report, ...] = ()


def short(path: Path | str) -> str:
    """The path as typed from the current folder, where that is shorter."""
    return min(paths.show(Path(path)), str(path), key=len)


def _pip(requirement: str, *options: str) -> str:
    return shlex.join([short(sys.executable), "-m", "pip", "install", *options, requirement])


def _first(name: str) -> str:
    return f"mend `{name}` first"


def _level(value: float, limits: tuple[float, float]) -> str:
    return "fail" if value < limits[0] else "warn" if value < limits[1] else "ok"


def count(number: int, noun: str) -> str:
    """The number with its noun: "1 socket", "2 sockets"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


# The machine


def cores(facts: Machine) -> Check:
    """The cores that a job may fill, by affinity and control group."""
    quota = "no cgroup limit" if facts.cgroup_cpus is None else f"cgroup limit {facts.cgroup_cpus:g} CPUs"
    seen = (
        f"{facts.usable_cores} to fill ({facts.cores} of {len(facts.layout)} allowed, {quota}); "
        f"{count(facts.sockets, 'socket')}, {count(facts.hardware_threads, 'hardware thread')}"
    )
    if facts.layout_source == "unknown":
        seen += "; which of them share a core is unknown"
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
    """Its name, and the instruction sets that the libraries ask for."""
    if "avx" in facts.isa:
        newer = facts.isa[facts.isa.index("avx") + 1 :]
        return Check("processor", "ok", f"{facts.cpu}: {' '.join(newer) or 'nothing newer than AVX'}")
    fix = "nothing here: take a newer CPU"
    return Check("processor", "fail", f"{facts.cpu}: no AVX, so TensorFlow will not start", fix)


def bf16(facts: Machine) -> Check:
    """Whether bfloat16 is worth anything here; both answers are fine, so nothing needs a fix."""
    if machine.native_bf16(facts.isa):
        return Check("bf16", "ok", "native: this CPU multiplies bfloat16")
    return Check("bf16", "ok", "emulated: no bfloat16 instructions here, expect it slower than fp32")


def memory(total: float | None, limit: float | None, available: float | None) -> Check:
    """All in GiB; None is unknown, for `limit` no limit."""
    if total is None or available is None:
        return Check("memory", "warn", "unknown: /proc/meminfo does not tell", "free -h")
    usable = min(available, limit or available)
    seen = f"{usable:.1f} of {total:.1f} GiB to use" + (f" (cgroup limit {limit:.1f})" if limit else "")
    if (status := _level(usable, MEMORY_GIB)) == "ok":
        return Check("memory", "ok", seen)
    fix = "docker run --memory=8g ...   (a larger limit)" if limit else "top -o %MEM   (end what you do not need)"
    return Check("memory", status, f"{seen}; ResNet-50 wants {MEMORY_GIB[0]:g} GiB a rank", fix)


def shared_memory(free_mib: float | None) -> Check:
    """MiB free in /dev/shm, through which ranks on one machine talk; None when it is missing."""
    if free_mib is None:
        return Check("shared memory", "warn", "there is no /dev/shm", "docker run --shm-size=1g ...")
    seen = f"{free_mib:,.0f} MiB free in /dev/shm"
    if free_mib >= SHARED_MEMORY_MIB:
        return Check("shared memory", "ok", seen)
    return Check("shared memory", "warn", seen, "ls -lS /dev/shm   (delete old files; docker: --shm-size=1g)")


def results(folder: str, free_gib: float | None, error: str = "") -> Check:
    """error: why nothing can be written there, "" when it can."""
    fix = "export SCALEOUT_RESULTS=$HOME/scaleout-results"
    if error or free_gib is None:
        return Check("results", "fail", error or f"{folder}: room unknown", fix)
    status = _level(free_gib, DISK_GIB)
    fix = "" if status == "ok" else f"{fix}   (or make room: du -sh {shlex.quote(folder)}/* | sort -h)"
    return Check("results", status, f"{folder}: writable, {free_gib:.1f} GiB free", fix)


def user(uid: int) -> Check:
    """Root is who people are in a container."""
    return Check("user", "ok", "root: Jupyter refuses that, unless `make lab` starts it" if uid == 0 else f"id {uid}")


# The environment


def versions(wanted: Mapping[str, str], found: Mapping[str, str], python: str) -> Iterator[Check]:
    """Python and each of PACKAGES against its pin; both mappings are {package: version or specifier}."""
    from packaging.specifiers import SpecifierSet

    def fits(version: str, specifier: str) -> bool:
        return SpecifierSet(specifier).contains(version, prereleases=True)

    if fits(python, wanted.get("python", "")):
        yield Check("python", "ok", f"{python}, {short(sys.prefix)}")
    else:
        seen = f"{python}, but the workshop needs {wanted['python']}"
        yield Check("python", "fail", seen, f"{REBUILD} PYTHON=python3.11")
    for name in PACKAGES:
        pin, version = wanted.get(name, ""), found.get(name)
        broken, why = BROKEN.get(name, ("", ""))
        fix = REBUILD if name == "horovod" else _pip(name + (pin or broken.replace("<", ">=")))
        if version is None:
            yield Check(name, "fail", "is not installed", fix)
        elif broken and fits(version, broken):
            yield Check(name, "fail", f"{version}: {why}", fix)
        elif not fits(version, pin):
            seen = f"{version}, but pyproject.toml pins {pin}"
            yield Check(name, "fail" if name in STACK else "warn", seen, fix)
        else:
            yield Check(name, "ok", version)


def bytecode(package: str, folder: str, compiled: bool) -> Check:
    """Whether Python finds `package`, installed in `folder`, compiled; else each process compiles it in memory."""
    if compiled:
        return Check("bytecode", "ok", f"{package} is compiled")
    seen = f"{package} is not compiled to bytecode: every process of every job starts seconds later"
    return Check("bytecode", "warn", seen, f"{short(sys.executable)} -m compileall -q -j 0 {short(folder)}")


def compiler(path: str | None, version: str) -> Check:
    """The C++ compiler: needed to build Horovod, not to use it."""
    if path and version:
        return Check("compiler", "ok", f"{path} {version}")
    fix = "apt-get install g++   (with conda: conda install -c conda-forge gxx=13)"
    return Check("compiler", "warn", "no C++ compiler: Horovod could not be built anew", fix)


def kernel(spec: Mapping[str, Any], prefix: str, environ: Mapping[str, str]) -> Check:
    """The `python3` kernel.

    spec: {"argv": its command, "folder": where it was found}, empty when there is none.  prefix: the sys.prefix of
    the Python that it starts, "" when that does not run.
    """
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


# The shell


def thread_variables(environ: Mapping[str, str]) -> Check:
    """Variables that change how many threads run, or which kernels, before the workshop sets them."""
    found = sorted(name for name in environ if THREAD_VARIABLES.match(name) and name not in HARMLESS)
    if not found:
        return Check("thread variables", "ok", "none set in this shell")
    seen = ", ".join(f"{name}={environ[name]}" for name in found)
    return Check("thread variables", "warn", f"{seen}: they change what you measure", f"unset {' '.join(found)}")


def scheduler(environ: Mapping[str, str]) -> Check:
    """Variables of a scheduler or of another MPI job; good to know, no fault."""
    found = sorted(set(environ) - set(launch.clean_environment(environ)))
    if not found:
        return Check("scheduler", "ok", "no variables of a scheduler or of another MPI job")
    if (nodes := allocated_nodes(environ)) > 1:
        seen = f"inside Slurm job {environ['SLURM_JOB_ID']}, {nodes} nodes: scaleout run uses all of them"
        return Check("scheduler", "ok", seen)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Check("scheduler", "ok", f"{', '.join(found[:3])}{more} set: local runs leave them out")


# MPI


def mpirun(facts: Machine, pin: str) -> Check:
    """This environment's own mpirun; pin: which mpich is wanted, such as "==4.3.2"."""
    path = Path(facts.mpirun)
    fix = _pip(f"mpich{pin}", "--force-reinstall")
    if not path.is_file():
        return Check("mpirun", "fail", f"there is no {short(path)}", fix)
    if facts.mpi == "unknown":
        return Check("mpirun", "fail", f"{short(path)} does not run, or does not say which MPI it is", fix)
    if not _inside(real := os.path.realpath(path)):
        return Check("mpirun", "warn", f"{short(path)} is {real} ({facts.mpi}), not this environment's", fix)
    return Check("mpirun", "ok", f"{facts.mpi} {facts.mpi_version}, {short(path)}")


def mpirun_on_path(facts: Machine, found: str | None, said: str) -> Check:
    """What a hand-typed `mpirun` starts: its path, and what its --version says."""
    name = "mpirun on PATH"
    if found is None:
        return Check(name, "ok", "none; scaleout run knows its own")
    if os.path.realpath(found) == os.path.realpath(facts.mpirun):
        return Check(name, "ok", "the same")
    seen = f"{found} ({' '.join(machine.parse_mpi_version(said))}): typed by hand, it can start worlds of one"
    return Check(name, "warn", seen, f"export PATH={shlex.quote(str(Path(facts.mpirun).parent))}:$PATH")


def _wrong(report: Report, part: str) -> str:
    """Why this part did not load in that process, or ""."""
    if part in report:
        return " ".join(report[part].get("error", "").split())[:300]
    return "did not come back" if report.get("stage") == part else "was not reached"


def _libraries(job: Job) -> list[str]:
    return sorted({path for report in job.reports for path in report.get("libmpi", ())})


def _inside(path: str) -> bool:
    return Path(path).is_relative_to(os.path.realpath(sys.prefix))


def _library_fix(environ: Mapping[str, str], otherwise: str) -> str:
    variables = [name for name in LIBRARY_VARIABLES if environ.get(name)]
    return f"unset {' '.join(variables)}" if variables else otherwise


def two_processes(job: Job, facts: Machine, wanted: Mapping[str, str], environ: Mapping[str, str]) -> Check:
    """Two processes see a world of two: in mpi4py, in daal4py and in Horovod."""
    name = "two processes"
    own = short(facts.mpirun)
    by_hand = f"{own} -n 2 {short(sys.executable)} -m mpi4py.bench helloworld   (and read what it says)"
    worlds = {
        part: world
        for part in PARTS
        if (world := sorted(report[part]["world"] for report in job.reports if "world" in report.get(part, {})))
    }
    places = [place for world in worlds.values() for place in world]
    if len(job.reports) > 1 and places and all(place == [0, 1] for place in places):
        foreign = [path for path in _libraries(job) if not _inside(path)]
        why = f"{own} starts them, but tells them nothing of each other; it is not mpich's own"
        package = "mpich"
        if foreign:
            why, package = f"they load {foreign[0]}, which is not the MPI of {own}", "mpi4py"
        fix = _library_fix(environ, _pip(package + wanted.get(package, ""), "--force-reinstall", "--no-deps"))
        return Check(name, "fail", f"every process is rank 0 of 1: {why}", fix)
    if job.status is None:
        stages = ", ".join(report["stage"] for report in job.reports) or "before Python ran"
        return Check(name, "fail", f"did not end in time and were ended; they stood at: {stages}", by_hand)
    if job.status or not worlds:
        wrong = [why for report in job.reports if (why := _wrong(report, "mpi4py"))]
        last = [line for line in (job.output + job.errors).splitlines() if line.strip()][-1:]
        why = (wrong or last or ["it said nothing"])[0]
        return Check(name, "fail", f"mpirun ended with status {job.status}: {why[:300]}", by_hand)
    for part, world in worlds.items():
        if world != [[0, 2], [1, 2]]:
            said = " and ".join(f"rank {rank} of {size}" for rank, size in world)
            return Check(name, "fail", f"{part} says {said}; expected rank 0 of 2 and rank 1 of 2", REBUILD)
    *others, last = worlds
    return Check(name, "ok", f"ranks 0 and 1 of 2 in {', '.join(others)}{' and ' if others else ''}{last}")


def imports(job: Job, wanted: Mapping[str, str]) -> Check:
    """mpi4py, daal4py, TensorFlow and Horovod load in one process."""
    if not job.reports:
        return Check("imports", "fail", "not tried: no process started", _first("two processes"))
    wrong = ((part, why) for report in job.reports for part in PARTS if (why := _wrong(report, part)))
    part, why = next(wrong, ("", ""))
    if not part:
        return Check("imports", "ok", "mpi4py, daal4py, TensorFlow and Horovod load in one process")
    again = _pip(PARTS[part] + wanted.get(PARTS[part], ""), "--force-reinstall", "--no-deps")
    return Check("imports", "fail", f"{part}: {why}", REBUILD if part == "horovod" else again)


def one_libmpi(job: Job, environ: Mapping[str, str]) -> Check:
    """One MPI library, this environment's, in the processes that have loaded everything."""
    libraries = _libraries(job)
    fix = _library_fix(environ, REBUILD)
    if not libraries:
        return Check("one libmpi", "fail", "not seen: no process loaded everything", _first("two processes"))
    if len(libraries) > 1:
        return Check("one libmpi", "fail", f"{len(libraries)} MPI libraries: {', '.join(libraries)}", fix)
    if not _inside(libraries[0]):
        return Check("one libmpi", "warn", f"{libraries[0]}, not this environment's", fix)
    return Check("one libmpi", "ok", short(libraries[0]))


def horovod(job: Job, built_for: str, tensorflow: str) -> Check:
    """Horovod was built for this TensorFlow (both versions, "" for unknown), with MPI, and sums over two ranks."""
    if built_for and tensorflow and built_for != tensorflow:
        seen = f"was built for TensorFlow {built_for}, but {tensorflow} is installed"
        return Check("horovod works", "fail", seen, REBUILD)
    if not job.reports:
        return Check("horovod works", "fail", "not tried: no process started", _first("two processes"))
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
    """What TensorFlow's convolutions run on by default here, in oneDNN's own words (ONEDNN_VERBOSE)."""
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
