"""06_tuning: what its two heads share, what it may not see, and what is the same whoever computes
it."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from scaleout.jobs.job import JobFailed, Run
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

LAB = Path(__file__).resolve().parents[2] / "solutions/06_tuning"
LIMIT_S = 300.0  # of what never ends; a job of side 256 needs 120 beside other tests
SEVERAL = """
    import sys

    sys.path.insert(0, {folder!r})
    import runme  # before TensorFlow, as when it is started itself
    import bookkeeping
    from scaleout import data, records

    def run(*words):
        sys.argv[1:] = map(str, words)
        return runme.main(bookkeeping.arguments(""))
"""


@pytest.fixture(autouse=True)
def _embedded(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits that everybody has: 1,500 to train on, 297 to test."""
    monkeypatch.setenv("SCALEOUT_DATA", str(results))


def job(ranks: int, command: Path = LAB / "runme.py", **flags: object) -> Run:
    """Runs the lab, one thread a rank."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    command_line = ["python", "-m", "mpi4py", str(command), *words]
    return launch.run(
        command_line, name="06_tuning", ranks=ranks, threads=1, timeout=LIMIT_S, echo=None
    )


@pytest.fixture
def several(script, tmp_path: Path):
    """Runs lines that call run(FLAGS) more than once: one job, which loads TensorFlow once."""

    def jobs(ranks: int, lines: str, folder: Path = LAB) -> Run:
        return job(ranks, script(SEVERAL.format(folder=str(folder)) + lines))

    return jobs


def every(run: Run, count: int) -> list[dict[str, Any]]:
    assert len(run.records) == count, run.output
    return list(run.records["metrics"])


ONE_RANK = """
    brief = ["--steps=2", "--batch-per-rank=8"]
    run(*brief)
    run(*brief, "--supervised")
    digits = data.digits

    def poisoned():
        x, y, x_test, y_test = digits()
        known = runme.with_label(y, 20, 0)
        y_poisoned = y * 0 + 99
        y_poisoned[known] = y[known]
        return x, y_poisoned, x_test, y_test

    data.digits = poisoned
    run(*brief)
"""


def test_images_without_a_label_move_both_heads_and_never_show_their_label(several) -> None:
    """Two steps, with them, without them, and with labels that no digit has on all but the 20."""
    both, supervised, poisoned = every(several(1, ONE_RANK), 3)
    for saw in (both, supervised):
        for classes, real in zip(saw["heads"]["classes"], saw["heads"]["real"], strict=True):
            assert math.isclose(real, math.log(sum(map(math.exp, classes))), abs_tol=1e-4)
    assert both["shares"][0]["start"] == supervised["shares"][0]["start"]
    for head in ("classes", "real"):
        assert both["heads"][head] != supervised["heads"][head]
    assert len(set(both["labelled"])) == 20 and both["losses"]["unlabelled"] > 0
    assert poisoned["labelled"] == both["labelled"]
    assert poisoned["shares"][0]["end"] == both["shares"][0]["end"] != both["shares"][0]["start"]
    assert poisoned["losses"] == both["losses"] and poisoned["accuracy"] == both["accuracy"]


TWO_RANKS = """
    brief = ["--steps=8", "--batch-per-rank=8", "--evaluate-every=2"]
    run(*brief, "--evaluation=shared", "--checkpoint", {kept!r})
    run(*brief, "--evaluation=predict")
"""
GOES_ON = """
    run("--steps=16", "--batch-per-rank=8", "--checkpoint", {kept!r})
"""


def test_ranks_end_equal_share_an_evaluation_and_leave_what_fewer_go_on_from(
    several, tmp_path: Path
) -> None:
    """Two ranks take eight steps' images in four; then one alone takes the last eight of 16."""
    kept = tmp_path / "kept"
    shared, alone = every(several(2, TWO_RANKS.format(kept=str(kept))), 2)
    assert [share["tested"] for share in shared["shares"]] == [197, 100]
    for saw in (shared, alone):
        assert (
            len({share["start"] for share in saw["shares"]})
            == len({share["end"] for share in saw["shares"]})
            == 1
        )
        assert saw["shares"][0]["start"] != saw["shares"][0]["end"] == shared["shares"][0]["end"]
        assert saw["at_step"] == [2, 4] and saw["accuracy"] == shared["accuracy"]
    assert [share["tested"] for share in alone["shares"]] == [297, 0]
    run = several(1, GOES_ON.format(kept=str(kept)))
    assert "Going on from checkpoint-000064.npz." in run.output
    (saw,) = every(run, 1)
    assert saw["shares"][0]["start"] == shared["shares"][0]["end"]
    assert saw["at_step"] == [8] and (kept / "checkpoint-000128.npz").exists()


@pytest.mark.choice
def test_a_rank_that_runs_out_of_memory_ends_the_job_and_says_so(no_process_left) -> None:
    with pytest.raises(JobFailed) as caught:
        job(2, steps=100, batch_per_rank=8, memory_mib=100)
    said = caught.value.run.output
    assert re.search(r"Rank \d ran out of memory at \d+ MiB: take a smaller --side", said), said
    assert "Traceback" not in said
    no_process_left(caught.value.run.id)
