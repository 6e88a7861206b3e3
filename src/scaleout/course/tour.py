"""The tour: every topic on this machine, without a browser; a table, pictures, and one page to
keep.

A master notebook marks its short version itself: the cells tagged `tour`, alone and in order, are
run. The cell tagged `headline` ends in the sentence that goes into the table."""

import ast
import base64
import html
import io
import re
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from .. import machine
from ..base import settings
from ..base.errors import ScaleoutError
from ..base.paths import home, results, show
from ..base.words import plain
from . import history
from .marks import GUESS
from .masters import TOPIC

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
    guesses: list[str] = field(default_factory=list)
    figures: list[bytes] = field(default_factory=list, repr=False)
    tables: list[str] = field(default_factory=list, repr=False)


def main(quick: bool) -> int:
    """Run the tour and print its table; return 1 when a topic failed.

    The page is a new file in results/.
    """
    from tqdm import tqdm

    if quick:
        settings.quicken()
    books = _books()
    folder = results() / "tour" / f"{datetime.now():%Y%m%dT%H%M%S}"
    folder.mkdir(parents=True)
    tours: dict[Path, NotebookNode] = {}
    unread: dict[Path, Stop] = {}
    for path in books:
        try:
            tours[path] = _own_guesses(path, _tour_cells(path))
        except ScaleoutError as error:
            unread[path] = Stop(path.stem, path.stem, f"Failed: {error}")
    stops = []
    with tqdm(total=sum(len(t.cells) for t in tours.values()), unit="cell", file=sys.stderr) as bar:
        for path in books:
            if path in unread:
                stops.append(unread[path])
                continue
            book = tours[path]
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
    """Choose a notebook of each topic: the solution where there is one, else the attendee's own."""
    found = [
        path for room in ("notebooks", "solutions") for path in (home() / room).glob("*.ipynb")
    ]
    books = {path.stem: path for path in found if re.fullmatch(TOPIC, path.stem)}
    if not books:
        raise ScaleoutError("The tour runs the notebooks of the workshop, and there are none here.")
    return [books[topic] for topic in sorted(books)]


def _waiting(topic: str, book: "NotebookNode") -> Stop | None:
    """Make the stop at a lab that is not solved; None when every check has passed.

    What it measures would not be what the topic is about.
    """
    todos = history.not_passed(topic)
    if not todos:
        return None
    which = ", ".join(map(str, todos))
    headline = f"Waits for TODO {which}: type  scaleout check {topic}"
    return Stop(topic, book.metadata.get("title") or topic, headline, waits=True)


def stored(path: Path) -> Stop:
    """Make a topic's stop from the outputs that its notebook stores; nothing is run."""
    book = _tour_cells(path)
    stop = Stop(path.stem, book.metadata["title"], ok=True)
    _collect(stop, book)
    return stop


def _read(path: Path) -> "NotebookNode":
    """Read a notebook; ScaleoutError where the file holds none."""
    import nbformat

    try:
        book: NotebookNode = nbformat.read(path, as_version=4)
        nbformat.validate(book)
    except Exception as error:  # nbformat lets an AttributeError through, and a TypeError
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise ScaleoutError(
            f"{show(path)} is no notebook that can be read ({plain(why, 120)}): put a whole "
            "copy of it in its place."
        ) from None
    return book


def _tour_cells(path: Path) -> "NotebookNode":
    book = _read(path)
    title = next((c.source for c in book.cells if c.cell_type == "markdown"), "").splitlines() or [
        ""
    ]
    book.metadata["title"] = title[0].lstrip("# ")
    book.cells = [
        c for c in book.cells if c.cell_type == "code" and "tour" in c.metadata.get("tags", [])
    ]
    if not book.cells:
        raise ScaleoutError(
            f"{show(path)} has no cell with the tag tour: put a whole copy of it in its place."
        )
    return book


def _own_guesses(path: Path, book: "NotebookNode") -> "NotebookNode":
    """Put the attendee's guesses into a solution's cells, whose own are examples."""
    if path.parent.name == "solutions":
        guesses = _guesses(home() / "notebooks" / path.name)
        for cell in book.cells:
            cell.source = GUESS.sub(
                lambda line: guesses.get(line[1], f"{line[1]}None"), cell.source
            )
    return book


def _guesses(path: Path) -> dict[str, str]:
    """Read the lines in which a notebook's guesses are made, by how each begins."""
    if not path.is_file():
        return {}
    code = [c.source for c in _read(path).cells if c.cell_type == "code"]
    return {line[1]: line[0] for line in GUESS.finditer("\n".join(code))}


def visit(
    topic: str, book: "NotebookNode", folder: Path, advance: object = lambda cells: None
) -> Stop:
    """Run a notebook of tour cells and collect what it shows.

    A cell that fails ends this topic alone.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    stop = Stop(topic, book.metadata.get("title") or topic)
    start = time.monotonic()
    client = NotebookClient(
        book,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        # ipykernel warns of its ports, which are this user's own and signed, in the middle of the bar.
        extra_arguments=["--IPKernelApp.log_level=40"],
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
    _collect(stop, book)
    return stop


def _collect(stop: Stop, book: "NotebookNode") -> None:
    """Collect what a notebook of tour cells shows: guesses, pictures, tables, and its sentence."""
    for cell in book.cells:
        lines = [line[0].partition("  #")[0] for line in GUESS.finditer(cell.source)]
        stop.guesses += [line for line in lines if not line.endswith(" = None")]
        headline = "headline" in cell.metadata.get("tags", [])
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if "image/png" in shown:
                stop.figures.append(base64.b64decode(shown["image/png"]))
            elif "text/html" in shown:
                stop.tables.append(shown["text/html"])
            elif headline and stop.ok and "text/plain" in shown:
                stop.ok, stop.headline = _sentence(shown["text/plain"])


def _sentence(shown: str) -> tuple[bool, str]:
    """Read the sentence that a headline's cell shows; False and why where it shows no sentence."""
    try:
        said = ast.literal_eval(shown)
    except (SyntaxError, ValueError):
        said = None
    if isinstance(said, str):
        return True, said
    return False, f"Failed: the headline's cell shows {plain(shown)}: let it end in a string."


def montage(stops: list[Stop]) -> bytes:
    """Draw one picture of the whole tour: each topic's last figure under its sentence."""
    import matplotlib.pyplot as plt
    from PIL import Image

    shown = [stop for stop in stops if stop.figures]
    rows = max(1, (len(shown) + 1) // 2)
    figure, axes = plt.subplots(
        rows, min(2, max(1, len(shown))), figsize=(13, 4.2 * rows), squeeze=False
    )
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, stop in zip(axes.flat, shown, strict=False):
        axis.imshow(Image.open(io.BytesIO(stop.figures[-1])))
        axis.set_title(fill(f"{stop.topic}: {stop.headline}", 80), fontsize=10)
    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, facecolor="white")
    plt.close(figure)
    return out.getvalue()


def page(stops: list[Stop]) -> str:
    """Write the tour as one HTML page that needs nothing else: no network, no other file."""
    facts = asdict(machine.facts())
    named = (
        "cpu",
        "sockets",
        "usable_cores",
        "hardware_threads",
        "memory_gib",
        "mpi",
        "mpi_version",
    )
    about = "".join(
        f"<tr><th>{name.replace('_', ' ')}</th><td>{html.escape(str(facts[name]))}</td></tr>"
        for name in named
    )
    rows = "".join(
        f'<tr><td><a href="#{s.topic}">{s.topic}</a></td><td>{html.escape(s.headline)}</td>'
        f"<td>{s.wall_s:.0f} s</td></tr>"
        for s in stops
    )
    return PAGE.format(
        about=about,
        rows=rows,
        topics="".join(map(_section, stops)),
        day=f"{datetime.now():%Y-%m-%d}",
    )


def _section(stop: Stop) -> str:
    figures = "".join(
        f'<img alt="{html.escape(stop.title)}, figure {n}: {html.escape(stop.headline)}" '
        f'src="data:image/png;base64,{base64.b64encode(figure).decode()}">'
        for n, figure in enumerate(stop.figures, 1)
    )
    head = (
        f'<h2 id="{stop.topic}">{html.escape(stop.title)}</h2><p>{html.escape(stop.headline)}</p>'
    )
    if stop.guesses:
        head += f"<p>The guesses: {html.escape(', '.join(stop.guesses))}</p>"
    return head + figures + "".join(f'<div tabindex="0">{table}</div>' for table in stop.tables)


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>scaleout: the tour</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
        color: #222; background: #fff }}
img {{ max-width: 100%; display: block; margin: 1rem 0 }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
td, th {{ border-bottom: 1px solid #ccc; padding: .3rem .8rem; text-align: left; vertical-align: top }}
div {{ overflow-x: auto }}
</style>
<h1>The tour, {day}</h1>
<p>Every figure on this page was measured on the machine below.</p>
<table>{about}</table>
<table><tr><th>topic</th><th>what this machine showed</th><th>took</th></tr>{rows}</table>
{topics}
</html>
"""
