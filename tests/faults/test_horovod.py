"""05_horovod when it goes wrong: it ends, says who was first, and goes on from its checkpoint on
other ranks."""

import time
from pathlib import Path

import pytest

from scaleout.jobs.job import JobFailed, Run
from scaleout.launch import run as launch
from scaleout.traces import horovod as timeline

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

LAB = Path(__file__).resolve().parents[2] / "solutions/05_horovod"
BRIEF = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "4", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "8"}


@pytest.fixture(autouse=True)
def _embedded(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_DATA", str(results))


def job(
    ranks: int, script: str = "runme.py", env: dict[str, str] | None = None, **flags: object
) -> Run:
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    command = ["python", "-m", "mpi4py", str(LAB / script), *words]
    return launch.run(
        command, name="05_horovod", ranks=ranks, threads=1, timeout=300, echo=None, env=env
    )


def test_a_rank_that_fails_ends_the_job_and_others_go_on_from_the_checkpoint(
    tmp_path: Path, no_process_left
) -> None:
    """Two ranks, 15 steps an epoch; the last one fails in the third epoch. One alone then
    finishes."""
    brief = {"batch_per_rank": 50, "epochs": 6, "checkpoint": tmp_path / "kept"}
    file = tmp_path / "timeline.json"
    env = {"HOROVOD_TIMELINE": str(file), "HOROVOD_CACHE_CAPACITY": "0", "SCALEOUT_FAIL_AT": "33"}
    with pytest.raises(JobFailed) as caught:
        job(2, "side/resume.py", env=env, **brief)
    first, *traceback = str(caught.value).splitlines()
    assert (
        "failed first on rank 1" in first
        and "RuntimeError: Rank 1 fails at step 33, as SCALEOUT_FAIL_AT asked." in traceback
    )
    no_process_left(caught.value.run.id)
    assert sorted(p.name for p in brief["checkpoint"].iterdir()) == [
        "checkpoint-000001.npz",
        "checkpoint-000002.npz",
    ]

    crashed = timeline.read(file).steps()
    assert set(crashed["rank"]) == {0, 1} and crashed.step.max() >= 5
    assert (crashed[["compute_s", "waiting_s", "communication_s"]] >= 0).all(axis=None)

    newest = brief["checkpoint"] / "checkpoint-000002.npz"
    newest.write_bytes(newest.read_bytes()[:-1000])
    run = job(1, "side/resume.py", **brief)
    assert "checkpoint-000002.npz is damaged" in run.output
    assert "Going on from checkpoint-000001.npz." in run.output
    saw = run.records["metrics"].iloc[0]
    assert len(saw["accuracy"]) == 5 and [share["steps"] for share in saw["shares"]] == [5 * 30]
    assert saw["accuracy"][-1] > 0.9


@pytest.mark.choice
def test_an_uneven_number_of_steps_is_named_and_the_job_ends(
    results: Path, no_process_left
) -> None:
    start = time.monotonic()
    with pytest.raises(JobFailed) as caught:
        job(2, "side/wrong.py", env=BRIEF, how="uneven")
    assert time.monotonic() - start < 60
    said = caught.value.run.output
    assert "One or more tensors were submitted to be reduced" in said and "Missing ranks:" in said
    assert "Traceback" in str(caught.value)
    no_process_left(caught.value.run.id)


@pytest.mark.choice
def test_without_the_broadcast_the_ranks_disagree_and_nobody_complains() -> None:
    one, other = job(2, "side/wrong.py", how="no-broadcast").records["metrics.weight"].iloc[0]
    assert abs(abs(one[0] - other[0]) - 1) < 1e-6 and abs(abs(one[-1] - other[-1]) - 1) < 1e-5
