"""The copy for a class: its own README and Makefile, whole or not at all, and a tour of what attendees
have."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from helpers import COMMAND, ROOT

from scaleout.course import history, tour
from scaleout.course.masters import generate
from scaleout.course.release import release
from scaleout.errors import ScaleoutError

RUNME = "# TODO 1: add.  (1 line)\n# BEGIN SOLUTION\nsecret = 1\n# STARTER: pass\n# END SOLUTION\n"


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one topic and the files of a class."""
    root = tmp_path / "workshop"
    for folder in ("labs", "notebooks", "solutions/00_tiny", "etc/class", "docs"):
        (root / folder).mkdir(parents=True)
    (root / "solutions/00_tiny/runme.py").write_text(RUNME)
    (root / "solutions/00_tiny/checks.py").write_text("# checks\n" * 4000)
    book = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (root / "solutions/00_tiny.ipynb").write_text(json.dumps(book))
    for name in ("README.md", "Makefile", "CONTRIBUTING.md", "docs/instructors.md", "AGENTS.md"):
        (root / name).write_text("for authors\n")
    for name in ("README.md", "Makefile"):
        (root / "etc/class" / name).write_text("for a class\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    generate()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def test_a_class_has_its_own_readme_and_makefile(workshop: Path, tmp_path: Path) -> None:
    release(tmp_path / "copy")
    given = {str(f.relative_to(tmp_path / "copy")) for f in (tmp_path / "copy").rglob("*.*")}
    assert (tmp_path / "copy/README.md").read_text() == "for a class\n"
    assert (tmp_path / "copy/Makefile").read_text() == "for a class\n"
    assert "AGENTS.md" in given
    assert not [name for name in given if "class" in name or "instructors" in name]
    assert "CONTRIBUTING.md" not in given


@pytest.mark.parametrize("name", ["copy", "copy.zip", "deep/copy.tar.gz"])
def test_a_full_disk_leaves_nothing(name: str, workshop: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    # A file can have 16 KiB at most: as on a full disk, a write fails.
    line = f"ulimit -f 16; exec {shlex.quote(COMMAND)} release {shlex.quote(str(place / name))}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done
    (said,) = done.stderr.splitlines()
    assert Path(name).name in said and "(File too large): make room" in said
    assert [path for path in place.rglob("*") if path.is_file()] == []
    assert not list(place.glob("copy*"))


@pytest.mark.parametrize(
    ("name", "words"),
    [("c.rar", "take .zip, .tar"), ("c.gz", "take .zip, .tar"), ("n" * 300, "File name too long")],
)
def test_a_place_that_cannot_be_is_one_sentence(
    name: str, words: str, workshop: Path, tmp_path: Path
) -> None:
    (tmp_path / "place").mkdir()
    with pytest.raises(ScaleoutError, match=words):
        release(tmp_path / "place" / name)
    assert list((tmp_path / "place").iterdir()) == []


def _targets(text: str) -> set[str]:
    return set(re.findall(r"\bmake ([a-z]+)\b", text)) - {"room", "it"}  # words


def test_a_class_is_offered_what_works_there() -> None:
    own = (ROOT / "etc/class/Makefile").read_text()
    there = set(re.findall(r"^([a-z]+):", own, re.MULTILINE))
    assert there >= {"lab", "tour", "clean"} and not there & {"test", "lint", "lock", "pages"}
    readme = (ROOT / "etc/class/README.md").read_text()
    assert {"lab", "tour"} <= _targets(readme) and _targets(readme + own) <= there
    assert "solutions/" not in readme and "CONTRIBUTING" not in readme
    linked = re.findall(r"\]\(([^)#]+)\)", readme)
    assert linked and all((ROOT / name).is_file() for name in linked)


def test_the_tour_of_a_class_names_the_labs_that_are_not_solved(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    (tmp_path / "copy/notebooks/00_tiny-Copy1.ipynb").write_text("{}")
    (book,) = tour._books()
    assert book == tmp_path / "copy/notebooks/00_tiny.ipynb"
    stop = tour._waiting("00_tiny", type("Book", (), {"metadata": {}}))
    assert (
        stop and stop.waits and stop.headline == ("Waits for TODO 1: type  scaleout check 00_tiny")
    )
    history.keep_state("00_tiny", 1, "passed")
    assert tour._waiting("00_tiny", type("Book", (), {"metadata": {}})) is None
