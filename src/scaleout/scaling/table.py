"""Answer `scaleout scaling TABLE.csv --predict 64,128`: read a table, fit it, predict from it."""

import csv
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.words import plain
from ..measuring.numbers import one_number
from .fit import RateFit, fit_rates

COUNTS = ("nodes", "ranks", "gpus", "cores")
RATE, STRONG, WEAK = "rate", "seconds", "weak_seconds"
# How benchmarks of MPI name their first column: OSU's, and Intel's IMB.
MESSAGES = re.compile(r"(message |msg |data)?(size|#?bytes)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Measured:
    """A table: what was counted, what was measured, and both as numbers.

    Attributes
    ----------
    count : str
        "nodes", "ranks", "gpus" or "cores".
    what : str
        "rate", "seconds" or "weak_seconds".
    nodes, values : list of float
        A number for each row.
    """

    count: str
    what: str
    nodes: list[float]
    values: list[float]

    @property
    def rates(self) -> list[float]:
        """The values as units a second; of seconds, the unit is the whole work, or one node's."""
        if self.what == RATE:
            return self.values
        weak = self.what == WEAK
        return [
            (n if weak else 1.0) / value for n, value in zip(self.nodes, self.values, strict=True)
        ]

    def seconds(self, nodes: float, rate: float) -> float:
        """Say in seconds what the table's own work takes at a rate on so many nodes."""
        return (nodes if self.what == WEAK else 1.0) / rate


def read_measured(path: Path | str) -> Measured:
    """Read a CSV file whose first line names a count and `rate`, `seconds` or `weak_seconds`.

    Parameters
    ----------
    path : Path or str
        Text in UTF-8, with cells in quotes or without. Lines that begin with # are notes (or the
        names, where no other line has them), other columns are left out, and a count may come often.
        Of several counts, such as nodes and ranks, the one that changes is taken.

    Returns
    -------
    Measured

    Raises
    ------
    ScaleoutError
        The file cannot be read, a column is missing or twice there, or a row holds no two numbers in
        range; the sentence names the line.
    """
    shown = plain(str(path), 400)
    lines = [(n, line) for n, line in enumerate(_text(path, shown).splitlines(), 1) if line.strip()]
    rows = [(n, line) for n, line in lines if not line.startswith("#")]
    names, rows = _names(lines, rows, shown)
    what = next(name for name in (RATE, STRONG, WEAK) if name in names)
    for name in (*COUNTS, what):
        if names.count(name) > 1:
            raise ScaleoutError(f"{shown} has two columns named {name}: which one is it?")
    wanted = [name for name in (*COUNTS, what) if name in names]
    columns: dict[str, list[float]] = {name: [] for name in wanted}
    for number, line in rows:
        cells = _cells(line)
        found = {name: _number(cell) for name, cell in zip(names, cells, strict=False)}
        values = [value for name in wanted if (value := found.get(name)) is not None]
        if len(values) < len(wanted) or any(cells[len(names) :]):  # 1,200 is two cells
            cut = line if len(line) <= 60 else line[:60] + "..."
            raise ScaleoutError(f"{shown}, line {number}: {cut!r} holds no two numbers.")
        *counts, value = values
        if not (min(counts) >= 1 and max(counts) < math.inf and 0 < value < math.inf):
            raise ScaleoutError(
                f"{shown}, line {number}: {', '.join(wanted[:-1])} are 1 or more, and {what} is above "
                f"0; it holds {' and '.join(f'{one:g}' for one in values)}."
            )
        for name, one in zip(wanted, values, strict=True):
            columns[name].append(one)
    count = _count({name: columns[name] for name in wanted[:-1]}, shown)
    return Measured(count, what, columns[count], columns[what])


Lines = list[tuple[int, str]]


def _names(lines: Lines, rows: Lines, shown: str) -> tuple[list[str], Lines]:
    """Find the line that names the columns; return the names, and the rows below it."""
    noted = [line.lstrip("# ") for _, line in lines if line.startswith("#")]
    first = rows[0][1] if rows else ""
    for header, below in ((first, rows[1:]), *((line, rows) for line in reversed(noted))):
        names = [cell.strip().lower() for cell in _cells(header)]
        if set(names).intersection(COUNTS) and set(names).intersection((RATE, STRONG, WEAK)):
            return names, below
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), (" ", "blanks")):
        known = {name.strip().lower() for name in first.split(sign)}
        if known.intersection((*COUNTS, RATE, STRONG, WEAK)) and "," not in first:
            raise ScaleoutError(f"{shown} has {word} between its columns: save it with commas.")
    named = first if re.search("[A-Za-z]", first) or not noted else noted[-1]
    there = plain(", ".join(" ".join(cell.split()) for cell in _cells(named)), 120)
    if MESSAGES.match(there):
        raise ScaleoutError(
            f"{shown} is a table of message sizes ({there}), no table of nodes: give one that names the "
            "columns nodes and rate."
        )
    raise ScaleoutError(
        f"{shown} needs a first line that names the columns nodes and rate, such as  nodes,rate  (or  "
        "nodes,seconds  for times of the same work,  nodes,weak_seconds  where each node has its "
        f"own; ranks, gpus or cores for nodes); what it has there is {there!r}."
    )


def _number(cell: str) -> float | None:
    """Read a cell, with marks between thousands or without; None for what is no number."""
    try:
        return float(cell)
    except ValueError:
        return one_number(cell.strip())


def _cells(line: str) -> list[str]:
    """Split a line at its commas; quotes around a cell are no part of it."""
    return next(csv.reader([line], skipinitialspace=True), [])


def _count(columns: Mapping[str, list[float]], shown: str) -> str:
    """Choose the count that changes; ask where several do."""
    change = [name for name, values in columns.items() if len(set(values)) > 1]
    if len(change) > 1:
        raise ScaleoutError(
            f"{shown} counts {' and '.join(change)}, and both change: leave out the column that "
            "--predict is not to count."
        )
    return (change or list(columns))[0]


def _text(path: Path | str, shown: str) -> str:
    """Read a text file, without a spreadsheet's mark at its start."""
    try:
        return jsonlines.text(Path(path))
    except UnicodeDecodeError:
        raise ScaleoutError(
            f"{shown} is no text in UTF-8: save it as CSV once more, with UTF-8 as its encoding."
        ) from None
    except (OSError, ValueError) as error:  # no file, or a path that is none
        why = getattr(error, "strerror", None) or error
        raise ScaleoutError(f"{shown} cannot be read: {why}.") from None


def _short(rate: float) -> str:
    """Write a rate with the digits that a table has room for."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def main(
    path: Path,
    predict: Sequence[int],
    as_json: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Print the fit, and a row for each number of nodes.

    Parameters
    ----------
    path : Path
        A table, as `read_measured` takes it.
    predict : sequence of int
        Numbers of nodes; without any, twice the most that were measured.
    as_json : bool
        Print one object of JSON in place of lines.
    say : callable
        Takes each line.

    Returns
    -------
    int
        The exit status: 1 where a prediction was refused.

    Raises
    ------
    ScaleoutError
        The table cannot be read, or is too small for a fit.
    """
    table = read_measured(path)
    fit = fit_rates(table.nodes, table.rates, table.count)
    rows = [_predicted(table, fit, nodes) for nodes in predict or [int(2 * fit.nodes[-1])]]
    refused = list(dict.fromkeys(row["refused"] for row in rows if "refused" in row))
    one = fit.one if fit.near else None  # else the law has its own, far from the table's
    if as_json:
        laws = {name: round(share, 3) for name, share in fit.weights.items()}
        about = {"count": table.count, "measured": table.what, "points": fit.points}
        about |= {"one": one, "scatter": fit.scatter, "laws": laws, "faster": fit.faster}
        say(json.dumps({**about, "predictions": rows}, indent=1))
        return 1 if refused else 0
    counts = ", ".join(f"{n:g}" for n in fit.nodes)
    alone = f" one alone {_short(one)}/s;" if one is not None else ""
    say(f"{fit.points} points on {counts} {table.count};{alone} scatter {100 * fit.scatter:.1f} %")
    if fit.near and not fit.faster:  # which no law can say
        order = sorted(fit.weights, key=lambda name: -fit.weights[name])
        weights = ", ".join(f"{name} {100 * fit.weights[name]:.0f} %" for name in order)
        say(f"What holds it back, by how often each law fits best: {weights}")
    last = f" {'seconds':>10}" * (table.what != RATE)
    say(f"{table.count:>8} {'rate':>10} {'95 % interval':>22} {'efficiency':>11}{last}")
    for row in rows:
        if "refused" in row:
            say(f"{row['nodes']:>8} {'-':>10} {'no prediction':>22}")
            continue
        interval = f"{_short(row['low'])} to {_short(row['high'])}"
        last = f" {row['seconds']:>10.4g}" if "seconds" in row else ""
        say(f"{row['nodes']:>8} {_short(row['rate']):>10} {interval:>22} {row['efficiency']:>11.2f}"
            f"{last}   low if: {row['low_law']}")  # fmt: skip
    for sentence in refused:
        say(sentence)
    if fit.faster and not refused:
        say(f"{fit.faster}, so predictions may be too low.")
    return 1 if refused else 0


def _predicted(table: Measured, fit: RateFit, nodes: int) -> dict[str, Any]:
    """Predict a number of nodes as a row, or say why that cannot be."""
    try:
        found = fit.predict(nodes)
    except ScaleoutError as error:
        return {"nodes": nodes, "refused": str(error)}
    row: dict[str, Any] = {"nodes": nodes, "rate": found.rate, "low": found.low}
    row |= {"high": found.high, "efficiency": found.efficiency, "low_law": found.low_law}
    return row if table.what == RATE else {**row, "seconds": table.seconds(nodes, found.rate)}
