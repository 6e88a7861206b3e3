"""The last row of each published table, foretold from the rows before it.

    python tools/predict_published.py

Prints a table: error of the prediction, its interval, and whether that held the row."""

from statistics import median

from scaleout.errors import ScaleoutError
from scaleout.scaling import LITERATURE, Published, fit_rates


def foretell(table: Published) -> tuple[float, float, float] | None:
    """Prediction, low and high for the last row; None where it was refused."""
    try:
        said = fit_rates(table.nodes[:-1], table.rates[:-1]).predict(table.nodes[-1])
    except ScaleoutError:
        return None
    return said.rate, said.low, said.high


def main() -> None:
    errors, held = [], []
    print("| table | counts | last row | predicted | error | 95 % interval | held |")
    print("|---|---|---|---|---|---|---|")
    for table in LITERATURE.values():
        said, truth = foretell(table), table.rates[-1]
        if said is None:
            held.append(False)
            print(
                f"| {table.name} | {table.nodes[0]} to {table.nodes[-1]} | {truth:,.0f} | refused"
            )
            continue
        rate, low, high = said
        errors.append(abs(rate / truth - 1))
        held.append(low < truth < high)
        counts = f"{table.nodes[0]} to {table.nodes[-2]}, then {table.nodes[-1]}"
        print(
            f"| {table.name} | {counts} | {truth:,.0f} | {rate:,.0f} | "
            f"{100 * (rate / truth - 1):+.1f} % | {low:,.0f} to {high:,.0f} | "
            f"{'yes' if held[-1] else 'no'} |"
        )
    print(f"\n{len(held)} tables: {sum(held)} held; mean error {100 * sum(errors) / len(errors):.1f}"
          f" %, median {100 * median(errors):.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
