"""02_threads: what the job decides, what it sees of its threads, and another environment's Python
to run it."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import lesson

from scaleout import machine
from scaleout.base import paths
from scaleout.base.errors import ScaleoutError
from scaleout.jobs.environment import interpreter
from scaleout.jobs.job import Run
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600), pytest.mark.usefixtures("results")]

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "solutions/02_threads/runme.py"
CORES = machine.usable_cores()
SHORT = ("--steps", 3, "--warmup", 1)


def job(
    *words: object, ranks: int = 1, threads: int = 1, python: str = "python", **env: object
) -> Run:
    command = [interpreter(python), "-m", "mpi4py", str(LAB), *map(str, words)]
    texts = {name: str(value) for name, value in env.items()}
    return launch.run(
        command, name="02", ranks=ranks, threads=threads, env=texts, timeout=300, echo=None
    )


def metrics(run: Run) -> dict[str, Any]:
    assert len(run.records) == 1
    return run.records["metrics"].iloc[0]


def test_a_record_tells_threads_and_cpus_by_library() -> None:
    run = job("--intra", 2, "--inter", 1, *SHORT, ranks=2)
    saw, record = metrics(run), run.records.iloc[0]
    assert (
        record.ranks == 2
        and record.threads_per_rank == 2
        and len(record.step_s) == 3
        and record.rate > 0
    )
    assert (
        record.rate == pytest.approx(sum(each["images_per_s"] for each in saw["shares"]))
        and len(saw["shares"]) == 2
    )
    for each in saw["shares"]:
        assert each["threads"]["Python"] == 1 and 3 <= each["threads"]["Eigen"] <= 5
        assert "OpenMP" not in each["threads"], "this build has no OpenMP threads: whose are they?"
        assert len(each["cpu_s"]) == 3 and sum(each["cpu_s"]) > 0
    assert saw["settings"]["OMP_NUM_THREADS"] == "2" and "oversubscribed" in run.output


def test_the_python_of_another_environment_runs_the_job(tmp_path: Path) -> None:
    other = tmp_path / "bin/python"
    other.parent.mkdir()
    other.write_text(
        f'#!/bin/sh\necho started by the other\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    other.chmod(0o755)
    run = job("--steps", 0, python=str(other))
    assert (0, "started by the other") in run.lines
    saw = metrics(run)  # mpirun binds it to one core, and it shares out that one alone
    assert len(saw["cores"]) == 1 and saw["threads"] == 1


@pytest.mark.parametrize("path", ["nowhere/bin/python", "python3.11", "/", str(LAB)])
def test_a_python_that_does_not_start_is_refused_before_anything_runs(
    path: str, results: Path
) -> None:
    with pytest.raises(ScaleoutError, match="There is no Python to start at"):
        job(python=path)
    assert not list(results.glob("02/*"))


@pytest.mark.skipif(
    not (ROOT / ".side/intel" / paths.WHOLE).exists(), reason="make intel was not typed here"
)
def test_the_openmp_build_obeys_its_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    python = str(lesson("02_threads", "openmp").python())
    for n in (1, 3):
        setting = {"OMP_NUM_THREADS": n, "TF_NUM_INTRAOP_THREADS": 1, "TF_NUM_INTEROP_THREADS": 1}
        run = job("--leave", *SHORT, threads=CORES, python=python, ONEDNN_VERBOSE=1, **setting)
        assert "runtime:OpenMP" in run.output
        assert metrics(run)["shares"][0]["threads"].get("OpenMP", 0) == n - 1
        assert "intel-tensorflow" in run.records.versions.iloc[0]
