"""Ranks are told what torchrun would tell them. What needs PyTorch runs where `make torch` was
typed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT, run_script
from torch_scripts import TELLS, TORCH, TORCHRUN, said, told, with_torch

from scaleout.jobs.job import Run
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]


def test_each_rank_of_a_job_here_is_told(script: Callable[..., Path], results: Path) -> None:
    found = told(run_script(script(TELLS), ranks=3))
    assert {rank: one["RANK"] for rank, one in found.items()} == {0: "0", 1: "1", 2: "2"}
    for rank, one in found.items():
        assert (one["LOCAL_RANK"], one["OMP_NUM_THREADS"]) == (str(rank), "1")
        assert (one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) == ("3", "3")
        assert (one["MASTER_ADDR"], one["GLOO_SOCKET_IFNAME"]) == ("127.0.0.1", "lo")
    assert len({one["MASTER_PORT"] for one in found.values()}) == 1


def test_what_somebody_asked_for_is_kept_and_what_an_outer_job_left_is_not(
    script: Callable[..., Path], results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "MASTER_PORT", "MASTER_ADDR"):
        monkeypatch.setenv(name, "7")
    (one,) = told(run_script(script(TELLS), env={"MASTER_ADDR": "here"})).values()
    assert one["RANK"] == "0" and one["MASTER_ADDR"] == "here" and one["MASTER_PORT"] != "7"


@with_torch
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_for_torchrun_runs_unedited(
    ranks: int, script: Callable[..., Path], results: Path
) -> None:
    path = script(TORCHRUN)
    run = launch.run(
        [str(TORCH / "bin" / "python"), str(path)],
        name="torchrun",
        ranks=ranks,
        threads=1,
        timeout=200,
        echo=None,
    )
    slopes = {1: [4.0, 6.0, 8.0, 10.0], 2: [2.0, 3.0, 4.0, 5.0]}[ranks]  # DDP takes the mean
    assert said(run) == [f"{rank} of {ranks}: True {slopes} 1" for rank in range(ranks)]
    assert run.talked or ranks == 1


@with_torch
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.choice), 3])
def test_torch_splits_as_the_lab_does(
    ranks: int, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight layers do not divide by 3 ranks."""
    monkeypatch.chdir(ROOT)
    words = ["--width=12", "--batch=12", "--micro-batches=3"]
    run = _split(ranks, *words)
    found = run.records.set_index("variant")
    assert set(found.index) == {"torch tensor", "torch pipeline"} and (found.ranks == ranks).all()
    assert (found["metrics.off"] < 1e-12).all()
    assert np.allclose(found["metrics.loss"], found["metrics.serial_loss"], rtol=1e-12)


def _split(ranks: int, *words: str) -> Run:
    script = "solutions/11_parallelism/beyond/torch_split.py"
    return launch.run(
        [str(TORCH / "bin" / "python"), "-m", "mpi4py", script, *words],
        name="torch_split",
        ranks=ranks,
        threads=1,
        env={"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
        timeout=200,
        echo=None,
    )
