"""The job script: what Slurm is asked for and what runs there, as a person would write it."""

import os
import re
import shlex

from ..jobs import rank, talking
from ..jobs.binding import on_cores
from ..jobs.environment import exports, programs_first
from ..jobs.job import Job
from ..jobs.meeting import FREE_PORT
from ..jobs.output import mark
from ..site import words_of

TELL = '"${TELL[@]}"'  # before the command of a rank
STATUS = "status"  # the file that holds how the script ended, where Slurm does not remember it
# Where sbatch was told --export=NONE, srun would hand on nothing of what the script exports.
EXPORT_ALL = "export SLURM_EXPORT_ENV=ALL   # srun's ranks see what this script exports"


def job_script(job: Job, run_id: str, folder: str) -> str:
    """Write the job script of a job whose output goes to a folder of the cluster's.

    Its last line starts the ranks.
    """
    site = job.site
    asks = {
        "job-name": job.name,
        "nodes": job.nodes,
        "ntasks": job.ranks,
        "ntasks-per-node": job.ranks_per_node,
        "cpus-per-task": job.threads,
        "time": site.minutes,
        "partition": site.partition,
        "account": site.account,
        "reservation": site.reservation,
        "output": _pattern(f"{folder}/slurm.txt"),
        "comment": run_id,
    }
    variables = job.variables(run_id, f"{folder}/records.jsonl")
    given = exports(variables)
    meeting = [line for name, line in _meeting(job.nodes).items() if name not in variables]
    python = "python -I -S"
    label = mark(run_id).replace("\x1e", r"\x1e").replace("\x1f", r"\x1f")
    own = [f"MARK=$'{label}'   # before each piece of output: tells scaleout whose it is"]
    at_end = f"echo $? > {shlex.quote(f'{folder}/{STATUS}')}"
    if job.counted:
        at_end += (
            f'; {python} {shlex.quote(talking.__file__)} "$MASTER_PORT"'  # did the ranks meet?
        )
    watch = f" {rank.WATCH}" if job.watched else ""
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{key}={_quoted(value)}" for key, value in asks.items() if value),
        "#SBATCH --no-requeue",
        *(f"#SBATCH {_on_one_line(option)}" for option in site.sbatch),
        "",
        *(f"module load {shlex.join(module.split())}" for module in site.modules),
        *site.prelude,
        f"{programs_first()}   # the same folder on every node",
        *given,
        "",
        *meeting,
        f"TELL=({python} {shlex.quote(rank.__file__)}{watch})   # tells a rank what torchrun would",
        f"cd {shlex.quote(os.getcwd())}",
        f"trap {shlex.quote(at_end)} EXIT",
        *([EXPORT_ALL] if site.start == "srun" else own),
        _start_line(job, folder),
        "",
    ]
    return "\n".join(lines)


def _meeting(nodes: int) -> dict[str, str]:
    """Write the shell lines that set where torch's ranks meet: the first node, which runs them."""
    address = "$(hostname)" if nodes > 1 else rank.HOME
    return {
        "MASTER_ADDR": f"export MASTER_ADDR={address}   # where torch's ranks meet",
        "MASTER_PORT": f"export MASTER_PORT=$(python -I -S -c {shlex.quote(FREE_PORT)})",
    }


def _start_line(job: Job, folder: str) -> str:
    """Build the command of the job script that starts the ranks."""
    site, command = job.site, shlex.join(job.command)
    if site.start == "srun":
        own = [] if site.bind == "none" else ["--cpu-bind=cores"]
        # On a file for each rank, its last words are there also when srun ends at once.
        errors = "--error=" + _pattern(folder) + "/stderr-%t.txt"
        own += [f"--cpus-per-task={job.threads}", "--kill-on-bad-exit=1", "--label", errors]
        return f"{shlex.join(['srun', *words_of(site.srun), *own])} {TELL} {command}"
    size = ["-n", str(job.ranks), "-ppn", str(job.ranks_per_node)]
    fits = job.ranks_per_node * job.threads <= job.cores
    count = [talking.COUNT] if job.counted else []
    line = [site.mpirun, *size, *(on_cores(job) if fits else []), *words_of(site.options), *count]
    return f'{shlex.join(line)} -prepend-pattern "$MARK" {TELL} {command}'


def _pattern(path: str) -> str:
    """Escape a path for Slurm, which fills in %j and the like: %% stands for %."""
    return path.replace("%", "%%")


def _quoted(value: object) -> str:
    """Quote a value for sbatch where it holds more than plain letters."""
    text = _on_one_line(str(value))
    if re.fullmatch(r"[\w./:@%+,=-]*", text):
        return text
    return '"' + re.sub(r'(["\\\\])', r"\\\1", text) + '"'


def _on_one_line(text: str) -> str:
    """Put blanks for line breaks: what follows one would be a command, and no longer sbatch's."""
    return re.sub(r"\s*[\n\r]\s*", " ", text)
