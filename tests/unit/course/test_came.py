"""Every guess of a notebook has an expression for what came, in the notebook's own names; after a
cell that answers a guess, the two are kept, once, and no cell hears of it."""

import ast
import builtins
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from helpers import ROOT
from IPython.core.interactiveshell import InteractiveShell

from scaleout.course import came

BOOKS = sorted((ROOT / "solutions").glob("*.ipynb"))
ASKED = {
    "guess_sum": came.Asked("total", "times"),
    "guess_word": came.Asked("max(words, key=words.get)", ""),
    "guess_late": came.Asked("print('seen') or 10 / divisor", "ms"),
}


def code_of(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    return [re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE) for source in code]


def made_by(tree: ast.AST) -> set[str]:
    """The names that code assigns or imports."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def used_by(expression: str) -> set[str]:
    """The names that an expression takes from the notebook."""
    tree = ast.parse(f"({expression}\n)", mode="eval")
    loaded = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return loaded - made_by(tree) - {*dir(builtins)}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_every_guess_has_what_came_in_names_of_its_notebook(path: Path) -> None:
    code = code_of(path)
    guesses = dict(
        found
        for source in code
        for found in re.findall(r"^(guess_\w+) = (.+?)(?:  #.*)?$", source, re.M)
    )
    text = (path.with_suffix("") / came.MASTER).read_text(encoding="utf-8")
    asked = tomllib.loads(text)
    assert guesses and [*asked] == [*guesses]
    names = set[str]().union(*(made_by(ast.parse(source)) for source in code))
    for name, one in asked.items():
        used = used_by(one["came"])
        assert used and used <= names, f"{name}: {used - names} is no name of the notebook"
        number = type(ast.literal_eval(guesses[name])) in (int, float)
        assert bool(one["unit"]) == number, f"{name}: a number has a unit, and a word has none"


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_the_lab_has_the_same_and_shows_it_to_nobody(path: Path) -> None:
    master = (path.with_suffix("") / came.MASTER).read_text(encoding="utf-8")
    file = ROOT / "labs" / path.stem / came.FILE
    found = came.read(file)
    assert {name: {"came": one.came, "unit": one.unit} for name, one in found.items()} == (
        tomllib.loads(master)
    )
    shown = file.read_text(encoding="utf-8")
    assert not [name for name, one in found.items() if json.dumps(one.came) in shown]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    yield opened()
    InteractiveShell.clear_instance()


def opened() -> InteractiveShell:
    """A notebook that somebody has opened."""
    shell = InteractiveShell()
    shell.events.register("post_run_cell", came.Came("04_kmeans", ASKED, shell.user_ns).look)
    return shell


def run(shell: InteractiveShell, code: str) -> bool:
    return bool(shell.run_cell(code, store_history=False).success)


def kept(folder: Path) -> list[tuple[object, ...]]:
    file = folder / came.KEPT
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    assert all(row["notebook"] == "04_kmeans" and row["utc"] for row in rows)
    return [(row["name"], row["guess"], row["came"], row["unit"]) for row in rows]


def test_a_guess_is_kept_with_what_came_and_only_the_first(
    shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, "guess_sum = 3") and kept(tmp_path) == []
    assert run(shell, "guess_sum = 4\nother = 1") and kept(tmp_path) == []
    cell = "import numpy as np\ntotal = np.float64(1.5)"
    assert run(shell, cell)
    first = [("guess_sum", 3.0, 1.5, "times")]
    assert kept(tmp_path) == first
    assert (
        run(shell, cell) and run(shell, "guess_sum, total = 1.6, 1.6") and kept(tmp_path) == first
    )
    again = opened()  # another day
    assert run(again, "guess_sum, total = 7, 7") and kept(tmp_path) == first
    assert capsys.readouterr() == ("", "")


def test_a_guess_that_is_made_after_the_answer_is_none(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    assert run(shell, "guess_sum = None\ntotal = 2")
    assert run(shell, "guess_sum = 2\ntotal = 2") and kept(tmp_path) == []
    assert run(shell, "words = {'a': 1, 'b': 2}"), "known before its guess was asked for"
    assert run(shell, "guess_word = ' B '")
    assert kept(tmp_path) == [("guess_word", "B", "b", "")]


@pytest.mark.parametrize("divisor", ["0", "float('nan')", "[1]"])
def test_an_expression_that_raises_is_tried_again_and_nobody_sees_it(
    shell: InteractiveShell, tmp_path: Path, divisor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shell, f"guess_late, divisor = 4, {divisor}") and kept(tmp_path) == []
    assert run(shell, "divisor = 2")
    assert kept(tmp_path) == [("guess_late", 4.0, 5.0, "ms")]
    assert capsys.readouterr() == ("", "")


def test_a_cell_that_fails_answers_nothing(shell: InteractiveShell, tmp_path: Path) -> None:
    assert not run(shell, "guess_sum, total = 3, 2\n1 / 0") and kept(tmp_path) == []
    assert run(shell, "pass") and kept(tmp_path) == [("guess_sum", 3.0, 2.0, "times")]


def test_a_word_for_a_number_is_no_guess_and_a_number_can_be_a_word(
    shell: InteractiveShell, tmp_path: Path
) -> None:
    assert run(shell, "guess_sum, total = 'three', 2") and kept(tmp_path) == []
    assert run(shell, "guess_word, words = 8, {'8': 1}")
    assert kept(tmp_path) == [("guess_word", "8", "8", "")]


def test_results_that_cannot_be_written_disturb_nobody(
    shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / came.KEPT).mkdir()
    assert run(shell, "guess_sum, total = 3, 2")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("opened_as", "begins"),
    [
        ("notebooks/00_welcome.ipynb", True),
        ("solutions/00_welcome.ipynb", False),
        ("x.ipynb", False),
    ],
)
def test_only_a_notebook_of_the_course_is_looked_at(
    opened_as: str, begins: bool, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", opened_as)
    before = len(shell.events.callbacks["post_run_cell"])
    came.begin(shell)
    assert len(shell.events.callbacks["post_run_cell"]) == before + begins


def test_a_damaged_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / came.FILE).write_text("{")
    assert came.read(tmp_path / came.FILE) == {} == came.read(tmp_path / "none")
