"""What a notebook's cell may get wrong: each call is refused in one sentence, before a job starts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import untrusted

from scaleout import lab, records, sweeps
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.compare import compare
from scaleout.engines import Engines
from scaleout.jobs.job import Job
from scaleout.launch import run as launch
from scaleout.site import Site

GO = ["python", "train.py"]


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with untrusted.at_work(tmp_path_factory.mktemp("calls") / "workshop") as folder:
        yield folder


def _run(script: Any = GO, **how: Any) -> Callable[[], object]:
    return lambda: launch.run(script, **{"name": "x", "echo": None, **how})


def _sweep(command: Any = GO, **how: Any) -> Callable[[], object]:
    return lambda: sweeps.sweep(command, **{"echo": None, **how})


def _compare(variants: Any) -> Callable[[], object]:
    return lambda: compare(launch.run, variants)


def _tiny() -> Any:
    return lab("00_tiny", solution=False)


CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "no such site": (_run(site="no.toml"), "The site file no.toml cannot be read"),
    "an unknown binding": (_run(bind="x"), 'bind is "core" or "none"'),
    "ranks as a text": (_run(ranks="2"), "ranks is a whole number, such as ranks=2, not '2'."),
    "threads as a text": (_run(threads="2"), "threads is a whole number, such as threads=2, not"),
    "nodes as a text": (_run(nodes="2"), "nodes is a whole number, such as nodes=2, not '2'."),
    "a float of ranks": (_run(ranks=2.0), "ranks is a whole number, such as ranks=2, not 2.0."),
    "half a thread": (_run(threads=2.5), "threads is a whole number, such as threads=2, not 2.5."),
    "half a node": (_run(nodes=np.float64(0.5)), "nodes is a whole number, such as nodes=2, not"),
    "ranks: None": (_run(ranks=None), "ranks is a whole number, such as ranks=2, not None."),
    "ranks: True": (_run(ranks=True), "ranks is a whole number, such as ranks=2, not True."),
    "a list of ranks": (
        _run(ranks=[1, 2]),
        "ranks is a whole number, such as ranks=2, not [1, 2].",
    ),
    "two numbers of ranks": (_run(ranks=np.array([1, 2])), "ranks is a whole number, such as"),
    "a time limit as a text": (_run(timeout="60"), "finite; asked for '60'."),
    "no time limit": (_run(timeout=None), "finite; asked for None."),
    "variables as a list": (_run(env=["A=1"]), "env is a table, such as"),
    "lab: variables as a text": (lambda: _tiny().run(env="A=1"), "env is a table, such as"),
    "lab: ranks as a text": (lambda: _tiny().run(ranks="2"), "ranks is a whole number, such as"),
    "lab: a job script of a text": (
        lambda: _tiny().job_script(nodes="2", site="sites/slurm.toml"),
        "nodes is a whole number, such as nodes=2, not '2'.",
    ),
    "no nodes": (_run(nodes=0), "0 nodes asked for"),
    "a command as a text": (_run("python train.py"), "A command is a list of words"),
    "an option for a host": (lambda: Site(hosts=("-V",)), "'-V' is no name of a machine"),
    "a site: an option of ours": (
        lambda: Site(scheduler="slurm", sbatch=("--array=1-4",)),
        "'--array=1-4' is not for a site",
    ),
    "a site: srun without Slurm": (lambda: Site(start="srun"), "start needs a scheduler"),
    "sweep: a quotation": (_sweep("python 'x", ranks=[1, 2]), "is no command (No closing quot"),
    "sweep: ranks as a text": (_sweep(ranks="2"), "-n takes numbers of ranks, 1 or more"),
    "sweep: a float of ranks": (_sweep(ranks=2.0), "-n takes numbers of ranks, 1 or more"),
    "sweep: half a thread": (_sweep(threads=[1, 1.5]), "-t takes numbers of threads, 1 or more"),
    "sweep: True": (_sweep(ranks=[True, 2]), "-n takes numbers of ranks, 1 or more"),
    "sweep: no values": (_sweep(env={"A": []}), "A has no value to try"),
    "sweep: none to read": (lambda: sweeps.read("nosuch"), "There is no sweep in nosuch"),
    "compare: one variant": (_compare({"a": {}}), "needs two variants or more"),
    "compare: the same twice": (_compare({"a": {}, "b": {}}), "are the same variant"),
    "python: a Path": (
        lambda: _tiny().run(python=Path("no/python")),
        "There is no Python to start",
    ),
    "engines: ranks as a text": (lambda: Engines("2"), "ranks is a whole number, such as"),  # type: ignore[arg-type]
    "engines: no rank": (lambda: Engines(0), "A job needs at least 1 rank"),
    "lab: no such": (lambda: lab("nosuch"), "There is no lab called 'nosuch'"),
    "lab: a script elsewhere": (
        lambda: _tiny().run(script="../../../etc/no"),
        "00_tiny has no script",
    ),
    "lab: no such TODO": (lambda: _tiny().check(9), "00_tiny has no TODO 9"),
    "lab: a hint for none": (lambda: _tiny().hint("x"), "00_tiny has no TODO x"),
    "lab: lines of none": (lambda: _tiny().quote(9), "This lab has no TODO 9"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_makes_no_sense_is_refused_in_a_sentence(name: str, place: Path) -> None:
    call, words = CALLS[name]
    before = untrusted.tree(place)
    with pytest.raises(ScaleoutError) as refused:
        call()
    assert words in str(refused.value) and len(str(refused.value).splitlines()) == 1
    assert untrusted.tree(place) == before


@pytest.mark.parametrize(
    "size",
    [
        {"ranks": 1},
        {"ranks": np.int64(2), "threads": np.int32(1), "nodes": np.uint8(1)},
        {"ranks": np.array(2), "timeout": np.float32(60)},
    ],
    ids=["Python's", "NumPy's", "an array of one"],
)
def test_a_call_that_makes_sense_starts_a_job(size: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="a job was started"):
        _run(**size)()


def test_a_job_holds_pythons_own_numbers() -> None:
    """They are written to run.json, which knows no other."""
    job = Job.asked(GO, name="x", ranks=np.int64(2), threads=np.int64(1), nodes=np.int64(1))
    assert [type(size) for size in (job.ranks, job.threads, job.nodes)] == [int, int, int]


@pytest.mark.parametrize("count", ["two", "", "-1", "1.5", "9" * 5000])
def test_a_size_that_somebody_has_set_by_hand_loses_no_record(
    count: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCALEOUT_RECORDS", str(tmp_path / "records.jsonl"))
    for name in ("SCALEOUT_NODES", "SCALEOUT_CORES"):
        monkeypatch.setenv(name, count)
    written = records.write(lab="00_tiny")
    assert written["nodes"] == 1 and written["cores"] >= 1
    assert len(records.read(tmp_path / "records.jsonl")) == 1
