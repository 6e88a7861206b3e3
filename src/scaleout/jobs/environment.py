"""What a job inherits from the shell around it, what it is given, and which programs start it."""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..base import settings
from ..base.errors import ScaleoutError
from ..base.paths import programs, search_path, show

# What each job is told anew, whatever was asked for.
OURS = (settings.RUN_ID, "SCALEOUT_RECORDS", "SCALEOUT_CORES", "SCALEOUT_NODES")
SCHEDULERS = (
    # Slurm, and MPI's own
    *("SLURM", "PMI", "HYDRA_", "HYDI_", "OMPI_", "PRTE_", "PRRTE_", "MPI_LOCAL", "FLUX_"),
    # the other schedulers that mpirun looks for
    *("PBS_", "LSB_", "PE_HOSTFILE", "LOADL_", "COBALT_"),
    # who reaches mpirun's port can read a job's variables: the key to its owner's JupyterLab is not for it
    *("JUPYTERHUB_", "JPY_API_TOKEN"),
)


PROXIES = [
    text
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
    for text in (name, name.upper())
]
HERE = "127.0.0.1", "localhost"


def _past_the_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Except this machine from the proxy: gRPC would ask it for ranks that are here."""
    names = ("no_proxy", "NO_PROXY")
    known = next((environment[name] for name in names if environment.get(name)), "")
    excepted = [text for text in known.split(",") if text]
    text = ",".join([*excepted, *(host for host in HERE if host not in excepted)])
    return dict.fromkeys(names, text)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Drop from the environment what a scheduler or another MPI job left in it.

    That is SLURM_*, PMI*, HYDRA*, OMPI_* and the like.

    A local mpirun that finds them believes it is a part of that other job.
    """
    return {k: v for k, v in environment.items() if not k.startswith(SCHEDULERS)}


def thread_variables(threads: int) -> dict[str, str]:
    """Set the variables that tell OpenMP and TensorFlow how many threads a rank may use."""
    return {
        k: str(threads)
        for k in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    }


def job_environment(
    threads: int | None,
    *,
    site_env: Mapping[str, object] | None = None,
    env: Mapping[str, object] | None = None,
    run_id: str = "",
    records: str = "",
    cores: int = 0,
    nodes: int = 0,
) -> dict[str, str | None]:
    """Collect the variables that a job is given, however it is started; None takes one away."""
    own = {
        settings.RUN_ID: run_id,
        "SCALEOUT_RECORDS": records,
        "SCALEOUT_CORES": cores,
        "SCALEOUT_NODES": nodes,
    }
    given: dict[str, object] = {
        **(thread_variables(threads) if threads else {}),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",  # a rank that crashes, or whose time is up, says where it is
        **(site_env or {}),
        **(env or {}),
        **{name: value for name, value in own.items() if value},
    }
    return {name: None if value is None else str(value) for name, value in given.items()}


def inherited_environment(slurm: bool = False, alone: bool = False) -> dict[str, str]:
    """Return the variables that a job on this machine inherits.

    This environment's programs come first, and nothing of another job's is left. With `slurm` the
    variables of the allocation around us stay; `alone` keeps UCX on the loopback interface, and what
    is meant for this machine from a proxy.
    """
    kept = {**clean_environment(os.environ), "PATH": search_path()}
    if alone and not kept.keys() & {"UCX_NET_DEVICES", "UCX_TLS"}:
        kept["UCX_NET_DEVICES"] = "lo"
    if alone and not kept.keys().isdisjoint(PROXIES):
        kept |= _past_the_proxy(kept)
    if slurm:
        kept |= {name: text for name, text in os.environ.items() if name.startswith("SLURM")}
        kept["SLURM_OVERLAP"] = "1"  # we may be a step of that job, which holds all its cores
    return kept


def exports(variables: Mapping[str, str | None]) -> list[str]:
    """Write the lines of shell that set these variables, or take them away."""
    return [
        f"unset {name}" if text is None else f"export {name}={shlex.quote(text)}"
        for name, text in variables.items()
    ]


def programs_first() -> str:
    """Write the line of shell that puts this environment's programs first."""
    return f'export PATH={shlex.quote(str(programs()))}:"$PATH"'


def check_variables(variables: Iterable[str]) -> None:
    """Refuse what can be no variable: a shell would run a part of its name."""
    for name in variables:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(name)):
            raise ScaleoutError(
                f"{name!r} is no name of a variable: take letters, digits and _, such as MY_FLAG."
            )
        if name in OURS:
            raise ScaleoutError(f"{name} is what scaleout itself tells a job: leave it out.")


def program(name: str) -> str:
    """Return the path of a program of this same environment.

    It is never another's that PATH happens to find.
    """
    if os.sep in name:
        return name
    path = programs() / name
    if not path.exists():
        raise ScaleoutError(
            f"There is no {name} in this environment ({show(path.parent)}): type  make lab  to mend it."
        )
    return str(path)


def interpreter(python: str | Path) -> str:
    """Check the Python to start, and return its path; "python" stays as it is."""
    path = str(python)
    if path == "python":
        return path
    if os.sep not in path or not os.access(path, os.X_OK) or Path(path).is_dir():
        beside = Path(sys.prefix).parent.glob(".side/*/bin/python")
        known = (
            " or ".join(sorted(map(str, beside))) or "that of  make torch, .side/torch/bin/python"
        )
        raise ScaleoutError(
            f"There is no Python to start at {path or repr(path)}: give its path, such as {known}"
        )
    return path
