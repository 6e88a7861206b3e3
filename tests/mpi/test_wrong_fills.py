"""Each TODO's likeliest wrong fills, from wrong_fills.toml beside its master: the check refuses
each, and says what is wrong with that one. So does it where two of its lines change places.

Around the first fill of each TODO all the others are solved, so that a check is seen to judge its
own; around the next ones only those before it, as in the lab of somebody on the way."""

import ast
import re
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from torch_scripts import with_torch

from scaleout import lab
from scaleout.base.paths import course_files
from scaleout.course import checks
from scaleout.course.marks import cut, gaps, numbers
from scaleout.course.masters import SCRIPTS
from scaleout.course.pieces import code

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
# Whose jobs take a second or two: these are tried in each run of the tests, the others by
# `make test-all`.
QUICK = {"00_welcome", "03_spmd", "08_precision"}
TABLES = {
    path.parent.name: tomllib.loads(path.read_text())
    for path in sorted((ROOT / "solutions").glob("*/wrong_fills.toml"))
}


def script_of(topic: str, number: int) -> Path:
    """The script of a topic in which a TODO stands."""
    every = course_files(ROOT / "solutions" / topic, *SCRIPTS)
    (found,) = [path for path in every if number in numbers(path.read_text())]
    return found


WRONG = [
    pytest.param(
        topic,
        number := int(name.removeprefix("todo")),
        row,
        at == 1,
        id=f"{topic}-{name}-{at}",
        marks=[
            *[pytest.mark.choice] * (topic not in QUICK),
            *[with_torch] * (script_of(topic, number).name == "ddp.py"),
        ],
    )
    for topic, table in TABLES.items()
    for name, rows in table.items()
    if name.startswith("todo")
    for at, row in enumerate(rows, 1)
]
RIGHT = [
    pytest.param(
        topic,
        row["todo"],
        row,
        id=f"{topic}-todo{row['todo']}-{at}",
        marks=[
            *[pytest.mark.choice] * (topic not in QUICK),
            *[with_torch] * (script_of(topic, row["todo"]).name == "ddp.py"),
        ],
    )
    for topic, table in TABLES.items()
    for at, row in enumerate(table.get("right", []), 1)
]


# Changed over, these pairs of lines do the same as before: neither needs the other.
EQUAL = {
    ("00_welcome", 1, 1, 2),
    ("00_welcome", 2, 2, 3),
    ("03_spmd", 2, 2, 3),
    ("04_kmeans", 3, 2, 3),
    ("05_horovod", 1, 2, 3),
    ("07_scaling", 5, 7, 8),
    ("08_precision", 3, 5, 6),
    ("09_networks", 1, 2, 3),
    ("11_parallelism", 3, 1, 2),
    ("11_parallelism", 5, 2, 3),
    ("12_capstone", 1, 1, 2),
}


def swaps() -> Iterator[tuple[str, int, int, int, str]]:
    """Each gap with two of its lines changed over, where that is still a script; the order of a
    job's settings is free."""
    for topic in TABLES:
        for path in course_files(ROOT / "solutions" / topic, *SCRIPTS):
            for number, (solution, _) in gaps(text := path.read_text()).items():
                lines = code(solution)
                for i, j in combinations(range(len(lines)), 2):
                    if all(lines[at].startswith("#SBATCH") for at in (i, j)):
                        continue
                    new = [*lines]
                    new[i], new[j] = lines[j], lines[i]
                    fill = "\n".join(new)
                    if runs(filled(text, number, fill, alone=False), path.suffix):
                        yield topic, number, i + 1, j + 1, fill


def runs(script: str, suffix: str) -> bool:
    """Whether Python, or the shell, can read a script."""
    if suffix == ".sh":
        return subprocess.run(["bash", "-n"], input=script.encode(), stderr=-1).returncode == 0
    try:
        ast.parse(script)
    except SyntaxError:
        return False
    return True


def filled(text: str, number: int, fill: str, alone: bool) -> str:
    """The lab with this TODO filled so and those before it solved; those after it too when it is
    `alone`, else untouched."""
    region = re.compile(
        rf"(# TODO {number}: .*?\n)( *)# BEGIN SOLUTION\n.*?# END SOLUTION\n", re.DOTALL
    )
    found = region.search(text)
    assert found, f"there is no TODO {number}"
    marked = f"# BEGIN SOLUTION\n{fill.strip(chr(10))}\n# END SOLUTION\n"
    put = found[1] + textwrap.indent(marked, found[2])
    text = text[: found.start()] + put + text[found.end() :]
    return cut(text, keep=lambda other: alone or other <= number)


@pytest.fixture
def verdict(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch):
    """What the check says of a fill: verdict(topic, number, fill, alone)."""
    for room in ("labs", "notebooks"):
        (tmp_path / "workshop" / room).mkdir(parents=True)
    if (ROOT / ".side").is_dir():
        (tmp_path / "workshop" / ".side").symlink_to(ROOT / ".side")
    monkeypatch.chdir(tmp_path / "workshop")
    monkeypatch.setenv("SCALEOUT_QUICK", "1")

    def judge(topic: str, number: int, fill: str, alone: bool) -> checks.Verdict:
        folder = Path("labs", topic)
        # The master too, from which the untouched lab is cut: what was written is told from it.
        for place in (folder, Path("solutions", topic)):
            shutil.copytree(ROOT / "solutions" / topic, place)
        master = script_of(topic, number)
        (folder / "runme.py").write_text(cut((folder / "runme.py").read_text()))
        (folder / master.name).write_text(filled(master.read_text(), number, fill, alone))
        (found,) = checks.check(lab(topic, solution=False), [number])
        return found

    return judge


@pytest.mark.parametrize(("topic", "number", "row", "alone"), WRONG)
def test_a_wrong_fill_is_told_what_is_wrong_with_it(
    topic: str, number: int, row: dict[str, str], alone: bool, verdict
) -> None:
    result = verdict(topic, number, row["fill"], alone)
    assert result.state != "passed", result
    assert row["says"] in " ".join(result.what.split())


@pytest.mark.parametrize(("topic", "number", "row"), RIGHT)
def test_what_is_right_in_another_way_passes(
    topic: str, number: int, row: dict[str, Any], verdict
) -> None:
    result = verdict(topic, number, row["fill"], alone=False)
    assert result.state == "passed", result.what


@pytest.mark.parametrize(
    ("topic", "number", "first", "second", "fill"),
    [
        pytest.param(
            *swap,
            id="{}-todo{}-{}-{}".format(*swap),
            marks=[
                pytest.mark.choice,
                *[with_torch] * (script_of(*swap[:2]).name == "ddp.py"),
            ],
        )
        for swap in swaps()
    ],
)
def test_lines_changed_over_are_told_or_do_the_same(
    topic: str, number: int, first: int, second: int, fill: str, verdict
) -> None:
    result = verdict(topic, number, fill, alone=False)
    if (topic, number, first, second) in EQUAL:
        assert result.state == "passed", result.what
    else:
        assert result.state != "passed" and result.what, result
