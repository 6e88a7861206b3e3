"""The job script, and what is said about each way in which a job waits or ends; tests/cluster runs
real ones."""

import contextlib
import re
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scaleout.base.errors import ScaleoutError
from scaleout.course.lab import lab
from scaleout.doctor import checks
from scaleout.jobs import rank, talking
from scaleout.jobs.job import Job, JobFailed, JobInterrupted, JobTimeout, Run
from scaleout.jobs.output import Transcript
from scaleout.launch import hosts, jobscript, local, slurm, slurm_commands
from scaleout.launch.slurm import Follower
from scaleout.site import Site

SITE = Site(scheduler="slurm")
COMMAND = ["python", "-m", "mpi4py", "labs/x y/runme.py", "--scale", "2"]


def _job(site: Site = SITE, **how: object) -> Job:
    return Job.asked(COMMAND, site=site, queued=True, **{"name": "x", **how})


def _script(site: Site = SITE, **how: object) -> str:
    job = _job(site, **{"ranks": 4, "nodes": 2, "threads": 3, **how})
    return jobscript.job_script(job, "ID", "/shared/ID")


def test_a_script_asks_for_what_was_asked_and_no_more() -> None:
    lines = _script().splitlines()
    asked = [line for line in lines if line.startswith("#SBATCH")]
    for want in (
        "nodes=2",
        "ntasks=4",
        "ntasks-per-node=2",
        "cpus-per-task=3",
        "time=10",
        "job-name=x",
    ):
        assert f"#SBATCH --{want}" in asked
    assert not [
        line for line in asked if line.endswith("=") or "partition" in line or "account" in line
    ]
    assert lines[-1].startswith("mpirun -n 4 -ppn 2 -bind-to core:3 -profile -prepend-pattern")
    assert lines[-1].endswith("python -m mpi4py 'labs/x y/runme.py' --scale 2")
    for name, value in {"OMP_NUM_THREADS": 3, "SCALEOUT_NODES": 2, "SCALEOUT_CORES": 12}.items():
        assert f"export {name}={value}" in lines


def test_the_options_of_a_site_are_in_the_script_as_words() -> None:
    site = replace(SITE, options=("-iface ib0",), srun=("--mpi pmi2",))
    assert " -iface ib0 " in _script(site).splitlines()[-1]
    assert _script(replace(site, start="srun")).splitlines()[-1].startswith("srun --mpi pmi2 ")


def test_a_site_is_in_the_script_whole() -> None:
    site = replace(
        SITE,
        partition="short",
        account="me",
        reservation="class",
        minutes=30,
        sbatch=("--exclusive",),
    )
    site = replace(
        site,
        modules=("gcc/12",),
        prelude=("ulimit -s unlimited",),
        env={"A": "b c"},
        options=("-iface", "ib0"),
    )
    text = _script(site, env={"B": 1})
    for line in (
        "#SBATCH --partition=short",
        "#SBATCH --account=me",
        "#SBATCH --reservation=class",
    ):
        assert line in text.splitlines()
    for line in (
        "#SBATCH --time=30",
        "#SBATCH --exclusive",
        "module load gcc/12",
        "ulimit -s unlimited",
    ):
        assert line in text.splitlines()
    assert "export A='b c'\nexport B=1\n" in text and " -iface ib0 " in text


def test_a_name_cannot_add_a_line_to_the_script() -> None:
    lines = _script(name="x\n#SBATCH --account=yours\ntouch here").splitlines()
    assert '#SBATCH --job-name="x #SBATCH --account=yours touch here"' in lines
    assert not [line for line in lines if line.startswith(("touch", "#SBATCH --acc"))]


@pytest.mark.parametrize(
    "site",
    [
        Site(scheduler="slurm", partition="short\ntouch here"),
        Site(scheduler="slurm", account="mine\r\ntouch here"),
        Site(scheduler="slurm", reservation="class\n\n#SBATCH --account=yours"),
        Site(scheduler="slurm", sbatch=("--exclusive\ntouch here",)),
    ],
)
def test_a_site_cannot_add_a_line_to_what_sbatch_is_asked(site: Site) -> None:
    lines = _script(site=site).splitlines()
    assert not [line for line in lines if line.startswith(("touch", "#SBATCH --account=yours"))]
    assert [line for line in lines if re.match("#SBATCH .*(here|yours)", line)]


def test_srun_starts_the_ranks_where_the_site_says_so() -> None:
    last = _script(replace(SITE, start="srun")).splitlines()[-1]
    assert (
        last.startswith("srun --mpi=pmi2 --cpu-bind=cores --cpus-per-task=3")
        and "--error=/shared/ID/stderr-%t" in last
    )
    assert "--cpu-bind" not in _script(replace(SITE, start="srun", bind="none"))
    assert "-bind-to" not in _script(replace(SITE, bind="none"))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("A B C", "module load A B C"),
        ("gcc/12 openmpi@4.1.5", "module load gcc/12 openmpi@4.1.5"),
        ("~me/gcc", "module load '~me/gcc'"),
    ],
)
def test_several_modules_in_one_text_are_loaded_together(module: str, line: str) -> None:
    """A shell would put a folder in the place of ~me."""
    lines = _script(replace(SITE, modules=(module, "last"))).splitlines()
    assert [text for text in lines if text.startswith("module")] == [line, "module load last"]


@pytest.mark.parametrize("sbatch", [("--export=NONE",), ("--export=NIL",), ()])
@pytest.mark.parametrize(("start", "there"), [("srun", True), ("mpirun", False)])
def test_srun_hands_on_what_the_script_exports(
    start: str, there: bool, sbatch: tuple[str, ...]
) -> None:
    """Also where sbatch was told to hand on nothing, which srun would heed too."""
    lines = _script(replace(SITE, start=start, sbatch=sbatch)).splitlines()
    assert [f"#SBATCH {option}" in lines for option in sbatch] == [True] * len(sbatch)
    exported = [text.partition("#")[0].strip() for text in lines[:-1] if "EXPORT_ENV" in text]
    assert exported == (["export SLURM_EXPORT_ENV=ALL"] if there else [])
    assert "EXPORT_ENV" not in lines[-1]


@pytest.mark.parametrize(
    ("site", "ranks", "watched"),
    [
        (replace(SITE, start="srun"), 2, True),
        (replace(SITE, start="srun"), 1, False),
        (replace(SITE, mpirun="/opt/mpi/bin/mpirun"), 2, True),
        (replace(SITE, mpirun="/opt/mpi/bin/mpirun"), 1, False),
        (SITE, 2, False),
        (SITE, 1, False),
    ],
    ids=["srun", "srun, 1", "another mpirun", "another mpirun, 1", "ours", "ours, 1"],
)
def test_ranks_are_watched_where_no_launcher_counts_calls(
    site: Site, ranks: int, watched: bool
) -> None:
    lines = _script(site, ranks=ranks, nodes=1).splitlines()
    (tell,) = (text.partition("   #")[0] for text in lines if text.startswith("TELL="))
    assert tell.endswith(f" {rank.WATCH})") == watched and tell.count(rank.WATCH) == watched
    assert (talking.COUNT in lines[-1].split()) == (ranks > 1 and not watched)


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    run = Run("ID", "x", "mpirun", tmp_path, 2, 1)
    return Follower(_job(ranks=2), run, "7", tmp_path / "slurm.txt", lambda text: None)


@pytest.mark.parametrize(
    ("start", "line"), [("mpirun", (None, "1: module")), ("srun", (1, "module"))]
)
def test_only_srun_labels_lines(
    follower: Follower, start: str, line: tuple[int | None, str]
) -> None:
    """Under mpirun such a line is from the prelude, or from mpirun itself."""
    follower.job = _job(replace(SITE, start=start), ranks=2)
    assert follower._labelled((None, "1: module")) == line
    assert follower._labelled((None, "2: of no rank")) == (None, "2: of no rank")


@pytest.mark.parametrize(
    ("state", "kind", "words"),
    [
        ({"JobState": "TIMEOUT"}, JobTimeout, "reached its limit of 10 minutes"),
        ({"JobState": "CANCELLED"}, JobFailed, "was cancelled"),
        ({"JobState": "NODE_FAIL"}, JobFailed, "lost one of its nodes"),
        (
            {"JobState": "OUT_OF_MEMORY", "ExitCode": "0:125"},
            JobFailed,
            "more memory than it was given",
        ),
        ({"JobState": "PREEMPTED"}, JobFailed, "submit it again"),
        ({"JobState": "FAILED", "ExitCode": "3:0"}, JobFailed, "x failed: exit status 3"),
        ({"JobState": "NEW_KIND"}, JobFailed, "ended as NEW_KIND"),
    ],
)
def test_every_end_is_told_in_words(
    follower: Follower, state: dict, kind: type, words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        follower._judge(state)
    assert "Job 7" in str(caught.value) and caught.value.status
    assert follower.run.status == {"3:0": 3, "0:125": 253}.get(state.get("ExitCode", ""), 1)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ("0\n", ""),
        ("3\n", "x failed: exit status 3"),
        ("", "how it ended is not known"),
        ("no number\n", "how it ended is not known"),
        (None, "how it ended is not known"),
    ],
)
def test_what_slurm_has_forgotten_ended_as_the_script_says(
    follower: Follower, left: str | None, words: str
) -> None:
    if left is not None:
        follower.output.with_name("status").write_text(left)
    with pytest.raises(JobFailed, match=words) if words else contextlib.nullcontext():
        follower._judge({"JobState": "UNKNOWN", "ExitCode": "0:0"})
    assert (follower.run.status == 0) == (not words)


@pytest.mark.parametrize(
    ("site", "line", "status"),
    [
        (SITE, "false", 1),
        (replace(SITE, start="srun"), "exit 7", 7),
        (SITE, "sh -c 'kill -9 $$'", 137),
        (SITE, "true", 0),
    ],
)
def test_the_script_leaves_its_status(tmp_path: Path, site: Site, line: str, status: int) -> None:
    script = _script(site).replace("/shared/ID", str(tmp_path))
    trap = next(text for text in script.splitlines() if text.startswith("trap "))
    done = subprocess.run(["bash", "-c", f"{trap}\n{line}"], capture_output=True)
    assert done.returncode == status == int((tmp_path / "status").read_text())


def test_why_it_waits_is_said_once(follower: Follower) -> None:
    said: list[str] = []
    follower.say = said.append
    reason = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved"
    for why in ("None", "Priority", "Priority", reason, "SomethingNew"):
        follower._say_why({"JobState": "PENDING", "Reason": why})
    follower._say_why({"JobState": "RUNNING", "NodeList": "node[1-2]"})
    assert said == [
        "Job 7 waits: jobs of higher priority are before it.",
        "Job 7 waits: nodes that it needs are down, drained or reserved; `sinfo -R` says why.",
        "Job 7 waits: Slurm says SomethingNew.",
        "Job 7 runs on node[1-2].",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd-node1: error: *** JOB 7 ON node1 CANCELLED AT 2026-01-01T00:00:00 ***",
        "0: slurmstepd: error: *** STEP 7.0 ON n CANCELLED AT 2026-01-01T00:00:00 ***",
        "srun: Job step aborted: Waiting up to 4 seconds for job step to finish.",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Terminated (signal 15)",
        "This typically refers to a problem with your application.",
        "Please see the FAQ page for debugging suggestions",
    ],
)
def test_what_launchers_say_of_an_end_is_kept_and_not_shown(
    follower: Follower, tmp_path: Path, line: str
) -> None:
    said: list[str] = []
    follower.job = _job(replace(SITE, start="srun"), ranks=2)
    (tmp_path / "slurm.txt").write_text(f"0: its own\n{line}\n")
    with Transcript("x", tmp_path, follower.run.lines, said.append) as taken:
        follower._take_output(taken, last=True)
    assert said == ["[0] its own"]
    assert line.removeprefix("0: ") in (tmp_path / "output.txt").read_text()


# Where something goes wrong on our side; Slurm itself is played


class Slurm:
    """Answers like Slurm: one job that runs until it is cancelled, or until `work` says its end."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.state = "RUNNING"
        self.work: Callable[[int], None] = lambda look: None

    def ask(self, *command: str) -> "subprocess.CompletedProcess[str]":
        self.asked.append(" ".join(command))
        if command[0] == "sbatch":
            return subprocess.CompletedProcess(command, 0, "7\n", "")
        if command[0] == "scancel":
            self.state = "CANCELLED"
        self.work(len(self.asked))
        said = f"JobId=7 JobState={self.state} Reason=None NodeList=node1 ExitCode=0:0\n"
        return subprocess.CompletedProcess(command, 0, said, "")

    @property
    def cancelled(self) -> int:
        return self.asked.count("scancel 7")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
    monkeypatch.setattr(slurm_commands, "ask", made.ask)
    monkeypatch.setattr(slurm_commands, "there_is", lambda program: True)
    monkeypatch.setattr(slurm, "LOOK_S", (0.01, 0.01))
    monkeypatch.setattr(slurm, "LATE_S", 0.05)
    monkeypatch.setattr(slurm.time, "sleep", lambda seconds: None)
    return made


def test_a_full_disk_cancels_the_job_with_one_sentence(
    played: Slurm, follower: Follower, tmp_path: Path
) -> None:
    (tmp_path / "slurm.txt").write_text("a line\nanother\n")
    (tmp_path / "output.txt").symlink_to("/dev/full")
    words = r"x was ended because its output cannot be written \(No space left on device\)"
    with pytest.raises(ScaleoutError, match=words):
        follower.until_end()
    assert played.cancelled == 1


def test_a_folder_that_is_away_for_a_moment_loses_no_line(
    played: Slurm, follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "slurm.txt"
    opened, failing = open, iter([True, False, True, True, False])

    def sometimes(path: object, *words: object, **how: object):
        if path == output and next(failing, False):
            raise OSError(116, "Stale file handle")
        return opened(path, *words, **how)

    def work(look: int) -> None:
        with opened(output, "a") as file:
            file.write(f"line {look}\n")
        played.state = "COMPLETED" if look == 12 else "RUNNING"

    monkeypatch.setattr(slurm, "open", sometimes, raising=False)
    played.work = work
    follower.until_end()
    texts = [text for _, text in follower.run.lines]
    assert texts == output.read_text().splitlines() and len(texts) == 12


def test_what_cannot_be_brought_home_is_said_and_stays(
    played: Slurm, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.state = "COMPLETED"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(slurm.shutil, "copytree", full)
    said: list[str] = []
    site = replace(SITE, scratch=str(tmp_path / "scratch"))
    slurm.submit(_job(site), said.append)
    (away,) = (tmp_path / "scratch").iterdir()
    assert f"it is still in {away}" in said[-1]


REFUSED = "scancel: error: Kill job error on job id 7: Unable to contact slurm controller"
MAY = "job 7 may go on, as Slurm did not cancel it"


@pytest.mark.parametrize(
    ("scancel", "state", "words"),
    [
        ("", "CANCELLED", "job 7 has been cancelled"),
        ("", "COMPLETED", "job 7 has been cancelled"),
        ("", "RUNNING", "job 7 is being cancelled; `squeue --me` shows when it is gone"),
        ("", "", "job 7 is being cancelled"),
        (REFUSED, "", f"{MAY} (scancel: error: Kill job error on job id 7: Unable to contact"),
        (REFUSED, "RUNNING", f"{MAY} (scancel"),
        (REFUSED, "CANCELLED", "job 7 has been cancelled"),
    ],
)
@pytest.mark.parametrize("end", ["Ctrl-C", "time", "for ever"])
def test_a_job_is_called_cancelled_only_where_it_is_gone(
    played: Slurm,
    follower: Follower,
    monkeypatch: pytest.MonkeyPatch,
    scancel: str,
    state: str,
    words: str,
    end: str,
) -> None:
    monkeypatch.setattr(slurm_commands, "DEAF_S", 0.02)
    monkeypatch.setattr(slurm_commands, "CANCEL_S", 0.05)
    answer, told = played.ask, []

    def ask(*command: str) -> "subprocess.CompletedProcess[str]":
        if command[0] == "scancel":
            told.append(command)
            return subprocess.CompletedProcess(command, bool(scancel), "", scancel)
        if command[0] != "scontrol" or not told:
            return answer(*command)
        return subprocess.CompletedProcess(command, not state, f"JobState={state}", "timed out")

    monkeypatch.setattr(slurm_commands, "ask", ask)
    how = {"Ctrl-C": _interrupt, "for ever": lambda *_: _for_ever(follower)}
    if end in how:
        monkeypatch.setattr(slurm.Follower, "_say_why", how[end])
    follower.job = replace(follower.job, timeout=0.02)
    with pytest.raises((JobTimeout, JobInterrupted, JobFailed)) as caught:
        follower.until_end()
    assert words in str(caught.value).replace("Job 7", "job 7")
    assert follower.gone == ("has been" in words)


def _for_ever(follower: Follower) -> None:
    raise JobFailed("It would wait for ever.", follower.run)


@pytest.mark.parametrize("looks", [1, 3, 9])
def test_output_that_comes_late_is_waited_for(
    played: Slurm, follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    played.state = "COMPLETED"
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == looks:
            (tmp_path / "slurm.txt").write_text("late, and whole\n")

    monkeypatch.setattr(slurm, "LATE_S", 10.0)
    monkeypatch.setattr(slurm.time, "sleep", sleep)
    follower.until_end()
    assert [text for _, text in follower.run.lines] == ["late, and whole"]


def test_output_that_never_comes_is_said(played: Slurm, follower: Follower) -> None:
    played.state = "COMPLETED"
    said: list[str] = []
    follower.say = said.append
    follower.until_end()
    assert "The output of job 7 cannot be seen yet: it will be in" in said[-1]


@pytest.mark.parametrize("how", ["saves", "never goes", "nobody can be asked", "second Ctrl-C"])
def test_a_job_that_may_still_be_saving_keeps_its_folder(
    played: Slurm, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    site, said = replace(SITE, scratch=str(tmp_path / "scratch")), []
    looks: list[int] = []
    answer = played.ask
    if how != "saves":
        monkeypatch.setattr(slurm_commands, "DEAF_S", 0.05)
        monkeypatch.setattr(slurm_commands, "CANCEL_S", 0.05)

    def ask(*command: str) -> "subprocess.CompletedProcess[str]":
        if command[0] != "scontrol" or not played.cancelled:
            return answer(*command)
        looks.append(1)
        if how == "second Ctrl-C":
            raise KeyboardInterrupt
        if how == "nobody can be asked":
            return subprocess.CompletedProcess(command, 1, "", "Unable to contact controller")
        played.state = "COMPLETING"
        if how == "saves" and len(looks) == 5:
            (away,) = (tmp_path / "scratch").iterdir()
            (away / "records.jsonl").write_text("{}\n")
            played.state = "CANCELLED"
        return answer(*command)

    monkeypatch.setattr(slurm_commands, "ask", ask)
    if how == "second Ctrl-C":
        monkeypatch.setattr(slurm.Follower, "_say_why", _interrupt)
    with pytest.raises((JobTimeout, JobInterrupted)):
        slurm.submit(_job(site, timeout=0.05), said.append)
    left = list((tmp_path / "scratch").iterdir())
    (home,) = (results / "x").iterdir()
    if how == "saves":
        assert not left and (home / "records.jsonl").read_text() == "{}\n"
    else:
        assert len(left) == 1
        assert (
            said[-1]
            == f"Job 7 may still be saving what it has, so its folder stays, too: {left[0]}"
        )


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("scratch", ["", "$HERE/scratch"])
def test_a_dry_run_shows_the_script_that_is_submitted(
    played: Slurm, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch, scratch: str
) -> None:
    played.state = "COMPLETED"
    monkeypatch.setenv("HERE", str(tmp_path))
    job = _job(replace(SITE, scratch=scratch))
    run = slurm.submit(job, lambda _: None)
    script = (run.folder / "job.sh").read_text()
    assert slurm.dry_run(job) == script.replace(run.id, "RUN_ID").rstrip()
    assert stat.S_IMODE((run.folder / "job.sh").stat().st_mode) == 0o600, "it may hold a secret"
    assert f"{tmp_path}/{'scratch/scaleout-' if scratch else 'results/x/'}{run.id}/" in script


def test_the_site_is_what_is_around_us(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Site.here() == Site() and SITE.nodes() == 1
    for name, value in {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "n",
        "SLURM_JOB_NUM_NODES": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert Site.here() == Site()  # one node is this machine
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "3")
    assert Site.here().scheduler == "slurm" and Site.here().nodes() == 3
    assert Site().nodes() == 1  # a site that was named decides


def test_where_a_job_on_hosts_runs() -> None:
    two = Site(hosts=("a", "b"), ssh="/my/ssh")
    ssh = ["-launcher", "ssh", "-launcher-exec", "/my/ssh"]
    assert Job.asked(["true"], name="x", ranks=4, site=two).nodes == 2
    assert hosts.launching(two, 2) == ["-hosts", "a,b", *ssh]
    assert hosts.launching(two, 1) == ["-hosts", "a", *ssh]
    assert hosts.first(two, 2) == "a"
    # The same cell as on a cluster runs on a laptop.
    assert Job.asked(["true"], name="x", ranks=4, nodes=2, site=Site()).nodes == 1
    assert hosts.launching(Site(), 1) == []
    for ranks, nodes in ((4, 3), (1, 2), (4, 0), (4, -1)):
        with pytest.raises(ScaleoutError, match=f"{nodes} nodes asked for"):
            Job.asked(["true"], name="x", ranks=ranks, nodes=nodes, site=two)


@pytest.mark.parametrize(
    ("host", "login", "machine"),
    [
        ("node1", "node1", "node1"),
        ("me@node1", "me@node1", "node1"),
        ("node1:4", "node1", "node1"),
        ("me@node1:4", "me@node1", "node1"),
        ("me@fd00::1:4", "me@fd00::1:4", "fd00::1:4"),
    ],
)
def test_ranks_meet_at_a_host_by_its_name_and_ssh_has_the_user_too(
    host: str, login: str, machine: str
) -> None:
    site = Site(hosts=(host,))
    assert hosts.first(site, 1) == machine
    assert hosts.command(site, host)[-1] == login
    assert hosts.launching(site, 1)[:2] == ["-hosts", login]
    assert hosts.silent(replace(site, ssh="false")) == [login]


def test_one_machine_is_named_once() -> None:
    with pytest.raises(ScaleoutError, match="node1:2 is there twice"):
        Site(hosts=("node1:2", "me@node1"))


def test_the_options_of_a_site_are_words_of_mpiruns_line() -> None:
    job = Job.asked(["true"], name="x", site=Site(options=("-iface ib0",)))
    assert local._options(job, [], []) == ["-n", "1", "-iface", "ib0"]


# What the doctor says of a host

OURS = {
    "versions": {"python": "3.11.7", "mpich": "4.3.2"},
    "mpirun": "MPICH 4.3.2",
    "prefix": "/env",
    "home": "login",
}
SAID = {
    "back": "",
    "address": "10.0.0.1",
    "address_back": "",
    "shared": True,
    "folder": True,
    "mpirun": "MPICH 4.3.2",
    "versions": {"python": "3.11.7", "mpich": "4.3.2"},
}


def test_a_host_that_is_well() -> None:
    assert {check.status for check in checks.host("a", SAID, OURS)} == {"ok"}


@pytest.mark.parametrize(
    ("wrong", "name", "seen", "fix"),
    [
        (
            {"error": "Permission denied (publickey)"},
            "host a",
            "without a password: Permission denied",
            "ssh-copy-id a",
        ),
        (
            {"error": "No such file", "reached": True},
            "host a",
            "has no environment in",
            "share that folder",
        ),
        ({"versions": {"python": "3.11.7"}}, "host a", "mpich missing (here 4.3.2)", "make lab"),
        ({"mpirun": "Open MPI 5"}, "host a: MPI", "its mpirun is Open MPI 5", "make clean"),
        (
            {"back": "timed out", "address_back": "timed out"},
            "host a: way back",
            "cannot reach us at login",
            "firewall",
        ),
        (
            {"back": "refused"},
            "host a: way back",
            "but by 10.0.0.1",
            'options = ["-localhost", "10.0.0.1"]',
        ),
        ({"shared": False}, "host a: files", "does not see our results folder", "SCALEOUT_RESULTS"),
        ({"folder": False}, "host a: files", "does not see this folder", "share it"),
    ],
)
def test_what_is_wrong_with_a_host_is_named_with_its_fix(
    wrong: dict, name: str, seen: str, fix: str
) -> None:
    bad = [check for check in checks.host("a", {**SAID, **wrong}, OURS) if check.status != "ok"]
    assert [check.name for check in bad] == [name] and seen in bad[0].seen and fix in bad[0].fix


def test_a_notebook_shows_the_script_without_a_path_of_this_machine(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab("00_tiny").job_script(ranks=2, nodes=2, site=SITE, steps=9)
    said = capsys.readouterr().out
    assert "cd WORKSHOP\n" in said and str(workshop) not in said
    assert said.rstrip().endswith("python -m mpi4py labs/00_tiny/runme.py --steps 9")


def test_the_doctor_says_whose_nodes_are_used() -> None:
    inside = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    assert "inside Slurm job 7, 2 nodes: scaleout run uses all" in checks.scheduler(inside).seen
    assert (
        "local runs leave them out" in checks.scheduler({**inside, "SLURM_JOB_NUM_NODES": "1"}).seen
    )
