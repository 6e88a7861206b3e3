"""Where the ranks of a job stand, read from what they say; and the end of a job that waits."""

from pathlib import Path

import pytest

from scaleout.base.stacks import DONE
from scaleout.course.watch import PACKAGE, Watch
from scaleout.jobs.job import EndJob

SCRIPT = Path("/w/labs/00_tiny/runme.py")


def _stack(rank: int, line: int, inner: str = "labs/00_tiny/runme.py") -> list[str]:
    """What a rank says of where it stands."""
    return [
        f"[{rank}] Stack (most recent call first):",
        f'[{rank}]   File "{inner}", line {line} in trip',
    ]


def _take(*said: list[str], ranks: int = 2) -> None:
    watch = Watch(SCRIPT, ranks)
    for text in [text for lines in said for text in lines]:
        watch.take(text)


@pytest.mark.parametrize(
    "said",
    [
        [_stack(0, 12)] * 5,
        [[f"[0] {DONE}"], [f"[1] {DONE}"]],
        [stack for line in range(9) for stack in (_stack(0, 12), _stack(1, line))],
        [_stack(0, 12), _stack(1, 12, "/usr/lib/keras/fit.py")] * 9,
    ],
    ids=["one has said nothing yet", "all are done", "one goes on", "one is inside a library"],
)
def test_a_job_that_may_go_on_is_left_alone(said: list[list[str]]) -> None:
    _take(*said)


@pytest.mark.parametrize(
    ("said", "ranks"),
    [
        ([_stack(0, 12), _stack(1, 12)] * 5, 2),
        ([_stack(0, 12), _stack(1, 30, str(PACKAGE / "kit/records.py"))] * 5, 2),
        ([_stack(0, 12), _stack(1, 12)] * 9, 3),
        ([[f"[1] {DONE}"], *[_stack(0, 12)] * 5], 2),
    ],
    ids=["in the lab", "in what the lab calls of ours", "one says nothing", "one is done"],
)
def test_a_job_that_only_waits_is_ended(said: list[list[str]], ranks: int) -> None:
    with pytest.raises(EndJob):
        _take(*said, ranks=ranks)


def test_a_job_that_takes_long_is_told_of_with_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    watch = Watch(SCRIPT, 2, told.append)
    watch.take("[0] quick")
    assert not told
    monkeypatch.setattr("scaleout.course.watch.PATIENCE_S", 0.0)
    for text in [*_stack(1, 12), *_stack(1, 13)]:
        watch.take(text)
    watch.end()
    assert told[-2:] == ["running 2 ranks ... 0 s; rank 1 in line 12", ""]
