"""A site file: what it may hold, and what a wrong one says."""

import re
from pathlib import Path

import pytest

from scaleout.jobs.site import Site

SITES = sorted(Path(__file__).resolve().parents[3].glob("sites/*.toml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "site.toml"


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_every_site_of_the_workshop_can_be_read(path: Path) -> None:
    assert isinstance(Site.read(path), Site)


def test_the_laptop_is_the_default() -> None:
    assert Site.read(next(path for path in SITES if path.stem == "laptop")) == Site()


def test_a_site_is_read_whole(file: Path) -> None:
    file.write_text(
        'mpirun = "/opt/mpi/bin/mpirun"\noptions = ["-ppn", 2]\ncores = 8\n[env]\nA = 1\nB = "two"\n'
    )
    assert Site.read(file) == Site("/opt/mpi/bin/mpirun", ("-ppn", "2"), {"A": "1", "B": "two"}, 8)


def test_the_model_of_a_cluster_names_no_site(file: Path) -> None:
    slurm = next(path for path in SITES if path.stem == "slurm")
    site = Site.read(slurm)
    assert site.scheduler == "slurm" and not (
        site.partition or site.account or site.reservation or site.scratch
    )
    commented = re.sub(
        r"^# (\w+ = )", r"\1", slurm.read_text(), flags=re.M
    )  # what may be needed can be read too
    file.write_text(commented)
    assert Site.read(file).partition == "short" and Site.read(file).modules == ("gcc/12",)
