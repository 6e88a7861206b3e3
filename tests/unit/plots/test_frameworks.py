"""Figures of 09_networks, from made-up records with known answers."""

import pandas as pd
import pytest

from scaleout import Comparison, frameworks, plots, scaling

BASE, TWIN, OTHER = "TensorFlow, 1 rank", "TensorFlow, 2 ranks", "PyTorch, 2 ranks"


def _compared(twice: float, other: float, rounds: int = 6) -> Comparison:
    values = {BASE: 100.0, TWIN: 100 * twice, OTHER: 100 * other}
    rows = []
    for round_ in range(rounds):
        for name, value in values.items():
            for again in (0, 1) if name == BASE else (0,):
                jitter = 1 + 0.001 * ((round_ + again) % 3)
                row = {"round": round_, "variant": name, "again": again, "value": value * jitter}
                rows.append({**row, "place": len(rows), "unit": "images/s"})
    return Comparison(rows)


def test_the_title_says_who_is_faster_in_each_cell() -> None:
    found = {"small": _compared(1.3, 1.1), "large": _compared(0.8, 0.7)}
    said = plots.frameworks(found, guess=1.5).get_label()
    assert "small: TensorFlow, 2 ranks is 1.30 times as fast" in said
    assert "large: TensorFlow, 1 rank is the fastest" in said
    assert "small, PyTorch, 2 ranks: 1.10" in said


def _records(rates: dict[str, float]) -> pd.DataFrame:
    work = {"shallow": 1e9, "deep": 3e9}
    return pd.DataFrame(
        {
            "metrics.network": name,
            "metrics.framework": framework,
            "metrics.flops_per_image": work[name],
            "metrics.flops_per_s": rate * work[name],
            "metrics.peak_mib": [300.0, 310.0],
            "metrics.parameters": 2_000_000,
            "rate": rate,
            "ranks": 1,
            "threads_per_rank": 2,
        }
        for framework in ("tensorflow", "torch")
        for name, rate in rates.items()
    )


def test_a_network_of_three_times_the_work_at_a_third_of_the_rate_is_on_the_line() -> None:
    figure = plots.rates_over_work(_records({"shallow": 30.0, "deep": 10.0}), guess=0.5)
    assert "PyTorch, deep: 10.0 images/s, 3.0 GFLOP, 1.00" in figure.get_label()
    assert figure.get_label().startswith("TensorFlow does 30 to 30 GFLOP/s in shallow, deep.")


def test_the_table_is_kept_as_csv_and_markdown(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    found = frameworks.table(_records({"shallow": 30.0, "deep": 10.0}))
    assert found.loc[("deep", "PyTorch"), "images/s per core"] == 5
    assert (found["MiB of a rank"] == 310).all()
    csv = pd.read_csv(tmp_path / "frameworks" / "table.csv")
    assert list(csv["images/s"]) == [30, 10, 30, 10]
    text = (tmp_path / "frameworks" / "table.md").read_text()
    assert text.startswith("| network | framework |") and len(text.splitlines()) == 6


@pytest.mark.parametrize("slower", [1.0, 1.25])
def test_the_efficiency_is_that_of_the_medians(slower: float) -> None:
    steps = [0.1, 0.11, 0.12, 0.1, 0.11]
    records = pd.DataFrame(
        [
            {
                "step_s": [slower * s for s in steps],
                "metrics.copies_s": steps,
                "metrics.efficiency": 1 / slower,
            }
        ]
    )
    middle, low, high = frameworks.efficiency(records)
    assert middle == pytest.approx(1 / slower) and low <= middle <= high


def test_a_network_of_the_same_step_and_fewer_parameters_scales_further() -> None:
    records = _records({"shallow": 30.0, "deep": 10.0})
    small = records["metrics.network"] == "shallow"
    records["step_median_s"] = 0.01
    records.loc[small, "metrics.parameters"] = 20_000
    links = ["1 Gb/s Ethernet", "100 Gb/s InfiniBand"]
    found = scaling.imagined(records, ["shallow", "deep", "never measured"], links)
    assert list(found) == ["shallow", "deep"]
    assert [step.gradient_bytes for step in found["deep"]] == [8e6, 8e6]
    slow = {name: steps[0].efficiency(128) for name, steps in found.items()}
    assert slow["deep"] < slow["shallow"]
    assert found["deep"][0].efficiency(128) <= found["deep"][1].efficiency(128)
