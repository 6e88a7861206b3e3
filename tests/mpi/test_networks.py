"""09_networks: the batch that each rank takes, networks that both frameworks count alike, memory, and
05's training again by DistributedDataParallel. What needs PyTorch runs where `make torch` was typed."""

from pathlib import Path

import pandas as pd
import pytest
from helpers import ROOT, lesson
from torch_scripts import FRAMEWORKS, with_torch

from scaleout import lab
from scaleout.course import checks, pytorch
from scaleout.jobs.job import Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(900)]
frameworks = lesson("09_networks", "frameworks")


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SCALEOUT_QUICK", "1")


def _run(**how) -> Run:
    given = {"threads": 1, "echo": False, "timeout": 240, "warmup": 1, "steps": 2}
    return lab("09_networks", solution=True).run(**{**given, **how})


def _ddp(ranks: int, **how) -> Run:
    given = {"threads": 1, "echo": False, "timeout": 240, "python": frameworks.python()}
    return lab("09_networks", solution=True).other("ddp.py").run(ranks=ranks, **{**given, **how})


@with_torch
@pytest.mark.choice
def test_ranks_start_different_begin_equal_and_end_equal() -> None:
    """Also where the images do not divide by the ranks."""
    shares = _ddp(3, epochs=1, batch_per_rank=100).records["metrics.shares"].iloc[0]
    assert len({share["drawn"] for share in shares}) == 3
    assert len({share["start"] for share in shares}) == 1
    assert len({share["end"] for share in shares}) == 1
    assert shares[0]["start"] != shares[0]["end"]


@with_torch
@pytest.mark.choice
def test_ddp_takes_the_steps_of_horovod(monkeypatch: pytest.MonkeyPatch) -> None:
    """From equal weights, in the same order, up to rounding that grows; a mistake shows at once."""
    monkeypatch.delenv("SCALEOUT_QUICK")
    pair = frameworks.twins(
        lab("05_horovod", solution=True), lab("09_networks", solution=True).other("ddp.py")
    )
    assert list(pair.index) == [1, 1, 2, 10, 100] and pair["ranks equal"].all()
    one, wrong, *_, hundred = pair["weights differ by"].astype(float)
    assert one < 1e-6 and one < wrong / 10 and one <= hundred < 1e-1
    assert "Rounding alone takes 05 as far." in frameworks.grown(pair)
    assert pair["loss, DDP"].loc[100] < 1, "it has learned: two untouched networks would agree too"


@with_torch
@pytest.mark.choice
def test_each_slip_shows_in_what_the_ranks_did() -> None:
    ddp = lab("09_networks", solution=True).other("ddp.py")
    slips = ["none", "sharding", "set_epoch", "start", "averaging", "wrapper", "checkpoint"]
    seen = frameworks.slipped(ddp, *slips)
    assert list(seen["times each image was seen"]) == ["1 to 1", "2 to 2", *["1 to 1"] * 5]
    orders = list(seen["different orders"])
    assert orders == ["2 of 2", "2 of 2", "1 of 2", *["2 of 2"] * 3, "1 of 1"]
    assert list(seen["begin equal"]) == [True, True, True, False, True, True, True]
    assert list(seen["end equal"]) == [True, True, True, False, False, False, False]


@with_torch
@pytest.mark.choice
def test_batch_norm_leaves_equal_weights_and_unequal_averages() -> None:
    seen = frameworks.batch_norm(lab("09_networks", solution=True).other("ddp.py"))
    assert list(seen["weights"].groupby("images", sort=False).nunique()) == [1, 1]
    assert seen["moving averages"].nunique() == 4


@pytest.mark.choice
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_process_and_several_take_turns(framework: str) -> None:
    own = {"python": frameworks.python()} if framework == "torch" else {}
    script = lab("09_networks", solution=True).other("turns.py")
    job = script.run(
        ranks=3, threads=2, bind="none", echo=False, timeout=240, framework=framework,
        networks=["cnn", "vgg16"], batches=[4, 8], side=32, rounds=1, **own,
    )  # fmt: skip
    rows = job.records
    assert list(rows["variant"]) == [f"{n}, batch {b}" for n in ("cnn", "vgg16") for b in (4, 8)]
    for runs in rows["metrics.runs"]:
        assert [run["variant"] for run in runs] == [
            "one process",
            "one process",
            "copies",
            "together",
        ]
        assert all(run["value"] > 0 for run in runs)
    assert job.talked is not False, "the ranks averaged their gradients"


@pytest.mark.choice
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_copies_the_thread_and_the_exchange_are_told_apart(framework: str) -> None:
    own = {"python": frameworks.python()} if framework == "torch" else {}
    job = _run(ranks=2, batch=8, steps=10, framework=framework, **own)
    (row,) = (row for _, row in job.records.iterrows())
    assert len(row["step_s"]) == len(row["metrics.copies_s"]) == len(row["metrics.beside_s"]) == 10
    assert job.talked is not False, "the ranks averaged their gradients"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_average_of_more_bytes_takes_longer(framework: str) -> None:
    rows = pd.DataFrame([{"metrics.framework": framework}])
    link = frameworks.exchange(lab("09_networks", solution=True), rows)
    assert link.alpha_s >= 0 and 1e-11 < link.beta_s < 1e-7


@with_torch
@pytest.mark.choice
def test_the_solution_passes_all_its_checks() -> None:
    found = list(checks.check(lab("09_networks", solution=True)))
    assert {each.number: each.state for each in found} == dict.fromkeys(range(1, 7), "passed")


@with_torch
@pytest.mark.choice
def test_under_fsdp_a_rank_keeps_its_part_and_takes_the_same_steps() -> None:
    script = lab("09_networks", solution=True).other("more/fsdp.py")
    run = script.run(
        ranks=2, threads=1, echo=False, timeout=240, python=frameworks.python(), layers=3, width=256
    )
    for rank in run.records["metrics.kept"].iloc[0]:
        whole, part = rank["DDP"], rank["FSDP"]
        assert whole["optimizer"] == pytest.approx(2 * whole["weights"]), "Adam keeps two numbers"
        for what in ("weights", "gradients", "optimizer"):
            assert 0.45 * whole[what] <= part[what] <= 0.55 * whole[what], what
        assert part["losses"] == pytest.approx(whole["losses"], abs=1e-5)


def test_without_pytorch_nothing_is_judged_and_a_reference_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (checks, pytorch):
        monkeypatch.setattr(module, "side", lambda name: None)
    (found,) = checks.check(lab("09_networks", solution=True), 1)
    assert found.state == "not judged" and "make torch" in found.what
    own = lab("09_networks", solution=True)
    pair = frameworks.twins(lab("05_horovod", solution=True), own.other("ddp.py"))
    assert len(pair) > 0
    said = capsys.readouterr().out
    assert "make torch" in said and "reference machine, not yours" in said


@with_torch
@pytest.mark.choice
def test_the_untouched_ddp_fails_each_of_its_checks() -> None:
    found = {
        each.number: each.state for each in checks.check(lab("09_networks", False), range(1, 7))
    }
    assert list(found) == list(range(1, 7))
    assert set(found.values()) <= {"not started", "not yet"}, found
