"""The job script: what Slurm is asked for and what runs there, as a person would write it."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from ..errors import ScaleoutError
from . import rank
from .binding import binding
from .environment import exports, job_environment
from .meeting import FREE_PORT
from .site import Site

TELL = '"${TELL[@]}"'  # before the command of a rank


def per_node(ranks: int, nodes: int) -> int:
    """Ranks on each node."""
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
    """The job script, as a person would write it."""
    on_each = per_node(ranks, nodes)
    asks = {
        "job-name": re.sub(r"\s+", " ", name),
        "nodes": nodes,
        "ntasks": ranks,
        "ntasks-per-node": on_each,
        "cpus-per-task": threads,
        "time": site.minutes,
        "partition": site.partition,
        "account": site.account,
        "reservation": site.reservation,
        "output": _pattern(f"{folder}/slurm.txt"),
        "comment": run_id,
    }
    variables = job_environment(
        threads,
        site_env=site.env,
        env=env,
        run_id=run_id,
        records=f"{folder}/records.jsonl",
        cores=nodes * (site.cores or on_each * threads),
        nodes=nodes,
    )
    programs, *given = exports(variables)
    meeting = [line for name, line in _meeting(nodes).items() if name not in variables]
    mark = (
        f"MARK=$'\\x1e{run_id}:%r\\x1f'   # before each piece of output: tells scaleout whose it is"
    )
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{key}={_quoted(value)}" for key, value in asks.items() if value),
        "#SBATCH --no-requeue",
        *(f"#SBATCH {option}" for option in site.sbatch),
        "",
        *(f"module load {shlex.quote(module)}" for module in site.modules),
        *site.prelude,
        f"{programs}   # the same folder on every node",
        *given,
        "",
        *meeting,
        f"TELL=({shlex.join(['python', '-I', '-S', rank.__file__])})   # tells a rank what torchrun would",
        f"cd {shlex.quote(os.getcwd())}",
        *([] if site.start == "srun" else [mark]),
        start_line(script, folder=folder, ranks=ranks, nodes=nodes, threads=threads, site=site),
        "",
    ]
    return "\n".join(lines)


def _meeting(nodes: int) -> dict[str, str]:
    """Lines of shell that set where torch's ranks meet: on the first node, where this runs."""
    address = "$(hostname)" if nodes > 1 else rank.HOME
    return {
        "MASTER_ADDR": f"export MASTER_ADDR={address}   # where torch's ranks meet",
        "MASTER_PORT": f"export MASTER_PORT=$(python -I -S -c {shlex.quote(FREE_PORT)})",
    }


def start_line(
    script: Sequence[str], *, folder: str, ranks: int, nodes: int, threads: int, site: Site
) -> str:
    """The command of the job script that starts the ranks."""
    on_each = per_node(ranks, nodes)
    if site.start == "srun":
        own = [] if site.bind == "none" else ["--cpu-bind=cores"]
        # On a file for each rank, its last words are there also when srun ends at once.
        errors = "--error=" + _pattern(folder) + "/stderr-%t.txt"
        own += [f"--cpus-per-task={threads}", "--kill-on-bad-exit=1", "--label", errors]
        return f"{shlex.join(['srun', *site.srun, *own])} {TELL} {shlex.join(script)}"
    cores = site.cores or on_each * threads
    bind = binding(on_each, threads, cores, site.launcher, elsewhere=True, bind=site.bind)
    line = [site.mpirun, "-n", str(ranks), "-ppn", str(on_each), *bind, *site.options]
    return f'{shlex.join(line)} -prepend-pattern "$MARK" {TELL} {shlex.join(script)}'


def _pattern(path: str) -> str:
    """A path where Slurm fills in %j and the like: %% stands for %."""
    if "\n" in path:
        raise ScaleoutError(
            f"{path!r} holds a line's end, which a job script cannot name: take another folder."
        )
    return path.replace("%", "%%")


def _quoted(value: object) -> str:
    """A value as sbatch reads it: in quotes where it holds more than plain letters."""
    text = str(value)
    if re.fullmatch(r"[\w./:@%+,=-]*", text):
        return text
    return '"' + re.sub(r'(["\\\\])', r"\\\1", text) + '"'
