"""What other machines measured belongs to the code that ran: rows of older code are refused and dropped."""

from pathlib import Path

import lint_text
import make_elsewhere
import msgspec
import outputs
import pytest

from scaleout import Comparison, compare
from scaleout.comparisons import elsewhere

OTHER = elsewhere.Kind(cpu="Another", isa="AVX2", cores=2)
SCRIPT = '"""A lab."""\n\nimport helper\n\nfrom scaleout import data\n\nprint(helper, data.shard)\n'


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    folder = tmp_path / "05_tiny"
    folder.mkdir()
    (folder / "runme.py").write_text(SCRIPT)
    (folder / "helper.py").write_text("STEPS = 5\n")
    (folder / "figures.py").write_text("COLOUR = 1\n")
    return folder


def rows(folder: Path, ratio: float = 2.0) -> list[elsewhere.Headline]:
    """What a comparison gives here, of the code that the folder has now."""
    runs = [
        {"round": number, "variant": name, "again": again, "value": value}
        for number in range(3)
        for name, again, value in (("1 rank", 0, 1.0), ("1 rank", 1, 1.0), ("2 ranks", 0, ratio))
    ]
    code = outputs.code(folder, ["runme.py"])
    return elsewhere.headlines(Comparison(runs), "pi", code, ["runme.py"])


def at(kind: elsewhere.Kind, made: list[elsewhere.Headline]) -> list[elsewhere.Headline]:
    return [msgspec.structs.replace(row, machine=kind) for row in made]


def machines(folder: Path) -> list[str]:
    return [row.machine.cpu for row in elsewhere.read(folder / elsewhere.FILE)[0]]


@pytest.mark.parametrize(
    ("file", "text", "same"),
    [
        ("runme.py", SCRIPT + "print(1)\n", False),
        ("runme.py", SCRIPT + "# a comment\n", True),
        ("helper.py", "STEPS = 6\n", False),
        ("figures.py", "COLOUR = 2\n", True),
    ],
)
def test_the_hash_is_that_of_what_ran(lesson: Path, file: str, text: str, same: bool) -> None:
    before = outputs.code(lesson, ["runme.py"])
    (lesson / file).write_text(text)
    assert (outputs.code(lesson, ["runme.py"]) == before) == same


def test_a_script_in_side_brings_what_lies_above_it_and_beside_it(lesson: Path) -> None:
    (lesson / "side").mkdir()
    (lesson / "side/tune.py").write_text("import helper\nimport cycles\n\nprint(helper, cycles)\n")
    (lesson / "side/cycles.py").write_text("MS = 1\n")
    seen = {outputs.code(lesson, ["side/tune.py"])}
    (lesson / "side/cycles.py").write_text("MS = 4\n")
    seen.add(outputs.code(lesson, ["side/tune.py"]))
    (lesson / "helper.py").write_text("STEPS = 6\n")
    seen.add(outputs.code(lesson, ["side/tune.py"]))
    assert len(seen) == 3


def test_a_row_of_older_code_is_refused_by_the_lint_and_goes_when_it_is_measured_anew(
    lesson: Path,
) -> None:
    path = lesson / elsewhere.FILE
    make_elsewhere.keep(lesson, at(OTHER, rows(lesson)))
    assert list(lint_text.elsewhere(path)) == []
    (lesson / "helper.py").write_text("STEPS = 6\n")
    assert list(lint_text.elsewhere(path)) == [
        "line 1, pi, is of older code: make elsewhere ARGS=05"
    ]
    make_elsewhere.keep(lesson, rows(lesson))
    assert machines(lesson) == [elsewhere.Kind.here().cpu] * 2
    assert list(lint_text.elsewhere(path)) == []


def test_a_machine_has_its_rows_once_and_leaves_those_of_others(lesson: Path) -> None:
    assert make_elsewhere.lacking(lesson)
    make_elsewhere.keep(lesson, at(OTHER, rows(lesson)))
    assert make_elsewhere.lacking(lesson)
    for ratio in (1.5, 3.0):
        make_elsewhere.keep(lesson, rows(lesson, ratio))
    assert not make_elsewhere.lacking(lesson)
    assert machines(lesson) == [OTHER.cpu] * 2 + [elsewhere.Kind.here().cpu] * 2
    found = elsewhere.kept(lesson / elsewhere.FILE, "pi")
    assert [round(one.found.ratio("2 ranks").middle, 2) for one in found] == [2.0, 3.0]


def test_what_a_notebooks_run_measured_under_a_headlines_name_is_kept(
    lesson: Path, results: Path
) -> None:
    make_elsewhere.keep(lesson, at(OTHER, rows(lesson)))
    variants = {"1 rank": {"n": 1}, "2 ranks": {"n": 3}}
    for name in ("pi", "another"):
        compare(lambda n: float(n), variants, name=name, rounds=3)
    new = make_elsewhere.of_results(lesson, results)
    assert [(row.comparison, row.variant, row.values) for row in new] == [
        ("pi", "1 rank", [1.0] * 3),
        ("pi", "2 ranks", [3.0] * 3),
    ]
    make_elsewhere.keep(lesson, new)
    assert machines(lesson) == [OTHER.cpu] * 2 + [elsewhere.Kind.here().cpu] * 2
    assert list(lint_text.elsewhere(lesson / elsewhere.FILE)) == []


def test_a_lesson_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_elsewhere.main(["99"]) == 1
    assert "There is no lesson '99': there are 00, 01" in capsys.readouterr().out
