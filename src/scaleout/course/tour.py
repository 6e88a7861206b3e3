"""The tour: every topic on this machine, without a browser; a table, pictures, and one page to
keep.

A master notebook marks its short version itself: the cells tagged `tour`, alone and in order, are
run. The cell tagged `headline` ends in the sentence that goes into the table."""

import ast
import base64
import re
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .. import settings
from ..errors import ScaleoutError
from ..paths import home, results, show
from . import history
from .masters import TOPIC
from .tour_page import montage, page

if TYPE_CHECKING:
    from nbformat import NotebookNode


CELL_TIMEOUT_S = 900


@dataclass
class Stop:
    """What one topic gave."""

    topic: str
    title: str
    headline: str = ""
    ok: bool = False
    waits: bool = False
    wall_s: float = 0.0
    figures: list[bytes] = field(default_factory=list, repr=False)
    tables: list[str] = field(default_factory=list, repr=False)


def main(quick: bool) -> int:
    """Runs the tour and prints its table; returns 1 when a topic failed. The page is a new file in
    results/."""
    import nbformat
    from tqdm import tqdm

    if quick:
        settings.quicken()
    books = _books()
    folder = results() / "tour" / f"{datetime.now():%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    tours = {path: _tour_cells(nbformat.read(path, as_version=4)) for path in books}
    stops = []
    with tqdm(total=sum(len(t.cells) for t in tours.values()), unit="cell", file=sys.stderr) as bar:
        for path, book in tours.items():
            bar.set_description(path.stem)
            waits = _waiting(path.stem, book) if path.parent.name == "notebooks" else None
            if waits:
                bar.update(len(book.cells))
            stops.append(waits or visit(path.stem, book, path.parent, bar.update))
    for stop in stops:
        for number, figure in enumerate(stop.figures, 1):
            (folder / f"{stop.topic}-{number}.png").write_bytes(figure)
    (folder / "tour.png").write_bytes(montage(stops))
    (folder / "index.html").write_text(page(stops), encoding="utf-8")
    for stop in stops:
        print(f"{stop.topic:<12} {stop.wall_s:5.0f} s  {stop.headline}")
    print(f"\nThe page: {show(folder / 'index.html')}")
    return 0 if all(stop.ok or stop.waits for stop in stops) else 1


def _books() -> list[Path]:
    """A notebook of each topic: the solution where there is one, else the attendee's own."""
    found = [
        path for room in ("notebooks", "solutions") for path in (home() / room).glob("*.ipynb")
    ]
    books = {path.stem: path for path in found if re.fullmatch(TOPIC, path.stem)}
    if not books:
        raise ScaleoutError("The tour runs the notebooks of the workshop, and there are none here.")
    return [books[topic] for topic in sorted(books)]


def _waiting(topic: str, book: "NotebookNode") -> Stop | None:
    """The stop at a lab that is not solved: what it measures would not be what the topic is about.
    None when every check has passed."""
    todos = history.not_passed(topic)
    if not todos:
        return None
    which = ", ".join(map(str, todos))
    headline = f"Waits for TODO {which}: type  scaleout check {topic}"
    return Stop(topic, book.metadata.get("title") or topic, headline, waits=True)


def _tour_cells(book: "NotebookNode") -> "NotebookNode":
    title = next((c.source for c in book.cells if c.cell_type == "markdown"), "").splitlines() or [
        ""
    ]
    book.metadata["title"] = title[0].lstrip("# ")
    book.cells = [
        c for c in book.cells if c.cell_type == "code" and "tour" in c.metadata.get("tags", [])
    ]
    return book


def visit(
    topic: str, book: "NotebookNode", folder: Path, advance: object = lambda cells: None
) -> Stop:
    """Runs a notebook of tour cells and collects what it shows; a cell that fails ends this topic
    alone.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    stop = Stop(topic, book.metadata.get("title") or topic)
    start = time.monotonic()
    client = NotebookClient(
        book,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda **_: advance(1),  # type: ignore[operator]
    )
    try:
        client.execute()
        stop.ok = True
    except CellExecutionError as error:
        stop.headline = f"Failed: {error.ename}: {error.evalue}".splitlines()[0]
    except (CellTimeoutError, DeadKernelError) as error:
        stop.headline = f"Failed: {error}".splitlines()[0]
    stop.wall_s = time.monotonic() - start
    for cell in book.cells:
        for output in cell.get("outputs", []):
            _collect(stop, output.get("data", {}), "headline" in cell.metadata.get("tags", []))
    return stop


def _collect(stop: Stop, shown: dict[str, str], headline: bool) -> None:
    if "image/png" in shown:
        stop.figures.append(base64.b64decode(shown["image/png"]))
    elif "text/html" in shown:
        stop.tables.append(shown["text/html"])
    elif headline and stop.ok and "text/plain" in shown:
        stop.headline = str(ast.literal_eval(shown["text/plain"]))
