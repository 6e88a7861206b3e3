"""How often `scaleout scaling` is right about tables whose truth is known, and how sure it is.

    python tools/calibrate_scaling.py [TABLES] [--seed S] [--tune] [--write]

The interval should hold what would be measured on 2 and on 4 times the largest count in 95 of 100
tables, and be as narrow as that allows. What is refused counts as not held, and is listed."""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

import numpy as np

from scaleout.errors import ScaleoutError
from scaleout.scaling import fit_rates
from scaleout.scaling.calibrated import FILE

sys.path.insert(0, str(Path(__file__).parent))
from made_up_tables import KINDS, Table, tables  # noqa: E402

TIMES = (2, 4)
Found = dict[str, dict[int, list[tuple[bool, float, float]]]]


def judge(many: Iterable[Table]) -> Found:
    """For each kind and each of TIMES: held or not, the interval's high over low, and the error."""
    found: Found = {kind: defaultdict(list) for kind in KINDS}
    for table in many:
        fit = fit_rates(table.nodes, table.rates)
        for times, nodes, rate in zip(TIMES, table.further, table.measured, strict=True):
            try:
                said = fit.predict(nodes)
            except ScaleoutError:
                found[table.kind][times].append((False, np.inf, np.nan))
            else:
                row = (said.low < rate < said.high, said.high / said.low, abs(said.rate / rate - 1))
                found[table.kind][times].append(row)
    return found


def coverage(found: Found, times: int, kind: str | None = None) -> float:
    """The part of the tables (of one kind, or of all) whose truth the interval held."""
    kinds = [kind] if kind else list(found)
    return float(np.mean([row[0] for name in kinds for row in found[name][times]]))


def width(found: Found, times: int, kind: str | None = None) -> float:
    """The median of high over low."""
    kinds = [kind] if kind else list(found)
    return float(np.median([row[1] for name in kinds for row in found[name][times]]))


def error(found: Found, times: int, kind: str | None = None) -> float:
    """The median error of the prediction, as a share."""
    kinds = [kind] if kind else list(found)
    return float(np.nanmedian([row[2] for name in kinds for row in found[name][times]]))


def summary(found: Found) -> list[list[str]]:
    """The lines of calibration.csv."""
    names = [f"{what}_{times}x" for times in TIMES for what in ("held", "width", "error")]
    lines = [["kind", "tables", *names]]
    for kind in (None, *found):
        tables = sum(len(found[name][TIMES[0]]) for name in ([kind] if kind else found))
        cells = [
            f"{figure(found, times, kind):.{digits}f}"
            for times in TIMES
            for figure, digits in ((coverage, 3), (width, 2), (error, 2))
        ]
        lines.append([kind or "all", str(tables), *cells])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=600, metavar="TABLES")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--tune", action="store_true", help="the ranges that priors were chosen on")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    args = parser.parse_args()
    start = perf_counter()
    found = judge(tables(args.count, args.seed, judge=not args.tune))
    spent = perf_counter() - start
    columns = [f"{name} at {t}x" for t in TIMES for name in ("held", "width", "error", "refused")]
    print("| kind | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for kind in (None, *found):
        cells = []
        for t in TIMES:
            rows = [row for name in ([kind] if kind else found) for row in found[name][t]]
            refused = sum(np.isinf(row[1]) for row in rows)
            cells += [f"{coverage(found, t, kind):.3f}", f"{width(found, t, kind):.2f}"]
            cells += [f"{100 * error(found, t, kind):.0f} %", f"{refused}"]
        print(f"| {kind or 'all'} | " + " | ".join(cells) + " |")
    if args.write:
        with open(FILE, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(summary(found))
    print(f"\n{args.count} tables, seed {args.seed}, {1000 * spent / args.count:.0f} ms a table")


if __name__ == "__main__":
    main()
