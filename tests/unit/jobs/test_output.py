"""Exceptions whose message has several lines: what comes after the first is shown, too."""

import pytest

from scaleout.jobs import failures

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


def test_a_traceback_that_torch_has_marked_is_found() -> None:
    marked = [(1, f"[rank1]: {text}") for text in [HEAD, *FRAME, "ValueError: mine"]]
    echo = [(0, text) for text in [HEAD, *FRAME, "RuntimeError: connection closed by peer"]]
    assert failures.first_traceback([*marked, *echo]) == (1, [HEAD, *FRAME, "ValueError: mine"])
