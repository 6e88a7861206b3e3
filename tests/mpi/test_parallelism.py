"""11_parallelism: every way of splitting against one rank alone, what each keeps and sends, what
cannot be split, and faults that nobody reports."""

from pathlib import Path

import numpy as np
import pytest

from scaleout import lab
from scaleout.jobs.job import JobTimeout, Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

LAB = Path(__file__).resolve().parents[2] / "solutions" / "11_parallelism"
# Ranks that share cores let go of them while they wait.
FEW_CORES = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
CLOSE = 1e-10
WAYS = ["runme.py", "tensor.py", "pipeline.py", "sharded.py"]


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAB.parents[1])


def _run(**how: object) -> Run:
    given = {"threads": 1, "env": FEW_CORES, "timeout": 60, "echo": False}
    if how["script"] in WAYS:
        given["steps"] = 1
    return lab("11_parallelism", solution=True).run(**{**given, **how})


def _as_serial(row: dict[str, object], layers: int) -> None:
    found = row["metrics.shares"]
    assert {k for each in found for k in each["layers"]} == set(range(layers))
    for each in found:
        where = f"{row['variant']} on {row['ranks']} ranks: {each['off']}"
        assert max(each["off"]) <= CLOSE, where
        assert np.allclose(each["factor"], 1, rtol=1e-9), where
    assert row["metrics.loss"] == pytest.approx(row["metrics.serial_loss"], rel=1e-12)


@pytest.mark.parametrize(
    ("way", "ranks"),
    [
        # Pipelines where layers do not divide by the stages, the others where columns do not.
        pytest.param(way, ranks, marks=[pytest.mark.choice] * (ranks != (4 if pipes else 3)))
        for way in WAYS
        for ranks in (1, 3, 4)
        for pipes in [way == "pipeline.py"]
    ],
)
def test_every_way_gives_what_one_rank_gives(ranks: int, way: str) -> None:
    """Width 10 does not divide by 3 and 4 ranks, nor do 6 layers by 4 stages."""
    job = _run(ranks=ranks, script=way, layers=6, width=10, batch=72)
    rows = job.records.to_dict("records")
    assert len(rows) == (3 if way == "sharded.py" else 1)
    for row in rows:
        _as_serial(row, 6)
        if way == "pipeline.py":
            for each in row["metrics.shares"]:
                assert len(each["layers"]) in (6 // ranks, -(-6 // ranks))


@pytest.mark.parametrize(
    ("ranks", "replicas"),
    [(4, 2), *(pytest.param(n, n, marks=pytest.mark.choice) for n in (1, 3))],
)
def test_pipelines_side_by_side_give_what_one_rank_gives(ranks: int, replicas: int) -> None:
    job = _run(ranks=ranks, replicas=replicas, script="pipeline.py", layers=6, width=10, batch=72)
    (row,) = job.records.to_dict("records")
    assert row["variant"] == ("hybrid" if replicas > 1 else "pipeline")
    _as_serial(row, 6)


@pytest.mark.parametrize("way", ["runme.py", "sharded.py"])
def test_rows_that_do_not_divide(way: str) -> None:
    rows = _run(ranks=3, script=way, batch=7, width=9, layers=3).records.to_dict("records")
    _as_serial(rows[-1], 3)


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=pytest.mark.choice) for n in (2, 4))])
def test_one_forward_one_backward_is_right_and_keeps_less(ranks: int) -> None:
    job = _run(ranks=ranks, script="pipeline.py", schedule="1f1b", micro_batches=6, layers=7,
               width=10, batch=12)  # fmt: skip
    row = job.records.iloc[0].to_dict()
    _as_serial(row, 7)
    for stage, each in enumerate(row["metrics.shares"]):
        assert max(kept for *_, kept in each["logs"][0]) == ranks - stage


def test_a_split_saves_the_memory_of_what_it_splits() -> None:
    size = {"width": 256, "batch": 32, "layers": 8}
    peak, state = {}, {}
    for ranks, way in ((n, way) for n in (1, 2) for way in WAYS):
        for row in _run(ranks=ranks, script=way, **size).records.to_dict("records"):
            peak[row["variant"], ranks] = row["metrics.peak_bytes"]
            state[row["variant"], ranks] = row["metrics.shares"][0]["state_bytes"]
    assert peak["pipeline", 2] <= 0.65 * peak["data", 1]
    assert peak["tensor", 2] <= 0.65 * peak["data", 1]
    assert peak["sharded", 2] <= 0.8 * peak["adam", 2]
    assert peak["dropped", 2] <= 0.62 * peak["adam", 2]
    whole = 2 * 8 * 256**2 * 8  # two numbers of 8 bytes for each weight
    assert abs(state["adam", 2] - whole) < 100 and abs(state["sharded", 2] - whole / 2) < 100


@pytest.mark.parametrize("ranks", [1, 3])
def test_rows_become_columns_and_rows_again(ranks: int) -> None:
    row = _run(ranks=ranks, script="more/alltoall.py", rows=31, columns=10).records.iloc[0]
    assert row["metrics.off"] <= CLOSE
    assert (row["metrics.alone_off"] > 1e-3) == (ranks > 1)
    shapes = [each["columns"] for each in row["metrics.found"]]
    assert {shape[0] for shape in shapes} == {31} and sum(shape[1] for shape in shapes) == 10


@pytest.mark.parametrize(("ranks", "seed"), [(2, 2000), (3, 1000)])
def test_the_invariant_sees_every_fault_and_nothing_else(ranks: int, seed: int) -> None:
    """On two ranks, seed 2053 changes the weighted sum by less than a millionth of the sizes."""
    row = _run(ranks=ranks, script="broken.py", seed=seed).records.iloc[0]
    assert row["metrics.rung"] == row["metrics.tried"] and sum(row["metrics.tried"]) == 100
    assert min(row["metrics.tried"]) >= 33
    assert row["metrics.some_only"] == 0 and row["metrics.false_alarms"] == 0
    *others, moved = row["metrics.plain"]
    assert moved == 0, "a plain sum is the same in any order"
    assert others == row["metrics.tried"][:2], "it does change with a number that is wrong"


def test_blocking_sends_wait_for_each_other_once_messages_are_long(no_process_left) -> None:
    short = _run(ranks=2, script="stuck.py", width=8)
    assert "the job came to its end" in short.output
    with pytest.raises(JobTimeout) as caught:
        _run(ranks=2, script="stuck.py", width=4096, timeout=7)
    said = {rank: text for rank, text in caught.value.run.lines if "I wait in" in text}
    assert said[0].endswith("I wait in Send to rank 1")
    assert said[1].endswith("I wait in Send to rank 0")
    no_process_left(caught.value.run.id)


def test_a_forecast_comes_from_the_parts_at_two_narrower_widths() -> None:
    job = _run(ranks=2, script="which.py", widths=[16, 32, 64], parts=[8, 16, 32], repeats=2)
    rows = job.records.to_dict("records")
    assert [row["variant"] for row in rows] == ["data", "tensor", "data again"] * 3
    for row in rows:
        assert row["metrics.batch"] == 64 * row["metrics.ratio"] and len(row["step_s"]) == 2
        parts = row["metrics.parts"]
        for width, (products, messages, summed) in zip((16, 32, 64), parts, strict=True):
            # Tensor parallelism needs no sum before its first pair.
            sums, rows_ = (3, row["metrics.ratio"]) if row["variant"] == "tensor" else (4, 1)
            assert summed == 4 * sums * rows_ * width * width, "numbers of 4 bytes"
            assert products > 0 and messages > 0
        (one, less, _), (two, more, _), _ = parts
        goes_on = [
            two + (two - one) * (64**3 - 32**3) / (32**3 - 16**3),
            more + (more - less) * (64**2 - 32**2) / (32**2 - 16**2),
        ]
        assert row["metrics.predicted_parts"] == pytest.approx(goes_on)
        assert row["metrics.predicted_ms"] == pytest.approx(sum(goes_on))
