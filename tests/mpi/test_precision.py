"""08_precision: int8 by hand against NumPy's own arithmetic, what ranks agree on, TFLite's models,
and wrong input."""

import runpy
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from scaleout import lab
from scaleout.jobs.job import JobFailed, Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

LAB = Path(__file__).resolve().parents[2] / "solutions" / "08_precision"


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAB.parents[1])
    monkeypatch.setenv("SCALEOUT_QUICK", "1")


def _run(**how: object) -> Run:
    given = {"ranks": 1, "threads": 1, "timeout": 240, "echo": False}
    return lab("08_precision", solution=True).run(**{**given, **how})


def _of_this_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> dict[str, object]:
    """A module of the lab, and nothing of it left behind in sys.modules."""
    monkeypatch.syspath_prepend(str(LAB))
    before = set(sys.modules)
    found = runpy.run_path(str(LAB / name))
    for extra in {"network", "common"} & (set(sys.modules) - before):
        monkeypatch.delitem(sys.modules, extra)
    return found


def test_rounding_is_that_of_the_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _of_this_folder(monkeypatch, "network.py")
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(5000) * 10.0 ** rng.uniform(-9, 4, 5000)).astype(np.float32)
    x[:4] = [256, 257, 259, -1e-30]
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)):
        assert np.array_equal(network[name](x), x.astype(dtype).astype(np.float32)), name


def test_a_gradient_is_the_slope_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _of_this_folder(monkeypatch, "network.py")
    x, y, _, _ = network["examples"]()
    x, y = x[:64].astype(np.float64), y[:64]
    weights = [w.astype(np.float64) for w in network["start"](0)]
    found = network["gradients"](weights, x, y)[1]
    for k, at in ((0, (350, 7)), (1, (5,)), (2, (3, 9)), (3, (2,))):
        losses = []
        for step in (1e-4, -1e-4):
            moved = [w.copy() for w in weights]
            moved[k][at] += step
            losses.append(network["gradients"](moved, x, y)[0])
        slope = (losses[0] - losses[1]) / 2e-4
        assert found[k][at] == pytest.approx(slope, rel=0.02, abs=1e-5)


def test_ranks_agree_on_the_range_and_the_answer() -> None:
    """The range over all batches, whoever saw them, and each test image once."""
    rows = _run(ranks=3, part="int8", bits=[8], batches=7, steps=20).records
    alone = _run(ranks=1, part="int8", bits=[8], batches=7, steps=20).records
    for mine, other in zip(rows.to_dict("records"), alone.to_dict("records"), strict=True):
        assert mine["metrics.accuracy"] == other["metrics.accuracy"]
        assert mine["metrics.ranges"] == other["metrics.ranges"]
        assert mine["metrics.largest_sum"] == other["metrics.largest_sum"]


def test_eight_bits_cost_little_and_two_a_lot() -> None:
    rows = _run(part="int8", bits=[8, 2], steps=150).records.set_index("variant")
    plain = rows.loc["fp32", "metrics.accuracy"]
    assert plain > 0.8
    assert rows.loc["8 bits, channel", "metrics.accuracy"] > plain - 0.02
    assert rows.loc["2 bits, tensor", "metrics.accuracy"] < plain - 0.1
    for bits in (8, 2):
        channel, tensor = (
            np.mean(rows.loc[f"{bits} bits, {per}", "metrics.off"]) for per in ("channel", "tensor")
        )
        assert channel < tensor
    assert rows.loc["8 bits, tensor", "metrics.beyond_int16"] > 0
    assert rows.loc["8 bits, tensor", "metrics.largest_sum"] > 32767


def test_small_gradients_vanish_in_fp16_and_not_when_scaled() -> None:
    rows = _run(part="fp16", seeds=2, ranks=2, steps=80, mean_over=[64, 16777216]).records
    found = {(r["metrics.how"], r["metrics.mean_over"]): r for r in rows.to_dict("records")}
    assert len(found) == 8 and all(len(r["metrics.losses"]) == 2 for r in found.values())
    many = 16777216
    assert found["fp16", many]["metrics.lost"] > 0.5
    assert found["fp16 scaled", many]["metrics.lost"] < 0.05
    assert found["bf16", many]["metrics.lost"] < 0.01 and found["fp16", 64]["metrics.lost"] < 0.1
    accuracy = {key: np.mean(row["metrics.accuracy"]) for key, row in found.items()}
    assert accuracy["fp16 scaled", many] > accuracy["fp16", many] + 0.05
    assert abs(accuracy["fp16 scaled", many] - accuracy["fp32", many]) < 0.05
    assert accuracy["fp32", many] == accuracy["fp32", 64], "the step is larger by as much"


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"\x1c\0\0\0TFL3" + bytes(100))
    with pytest.raises(JobFailed) as caught:
        _run(script="streams.py", model=damaged)
    ((rank, said),) = [line for line in caught.value.run.lines if line[0] is not None]
    assert rank == 0 and "damaged.tflite is damaged" in said
