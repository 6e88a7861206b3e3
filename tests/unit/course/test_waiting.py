"""Where the ranks of a job stand, read from what they say; and the line for a job that takes
long."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaleout.course import waiting
from scaleout.jobs.job import Enough

SCRIPT = Path("/w/labs/00_tiny/runme.py")
DUMP = [
    "Timeout (0:00:09)!",
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
    assert waiting.standing(lines, SCRIPT) == {0: 12, 1: 13}
    mixed = [pair for two in zip(lines[:7], lines[7:14], strict=True) for pair in two]
    assert waiting.standing(mixed, SCRIPT) == {0: 12, 1: 12}
    assert waiting.standing([(0, DUMP[5]), (None, DUMP[3]), (None, DUMP[5])], SCRIPT) == {}


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
    assert waiting.in_script(text, SCRIPT) == line


def test_a_job_that_takes_long_is_told_of_with_its_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.05)
    told: list[str] = []
    with waiting.progress(told.append, 2, SCRIPT) as take:
        for text in DUMP:
            take(f"[1] {text}")
        while not told:
            time.sleep(0.01)
    assert told[0] == "running 2 ranks ... 0 s; rank 1 in line 12" and told[-1] == ""


def test_a_job_that_ends_at_once_is_not_told_of() -> None:
    told: list[str] = []
    with waiting.progress(told.append, 2, SCRIPT):
        pass
    assert told == []


def test_a_job_whose_ranks_all_wait_or_are_done_is_ended() -> None:
    with pytest.raises(Enough), waiting.progress(None, 2, SCRIPT) as take:
        take("[1] This rank is done.")
        for _ in range(3):
            take("[0] This rank waits.")
        pytest.fail("it goes on")


@pytest.mark.parametrize(
    "said",
    [
        ["[0] This rank waits."] * 9,
        ["[0] This rank is done.", "[1] This rank is done."],
        ["[0] This rank waits."] * 3 + ["[0] This rank goes on."] + ["[1] This rank waits."] * 3,
    ],
)
def test_a_job_that_may_go_on_is_left_alone(said: list[str]) -> None:
    with waiting.progress(None, 2, SCRIPT) as take:
        for text in said:
            take(text)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["time.sleep(1)"], ["This rank waits.", "This rank goes on.", "This rank is done."]),
        (["for i in range(10):", "    time.sleep(0.1)"], ["This rank is done."]),
        (["subprocess.run(['sleep', '1'])"], ["This rank is done."]),
    ],
)
def test_a_rank_in_one_call_says_so_and_one_in_a_loop_or_a_library_does_not(
    tmp_path: Path, lines: list[str], says: list[str]
) -> None:
    script = tmp_path / "00_tiny" / "runme.py"
    script.parent.mkdir()
    script.write_text("\n".join(["import subprocess, time", *lines, "x = 0", "time.sleep(0.2)"]))
    env = waiting.variables(60) | {"CHECK_STILL_S": "0.3"}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    said = [text for text in done.stderr.splitlines() if text.startswith("This rank")]
    assert list(dict.fromkeys(said)) == says


def test_a_rank_says_where_it_stands_and_loads_what_it_would_have_loaded(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the other')")
    variables = waiting.variables(1.0)
    assert variables["CHECK_DUMP_S"] == "0.9"
    variables["PYTHONPATH"] += f":{tmp_path}"
    script = tmp_path / "00_tiny" / "runme.py"
    script.parent.mkdir()
    script.write_text("import time\n\ntime.sleep(1.5)\n")
    done = subprocess.run(
        [sys.executable, str(script)], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout == "the other\n"
    lines = [(0, text) for text in done.stderr.splitlines()]
    assert waiting.standing(lines, script) == {0: 3}


def test_a_rank_that_crashes_in_native_code_says_where(tmp_path: Path) -> None:
    script = tmp_path / "00_tiny" / "runme.py"
    script.parent.mkdir()
    script.write_text("import os\nos.abort()\n")
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, env=waiting.variables(60), capture_output=True, text=True, timeout=60
    )
    assert "Fatal Python error: Aborted" in done.stderr
    lines = [(0, text) for text in done.stderr.splitlines()]
    assert waiting.standing(lines, script) == {0: 2}
