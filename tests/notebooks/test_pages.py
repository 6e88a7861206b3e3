"""The course as web pages: complete, offline, every link leading somewhere, every picture with
words, and no answer in those that attendees get."""

import re
import runpy
from pathlib import Path

import pytest

from scaleout.jobs import messages

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted(path.stem for path in (ROOT / "solutions").glob("[0-9][0-9]_*.ipynb"))
make_pages = runpy.run_path(str(ROOT / "tools/make_pages.py"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "answers"
    assert make_pages["main"](folder, answers=True) == 0
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "pages"
    assert make_pages["main"](folder) == 0
    return folder


@pytest.mark.parametrize("kind", ["answers", "pages"])
def test_every_topic_has_its_page_and_none_needs_a_network(
    kind: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    assert {f"{book}.html" for book in BOOKS} | {"index.html", "errors.html"} <= {
        p.name for p in folder.glob("*.html")
    }
    for page in folder.glob("*.html"):
        assert not re.findall(
            r'(?:src|<link[^>]*href)="(?:https?:)?//[^"]*', page.read_text(encoding="utf-8")
        )


def test_attendees_pages_hold_no_answer(pages: Path) -> None:
    assert not {"teaching.html", "instructors.html"} & {p.name for p in pages.glob("*.html")}
    assert not (pages / "solutions").exists() and not list(pages.rglob("capstone-*"))
    for page in pages.glob("[0-9]*.html"):
        body = page.read_text(encoding="utf-8").split("</style>")[-1]
        assert "jp-OutputArea-output" not in body and "data:image/png" not in body, page.name


@pytest.mark.parametrize("book", BOOKS)
def test_every_picture_has_words_that_stand_in_for_it(answers: Path, book: str) -> None:
    images = re.findall(r"<img[^>]*>", (answers / f"{book}.html").read_text(encoding="utf-8"), re.S)
    if "image/png" not in (ROOT / f"solutions/{book}.ipynb").read_text(encoding="utf-8"):
        pytest.skip("it has changed since it was last run whole, so it stores no outputs")
    assert images
    for image in images:
        alt = re.search(r"""alt=(["'])(.+?)\1""", image, re.S)
        assert alt and len(alt[2]) > 20 and "No description" not in alt[2], alt and alt[2]


def test_headings_have_the_names_that_the_doctor_and_the_jobs_give_them(pages: Path) -> None:
    text = (pages / "errors.html").read_text(encoding="utf-8")
    assert all(
        f'id="{messages.anchor(heading)}"' in text
        for heading in (*messages.MESSAGES, *messages.FINDINGS)
    )


def test_nobodys_folder_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert make_pages["main"](tmp_path) == 2 and "exists already" in capsys.readouterr().out
    assert (tmp_path / "mine.txt").exists()
