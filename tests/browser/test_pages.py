"""The pages that people are given, in a real browser: nothing that axe-core calls a violation of
WCAG 2.1 A or AA."""

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe import violations
from helpers import CHROMIUM, QUIET, ROOT, needs_a_browser
from measured import STORY, honest, story

from scaleout import cli
from scaleout.course import tour

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, needs_a_browser]


@pytest.fixture(scope="module")
def page() -> "Iterator[Page]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_page(viewport={"width": 1000, "height": 900})
        browser.close()


def test_a_report(page: "Page", axe: str, tmp_path: Path) -> None:
    folder = honest(tmp_path / "results")
    assert cli.main(["report", str(folder)]) == 0
    path = folder / "report.html"
    assert violations(page, axe, path) == []
    assert page.locator("h1").text_content() == "What was measured"
    assert page.locator("svg").bounding_box()["width"] > 500  # type: ignore[index]
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320, "it runs off a phone"
    page.set_viewport_size({"width": 1000, "height": 900})
    path.write_text(path.read_text().replace('<html lang="en">', "<html>"))
    assert violations(page, axe, path), "axe sees nothing"


def test_a_story_with_its_points(
    page: "Page", axe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(story(tmp_path / "results")))
    assert cli.main(["report", *STORY, "--accuracy", "dice"]) == 0
    assert violations(page, axe, tmp_path / "results/report.html") == []
    assert page.locator("h2").first.text_content() == "Its points"
    assert violations(page, axe, ROOT / "docs/capstone-report.html") == []


def test_the_reports_of_a_class(
    page: "Page", axe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "own"))
    for name in ("one", "two"):
        assert cli.main(["report", str(honest(tmp_path / name / "results"))]) == 0
    assert cli.main(["collect", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    (path,) = (tmp_path / "own/class").rglob("reports.html")
    assert violations(page, axe, path) == []


def test_the_tour(page: "Page", axe: str, tmp_path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame({"rate": range(3)}, index=list("abc"))._repr_html_()
    picture = (ROOT / "docs/tour.png").read_bytes()
    said = "It is 2 times as fast."
    stop = tour.Stop(
        "00_one", "One", said, ok=True, guesses=["3"], figures=[picture], tables=[table]
    )
    path = tmp_path / "index.html"
    path.write_text(tour.page([stop]), encoding="utf-8")
    assert violations(page, axe, path) == []


@pytest.mark.slow
@pytest.mark.choice
@pytest.mark.parametrize("answers", [False, True])
def test_the_course_as_pages(page: "Page", axe: str, tmp_path: Path, answers: bool) -> None:
    make_pages = runpy.run_path(str(ROOT / "tools/make_pages.py"))
    assert make_pages["main"](tmp_path / "web", answers=answers) == 0
    paths = sorted((tmp_path / "web").glob("*.html"))
    found = {path.name: violations(page, axe, path) for path in paths}
    assert len(found) > 15 and not any(found.values()), json.dumps(found, indent=1)
