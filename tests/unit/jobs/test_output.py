"""Exceptions whose message has several lines: what comes after the first is shown, too."""

from pathlib import Path

import pytest

from scaleout.jobs import failures
from scaleout.jobs.job import Run

HEAD = "Traceback (most recent call last):"
FRAME = ['  File "runme.py", line 5, in <module>', "    step(x)"]
GRAPH = [
    "InvalidArgumentError: Graph execution error:",
    "",
    "Detected at node Reshape defined at (most recent call last):",
    '  File "runme.py", line 3, in step',
    "    return reshape(x)",
    "",
    "Input to reshape is a tensor with 6 values, but the requested shape has 5",
    "\t [[{{node Reshape}}]]",
]
STACK = [
    "mpi4py.MPI.Exception: Message truncated, error stack:",
    "internal_Recv(335).....: MPI_Recv(count=2) failed",
    "MPIDIG_recv(74): Message from rank 0 truncated",
]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (GRAPH, [GRAPH[0], *GRAPH[6:]]),
        (STACK, STACK),
        (["ValueError: mine", "printed later"], ["ValueError: mine"]),
        ([STACK[0], *(f"line {n}" for n in range(99))], [STACK[0], *(f"line {n}" for n in range(8))]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["Abort(1) on node 1", "Stack (most recent call first):"])
def test_a_message_of_several_lines_is_shown_whole(
    end: str, said: list[str], shown: list[str]
) -> None:
    lines = [HEAD, *FRAME, *said, end, "and so on"]
    mixed = [(1, text) for text in lines]
    mixed.insert(5, (0, "from another rank"))
    assert failures.first_traceback(mixed) == (1, [HEAD, *FRAME, *shown])


def test_a_crash_names_its_rank_and_the_scripts_own_line(tmp_path: Path) -> None:
    said = [
        "Fatal Python error: Segmentation fault",
        "Current thread 0x00007f00 (most recent call first):",
        '  File "/lib/python3.11/ctypes/__init__.py", line 519 in string_at',
        '  File "mine.py", line 4 in <module>',
        '  File "<frozen runpy>", line 88 in _run_code',
        '  File "/lib/site-packages/mpi4py/run.py", line 53 in run_command_line',
    ]
    banner = (
        None,
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
    )
    lines = [*((1, text) for text in said), banner]
    told = failures.explain(Run("id", "mine", "mpirun", tmp_path, 2, 1, 11, 1.0, lines))
    assert told.startswith("mine failed first on rank 1: a rank crashed in native code (signal 11)")
    assert told.splitlines()[1:3] == said[2:4] and "runpy" not in told and "mpi4py" not in told


def test_a_traceback_that_torch_has_marked_is_found() -> None:
    marked = [(1, f"[rank1]: {text}") for text in [HEAD, *FRAME, "ValueError: mine"]]
    echo = [(0, text) for text in [HEAD, *FRAME, "RuntimeError: connection closed by peer"]]
    assert failures.first_traceback([*marked, *echo]) == (1, [HEAD, *FRAME, "ValueError: mine"])
