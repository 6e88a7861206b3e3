"""05_horovod: one training on any number of ranks; what travels is the same, whoever computes
it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import flags, metrics, run_script

from scaleout.jobs.job import JobFailed, Run
from scaleout.traces import horovod as timeline

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
    rates = alone[
        "learning_rates"
    ]  # warmed up in half an epoch, two steps of eight, to 400 / 32 times as much
    np.testing.assert_allclose([rates[0], rates[2]], [0.002, 0.025])
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)


def test_every_rank_ends_with_the_same_weights_and_saw_its_own_images() -> None:
    """3 ranks and 64 images do not divide 1,500: the last step of an epoch is shorter, and not
    equally long on all."""
    ranks = 3
    saw = metrics(job(ranks, batch_per_rank=64, epochs=1))
    shares = saw["shares"]
    assert len(shares) == ranks and saw["seen"] == [1, 1]
    assert {share["steps"] for share in shares} == {-(-1500 // (64 * ranks))}
    assert len({share["start"] for share in shares}) == len({share["end"] for share in shares}) == 1
    assert len({share["norm"] for share in shares}) == 1 and shares[0]["start"] != shares[0]["end"]


@pytest.mark.choice
def test_the_accuracy_is_the_same_on_1_2_and_4_ranks() -> None:
    jobs = [job(ranks, epochs=8, env=YIELDING) for ranks in (1, 2, 4)]
    found = [metrics(run)["accuracy"][-1] for run in jobs]
    assert min(found) >= 0.97 and max(found) - min(found) <= 0.0102, found


@pytest.mark.skipif(not MNIST, reason="needs real MNIST in SCALEOUT_DATA")
def test_the_accuracy_on_mnist() -> None:
    assert (
        metrics(job(2, env={"SCALEOUT_DATA": MNIST, "HOROVOD_CYCLE_TIME": "5"}))["accuracy"][-1]
        >= 0.985
    )


def test_half_precision_sends_the_same_to_three_digits(two: dict[str, Any]) -> None:
    norms = [two[name]["shares"][0]["norm"] for name in ("whole", "half")]
    assert norms[0] != norms[1] and abs(norms[0] / norms[1] - 1) < 0.01, norms


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_per_rank": 0}, "argument --batch-per-rank: it takes 1 or more, not 0"),
        pytest.param(
            {"lr": "nan"},
            "argument --lr: it takes more than 0, not nan",
            marks=pytest.mark.choice,
        ),
    ],
)
def test_bad_input_is_one_sentence_from_rank_0(given: dict[str, object], words: str) -> None:
    with pytest.raises(JobFailed) as caught:
        job(2, **given)
    assert caught.value.run.lines == [(0, words)]
    assert words in str(caught.value)


VARIANTS = {
    "1 rank": {"ranks": 1, "apart": True},
    "1 rank, 2 threads": {"ranks": 1, "threads": 2, "apart": True},
    "2 ranks, cycle 4 ms": {"cycle_ms": 4},
    "2 ranks, apart": {"apart": True},
}


def test_tune_runs_each_variant_once_a_round_and_its_baselines_twice() -> None:
    """In one job: one rank alone, two that talk, two that do not, and one with two threads."""
    variants = list(VARIANTS)
    words = ["--rounds=2", "--steps=4", "--against", variants[1], "--traced", variants[2]]
    run = run_script(
        LAB / "tune.py",
        "--variants",
        repr(VARIANTS),
        *words,
        ranks=3,
        timeout=LIMIT_S,
        env=YIELDING,
    )
    saw = metrics(run)
    for name, first, left_out in (("runs", 0, None), ("against", 1, 0)):
        others = [v for v in range(4) if v not in (first, left_out)]
        wanted = [(variants[first], 0), (variants[first], 1), *((variants[v], 0) for v in others)]
        rows = [(row["round"], row["variant"], row["again"]) for row in saw[name]]
        assert rows == [(r, *row) for r in range(2) for row in wanted]
        assert all(row["value"] > 0 for row in saw[name])
    steps = timeline.read(run.folder / "timeline.json").steps()
    assert set(steps["rank"]) == {0, 1}, "the traced variant has both ranks"


def test_the_keras_way_averages_nothing_and_its_callback_fails() -> None:
    """As the notebook says of Horovod 0.28.1 with Keras 3."""
    saw = metrics(run_script(LAB / "keras_way.py", ranks=2, timeout=LIMIT_S))
    one, other = saw["shares"]
    assert one["start"] == other["start"] and one["end"] != other["end"]
    assert "no attribute 'ref'" in saw["said"]


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
