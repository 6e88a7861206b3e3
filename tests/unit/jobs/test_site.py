"""A site file: what it may hold, and what a wrong one says."""

import re
from pathlib import Path

import pytest

from scaleout.errors import ScaleoutError
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mpirum = 'x'", "there is no key 'mpirum'; a site has mpirun, options, env, cores"),
        ("mpirun = 3", "mpirun must be a name or a path"),
        ("options = '-ppn 2'", "options must be a list"),
        ("env = 'A=1'", "env must be a table"),
        ("cores = '8'", "cores must be a number, 0 or more"),
        ("cores =", "cannot be read: Invalid value"),
        ("scheduler = 'pbs'", 'scheduler must be "slurm"'),
        ("scheduler = 'slurm'\nstart = 'prun'", 'start must be "mpirun" or "srun"'),
        ("scheduler = 'slurm'\nminutes = 0", "minutes must be a number of minutes, 1 or more"),
        ("scheduler = 'slurm'\npartition = 'a b; rm'", "partition must be a name that sinfo shows"),
        ("scheduler = 'slurm'\nscratch = 'here'", "scratch must be an absolute path"),
        ("scheduler = 'slurm'\nhosts = ['a']", "hosts and scheduler exclude each other"),
        ("scheduler = 'slurm'\nlauncher = 'openmpi'", 'several nodes need launcher = "hydra"'),
        ("partition = 'short'", 'partition needs a scheduler: add a line  scheduler = "slurm"'),
        ("hosts = ['a', '-x y']", "hosts must be a list of names"),
        ("hosts = ['a', 'a']", "a host stands twice in hosts"),
        ("ssh = '/my/ssh'", "ssh needs hosts"),
        ("bind = 'socket'", 'bind must be "core" or "none"'),
    ],
)
def test_a_wrong_site_is_named_with_its_key(file: Path, text: str | bytes, words: str) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScaleoutError) as caught:
        Site.read(file)
    assert (
        str(file) in str(caught.value)
        and words in str(caught.value)
        and "\n" not in str(caught.value)
    )


def test_a_missing_site_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(
            ScaleoutError, match=f"The site file {path} cannot be read: (No such file|it is no reg)"
        ):
            Site.read(path)


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
