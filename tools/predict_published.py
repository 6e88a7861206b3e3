"""The last row of each published table, foretold from the rows before it.

    python tools/predict_published.py

Prints a table: error of the prediction, its interval, and whether that held the row."""

from statistics import mean, median

from scaleout.scaling import LITERATURE, foretell


def main() -> None:
    rows = [foretell(table) for table in LITERATURE.values()]
    print("| table | counts | last row | predicted | error | 95 % interval | held |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        name, nodes = row.table.name, row.table.nodes
        if row.said is None:
            print(f"| {name} | {nodes[0]} to {nodes[-1]} | {row.truth:,.0f} | refused")
            continue
        counts = f"{nodes[0]} to {nodes[-2]}, then {nodes[-1]}"
        print(
            f"| {name} | {counts} | {row.truth:,.0f} | {row.said.rate:,.0f} | "
            f"{100 * row.off:+.1f} % | {row.said.low:,.0f} to {row.said.high:,.0f} | "
            f"{'yes' if row.held else 'no'} |"
        )
    errors = [100 * abs(row.off) for row in rows if row.said]
    held = sum(row.held for row in rows)
    print(f"\n{len(rows)} tables: {held} held; mean error {mean(errors):.1f}"
          f" %, median {median(errors):.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
