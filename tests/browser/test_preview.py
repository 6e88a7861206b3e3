"""The preview's pages in a real browser: opened from a file, by keyboard alone, in both themes and
on a phone, and nothing that was measured before the guess."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import make_preview
import pytest
from axe import violations
from helpers import CHROMIUM, QUIET, ROOT, needs_a_browser

from scaleout.teaching import guesses

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = ROOT / make_preview.FOLDER
TOPICS = sorted(path.stem for path in FOLDER.glob("[0-9]*.html"))
THREE = FOLDER / "05_horovod.html"
FIGURE = "[data-hash]"
pytestmark = [pytest.mark.browser, needs_a_browser]
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: "Browser") -> Iterator[Open]:
    """Opens a page in a browser that nobody has used; no request but its own, and no error."""
    contexts, asked, errors = [], [], []

    def opens(path: Path, width: int = 1000, **more: Any) -> "Page":
        context = browser.new_context(viewport={"width": width, "height": 900}, **more)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.goto(path.as_uri())
        return page

    yield opens
    for context in contexts:
        context.close()
    assert [url for url in asked if not url.startswith("file:")] == [] and errors == []


def spoken(page: "Page") -> str:
    """All that the accessibility tree of a page holds."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    nodes = [node for node in tree["nodes"] if not node.get("ignored")]
    return "\n".join(str(node.get("name", {}).get("value", "")) for node in nodes)


def findings(page: "Page") -> list[str]:
    """The sentences of what was found, whether they are shown or not."""
    return list(page.locator(".finding").all_text_contents())


def by_keyboard(page: "Page", guess: str) -> None:
    """Go on with Tab to the next question that is open, and answer it."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('input:not([readonly])')"):
            page.keyboard.type(guess)
            page.keyboard.press("Enter")
            return
    raise AssertionError("no question is reached by Tab")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("topic", TOPICS)
def test_nothing_measured_is_seen_or_read_aloud_before_the_guess(
    opened: Open, topic: str, script: bool
) -> None:
    page = opened(FOLDER / f"{topic}.html", java_script_enabled=script)
    figures = page.locator(FIGURE)
    asked = page.locator("section[data-question]").count()
    assert asked >= 1 and figures.count() >= 5 * asked
    assert not any(figure.is_visible() for figure in figures.all())
    assert page.locator("input:visible").count() == (asked if script else 0)
    read, seen = spoken(page), page.locator("body").inner_text()
    assert page.locator("h1").inner_text() in read
    for said in {*findings(page), *page.locator("b[data-hash]").all_text_contents()}:
        assert said not in read, said
        assert not re.search(rf"(?<![\d.]){re.escape(said)}(?![\d.])", seen), said


def test_a_guess_by_keyboard_alone_shows_its_own_answer_and_is_kept(
    opened: Open, tmp_path: Path
) -> None:
    page = opened(THREE)
    sentences = findings(page)
    assert len(sentences) == 3
    by_keyboard(page, "many")
    status = page.locator("section[data-question] [role=status]")
    assert status.first.inner_text() == "Write a number above 0, such as 1.5."
    assert page.locator(f"{FIGURE}:visible").count() == 0
    assert page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"
    page.keyboard.press("Control+a")
    page.keyboard.type("1,5")  # as half of Europe writes it
    page.keyboard.press("Enter")
    first = page.locator("section[data-question]").first
    assert status.first.inner_text().startswith("Your guess is locked.")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert sentences[0] in first.inner_text() and sentences[0] in spoken(page)
    own = first.locator(f"{FIGURE}:visible").count()
    assert own >= 5 and page.locator(f"{FIGURE}:visible").count() == own, "the others stay shut"
    assert first.locator("td.yours").first.inner_text() in ("too low", "within", "too high")
    assert first.locator("input").input_value() == "1.5"
    assert first.locator("input").get_attribute("readonly") is not None
    assert first.locator("button:visible").count() == 0
    by_keyboard(page, "2")
    by_keyboard(page, ".75")
    assert page.locator(f"{FIGURE}:visible").count() == page.locator(FIGURE).count()
    keys = [part.get_attribute("data-question") for part in page.locator("[data-question]").all()]
    line = page.locator("#line").input_value()
    said = " ".join(f"{key}={value}" for key, value in zip(keys, (1.5, 2, 0.75), strict=True))
    assert line == f"scaleout-guesses 05_horovod {said}"
    (tmp_path / guesses.FILE).write_text(line)
    assert [*guesses.read(tmp_path)[0].values()] == [1.5, 2, 0.75]
    page.reload()
    assert page.locator("#line").input_value() == line, "the browser has kept them"
    page.goto((FOLDER / "index.html").as_uri())
    assert page.locator("#line").input_value() == line
    page.locator("#forget").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert not page.locator("#hand-in").is_visible()
    page.goto(THREE.as_uri())
    assert page.locator(f"{FIGURE}:visible").count() == 0


def test_what_a_browser_has_kept_wrongly_opens_nothing(opened: Open) -> None:
    page = opened(THREE)
    for kept in ("[", '"x"', "null", '{"apart": "x"}', '{"apart": -1}'):
        name = "scaleout-guesses 05_horovod"
        page.evaluate("pair => localStorage.setItem(...pair)", [name, kept])
        page.reload()
        assert page.locator(f"{FIGURE}:visible").count() == 0, kept
        assert page.locator("input:visible").count() == 3
        assert not page.locator("#hand-in").is_visible()


def test_without_scripts_a_page_can_be_read(opened: Open) -> None:
    page = opened(THREE, java_script_enabled=False)
    for summary in page.locator("summary").all():
        summary.press("Enter")
    assert page.locator(f"{FIGURE}:visible").count() == page.locator(FIGURE).count()
    assert page.locator("#hand-in:visible, form:visible").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_before_and_after_the_guess(opened: Open, axe: str, theme: str) -> None:
    found = {}
    for path in sorted(FOLDER.glob("*.html")):
        page = opened(path, color_scheme=theme, bypass_csp=True)
        found[f"{path.name}, before"] = violations(page, axe)
        for field in page.locator("input").all():
            field.fill("1.2")
            field.press("Enter")
        found[f"{path.name}, after"] = violations(page, axe)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (theme == "light")
        page.close()
    assert len(found) == 2 * (len(TOPICS) + 1)
    assert not any(found.values()), json.dumps(found, indent=1)


def test_axe_sees_a_label_that_is_missing(opened: Open, axe: str, tmp_path: Path) -> None:
    text = THREE.read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(text.replace("<label for=", "<label id="))
    assert violations(opened(tmp_path / "page.html", bypass_csp=True), axe)


@pytest.mark.parametrize("width", [320, 360])
def test_it_does_not_run_off_a_phone(opened: Open, width: int) -> None:
    for path in sorted(FOLDER.glob("*.html")):
        page = opened(path, width=width)
        for field in page.locator("input").all():
            field.fill("1.2")
            field.press("Enter")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        page.close()
