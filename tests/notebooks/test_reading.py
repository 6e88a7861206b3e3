"""What a reader of the notebooks can rely on: guesses come back in pictures, questions answer, each
ends alike."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
MASTERS = sorted((ROOT / "solutions").glob("*.ipynb"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SUMMARY = "## What you take with you"
each_master = pytest.mark.parametrize("book", MASTERS, ids=lambda book: book.stem)


def _cells(book: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(book, as_version=4).cells if cell.cell_type == kind]


def _tree(source: str) -> ast.Module:
    return ast.parse("" if source.startswith("%%") else re.sub(r"^%.*$", "", source, flags=re.M))


SHOWN = re.compile(r"^(plots\.\w+|\w+\.plot|print|pd\.DataFrame|\w+\.assign)$")


def _guessed(cells: list[nbformat.NotebookNode]) -> dict[str, bool]:
    """{guess: whether its own cell or a later one shows it, in a picture, a table or a sentence}."""
    found: dict[str, bool] = {}
    for cell in cells:
        found |= dict.fromkeys(re.findall(r"^(guess_\w+) = ", cell.source, re.M), False)
        for node in ast.walk(_tree(cell.source)):
            if isinstance(node, ast.Call) and SHOWN.match(ast.unparse(node.func)):
                handed = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                found |= dict.fromkeys(handed & found.keys(), True)
    return found


@each_master
def test_every_guess_comes_back(book: Path) -> None:
    guessed = _guessed(_cells(book, "code"))
    assert guessed and all(guessed.values()), guessed


def test_a_guess_that_nothing_shows_is_seen() -> None:
    cells = [
        nbformat.v4.new_code_cell(text)
        for text in ("guess_a = None", "guess_b = 3\nlater(guess_b)", "plots.x(1, guess=guess_b)")
    ]
    assert _guessed(cells) == {"guess_a": False, "guess_b": True}
    assert _guessed(cells[::-1]) == {"guess_a": False, "guess_b": False}, "the picture comes first"


def _questions(book: Path) -> dict[str, list[tuple[str, str]]]:
    """{question: [(answer, what is said of it), ...]} of the cell with the questions."""
    (cell,) = [
        cell
        for cell in _cells(book, "markdown")
        if "Choose an answer, then click on it." in cell.source
    ]
    parts = re.split(r"^\*\*(.+\?.*)\*\*$", cell.source.split(SUMMARY)[0], flags=re.M)[1:]
    answer = re.compile(r"<details><summary>(.+?)</summary>\s*(.+?)</details>", re.S)
    return {
        asked: answer.findall(below) for asked, below in zip(parts[::2], parts[1::2], strict=True)
    }


@each_master
def test_two_to_four_questions_each_wrong_answer_with_its_reason(book: Path) -> None:
    questions = _questions(book)
    assert 2 <= len(questions) <= 4
    for asked, answers in questions.items():
        assert len(answers) >= 3, asked
        assert sum(said.startswith("Right") for _, said in answers) == 1, asked
        assert not any(said.startswith("Yes") for _, said in answers), asked
        assert all(len(said.split()) >= 3 for _, said in answers), asked


@each_master
def test_it_ends_with_three_lines_and_the_next_notebook(book: Path) -> None:
    text = "\n\n".join(cell.source for cell in _cells(book, "markdown"))
    assert text.count(SUMMARY) == 1
    ending = text.split(SUMMARY)[1].split("\n## ")[0]
    lines = re.findall(r"^- .+$", ending, re.M)
    assert len(lines) == 3, lines
    following = [other.name for other in MASTERS if other.name > book.name][:1]
    last = nbformat.read(book, as_version=4).cells[-1].source
    assert re.findall(r"\]\((\d\d_\w+\.ipynb)\)", last) == following, last


@each_master
def test_every_stored_picture_has_words_that_stand_in_for_it(book: Path) -> None:
    pictures = [
        out
        for cell in _cells(book, "code")
        for out in cell.outputs
        if "image/png" in out.get("data", {})
    ]
    assert pictures, "no picture in the whole notebook"
    said = [picture.metadata.get("image/png", {}).get("alt", "") for picture in pictures]
    assert all(len(alt.split()) >= 5 and "<" not in alt for alt in said), said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_has_words_that_stand_in_for_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert all(len(alt.split()) >= 5 for alt in re.findall(r"!\[(.*?)\]\(", text))
    assert "<img" not in text


@each_master
def test_nothing_is_called_simple(book: Path) -> None:
    text = "\n".join(cell.source for cell in _cells(book, "markdown"))
    assert re.findall(r"\b(?:simply|just|obviously|of course)\b", text, re.I) == []
