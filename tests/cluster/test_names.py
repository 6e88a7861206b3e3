"""Folders and arguments with spaces, quotes, percent signs and line ends, through a real Slurm."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scaleout.jobs import run as launch
from scaleout.jobs.site import Site

sys.path.insert(0, str(Path(__file__).parent))
import slurm

SITE = Site(scheduler="slurm", bind="none", minutes=5)
SCRIPT = """
import sys
from scaleout import records
print(sys.argv[1:])
records.write(lab="x")
"""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.mpi,
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    folder = tmp_path_factory.mktemp("slurm")
    with slurm.Slurm(folder) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", running.env["SLURM_CONF"])
        yield running
    assert not running.processes(), "the cluster left something behind"


@pytest.mark.parametrize("how", ["mpirun", "srun", "scratch"])
def test_a_job_runs_in_a_folder_of_any_name(
    cluster: slurm.Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    desk = tmp_path / 'a b %j 50% "q" it\'s'
    desk.mkdir()
    (desk / "my train.py").write_text(SCRIPT)
    monkeypatch.chdir(desk)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(desk / "res ults"))
    monkeypatch.delenv("SCALEOUT_RECORDS", raising=False)
    scratch = tmp_path / "scr atch %x"
    site = replace(SITE, scratch=str(scratch)) if how == "scratch" else replace(SITE, start=how)
    words = ["two\nlines", "50%", "$HOME", "it's"]
    command = ["python", "-m", "mpi4py", "my train.py", *words]
    run = launch.run(command, name="my train", site=site, timeout=100, echo=None)
    assert run.lines == [(0, str(words))] and len(run.records) == 1
    assert run.folder.parent == desk / "res ults" / "my train"
    assert how != "scratch" or not list(scratch.iterdir())
