"""05_horovod: one training on any number of ranks; what travels is the same, whoever computes
it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import flags, metrics, run_script

from scaleout.jobs.job import Run

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
SEVERAL = """
import sys

sys.path.insert(0, {folder!r})
import runme

for words in {runs!r}:
    sys.argv[1:] = words
    runme.main(runme.settings())
"""
EQUAL = {"epochs": 2, "lr": 0.002}  # twice the batch on half the ranks


@pytest.fixture
def embedded(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that everybody has: 1,500 to train on."""
    monkeypatch.setenv("SCALEOUT_DATA", str(results))


def job(ranks: int, env: dict[str, str] | None = None, **given: object) -> Run:
    """Runs the lab, one thread a rank."""
    path, words = LAB / "runme.py", flags(given)
    return run_script(path, *words, name="05_horovod", ranks=ranks, timeout=LIMIT_S, env=env)


def _several(folder: Path, ranks: int, **runs: list[str]) -> dict[str, Any]:
    """The metrics of several runs of one job, which loads TensorFlow once."""
    script = folder / "several.py"
    script.write_text(SEVERAL.format(folder=str(LAB), runs=list(runs.values())))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCALEOUT_RESULTS", str(folder))
        patch.setenv("SCALEOUT_DATA", str(folder))
        done = run_script(script, ranks=ranks, timeout=2 * LIMIT_S, env=YIELDING)
        assert len(done.records) == len(runs), done.output
        assert done.talked or ranks == 1, "ranks that talk through Horovod are no copies"
        return dict(zip(runs, done.records["metrics"], strict=True))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one rank finds."""
    folder = tmp_path_factory.mktemp("one")
    equal = flags({**EQUAL, "batch_per_rank": 400, "checkpoint": folder / "kept"})
    return {**_several(folder, 1, equal=equal), "kept": kept(folder / "kept")}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two ranks find."""
    folder = tmp_path_factory.mktemp("two")
    equal = flags({**EQUAL, "batch_per_rank": 200, "checkpoint": folder / "kept"})
    whole = ["--batch-per-rank=375", "--epochs=1"]
    runs = {"equal": equal, "whole": whole, "half": [*whole, "--fp16"]}
    return {**_several(folder, 2, **runs), "kept": kept(folder / "kept")}


def kept(folder: Path) -> list[np.ndarray]:
    """What the newest checkpoint holds: epochs done, weights, then what the optimizer keeps."""
    with np.load(max(folder.glob("checkpoint-*.npz"))) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def test_two_ranks_are_one_rank_with_twice_the_batch(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    """Also in the last step of an epoch, whose images two ranks share: 1,500 = 3 x 400 + 300."""
    alone, pair = one["equal"], two["equal"]
    assert len(alone["learning_rates"]) == len(pair["learning_rates"]) == 8
    np.testing.assert_allclose(alone["learning_rates"], pair["learning_rates"])
    np.testing.assert_allclose(alone["shares"][0]["norm"], pair["shares"][0]["norm"], rtol=1e-3)
    for mine, yours in zip(one["kept"], two["kept"], strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-3, atol=2e-5)
    assert alone["shares"][0]["start"] == pair["shares"][1]["start"] != pair["shares"][1]["end"]
    assert pair["seen"] == [2, 2], "each image once in each of two epochs"
    assert pair["shares"][0]["end"] == pair["shares"][1]["end"]
    rates = alone[
        "learning_rates"
    ]  # warmed up in half an epoch, two steps of eight, to 400 / 32 times as much
    np.testing.assert_allclose([rates[0], rates[2]], [0.002, 0.025])
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.choice), 2])
def test_mpi4py_alone_learns_what_horovod_does(
    ranks: int, one: dict[str, Any], tmp_path: Path
) -> None:
    """The same weights and momentum as the lab's, to what rounding leaves."""
    words = flags({**EQUAL, "batch_per_rank": 400 // ranks, "checkpoint": tmp_path})
    run = run_script(LAB / "by_mpi.py", *words, ranks=ranks, timeout=LIMIT_S, env=YIELDING)
    saw = metrics(run)
    assert saw["loss"][0] > saw["loss"][1], "it learns"
    assert saw["seen"] == [2, 2], "each image once in each of two epochs"
    assert len({share["end"] for share in saw["shares"]}) == 1
    assert [bool(share["wrote"]) for share in saw["shares"]] == [True, False][:ranks]
    for mine, yours in zip(kept(tmp_path), one["kept"][1:], strict=True):
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


def test_half_precision_sends_the_same_to_three_digits(two: dict[str, Any]) -> None:
    norms = [two[name]["shares"][0]["norm"] for name in ("whole", "half")]
    assert norms[0] != norms[1] and abs(norms[0] / norms[1] - 1) < 0.01, norms


@pytest.mark.choice
def test_the_keras_way_averages_nothing_and_its_callback_fails() -> None:
    """As the notebook says of Horovod 0.28.1 with Keras 3."""
    saw = metrics(run_script(LAB / "keras_way.py", ranks=2, timeout=LIMIT_S))
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
        run = run_script(LAB / "exchange.py", *words, ranks=2, timeout=LIMIT_S, env=env)
        saw = metrics(run)
        assert saw["tensors"] == 3 * 4 + 2
        told = file.read_text()
        assert ("MEMCPY_IN_FUSION_BUFFER" in told) == (by == "gloo")
        assert f"{by.upper()}_ALLREDUCE" in told
        norms += [share["norm"] for share in saw["shares"]]
    np.testing.assert_allclose(norms, norms[0], rtol=1e-5)
