"""For every gap: its right lines are among the pieces, put in order they are the solution, faded
each lacks a name; what somebody has written is never touched."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import ROOT

from scaleout.base.errors import ScaleoutError
from scaleout.base.paths import course_files
from scaleout.course import marks, pieces
from scaleout.course.masters import SCRIPTS, untouched

GAPS = [
    (folder.name, number, path)
    for folder in sorted((ROOT / "solutions").glob("[01]*/"))
    for path in course_files(folder, *SCRIPTS)
    for number in marks.numbers(path.read_text())
]


def _lab(tmp_path: Path, topic: str) -> SimpleNamespace:
    """A topic's lab as it was given out."""
    for name, text in untouched(topic).items():
        (tmp_path / name).write_text(text)
    (tmp_path / pieces.FILE).write_text((ROOT / "labs" / topic / pieces.FILE).read_text())
    return SimpleNamespace(name=topic, folder=tmp_path)


def _numbered(lab: SimpleNamespace, number: int) -> dict[str, int]:
    shown = pieces.shown(lab, number).splitlines()[2:-3]
    return {line[5:]: int(line[:3]) for line in shown}


@pytest.mark.parametrize(("topic", "number", "master"), GAPS, ids=lambda it: str(it)[-20:])
def test_the_right_order_is_the_solution_and_faded_it_lacks_names(
    topic: str, number: int, master: Path, tmp_path: Path
) -> None:
    lab = _lab(tmp_path, topic)
    right = pieces.code(marks.gaps(master.read_text())[number][0])
    given = _numbered(lab, number)
    wrong = [line for line in given if line not in right]
    assert set(right) < set(given) and 1 <= len(wrong) <= pieces.MOST_WRONG
    assert [*given][: len(right)] != right or len(right) == 1, "they stand there in their order"

    pieces.put(lab, number, [given[line] for line in right])
    filled = (tmp_path / master.name).read_text()
    solved = marks.cut(master.read_text(), keep=lambda asked: asked == number)
    solved = solved.replace(f"solutions/{topic}/", f"labs/{topic}/")
    assert pieces.code(filled) == pieces.code(solved)

    pieces.put(lab, number, [given[wrong[0]]])
    assert wrong[0].strip() in map(str.strip, (tmp_path / master.name).read_text().splitlines())
    pieces.fade(lab, number)
    lines = [line.strip() for line in (tmp_path / master.name).read_text().splitlines()]
    blank = [line for line in lines if pieces.BLANK in line]
    assert 1 <= len(blank) <= len(right) and not set(blank) & {line.strip() for line in right}


def test_two_gaps_of_a_script_are_filled_one_after_the_other(tmp_path: Path) -> None:
    lab = _lab(tmp_path, "05_horovod")
    master = (ROOT / "solutions/05_horovod/runme.py").read_text()
    for number, (solution, _) in marks.gaps(master).items():
        given = _numbered(lab, number)
        pieces.put(lab, number, [given[line] for line in pieces.code(solution)])
    text = (tmp_path / "runme.py").read_text()
    everything = marks.cut(master, keep=lambda number: True).replace("solutions/", "labs/")
    assert pieces.code(text) == pieces.code(everything)


def test_an_order_that_begins_inside_a_loop_spoils_none_after_it(tmp_path: Path) -> None:
    lab = _lab(tmp_path, "03_spmd")
    master = (ROOT / "solutions/03_spmd/runme.py").read_text()
    right = pieces.code(marks.gaps(master)[2][0])
    given = _numbered(lab, 2)
    assert right[1].startswith("    ")
    pieces.put(lab, 2, [given[line] for line in right[1:]])
    pieces.put(lab, 2, [given[line] for line in right])
    solved = marks.cut(master, keep=lambda asked: asked == 2).replace("solutions/", "labs/")
    assert pieces.code((tmp_path / "runme.py").read_text()) == pieces.code(solved)
    with pytest.raises(ScaleoutError, match="Piece 2 stands there twice"):
        pieces.put(lab, 2, [2, 1, 2])


def test_the_settings_of_a_job_are_pieces(tmp_path: Path) -> None:
    given = _numbered(_lab(tmp_path, "07_scaling"), 5)
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1"} < {*given}


def test_lines_of_ones_own_stay_and_mistakes_are_named(tmp_path: Path) -> None:
    lab = _lab(tmp_path, "00_welcome")
    script = tmp_path / "runme.py"
    with pytest.raises(ScaleoutError, match="no piece 99: TODO 1 has 1 to"):
        pieces.put(lab, 1, [1, 99])
    with pytest.raises(ScaleoutError, match=r"no TODO 9; it has 1, 2, 3\."):
        pieces.shown(lab, 9)
    at = marks.lines_of_todos(script.read_text())[1]
    lines = script.read_text().splitlines(keepends=True)
    while lines[at].strip().startswith("#"):
        at += 1
    own = "".join([*lines[:at], "    rank = mine\n", *lines[at:]])
    script.write_text(own)
    with pytest.raises(ScaleoutError, match="lines of your own. Type  scaleout reset"):
        pieces.put(lab, 1, [1])
    assert script.read_text() == own
    script.write_text(own.replace("# TODO 1", "# done 1"))
    with pytest.raises(ScaleoutError, match="no mark of TODO 1"):
        pieces.fade(lab, 1)
    (tmp_path / pieces.FILE).write_text("{")
    with pytest.raises(ScaleoutError, match="damaged"):
        pieces.shown(lab, 1)


def test_a_wrong_line_stands_beside_each_right_one_before_a_second() -> None:
    right = ["first = 1", "total = sum(x)"]
    fills = [["first = 0", right[1]], ["first = 2", right[1]], [right[0], "total = max(x)"]]
    assert pieces.mistakes(right, fills) == ["first = 0", "total = max(x)", "first = 2"]
    assert pieces.mistakes(right, [["a", "b"], right]) == [], "nobody knows which of two it is"
    assert pieces.mistakes(["x = 1  # (n,)"], [["x = 1"]]) == [], "a remark makes no difference"


def test_a_faded_line_lacks_its_longest_name_but_never_its_first_word() -> None:
    assert pieces.faded("    total = comm.allreduce(part)") == "    total = comm.____(part)"
    assert pieces.faded("x[0] = total") == "x[0] = ____"
    assert pieces.faded("else:") == "else:"
