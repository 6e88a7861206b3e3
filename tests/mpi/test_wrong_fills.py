"""Each TODO's likeliest wrong fills, from wrong_fills/: the check refuses each, and says what is
wrong with that one.

Around the first fill of each TODO all the others are solved, so that a check is seen to judge its
own; around the next ones only those before it, as in the lab of somebody on the way. In make test,
TODOs that one job tells of share a lab, which has the first fill of each (`together`)."""

import re
import shutil
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from torch_scripts import with_torch

from scaleout import lab
from scaleout.course import checks
from scaleout.course.marks import cut, numbers

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    path.stem: tomllib.loads(path.read_text())
    for path in sorted(Path(__file__).with_name("wrong_fills").glob("*.toml"))
}


def script_of(topic: str, number: int) -> Path:
    """The script of a topic in which a TODO stands."""
    every = sorted((ROOT / "solutions" / topic).glob("*.*"))
    (found,) = [path for path in every if number in numbers(path.read_text())]
    return found


def marks(topic: str, number: int, at: int) -> list[pytest.MarkDecorator]:
    """In make test the first fill of each TODO, in make test-all all of them; those of DDP there
    alone, and only where `make torch` was typed."""
    torch = script_of(topic, number).name == "ddp.py"
    more = at > 1 or torch or number in TABLES[topic].get("together", [])
    return [pytest.mark.choice] * more + [with_torch] * torch


WRONG = [
    pytest.param(
        topic,
        {(number := int(name.removeprefix("todo"))): row},
        at == 1,
        id=f"{topic}-{name}-{at}",
        marks=marks(topic, number, at),
    )
    for topic, table in TABLES.items()
    for name, rows in table.items()
    if name.startswith("todo")
    for at, row in enumerate(rows, 1)
]
WRONG += [
    pytest.param(
        topic, {n: table[f"todo{n}"][0] for n in table["together"]}, True, id=f"{topic}-together"
    )
    for topic, table in TABLES.items()
    if "together" in table
]
RIGHT = [
    pytest.param(
        topic,
        row["todo"],
        row,
        id=f"{topic}-todo{row['todo']}-{at}",
        marks=pytest.mark.choice,
    )
    for topic, table in TABLES.items()
    for at, row in enumerate(table.get("right", []), 1)
]


def filled(text: str, fills: dict[int, str], alone: bool) -> str:
    """The lab with these TODOs filled so and those before them solved; those after them too when
    they are `alone`, else untouched."""
    for number, fill in fills.items():
        region = re.compile(
            rf"(# TODO {number}: .*?\n)( *)# BEGIN SOLUTION\n.*?# END SOLUTION\n", re.DOTALL
        )
        found = region.search(text)
        assert found, f"there is no TODO {number}"
        marked = f"# BEGIN SOLUTION\n{fill.strip()}\n# END SOLUTION\n"
        put = found[1] + textwrap.indent(marked, found[2])
        text = text[: found.start()] + put + text[found.end() :]
    return cut(text, keep=lambda other: alone or other <= max(fills))


@pytest.fixture
def verdicts(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch):
    """What the checks say of fills: verdicts(topic, {number: fill}) is a result for each."""
    for room in ("labs", "notebooks"):
        (tmp_path / "workshop" / room).mkdir(parents=True)
    if (ROOT / ".side").is_dir():
        (tmp_path / "workshop" / ".side").symlink_to(ROOT / ".side")
    monkeypatch.chdir(tmp_path / "workshop")
    monkeypatch.setenv("SCALEOUT_QUICK", "1")

    def judge(topic: str, fills: dict[int, str], alone: bool) -> list[checks.Result]:
        folder = Path("labs", topic)
        shutil.copytree(ROOT / "solutions" / topic, folder)
        master = script_of(topic, min(fills))
        (folder / "runme.py").write_text(cut((folder / "runme.py").read_text()))
        (folder / master.name).write_text(filled(master.read_text(), fills, alone))
        found = list(checks.check(lab(topic, solution=False), list(fills)))
        assert [result.number for result in found] == list(fills)
        return found

    return judge


@pytest.mark.parametrize(("topic", "rows", "alone"), WRONG)
def test_a_wrong_fill_is_told_what_is_wrong_with_it(
    topic: str, rows: dict[int, dict[str, str]], alone: bool, verdicts
) -> None:
    for result in verdicts(topic, {n: row["fill"] for n, row in rows.items()}, alone):
        assert result.state != "passed", result
        assert rows[result.number]["says"] in " ".join(result.what.split())


@pytest.mark.parametrize(("topic", "number", "row"), RIGHT)
def test_what_is_right_in_another_way_passes(
    topic: str, number: int, row: dict[str, Any], verdicts
) -> None:
    (result,) = verdicts(topic, {number: row["fill"]}, alone=False)
    assert result.state == "passed", result.what
