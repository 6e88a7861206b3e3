"""What the doctor concludes: each function judges facts that it is handed, and names the fix to
type.

Nothing here looks at the machine (examine.py does), so that a test can hand over facts of broken
ones."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import machine, paths, words
from ..jobs import messages
from ..jobs.environment import allocated_nodes, clean_environment
from ..machine import Machine

REBUILD = "make clean && make lab"
THREAD_VARIABLES = re.compile(
    r"(OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR|TF_NUM|ONEDNN|DNNL)_|TF_ENABLE_ONEDNN_OPTS$|(TF_)?XLA_FLAGS$"
)


# scikit-learn sets these two in its own process; they change no thread count.
HARMLESS = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
# Below the first of each pair is a failure, below the second a warning.
MEMORY_GIB = (2.5, 5.0)  # training ResNet-50 at batch 16 peaks at 2.3 GiB a process
DISK_GIB = (0.2, 2.0)
SHARED_MEMORY_MIB = (
    60.0  # containers have 64 MiB unless told otherwise, which is enough for a few ranks
)


@dataclass(frozen=True)
class Check:
    """One finding."""

    name: str
    status: str
    seen: str
    fix: str = ""

    @property
    def page(self) -> str:
        """Where it is explained, such as "docs/errors.md#nosuchkernel"; "" when it is ok, or nobody
        knows it."""
        return "" if self.status == "ok" else messages.finding(self.seen) or ""


def short(path: Path | str) -> str:
    """The path as typed from the current folder, where that is shorter."""
    return min(paths.show(Path(path)), str(path), key=len)


def _inside(path: str) -> bool:
    """Whether a file is this environment's."""
    return Path(path).is_relative_to(os.path.realpath(sys.prefix))


def _pip(requirement: str, *options: str) -> str:
    return shlex.join([short(sys.executable), "-m", "pip", "install", *options, requirement])


def _first(name: str) -> str:
    return f"mend `{name}` first"


def _level(value: float, limits: tuple[float, float]) -> str:
    return "fail" if value < limits[0] else "warn" if value < limits[1] else "ok"


def cores(facts: Machine) -> Check:
    """The cores that a job may fill, by affinity and control group."""
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
        return Check(
            "processor", "ok", f"{facts.cpu}: {' '.join(newer) or 'nothing newer than AVX'}"
        )
    fix = "nothing here: take a newer CPU"
    return Check("processor", "fail", f"{facts.cpu}: no AVX, so TensorFlow will not start", fix)


def bf16(facts: Machine) -> Check:
    """Whether bfloat16 is worth anything here; both answers are fine, so nothing needs a fix."""
    if machine.native_bf16(facts.isa):
        return Check("bf16", "ok", "native: this CPU multiplies bfloat16")
    return Check(
        "bf16", "ok", "emulated: no bfloat16 instructions here, expect it slower than fp32"
    )


def memory(total: float | None, limit: float | None, available: float | None) -> Check:
    """Whether there is memory for a rank that trains ResNet-50."""
    if total is None or available is None:
        return Check("memory", "warn", "unknown: /proc/meminfo does not tell", "free -h")
    usable = min(available, limit or available)
    seen = f"{usable:.1f} of {total:.1f} GiB to use" + (
        f" (cgroup limit {limit:.1f})" if limit else ""
    )
    if (status := _level(usable, MEMORY_GIB)) == "ok":
        return Check("memory", "ok", seen)
    fix = (
        "docker run --memory=8g ...   (a larger limit)"
        if limit
        else "top -o %MEM   (end what you do not need)"
    )
    return Check("memory", status, f"{seen}; ResNet-50 wants {MEMORY_GIB[0]:g} GiB a rank", fix)


def shared_memory(free_mib: float | None) -> Check:
    """MiB free in /dev/shm, through which ranks on one machine talk; None when it is missing."""
    if free_mib is None:
        return Check(
            "shared memory", "warn", "there is no /dev/shm", "docker run --shm-size=1g ..."
        )
    seen = f"{free_mib:,.0f} MiB free in /dev/shm"
    if free_mib >= SHARED_MEMORY_MIB:
        return Check("shared memory", "ok", seen)
    return Check(
        "shared memory", "warn", seen, "ls -lS /dev/shm   (delete old files; docker: --shm-size=1g)"
    )


def results(folder: str, free_gib: float | None, error: str = "") -> Check:
    """Whether results can be written, and whether there is room."""
    fix = "export SCALEOUT_RESULTS=$HOME/scaleout-results"
    if error or free_gib is None:
        return Check("results", "fail", error or f"{folder}: room unknown", fix)
    status = _level(free_gib, DISK_GIB)
    fix = (
        ""
        if status == "ok"
        else f"{fix}   (or make room: du -sh {shlex.quote(folder)}/* | sort -h)"
    )
    return Check("results", status, f"{folder}: writable, {free_gib:.1f} GiB free", fix)


def user(uid: int) -> Check:
    """Root is who people are in a container."""
    return Check(
        "user",
        "ok",
        "root: Jupyter refuses that, unless `make lab` starts it" if uid == 0 else f"id {uid}",
    )


def thread_variables(environ: Mapping[str, str]) -> Check:
    """Variables that change how many threads run, or which kernels, before the workshop sets
    them."""
    found = sorted(
        name for name in environ if THREAD_VARIABLES.match(name) and name not in HARMLESS
    )
    if not found:
        return Check("thread variables", "ok", "none set in this shell")
    seen = ", ".join(f"{name}={environ[name]}" for name in found)
    return Check(
        "thread variables",
        "warn",
        f"{seen}: they change what you measure",
        f"unset {' '.join(found)}",
    )


def scheduler(environ: Mapping[str, str]) -> Check:
    """Variables of a scheduler or of another MPI job; good to know, no fault."""
    found = sorted(set(environ) - set(clean_environment(environ)))
    if not found:
        return Check("scheduler", "ok", "no variables of a scheduler or of another MPI job")
    if (nodes := allocated_nodes(environ)) > 1:
        seen = f"inside Slurm job {environ['SLURM_JOB_ID']}, {nodes} nodes: scaleout run uses all of them"
        return Check("scheduler", "ok", seen)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Check("scheduler", "ok", f"{', '.join(found[:3])}{more} set: local runs leave them out")
