"""Slurm's own commands, asked so that none of them can hang us, and what its words mean."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from ..errors import ScaleoutError
from ..jobs.environment import clean_environment
from ..paths import home, show

ASK_LIMIT_S = 20.0  # for one answer of Slurm's
LATE = 124  # the exit status of a command that was given up, as timeout(1) has it
# A configuration that a site file named, and the one that it took the place of.
_instead_of: dict[str, str] = {}
# The states of a job that has not ended.
LIVE = (
    *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"),
    *("REQUEUED", "STAGE_OUT", "SIGNALING", "STOPPED"),
)
# Why a job waits, in words; what the second table has does not pass by itself.
WAITS = {
    "None": "Slurm has not looked at it yet",
    "Priority": "jobs of higher priority are before it",
    "Resources": "other jobs hold the nodes",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Nodes_required": "nodes that it needs are down, drained or reserved; `sinfo -R` says why",
    "Reservation": "its reservation has not begun",
    "Licenses": "it waits for a licence",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as you may",
    "AssocMaxJobsLimit": "your account has as many jobs running as it may",
}
NEVER = {
    "PartitionTimeLimit": "it asks for more time than the partition allows: set fewer minutes in the site file",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows: take fewer with -N",
    "PartitionConfig": "the partition cannot give what it asks for: take fewer nodes, ranks or minutes",
    "PartitionDown": "the partition takes no jobs now: name another in the site file",
    "PartitionInactive": "the partition takes no jobs now: name another in the site file",
    "BadConstraints": "no node can give what it asks for: take fewer ranks a node or threads",
    "AccountNotAllowed": "the account may not use this partition: correct account or partition in the site file",
    "InvalidAccount": "Slurm does not know the account: correct it in the site file",
    "InvalidQOS": "Slurm does not know the quality of service: correct sbatch in the site file",
    "JobHeldUser": "it is held: type  scontrol release JOBID  or submit without --hold",
    "JobHeldAdmin": "an administrator holds it: ask them",
    "QOSMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "AssocMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "ReservationDeleted": "its reservation is gone: correct reservation in the site file",
}
# How a job ended that neither finished nor failed by itself.
ENDS = {
    "CANCELLED": "was cancelled, by somebody or by Slurm",
    "NODE_FAIL": "lost one of its nodes",
    "OUT_OF_MEMORY": "needed more memory than it was given: take fewer ranks a node, or ask for more with sbatch",
    "PREEMPTED": "had to make room for another job: submit it again",
    "BOOT_FAIL": "got nodes that would not start: submit it again",
    "DEADLINE": "could not end before its deadline",
    "REVOKED": "was taken over by another cluster",
}


def use(conf: str) -> None:
    """Point Slurm's commands at the cluster of this configuration; "" is the system's own."""
    mine = os.environ.get("SLURM_CONF", "")
    if mine in _instead_of:
        os.environ["SLURM_CONF"] = _instead_of.pop(mine)
    if not conf:
        return
    path = home() / conf
    if not path.exists():
        raise ScaleoutError(
            f"The cluster of {show(path)} is not on. If it is the workshop's own, type  make cluster"
        )
    _instead_of[str(path)] = os.environ.get("SLURM_CONF", "")
    os.environ["SLURM_CONF"] = str(path)


def there_is(program: str) -> bool:
    """Tell whether this machine has a program of Slurm's."""
    return shutil.which(program) is not None


def ask(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run one of Slurm's commands; its status is LATE when it takes too long."""
    # Without what an MPI job or another Slurm job left; Slurm's own configuration stays.
    own = {
        name: os.environ[name] for name in ("SLURM_CONF", "SLURM_CLUSTERS") if os.environ.get(name)
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
    """Read Slurm's fields of a job, by its number; {} when it cannot be asked right now."""
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
    """Submit a job script and return the job's number."""
    try:
        done = ask("sbatch", "--parsable", str(path))
    except KeyboardInterrupt:  # the job may be in the queue already
        withdraw(run_id)
        raise
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
    """Put sbatch's complaints on one line: the last line alone may say nothing."""
    plain = re.sub(
        r"^(sbatch: |error: |fatal: |allocation failure: |Batch job submission failed: )+",
        "",
        said,
        flags=re.MULTILINE,
    )
    return "; ".join(
        dict.fromkeys(line.strip().rstrip(".") for line in plain.splitlines() if line.strip())
    )


def withdraw(run_id: str) -> None:
    """Cancel a job whose number nobody knows."""
    for line in ask("squeue", "--noheader", "--format=%i %k").stdout.splitlines():
        if line.split()[1:] == [run_id]:
            ask("scancel", line.split()[0])
