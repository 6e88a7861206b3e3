"""A site file: what it may hold, and what a wrong one says."""

from pathlib import Path

import pytest

from scaleout import ScaleoutError
from scaleout.site import Site

SITES = sorted(Path(__file__).resolve().parents[2].glob("sites/*.toml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "site.toml"


def test_there_are_sites() -> None:
    assert "laptop" in [path.stem for path in SITES]


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_every_site_of_the_workshop_can_be_read(path: Path) -> None:
    assert isinstance(Site.read(path), Site)


def test_the_laptop_is_the_default() -> None:
    assert Site.read(next(path for path in SITES if path.stem == "laptop")) == Site()


def test_a_site_is_read_whole(file: Path) -> None:
    file.write_text('mpirun = "/opt/mpi/bin/mpirun"\noptions = ["-ppn", 2]\ncores = 8\n[env]\nA = 1\nB = "two"\n')
    assert Site.read(file) == Site("/opt/mpi/bin/mpirun", ("-ppn", "2"), {"A": "1", "B": "two"}, 8)


def test_an_empty_file_is_the_default(file: Path) -> None:
    file.touch()
    assert Site.read(file) == Site()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mpirum = 'x'", "there is no key 'mpirum'; a site has mpirun, options, env, cores"),
        ("mpirun = 3", "mpirun must be a name or a path"),
        ("mpirun = ''", "mpirun must be a name or a path"),
        ("options = '-ppn 2'", "options must be a list"),
        ("env = 'A=1'", "env must be a table"),
        ("cores = '8'", "cores must be a number, 0 or more"),
        ("cores = -1", "cores must be a number, 0 or more"),
        ("cores = true", "cores must be a number, 0 or more"),
        ("cores =", "cannot be read: Invalid value"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_wrong_site_is_named_with_its_key(file: Path, text: str | bytes, words: str) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScaleoutError) as caught:
        Site.read(file)
    assert str(file) in str(caught.value) and words in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_site_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ScaleoutError, match=f"The site file {path} cannot be read: (No such file|Is a dir)"):
            Site.read(path)
