"""Jobs that go wrong: each ends within a bound, says why in one sentence, and leaves no process
behind."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import COMMAND, heed_signals, left_of, run_script

from scaleout.base.paths import show
from scaleout.jobs import failed_ranks, supervise
from scaleout.jobs.job import JobFailed, JobInterrupted, JobTimeout, Run
from scaleout.launch import run as launch
from scaleout.site import Site

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

Write = Callable[..., Path]
# What ending a job may take when every process of it ignores every signal but SIGKILL: 5 s for the
# first signal, and 2 s for each of the others.
GRACE_S = 10.0
BUSY_S = 30.0  # for a machine with other work; what never ends sleeps for 600 s

TAIL = "    time.sleep(600)\n"
ONE_GOES = (
    "import os, signal, sys, time\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1:\n    {}\n"
    + TAIL.lstrip()
)
SLEEP = "import time\nfrom mpi4py import MPI\nprint('up', MPI.COMM_WORLD.rank)\ntime.sleep(600)\n"
STUBBORN = """
import signal, time
from mpi4py import MPI
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print("up", MPI.COMM_WORLD.rank)
while True:
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _impatient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of this process get a short grace after each signal; `patient` tests get the real one."""
    if "patient" not in request.fixturenames:
        monkeypatch.setattr(supervise, "GRACE_S", 0.3)
        monkeypatch.setattr(supervise, "SAVE_S", 0.3)


@pytest.fixture
def patient() -> None:
    """The real grace."""


def _run(path: Path, *arguments: object, **options: object) -> Run:
    return run_script(path, *arguments, **{"ranks": 2, "timeout": 30, **options})


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    taken = time.monotonic() - start
    assert taken < seconds, f"it took {taken:.1f} s and may take {seconds:g} s"


@pytest.mark.parametrize(
    ("deed", "status", "words"),
    [
        ("sys.exit(3)", 3, "first on rank 1: exit status 3"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            9,
            "a rank was killed (signal 9), as the system does when memory",
        ),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            11,
            "train failed first on rank 1: a rank crashed in native code (signal 11)",
        ),
    ],
)
def test_when_one_rank_goes_the_job_ends(
    script: Write, results: Path, no_process_left, deed: str, status: int, words: str
) -> None:
    with pytest.raises(JobFailed) as caught:
        _run(script(ONE_GOES.format(deed)))
    assert caught.value.status == status
    assert words in str(caught.value).splitlines()[0]
    no_process_left(caught.value.run.id)


def test_a_rank_that_aborts_ends_the_job(script: Write, results: Path, no_process_left) -> None:
    with pytest.raises(JobFailed) as caught:
        _run(script(ONE_GOES.format("MPI.COMM_WORLD.Abort(5)")))
    assert caught.value.status == 5
    assert "exit status 5" in str(caught.value).splitlines()[0]
    no_process_left(caught.value.run.id)


def test_the_error_is_the_first_ranks_own_traceback(
    script: Write, results: Path, no_process_left
) -> None:
    with pytest.raises(JobFailed) as caught:
        _run(script(ONE_GOES.format("raise ValueError('one has had enough')")))
    assert caught.value.status == 1
    first, *traceback, last = str(caught.value).splitlines()
    assert first.startswith("train failed first on rank 1: ") and last.startswith("All it said: ")
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: one has had enough"
    assert [line for line in traceback if line.startswith("  File ")] == [
        f'  File "{results.parent}/train.py", line 4, in <module>'
    ]


ENDLESS = {
    "stopped": ONE_GOES.format("print('up 1'); os.kill(os.getpid(), signal.SIGSTOP)"),
    "deaf": STUBBORN,
    "waiting for a message": "from mpi4py import MPI\nprint('up')\nMPI.COMM_WORLD.recv()\n",
    "busy printing": "from mpi4py import MPI\nwhile True: print('up', 'x' * 99)\n",
}


@pytest.mark.parametrize("why", ENDLESS)
def test_a_job_that_does_not_end_is_ended(
    script: Write, results: Path, no_process_left, time_is_up_at, why: str
) -> None:
    time_is_up_at("up")
    with pytest.raises(JobTimeout, match="did not end within 300 s") as caught:
        _run(script(ENDLESS[why]), timeout=300)
    assert "up" in caught.value.run.output
    assert caught.value.status == 124 and caught.value.run.status is None
    first, *places = str(caught.value).splitlines()
    assert "--timeout" in first and places
    # The time is up at the word of one rank; another may only be starting.
    assert all(" stood in " in place or " had not begun " in place for place in places)
    no_process_left(caught.value.run.id)


def test_a_deaf_job_with_a_deaf_mpirun_is_ended_after_the_real_grace(
    patient: None, script: Write, results: Path, no_process_left
) -> None:
    """mpirun is stopped, so that it answers no signal but SIGKILL."""

    def stop(line: str) -> None:
        if "up 0" in line:
            os.kill(_pid_of(_only_run(results), "mpirun"), signal.SIGSTOP)

    with pytest.raises(JobTimeout) as caught:
        _run(script(STUBBORN), echo=stop, timeout=10)
    least_s = 10 + supervise.SAVE_S + supervise.GRACE_S
    assert least_s <= caught.value.run.wall_s < 10 + GRACE_S + BUSY_S
    no_process_left(caught.value.run.id)


@pytest.mark.parametrize("timeout", [0.01, 0.4])
def test_a_job_that_is_ended_while_it_starts_leaves_nothing(
    script: Write, results: Path, no_process_left, timeout: float
) -> None:
    with _within(GRACE_S + BUSY_S), pytest.raises(JobTimeout) as caught:
        _run(script(STUBBORN), timeout=timeout)
    no_process_left(caught.value.run.id)


DAEMON = """
import os, sys, time
from mpi4py import MPI

if MPI.COMM_WORLD.rank == 0 and os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    # a process with a session of its own, a child of nobody, that holds the output open
    while True:
        print('still here', flush=True)
        time.sleep(0.01)
print("done", MPI.COMM_WORLD.rank)
time.sleep(600)
"""


def test_a_daemon_that_a_rank_leaves_behind_is_ended_too(
    script: Write, results: Path, no_process_left, time_is_up_at
) -> None:
    time_is_up_at("done 0")
    with pytest.raises(JobTimeout) as caught:
        _run(script(DAEMON), timeout=300)
    assert (0, "done 0") in caught.value.run.lines
    no_process_left(caught.value.run.id)


def test_children_that_are_born_while_the_job_ends_are_ended_too(
    script: Write, results: Path, no_process_left, time_is_up_at
) -> None:
    text = """
        import os, signal, time
        from mpi4py import MPI
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            while True:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                time.sleep(0.01)
        print("up")
        time.sleep(600)
    """
    time_is_up_at("up")
    with pytest.raises(JobTimeout) as caught:
        _run(script(text), timeout=300, ranks=1)
    no_process_left(caught.value.run.id)


def _only_run(results: Path) -> str:
    (folder,) = (results / "train").iterdir()
    return folder.name


def _pid_of(run_id: str, program: str) -> int:
    for pid in left_of(run_id):
        if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(program.encode()):
            return pid
    raise AssertionError(f"no {program} in this job")


def test_when_mpirun_itself_is_killed_the_job_ends(
    script: Write, results: Path, no_process_left
) -> None:
    def kill(line: str) -> None:
        if "up 0" in line:
            os.kill(_pid_of(_only_run(results), "mpirun"), signal.SIGKILL)

    with pytest.raises(JobFailed, match="mpirun itself was ended by signal 9") as caught:
        _run(script(SLEEP), echo=kill)
    assert caught.value.status == 137  # as a shell counts it
    no_process_left(caught.value.run.id)


# The command, from outside


class Started:
    """A `scaleout run` in a session of its own, as in a terminal; its output arrives in `lines`."""

    def __init__(self, path: Path, *words: str, **options: object) -> None:
        line = [COMMAND, "run", str(path), "-n", "2", "-t", "1", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(
            line, start_new_session=True, **{**pipes, "preexec_fn": heed_signals, **options}
        )

    def wait_for(self, *wanted: str) -> None:
        missing = set(wanted)
        while missing:
            line = self.process.stdout.readline()
            assert line, self.process.communicate(timeout=300)
            missing -= {word for word in missing if word in line}

    def end(self, within_s: float) -> str:
        with _within(within_s):
            try:
                return self.process.communicate(timeout=within_s + 30)[1]
            finally:
                self.process.kill()  # it still holds cores if its time is up


@pytest.mark.parametrize("text", [SLEEP, STUBBORN], ids=["asleep", "deaf"])
def test_ctrl_c_ends_the_job_in_order(
    script: Write, results: Path, run_id, no_process_left, text: str
) -> None:
    started = Started(script(text))
    started.wait_for("up 0", "up 1")
    assert (
        os.getsid(_pid_of(run_id(), "mpirun")) != started.process.pid
    )  # so the terminal reaches the command alone
    os.killpg(started.process.pid, signal.SIGINT)
    said = started.end(within_s=GRACE_S + BUSY_S)
    assert said.startswith("scaleout: Interrupted after ") and said.endswith(
        " s: the job has been ended.\n"
    )
    assert started.process.returncode == 130
    no_process_left(run_id())


class Locks(subprocess.Popen):
    """What a Ctrl-C at the wrong moment leaves behind: a lock that no later wait() gets."""

    def poll(self) -> None:
        self._waitpid_lock.acquire(blocking=False)
        raise KeyboardInterrupt

    def wait(self, timeout: float | None = None) -> int | None:
        return super().wait() if timeout is None else self.poll()


@pytest.mark.timeout(90)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_ctrl_c_at_any_moment_lets_the_job_end(
    script: Write,
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_process_left,
    interrupted: bool,
) -> None:
    def echo(line: str) -> None:
        if interrupted and "up 1" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Locks)
    with pytest.raises(JobInterrupted) if interrupted else contextlib.nullcontext():
        _run(script(SLEEP if interrupted else SLEEP.replace("600", "0")), echo=echo)
    no_process_left(_only_run(results))


def test_ctrl_c_twice_leaves_the_ending_to_the_supervisor(
    script: Write, results: Path, run_id, no_process_left
) -> None:
    started = Started(script(STUBBORN))
    started.wait_for("up 0", "up 1")
    os.kill(
        _pid_of(run_id(), "mpirun"), signal.SIGSTOP
    )  # so that it answers neither SIGINT nor SIGTERM
    for _ in range(2):
        os.killpg(started.process.pid, signal.SIGINT)
        time.sleep(0.5)
    said = started.end(within_s=BUSY_S)
    assert "Traceback" not in said and said.count("\n") == 1
    assert said.endswith(
        ("the job is being ended.\n", "the job has been ended.\n")
    )  # as quick as the supervisor was
    assert started.process.returncode == 130
    no_process_left(run_id(), within_s=GRACE_S + BUSY_S)


@pytest.mark.parametrize(
    ("text", "number"),
    [(SLEEP, signal.SIGTERM), (SLEEP, signal.SIGHUP), (STUBBORN, signal.SIGKILL)],
    ids=["asleep", "hung up", "deaf"],
)
def test_when_the_command_is_ended_its_job_ends(
    script: Write, results: Path, run_id, no_process_left, number: signal.Signals, text: str
) -> None:
    started = Started(script(text))
    started.wait_for("up 0", "up 1")
    os.killpg(started.process.pid, number)
    started.end(within_s=GRACE_S + BUSY_S)
    assert started.process.returncode == (-number if number == signal.SIGKILL else 130)
    no_process_left(run_id(), within_s=GRACE_S + BUSY_S)
    (folder,) = (results / "train").iterdir()
    assert "[0] up 0\n" in (folder / "output.txt").read_text()  # what came so far is kept


HEARS = """
import os, signal, time
from mpi4py import MPI
told = []
signal.signal(signal.SIGUSR{number}, lambda n, _: told.append(n))
{forks}
print("up", MPI.COMM_WORLD.rank, flush=True)
while not told:
    time.sleep(0.01)
print("saved", MPI.COMM_WORLD.rank, len(told))
"""
CHILD = "if not os.fork():\n    time.sleep(0.5)\n    os._exit(0)"  # which has the handler, too


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("forks", ["", CHILD], ids=["", "forks"])
def test_a_warning_goes_to_the_ranks_that_listen_and_the_job_goes_on(
    script: Write, results: Path, run_id, no_process_left, number: int, forks: str
) -> None:
    started = Started(script(HEARS.format(number=number, forks=forks)))
    started.wait_for("up 0", "up 1")
    os.kill(started.process.pid, getattr(signal, f"SIGUSR{number}"))
    assert started.end(within_s=BUSY_S) == "" and started.process.returncode == 0
    output = (results / "train" / run_id() / "output.txt").read_text()
    assert "[0] saved 0 1" in output and "[1] saved 1 1" in output
    no_process_left(run_id())


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU", "SIGPWR"])
def test_a_signal_that_nobody_listens_for_ends_the_job_in_order(
    script: Write, results: Path, run_id, no_process_left, name: str
) -> None:
    text = SLEEP
    if name == "SIGUSR1":  # which MPICH itself handles, once a rank has begun MPI
        text = "import os, time\nprint('up', os.environ['RANK'])\ntime.sleep(600)\n"
    started = Started(script(text))
    started.wait_for("up 0", "up 1")
    os.kill(started.process.pid, getattr(signal, name))
    said = started.end(within_s=GRACE_S + BUSY_S)
    assert said.startswith(f"scaleout: Interrupted by {name} after ")
    assert started.process.returncode == 130
    assert (results / "train" / run_id() / "run.json").exists()
    no_process_left(run_id())


@pytest.mark.parametrize("line", ["loaded shard 7", "epoch: 3", "Done:"])
def test_the_reason_is_told_whatever_a_rank_prints_beside_it(
    script: Write, results: Path, line: str
) -> None:
    """Its two streams come by pipes of their own, and in any order."""
    text = (
        f"import threading\nfrom mpi4py import MPI\ndef says():\n    while True: print({line!r})\n"
    )
    text += "threading.Thread(target=says, daemon=True).start()\ndef deep(n):\n"
    text += "    return deep(n - 1) if n else {}['labels']\ndeep(9)\n"
    with pytest.raises(JobFailed, match="KeyError: 'labels'\nAll it said: "):
        _run(script(text), ranks=1)


def test_a_module_runs_as_behind_python(results: Path) -> None:
    package = results.parent / "pkg"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "helper.py").write_text("WORD = 'trained'\n")
    (package / "train.py").write_text("from .helper import WORD\nprint(WORD)\n")
    line = [COMMAND, "run", "-n", "2", "-t", "1"]
    how = {"cwd": results.parent, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([*line, "-m", "pkg.train"], **how)
    assert done.returncode == 0 and done.stdout.count("trained") == 2, done.stderr
    asked = subprocess.run([*line, "pkg.train"], **how)
    assert asked.stderr == "scaleout: pkg.train is a module: type  scaleout run -m pkg.train\n"


SAVES = """
    import os, signal, time
    {imports}
    rank, told = os.environ["RANK"], []
    for number in {taken}:
        signal.signal(number, lambda n, _: told.append(n))
    print("up", rank, flush=True)
    while not told:
        time.sleep(0.01)
    print("x" * 200_000)  # mpirun needs somebody who reads
    time.sleep(1)
    open(f"{folder}/saved-" + rank, "w").close()
    print("saved", rank)
    """


BOTH, AS_SLURM = "signal.SIGINT, signal.SIGTERM", "[signal.SIGTERM]"


@pytest.mark.parametrize("imports", ["", "from mpi4py import MPI"], ids=["alone", "MPI"])
@pytest.mark.parametrize(
    ("number", "taken"),
    [
        (signal.SIGINT, BOTH),
        (signal.SIGTERM, BOTH),
        (signal.SIGHUP, BOTH),
        (signal.SIGINT, AS_SLURM),
        (signal.SIGTERM, AS_SLURM),
    ],
)
def test_ranks_save_their_state_before_the_job_is_gone(
    script: Write,
    results: Path,
    run_id,
    no_process_left,
    number: signal.Signals,
    taken: str,
    imports: str,
) -> None:
    folder = results.parent
    started = Started(script(SAVES.format(imports=imports, folder=folder, taken=taken)))
    started.wait_for("up 0", "up 1")
    os.killpg(started.process.pid, number)
    said = started.end(within_s=GRACE_S + BUSY_S)
    assert "the job has been ended" in said and started.process.returncode == 130
    assert {path.name for path in folder.glob("saved-*")} == {"saved-0", "saved-1"}
    no_process_left(run_id())
    output = (results / "train" / run_id() / "output.txt").read_text()
    assert "[0] saved 0" in output and "[1] saved 1" in output


@pytest.mark.parametrize(
    "taken", [AS_SLURM, BOTH, "[signal.SIGTERM] if rank == '0' else [signal.SIGINT]"]
)
def test_ranks_save_their_state_when_their_time_is_up(
    patient: None, script: Write, results: Path, no_process_left, time_is_up_at, taken: str
) -> None:
    folder = results.parent
    text = SAVES.format(imports="from mpi4py import MPI", folder=folder, taken=taken)
    text = text.replace('print("up"', 'MPI.COMM_WORLD.Barrier(); print("up"')
    time_is_up_at("up")
    with pytest.raises(JobTimeout) as caught:
        _run(script(text), timeout=300)
    assert {path.name for path in folder.glob("saved-*")} == {"saved-0", "saved-1"}
    assert {"saved 0", "saved 1"} < {text for _, text in caught.value.run.lines}
    assert "PMI calls" not in caught.value.run.output
    no_process_left(caught.value.run.id)


def test_a_job_behind_nohup_goes_on_when_the_terminal_is_closed(
    script: Write, results: Path, run_id
) -> None:
    go = results.parent / "go"
    waits = f"""
        import os, time
        print('up', os.environ['RANK'])
        while not os.path.exists({str(go)!r}):
            time.sleep(0.01)
        """
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    started = Started(script(waits), preexec_fn=ignore)
    started.wait_for("up 0", "up 1")
    os.killpg(started.process.pid, signal.SIGHUP)
    go.touch()
    started.end(within_s=BUSY_S)
    assert started.process.returncode == 0


ONE_FAILS = """
    import os, sys, time
    if os.environ["RANK"] == "1":
        {fails}
    time.sleep({others_s})
    """


@pytest.mark.parametrize(
    ("fails", "last"),
    [
        ("raise ValueError('no input')", "ValueError: no input"),
        ("raise OSError('two lines:\\n    of one') from KeyError('x')", "    of one"),
        ("try: 1 / 0\n        except Exception: open('/no/such')", "FileNotFoundError"),
    ],
    ids=["plain", "chained", "while handling"],
)
def test_ranks_that_wait_for_one_which_has_failed_are_ended(
    script: Write, results: Path, no_process_left, monkeypatch: pytest.MonkeyPatch,
    fails: str, last: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(failed_ranks, "PATIENCE_S", 1.0)
    with pytest.raises(JobFailed) as caught:
        _run(script(ONE_FAILS.format(fails=fails, others_s=600)), timeout=300)
    first, *more = str(caught.value).splitlines()
    assert "failed first on rank 1: exit status 1" in first
    assert first.endswith("The others waited for it, and were ended.")
    assert any(last in line for line in more) and "--timeout" not in str(caught.value)
    assert caught.value.status == 1
    no_process_left(caught.value.run.id)


@pytest.mark.parametrize(
    "fails",
    [
        "print('Traceback (most recent call last):\\n  ...\\nZeroDivisionError: x\\ngoes on')",
        "sys.exit(0)",
    ],
    ids=["logs a traceback", "has no more to do"],
)
def test_a_rank_that_ends_before_the_others_ends_no_job(
    script: Write, results: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(failed_ranks, "PATIENCE_S", 0.5)
    assert _run(script(ONE_FAILS.format(fails=fails, others_s=5)), timeout=300).status == 0


ONE_WAITS = """
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == {waits}:
        MPI.COMM_WORLD.send(0, {leaves}), MPI.COMM_WORLD.recv()
    print("up", MPI.COMM_WORLD.recv())
    """
TWO_LEAVE = """
    import os, sys, time
    from pathlib import Path
    mine = Path(__file__).with_name("left-" + os.environ["RANK"])
    if os.environ["RANK"] != "0":
        print("leaves")
        mine.touch()
        sys.exit(0)
    while len([*mine.parent.glob("left-*")]) < 2:
        time.sleep(0.01)
    print("up 0")
    time.sleep(600)
    """
AT_ITS_END = "had come to the end of its script"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (ONE_WAITS.format(waits=0, leaves=1), ["line 4", AT_ITS_END]),
        (ONE_WAITS.format(waits=1, leaves=0), [AT_ITS_END, "line 4"]),
        (TWO_LEAVE, ["line 12", AT_ITS_END, AT_ITS_END]),
    ],
    ids=["rank 1", "rank 0", "two of three without MPI"],
)
def test_a_rank_that_has_come_to_its_end_is_named_when_time_is_up(
    script: Write, results: Path, time_is_up_at, text: str, places: list[str]
) -> None:
    time_is_up_at("up 0", settle_s=2.0)
    with pytest.raises(JobTimeout) as caught:
        _run(script(text), ranks=len(places), timeout=300)
    stood = f"stood in {os.path.relpath(script(text))}, "
    assert str(caught.value).splitlines()[1:] == [
        f"rank {rank} {place if place == AT_ITS_END else stood + place}"
        for rank, place in enumerate(places)
    ]


def test_a_rank_that_has_not_begun_is_not_said_to_have_ended(
    script: Write, results: Path, time_is_up_at
) -> None:
    """Of what is no Python yet, nothing is known."""
    waits = script("", "waits")
    waits.unlink()
    text = f"""
        import os, time
        if os.environ["PMI_RANK"] == "1":
            os.execlp("sh", "sh", "-c", "touch {waits}; exec sleep 600")
        while not os.path.exists("{waits}"):
            time.sleep(0.01)
        print("up")
        time.sleep(600)
        """
    time_is_up_at("up")
    with pytest.raises(JobTimeout) as caught:
        _run(script(text), timeout=300)
    assert str(caught.value).splitlines()[2:] == [
        "rank 1 had not begun its script, or had come to its end"
    ]


READS = """
    import sys
    from mpi4py import MPI
    print("heard", sys.stdin.read())
"""


def test_standard_input_goes_to_rank_0_as_mpirun_does_it(script: Write, results: Path) -> None:
    line = [COMMAND, "run", str(script(READS)), "-n", "2", "-t", "1"]
    done = subprocess.run(line, input="a word", capture_output=True, text=True, timeout=300)
    said = [text.rstrip() for text in done.stdout.splitlines() if "heard" in text]
    assert done.returncode == 0 and sorted(said) == ["[0] heard a word", "[1] heard"]


def test_a_job_of_a_notebook_has_no_standard_input(script: Write, results: Path) -> None:
    """A kernel's never ends, so that a rank would wait for ever."""
    assert sorted(_run(script(READS)).lines) == [(0, "heard "), (1, "heard ")]


def test_a_job_that_hangs_says_where_each_rank_stood(script: Write, results: Path) -> None:
    text = """
        import time
        from mpi4py import MPI
        print("up", flush=True)
        if MPI.COMM_WORLD.rank:
            time.sleep(600)
        MPI.COMM_WORLD.recv()
    """
    said: list[str] = []
    with pytest.raises(JobTimeout) as caught:
        _run(script(text), timeout=5, echo=said.append)
    path = show(results.parent / "train.py")
    assert str(caught.value).splitlines()[1:] == [
        f"rank 0 stood in {path}, line 7",
        f"rank 1 stood in {path}, line 6",
    ]
    assert sum("up" in line for line in said) == 2 and not any("most recent" in s for s in said)


def test_a_missing_mpirun_is_one_sentence(tmp_path: Path, script: Write, results: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    code = "from scaleout import cli; raise SystemExit(cli.main(['run', 'train.py']))"
    script("print('never')")
    environment = {**os.environ, "PYTHONPATH": str(Path(launch.__file__).parents[2])}
    command = [str(tmp_path / "bare/bin/python"), "-c", code]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert (
        done.stderr
        == "scaleout: There is no mpirun in this environment (bare/bin): type  make lab  to mend it.\n"
    )
    assert not list(results.rglob("*"))


def test_a_host_that_cannot_be_reached_is_named(
    script: Write, tmp_path: Path, results: Path
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname' >&2\nexit 255\n")
    ssh.chmod(0o755)
    site = Site(hosts=("nosuchhost",), ssh=str(ssh))
    with pytest.raises(JobFailed) as caught:
        _run(script("print(1)"), site=site, ranks=1)
    assert str(caught.value) == (
        "nosuchhost cannot be reached over ssh: correct the name, or type  ssh nosuchhost true  "
        "to see why."
    )
    assert caught.value.status != 0


def test_a_record_that_a_killed_rank_left_half_written_is_a_warning(
    script: Write, results: Path, no_process_left
) -> None:
    text = """
        import os, signal
        from mpi4py import MPI
        from scaleout import records
        records.write(lab="train", variant="whole")
        with open(os.environ["SCALEOUT_RECORDS"], "a") as file:
            file.write('{"schema": 1, "run_id": "2')
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    with pytest.raises(JobFailed) as caught:
        _run(script(text), ranks=1)
    with pytest.warns(UserWarning, match=r"records\.jsonl, line 2: no record"):
        assert caught.value.run.records["variant"].tolist() == ["whole"]
    no_process_left(caught.value.run.id)


CHATTY = "from mpi4py import MPI\nfor i in range(1_000_000): print('x' * 99)\n"


def test_a_quota_ends_the_job_with_one_sentence(
    script: Write, results: Path, no_process_left, run_id
) -> None:
    go = results.parent / "go"
    waits = f"import os, time\nprint('up')\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.01)\n"
    started = Started(script(waits + CHATTY))
    started.wait_for("up")
    resource.prlimit(
        started.process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000)
    )  # of the command alone
    go.touch()
    said = started.end(within_s=GRACE_S + BUSY_S)
    assert started.process.returncode == 2 and said.count("\n") == 1
    assert (
        "train was ended because its output cannot be written (File too large): make room" in said
    )
    no_process_left(run_id())


def test_output_that_goes_to_a_full_disk_ends_the_job_with_one_sentence(
    script: Write, results: Path, no_process_left
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, "run", str(script(CHATTY))],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.returncode == 2, done
    assert done.stderr.startswith("scaleout: No space left on device: make room"), done
    assert done.stderr.count("\n") == 1, done
    for folder in results.glob("train/*"):
        no_process_left(folder.name)
