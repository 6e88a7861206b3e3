"""A table of one's own: what was counted, what was measured, and which line of it is wrong."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ScaleoutError
from ..words import plain

COUNTS = ("nodes", "ranks", "gpus", "cores")
RATE, STRONG, WEAK = "rate", "seconds", "weak_seconds"
LONGEST = 100_000  # characters of a line: more is no table of ours, and csv itself stops near here
MOST_ROWS = 200_000
LARGEST = 10**7  # nodes: no machine has more


@dataclass(frozen=True)
class Measured:
    """A table: what was counted, what was measured, and both as numbers."""

    count: str
    what: str
    nodes: list[float]
    values: list[float]

    @property
    def rates(self) -> list[float]:
        """As units a second; of seconds, the unit is the whole work, or one node's."""
        if self.what == RATE:
            return self.values
        weak = self.what == WEAK
        return [
            (n if weak else 1.0) / value for n, value in zip(self.nodes, self.values, strict=True)
        ]

    def seconds(self, nodes: float, rate: float) -> float:
        """What the table's own work takes."""
        return (nodes if self.what == WEAK else 1.0) / rate


def read_table(path: Path | str) -> tuple[list[float], list[float]]:
    """The counts and the rates of a CSV file; see `read_measured`."""
    table = read_measured(path)
    return table.nodes, table.rates


def read_measured(path: Path | str) -> Measured:
    """A CSV file whose first line names a count and `rate`, `seconds` or `weak_seconds`.

    Lines that begin with # are notes of its own; a count may come often.
    """
    head: dict[str, int] = {}
    count, what = "", ""
    nodes: list[float] = []
    values: list[float] = []
    for number, cells in _lines(path):
        if not head:
            head = {name.strip().lower(): index for index, name in enumerate(cells)}
            width = len(cells)
            count = next((name for name in COUNTS if name in head), "")
            what = next((name for name in (RATE, STRONG, WEAK) if name in head), "")
            if not count or not what:
                break
            continue
        found = [_number(cells, head[name]) for name in (count, what)]
        if None in found or any(cells[width:]):  # 1,200 is two cells
            said = ",".join(cells)
            raise ScaleoutError(f"{path}, line {number}: {_short_text(said)} holds no two numbers.")
        mine, value = found[0] or 0.0, found[1] or 0.0
        if not 1 <= mine <= LARGEST or not 1e-100 < value < 1e100:
            raise ScaleoutError(
                f"{path}, line {number}: {count} are 1 to {LARGEST:,}, and {what} is above 0; "
                f"it holds {mine:g} and {value:g}."
            )
        nodes.append(mine)
        values.append(value)
    if not count or not what:
        raise ScaleoutError(
            f"{path} needs a first line that names the columns nodes and rate, such as  nodes,rate  "
            "(or  nodes,seconds  for times of the same work)"
        )
    return Measured(count, what, nodes, values)


def _lines(path: Path | str) -> "list[tuple[int, list[str]]]":
    """The lines that say something, with their numbers; a spreadsheet's mark at the start is left
    out."""
    found: list[tuple[int, list[str]]] = []
    if Path(path).exists() and not Path(path).is_file():  # a pipe would be waited for, for ever
        raise ScaleoutError(f"{path} is no file: give the path of a CSV file.")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            number = 0
            while line := file.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST or "\0" in line:
                    raise ScaleoutError(f"{path}, line {number} is no line of a table.")
                if len(found) > MOST_ROWS:
                    raise ScaleoutError(f"{path} has more than {MOST_ROWS:,} rows: choose some.")
                if line.strip() and not line.startswith("#"):
                    found.append((number, next(csv.reader([line]), [])))
    except (OSError, ValueError, csv.Error) as error:  # no file, no text, or a path that is none
        why = getattr(error, "strerror", None) or error
        raise ScaleoutError(f"{plain(str(path), 400)} cannot be read: {why}.") from None
    return found


def _number(cells: Sequence[str], index: int) -> float | None:
    """A number written in plain ASCII, or None; 1e400 is infinite, and so none of ours."""
    if index >= len(cells) or not cells[index].isascii() or "_" in cells[index]:
        return None
    try:
        return float(cells[index])
    except ValueError:
        return None


def _short_text(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[:most] + "...")
