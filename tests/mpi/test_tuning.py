"""06_tuning: what its two heads share, what it may not see, and what is the same whoever computes
it."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from scaleout import Comparison
from scaleout.jobs import run as launch
from scaleout.jobs.job import JobFailed, Run

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
    for evaluation in ("shared", "predict"):
        run("--steps=12", "--batch-per-rank=8", "--evaluate-every=2", "--evaluation", evaluation)
"""


def test_ranks_end_equal_and_share_an_evaluation_without_a_difference(several) -> None:
    shared, alone = every(several(2, TWO_RANKS), 2)
    assert [share["tested"] for share in shared["shares"]] == [197, 100]
    for saw in (shared, alone):
        assert (
            len({share["start"] for share in saw["shares"]})
            == len({share["end"] for share in saw["shares"]})
            == 1
        )
        assert saw["shares"][0]["start"] != saw["shares"][0]["end"] == shared["shares"][0]["end"]
        assert saw["at_step"] == [2, 4, 6] and saw["accuracy"] == shared["accuracy"]
        assert len(saw["samples"]) == 3 and len(saw["samples"][0]) == 112
    assert len(set(shared["accuracy"])) > 1
    assert [share["tested"] for share in alone["shares"]] == [297, 0]


KILLED = """
    import os, signal

    def keep(*how):
        kept(*how)
        if how[-1] == 32:
            os.kill(os.getpid(), signal.SIGKILL)

    kept, records.keep_checkpoint = records.keep_checkpoint, keep
    run("--steps=8", "--batch-per-rank=8", "--evaluate-every=1", "--checkpoint", {folder!r})
"""


def test_a_job_that_was_killed_goes_on_with_fewer_ranks(
    several, tmp_path: Path, no_process_left
) -> None:
    """Two ranks take two of four steps; then one alone takes the last four of eight."""
    folder = tmp_path / "kept"
    with pytest.raises(JobFailed, match="signal 9") as caught:
        several(2, KILLED.format(folder=str(folder)))
    no_process_left(caught.value.run.id)
    run = job(1, steps=8, batch_per_rank=8, checkpoint=folder)
    (saw,) = every(run, 1)
    assert "Going on from checkpoint-000032.npz." in run.output
    assert saw["at_step"] == [4] and (folder / "checkpoint-000064.npz").exists()


BAD = """
    import horovod.tensorflow as hvd
    from mpi4py import MPI

    hvd.shutdown = MPI.Finalize = lambda: None  # the next one needs them, too

    def refused(*words):
        try:
            run(*words)
        except SystemExit as end:
            assert end.code == 1
            return end

    digits = data.digits
    refused("--labels=9")
    refused("--labels=1501")
    refused("--side=30")
    refused("--steps=0")
    refused("--batch-per-rank=0")
    refused("--seed=-1")
    data.digits = lambda: [part[:1] for part in digits()]
    raise refused()
"""


def test_bad_input_is_one_sentence_from_rank_0(several, no_process_left) -> None:
    with pytest.raises(JobFailed) as caught:
        several(2, BAD)
    assert caught.value.status == 1
    said = [
        text
        for rank, text in caught.value.run.lines
        if rank is not None and not text.startswith("Abort(1)")
    ]
    assert said == [
        "--labels takes 10, one of each digit, to 1500, not 9.",
        "--labels takes 10, one of each digit, to 1500, not 1501.",
        "--side takes a multiple of 4 from 28 on, such as 64, not 30.",
        "argument --steps: it takes 1 or more, not 0",
        "argument --batch-per-rank: it takes 1 or more, not 0",
        "argument --seed: it takes 0 or more, not -1",
        "2 ranks cannot share 1 image(s): start at most 1.",
    ]
    no_process_left(caught.value.run.id)


REFUSED = """
    import resource
    import runpy

    in_use = 1024 * int(open("/proc/self/status").read().split("VmData:")[1].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, [in_use + 2**28] * 2)
    sys.argv[1:] = ["--steps=4", "--side=256"]
    runpy.run_path(runme.__file__, run_name="__main__")
"""


def test_a_rank_that_runs_out_of_memory_ends_the_job_and_says_so(several, no_process_left) -> None:
    """By the lab's own limit, and by the system's, at which the libraries may end in native
    code."""
    with pytest.raises(JobFailed) as own:
        job(2, steps=100, batch_per_rank=8, memory_mib=100)
    said = own.value.run.output
    assert re.search(r"Rank \d ran out of memory at \d+ MiB: take a smaller --side", said), said
    with pytest.raises(JobFailed) as refused:
        several(1, REFUSED)
    said = f"{refused.value}\n{refused.value.run.output}"
    assert re.search("ran out of memory at|refused memory", said), said
    for caught in (own, refused):
        assert "Traceback" not in caught.value.run.output
        no_process_left(caught.value.run.id)


QUICK = ["--rounds=3", "--steps=2", "--batch-per-rank=4"]
WAYS = {
    "first": {"threads": 2, "ranks": 1, "bind": "none", "evaluate_every": 1},
    "shared": {"evaluate_every": 2, "cycle_ms": 3},
    "bound": {"threads": 2, "ranks": 1},
}


def tune(ranks: int, *words: str) -> Run:
    script = str(LAB.with_name("05_horovod") / "tune.py")
    command = ["python", "-m", "mpi4py", script, "--lab=06_tuning", *QUICK, *words]
    return launch.run(
        command, name="06_tuning", ranks=ranks, threads=1, timeout=LIMIT_S, bind="none", echo=None
    )


def test_variants_are_measured_in_rounds_in_one_job(no_process_left) -> None:
    run = tune(3, "--variants", repr(WAYS))
    (saw,) = every(run, 1)
    found = Comparison(saw["runs"])
    assert found.baseline == "first" and found.variants == ["shared", "bound"]
    assert found.rounds == 3 and sorted(found.runs.place) == list(range(12))
    assert (found.runs.value > 0).all() and list(found.runs.place) != list(range(12))
    assert saw["variants"]["shared"]["ranks"] == 2, "what is not said is as in DEFAULTS"
    no_process_left(run.id)
