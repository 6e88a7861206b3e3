"""Run master notebooks whole, alone and in place: those that are stale, or those that are named.

    python tools/make_masters.py [05 ...]       (make masters ARGS=05)

A notebook is written when it has run to its end without an error. Broken off by Ctrl-C a run leaves
it as it was, and the same command goes on with those that are still stale. Before each run the
machine must be quiet. Where two identical jobs, or parts of one, could differ by more than 10 %, the
notebook is run again, three times at most, and the run with the quietest null pair is kept."""

import contextlib
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
from asyncio import CancelledError
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import make_elsewhere
import nbformat
import numpy as np
import outputs
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode
from quiet import wait_until_quiet

from scaleout import data, machine
from scaleout.base import jsonlines, paths
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.comparison import Comparison
from scaleout.comparisons.intervals import paired
from scaleout.doctor.checks import thread_settings
from scaleout.kit import fields

Pair = tuple[list[float], list[float]]  # what two identical parts of a job gave, round by round

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"
CELL_LIMIT_S = 3600  # of a cell that never ends; the proof of 12 takes half an hour
MOST_RUNS, MOST_NOISE = 3, outputs.MOST_NOISE
KEPT = ("SCALEOUT_DATA", "SCALEOUT_LEASES")  # the others would make another notebook of it


def main(names: Iterable[str], folder: Path = SOLUTIONS) -> int:
    """Run the notebooks; return 1 where one was refused or failed, 130 when it was broken off."""
    status = 0
    try:
        if not data.source().startswith("MNIST"):
            raise ScaleoutError(
                f"The masters are run on MNIST, and here is {data.source()}: "
                "type  scaleout data fetch mnist"
            )
        for path in chosen(list(names), folder):
            if lacking := needs(path):
                print(f"{path.stem} needs {', '.join(lacking)}, which this processor lacks.")
                status = 1
                continue
            try:
                make(path)
            except CellControlSignal as error:
                print(f"{error}\n{path.stem} failed, and is as it was.")
                status = 1
    except ScaleoutError as error:
        print(error)
        return 1
    except KeyboardInterrupt:
        print("Broken off: what has run to its end is kept. The same command goes on from here.")
        return 130
    return status


def chosen(names: list[str], folder: Path) -> list[Path]:
    """The notebooks that are named; without a name those that are stale, edited or incomplete."""
    books = {path.stem: path for path in paths.course_files(folder, "[0-9][0-9]_*.ipynb")}
    found = [paths.meant(name, books) for name in names]
    if None in found:
        raise ScaleoutError(
            f"There is no notebook {names[found.index(None)]!r}: there are {', '.join(books)}."
        )
    if names:
        return [path for stem, path in books.items() if stem in found]
    return [path for path in books.values() if not in_step(path)]


def in_step(path: Path) -> bool:
    """Whether a notebook's outputs are those of its code."""
    book = json.loads(path.read_text(encoding="utf-8"))
    stale = outputs.stale(book, path.with_suffix(""))
    return not [*stale, *outputs.edited(book), *outputs.missing(book)]


def needs(path: Path) -> list[str]:
    """The instructions that a notebook needs and that this processor lacks."""
    book = nbformat.read(path, as_version=4)
    has = machine.facts().isa
    return [name for name in book.metadata.get("scaleout", {}).get("needs", []) if name not in has]


def make(path: Path, wait: bool = True) -> None:
    """Run a notebook until its null pair is quiet, three times at most.

    After each run the quietest so far is written, so breaking off loses no run that has ended."""
    text, lesson = path.read_bytes(), path.with_suffix("")
    code = {"scripts": outputs.scripts(lesson), "package": outputs.package(lesson)}
    seen, quietest, minutes, runs, headlines = text, math.inf, 0.0, 0, []
    best = nbformat.reads(text.decode(), as_version=4)
    while runs < MOST_RUNS and quietest > MOST_NOISE:
        runs += 1
        print(f"{path.stem}: run {runs}, as soon as the machine is quiet", flush=True)
        if wait:
            wait_until_quiet()
        results = Path(tempfile.mkdtemp(prefix="run-", dir=paths.results("masters", path.stem)))
        bring_earlier(path.stem, results)
        earlier = set(results.rglob("*.json*"))
        book, seconds = run(path, text.decode(), results)
        noise = null_pair(results, earlier)
        print(f"{seconds / 60:.1f} minutes, identical jobs could differ by {100 * noise:.0f} %")
        if noise < quietest:
            headlines = make_elsewhere.of_results(lesson, results)
            quietest, best, minutes = noise, book, round(seconds / 60, 1)
        if path.read_bytes() != seen:
            raise ScaleoutError(f"{path.stem} was edited while it ran, and is left as it is.")
        about = {"stamp": machine.stamp(), "data": data.source(), "minutes": minutes, "runs": runs}
        about |= {"null_pair": round(quietest, 3), **code}
        about |= outputs.record(json.loads(nbformat.writes(best)))
        best.metadata["scaleout"] = {**best.metadata.get("scaleout", {}), **about}
        partial = path.with_name(path.name + ".part")
        partial.write_text(nbformat.writes(best) + "\n", encoding="utf-8")
        os.replace(partial, path)
        seen = path.read_bytes()
    if headlines:
        make_elsewhere.keep(lesson, headlines)


def bring_earlier(stem: str, results: Path) -> None:
    """Put what earlier notebooks last measured here beside this one's results, as an attendee has it."""
    for other in sorted(paths.results_path("masters").glob("[0-9][0-9]_*")):
        runs = sorted(other.glob(f"run-*/{other.name}"), key=lambda folder: folder.stat().st_mtime)
        if runs and other.name < stem:
            for kept in (runs[-1], *runs[-1].parent.glob("sweep")):
                shutil.copytree(kept, results / kept.name, dirs_exist_ok=True)


def run(path: Path, text: str, results: Path) -> tuple[NotebookNode, float]:
    """Run a notebook from top to bottom; return it with its outputs, and the seconds it took."""
    book = nbformat.reads(text, as_version=4)
    language = book.metadata.get("language_info")
    client = NotebookClient(
        book,
        timeout=CELL_LIMIT_S,
        # ipykernel warns of its ports, which are this user's own and signed.
        extra_arguments=["--IPKernelApp.log_level=40"],
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        store_widget_state=False,
    )
    out = {k for k in os.environ if k.startswith("SCALEOUT_")} - {*KEPT}
    out |= {*thread_settings(os.environ)}
    mine = {k: v for k, v in os.environ.items() if k not in out}
    start = time.monotonic()
    try:
        client.execute(env={**mine, "SCALEOUT_RESULTS": str(results)})
    except (AssertionError, CancelledError, DeadKernelError):
        # At Ctrl-C nbclient ends the kernel and then stumbles over its absence.
        raise KeyboardInterrupt from None
    seconds = time.monotonic() - start
    if language:  # as it was: the version of Python would go to the attendees' notebooks
        book.metadata["language_info"] = language
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = as_shown(cell.outputs)
    return book, seconds


def as_shown(given: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs as a terminal shows them at the end: streams joined, bars of progress wiped away, and
    of a path what is the same on every machine."""
    whole = _joined(given)
    for output in whole:
        if output.output_type == "stream":
            text = re.sub(r"^.*\r(?=[^\n])", "", output.text, flags=re.M)
            output.text = _anywhere(re.sub(r"^ *\r\Z", "", text, flags=re.M))
    return _joined([output for output in whole if output.get("text", True)])


def _anywhere(text: str) -> str:
    """Take this workshop's folder, Python's, and that in which pip has built, off the paths in a text."""
    built = r"/\S*?/pip-install-\w+/\w+/"  # also where .venv is a link to it
    home, python = re.escape(str(paths.home())), re.escape(sys.base_prefix)
    return re.sub(rf"{built}|{home}/|{python}/", "", text)


def _joined(given: list[NotebookNode]) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in given:
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def null_pair(results: Path, earlier: Collection[Path] = ()) -> float:
    """By how much two identical jobs, or two identical parts of one, could differ, as a share: in the
    noisiest of all pairs that were measured here, but for the files that were there before."""
    found = [0.0]
    for about in {*results.rglob("compare.json")} - {*earlier}:
        with contextlib.suppress(ScaleoutError):  # no whole round
            found.append(Comparison.read(about.parent).noise)
    for file in {*results.rglob("records.jsonl")} - {*earlier}:
        found += inside(jsonlines.read(file, fields.wrong)[0])
    return max(float(noise) for noise in found if math.isfinite(noise))


def inside(job: list[dict[str, Any]]) -> Iterator[float]:
    """By how much two identical parts of a job could differ, for each that its records hold twice."""
    for record in job:
        for rows in record["metrics"].values():
            if _compares(rows):
                with contextlib.suppress(ScaleoutError):  # no whole round
                    yield Comparison(rows).noise
    for pair in [*_formats(job), *_steps(job)]:
        yield paired(np.transpose(pair), {}).noise


def _compares(rows: Any) -> bool:
    """Whether a metric is the rows of a comparison, of which the first variant ran twice a round:
    those of 05, 06, 09, 10, and of what 08 converts and serves."""
    needed = {"round", "variant", "again", "value"}
    return isinstance(rows, list) and all(isinstance(r, dict) and needed <= set(r) for r in rows)


def _formats(job: list[dict[str, Any]]) -> Iterator[Pair]:
    """The rates of 08's ladder: those of fp32 and of fp32 again, and those of its two ranks with the
    same instructions."""
    first: dict[tuple[str, str], list[float]] = {}
    for record in job:
        metrics = record["metrics"]
        if {"step", "twin", "rates", "again"} <= set(metrics) and metrics["rates"]:
            if metrics["again"]:
                yield metrics["rates"], metrics["again"]
            work = record["variant"], metrics["step"]
            if work in first:
                yield first[work], metrics["rates"]
            first.setdefault(work, metrics["rates"])


def _steps(job: list[dict[str, Any]]) -> Iterator[Pair]:
    """The seconds of 11's steps, "data" and "data again", of the same batch."""
    for first in job:
        for second in job:
            alike = first["metrics"].get("batch") == second["metrics"].get("batch")
            if alike and second["variant"] == f"{first['variant']} again":
                yield first["step_s"], second["step_s"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
