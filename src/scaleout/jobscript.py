"""The job script: what Slurm is asked for and what runs there, as a person would write it."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import ScaleoutError
from .launch import thread_variables
from .site import Site

__all__ = ["job_script", "per_node"]


def per_node(ranks: int, nodes: int) -> int:
    """Ranks on each node; ScaleoutError when they cannot be shared out evenly."""
    if nodes < 1 or ranks < nodes or ranks % nodes:
        fits = max(1, ranks // max(1, nodes)) * max(1, nodes)
        raise ScaleoutError(
            f"{ranks} ranks cannot be shared out evenly over {nodes} nodes: take  -n {fits} -N {max(1, nodes)}"
        )
    return ranks // nodes


def job_script(
    script: Sequence[str],
    *,
    name: str,
    run_id: str,
    folder: str,
    ranks: int,
    nodes: int,
    threads: int,
    env: Mapping[str, str],
    site: Site,
) -> str:
    """The job script, as a person would write it. script: the command of a rank.  folder: where the job writes."""
    on_each = per_node(ranks, nodes)
    asks = {"job-name": name, "nodes": nodes, "ntasks": ranks, "ntasks-per-node": on_each, "cpus-per-task": threads}
    asks |= {"time": site.minutes, "partition": site.partition, "account": site.account}
    asks |= {"reservation": site.reservation, "output": f"{folder}/slurm.txt", "comment": run_id}
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{key}={value}" for key, value in asks.items() if value),
        "#SBATCH --no-requeue",
    ]
    lines += [f"#SBATCH {option}" for option in site.sbatch] + [""]
    lines += [f"module load {shlex.quote(module)}" for module in site.modules]
    lines += list(site.prelude)
    variables = {**thread_variables(threads), "PYTHONUNBUFFERED": "1", **site.env, **env}
    variables |= {"SCALEOUT_RUN_ID": run_id, "SCALEOUT_RECORDS": f"{folder}/records.jsonl"}
    variables |= {"SCALEOUT_CORES": str(nodes * (site.cores or on_each * threads)), "SCALEOUT_NODES": str(nodes)}
    lines += [f"export PATH={shlex.quote(str(Path(sys.prefix) / 'bin'))}:$PATH   # the same folder on every node"]
    lines += [f"export {key}={shlex.quote(str(value))}" for key, value in variables.items()]
    lines += ["", f"cd {shlex.quote(os.getcwd())}"]
    if site.start == "srun":
        own = [] if site.bind == "none" else ["--cpu-bind=cores"]
        # On a file for each rank, its last words are there also when srun ends at once.
        own += [f"--cpus-per-task={threads}", "--kill-on-bad-exit=1", "--label", f"--error={folder}/stderr-%t.txt"]
        return "\n".join([*lines, shlex.join(["srun", *site.srun, *own, *script]), ""])
    bind = ["-bind-to", f"core:{threads}"] if site.bind == "core" else []
    lines += [f"MARK=$'\\x1e{run_id}:%r\\x1f'   # before each piece of output: tells scaleout whose it is"]
    line = shlex.join([site.mpirun, "-n", str(ranks), "-ppn", str(on_each), *bind, *site.options])
    return "\n".join([*lines, f'{line} -prepend-pattern "$MARK" {shlex.join(script)}', ""])
