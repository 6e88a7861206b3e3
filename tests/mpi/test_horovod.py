"""05_horovod: one training on any number of ranks; what travels is the same, whoever computes
it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import flags, metrics, run_script

from scaleout.jobs.job import JobFailed, Run

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("embedded"),
]

LAB = Path(__file__).resolve().parents[2] / "solutions/05_horovod"
LIMIT_S = 300.0
MNIST = os.environ.get("SCALEOUT_DATA", "")
YIELDING = {
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "HOROVOD_CYCLE_TIME": "5",
}  # for ranks that share cores
HALF = """
import sys

sys.path[:0] = [{folder!r}, {folder!r} + "/side"]
import horovod.tensorflow as hvd
from training import Training

from scaleout import records

hvd.init()
norms = []
for way in ("together", "fp16"):
    training = Training(64, hvd.size())
    x, y = (a[hvd.rank()::hvd.size()][:64] for a in (training.x, training.y))
    norms.append(float(training.steps[way](x, y)))
if hvd.rank() == 0:
    records.write(lab="05_horovod", metrics={{"norms": norms}})
"""
EQUAL = {"epochs": 2, "schedule": "constant"}  # twice the batch and rate on half the ranks


@pytest.fixture
def embedded(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that everybody has: 1,500 to train on."""
    monkeypatch.setenv("SCALEOUT_DATA", str(results))


def job(
    ranks: int, script: str = "runme.py", env: dict[str, str] | None = None, **given: object
) -> Run:
    """Runs a script of the lab, one thread a rank."""
    path, words = LAB / script, flags(given)
    return run_script(path, *words, name="05_horovod", ranks=ranks, timeout=LIMIT_S, env=env)


def half_of(ranks: int) -> dict[str, float]:
    """The images and the rate of each of two ranks, or of one that is both."""
    return {"batch_per_rank": 400 // ranks, "lr": 0.02 / ranks}


def _trained(folder: Path, ranks: int) -> dict[str, Any]:
    """What the lab noted and kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCALEOUT_RESULTS", str(folder))
        patch.setenv("SCALEOUT_DATA", str(folder))
        run = job(ranks, env=YIELDING, **EQUAL, **half_of(ranks))
    assert run.talked or ranks == 1, "ranks that talk through Horovod are no copies"
    return {**metrics(run), "kept": kept(run.folder)}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one rank finds."""
    return _trained(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two ranks find."""
    return _trained(tmp_path_factory.mktemp("two"), 2)


def kept(folder: Path) -> list[np.ndarray]:
    """The arrays of the newest checkpoint."""
    with np.load(max(folder.glob("checkpoint-*.npz"))) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def test_two_ranks_are_one_rank_with_twice_the_batch(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    """What does not fill a step is dropped, in each epoch other images: 1,500 = 3 x 400 + 300."""
    alone, pair = one, two
    assert alone["learning_rates"] == pair["learning_rates"] == [0.02] * 6
    np.testing.assert_allclose(alone["shares"][0]["norm"], pair["shares"][0]["norm"], rtol=1e-3)
    for mine, yours in zip(one["kept"], two["kept"], strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-3, atol=2e-5)
    assert alone["shares"][0]["start"] == pair["shares"][1]["start"] != pair["shares"][1]["end"]
    assert alone["seen"] == pair["seen"] == [0, 2], "a few images never, most in both epochs"
    assert pair["shares"][0]["end"] == pair["shares"][1]["end"]


@pytest.mark.choice
def test_the_rate_grows_to_that_of_all_ranks_and_falls() -> None:
    """Warmed up in half an epoch, two steps of eight."""
    rates = metrics(job(2, epochs=2, batch_per_rank=180, env=YIELDING))["learning_rates"]
    np.testing.assert_allclose([rates[0], rates[2]], [0.01, 0.02])
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)


def test_fewer_images_than_a_step_takes_are_refused() -> None:
    with pytest.raises(JobFailed, match="A step needs 4000 images; there are 1500."):
        job(2, epochs=1, batch_per_rank=2000)


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.choice), 2])
def test_mpi4py_alone_learns_what_horovod_does(
    ranks: int, one: dict[str, Any], tmp_path: Path
) -> None:
    """The same weights as the lab's, to what rounding leaves."""
    words = flags({"epochs": 2, **half_of(ranks), "checkpoint": tmp_path})
    run = run_script(LAB / "side/by_mpi.py", *words, ranks=ranks, timeout=LIMIT_S, env=YIELDING)
    saw = metrics(run)
    assert saw["loss"][0] > saw["loss"][1], "it learns"
    assert saw["seen"] == one["seen"], "each image once in an epoch, or not at all"
    assert len({share["end"] for share in saw["shares"]}) == 1
    assert [bool(share["wrote"]) for share in saw["shares"]] == [True, False][:ranks]
    for mine, yours in zip(kept(tmp_path)[: len(one["kept"])], one["kept"], strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-3, atol=2e-5)


def test_a_training_that_went_on_has_learned_what_the_lab_does(
    one: dict[str, Any], tmp_path: Path
) -> None:
    """Two ranks fail in the second epoch, of three steps each; one goes on from their checkpoint."""
    how = {**EQUAL, "checkpoint": tmp_path}
    with pytest.raises(JobFailed):
        job(2, "side/resume.py", {**YIELDING, "SCALEOUT_FAIL_AT": "5"}, **how, **half_of(2))
    run = job(1, "side/resume.py", **how, **half_of(1))
    assert "Going on from checkpoint-000001.npz." in run.output
    assert len(metrics(run)["accuracy"]) == 1
    weights = kept(tmp_path)[1 : 1 + len(one["kept"])]
    for mine, yours in zip(weights, one["kept"], strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-3, atol=2e-5)


@pytest.mark.choice
def test_the_accuracy_is_the_same_on_1_2_and_4_ranks() -> None:
    jobs = [job(ranks, epochs=8, env=YIELDING) for ranks in (1, 2, 4)]
    found = [metrics(run)["accuracy"][-1] for run in jobs]
    assert min(found) >= 0.97 and max(found) - min(found) <= 0.0102, found


@pytest.mark.choice
@pytest.mark.skipif(not MNIST, reason="needs real MNIST in SCALEOUT_DATA")
def test_the_accuracy_on_mnist() -> None:
    assert (
        metrics(job(2, env={"SCALEOUT_DATA": MNIST, "HOROVOD_CYCLE_TIME": "5"}))["accuracy"][-1]
        >= 0.985
    )


def test_half_precision_sends_the_same_to_three_digits(script: Callable[..., Path]) -> None:
    half = script(HALF.format(folder=str(LAB)))
    norms = metrics(run_script(half, ranks=2, timeout=LIMIT_S))["norms"]
    assert norms[0] != norms[1] and abs(norms[0] / norms[1] - 1) < 0.01, norms


@pytest.mark.choice
def test_the_keras_way_averages_nothing_and_its_callback_fails() -> None:
    """As the notebook says of Horovod 0.28.1 with Keras 3."""
    saw = metrics(run_script(LAB / "side/keras_way.py", ranks=2, timeout=LIMIT_S))
    one, other = saw["shares"]
    assert one["start"] == other["start"] and one["end"] != other["end"]
    assert "no attribute 'ref'" in saw["said"]


@pytest.mark.choice
def test_small_tensors_are_fused_or_not_and_gloo_gives_what_mpi_does(tmp_path: Path) -> None:
    """Two jobs: MPI that packs nothing, and Gloo that packs."""
    norms = []
    for by, threshold in (("mpi", "0"), ("gloo", str(2**26))):
        file = tmp_path / f"{by}.json"
        env = {"HOROVOD_FUSION_THRESHOLD": threshold, "HOROVOD_TIMELINE": str(file)}
        words = [f"--by={by}", "--layers=4", "--steps=4"]
        run = run_script(LAB / "side/exchange.py", *words, ranks=2, timeout=LIMIT_S, env=env)
        saw = metrics(run)
        assert saw["tensors"] == 3 * 4 + 2
        told = file.read_text()
        assert ("MEMCPY_IN_FUSION_BUFFER" in told) == (by == "gloo")
        assert f"{by.upper()}_ALLREDUCE" in told
        norms += [share["norm"] for share in saw["shares"]]
    np.testing.assert_allclose(norms, norms[0], rtol=1e-5)
