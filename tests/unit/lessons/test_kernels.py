"""Which kernels can be compared on which processor, and what the summary says of a comparison."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from helpers import compared, lesson

from scaleout import machine
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.comparison import Comparison
from scaleout.course import pytorch, references

kernels = lesson("01_onednn", "kernels")


def _measured(
    monkeypatch: pytest.MonkeyPatch, rates: dict[str, float], told: dict[str, dict[str, str]]
) -> Comparison:
    """Kinds at so many images/s, of 10 GFLOP each, and what the records of a kind tell of it."""
    found = compared({name: rate / 100 for name, rate in rates.items()})
    about = {
        "metrics.flops_per_image": 1e10,
        "cpu": "A processor",
        "cores": 2,
        "utc": "2026-11-23T",
    }
    runs = found.runs.to_dict("records")
    records = [
        {"variant": run["variant"], "run_id": run["run_id"], **about, **told[run["variant"]]}
        for run in runs
    ]
    monkeypatch.setattr(Comparison, "records", pd.DataFrame(records))
    return Comparison(runs)


def _comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    told = {"default": "default", "oneDNN": "onednn", "bf16": "bf16"}
    kinds = {name: {"metrics.kernels": number} for name, number in told.items()}
    return _measured(monkeypatch, {"default": 4.0, "oneDNN": 8.0, "bf16": 16.0}, kinds)


def _beside_pytorch(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    told = {
        "default": {"metrics.kernels": "default"},
        "PyTorch": {"metrics.dtype": "float32"},
        "PyTorch bf16": {"metrics.dtype": "bfloat16"},
        "oneDNN, fused": {"metrics.kernels": "onednn"},
        "bf16, fused": {"metrics.kernels": "bf16"},
    }
    return _measured(monkeypatch, dict(zip(told, [4.0, 10.0, 15.0, 8.0, 15.0], strict=True)), told)


def test_without_pytorch_a_reference_machine_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lab = SimpleNamespace(folder=tmp_path)
    monkeypatch.setattr(kernels, "python", lambda: None)
    monkeypatch.setattr(pytorch, "python", lambda: None)
    with pytest.raises(ScaleoutError, match=r"make torch.*no runs of: PyTorch, PyTorch bf16"):
        kernels.pytorch(_comparison(monkeypatch), lab)
    beside = _beside_pytorch(monkeypatch)
    kept = references.Reference(beside.runs.to_dict("records"), beside.records)
    monkeypatch.setattr(kernels, "reference", lambda *asked: kept)
    kernels.pytorch(_comparison(monkeypatch), lab)
    why, whose, fp32, _ = capsys.readouterr().out.splitlines()
    assert why.startswith("PyTorch is not here: type  make torch")
    assert "reference machine, not yours: A processor, 2 cores, measured 2026-11-23" in whose
    assert fp32.startswith("oneDNN, fused: slower, 0.8000 times as fast as PyTorch (")


@pytest.mark.parametrize(
    ("isa", "quick", "here", "found"),
    [
        ({"avx512f"}, "0", "python", ["default", "onednn", "bf16+fused", "torch", "torch+bf16"]),
        ({"avx2"}, "0", "python", ["default", "onednn", "torch"]),
        ({"avx512f"}, "0", None, ["default", "onednn", "bf16+fused"]),
        ({"avx512f"}, "1", "python", ["default", "onednn"]),
    ],
)
def test_pytorch_takes_part_where_it_is(
    isa: set[str], quick: str, here: str | None, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    monkeypatch.setattr(machine, "facts", lambda: SimpleNamespace(isa=isa, cpu="A processor"))
    monkeypatch.setattr(kernels, "python", lambda: here)
    kinds = ["default", "onednn", "bf16+fused"]
    assert kernels.possible(kinds, ["torch", "torch+bf16"]) == found


def _turns(kinds: list[str], rates: list[float], rounds: int) -> pd.DataFrame:
    """What turns.py records: rank after rank, each with its turns."""
    return pd.DataFrame(
        [
            {
                "run_id": "a-job",
                "variant": kind,
                "rate": rate * (1 + 0.1 * turn),  # a machine that becomes faster
                "rate_unit": "images/s",
                "batch_per_rank": 16,
                "metrics.rank": rank,
                "metrics.round": turn,
                "metrics.flops_per_image": 1e10,
            }
            for rank, (kind, rate) in enumerate(zip(kinds, rates, strict=True))
            for turn in range(rounds)
        ]
    )


def test_turns_are_a_comparison_with_the_first_kind_twice() -> None:
    found = kernels.Turns(_turns(["default", "default", "onednn", "bf16"], [4, 4, 8, 16], 4))
    assert found.baseline == "default" and found.variants == ["oneDNN", "bf16"]
    assert found.rounds == 4 and found.noise < 0.01
    assert found.ratio("oneDNN").middle == pytest.approx(2)
    # The second round ran backwards.
    ran = found.runs.sort_values("place")
    assert ran[ran["round"] == 0].variant.tolist() == ["default", "default", "oneDNN", "bf16"]
    assert ran[ran["round"] == 1].variant.tolist() == ["bf16", "oneDNN", "default", "default"]
    assert set(found.runs.run_id) == set(found.records.run_id) and len(found.records) == 16


def test_the_short_form_has_no_twin() -> None:
    found = kernels.Turns(_turns(["onednn+eager", "onednn"], [2, 8], 1))
    assert found.baseline == "oneDNN, eager" and found.ratio("oneDNN").middle == pytest.approx(4)


@pytest.mark.parametrize("first", ["default", "onednn"])
def test_the_summary_compares_with_the_default_kernels_and_the_roof(first: str) -> None:
    rates = {"default": 4, "onednn": 8, "onednn+fused": 12}
    kinds = [first, *sorted(rates, key=lambda kind: kind != first)]
    found = kernels.Turns(_turns(kinds, [rates[kind] for kind in kinds], 3))
    table = kernels.summary(found, 90.0).set_index("environment")
    assert list(table.index[:3]) == ["default", "oneDNN", "oneDNN, fused"]
    assert table.loc["oneDNN, fused", "speed-up"] == pytest.approx(3)
    assert table.loc["oneDNN", "low"] <= 2.001 and table.loc["oneDNN", "high"] >= 1.999
    assert list(table.columns[:4]) == ["Network", "Batch size", "images/s", "speed-up"]
    ours = table.loc["oneDNN"]
    assert ours["images/s"] / table.loc["default", "images/s"] == pytest.approx(ours["speed-up"])
    assert ours["of the roof"] == pytest.approx(ours["images/s"] * 10 / 90)
    assert table.loc["MKL-DNN, 2019", "speed-up"] == pytest.approx(4.6, abs=0.01)


def test_an_interval_that_reaches_zero_has_no_upper_end_the_other_way_round() -> None:
    found = SimpleNamespace(middle=0.5, low=0.0, high=4.0)
    result = SimpleNamespace(baseline="oneDNN", ratio=lambda variant: found)
    assert kernels._beside_default(result, "oneDNN") == (2.0, 0.25, float("inf"))
