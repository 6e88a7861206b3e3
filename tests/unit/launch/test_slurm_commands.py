"""What Slurm's commands answer, and what is made of it; Slurm itself is played."""

import os
import subprocess
from pathlib import Path

import pytest

from scaleout.base import paths
from scaleout.base.errors import ScaleoutError
from scaleout.doctor import examine
from scaleout.launch import slurm_commands
from scaleout.site import Site

FORGOTTEN = "slurm_load_jobs error: Invalid job id specified"


class Played:
    """Answers each command with what was set for it: its standard output, or how it failed."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.says = {"sbatch": "7\n"}
        self.fails: dict[str, str] = {}

    def ask(self, *command: str) -> "subprocess.CompletedProcess[str]":
        self.asked.append(list(command))
        error = self.fails.get(command[0], "")
        said = "" if error else self.says.get(command[0], "")
        return subprocess.CompletedProcess(command, bool(error), said, error)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played()
    monkeypatch.setattr(slurm_commands, "ask", made.ask)
    monkeypatch.setattr(slurm_commands, "_submitted", {})
    return made


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("4201\n", "4201"),
        ("4201;big\n", "4201"),
        ("-----\n  Welcome to Example3\n-----\n\n--> Checking queue (normal)...OK\n4201\n", "4201"),
        ("You have 3 jobs\n2026\n4201;big\n", "4201"),
        ("4201\nHave a nice day\n", "4201"),
        ("sbatch: lua: 2 nodes\r\n  4201  \r\n", "4201"),
        ("Submitted batch job 4201\n", "4201"),
        ("Submitted batch job 4201 on cluster big\n", "4201"),
    ],
)
def test_the_number_is_the_last_line_that_is_one(played: Played, said: str, number: str) -> None:
    played.says["sbatch"] = said
    assert slurm_commands.sbatch(Path("job.sh"), "ID") == number


@pytest.mark.parametrize(
    "said", ["", "4201 jobs before yours\n", "Job <4201> is submitted.\n", "v3\n"]
)
def test_an_answer_without_a_number_withdraws_the_job(played: Played, said: str) -> None:
    played.says |= {"sbatch": said, "squeue": "4201 ID\n4202 OTHER\n"}
    played.says["scontrol"] = "JobId=4201 JobState=CANCELLED"
    with pytest.raises(ScaleoutError, match="sbatch gave no job number") as caught:
        slurm_commands.sbatch(Path("job.sh"), "ID")
    assert ["scancel", "4201"] in played.asked and ["scancel", "4202"] not in played.asked
    assert (said.strip() or "it said nothing") in str(caught.value)
    assert "; job 4201 has been cancelled. Try it with" in str(caught.value)
    assert "sbatch --parsable job.sh" in str(caught.value) and "\n" not in str(caught.value)


LOST = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@pytest.mark.parametrize(
    "said", [LOST, "sbatch: error: Unable to contact slurm controller (connect failure)", "bad: 1"]
)
def test_a_job_that_is_queued_although_sbatch_failed_is_followed(played: Played, said: str) -> None:
    played.fails["sbatch"], played.says["squeue"] = said, "4202 OTHER\n4201 ID\n"
    assert slurm_commands.sbatch(Path("job.sh"), "ID") == "4201"
    assert "scancel" not in {command[0] for command in played.asked}


def test_a_job_that_comes_into_the_queue_late_is_found(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.fails["sbatch"] = LOST
    monkeypatch.setattr(
        slurm_commands.time, "sleep", lambda s: played.says.update(squeue="4201 ID\n")
    )
    assert slurm_commands.sbatch(Path("job.sh"), "ID") == "4201"


@pytest.mark.parametrize("found", ["4202 OTHER\n", ""])
def test_where_slurm_did_not_answer_nobody_says_that_it_refused(
    played: Played, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    played.fails["sbatch"], played.says["squeue"] = LOST, found
    monkeypatch.setattr(slurm_commands, "FIND_S", 0.01)
    with pytest.raises(ScaleoutError, match="Slurm did not answer sbatch .Socket timed") as caught:
        slurm_commands.sbatch(Path("job.sh"), "ID")
    said = str(caught.value)
    assert "squeue --me" in said and "refused" not in said and "site file" not in said


def test_what_slurm_refuses_is_no_job(played: Played) -> None:
    played.fails["sbatch"] = "sbatch: error: Batch job submission failed: Invalid account"
    with pytest.raises(ScaleoutError, match="Slurm refused the job: Invalid account. Correct the"):
        slurm_commands.sbatch(Path("job.sh"), "ID")


@pytest.mark.parametrize(
    ("said", "seen", "fix"),
    [
        (LOST, "Slurm did not answer: Socket timed out", "scontrol ping"),
        ("sbatch: error: Invalid account", "Invalid account", "correct partition, account"),
    ],
)
def test_the_doctor_tells_no_answer_from_a_refusal(
    played: Played, monkeypatch: pytest.MonkeyPatch, said: str, seen: str, fix: str
) -> None:
    monkeypatch.setattr(slurm_commands, "there_is", lambda program: True)
    played.says["scontrol"], played.fails["sbatch"] = "Slurmctld(primary) at here is UP\n", said
    check = examine.examine_site(Site(scheduler="slurm"))[-1]
    assert check.status == "fail" and seen in check.seen and fix in check.fix


def test_the_doctor_gives_sbatch_the_words_of_a_site(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_commands, "there_is", lambda program: True)
    played.says["scontrol"] = "Slurmctld(primary) at here is UP\n"
    site = Site(scheduler="slurm", sbatch=("--mem 4G", "--exclusive"))
    assert examine.examine_site(site)[-1].status == "ok"
    assert played.asked[-1][-4:] == ["--mem", "4G", "--exclusive", "--wrap=true"]


@pytest.mark.parametrize(
    ("accounting", "ended", "code"),
    [
        (None, "UNKNOWN", "0:0"),  # "Slurm accounting storage is disabled"
        ("", "UNKNOWN", "0:0"),
        ("Welcome to Example3\n", "UNKNOWN", "0:0"),
        ("COMPLETED|0:0\n", "COMPLETED", "0:0"),
        ("FAILED|3:0\n", "FAILED", "3:0"),
        ("CANCELLED by 1000|0:15\n", "CANCELLED", "0:15"),
        ("COMPLETED|0:0\nFAILED|3:0\nCOMPLETED|0:0\n", "FAILED", "3:0"),
        ("No announcements\nCOMPLETED|0:0\n", "COMPLETED", "0:0"),
    ],
)
def test_how_a_forgotten_job_ended_is_accountings_word_or_not_known(
    played: Played, accounting: str | None, ended: str, code: str
) -> None:
    played.fails["scontrol"] = FORGOTTEN
    if accounting is None:
        played.fails["sacct"] = "Slurm accounting storage is disabled"
    played.says["sacct"] = accounting or ""
    assert slurm_commands.state("7") == {"JobState": ended, "ExitCode": code}


def test_accounting_is_asked_for_jobs_since_this_one_was_submitted(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.fails["scontrol"] = FORGOTTEN
    monkeypatch.setattr(slurm_commands.time, "time", lambda: 1_700_000_060.0)
    monkeypatch.setattr(slurm_commands.time, "localtime", slurm_commands.time.gmtime)
    slurm_commands.state(slurm_commands.sbatch(Path("job.sh"), "ID"))
    asked = played.asked[-1]
    assert asked[0] == "sacct" and asked[asked.index("-S") + 1] == "2023-11-14T22:13:20"


@pytest.mark.parametrize(
    ("states", "one"),
    [
        (["RUNNING"], "RUNNING"),
        (["FAILED", "COMPLETED"], "FAILED"),
        (["COMPLETED", "FAILED"], "FAILED"),
        (["COMPLETED", "RUNNING", "FAILED"], "RUNNING"),
        (["COMPLETED", "TIMEOUT", "FAILED"], "TIMEOUT"),
        (["COMPLETED", "COMPLETED"], "COMPLETED"),
        (["FAILED", "REQUEUE_HOLD"], "REQUEUE_HOLD"),
        (["COMPLETED", "RESIZING"], "RESIZING"),
        (["NODE_FAIL", "SPECIAL_EXIT"], "SPECIAL_EXIT"),
    ],
)
def test_of_several_records_one_that_lives_counts_else_one_that_failed(
    played: Played, states: list[str], one: str
) -> None:
    played.says["scontrol"] = "".join(
        f"JobId={8 + n} ArrayJobId=7 ArrayTaskId={n} JobState={state} Reason=None ExitCode={n}:0\n"
        for n, state in enumerate(states)
    )
    found = slurm_commands.state("7")
    assert (found["JobState"], found["ArrayTaskId"]) == (one, str(states.index(one)))


@pytest.mark.parametrize("said", ["", "The controller is being moved\n"])
def test_an_answer_without_a_job_is_none(played: Played, said: str) -> None:
    played.says["scontrol"] = said
    assert slurm_commands.state("7") == {}


@pytest.mark.parametrize(
    "state",
    ["REQUEUE_HOLD", "SPECIAL_EXIT", "RESIZING", "REQUEUE_FED", "RESV_DEL_HOLD", "POWER_UP_NODE"],
)
def test_a_job_in_such_a_state_has_not_ended(state: str) -> None:
    assert state in slurm_commands.LIVE


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("AssocGrpCPUMinutesLimit", "the hours of your group are used up"),
        ("AssocGrpBillingMinutes", "the hours of your group are used up"),
        ("QOSGrpCPUMinutesLimit", "the hours of your group are used up"),
        ("QOSGrpWallLimit", "the hours of your group are used up"),
        ("DependencyNeverSatisfied", "the job that it depends on has failed"),
        ("launch_failed_requeued_held", "Slurm could not start it"),
        ("job_requeued_in_held_state", "Slurm could not start it"),
        ("JobHoldMaxRequeue", "Slurm could not start it"),
        ("JobHeldUser", "without --hold"),
        ("QOSMinCPUNotSatisfied", "less than your quality of service wants"),
        ("QOSMinGRES", "less than your quality of service wants"),
        ("QOSMaxCpuPerJobLimit", "more than one job of yours may have"),
        ("AssocMaxNodePerJobLimit", "more than one job of yours may have"),
        ("QOSMaxMemoryPerNode", "more than one job of yours may have"),
        ("AssocMaxCPUMinutesPerJobLimit", "more than one job of yours may have"),
        ("AssocMaxWallDurationPerJobLimit", "set fewer minutes"),
        ("PartitionTimeLimit", "set fewer minutes"),
        ("MaxMemPerLimit", "ask for less"),
    ],
)
def test_what_does_not_pass_by_itself_says_what_to_type(reason: str, words: str) -> None:
    said, passes = slurm_commands.why(reason)
    assert words in said and not passes


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("None", "Slurm has not looked"),
        ("Priority", "higher priority"),
        ("ReqNodeNotAvail,_UnavailableNodes:node1", "down, drained or reserved"),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved", "sinfo -R"),
        ("AssocGrpCpuLimit", "your group have together as much"),
        ("QOSGrpNodeLimit", "your group have together as much"),
        ("AssocGrpCPURunMinutesLimit", "your group have together as much"),
        ("QOSMaxCpuPerUserLimit", "your running jobs have together as much"),
        ("AssocMaxJobsLimit", "as many jobs running"),
        ("Dependency", "another job has to end"),
        ("BeginTime", "may not begin"),
        ("SomethingNew,_and_more", "Slurm says SomethingNew"),
    ],
)
def test_what_passes_is_waited_for(reason: str, words: str) -> None:
    said, passes = slurm_commands.why(reason)
    assert words in said and passes


def test_an_absolute_slurm_conf_needs_no_workshop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site-packages/scaleout/paths.py"))
    monkeypatch.setenv("SLURM_CONF", "")
    conf = tmp_path / "slurm.conf"
    conf.touch()
    slurm_commands.use(str(conf))
    assert os.environ["SLURM_CONF"] == str(conf)
    slurm_commands.use("")
    assert os.environ["SLURM_CONF"] == ""
    with pytest.raises(ScaleoutError, match="No workshop here"):
        slurm_commands.use("slurm.conf")
