"""What a class gets on paper: all of it from the notebooks and pages, on as few pages as it says."""

import html
import json
import re
import runpy
import shutil
from pathlib import Path

import pytest
from helpers import needs_a_browser

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
make_handouts = runpy.run_path(str(ROOT / "tools/make_handouts.py"))


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The text of each handout: three days, the exercises, the tasks for the quick."""
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        assert make_handouts["main"](folder) == 0
    text = re.sub(r"<[^>]+>", "", (folder / "handouts.html").read_text().replace("<section>", "\f"))
    return html.unescape(text).split("\f")[1:]


def test_each_notebook_gives_its_closing_lines_to_one_day_and_its_exercise(
    sections: list[str],
) -> None:
    *days, exercises, early = sections
    assert len(days) == 3
    for book in BOOKS:
        text = "\n".join("".join(c["source"]) for c in json.loads(book.read_text())["cells"])
        closing = text.partition("## What you take with you\n")[2].split("\n## ")[0]
        lines = re.findall(r"^- .*?(\w[\w ]{9,})", closing, re.M)
        assert len(lines) == 3
        assert [sum(line in day for day in days) for line in lines] == [1, 1, 1], book.stem
        asked = re.search(r"^## On your own\n\n.*?(\w[\w ]{9,})", text, re.M)
        assert asked and asked[1] in exercises, book.stem
        assert re.search(rf"\b{book.stem[:2]} [A-Za-z]", early), book.stem
    assert "SPMD (00): single program" in days[0] and "SPMD (00): single program" not in days[1]
    assert "scaleout compare" in days[1] and "scaleout compare" not in days[0]
    assert not re.search(r"\]\(|¶", "".join(sections)), "a link is left"


@needs_a_browser
def test_a_day_is_on_two_pages_and_the_rest_on_one_each(tmp_path: Path) -> None:
    assert make_handouts["main"](tmp_path) == 0
    assert make_handouts["_pages"](tmp_path / "handouts.pdf") <= 8
    page = (tmp_path / "handouts.html").read_text()
    assert "scaleout compare <span>--</span> A :: B" in page, "a line may end between its hyphens"
    assert "<span>-n</span> 2 <span>--</span> <span>--repeats</span>" in page
    assert "(S - 1)" in page and 'id="00-Welcome:-know' in page
