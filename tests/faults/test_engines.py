"""ipyparallel engines: they start in time, are encrypted, end cells that nobody can answer, leave
nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import ipyparallel as ipp
import psutil
import pytest
import zmq
from faults.kernel import Notebook
from helpers import left_of, until
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output

from scaleout.base.errors import ScaleoutError
from scaleout.engines import Engines
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

START_S = 120.0
# Within a second of the engines' end, on a calm machine. ipyparallel by itself takes 35 s, or for ever.
CELL_ENDS_S = 30.0
GONE_S = 60.0  # the supervisor's four signals of 2 s, and a busy machine
RANK = """
import os
from mpi4py import MPI
told = MPI.COMM_WORLD.rank, os.environ["OMP_NUM_THREADS"]
"""
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


@pytest.fixture(scope="module")
def pair(shell: InteractiveShell) -> Iterator[Engines]:
    """Two engines for the tests of this file; nothing of them is left in the end."""
    made = Engines(2)
    made.start()
    yield made
    run_id = made._run_id
    made.stop()
    assert not left_of(run_id)


@pytest.fixture
def two(pair: Engines, shell: InteractiveShell) -> Engines:
    """They live when the test begins, whatever the one before has done to them."""
    result, said = _cell(shell, "%%px\nprint('alive')")
    if not result.success or said.count("alive") != 2:
        pair.reset()
    return pair


def _cell(shell: InteractiveShell, text: str) -> tuple[ExecutionResult, str]:
    with capture_output() as captured:
        result = shell.run_cell(text)
    return result, captured.stdout


def _run_id(said: str) -> str:
    """In what a cell has shown, a progress bar perhaps before it."""
    (found,) = re.findall(r"engines-[0-9a-f]{12}", said)
    return found


def _command(pid: int) -> str:
    return " ".join(psutil.Process(pid).cmdline())


def test_they_start_anew_and_engine_id_is_rank(two: Engines) -> None:
    before = two._run_id
    client = two.reset()  # the whole way: end two, start two
    assert two._run_id != before and not left_of(before)
    assert client.ids == [0, 1]
    everybody = client[:]
    everybody.execute(RANK, block=True)
    assert everybody["told"] == [(0, str(two.threads)), (1, str(two.threads))]


def test_px_and_mpirun_give_the_same_answer(
    two: Engines, shell: InteractiveShell, results: Path, script
) -> None:
    result, said = _cell(shell, "%%px\n" + SAME)
    assert result.success, said
    from_engines = sorted(
        line.partition("] ")[2] or line for line in said.splitlines() if "rank " in line
    )
    job = launch.run(
        ["python", "-m", "mpi4py", str(script(SAME))], name="same", ranks=2, threads=1, echo=None
    )
    total = sum(k * k for k in range(1001))
    wanted = [f"rank 0 has 500 rows and knows {total}", f"rank 1 has 501 rows and knows {total}"]
    assert from_engines == sorted(text for _, text in job.lines) == wanted


def test_they_are_encrypted_and_not_open_to_other_machines(two: Engines, tmp_path: Path) -> None:
    (path,) = Path(two._folder.name, "security").glob("*client.json")
    connection = json.loads(path.read_text())
    assert (
        len(connection["curve_serverkey"]) == 40
    )  # as CURVE's keys are; whoever has no right to this file lacks it
    assert oct(path.stat().st_mode & 0o077) == "0o0"
    # Engines themselves are left out here: MPI opens ports of its own in them, as in every job.
    open_to = {
        found.laddr.ip
        for pid in left_of(two._run_id)
        for found in psutil.Process(pid).net_connections("inet")
        if found.status == psutil.CONN_LISTEN
        and any(part in _command(pid) for part in ("controller", "nanny"))
    }
    assert open_to == {"127.0.0.1"}
    with ipp.Client(str(path), timeout=20) as known:
        assert known.ids == [0, 1]
    # Who is refused before the first word is sent has nobody to send it to, and would wait for ever.
    patient = zmq.Context.shadow(zmq.Context.instance().underlying)
    patient.setsockopt(zmq.SNDTIMEO, 3000)
    for number, key in enumerate(
        [{}, {"curve_serverkey": zmq.curve_keypair()[0].decode()}]
    ):  # no key, a wrong key
        other = tmp_path / f"{number}.json"
        other.write_text(
            json.dumps(
                {name: value for name, value in connection.items() if "curve" not in name} | key
            )
        )
        with pytest.raises((TimeoutError, zmq.Again)):
            ipp.Client(str(other), timeout=3, context=patient)


# Kills once the cell runs, and leaves a file then.
KILLER = """
import os, pathlib, time
while not os.path.exists({busy!r}):
    time.sleep(0.05)
pathlib.Path({killed!r}).touch()
for pid in {doomed}:
    if os.path.exists(f"/proc/{{pid}}"):
        os.kill(pid, 9)
"""


@pytest.mark.parametrize(
    "who",
    [
        "one engine",
        pytest.param("every engine and its nanny", marks=pytest.mark.choice),
        pytest.param("mpirun", marks=pytest.mark.choice),
        pytest.param("the controller", marks=pytest.mark.choice),
    ],
)
def test_a_cell_ends_when_nobody_can_answer_it(
    two: Engines, shell: InteractiveShell, tmp_path: Path, who: str
) -> None:
    """It ends with an error within a bound; so does the next; reset brings two fresh engines."""
    run_id = two._run_id
    ranks = two.client[:].apply_sync(os.getpid)
    commands = {pid: _command(pid) for pid in left_of(run_id)}
    doomed = {
        "one engine": ranks[1:],
        "every engine and its nanny": [
            pid for pid, line in commands.items() if "controller" not in line
        ],
        "mpirun": [pid for pid, line in commands.items() if "bin/mpirun" in line],
        "the controller": [pid for pid, line in commands.items() if "controller" in line],
    }[who]
    assert doomed
    busy, killed = tmp_path / "busy", tmp_path / "killed"
    killer = KILLER.format(busy=str(busy), killed=str(killed), doomed=doomed)
    with subprocess.Popen([sys.executable, "-c", killer]):
        result, _ = _cell(shell, f"%%px\nimport time\nopen({str(busy)!r}, 'w')\ntime.sleep(600)")
        ended = time.time()
    assert not result.success
    assert ended - killed.stat().st_mtime < CELL_ENDS_S
    start = time.monotonic()
    result, _ = _cell(shell, "%%px\nprint(1)")
    assert not result.success and time.monotonic() - start < CELL_ENDS_S
    two.reset()
    assert not left_of(run_id)
    result, said = _cell(shell, "%%px\nprint('alive')")
    assert result.success and said.count("alive") == 2


def _fails(made: Engines) -> str:
    """The sentence of engines that do not start; START_S is far below their limit, or that is what
    ends them."""
    start = time.monotonic()
    with pytest.raises(ScaleoutError) as caught:
        made.start()
    assert time.monotonic() - start < START_S
    assert not (made._run_id and left_of(made._run_id))
    assert made.client is None
    sentence = str(caught.value)
    assert "\n" not in sentence and "type " in sentence
    return sentence


def test_without_mpirun_it_says_so_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    said = _fails(Engines(2, start_timeout=600))
    assert "There is no mpirun in this environment" in said


def test_a_controller_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "ipyparallel" / "controller"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "2 engines did not start (TimeoutError" in _fails(Engines(2, start_timeout=4))


OWNER = """
    import os, sys, time
    from scaleout import Engines
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
        pytest.param("os.kill(os.getpid(), 15); time.sleep(600)", marks=pytest.mark.choice),
        "raise ValueError('the next cell fails')",
        pytest.param("sys.exit(0)", marks=pytest.mark.choice),
        pytest.param("os._exit(1)", marks=pytest.mark.choice),
    ],
)
def test_they_go_when_their_owner_goes(end: str, script, no_process_left) -> None:
    owner = [sys.executable, str(script(textwrap.dedent(OWNER).format(end=end)))]
    done = subprocess.run(owner, capture_output=True, text=True, timeout=START_S + GONE_S)
    assert "engines-" in done.stdout, done.stderr[-2000:]
    run_id = _run_id(done.stdout)
    no_process_left(run_id, within_s=GONE_S)


START_CELL = (
    "from scaleout import Engines\nengines = Engines(2)\nengines.start()\nprint(engines._run_id)"
)


def test_ranks_that_wait_for_each_other_for_ever_can_be_stopped_and_reset(
    notebook: Notebook, no_process_left, tmp_path: Path
) -> None:
    first = _run_id(notebook.said(START_CELL))
    waits = tmp_path / "waits"
    stuck = f"%%px\nfrom mpi4py import MPI\nopen({str(waits)!r}, 'w')\n"
    stuck += "MPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.rank)"
    cell = notebook.start_cell(stuck)
    until(waits.exists)
    notebook.manager.interrupt_kernel()
    notebook.to_the_end(cell)
    notebook.said("engines.reset()")
    no_process_left(first)
    assert notebook.said("%%px\nprint('alive')").count("alive") == 2


@pytest.mark.parametrize(
    "end",
    [
        "killed",
        *(pytest.param(end, marks=pytest.mark.choice) for end in ("restarted", "shut down")),
    ],
)
def test_they_go_when_the_kernel_goes(notebook: Notebook, no_process_left, end: str) -> None:
    run_id = _run_id(notebook.said(START_CELL))
    assert len(left_of(run_id)) > 2
    manager = notebook.manager
    if end == "killed":
        os.kill(manager.provisioner.pid, signal.SIGKILL)
    elif end == "restarted":
        manager.restart_kernel(now=True)
    else:
        manager.shutdown_kernel()
    no_process_left(run_id, within_s=GONE_S)
