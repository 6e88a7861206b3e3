"""Look at this machine and this environment, and hand the facts to the pure checks.

What loads TensorFlow, Horovod, mpi4py or daal4py runs in processes of its own (see probe.py), and
every wait ends."""

import importlib.metadata
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import machine
from ..base import paths
from ..base.errors import ScaleoutError
from ..jobs import supervise
from ..jobs.environment import clean_environment
from ..launch import slurm_commands as slurm
from ..machine import Machine, Pace
from ..site import Site, host_login, words_of
from . import checks, remote
from .checks import Check, Pair

JOB_LIMIT_S = 90.0  # for two processes that load everything, from a slow disk; a warm one needs 5 s
ASK_LIMIT_S = 20.0
PYTORCH_LIMIT_S = 60.0  # to load PyTorch from a cold disk; a warm one needs 3 s
FIND_KERNEL = """
import json, sys
from jupyter_client.kernelspec import KernelSpecManager
spec = KernelSpecManager().get_kernel_spec("python3")
# Jupyter itself puts its own Python in the place of these names.
own = ("python", f"python{sys.version_info[0]}", "python%d.%d" % sys.version_info[:2])
program = sys.executable if spec.argv[0] in own else spec.argv[0]
print(json.dumps({"argv": [program, *spec.argv[1:]], "folder": spec.resource_dir}))
"""
PROBE_PYTORCH = """
import json, torch, torch.distributed as dist
from mpi4py import MPI
from scaleout.doctor.probe import mpi_libraries
with open("/proc/self/maps") as file:
    libraries = mpi_libraries(file.read())
gloo = dist.is_available() and dist.is_gloo_available()
print(json.dumps({"version": torch.__version__, "gloo": gloo, "libmpi": libraries}))
"""


def examine(facts: Machine) -> list[Check]:
    """Make all checks of this machine and this environment; it takes about 5 s."""
    environ = dict(os.environ)
    load = os.getloadavg()[0]  # before our own work
    pace = machine.pace()  # before the two processes run
    found = _installed(facts)
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    # pip install scaleout, without the course: TensorFlow, Horovod and notebooks are not missed
    course = pyproject.is_file() or bool({"tensorflow-cpu", "horovod"} & found.keys())
    wanted = _pins(pyproject, course)
    mpirun = checks.mpirun(facts, wanted.get("mpich", ""))

    def without_job() -> list[Check]:
        return [
            *_of_machine(facts, load, pace),
            *checks.packages(wanted, found, ".".join(map(str, sys.version_info[:3]))),
            *([_kernel(environ)] if course else []),
            checks.thread_variables(environ),
            checks.scheduler(environ),
            *_pytorch(environ),
            *_traps(facts, environ),
            mpirun,
            _mpirun_on_path(facts),
        ]

    if mpirun.status == "fail":
        quick, job = without_job(), Pair(127, errors=mpirun.seen)
    else:
        with pair(facts.mpirun, JOB_LIMIT_S) as wait:
            quick = without_job()  # while the job runs
            job = wait()
    of_job = [
        checks.two_processes(job, facts, wanted, environ),
        checks.imports(job, wanted),
        checks.one_libmpi(job, environ),
    ]
    if course:
        of_job += [
            checks.horovod(job, _horovod_built_for(), found.get("tensorflow-cpu", "")),
            checks.onednn(job, environ),
        ]
    return quick + of_job


def _of_machine(facts: Machine, load: float, pace: Pace) -> list[Check]:
    shm = Path("/dev/shm")
    return [
        checks.cores(facts),
        checks.processor(facts),
        checks.others(load, facts),
        checks.pace(pace),
        checks.memory(facts.memory_gib, facts.memory_limit_gib, machine.memory_gib("MemAvailable")),
        checks.shared_memory(shutil.disk_usage(shm).free / 2**20 if shm.is_dir() else None),
        _results(),
    ]


def _ask(command: Sequence[str]) -> str:
    """Return what a command prints; "" when it fails, is missing or exceeds ASK_LIMIT_S."""
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
    """Read {package: version specifier}, "python" too, from pyproject.toml.

    Without that file they are the installed scaleout's; without the course, those of the tool
    alone.
    """
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


def _installed(facts: Machine) -> dict[str, str]:
    """Read {package: installed version}.

    conda's mpich is no Python package, its mpirun speaks for it.
    """
    conda = {"mpich": facts.mpi_version} if facts.mpi == "MPICH" else {}
    return conda | machine.versions(checks.EXAMINED)


def _horovod_built_for() -> str:
    """Read for which TensorFlow Horovod was compiled, as its build wrote it down.

    "" when that is unknown.
    """
    try:
        path = importlib.metadata.distribution("horovod").locate_file("horovod/metadata.json")
        return str(json.loads(Path(str(path)).read_text())["tensorflow"])
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError, KeyError):
        return ""


def _results() -> Check:
    """Write a file where runs write theirs, or will, and delete it.

    A full or read-only disk shows only then.
    """
    folder = paths.results_path()
    there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x" * 4096)
        return checks.results(checks.short(folder), shutil.disk_usage(there).free / 2**30)
    except OSError as error:
        wrong = f"nothing can be written to {checks.short(folder)}: {error.strerror}"
        return checks.results("", None, wrong)


def _kernel(environ: Mapping[str, str]) -> Check:
    said = _ask([sys.executable, "-c", FIND_KERNEL])
    spec: dict[str, Any] = json.loads(said) if said else {}
    prefix = _ask([spec["argv"][0], "-c", "import sys; print(sys.prefix)"]) if spec else ""
    return checks.kernel(spec, prefix, environ)


def _mpirun_on_path(facts: Machine) -> Check:
    path = shutil.which("mpirun")
    return checks.mpirun_on_path(facts, path, _ask([path, "--version"]) if path else "")


def _pytorch(environ: Mapping[str, str]) -> list[Check]:
    """Check the PyTorch of `make torch`, where there is one."""
    folder = paths.side("torch")
    return [checks.pytorch(_ask_pytorch(folder), environ)] if folder else []


def _traps(facts: Machine, environ: Mapping[str, str]) -> list[Check]:
    """Check what the lessons' rows prove of processors like this one; nothing where there are none."""
    from ..comparisons import (
        elsewhere,
    )  # not where a side environment is asked, which lacks msgspec
    from . import traps

    try:
        labs = paths.home() / "labs"
    except ScaleoutError:  # outside of a workshop
        return []
    files = sorted(labs.glob(f"*/{elsewhere.FILE}"))
    rows = {checks.short(path): elsewhere.read(path)[0] for path in files}
    step = traps.step(facts.isa, environ.get("ONEDNN_MAX_CPU_ISA", ""))
    return list(traps.found(rows, step))


def _ask_pytorch(folder: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [str(folder / "bin" / "python"), "-c", PROBE_PYTORCH],
            capture_output=True,
            text=True,
            timeout=PYTORCH_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it did not load within {PYTORCH_LIMIT_S:g} s"}
    except OSError as error:
        return {"error": f"its Python cannot be started: {error.strerror}"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@contextmanager
def pair(mpirun: str, limit_s: float) -> Iterator[Callable[[], Pair]]:
    """Start two processes of probe.py, none of which outlives the block."""
    run_id = f"doctor-{os.getpid()}-{time.monotonic_ns()}"
    more = {"SCALEOUT_RUN_ID": run_id, "ONEDNN_VERBOSE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory(prefix="scaleout-doctor-") as name:
        folder = Path(name)
        with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
            started = subprocess.Popen(
                supervise.command(
                    *(mpirun, "-n", "2", sys.executable, "-m", "scaleout.doctor.probe"),
                    *(name, str(limit_s)),
                ),
                env=clean_environment(os.environ) | more,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches the doctor alone, who ends them in order
            )

        def wait() -> Pair:
            status = started.wait() if supervise.has_ended(started.pid, limit_s) else None
            output, errors = (
                (folder / stream).read_text(errors="replace") for stream in ("output", "errors")
            )
            return Pair(
                status,
                output,
                errors,
                tuple(json.loads(path.read_text()) for path in folder.glob("*.json")),
            )

        try:
            yield wait
        finally:
            started.terminate()  # the supervisor then ends all that it has started
            started.wait()


def examine_site(site: Site) -> list[Check]:
    """Ask every host of the site, all at once, or its Slurm; at most half a minute."""
    if site.scheduler:
        return list(_slurm(site))
    if not site.hosts:
        return [Check("site", "ok", "this machine alone")]
    try:
        return _hosts(site)
    except ScaleoutError as error:  # no results can be written
        return [Check("site", "fail", str(error))]


def _hosts(site: Site) -> list[Check]:
    options = words_of(site.options)
    at = [options[i + 1] for i, word in enumerate(options[:-1]) if word == "-localhost"]
    home = at[0] if at else socket.gethostname()
    ours = {
        "versions": remote.on_every_host(),
        "mpirun": remote.mpirun(),
        "prefix": sys.prefix,
        "home": home,
    }
    with (
        socket.create_server(("", 0)) as back,
        tempfile.NamedTemporaryFile(dir=paths.results(), prefix=".doctor-") as mark,
        ThreadPoolExecutor(len(site.hosts)) as pool,
    ):
        port = back.getsockname()[1]
        answers = list(
            pool.map(lambda host: remote.ask(site, host, home, port, mark.name), site.hosts)
        )
    pairs = zip(map(host_login, site.hosts), answers, strict=True)
    return [check for host, answer in pairs for check in checks.host(host, answer, ours)]


def _slurm(site: Site) -> Iterator[Check]:
    """Ask Slurm about the smallest job of this site, without giving it one."""
    if not slurm.there_is("sbatch"):
        fix = "log in to the cluster, and ask there"
        yield Check("Slurm", "fail", "there is no sbatch here", fix)
        return
    try:
        slurm.use(site.slurm_conf)
    except ScaleoutError as error:
        yield Check("Slurm", "fail", str(error))
        return
    ping = slurm.ask("scontrol", "ping")
    if "UP" not in ping.stdout:
        seen = f"its controller does not answer: {(ping.stdout + ping.stderr).strip() or 'no word'}"
        fix = "ask the cluster's people; `sinfo` shows when it is back"
        yield Check("Slurm", "fail", seen, fix)
        return
    yield Check("Slurm", "ok", ping.stdout.strip())
    name = "Slurm takes it"
    asked = {"partition": site.partition, "account": site.account, "reservation": site.reservation}
    words = [f"--{key}={value}" for key, value in asked.items() if value]
    where = ["--partition", site.partition] if site.partition else []
    listed = slurm.ask("sinfo", "--noheader", "--format=%P %D %T %l", *where).stdout.split("\n")
    shown = "; ".join(
        "{}: {} {}, up to {}".format(*line.split()) for line in listed if len(line.split()) == 4
    )
    words += words_of(site.sbatch)
    tried = slurm.ask("sbatch", "--test-only", f"--time={site.minutes}", *words, "--wrap=true")
    if slurm.unanswered(tried):
        seen = f"Slurm did not answer: {slurm.complaint(tried.stderr) or 'no word'}"
        yield Check(name, "fail", seen, "try again later; `scontrol ping` shows when it is back")
    elif tried.returncode:
        seen = f"{slurm.complaint(tried.stderr) or 'no word'} ({shown})"
        fix = "correct partition, account or minutes in the site file"
        yield Check(name, "fail", seen, fix)
    else:
        yield Check(name, "ok", shown)
