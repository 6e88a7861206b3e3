"""Measure the headline comparisons of the lessons on this machine, and keep what their files lack.

    python tools/make_elsewhere.py [05 ...]       (make elsewhere ARGS=05)

A lesson that has rows of this kind of machine, of today's code, is left out, unless it is named. What
was measured is appended to elsewhere.jsonl beside the lesson; rows of older code are dropped. Broken off
by Ctrl-C it leaves the lesson that it was at as it was, and the same command goes on with the others."""

import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import headlines
import outputs
from quiet import wait_until_quiet

from scaleout import data
from scaleout.base import jsonlines, paths
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons import elsewhere
from scaleout.doctor.checks import thread_settings
from scaleout.teaching.headlines import Known, read

SOLUTIONS = Path(__file__).resolve().parents[1] / "solutions"


def main(names: Iterable[str]) -> int:
    """Measure; return 1 where a lesson failed, 130 when it was broken off."""
    os.environ["SCALEOUT_RESULTS"] = str(
        tempfile.mkdtemp(prefix="run-", dir=paths.results("elsewhere"))
    )
    status, began = 0, time.monotonic()
    wanted = list(names)
    if unknown := [name for name in wanted if name not in headlines.LESSONS]:
        print(f"There is no lesson {unknown[0]!r}: there are {', '.join(headlines.LESSONS)}.")
        return 1
    try:
        if not data.source().startswith("MNIST"):
            raise ScaleoutError(
                f"The headlines are measured on MNIST, and here is {data.source()}: "
                "type  scaleout data fetch mnist"
            )
        for name in thread_settings(os.environ):
            del os.environ[name]
        wait_until_quiet()
        for number, measure in headlines.LESSONS.items():
            folder = SOLUTIONS / paths.topic(number)
            if wanted and number not in wanted or not wanted and not lacking(folder):
                continue
            start = time.monotonic()
            try:
                rows = [row for one in measure() for row in _rows(folder, one)]
            except ScaleoutError as error:
                print(f"{folder.name} failed, and its rows are as they were: {error}")
                status = 1
                continue
            keep(folder, rows)
            print(f"{folder.name}: {(time.monotonic() - start):.0f} s", flush=True)
    except ScaleoutError as error:
        print(error)
        return 1
    except KeyboardInterrupt:
        print("Broken off: what is kept is kept. The same command goes on from here.")
        return 130
    print(f"{(time.monotonic() - began) / 60:.1f} minutes in all.")
    return status


def _rows(folder: Path, one: "headlines.Headline") -> list[elsewhere.Headline]:
    """The rows of a headline; a sentence of it is printed."""
    print(f"{folder.name}, {one.name}: {one.found.summary}", flush=True)
    code = outputs.code(folder, one.scripts)
    return elsewhere.headlines(one.found, one.name, code, one.scripts, one.facts)


def keep(folder: Path, new: list[elsewhere.Headline]) -> None:
    """Put new rows in the place of those of older code and of the same kind of machine."""
    path = folder / elsewhere.FILE
    old, _ = elsewhere.read(path)
    names = {(row.comparison, row.variant) for row in new}
    kept = [
        row
        for row in old
        if not is_old(folder, row)
        and not ((row.comparison, row.variant) in names and row.machine.same(new[0].machine))
    ]
    jsonlines.write(path, "".join(elsewhere.line(row) + "\n" for row in [*kept, *new]))


def of_results(folder: Path, results: Path) -> list[elsewhere.Headline]:
    """The rows of a lesson's headlines among the comparisons of a run of its notebook."""
    names = {row.comparison: row for row in elsewhere.read(folder / elsewhere.FILE)[0]}
    known = {name: Known(row.baseline, row.lower) for name, row in names.items()}
    return [
        row
        for one in read(results, known)[0]
        for scripts in [names[one.name].scripts]
        for row in elsewhere.headlines(
            one.comparison, one.name, outputs.code(folder, scripts), scripts
        )
    ]


def is_old(folder: Path, row: elsewhere.Headline) -> bool:
    """Whether the code that a row was measured with has changed since."""
    return row.code != outputs.code(folder, row.scripts)


def lacking(folder: Path) -> bool:
    """Whether this kind of machine has no rows of today's code."""
    rows, _ = elsewhere.read(folder / elsewhere.FILE)
    here = elsewhere.Kind.here()
    return not any(here.same(row.machine) and not is_old(folder, row) for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
