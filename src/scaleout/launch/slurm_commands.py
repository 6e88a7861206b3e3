"""Slurm's own commands, asked so that none of them can hang us, and what its words mean."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from ..base.errors import FULL, WHEN_FULL, ScaleoutError
from ..base.paths import home, show
from ..base.words import plain
from ..jobs.environment import clean_environment

ASK_LIMIT_S = 20.0  # for one answer of Slurm's
LATE = 124  # the exit status of a command that was given up, as timeout(1) has it
# A configuration that a site file named, and the one that it took the place of.
_instead_of: dict[str, str] = {}
# When each job was submitted from here, by its number: accounting may know an older job of that number.
_submitted: dict[str, float] = {}
CLOCKS_S = 60.0  # by which this machine's clock may be ahead of Slurm's
# What sbatch says last: the number alone, or, from a centre's own wrapper, its usual sentence.
NUMBER = re.compile(r"(?:Submitted batch job )?(\d+)(?:;\S+| on cluster \S+)?")
# What Slurm's commands say where they got no answer: Slurm may have heard them all the same.
UNANSWERED = re.compile(
    r"timed out|[Uu]nable to contact|[Cc]onnection (refused|reset|failure)|shutdown failure|"
    r"(send|receive) failure|Zero Bytes were|Transport endpoint|Unexpected message|standby mode"
)
FIND_S = 10.0  # for a job to come into the queue after that
DEAF_S = 10.0  # without an answer, after which nobody waits for Slurm any longer
CANCEL_S = 60.0  # for a cancelled job to go: Slurm kills it 30 s after it has asked it to end
# What became of a job that was cancelled, behind "job 7"; one that Slurm did not cancel has more.
GONE = "has been cancelled"
GOING = "is being cancelled; `squeue --me` shows when it is gone"
# The states of a job that waits in the queue, and those of any that has not ended.
QUEUED = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
LIVE = (
    *QUEUED,
    *("CONFIGURING", "POWER_UP_NODE", "RUNNING", "RESIZING", "SUSPENDED", "STOPPED", "SIGNALING"),
    *("COMPLETING", "STAGE_OUT", "UPDATE_DB", "EXPEDITING"),
)
# Why a job waits, in words: the beginning of Slurm's own reason, as a pattern. What the second table
# has does not pass by itself, and is looked at first.
WAITS = {
    "None": "Slurm has not looked at it yet",
    "Priority": "jobs of higher priority are before it",
    "Resources": "other jobs hold the nodes",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Nodes_required": "nodes that it needs are down, drained or reserved; `sinfo -R` says why",
    "Reservation": "its reservation has not begun",
    "Licenses": "it waits for a licence",
    "Dependency": "another job has to end before it",
    "BeginTime": "it was submitted with a time before which it may not begin",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as you may",
    "AssocMaxJobsLimit": "your account has as many jobs running as it may",
    "(Assoc|QOS)Grp": "the running jobs of your group have together as much as they may",
    "(Assoc|QOS)Max": "your running jobs have together as much as they may",
}
NEVER = {
    "PartitionTimeLimit": "it asks for more time than the partition allows: set fewer minutes in the site file",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows: take fewer with -N",
    "PartitionConfig": "the partition cannot give what it asks for: take fewer nodes, ranks or minutes",
    "PartitionDown": "the partition takes no jobs now: name another in the site file",
    "PartitionInactive": "the partition takes no jobs now: name another in the site file",
    "BadConstraints": "no node can give what it asks for: take fewer ranks a node or threads",
    "MaxMemPerLimit": "it asks for more memory than it may have: ask for less with sbatch in the site file",
    "AccountNotAllowed": "the account may not use this partition: correct account or partition in the site file",
    "InvalidAccount": "Slurm does not know the account: correct it in the site file",
    "InvalidQOS": "Slurm does not know the quality of service: correct sbatch in the site file",
    "QOSNotAllowed": "the quality of service is not for this partition: correct sbatch in the site file",
    "QOSMin": "it asks for less than your quality of service wants: take more ranks or nodes, or another --qos with "
    "sbatch in the site file",
    "DependencyNeverSatisfied": "the job that it depends on has failed: run that again, or correct --dependency in "
    "sbatch of the site file",
    "JobHeldUser": "it is held: submit it without --hold in sbatch of the site file",
    "JobHeldAdmin": "an administrator holds it: ask them",
    r"\w*(Held|_held|_held_state)$|JobHoldMaxRequeue": "Slurm could not start it on its nodes, and holds it: submit it "
    "again, and if that comes back ask those who run the cluster",
    "(Assoc|QOS)MaxWall": "it asks for more time than you may have: set fewer minutes in the site file",
    "(Assoc|QOS)Max.*Per(Job|Node)": "it asks for more than one job of yours may have: take fewer nodes, ranks, "
    "threads or minutes, or another --qos with sbatch in the site file",
    # Not GrpCPURunMinutes and the like, the minutes that running jobs have left.
    "(Assoc|QOS)Grp(?!.*Run).*(Minutes|Wall)": "the hours of your group are used up: name another account in the site "
    "file, or ask for more hours",
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
    "UNKNOWN": "is gone from Slurm's memory, and how it ended is not known",
}


def use(conf: str) -> None:
    """Point Slurm's commands at the cluster of this configuration; "" is the system's own."""
    mine = os.environ.get("SLURM_CONF", "")
    if mine in _instead_of:
        os.environ["SLURM_CONF"] = _instead_of.pop(mine)
    if not conf:
        return
    path = Path(conf) if os.path.isabs(conf) else home() / conf
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
        fix = WHEN_FULL if error.errno in FULL else "log in to the cluster, and ask there"
        raise ScaleoutError(f"{command[0]} cannot be started ({error.strerror}): {fix}.") from None


def state(number: str) -> dict[str, str]:
    """Read Slurm's fields of a job, by its number; {} when it cannot be asked right now.

    The state of a job that nobody remembers is UNKNOWN.
    """
    done = ask("scontrol", "show", "job", "--oneliner", number)
    if done.returncode == 0:
        lines = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in done.stdout.splitlines()]
        return _one([fields for fields in lines if "JobState" in fields])
    if "Invalid job id" not in done.stderr:
        return {}
    # So long over that it is forgotten; accounting may know.
    asked = ["-n", "-X", "-P", "-j", number, "-o", "State,ExitCode"]
    if number in _submitted:
        since = time.localtime(_submitted[number] - CLOCKS_S)
        asked += ["-S", time.strftime("%Y-%m-%dT%H:%M:%S", since)]
    past = ask("sacct", *asked).stdout
    ends = re.findall(r"^(\w+)[^|\n]*\|(\d+:\d+)$", past, flags=re.MULTILINE)
    known = [{"JobState": ended, "ExitCode": code} for ended, code in ends]
    return _one(known) or {"JobState": "UNKNOWN", "ExitCode": "0:0"}


def _one(records: list[dict[str, str]]) -> dict[str, str]:
    """Take of several records of a job, such as an array's, one that lives, else one that failed."""
    live = [record for record in records if record["JobState"] in LIVE]
    bad = [record for record in records if record["JobState"] != "COMPLETED"]
    return next(iter(live or bad or records), {})


def why(reason: str) -> tuple[str, bool]:
    """Say in words why a job waits, by Slurm's own reason, and whether that can pass by itself."""
    for table, passes in ((NEVER, False), (WAITS, True)):
        for pattern, words in table.items():
            if re.match(pattern, reason):
                return words, passes
    return f"Slurm says {reason.partition(',')[0]}", True


def sbatch(path: Path, run_id: str) -> str:
    """Submit a job script and return the job's number."""
    now = time.time()
    try:
        number = _queued(path, run_id)
    except KeyboardInterrupt:  # the job may be in the queue already
        withdraw(run_id)
        raise
    _submitted[number] = now
    return number


def _queued(path: Path, run_id: str) -> str:
    """Put a job script into the queue and find the job's number."""
    done = ask("sbatch", "--parsable", str(path))
    if done.returncode == 0:
        # Some centres print a banner before it.
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        numbers = [found[1] for line in said if (found := NUMBER.fullmatch(line))]
        if not numbers:
            became = withdraw(run_id)
            last = f"its last line was  {plain(said[-1], 100)}" if said else "it said nothing"
            raise ScaleoutError(
                f"sbatch gave no job number ({last}); {became}. Try it with  sbatch --parsable "
                f"{show(path)}  and show what that says to those who run the cluster."
            )
        return numbers[-1]
    if done.returncode == LATE:
        became = withdraw(run_id)
        if "temporarily unable to accept" in done.stderr:
            raise ScaleoutError(
                "The queue is full, Slurm takes no more jobs: try later; `squeue --me` shows yours."
            )
        raise ScaleoutError(
            f"Slurm did not answer within {ASK_LIMIT_S:g} s: ask with  scontrol ping ; {became}."
        )
    # However sbatch failed, the job may be in the queue; Slurm may put it there a little later.
    why, end = complaint(done.stderr) or f"status {done.returncode}", time.monotonic() + FIND_S
    while not (numbers := _numbers(run_id)) and unanswered(done) and time.monotonic() < end:
        time.sleep(FIND_S / 10)
    if numbers:
        return numbers[-1]
    if unanswered(done):
        raise ScaleoutError(
            f"Slurm did not answer sbatch ({why}), and the job was not found in the queue: ask with  "
            "scontrol ping  and look with  squeue --me  before you submit it again."
        )
    raise ScaleoutError(f"Slurm refused the job: {why}. Correct the site file, or -n and -N.")


def unanswered(done: "subprocess.CompletedProcess[str]") -> bool:
    """Tell whether a command failed because Slurm did not answer, whatever it was asked for."""
    return done.returncode == LATE or UNANSWERED.search(done.stderr) is not None


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


def cancel(number: str) -> str:
    """Cancel a job, wait until it is gone, and say what became of it: GONE, GOING, or that it may
    go on."""
    answered = time.monotonic()
    end, heard, why = answered + CANCEL_S, False, ""
    while True:
        if not heard:
            done = ask("scancel", number)
            heard, why = done.returncode == 0, complaint(done.stderr) or "it does not say why"
        now = state(number)
        if now and now["JobState"] not in LIVE:
            return GONE
        if now and heard:
            answered = time.monotonic()
        if time.monotonic() > min(end, answered + DEAF_S):
            break
        time.sleep(0.3)
    if heard:
        return GOING
    return (
        f"may go on, as Slurm did not cancel it ({why}): type  scancel {number}  and look with  "
        "squeue --me"
    )


def withdraw(run_id: str) -> str:
    """Cancel a job whose number nobody knows, and say what became of it."""
    numbers = _numbers(run_id)
    told = [f"job {number} {cancel(number)}" for number in numbers]
    return "; ".join(told) or "no job of it was found in the queue (look with  squeue --me )"


def _numbers(run_id: str) -> list[str]:
    """List the numbers of the jobs with this comment, also of one that has ended already."""
    listed = ask("squeue", "--noheader", "--states=all", "--format=%i %k").stdout.splitlines()
    return [line.split()[0] for line in listed if line.split()[1:] == [run_id]]
