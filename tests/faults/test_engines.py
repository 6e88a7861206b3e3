"""ipyparallel engines: they start in time, are encrypted, end cells that nobody can answer, leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ipyparallel as ipp
import psutil
import pytest
import zmq
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output
from jupyter_client.manager import start_new_kernel

from scaleout import ScaleoutError, engines, launch, reaper
from scaleout.engines import Engines

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(180)]

START_S = 60.0
CELL_ENDS_S = 5.0  # the bound for a cell whose engines have gone; measured: below 1 s
GONE_S = 15.0  # reaper's five signals of 2 s, and a busy machine
SAME = """
from mpi4py import MPI
from scaleout import data
comm = MPI.COMM_WORLD
mine = data.shard(1001, comm.rank, comm.size)
total = comm.allreduce(sum(k * k for k in range(mine.start, mine.stop)))
print(f"rank {comm.rank} has {mine.stop - mine.start} rows and knows {total}")
"""


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    return InteractiveShell.instance()  # where %%px registers itself


@pytest.fixture
def two(shell: InteractiveShell) -> Iterator[Engines]:
    """Two engines, started; nothing of them is left when the test ends."""
    made = Engines(2)
    made.start()
    yield made
    run_id = made._run_id
    made.stop()
    assert not reaper.processes(run_id)


def _cell(shell: InteractiveShell, text: str) -> tuple[ExecutionResult, str]:
    with capture_output() as captured:
        result = shell.run_cell(text)
    return result, captured.stdout


def _command(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline())


def test_they_start_in_time_and_engine_id_is_rank(two: Engines) -> None:
    start = time.monotonic()
    client = two.reset()  # the whole way: end two, start two
    assert time.monotonic() - start < START_S
    assert client.ids == [0, 1]
    said = client[:].apply_sync(lambda: (__import__("mpi4py.MPI").MPI.COMM_WORLD.rank, os.environ["OMP_NUM_THREADS"]))
    assert said == [(0, str(two.threads)), (1, str(two.threads))]


def test_px_and_mpirun_give_the_same_answer(two: Engines, shell: InteractiveShell, results: Path, script) -> None:
    result, said = _cell(shell, "%%px\n" + SAME)
    assert result.success, said
    from_engines = sorted(line.partition("] ")[2] or line for line in said.splitlines() if "rank " in line)
    job = launch.run(["python", "-m", "mpi4py", str(script(SAME))], name="same", ranks=2, threads=1, echo=None)
    total = sum(k * k for k in range(1001))
    wanted = [f"rank 0 has 500 rows and knows {total}", f"rank 1 has 501 rows and knows {total}"]
    assert from_engines == sorted(text for _, text in job.lines) == wanted


def test_they_are_encrypted_and_not_open_to_other_machines(two: Engines, tmp_path: Path) -> None:
    (path,) = Path(two._folder.name, "security").glob("*client.json")
    connection = json.loads(path.read_text())
    assert len(connection["curve_serverkey"]) == 40  # as CURVE's keys are; whoever has no right to this file lacks it
    assert oct(path.stat().st_mode & 0o077) == "0o0"
    # Engines themselves are left out here: MPI opens ports of its own in them, as in every job.
    open_to = {
        found.laddr.ip
        for pid in reaper.processes(two._run_id)
        for found in psutil.Process(pid).net_connections("inet")
        if found.status == psutil.CONN_LISTEN and any(part in _command(pid) for part in ("controller", "nanny"))
    }
    assert open_to == {"127.0.0.1"}
    with ipp.Client(str(path), timeout=20) as known:
        assert known.ids == [0, 1]
    for number, key in enumerate([{}, {"curve_serverkey": zmq.curve_keypair()[0].decode()}]):  # no key, a wrong key
        other = tmp_path / f"{number}.json"
        other.write_text(json.dumps({name: value for name, value in connection.items() if "curve" not in name} | key))
        with pytest.raises(TimeoutError):
            ipp.Client(str(other), timeout=3)


@pytest.mark.parametrize("who", ["one engine", "every engine and its nanny", "mpirun", "the controller"])
def test_a_cell_ends_when_nobody_can_answer_it(two: Engines, shell: InteractiveShell, who: str) -> None:
    """It ends with an error within a bound; so does the next; reset brings two fresh engines."""
    run_id = two._run_id
    ranks = two.client[:].apply_sync(os.getpid)
    commands = {pid: _command(pid) for pid in reaper.processes(run_id)}
    doomed = {
        "one engine": ranks[1:],
        "every engine and its nanny": [pid for pid, line in commands.items() if "controller" not in line],
        "mpirun": [pid for pid, line in commands.items() if "bin/mpirun" in line],
        "the controller": [pid for pid, line in commands.items() if "controller" in line],
    }[who]
    assert doomed
    killer = f"import os, time; time.sleep(1.5); [os.kill(p, 9) for p in {doomed} if os.path.exists(f'/proc/{{p}}')]"
    with subprocess.Popen([sys.executable, "-c", killer]) as later:
        start = time.monotonic()
        result, _ = _cell(shell, "%%px\nimport time; time.sleep(600)")
        ended_s = time.monotonic() - start
        later.wait(10)
    assert not result.success
    assert 1.0 < ended_s < 1.5 + CELL_ENDS_S, f"the cell ended after {ended_s:.1f} s"
    start = time.monotonic()
    result, _ = _cell(shell, "%%px\nprint(1)")
    assert not result.success and time.monotonic() - start < CELL_ENDS_S
    two.reset()
    assert not reaper.processes(run_id)
    result, said = _cell(shell, "%%px\nprint('alive')")
    assert result.success and said.count("alive") == 2


def test_a_cell_that_fails_is_red_and_the_engines_live(two: Engines, shell: InteractiveShell) -> None:
    result, _ = _cell(shell, "%%px\nraise ValueError('on purpose')")
    assert not result.success
    result, said = _cell(shell, "%%px\nprint('alive')")
    assert result.success and said.count("alive") == 2


def _fails(made: Engines, within_s: float) -> str:
    start = time.monotonic()
    with pytest.raises(ScaleoutError) as caught:
        made.start()
    assert time.monotonic() - start < within_s
    assert not (made._run_id and reaper.processes(made._run_id)) and made._guard is None and made.client is None
    sentence = str(caught.value)
    assert "\n" not in sentence and "type " in sentence
    return sentence


def test_a_limit_of_one_second_is_kept() -> None:
    assert "2 engines did not start (TimeoutError" in _fails(Engines(2, start_timeout=1), 1 + GONE_S)


def test_without_mpirun_it_says_so_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "There is no mpirun in this environment" in _fails(Engines(2), 2)


@pytest.mark.parametrize("mpirun", ["/bin/false", "/no/such/mpirun"])
def test_an_mpirun_that_does_not_work_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, mpirun: str) -> None:
    monkeypatch.setattr(engines, "program", lambda name: mpirun)
    assert "2 engines did not start" in _fails(Engines(2, start_timeout=30), 30)


def test_a_controller_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "ipyparallel" / "controller"
    package.mkdir(parents=True)
    for name, text in (("../__init__", ""), ("__init__", ""), ("__main__", "import time; time.sleep(600)")):
        (package / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "2 engines did not start (TimeoutError" in _fails(Engines(2, start_timeout=4), 4 + GONE_S)


@pytest.mark.parametrize("how", [{"ranks": 0}, {"ranks": 2, "start_timeout": 0}])
def test_engines_that_make_no_sense_are_refused(how: dict[str, int]) -> None:
    with pytest.raises(ScaleoutError, match="at least 1 rank and a limit above 0 s"):
        Engines(**how)


OWNER = """
    import os, sys, time
    from scaleout.engines import Engines
    made = Engines(2)
    client = made.start()
    client[:].apply_async(time.sleep, 600)
    print(made._run_id, flush=True)
    {end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), 9)",
        "os.kill(os.getpid(), 15); time.sleep(600)",
        "raise ValueError('the next cell fails')",
        "sys.exit(0)",
        "os._exit(1)",
    ],
)
def test_they_go_when_their_owner_goes(end: str, script, no_process_left) -> None:
    owner = [sys.executable, str(script(textwrap.dedent(OWNER).format(end=end)))]
    done = subprocess.run(owner, capture_output=True, text=True, timeout=START_S + GONE_S)
    run_id = done.stdout.strip()
    assert run_id.startswith("engines-"), done.stderr[-2000:]
    no_process_left(run_id, within_s=GONE_S)


@pytest.fixture
def kernel(results: Path, tmp_path: Path) -> Iterator[Callable[..., tuple[str, str, str]]]:
    """A notebook's kernel: kernel(code) runs a cell and gives (status, what it printed, the error's name).

    interrupt_after_s: presses the stop button then.
    """
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path), startup_timeout=60)

    def run_cell(code: str, interrupt_after_s: float = 0.0, within_s: float = START_S) -> tuple[str, str, str]:
        sent, end, said, status = client.execute(code), time.monotonic() + within_s, "", ""
        if interrupt_after_s:
            time.sleep(interrupt_after_s)
            manager.interrupt_kernel()
        while time.monotonic() < end:
            message = client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            if message["parent_header"].get("msg_id") != sent:
                continue
            content = message["content"]
            said += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            status = content.get("ename", status)
            if content.get("execution_state") == "idle":
                return "error" if status else "ok", said, status
        raise AssertionError(f"the cell did not end within {within_s:g} s; it said {said!r}")

    run_cell.manager = manager  # type: ignore[attr-defined]
    yield run_cell
    client.stop_channels()
    if manager.is_alive():
        manager.shutdown_kernel(now=True)


START_CELL = "from scaleout.engines import Engines\nengines = Engines(2)\nengines.start()\nprint(engines._run_id)"


def test_ranks_that_wait_for_each_other_for_ever_can_be_stopped_and_reset(kernel, no_process_left) -> None:
    status, said, _ = kernel(START_CELL)
    assert status == "ok"
    first = said.split()[-1]
    stuck = "%%px\nfrom mpi4py import MPI\nMPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.rank)"
    kernel(stuck, interrupt_after_s=3.0, within_s=20)
    status, said, error = kernel("engines.reset()\nprint(engines._run_id)")
    assert status == "ok", error
    no_process_left(first)
    status, said, _ = kernel("%%px\nprint('alive')")
    assert status == "ok" and said.count("alive") == 2


@pytest.mark.parametrize("end", ["killed", "restarted", "shut down"])
def test_they_go_when_the_kernel_goes(kernel, no_process_left, end: str) -> None:
    _, said, _ = kernel(START_CELL)
    run_id = said.split()[-1]
    assert len(reaper.processes(run_id)) > 2
    manager = kernel.manager
    if end == "killed":
        os.kill(manager.provisioner.pid, signal.SIGKILL)
    elif end == "restarted":
        manager.restart_kernel(now=True)
    else:
        manager.shutdown_kernel()
    no_process_left(run_id, within_s=GONE_S)
