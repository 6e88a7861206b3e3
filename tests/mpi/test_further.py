"""01_onednn's further.py: each way trains the same network, and wrong input is one sentence."""

from pathlib import Path

import pytest
from helpers import ROOT

from scaleout import lab
from scaleout.jobs.job import JobFailed, Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SCALEOUT_QUICK", "1")


def _run(**how: object) -> Run:
    given = {"script": "further.py", "threads": 2, "bind": "none", "timeout": 240, "echo": False}
    return lab("01_onednn", solution=True).run(**{**given, **how})


@pytest.mark.slow
@pytest.mark.choice
def test_each_way_trains_the_same_network() -> None:
    ways = ["fused", "no bias", "products", "relu", "by hand"]
    done = _run(ranks=5, ways=ways, kernels="onednn", rounds=1, steps=1)
    rows = done.records.to_dict("records")
    assert [row["metrics.way"] for row in rows] == ways
    loss = [row["metrics.loss"] for row in rows]
    assert loss[1:] == pytest.approx([loss[0]] * 4, rel=1e-3)
    assert all(row["rate"] > 0 for row in rows)
    assert all(f"{way}: " in done.output for way in ways[1:])


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"ranks": 2}, "a rank for each of --ways, not 2: mpirun -n 6"),
        ({"ranks": 2, "ways": ["products", "no bias"]}, "fused comes first"),
    ],
)
def test_wrong_input_is_one_sentence(how: dict[str, object], says: str) -> None:
    with pytest.raises(JobFailed) as caught:
        _run(**how)
    ((rank, said),) = [line for line in caught.value.run.lines if line[0] is not None]
    assert rank == 0 and says in said, said
