"""What README and its two pictures say of the masters: the rules of the lint, on a made-up workshop."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lint_text
import make_pictures
import nbformat
import pytest
from helpers import ROOT
from PIL import Image

STAMP = "Run on AMD EPYC, AVX2, 2 cores, 24 GiB of memory, TensorFlow 2.18.1, 26 November 2026."
HEAD = (
    "# 05 Tiny\n\n**How long.** About 75 minutes. On two cores, all cells together took 8 minutes."
)
README = """\
| notebook | the question it answers | class minutes | machine minutes |
|---|---|---|---|
| [05 tiny](notebooks/05_tiny.ipynb) | How fast is it? | 75 | 8 |

These are the pictures that the notebooks store, measured on two cores of an AMD EPYC,
November 2026:

![A picture of each topic](docs/tour.png)
"""
SENTENCE = "two ranks: no difference is shown (within ±4.3 %)"
LAB = '"""A lab."""\n\nimport os\n\nprint(os)\n'


def png(red: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 2), (red, 0, 0)).save(out, format="png")
    return out.getvalue()


def drawn(red: int) -> nbformat.NotebookNode:
    data = {"image/png": base64.b64encode(png(red)).decode()}
    return nbformat.v4.new_output("display_data", data)


def cell(source: str, *outputs: nbformat.NotebookNode, tags: str = "") -> nbformat.NotebookNode:
    about = {"tags": tags.split()}
    return nbformat.v4.new_code_cell(source, outputs=list(outputs), metadata=about)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One topic whose stored run README and the pictures speak of, and the first notebook with its lab."""
    for folder in ("docs", "solutions", "notebooks", "labs/00_welcome"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").write_text(README)
    said = nbformat.v4.new_output("execute_result", {"text/plain": repr(SENTENCE)})
    book = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(HEAD),
            cell("plot(0)", drawn(1), drawn(2)),
            cell("sentence", said, tags="tour headline"),
            cell("plot(1)", drawn(3), tags="further"),
        ],
        metadata={"scaleout": {"minutes": 7.7, "stamp": STAMP}},
    )
    nbformat.write(book, tmp_path / "solutions/05_tiny.ipynb")
    first = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# First\n\nText."), *map(cell, "abc")]
    )
    nbformat.write(first, tmp_path / lint_text.DESK[0])
    (tmp_path / lint_text.DESK[1]).write_text(LAB)
    seen = {name: lint_text.parts(tmp_path / name)[:3] for name in lint_text.DESK}
    make_pictures.keep(tmp_path / "docs/tour.png", png(0), {"05_tiny": SENTENCE})
    make_pictures.keep(tmp_path / "docs/desk.png", png(0), seen)
    monkeypatch.setattr(lint_text, "ROOT", tmp_path)
    return tmp_path


def problems(workshop: Path) -> list[str]:
    return [
        *lint_text.minutes(workshop / "solutions/05_tiny.ipynb"),
        *lint_text.tour_picture(),
        *lint_text.tour_machine(),
        *lint_text.desk_picture(),
    ]


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def _change(path: Path, change: Callable[[Any], Any]) -> None:
    read = json.loads(path.read_text())
    change(read)
    path.write_text(json.dumps(read))


def test_what_is_in_step_is_not_spoken_of(workshop: Path) -> None:
    assert problems(workshop) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("README.md", "| 8 |", "| 9 |", "README.md gives 9 machine minutes, and the stored run took 8"),
        ("README.md", " | 8 |", " |", "README.md gives no machine minutes, and the stored run took 8"),
        ("solutions/05_tiny.ipynb", "took 8 minutes", "took 5 minutes",
         "its head gives 5 machine minutes, and the stored run took 8"),
        ("solutions/05_tiny.ipynb", "took 8 minutes", "took eight to ten minutes",
         "its head gives no machine minutes, and the stored run took 8"),
        ("README.md", "AMD EPYC", "Intel Xeon",
         f"README.md names another machine above tour.png than 05_tiny: {STAMP}"),
        ("README.md", "November", "October",
         f"README.md names another machine above tour.png than 05_tiny: {STAMP}"),
        ("solutions/05_tiny.ipynb", "4.3 %", "4.4 %",
         "docs/tour.png shows of 05_tiny what its master does not store: type  make pictures"),
        ("notebooks/00_welcome.ipynb", "# First", "# Welcome",
         "docs/desk.png shows another beginning of notebooks/00_welcome.ipynb: type  make pictures"),
        ("labs/00_welcome/runme.py", "import os", "import re as os",
         "docs/desk.png shows another beginning of labs/00_welcome/runme.py: type  make pictures"),
    ],
)  # fmt: skip
def test_one_sentence_says_what_is_wrong(
    workshop: Path, name: str, old: str, new: str, says: str
) -> None:
    _replace(workshop / name, old, new)
    assert problems(workshop) == [says]


def test_a_run_of_other_minutes_turns_both_places_red(workshop: Path) -> None:
    book = workshop / "solutions/05_tiny.ipynb"
    _change(book, lambda read: read["metadata"]["scaleout"].update(minutes=8.5))
    assert problems(workshop) == []
    _change(book, lambda read: read["metadata"]["scaleout"].update(minutes=8.6))
    assert [problem.partition(" gives")[0] for problem in problems(workshop)] == [
        "README.md",
        "its head",
    ]


def test_a_topic_more_or_less_is_missed_in_the_picture(workshop: Path) -> None:
    book = workshop / "solutions/05_tiny.ipynb"
    book.rename(book.with_name("06_other.ipynb"))
    assert [problem.split()[3] for problem in lint_text.tour_picture()] == ["05_tiny", "06_other"]


def test_a_picture_that_says_nothing_is_no_witness(workshop: Path) -> None:
    (workshop / "docs/tour.png").write_bytes(png(0))
    (workshop / "docs/desk.png").unlink()
    silent, *desk = problems(workshop)
    assert silent == "docs/tour.png does not say what it shows: type  make pictures"
    assert len(desk) == len(lint_text.DESK)


def test_what_lies_below_the_screens_edge_may_change(workshop: Path) -> None:
    _change(workshop / lint_text.DESK[0], lambda read: read["cells"][3].update(source="d"))
    _replace(workshop / lint_text.DESK[1], "print(os)", "print()")
    assert problems(workshop) == []
    _change(workshop / lint_text.DESK[0], lambda read: read["cells"].pop(1))
    assert len(problems(workshop)) == 1


def test_a_stop_is_what_the_master_stores(workshop: Path) -> None:
    book = workshop / "solutions/05_tiny.ipynb"
    stop = make_pictures.stop_of(book)
    assert (stop.topic, stop.title, stop.headline) == ("05_tiny", "05 Tiny", SENTENCE)
    assert lint_text.headline(book) == SENTENCE
    assert stop.figures == [png(2)], "the last above Further, as its tour draws none"
    _change(book, lambda read: read["cells"][1]["metadata"].update(tags=["tour"]))
    assert make_pictures.stop_of(book).figures == [png(1), png(2)]


@pytest.mark.parametrize(("name", "width"), [("tour", 1300), ("desk", 1600)])
def test_the_pictures_suit_a_page(name: str, width: int) -> None:
    path = ROOT / f"docs/{name}.png"
    assert Image.open(path).width == width and path.stat().st_size < 2**20
