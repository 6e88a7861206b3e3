"""Does the run that `scaleout scaling` proposes narrow the interval more than the next power of two?

    python tools/choose_experiments.py [TABLES] [--seed S] [--times T]

Each made-up table is measured once more, for the same node hours: as proposed (a count and how
often), on the next power of two, and on the largest count again. Then the interval on T times the
largest count is taken anew. All runs are below that goal, and none has more than twice the largest
count's nodes."""

import argparse
import sys
from pathlib import Path

import numpy as np

from scaleout.errors import ScaleoutError
from scaleout.scaling import fit_rates, next_experiment

sys.path.insert(0, str(Path(__file__).parent))
from made_up_tables import Table, tables  # noqa: E402


def width_after(table: Table, nodes: int, repeats: int, goal: int, seed: int) -> tuple[float, bool]:
    """High over low of the interval on `goal` nodes after so many more runs, and whether it holds."""
    noise = np.random.default_rng([seed, nodes]).standard_normal(repeats)
    rates = (table.truth(nodes) * np.exp(table.noise * noise)).tolist()
    fit = fit_rates([*table.nodes, *[nodes] * repeats], [*table.rates, *rates])
    low, high = np.exp(np.quantile(fit.measured(goal), [0.025, 0.975])).tolist()
    return high / low, low < table.measured[0 if goal == table.further[0] else 1] < high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=200, metavar="TABLES")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--times", type=int, choices=(2, 4), default=4)
    args = parser.parse_args()
    if args.count < 1 or args.seed < 0:
        parser.error(f"TABLES is 1 or more, --seed 0 or more; asked for {args.count}, {args.seed}")
    before: list[float] = []
    ways: dict[str, list[tuple[float, bool]]] = {"proposed": [], "power of two": [], "again": []}
    same = 0
    for index, table in enumerate(tables(args.count, args.seed)):
        largest = table.nodes[-1]
        goal = args.times * largest
        power = 2 ** int(np.floor(np.log2(largest)) + 1)
        if power >= goal:
            continue
        fit = fit_rates(table.nodes, table.rates)
        low, high = np.exp(np.quantile(fit.measured(goal), [0.025, 0.975])).tolist()
        before.append(high / low)
        best = next_experiment(fit, goal, most=min(2 * largest, goal - 1), node_runs=2 * largest)[0]
        tried = {
            "proposed": (best.nodes, best.repeats),
            "power of two": (power, max(1, 2 * largest // power)),
            "again": (largest, 2),
        }
        same += tried["proposed"] == tried["power of two"]
        for way, (nodes, repeats) in tried.items():
            try:
                ways[way].append(width_after(table, nodes, repeats, goal, args.seed + index))
            except ScaleoutError:
                ways[way].append((np.inf, False))
    print(f"{len(before)} tables, goal {args.times}x: width {np.median(before):.2f} before")
    for way, rows in ways.items():
        width, held = np.array([row[0] for row in rows]), np.mean([row[1] for row in rows])
        middle, mean = np.median(width), np.exp(np.log(width).mean())
        print(f"{way:>13}: width {middle:.2f} (geometric mean {mean:.2f}), held {held:.3f}")
    mine, theirs = (np.array([row[0] for row in ways[way]]) for way in ("proposed", "power of two"))
    print(f"proposed narrower {np.mean(mine < theirs):.2f}, the same run {same / len(mine):.2f},"
          f" wider {np.mean(mine > theirs):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
