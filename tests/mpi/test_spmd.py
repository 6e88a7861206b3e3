"""03_spmd: three allreduces against MPI's own, the bytes they send, stragglers, and three
MPI libraries."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scaleout import lab, scaling
from scaleout.jobs.job import Run
from scaleout.launch import mpis
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

LAB = Path(__file__).resolve().parents[2] / "solutions" / "03_spmd"
RANKS = [1, 3, 4]
SIZES = [0, 1, 7, 1000, 65537]
FEW_CORES = {
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"
}  # ranks that share cores let go of them while they wait
# Compares in plain mpi4py, without the lab's own comparison, and prints one JSON line: by type,
# size and way, how far the result was off and what each rank sent.
COMPARE = """
import json, sys
import numpy as np
from mpi4py import MPI
sys.path.insert(0, {lab!r})
import runme
from scaleout import data

comm = runme.Counting(MPI.COMM_WORLD)
rows = []
for dtype in ("float32", "float64"):
    for n in {sizes}:
        for way in ("gather-broadcast", "tree", "ring"):
            for kind in ("whole", "real"):
                rng = np.random.default_rng([comm.rank, n])
                mine = (rng.integers(-99, 100, n) if kind == "whole" else rng.standard_normal(n)).astype(dtype)
                right, x, comm.sent = np.empty_like(mine), mine.copy(), 0
                MPI.COMM_WORLD.Allreduce(mine, right)
                runme.WAYS[way](comm, x, np.full_like(x, np.nan))
                off = float(np.abs(x - right).max(initial=0.0))
                assert x.dtype == mine.dtype and x.shape == mine.shape
                seen = MPI.COMM_WORLD.gather((off, comm.sent))
                if seen:
                    offs, sent = zip(*seen)
                    rows.append([dtype, n, way, kind, max(offs), sent])
blocks = all(
    runme.blocks(n, p) == [data.shard(n, rank, p) for rank in range(p)] for n in range(40) for p in range(1, 9)
)
if comm.rank == 0:
    print(json.dumps([blocks, rows]), flush=True)
"""


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAB.parents[1])


def _spmd(**how: object) -> Run:
    given = {"threads": 1, "env": FEW_CORES, "timeout": 120, "echo": False}
    return lab("03_spmd", solution=True).run(**{**given, **how})


@pytest.mark.parametrize("ranks", RANKS)
def test_every_way_is_mpis_allreduce_and_sends_what_the_formula_says(
    ranks: int, script: Callable[..., Path]
) -> None:
    path = script(COMPARE.format(lab=str(LAB), sizes=SIZES))
    command = ["python", "-m", "mpi4py", str(path)]
    job = launch.run(
        command, name="compare", ranks=ranks, threads=1, env=FEW_CORES, timeout=300, echo=None
    )
    blocks_are_shards, rows = json.loads(job.lines[-1][1])
    assert blocks_are_shards
    assert len(rows) == 2 * len(SIZES) * 3 * 2
    busiest = {
        "gather-broadcast": ranks - 1,
        "tree": (ranks - 1).bit_length(),
        "ring": 2 * (ranks - 1) / ranks,
    }
    for dtype, n, way, kind, off, sent in rows:
        where = f"{way}, {n} x {dtype}, {kind} numbers, {ranks} ranks: off by {off}, sent {sent}"
        # Whole numbers have one sum in any order; for others the order of adding may change the
        # last digits.
        assert off <= (0 if kind == "whole" else 20 * np.finfo(dtype).eps), where
        size = np.dtype(dtype).itemsize
        slack = (
            2 * (ranks - 1) * size if way == "ring" else 0
        )  # a block may be one element larger than the mean
        assert abs(max(sent) - busiest[way] * n * size) <= slack, where
        # All together send every array up and every sum down, cut into blocks or not.
        assert sum(sent) == 2 * (ranks - 1) * n * size, where


def test_a_message_takes_a_time_that_grows_with_it() -> None:
    rows = _spmd(script="pingpong.py", ranks=2, repeats=5).records
    assert rows["metrics.bytes"].is_monotonic_increasing and len(rows) >= 8
    assert rows.step_s.map(len).eq(5).all() and rows.step_median_s.gt(0).all()
    fit = scaling.fit_alpha_beta(rows["metrics.bytes"], rows.step_median_s)
    assert fit.beta_s > 0  # eight MiB take longer than eight bytes on any machine
    assert rows.step_median_s.iloc[-1] > rows.step_median_s.iloc[0]


def test_messages_and_allreduces_come_from_one_job_and_one_law() -> None:
    rows = _spmd(script="side/law.py", ranks=2, repeats=2, warmup=1).records
    assert rows.run_id.nunique() == 1
    assert set(rows.variant) == {"ping-pong", "gather-broadcast", "tree", "ring", "mpi"}
    of_all = [set(own["metrics.bytes"]) for _, own in rows.groupby("variant")]
    assert min(map(max, of_all)) == max(map(max, of_all)) == 2**24
    assert rows.step_s.map(len).eq(2).all()


@pytest.mark.parametrize("how", ["numpy", "mpi"])
def test_who_adds_adds_each_time(how: str) -> None:
    """A sum that is left out, or done twice, is not right; and no message is needed for it."""
    (record,) = _spmd(
        script="side/adding.py", ranks=2, how=how, size=1000, repeats=3
    ).records.to_dict("records")
    assert [share["right"] for share in record["metrics.shares"]] == [True, True]
    assert len(record["step_s"]) == 3 and record["metrics.bytes"] == 4000


def _straggler(**how: object) -> dict[str, object]:
    return _spmd(script="straggler.py", gradients=60, step_ms=5, **how).records.iloc[0].to_dict()


def test_a_straggler_delays_those_who_wait_and_makes_the_others_stale() -> None:
    """Counted, not timed: how often each worker's gradient was used. The slow one sleeps 100 ms."""
    waiting, free = (_straggler(ranks=4, slow=20, wait_for=n) for n in (0, 1))
    assert set(waiting["metrics.stale_updates"]) == {0}
    assert max(free["metrics.stale_updates"]) > 0
    assert len(waiting["metrics.stale_updates"]) == len(free["metrics.stale_updates"]) == 60
    used = [Counter(row[0] for row in found["metrics.timeline"]) for found in (waiting, free)]
    assert used[0] == {1: 20, 2: 20, 3: 20}
    assert used[1][3] < min(used[1][1], used[1][2])
    assert waiting["metrics.seconds"] >= 20 * 0.100  # 20 rounds wait for the slow one
    for found in (waiting, free):
        first, last = found["metrics.curve"][0], found["metrics.curve"][-1]
        assert first[2] == pytest.approx(np.log(10), rel=1e-3) and last[1] == 60
        assert {row[0] for row in found["metrics.timeline"]} == {1, 2, 3}


@pytest.mark.parametrize("name", ["MPICH", *mpis.FOLDERS])
def test_the_lab_runs_on_each_mpi_library(name: str, no_process_left) -> None:
    site = mpis.sites().get(name)
    if site is None:
        pytest.skip(f"{name} is not here: make mpis brings it")
    run = _spmd(ranks=2, site=site, sizes=[7, 65537], repeats=2)
    assert all(found.startswith(name.split()[0]) for found in run.records.mpi), set(run.records.mpi)
    assert "agrees" in run.output and "WRONG" not in run.output
    assert run.talked is not False
    no_process_left(run.id)
    more = _spmd(
        ranks=3, site=site, algorithm="ring", sizes=[7], repeats=1
    )  # more ranks than cores, on two cores
    shares = more.records["metrics.shares"].iloc[0]
    assert np.all([share["right"] for share in shares])


@pytest.mark.parametrize("name", mpis.FOLDERS)
def test_copies_are_named_under_each_mpi_library(name: str, script, results: Path) -> None:
    site = mpis.sites().get(name)
    if site is None:
        pytest.skip(f"{name} is not here: make mpis brings it")
    command = ["python", str(script("import time; time.sleep(0.5); print('rate 10')"))]
    run = launch.run(command, name="talk", ranks=2, threads=1, site=site, echo=None)
    assert run.talked is False and run.output.count("rate 10") == 2
    assert "whether a rank talks" not in run.output
