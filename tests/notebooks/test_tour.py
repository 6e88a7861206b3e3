"""The tour runs the tagged cells, goes on after a topic that fails, and leaves one page that needs
nothing else."""

import re
from pathlib import Path

import nbformat
import pytest

from scaleout.course import tour

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


def _book(path: Path, *sources: str) -> None:
    cells = [nbformat.v4.new_markdown_cell("# A title & more\n\nText.")]
    cells += [nbformat.v4.new_code_cell("raise SystemError('a cell without the tag was run')")]
    for number, source in enumerate(sources, 1):
        tags = ["tour", "headline"] if number == len(sources) else ["tour"]
        cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("labs", "notebooks", "solutions"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("SCALEOUT_QUICK", "")  # the tour sets it: put back afterwards
    return tmp_path


def test_the_page_holds_every_topic_and_its_pictures(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _book(
        workshop / "solutions/00_one.ipynb",
        PLOT,
        "import os\nf'quick is {os.environ[\"SCALEOUT_QUICK\"]} < 4'",
    )
    _book(workshop / "solutions/01_two.ipynb", "1 / 0", "'never'")
    assert tour.main(quick=True) == 1, "a topic failed"
    (page,) = workshop.glob("results/tour/*/index.html")
    text = page.read_text()
    assert (
        "quick is 3 &lt; 4" in text
        and "Failed: ZeroDivisionError" in text
        and "A title &amp; more" in text
    )
    assert "never" not in text and "a cell without the tag" not in text
    assert text.count('src="data:image/png;base64,') == 1
    assert not re.search(r'(src|href)="(?!data:|#)', text), "the page asks for another file"
    assert (
        page.with_name("00_one-1.png").read_bytes()[:4]
        == b"\x89PNG"
        == page.with_name("tour.png").read_bytes()[:4]
    )
    printed = capsys.readouterr()
    assert "quick is 3 < 4" in printed.out and "01_two" in printed.err, (
        "the table is printed, the bar drawn"
    )


def test_the_guesses_are_the_attendees_and_never_the_examples_of_a_master(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example, own = "guess_rate = 50  # your guess, such as 100", "guess_rate = 70  # mine"
    for book, guess in {
        "solutions/00_alone": example,
        "solutions/01_own": example,
        "notebooks/01_own": own,
        "solutions/02_open": example,
        "notebooks/02_open": "guess_rate = None  # your guess, such as 100",
        "notebooks/03_class": own,
    }.items():
        _book(workshop / f"{book}.ipynb", PLOT, guess, "f'guessed {guess_rate}'")
    assert tour.main(quick=False) == 0
    assert re.findall("guessed (.+)", capsys.readouterr().out) == ["None", "70", "None", "70"]
    (page,) = workshop.glob("results/tour/*/index.html")
    assert page.read_text().count("<p>The guesses: guess_rate = 70</p>") == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "does not appear to be JSON"),
        ("[]", "is no notebook that can be read"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "expected key: cells"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1]}', "can be read"),
        ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}', "the tag tour"),
        (b"\xff\xfe\x00", "is no notebook that can be read"),
        (None, "Is a directory"),
        ("object()", "the headline's cell shows <object at"),
        ("40 + 2", "the headline's cell shows 42"),
    ],
)
def test_a_damaged_notebook_ends_its_own_topic_alone(
    workshop: Path, capsys: pytest.CaptureFixture[str], content: str | bytes | None, said: str
) -> None:
    for topic in ("00_good", "02_good"):
        _book(workshop / f"solutions/{topic}.ipynb", "f'a headline of {1 + 1} words'")
    damaged = workshop / "solutions/01_bad.ipynb"
    if content is None:
        damaged.mkdir()
    elif isinstance(content, bytes):
        damaged.write_bytes(content)
    elif content[0] in "{[":
        damaged.write_text(content)
    else:
        _book(damaged, content)
    assert tour.main(quick=True) == 1
    good, bad, other = capsys.readouterr().out.splitlines()[:3]
    assert good.endswith("a headline of 2 words") and other.endswith("a headline of 2 words")
    assert "01_bad" in bad and "Failed: " in bad and said in bad
    (page,) = workshop.glob("results/tour/*/index.html")
    assert page.read_text().count("a headline of 2 words") >= 2 and "Failed: " in page.read_text()


def test_a_damaged_notebook_of_guesses_is_named(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _book(workshop / "solutions/00_one.ipynb", "guess_rate = 50", "'never'")
    (workshop / "notebooks/00_one.ipynb").write_text("{")
    assert tour.main(quick=True) == 1
    assert "Failed: notebooks/00_one.ipynb is no notebook" in capsys.readouterr().out
