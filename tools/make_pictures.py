"""Draw the pictures of the README and of 12's page anew, from what is there today.

    python tools/make_pictures.py       (make pictures)

docs/tour.png is drawn from what the masters store: nothing is run. docs/desk.png is a screenshot of
JupyterLab as `make lab` opens it for the first time, on a copy of what an attendee has, and
docs/capstone-*.png are parts of docs/capstone-report.html, and docs/preview.png is one of
docs/preview/05_horovod.html; these need chromium. In each of the first two stands what it shows,
and `make lint` compares that with the masters."""

import base64
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from lint_text import DESK, SHOWS, parts
from PIL import Image, PngImagePlugin

from scaleout.base import paths
from scaleout.base.errors import ScaleoutError
from scaleout.course import tour
from scaleout.course.masters import generated

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = ROOT / "solutions"
SIZE = {"width": 1600, "height": 1000}
WIDE, MARGIN = 860, 8  # pixels of 12's page, and above its headings
PATIENCE_S = 120
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# How many cells and lines can be seen from the top on, the last of each perhaps in part.
IN_SIGHT = """() => [['.jp-NotebookPanel', '.jp-Cell'], ['.jp-FileEditor', '.cm-line']].map(
    ([pane, part]) => {
        const end = document.querySelector(pane).getBoundingClientRect().bottom
        const seen = each => each.getBoundingClientRect().top < end
        return [...document.querySelectorAll(`${pane} ${part}`)].filter(seen).length
    })"""


def main() -> int:
    """Write all pictures; return 1 where there is no browser for those that need one."""
    written = ROOT / "docs/tour.png"
    stops = [stop_of(path) for path in paths.course_files(SOLUTIONS, "[0-9][0-9]_*.ipynb")]
    shown = {stop.topic: stop.headline for stop in stops}
    keep(written, tour.montage(stops), shown)
    print(f"{paths.show(written)} shows {len(stops)} topics.")
    chromium = shutil.which("chromium")
    if not chromium:
        print(
            "There is no chromium here, so all but docs/tour.png stays as it is: apt install chromium"
        )
        return 1
    for name, picture in handed_in(chromium).items():
        (ROOT / f"docs/capstone-{name}.png").write_bytes(picture)
        print(f"docs/capstone-{name}.png shows a part of docs/capstone-report.html.")
    (ROOT / "docs/preview.png").write_bytes(preview(chromium))
    print("docs/preview.png shows a question of docs/preview/, before the guess.")
    written = ROOT / "docs/desk.png"
    keep(written, *desk(chromium))
    print(f"{paths.show(written)} shows JupyterLab.")
    return 0


def stop_of(path: Path) -> tour.Stop:
    """A topic's stop as its master stores it.

    A tour that shows no picture gets the last one of the notebook, above Further."""
    stop = tour.stored(path)
    if not stop.figures:
        book = json.loads(path.read_text(encoding="utf-8"))
        pictures = [
            output["data"]["image/png"]
            for cell in book["cells"]
            if cell["cell_type"] == "code" and "further" not in cell["metadata"].get("tags", [])
            for output in cell["outputs"]
            if "image/png" in output.get("data", {})
        ]
        stop.figures = [base64.b64decode("".join(last)) for last in pictures[-1:]]
    return stop


def keep(path: Path, picture: bytes, shows: Any) -> None:
    """Write a picture, and in it what it shows."""
    about = PngImagePlugin.PngInfo()
    about.add_text(SHOWS, json.dumps(shows))
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, pnginfo=about, optimize=True)


def handed_in(chromium: str) -> dict[str, bytes]:
    """The page that 12 hands in, down to its steps, and the steps."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page(viewport={"width": WIDE, "height": 1000})
        page.goto((ROOT / "docs/capstone-report.html").as_uri())
        steps, end = (
            page.locator(f"h2:text-is('{title}')").evaluate("h2 => h2.getBoundingClientRect().top")
            for title in ("The steps", "What did not help")
        )
        folded = page.locator("details").first.evaluate("one => one.getBoundingClientRect().top")
        parts_ = {"top": (0, steps), "steps": (steps, min(end, folded))}
        pictures = {
            name: page.screenshot(
                full_page=True, clip={"x": 0, "y": a, "width": WIDE, "height": b - a - MARGIN}
            )
            for name, (a, b) in parts_.items()
        }
        browser.close()
    return pictures


def preview(chromium: str) -> bytes:
    """The beginning of a page to guess on, before the guess: nothing measured is in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        page = browser.new_page(viewport={"width": WIDE, "height": 1000})
        page.goto((ROOT / "docs/preview/05_horovod.html").as_uri())
        button = page.locator("button").first.evaluate("one => one.getBoundingClientRect().bottom")
        clip = {"x": 0, "y": 0, "width": WIDE, "height": button + 3 * MARGIN}
        picture = page.screenshot(clip=clip)
        browser.close()
    return picture


def desk(chromium: str) -> tuple[bytes, dict[str, list[str]]]:
    """JupyterLab on the first notebook, its lab beside it; and what of both can be seen."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="desk-") as scratch, sync_playwright() as playwright:
        folder = Path(scratch) / "workshop"
        shutil.copytree(ROOT / "jupyterlab", folder / "jupyterlab")
        for path, text in generated():
            new = folder / path.relative_to(paths.home())
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(text, encoding="utf-8")
        with server(folder) as address:
            browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
            page = browser.new_page(viewport=SIZE)
            page.set_default_timeout(1000 * PATIENCE_S)
            page.goto(address)
            page.wait_for_selector(".jp-Notebook h1")
            page.wait_for_selector(".jp-FileEditor .cm-line")
            page.wait_for_selector(".jp-NotebookPanel [data-status='idle']", state="attached")
            page.wait_for_selector(".scaleout-lab-00_welcome")
            picture = at_rest(page)
            seen = page.evaluate(IN_SIGHT)
            browser.close()
        shows = zip(DESK, seen, strict=True)
        return picture, {name: parts(folder / name)[:many] for name, many in shows}


def at_rest(page: "Page") -> bytes:
    """A screenshot of a page that no longer changes."""
    last = b""
    for _ in range(PATIENCE_S):
        picture = page.screenshot()
        if picture == last:
            return picture
        last = picture
        page.wait_for_timeout(1000)
    raise ScaleoutError("JupyterLab does not come to rest.")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Start JupyterLab with the workshop's settings and nobody's own; gives its address, with token.

    At the end the server is told to end, and what is left of it is ended."""
    environment = {name: v for name, v in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"HOME": str(folder.parent), "JUPYTER_CONFIG_PATH": str(folder / "jupyterlab")}
    log = folder.parent / "log.txt"
    with log.open("w") as file:
        lab = psutil.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser"],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + PATIENCE_S
        while not (address := re.search(r"http://127\.0\.0\.1:\S+", log.read_text())):
            if lab.poll() is not None or time.monotonic() > end:
                raise ScaleoutError(f"JupyterLab does not start:\n{log.read_text()}")
            time.sleep(0.2)
        yield address[0]
    finally:
        if lab.poll() is None:
            family = [lab, *lab.children(recursive=True)]
            lab.terminate()
            for process in psutil.wait_procs(family, timeout=PATIENCE_S)[1]:
                process.kill()


if __name__ == "__main__":
    sys.exit(main())
