"""JupyterLab as `make lab` starts it, in a real browser: an attendee's first hour.

One server for all tests, on a copy of what an attendee has. Each test has a workspace of its own,
and waits for states that Lab or the files tell, for as long as a busy machine takes."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import psutil
import pytest
from helpers import CHROMIUM, QUIET, ROOT, needs_a_browser, processes_with, until

from scaleout.course.marks import cut
from scaleout.course.masters import STARTS, untouched

if TYPE_CHECKING:
    from playwright.sync_api import Page

LONG_S = 300.0  # for Lab to start, to draw, to answer
RUNS_S = 1500.0  # for all cells of a notebook
STRIPS = 10_000_000_000_000  # a job of hours
pytestmark = [pytest.mark.browser, pytest.mark.timeout(2400)]


def _attendee(folder: Path) -> Path:
    """What an attendee has, as it is given out: labs and notebooks, nothing of the solutions. The
    environment is this tree's.

    Lab draws all cells here: by default it draws those in sight alone, and then a text that is
    there cannot be found."""
    for name in ("labs", "notebooks", "jupyterlab"):
        shutil.copytree(ROOT / name, folder / name)
    for lab in (folder / "labs").iterdir():
        for name, text in untouched(lab.name).items():
            (folder / STARTS / lab.name).mkdir(parents=True, exist_ok=True)
            (folder / STARTS / lab.name / name).write_text(text)
            (lab / name).write_text(text)
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "tools").symlink_to(ROOT / "tools")
    overrides = folder / "jupyterlab/labconfig/default_setting_overrides.json"
    settings = json.loads(overrides.read_text())
    tracker = settings.setdefault("@jupyterlab/notebook-extension:tracker", {})
    tracker["windowingMode"] = "none"
    overrides.write_text(json.dumps(settings))
    return folder


@contextmanager
def _make_lab(folder: Path, results: Path) -> Iterator[str]:
    """The address, token included, that `make lab` prints, whatever a person's own config opens. It
    must end by itself when make is told to."""
    own = folder / "home/.jupyter"
    own.mkdir(parents=True)
    for name in ("jupyter_lab_config.py", "jupyter_server_config.py"):
        (own / name).write_text("c.ServerApp.ip = '0.0.0.0'\nc.IdentityProvider.token = ''\n")
    environment = {**os.environ, "HOME": str(own.parent), "JUPYTER_TOKEN": ""}
    environment |= {"SCALEOUT_RESULTS": str(results), "SCALEOUT_QUICK": "1"}
    log = folder / "log.txt"
    command = ["make", "lab", "ARGS=--no-browser --LabApp.expose_app_in_browser=True"]
    with log.open("w") as file:
        make = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True
        )

    def address() -> re.Match[str] | None:
        assert make.poll() is None, log.read_text()
        return re.search(r"http://127\.0\.0\.1:\S+", log.read_text())

    try:
        yield until(address, LONG_S, "the start of the server")[0]
    finally:
        family = psutil.Process(make.pid).children(recursive=True)
        make.terminate()
        make.wait(LONG_S)
        _, left = psutil.wait_procs(family, timeout=LONG_S)
        assert left == [], f"still there after the server was told to end: {left}"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A server: its address, the attendee's folder, and where runs write to."""
    folder = _attendee(tmp_path_factory.mktemp("lab") / "workshop")
    results = folder.parent / "results"
    with _make_lab(folder, results) as address:
        yield SimpleNamespace(address=address, folder=folder, results=results)


@pytest.fixture
def page() -> "Iterator[Page]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1500, "height": 1000})
        page.set_default_timeout(1000 * LONG_S)
        yield page
        browser.close()


def test_the_server_is_closed_to_others(course: SimpleNamespace) -> None:
    port = int(re.search(r":(\d+)/", course.address)[1])  # type: ignore[index]

    def listening() -> set[str]:
        found = psutil.net_connections("tcp")
        return {c.laddr.ip for c in found if c.status == "LISTEN" and c.laddr.port == port}

    # While other jobs open and close connections, a look at the system's table may miss a line.
    assert until(listening, what="the server's port") <= {"127.0.0.1", "::1"}
    contents = f"http://127.0.0.1:{port}/api/contents"
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(contents, timeout=LONG_S)
    token = re.search(r"token=(\w{32,})", course.address)
    assert token, "no token, or a short one"
    with urllib.request.urlopen(f"{contents}?token={token[1]}", timeout=LONG_S) as answer:
        assert answer.status == 200
    warned = "You are root" in (course.folder / "log.txt").read_text()
    assert warned == (os.geteuid() == 0)


@needs_a_browser
def test_it_opens_on_the_first_notebook_with_its_lab_beside_it(
    course: SimpleNamespace, page: "Page"
) -> None:
    page.goto(course.address)
    page.wait_for_selector(".jp-Notebook h1:has-text('know your machine')")
    page.wait_for_selector(".jp-FileEditor >> text=Every rank says who it is")
    books = sorted(book.name for book in (ROOT / "notebooks").glob("*.ipynb"))
    names = page.locator(".jp-DirListing-itemText")
    until(lambda: names.all_text_contents() == books, LONG_S, "the list of the notebooks")
    assert page.locator("text=Jupyter news").count() == 0, "Lab asks about news"


@needs_a_browser
def test_beside_a_lab_on_a_small_screen_no_line_of_code_is_cut(
    course: SimpleNamespace, page: "Page"
) -> None:
    _open(page, course, "notebooks/00_welcome.ipynb")
    page.wait_for_selector(".jp-FileEditor .cm-content")
    # Only now: in a narrow toolbar there is no room for the kernel's state, which _open waits for.
    page.set_viewport_size({"width": 1024, "height": 768})
    page.wait_for_selector(".jp-CodeCell .cm-content")
    code = page.locator(".jp-CodeCell .cm-scroller")
    assert code.count() > 3
    wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1).length"
    until(lambda: code.evaluate_all(wide) == 0, 60, "wrapped lines in each code cell")


@needs_a_browser
def test_a_figure_has_its_words_for_those_who_do_not_see_it(
    course: SimpleNamespace, page: "Page"
) -> None:
    """New ones in their metadata; a stored one, whose output is not touched, in its plain text."""
    told = "The sum took 3 s. x axis: ranks."
    dot = (
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
        "rkJggg=="
    )
    kinds: list[tuple[str, dict[str, str], str | None]] = [
        (told, {"alt": "New: " + told}, "New: " + told),
        (told, {}, told),
        ("<Figure size 700x400 with 1 Axes>", {}, None),
    ]
    book = json.loads((course.folder / "notebooks/00_welcome.ipynb").read_text())
    book["cells"] = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Figures"},
        {
            **{
                "cell_type": "code",
                "id": "code",
                "metadata": {},
                "source": "",
                "execution_count": 1,
            },
            "outputs": [
                {"output_type": "display_data", "data": {"image/png": dot, "text/plain": text}}
                | {"metadata": {"image/png": about} if about else {}}
                for text, about, _ in kinds
            ],
        },
    ]
    (course.folder / "figures.ipynb").write_text(json.dumps(book))
    _open(page, course, "figures.ipynb")
    pictures = page.locator(".jp-OutputArea-output img")
    until(lambda: pictures.count() == len(kinds), LONG_S, "the pictures")
    shown = [picture.get_attribute("alt") for picture in pictures.all()]
    assert shown == [alt for _, _, alt in kinds]


@needs_a_browser
@pytest.mark.slow
def test_an_attendee_works_through_a_notebook(course: SimpleNamespace, page: "Page") -> None:
    _open(page, course, "notebooks/00_welcome.ipynb")
    _run_all(page)
    pictures = page.locator(".jp-OutputArea-output img")
    assert pictures.count() >= 3
    box = pictures.first.bounding_box()
    assert box and box["width"] > 500, "the picture is smaller than the text beside it"
    words = [picture.get_attribute("alt") or "" for picture in pictures.all()]
    assert all(len(text) > 40 and not text.startswith("<") for text in words), words
    assert re.search(r"TODO 1 +not started", _outputs(page))
    assert "Your guess comes first" not in _outputs(page), "Run All must not stop at a guess"
    said = page.locator(".jp-OutputArea-output pre").first
    assert said.evaluate("box => getComputedStyle(box).wordBreak") == "normal", (
        "a printed sentence that is too wide breaks within a word"
    )

    script = course.folder / "labs/00_welcome/runme.py"
    solved = cut(
        (ROOT / "solutions/00_welcome/runme.py").read_text(), keep=lambda number: number == 1
    )
    _open(page, course, "labs/00_welcome/runme.py")
    page.click(".jp-FileEditor .cm-content")
    page.wait_for_selector(".jp-FileEditor .cm-focused")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(solved)
    # Lab saves by itself, so that a check never sees an older file than the one on the screen.
    until(lambda: script.read_text().strip() == solved.strip(), LONG_S, "saving by itself")

    _open(page, course, "notebooks/00_welcome.ipynb")
    _run_new_cell(page, "welcome.check(1)")
    page.wait_for_selector(".jp-OutputArea >> text=/TODO 1 +passed/")

    _run_new_cell(page, "guess_much = None; print('six times seven is', 6 * 7)")
    page.wait_for_selector(".jp-OutputArea-output >> text=Your guess comes first")
    assert "is 42" not in _outputs(page)
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell') }")
    page.wait_for_selector(".jp-OutputArea-output >> text=six times seven is 42")

    _run_new_cell(page, f"welcome.run(ranks=2, strips={STRIPS})")
    until(lambda: _endless(course), LONG_S, "the start of the job")
    _command(page, "notebook:interrupt-kernel")
    ended = "text=/Interrupted after .* the job (has been|is being) ended/"
    page.wait_for_selector(f".jp-OutputArea >> {ended}")
    until(lambda: not _endless(course), LONG_S, "the end of the job")


def _open(page: "Page", course: SimpleNamespace, path: str) -> None:
    """Opens one file in a workspace of its own, and waits until Lab and its kernel are ready."""
    workspace = re.sub(r"\W", "-", path)
    page.goto(course.address.replace("/lab?", f"/lab/workspaces/{workspace}/tree/{path}?"))
    page.wait_for_function("() => window.jupyterapp")
    page.evaluate("() => window.jupyterapp.restored.then(() => true)")
    if path.endswith(".ipynb"):
        page.wait_for_selector(".jp-Notebook h1")
        page.wait_for_selector(".jp-NotebookPanel [data-status='idle']", state="attached")
    else:
        page.wait_for_selector(".jp-FileEditor .cm-content")


def _command(page: "Page", name: str, **given: object) -> None:
    """Gives Lab a command of its menus."""
    code = "([name, given]) => window.jupyterapp.commands.execute(name, given).then(() => true)"
    page.evaluate(code, [name, given])


def _run_all(page: "Page") -> None:
    """Runs every cell, and waits for the last one; none may show an error."""
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:has-text('Run All Cells') >> nth=0")
    last = page.locator(".jp-CodeCell .jp-InputPrompt").last
    errors = page.locator("[data-mime-type='application/vnd.jupyter.error']")

    def ended() -> bool:
        return (
            errors.count() > 0 or re.fullmatch(r"\[\d+\]:", last.text_content() or "") is not None
        )

    until(ended, RUNS_S, "the end of all cells")
    assert errors.all_text_contents() == []


def _run_new_cell(page: "Page", code: str) -> None:
    """Puts a cell below the one that is active, and runs it."""
    _command(page, "notebook:insert-cell-below")
    _command(page, "notebook:replace-selection", text=code)
    page.wait_for_selector(f".jp-CodeCell.jp-mod-active:has-text({json.dumps(code)})")
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell') }")


def _outputs(page: "Page") -> str:
    return "\n".join(page.locator(".jp-OutputArea-output").all_text_contents())


def _endless(course: SimpleNamespace) -> list[str]:
    """The ranks of the endless job, by the results folder that this test has given them."""
    mine = processes_with("SCALEOUT_RESULTS", str(course.results)).values()
    return [line for line in mine if str(STRIPS) in line]
