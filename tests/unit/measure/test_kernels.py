"""Which kernels can be compared on which processor, and what the summary says of a comparison."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from scaleout import machine
from scaleout.measure import kernels
from scaleout.measure.comparison import Comparison

VARIANTS = {
    "default": {"kernels": "default"},
    "oneDNN": {"kernels": "onednn"},
    "bf16": {"kernels": "bf16", "batch_norm": "fused"},
}


def _comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """default 4, oneDNN 8, bf16 16 images/s, of 10 GFLOP each."""
    rates = {"default": 4.0, "oneDNN": 8.0, "bf16": 16.0}
    rows, records = [], []
    for round_ in range(3):
        for name, again in (("default", 0), ("default", 1), ("oneDNN", 0), ("bf16", 0)):
            value = rates[name] * (1 + 0.01 * ((round_ + again) % 2))
            run = f"{name}-{round_}-{again}"
            row = {"round": round_, "place": len(rows), "variant": name, "again": again}
            rows.append({**row, "value": value, "unit": "images/s", "run_id": run})
            how = {"metrics.kernels": VARIANTS[name]["kernels"], "metrics.flops_per_image": 1e10}
            records.append({"variant": name, **how})
    monkeypatch.setattr(Comparison, "records", pd.DataFrame(records))
    return Comparison(rows)


def test_the_summary_stands_beside_what_others_published(monkeypatch: pytest.MonkeyPatch) -> None:
    table = kernels.summary(_comparison(monkeypatch), sgemm_gflops=160).set_index("environment")
    assert table.images_per_s.tolist()[:3] == pytest.approx([4, 8, 16], rel=0.02)
    assert table.times.tolist()[:3] == pytest.approx([1, 2, 4], rel=0.02)
    assert table.low["oneDNN"] < table.times["oneDNN"] < table.high["oneDNN"]
    assert table.of_sgemm["default":"oneDNN"].tolist() == pytest.approx([0.25, 0.5], rel=0.02)
    assert math.isnan(table.of_sgemm["bf16"]), "the peak of another format is not its peak"
    assert table.times["MKL-DNN, 2019"] == pytest.approx(4.61, abs=0.01)
    assert table.times.iloc[-1] == pytest.approx(85 / 18)
    assert table["where"].tolist() == [
        *3 * ["this machine"],
        *2 * ["a small cloud node, 2019 [DECK19]"],
        "128 nodes, 2018 [PRACE]",
    ]


@pytest.mark.parametrize(
    ("isa", "quick", "left", "said"),
    [
        ({"avx512f", "avx512_bf16"}, "0", ["default", "oneDNN", "bf16"], "in hardware"),
        ({"avx512f"}, "0", ["default", "oneDNN", "bf16"], "emulates"),
        ({"avx2"}, "0", ["default", "oneDNN"], "leave it out"),
        ({"avx512f", "avx512_bf16"}, "1", ["default", "oneDNN"], "in hardware"),
    ],
)
def test_bf16_is_compared_where_onednn_runs_it(
    isa: set[str],
    quick: str,
    left: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    monkeypatch.setattr(machine, "facts", lambda: SimpleNamespace(isa=isa, cpu="A processor"))
    assert list(kernels.possible(VARIANTS)) == left
    assert said in capsys.readouterr().out
