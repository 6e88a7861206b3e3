"""A table of one's own: counts of nodes, and what was measured on them."""

import csv
import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.words import plain
from ..measuring.numbers import one_number

COUNTS = ("nodes", "ranks", "gpus", "cores")
RATE, STRONG, WEAK = "rate", "seconds", "weak_seconds"
HARDLY = 1.2  # times as much on the most as on the fewest
APART = 1.05  # series whose rates are so many times each other, and in one order, are no repeats
REPEATS = ("run", "runs", "repeat", "rep", "trial", "seed", "round")  # columns that tell no series
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

    @property
    def remark(self) -> str:
        """Ask whether a rate that hardly changes is that of one alone; "" where it changes."""
        few, many = min(self.nodes), max(self.nodes)
        at = {n: v for n, v in zip(self.nodes, self.values, strict=True)}
        if self.what != RATE or many < 2 * few or at[many] > HARDLY * at[few]:
            return ""
        one = self.count.removesuffix("s")
        return (
            f"The rate hardly changes with the {self.count}: if it is that of one {one}, give the rate of "
            f"all together, {self.count} times as much."
        )

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
    _refuse_a_sum(columns[count], columns[what], rows, shown)
    _refuse_series(names, [_cells(line) for _, line in rows], columns[count], columns[what], shown)
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


def _refuse_a_sum(counts: list[float], values: list[float], rows: "Lines", shown: str) -> None:
    """Refuse a last line that adds up those above it, as a spreadsheet's does."""
    sums = [math.fsum(column[:-1]) for column in (counts, values)]
    if len(counts) > 3 and all(map(math.isclose, sums, (counts[-1], values[-1]))):
        raise ScaleoutError(f"{shown}, line {rows[-1][0]} is the sum of those above: leave it out.")


def _refuse_series(
    names: list[str], cells: list[list[str]], counts: list[float], values: list[float], shown: str
) -> None:
    """Refuse a table whose other column tells series apart that are far from each other."""
    for at, name in enumerate(names):
        if name in (*COUNTS, RATE, STRONG, WEAK, *REPEATS):
            continue
        found: dict[str, dict[float, list[float]]] = {}
        for line, count, value in zip(cells, counts, values, strict=True):
            if key := line[at].strip() if at < len(line) else "":
                found.setdefault(key, {}).setdefault(count, []).append(value)
        series = {
            key: {count: statistics.median(given) for count, given in by_count.items()}
            for key, by_count in found.items()
        }
        both = set.intersection(*(set(one) for one in series.values())) if series else set()
        if len(series) < 2 or len(both) < 2:
            continue
        orders = {tuple(sorted(series, key=lambda key: series[key][n])) for n in both}
        apart = [
            max(one[n] for one in series.values()) / min(one[n] for one in series.values())
            for n in sorted(both)
        ]
        if len(orders) == 1 and min(apart) > APART:
            given = ", ".join(series)
            raise ScaleoutError(
                f"{shown} holds several series: its column {name} ({plain(given, 60)}) tells rates apart "
                f"that are {min(apart):.2f} to {max(apart):.2f} times each other. Give one at a time, in "
                "a table of its own."
            )


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
