"""Where the ranks of a job stand, read from what they say; and the end of a job that waits."""

import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.course import verdict
from scaleout.jobs.failures import without_stacks
from scaleout.jobs.job import Enough
from scaleout.stacks import DONE

SCRIPT = Path("/w/labs/00_tiny/runme.py")
DUMP = [
    "Thread 0x00007f1 (most recent call first):",
    '  File "/usr/lib/threading.py", line 3 in wait',
    "Thread 0x00007f0 (most recent call first):",
    '  File "src/mpi4py/Comm.pyx", line 1 in recv',
    '  File "labs/00_tiny/runme.py", line 12 in trip',
    '  File "labs/00_tiny/runme.py", line 40 in <module>',
]


def test_the_innermost_line_of_each_ranks_last_dump_counts() -> None:
    later = [text.replace("line 12", "line 13") for text in DUMP]
    lines = [(1, text) for text in DUMP] + [(0, text) for text in DUMP] + [(1, t) for t in later]
    assert verdict.standing(lines, SCRIPT) == {0: 12, 1: 13}
    mixed = [pair for two in zip(lines[:6], lines[6:12], strict=True) for pair in two]
    assert verdict.standing(mixed, SCRIPT) == {0: 12, 1: 12}
    assert verdict.standing([(0, DUMP[4]), (None, DUMP[2]), (None, DUMP[4])], SCRIPT) == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('  File "solutions/00_tiny/runme.py", line 7, in <module>', 7),
        ('    File "/elsewhere/00_tiny/runme.py", line 8, in step  *', 8),
        ('  File "labs/00_tiny/other.py", line 7, in <module>', None),
        ('  File "labs/01_next/runme.py", line 7, in <module>', None),
        ("runme.py, line 7", None),
    ],
)
def test_a_frame_of_the_lab_is_told_from_others(text: str, line: int | None) -> None:
    assert verdict.in_script(text, SCRIPT) == line


def _stack(rank: int, line: int, inner: str = "labs/00_tiny/runme.py") -> list[str]:
    """What a rank says of where it stands."""
    return [
        f"[{rank}] Stack (most recent call first):",
        f'[{rank}]   File "{inner}", line {line} in trip',
    ]


def _take(*said: list[str], ranks: int = 2) -> None:
    watch = verdict.Watch(SCRIPT, ranks)
    for text in [text for lines in said for text in lines]:
        watch.take(text)


def test_a_job_whose_ranks_all_wait_or_are_done_is_ended() -> None:
    with pytest.raises(Enough):
        _take([f"[1] {DONE}"], *[_stack(0, 12)] * 4)
    ours = str(verdict.PACKAGE / "records.py")
    with pytest.raises(Enough):
        _take(*[_stack(0, 12), _stack(1, 9, ours)] * 4)


@pytest.mark.parametrize(
    "said",
    [
        [_stack(0, 12)] * 9,
        [[f"[0] {DONE}"], [f"[1] {DONE}"]],
        [*[_stack(0, 12)] * 9, *[_stack(1, line) for line in range(9)]],
        [_stack(0, 12), _stack(1, 12, "/usr/lib/keras/fit.py")] * 9,
    ],
    ids=["one says nothing", "all are done", "one goes on", "one is inside a library"],
)
def test_a_job_that_may_go_on_is_left_alone(said: list[list[str]]) -> None:
    _take(*said)


def test_a_job_that_takes_long_is_told_of_with_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    watch = verdict.Watch(SCRIPT, 2, told.append)
    watch.take("[0] quick")
    assert not told
    monkeypatch.setattr(verdict, "PATIENCE_S", 0.0)
    for text in [*_stack(1, 12), *_stack(1, 13)]:
        watch.take(text)
    watch.end()
    assert told[-2:] == ["running 2 ranks ... 0 s; rank 1 in line 12", ""]


def test_a_rank_says_where_it_stands_and_a_failure_is_told_without_that(tmp_path: Path) -> None:
    script = tmp_path / "00_tiny" / "runme.py"
    script.parent.mkdir()
    script.write_text(
        "from scaleout import stacks\nstacks.FIRST_S = stacks.EVERY_S = 0.2\n"
        "stacks.dump_every_few_seconds()\nimport time\ntime.sleep(0.5)\nprint('so far')\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    said = done.stderr.splitlines()
    assert done.returncode == 0 and said[-1] == DONE
    lines: list[tuple[int | None, str]] = [(0, text) for text in said]
    assert verdict.standing(lines, script) == {0: 5}
    assert without_stacks([*lines, (0, "so far")]) == [(0, "so far")]
