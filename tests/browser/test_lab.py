"""JupyterLab as `make lab` starts it, in a real browser: an attendee's first hour."""

import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from scaleout import exercises

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
pytestmark = pytest.mark.browser
needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)"
)


@contextmanager
def _make_lab(log: Path, *arguments: str) -> Iterator[str]:
    """The address, token included, that `make lab` prints. It must end by itself when make is told to."""
    environment = {**os.environ, "SCALEOUT_RESULTS": str(log.parent), "SCALEOUT_QUICK": "1"}
    with log.open("w") as file:
        command = ["make", "lab", "ARGS=" + " ".join(["--no-browser", *arguments])]
        make = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        end = time.monotonic() + 90
        while not (found := re.search(r"http://127\.0\.0\.1:\S+", log.read_text())):
            assert make.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.5)
        yield found[0]
    finally:
        family = psutil.Process(make.pid).children(recursive=True)
        make.terminate()
        make.wait(60)
        _, left = psutil.wait_procs(family, timeout=30)
        assert left == [], f"still there after the server was told to end: {left}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _make_lab(tmp_path_factory.mktemp("lab") / "log.txt") as address:
        yield address


@pytest.fixture
def page() -> "Iterator[Page]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_page(viewport={"width": 1500, "height": 1000})
        browser.close()


def test_the_server_is_closed_to_others(server: str) -> None:
    port = int(re.search(r":(\d+)/", server)[1])  # type: ignore[index]
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    assert listening and listening <= {"127.0.0.1", "::1"}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents", timeout=10)
    token = re.search(r"token=(\w{32,})", server)
    assert token, "no token, or a short one"
    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents?token={token[1]}", timeout=10)


@needs_a_browser
@pytest.mark.timeout(240)
def test_it_opens_on_the_first_notebook_with_its_lab_beside_it(server: str, page: "Page") -> None:
    page.goto(server)
    page.wait_for_selector(".jp-Notebook h1:has-text('know your machine')", timeout=60_000)
    page.wait_for_selector(".jp-FileEditor >> text=Every rank says who it is", timeout=60_000)
    course = sorted(book.name for book in (ROOT / "notebooks").glob("*.ipynb"))
    _until(lambda: page.locator(".jp-DirListing-itemText").all_inner_texts() == course, 30)
    assert page.locator("text=Jupyter news").count() == 0, "Lab asks about news"


@pytest.fixture
def attendee(tmp_path: Path) -> Path:
    """A copy of what an attendee has, as it is given out: labs and notebooks, nothing of the solutions."""
    for name in ("labs", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / "workshop" / name)
    for start in (tmp_path / "workshop/labs").glob(f"*/{exercises.PRISTINE}"):
        shutil.copyfile(start, start.with_name("runme.py"))
    return tmp_path / "workshop"


@needs_a_browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_attendee_works_through_a_notebook(attendee: Path, tmp_path: Path, page: "Page") -> None:
    places = [f"--ServerApp.root_dir={attendee}", f"--LabApp.workspaces_dir={tmp_path}/desk"]
    with _make_lab(tmp_path / "log.txt", *places) as address:
        page.goto(address.replace("/lab?", "/lab/tree/notebooks/00_welcome.ipynb?"))
        page.wait_for_selector(".jp-Notebook h1:has-text('know your machine')", timeout=60_000)
        _run_all(page)
        assert page.locator(".jp-OutputArea-output img").count() >= 4
        picture = page.locator(".jp-OutputArea-output img").first.bounding_box()
        assert picture and picture["width"] > 500, "the picture is smaller than the text beside it"
        assert re.search(r"TODO 1 +not started", _outputs(page, "TODO 1"))

        page.goto(address.replace("/lab?", "/lab/tree/labs/00_welcome/runme.py?"))
        page.wait_for_selector(".jp-FileEditor .cm-content", timeout=60_000)
        page.click(".jp-FileEditor .cm-content")
        page.keyboard.press("Control+A")
        solved = exercises.cut((ROOT / "solutions/00_welcome/runme.py").read_text(), keep=lambda number: number == 1)
        page.keyboard.insert_text(solved)
        # Lab saves by itself, so that a check never sees an older file than the one on the screen.
        _until(lambda: (attendee / "labs/00_welcome/runme.py").read_text().strip() == solved.strip(), 20)

        page.goto(address.replace("/lab?", "/lab/tree/notebooks/00_welcome.ipynb?"))
        page.wait_for_selector(".jp-Notebook h1:has-text('know your machine')", timeout=60_000)
        _type(page, "welcome.check(1)")
        page.wait_for_selector(".jp-OutputArea >> text=/TODO 1 +passed/", timeout=60_000)

        _type(page, "welcome.run(ranks=2, strips=10**13)")
        _until(lambda: "1000000000000" in _outputs(page, "10000000000000"), 30)
        _until(lambda: _jobs(), 30)
        page.keyboard.press("Escape")
        page.keyboard.press("i")
        page.keyboard.press("i")
        page.wait_for_selector(
            ".jp-OutputArea >> text=/Interrupted after .* the job (has been|is being) ended/", timeout=30_000
        )
        _until(lambda: not _jobs(), 30)


@needs_a_browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kmeans_runs_to_its_end_before_a_gap_is_filled(attendee: Path, tmp_path: Path, page: "Page") -> None:
    places = [f"--ServerApp.root_dir={attendee}", f"--LabApp.workspaces_dir={tmp_path}/desk"]
    with _make_lab(tmp_path / "log.txt", *places) as address:
        page.goto(address.replace("/lab?", "/lab/tree/notebooks/04_kmeans.ipynb?"))
        page.wait_for_selector(".jp-Notebook h1", timeout=60_000)
        _run_all(page)
        assert page.locator(".jp-OutputArea-output img").count() >= 8


def _run_all(page: "Page") -> None:
    """Runs every cell, and waits for the last one; none may show an error."""
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:has-text('Run All Cells') >> nth=0")
    book = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    last = book.locator(".jp-CodeCell .jp-InputPrompt").last
    _until(lambda: re.fullmatch(r"\[\d+\]:", last.text_content() or "") is not None, 600)
    errors = book.locator("[data-mime-type='application/vnd.jupyter.error']").all_text_contents()
    assert errors == []


def _type(page: "Page", code: str) -> None:
    """Puts a new cell below the first one and runs it."""
    page.click(".jp-Notebook h1 >> nth=0")
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")


def _outputs(page: "Page", word: str) -> str:
    """The outputs that hold a word; the text, not what is drawn: Lab draws no cell that is scrolled out of sight."""
    return "\n".join(page.locator(f".jp-OutputArea-output:has-text('{word}')").all_text_contents())


def _jobs() -> list[int]:
    """Ranks of the endless job that still live."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "10000000000000" in (process.info["cmdline"] or []):
            found.append(process.pid)
    return found


def _until(true: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not true within {seconds} s"
        time.sleep(0.2)
