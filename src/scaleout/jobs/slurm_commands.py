"""Slurm's own commands, asked so that none of them can hang us."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from ..errors import ScaleoutError
from .environment import clean_environment

ASK_LIMIT_S = 20.0  # for one answer of Slurm's
LATE = 124  # the exit status of a command that was given up, as timeout(1) has it


def there_is(program: str) -> bool:
    """Whether this machine has a program of Slurm's."""
    return shutil.which(program) is not None


def ask(*command: str) -> "subprocess.CompletedProcess[str]":
    """What one of Slurm's commands says; with status LATE when it takes too long."""
    # Without what an MPI job or another Slurm job left; Slurm's own configuration stays.
    own = {
        name: os.environ[name] for name in ("SLURM_CONF", "SLURM_CLUSTERS") if name in os.environ
    }
    environment = clean_environment(os.environ) | own
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=ASK_LIMIT_S
        )
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        return subprocess.CompletedProcess(command, LATE, "", text)
    except OSError as error:
        raise ScaleoutError(
            f"{command[0]} cannot be started ({error.strerror}): log in to the cluster, and ask there."
        ) from None


def state(number: str) -> dict[str, str]:
    """What Slurm knows of a job, by its number; {} when it cannot be asked right now."""
    done = ask("scontrol", "show", "job", "--oneliner", number)
    if done.returncode == 0:
        return dict(re.findall(r"(\S+?)=(\S*)", done.stdout))
    if "Invalid job id" not in done.stderr:
        return {}
    # So long over that it is forgotten; accounting may know.
    past = ask("sacct", "-n", "-X", "-P", "-j", number, "-o", "State,ExitCode").stdout.split("|")
    if len(past) != 2:
        return {"JobState": "COMPLETED", "ExitCode": "0:0"}
    return {"JobState": past[0].split()[0], "ExitCode": past[1].strip()}


def sbatch(path: Path, run_id: str) -> str:
    """Submits a job script and returns the job's number."""
    done = ask("sbatch", "--parsable", str(path))
    if done.returncode == 0:
        return done.stdout.strip().partition(";")[0]
    if done.returncode == LATE:
        withdraw(run_id)
        if "temporarily unable to accept" in done.stderr:
            raise ScaleoutError(
                "The queue is full, Slurm takes no more jobs: try later; `squeue --me` shows yours."
            )
        raise ScaleoutError(
            f"Slurm did not answer within {ASK_LIMIT_S:g} s: ask with  scontrol ping"
        )
    why = complaint(done.stderr) or f"status {done.returncode}"
    raise ScaleoutError(f"Slurm refused the job: {why}. Correct the site file, or -n and -N.")


def complaint(said: str) -> str:
    """What sbatch complains of, on one line: the last line alone may say nothing."""
    plain = re.sub(
        r"^(sbatch: |error: |fatal: |allocation failure: |Batch job submission failed: )+",
        "",
        said,
        flags=re.MULTILINE,
    )
    return "; ".join(
        dict.fromkeys(line.strip().rstrip(".") for line in plain.splitlines() if line.strip())
    )


def withdraw(run_id: str) -> bool:
    """Cancels a job that nobody follows any more."""
    found = False
    for line in ask("squeue", "--noheader", "--format=%i %k").stdout.splitlines():
        if line.split()[1:] == [run_id]:
            ask("scancel", line.split()[0])
            found = True
    return found
