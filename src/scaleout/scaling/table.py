"""Answer `scaleout scaling TABLE.csv --predict 64,128`: read a table, fit it, predict its cost."""

import csv
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ScaleoutError
from ..words import plain
from .fit import FARTHEST, RateFit, fit_rates

COUNTS = ("nodes", "ranks", "gpus", "cores")
RATE, STRONG, WEAK = "rate", "seconds", "weak_seconds"
MOST_NODES = 10**7


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


def read_measured(path: Path | str) -> Measured:
    """Read a CSV file whose first line names a count and `rate`, `seconds` or `weak_seconds`.

    Lines that begin with # are notes of its own; a count may come often.
    """
    shown = plain(str(path), 400)
    lines = [
        (number, line)
        for number, line in enumerate(_text(path, shown).splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    header = lines[0][1] if lines else ""
    for sign, name in ((";", "semicolons"), ("\t", "tabs")):
        if sign in header and "," not in header:
            raise ScaleoutError(f"{shown} has {name} between its columns: save it with commas.")
    names = [name.strip().lower() for name in header.split(",")]
    count = next((name for name in COUNTS if name in names), "")
    what = next((name for name in (RATE, STRONG, WEAK) if name in names), "")
    if not count or not what:
        raise ScaleoutError(
            f"{shown} needs a first line that names the columns nodes and rate, such as  "
            "nodes,rate  (or  nodes,seconds  for times of the same work)"
        )
    for name in (count, what):
        if names.count(name) > 1:
            raise ScaleoutError(f"{shown} has two columns named {name}: which one is it?")
    table = Measured(count, what, [], [])
    for number, line in lines[1:]:
        cells = next(csv.reader([line]), [])
        try:
            if any(cells[len(names) :]):  # 1,200 is two cells
                raise ValueError
            nodes, value = (float(cells[names.index(name)]) for name in (count, what))
        except (ValueError, IndexError):
            cut = line if len(line) <= 60 else line[:60] + "..."
            raise ScaleoutError(f"{shown}, line {number}: {cut!r} holds no two numbers.") from None
        if not 1 <= nodes <= MOST_NODES or not 1e-100 < value < 1e100:
            raise ScaleoutError(
                f"{shown}, line {number}: {count} are 1 to {MOST_NODES:,}, and {what} is above 0; "
                f"it holds {nodes:g} and {value:g}."
            )
        table.nodes.append(nodes)
        table.values.append(value)
    return table


def _text(path: Path | str, shown: str) -> str:
    """What a text file holds, without a spreadsheet's mark at its start."""
    try:
        if Path(path).exists() and not Path(path).is_file():  # a pipe would be waited for, for ever
            raise ScaleoutError(f"{shown} is no file: give the path of a CSV file.")
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScaleoutError(
            f"{shown} is no text in UTF-8: save it as CSV once more, with UTF-8 as its encoding."
        ) from None
    except (OSError, ValueError) as error:  # no file, or a path that is none
        why = getattr(error, "strerror", None) or error
        raise ScaleoutError(f"{shown} cannot be read: {why}.") from None


def _reaching(fit: RateFit, target: float) -> dict[str, int | None]:
    """The fewest nodes whose rate, and whose interval's low end, reach a target."""
    fewest: dict[str, int | None] = {"likely": None, "safe": None}
    most = int(FARTHEST * fit.nodes[-1])
    for nodes in sorted({round(2 ** (k / 8)) for k in range(int(8 * math.log2(most)) + 1)}):
        try:
            prediction = fit.predict(nodes)
        except ScaleoutError:
            continue
        for name, rate in (("likely", prediction.rate), ("safe", prediction.low)):
            if fewest[name] is None and rate >= target:
                fewest[name] = nodes
        if fewest["safe"] is not None:
            break
    return fewest


def _as_dict(
    table: Measured, fit: RateFit, predict: Sequence[int], work: float, target: float | None
) -> dict[str, object]:
    rows = []
    for nodes in predict:
        try:
            prediction = fit.predict(nodes)
        except ScaleoutError as error:
            rows.append({"nodes": nodes, "refused": str(error)})
            continue
        hours = prediction.node_hours(work)
        row = {**vars(prediction), "node_hours": hours, "hours": hours / nodes}
        if table.what != RATE:
            row["seconds"] = table.seconds(nodes, prediction.rate)
        rows.append(row)
    answer: dict[str, object] = {
        "points": fit.points,
        "one_node": fit.one,
        "scatter": fit.scatter,
        "laws": fit.weights,
        "predictions": rows,
    }
    if target is not None:
        answer["target"] = {"rate": target, **_reaching(fit, target)}
    return answer


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def main(
    path: Path,
    predict: Sequence[int],
    work: float,
    as_json: bool,
    say: Callable[[str], None] = print,
    target: float | None = None,
) -> int:
    """Print the fit, and a row for each number of nodes."""
    if target is not None and not 0 < target < math.inf:
        raise ScaleoutError("--target takes a rate above 0, such as 5000.")
    table = read_measured(path)
    fit = fit_rates(table.nodes, table.rates)
    answer = _as_dict(table, fit, predict or [int(2 * fit.nodes[-1])], work, target)
    rows: list[dict[str, float]] = answer["predictions"]  # type: ignore[assignment]
    if as_json:
        say(json.dumps(answer, indent=1))
    else:
        _print(table, fit, rows, work, say)
        if target is not None:
            say(_target(fit, table.count, **answer["target"]))  # type: ignore[arg-type]
    return 1 if any("refused" in row for row in rows) else 0


def _print(
    table: Measured,
    fit: RateFit,
    rows: Sequence[dict[str, float]],
    work: float,
    say: Callable[[str], None],
) -> None:
    counts = ", ".join(f"{n:g}" for n in fit.nodes)
    say(f"{fit.points} points on {counts} {table.count}; one alone {_short(fit.one)}/s;"
        f" scatter {100 * fit.scatter:.1f} %")  # fmt: skip
    order = sorted(fit.weights, key=lambda name: -fit.weights[name])
    weights = ", ".join(f"{name} {100 * fit.weights[name]:.0f} %" for name in order)
    say(f"What holds it back, by how often each law fits best: {weights}")
    timed = table.what != RATE
    cost = "seconds" if timed else f"node hours for {work:.3g}"
    say(f"{table.count:>8} {'rate':>10} {'95 % interval':>22} {'efficiency':>11} {cost:>24}")
    for row in rows:
        if "refused" in row:
            say(f"{row['nodes']:>8} {'-':>10} {'no prediction':>22}")
            continue
        interval = f"{_short(row['low'])} to {_short(row['high'])}"
        last = row["seconds"] if timed else row["node_hours"]
        say(f"{row['nodes']:>8} {_short(row['rate']):>10} {interval:>22} {row['efficiency']:>11.2f}"
            f" {last:>24.4g}   low if: {row['low_law']}")  # fmt: skip
    for sentence in dict.fromkeys(row["refused"] for row in rows if "refused" in row):
        say(str(sentence))


def _target(fit: RateFit, count: str, rate: float, likely: int | None, safe: int | None) -> str:
    """Say how many nodes reach a rate."""
    most = f"{FARTHEST * fit.nodes[-1]:,.0f} {count}"
    if likely is None:
        return f"{_short(rate)}/s: not reached by any prediction, up to {most}"
    end = f"safely (the interval's low end) from {safe}" if safe else f"safely not up to {most}"
    return f"{_short(rate)}/s: likely from {likely} {count} on, {end}"
