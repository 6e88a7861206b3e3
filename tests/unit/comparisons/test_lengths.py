"""A rate from two lengths of a job, timed from outside."""

from pathlib import Path
from typing import Any

import pytest

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.lengths import Lengths
from scaleout.jobs.job import Run
from scaleout.measuring.numbers import NoFigure

WAYS = {name: {"script": ["python", f"{name}.py", "--steps", "{steps}"]} for name in "ab"}


@pytest.mark.parametrize(
    "text",
    ["steps", "steps=40", "steps=40,80,90", "steps=80,40", "steps=40,40", "=1,2", "steps=0,4"],
)
def test_lengths_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ScaleoutError, match=r"Type  --work steps=40,80 -- python a.py --steps"):
        Lengths.asked(text, WAYS)


def test_a_command_that_takes_no_length_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["compare", "--work", "steps=1,2", "--", "true", "{steps}", "::", "false"]
    assert cli.main(line) == 2
    assert "false does not take its length: put {steps} where" in capsys.readouterr().err
    assert cli.main([*line[:3], "--metric", "x: (.*)", *line[3:], "{steps}"]) == 2
    assert "leave --metric out" in capsys.readouterr().err


def test_neither_the_start_nor_the_script_s_clock_counts(tmp_path: Path) -> None:
    """A job takes 7 s to start, and 0.1 s a step."""
    asked = []

    def start(script: list[str], **how: Any) -> Run:
        asked.append(script)
        seconds = 7 + 0.1 * int(script[-1]) if how["ranks"] else 5.0
        return Run(
            id="x", name="x", command="", folder=tmp_path, ranks=1, threads=1, wall_s=seconds
        )

    both = Lengths.asked("steps=40,80", WAYS).around(start)
    run = both(WAYS["a"]["script"], ranks=1)
    assert isinstance(run, Run) and run.wall_s == pytest.approx(4.0)
    assert [words[-1] for words in asked] == ["40", "80"]
    with pytest.raises(NoFigure, match="--work steps=40,800"):
        both(WAYS["a"]["script"], ranks=0)
