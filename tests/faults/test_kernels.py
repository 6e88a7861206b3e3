"""A notebook's kernel that is interrupted, killed, restarted or shut down while a job runs."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.kernel import Notebook, text
from helpers import left_of

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

SLEEP = "from mpi4py import MPI\nprint('up', MPI.COMM_WORLD.rank)\nMPI.COMM_WORLD.recv()\n"
CELL = """
from scaleout.launch import run as launch
launch.run(["python", "-m", "mpi4py", {path!r}], name="train", ranks=2, threads=1, timeout=300)
print("after the job")
"""
GRACE_S = 10.0
BUSY_S = 60.0  # for a machine with other work


@pytest.fixture
def cell(notebook: Notebook, script: Callable[..., Path]) -> str:
    """The id of a cell in which a job has come up."""
    started = notebook.start_cell(CELL.format(path=str(script(SLEEP))))
    said = ""
    while not ("up 0" in said and "up 1" in said):
        said += text(notebook.messages(started, lambda message: message["msg_type"] == "stream"))
    return started


def test_the_stop_button_ends_the_job_and_the_kernel_lives(
    notebook: Notebook, cell: str, run_id, no_process_left
) -> None:
    start = time.monotonic()
    notebook.manager.interrupt_kernel()
    messages = notebook.to_the_end(cell)
    assert time.monotonic() - start < GRACE_S + BUSY_S
    (error,) = (message["content"] for message in messages if message["msg_type"] == "error")
    assert error["ename"] == "JobInterrupted"
    (sentence,) = error["traceback"]
    assert sentence.startswith("Interrupted after ") and sentence.endswith(
        " s: the job has been ended."
    )
    assert "after the job" not in text(messages)
    no_process_left(run_id())
    assert notebook.said("print(6 * 7)") == "42\n"
    assert "ended well" in str(notebook.run_cell("launch.run(['true'], name='next', echo=None)"))


def test_the_stop_button_pressed_twice_leaves_nothing(
    notebook: Notebook, cell: str, run_id, no_process_left
) -> None:
    job = run_id()
    for pid in _pids(job, "mpirun"):
        os.kill(pid, signal.SIGSTOP)  # so that ending it takes its time
    for _ in range(2):
        notebook.manager.interrupt_kernel()
        time.sleep(0.5)
    messages = notebook.to_the_end(cell, within_s=BUSY_S)
    (error,) = (message["content"] for message in messages if message["msg_type"] == "error")
    assert error["ename"] == "JobInterrupted" and "is being ended" in error["evalue"]
    no_process_left(job, within_s=GRACE_S + BUSY_S)
    assert notebook.said("print(6 * 7)") == "42\n"


@pytest.mark.parametrize("end", ["killed", "restarted", "shut down"])
def test_when_the_kernel_goes_its_job_goes(
    notebook: Notebook, cell: str, run_id, no_process_left, end: str
) -> None:
    if end == "killed":
        os.kill(notebook.manager.provisioner.pid, signal.SIGKILL)
    elif end == "restarted":
        notebook.manager.restart_kernel(now=True)
    else:
        notebook.manager.shutdown_kernel()
    no_process_left(run_id(), within_s=4 + BUSY_S)


def test_a_failed_job_is_red_and_shows_its_own_sentence(
    notebook: Notebook, script: Callable[..., Path], run_id, no_process_left
) -> None:
    path = script("from mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1: raise ValueError('mine')\n")
    messages = notebook.run_cell(CELL.format(path=str(path)))
    (error,) = (message["content"] for message in messages if message["msg_type"] == "error")
    assert error["ename"] == "JobFailed"
    shown = "\n".join(error["traceback"]).splitlines()
    assert shown[0].startswith("train failed first on rank 1: exit status 1")
    assert "ValueError: mine" in shown and "launch.py" not in "\n".join(error["traceback"])
    assert "[1] ValueError: mine" in text(messages) and "after the job" not in text(messages)
    no_process_left(run_id())


def _pids(run_id: str, program: str) -> list[int]:
    """The processes of a job that run this program; not its supervisor, whose arguments name it."""
    every = left_of(run_id).items()
    return [pid for pid, line in every if program in line and "supervise.py" not in line]
