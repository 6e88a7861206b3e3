"""05_horovod: one training on any number of ranks; what travels is the same, whoever computes it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scaleout import launch

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(280), pytest.mark.usefixtures("embedded")]

LAB = Path(__file__).resolve().parents[2] / "solutions/05_horovod"
LIMIT_S = 120.0
MNIST = os.environ.get("SCALEOUT_DATA", "")


@pytest.fixture
def embedded(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that everybody has: 1,500 to train on."""
    monkeypatch.setenv("SCALEOUT_DATA", str(results))


def job(ranks: int, env: dict[str, str] | None = None, **flags: object) -> launch.Run:
    """Runs the lab, one thread a rank."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    command = ["python", "-m", "mpi4py", str(LAB / "runme.py"), *words]
    return launch.run(command, name="05_horovod", ranks=ranks, threads=1, timeout=LIMIT_S, echo=None, env=env)


def metrics(run: launch.Run) -> dict[str, Any]:
    assert len(run.records) == 1
    return run.records["metrics"].iloc[0]


def kept(folder: Path) -> list[np.ndarray]:
    """What the newest checkpoint holds: epochs done, weights, then what the optimizer keeps."""
    with np.load(max(folder.glob("checkpoint-*.npz"))) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def test_two_ranks_are_one_rank_with_twice_the_batch(tmp_path: Path) -> None:
    """Also in the last step of an epoch, whose images two ranks share: 1,500 = 3 x 400 + 300."""
    one, two = tmp_path / "one", tmp_path / "two"
    alone = metrics(job(1, batch_per_rank=400, epochs=2, lr=0.002, checkpoint=one))
    pair = metrics(job(2, batch_per_rank=200, epochs=2, lr=0.002, checkpoint=two))
    assert len(alone["learning_rates"]) == len(pair["learning_rates"]) == 8
    np.testing.assert_allclose(alone["learning_rates"], pair["learning_rates"])
    np.testing.assert_allclose(alone["shares"][0]["norm"], pair["shares"][0]["norm"], rtol=1e-3)
    for mine, yours in zip(kept(one), kept(two), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-3, atol=2e-5)
    assert alone["shares"][0]["start"] == pair["shares"][1]["start"] != pair["shares"][1]["end"]
    rates = alone["learning_rates"]  # warmed up in half an epoch, two steps of eight, to 400 / 32 times as much
    np.testing.assert_allclose([rates[0], rates[2]], [0.002, 0.025])
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)


def test_every_rank_ends_with_the_same_weights_and_saw_its_own_images() -> None:
    """3 ranks and 64 images do not divide 1,500: the last step of an epoch is shorter, and not equally long on all."""
    ranks = 3
    saw = metrics(job(ranks, batch_per_rank=64, epochs=1))
    shares = saw["shares"]
    assert len(shares) == ranks and saw["seen"] == [1, 1]
    assert {share["steps"] for share in shares} == {-(-1500 // (64 * ranks))}
    assert len({share["start"] for share in shares}) == len({share["end"] for share in shares}) == 1
    assert len({share["norm"] for share in shares}) == 1 and shares[0]["start"] != shares[0]["end"]


def test_the_accuracy_is_the_same_on_1_2_and_4_ranks() -> None:
    yielding = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "HOROVOD_CYCLE_TIME": "5"}  # 4 ranks may share 2 cores
    found = [metrics(job(ranks, epochs=8, env=yielding))["accuracy"][-1] for ranks in (1, 2, 4)]
    assert min(found) >= 0.97 and max(found) - min(found) <= 0.0102, found


@pytest.mark.skipif(not MNIST, reason="needs real MNIST in SCALEOUT_DATA")
def test_the_accuracy_on_mnist() -> None:
    assert metrics(job(2, env={"SCALEOUT_DATA": MNIST, "HOROVOD_CYCLE_TIME": "5"}))["accuracy"][-1] >= 0.985


def test_half_precision_sends_the_same_to_three_digits(tmp_path: Path) -> None:
    folders = [tmp_path / "whole", tmp_path / "half"]
    whole = metrics(job(2, batch_per_rank=375, epochs=1, checkpoint=folders[0]))
    command = ["python", "-m", "mpi4py", str(LAB / "runme.py"), "--fp16", "--batch-per-rank=375", "--epochs=1"]
    half = launch.run(command, name="05_horovod", ranks=2, threads=1, timeout=LIMIT_S, echo=None)
    norms = [m["shares"][0]["norm"] for m in (whole, metrics(half))]
    assert norms[0] != norms[1] and abs(norms[0] / norms[1] - 1) < 0.01, norms
