"""What a reader of the notebooks can rely on: guesses come back in pictures, questions answer, each
ends alike, and no text holds a figure that a machine has measured."""

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


@each_master
def test_an_instructor_knows_what_to_expect_of_every_guess(book: Path) -> None:
    page = (ROOT / "docs" / "teaching.md").read_text()
    section = re.search(rf"^## {book.stem[:2]} .*?(?=^## |\Z)", page, re.M | re.S)
    assert section, f"docs/teaching.md has no section about {book.stem}"
    source = "\n".join(cell.source for cell in _cells(book, "code"))
    missing = {g for g in re.findall(r"^(guess_\w+) = ", source, re.M) if g not in section[0]}
    assert not missing
    parts = ("**Discuss.**", "**Those who are done early**", "**The open exercise**")
    assert [part for part in parts if part not in section[0]] == []


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


STAMP = re.compile(r"Run on (.+), (\d+ cores?), .+, \d+ [A-Z][a-z]+ \d{4}\.")
UNSTAMPED = {"09", "10", "11"}  # until they are run whole again


def test_the_outputs_name_the_one_machine_that_they_come_from() -> None:
    machines: dict[str, set[tuple[str, ...]]] = {}
    for book in MASTERS:
        said = [
            STAMP.fullmatch(line)
            for cell in _cells(book, "code")
            for out in cell.outputs
            for line in out.get("text", "").splitlines()
        ]
        machines[book.stem[:2]] = {match.groups() for match in said if match}
    stamped = {name: found for name, found in machines.items() if found}
    assert machines.keys() - stamped.keys() <= UNSTAMPED
    assert len(set().union(*stamped.values())) == 1, stamped


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_has_words_that_stand_in_for_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert all(len(alt.split()) >= 5 for alt in re.findall(r"!\[(.*?)\]\(", text))
    assert "<img" not in text


@each_master
def test_nothing_is_called_simple(book: Path) -> None:
    text = "\n".join(cell.source for cell in _cells(book, "markdown"))
    assert re.findall(r"\b(?:simply|just|obviously|of course)\b", text, re.I) == []


# Figures in a text that nobody has measured: settings, sizes, formulas, aims, what a question gives.
GIVEN = {
    "00": "95 %, 100 times",
    "01": "3000.7, 25.6, 22.9",
    "02": "370 MB",
    "03": "95 %, 16 MiB, 140 MB",
    "04": "6 dB, 40 dB, 153 MiB",
    "05": "0.85, 1.7 times, 2 times, 0.9, 1.8",
    "06": "1 ms, 10 Gb/s",
    "07": "8 seconds, 2 seconds, 4 MiB, 95 %, 10 Gb/s, 100 Gb/s, 100 MB, 2,046 times, 182 images/s, "
    "0.9, 0.6",
    "08": "0.0, 0.00000006",
    "09": "900 MiB, 3.5 ms, 10 Gb/s",
    "10": "0 ms, 20 ms, 5 %, 2 ms, 50 MB/s, 1 GB/s, 42 GB, 1.28",
    "11": "2 KiB, 1 MiB",
}
UNIT = (
    r"\s?%|\s(?:per cent|percentage points?|points?|times|dB|CPUs|[\w-]+/s|[kKMGT]i?B|"
    r"[mun]?s|h|seconds?|minutes?|milliseconds?|microseconds?)"
)
FIGURE = re.compile(rf"(?<![\w.,`-])(?:\d[\d,]*(?:\.\d+)?(?:{UNIT})|\d+\.\d+)(?![\w/]|\.\d)")
SOURCE = re.compile(r"\[[A-Z]{2,}\d*\]")
APART = r"```.*?```|^\*\*How long[^\n]*|^(?:Choose an answer|## Read on).*?(?=^#|\Z)"


def _figures(text: str) -> list[str]:
    """Rates, times, shares and decimals in paragraphs that name no source; without the code, the
    questions at the end, how long it all takes, and what to read on."""
    lines = re.sub(APART, "", text, flags=re.S | re.M).splitlines()
    return [
        found[0] for line in lines if not SOURCE.search(line) for found in FIGURE.finditer(line)
    ]


@each_master
def test_no_text_holds_what_a_machine_has_measured(book: Path) -> None:
    found = [figure for cell in _cells(book, "markdown") for figure in _figures(cell.source)]
    given = re.split(r", (?=\d)", GIVEN.get(book.stem[:2], ""))
    assert sorted(set(found) - set(given)) == [], "let a cell print it, or name its source"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("oneDNN is 2.3 times as fast.", ["2.3 times"]),
        ("It lost 45 % of a step, or 59 ms.", ["45 %", "59 ms"]),
        ("Efficiency falls to 0.25 on 1,024 ranks.", ["0.25"]),
        ("Two ranks reach 1,840 images/s.", ["1,840 images/s"]),
        ("It took 85 s with Keras [PRACE].", []),
        ("A batch of 512 on 1,024 ranks, as in 07.", []),
        ("Choose an answer, then click on it.\n\n**1.04 times. Keep it?**", []),
        ("**How long.** About 50 minutes.\n\nIt waits 5 % of it.", ["5 %"]),
    ],
)
def test_a_figure_without_a_source_is_seen(text: str, seen: list[str]) -> None:
    assert _figures(text) == seen
