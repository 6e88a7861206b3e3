"""The copy for a class: its own README, its part of the Makefile, whole or not at all, and a tour of what attendees
have."""

import ast
import html
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import COMMAND, ROOT

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.course import history, tour
from scaleout.course.checks import veiled
from scaleout.course.masters import generate
from scaleout.teaching.release import CUT, _veil, for_a_class, release

BOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
RUNME = "# TODO 1: add.  (1 line)\n# BEGIN SOLUTION\nsecret = 1\n# STARTER: pass\n# END SOLUTION\n"


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two topics and the files of a class, an instructor's edited lab, and results
    that git does not track."""
    root = tmp_path / "workshop"
    for folder in ("labs", "notebooks", "solutions", "class-copy", "docs", "src", "tests"):
        (root / folder).mkdir(parents=True)
    for topic in ("00_tiny", "01_next"):
        (root / "solutions" / topic).mkdir()
        (root / "solutions" / topic / "runme.py").write_text(RUNME)
        (root / "solutions" / topic / "checks.py").write_text("# checks\n" * 4000)
        (root / "solutions" / f"{topic}.ipynb").write_text(json.dumps(BOOK))
    (root / "src/package.py").write_text("")
    (root / "tests/test_it.py").write_text("")
    for name in ("README.md", "Makefile", "CONTRIBUTING.md", "docs/instructors.md", "AGENTS.md"):
        (root / name).write_text("for authors\n")
    (root / "class-copy/README.md").write_text("for a class\n")
    (root / "Makefile").write_text(f"for a class\n\n{CUT}.\n\nfor authors\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    generate()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "labs/00_tiny/runme.py").write_text("the instructor's own\n")
    (root / "mine.txt").write_text("")
    return root


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_class_gets_everything_but_the_answers(workshop: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert release(copy) == []
    given = {str(f.relative_to(copy)): f.read_text() for f in copy.rglob("*") if f.is_file()}
    topics = ("00_tiny", "01_next")
    labs = {f"labs/{topic}/{name}" for topic in topics for name in ("runme.py", "checks.py")}
    starts = {f"class-copy/starts/{topic}/runme.py" for topic in topics}
    books = {f"notebooks/{topic}.ipynb" for topic in topics}
    own = {"README.md", "Makefile", "AGENTS.md", "src/package.py"}
    assert set(given) == own | books | labs | starts
    assert given["README.md"] == given["Makefile"] == "for a class\n"
    assert given["labs/00_tiny/runme.py"] == "# TODO 1: add.  (1 line)\npass\n"
    assert "secret" not in "".join(given.values())


def test_the_class_copy_of_this_course_shows_none_of_our_steps_in_12(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as a script, nor on the page that the solution has handed in."""
    monkeypatch.chdir(ROOT)
    release(tmp_path / "copy")
    given = {f: f.read_bytes().decode(errors="ignore") for f in files(tmp_path / "copy")}
    folder = ROOT / "solutions/12_capstone"
    steps = [(folder / "ours" / f"{step}.py").read_text() for step in ("evaluation", "gather")]
    first = (folder / "runme.py").read_text()
    lines = [line.strip() for step in steps for line in step.splitlines()]
    told = [line for line in lines if len(line) > 30 and line not in first]
    assert len(told) > 10
    shown = [
        f"{f.relative_to(tmp_path)}: {line}"
        for f, text in given.items()
        for line in told
        if line in text or html.escape(line) in text
    ]
    assert shown == []
    assert not [f.name for f in given if "capstone-" in f.name or "What we handed in" in given[f]]


def test_no_link_of_the_class_copy_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    release(tmp_path / "copy")
    lost = []
    for file in files(tmp_path / "copy"):
        if file.suffix in (".md", ".ipynb"):
            for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", file.read_text(encoding="utf-8")):
                if not re.match(r"[a-z]+:", link) and not (file.parent / link).exists():
                    lost.append(f"{file.name}: {link}")
    assert lost == []


@pytest.mark.parametrize("answer", ["00", "00_tiny"])
def test_chosen_answers_come_along(workshop: Path, tmp_path: Path, answer: str) -> None:
    assert release(tmp_path / "copy", [answer]) == ["00_tiny"]
    found = {path.name for path in (tmp_path / "copy/solutions").rglob("*.*")}
    assert found == {"00_tiny.ipynb", "checks.py", "runme.py"}


@pytest.mark.parametrize("name", ["copy.zip", "copy.tar.gz"])
def test_an_archive_holds_one_folder(workshop: Path, tmp_path: Path, name: str) -> None:
    assert cli.main(["release", str(tmp_path / name)]) == 0
    shutil.unpack_archive(tmp_path / name, tmp_path / "unpacked")
    (folder,) = (tmp_path / "unpacked").iterdir()
    assert folder.name == "scaleout-workshop" and not (folder / "solutions").exists()
    assert (folder / "labs/00_tiny/runme.py").is_file()


def test_without_git_nothing_is_released(workshop: Path, tmp_path: Path) -> None:
    shutil.rmtree(workshop / ".git")
    with pytest.raises(ScaleoutError, match="no git checkout"):
        release(tmp_path / "new")
    assert not (tmp_path / "new").exists()


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


MAKEFILE = (ROOT / "Makefile").read_text()
OF_A_CLASS = for_a_class(MAKEFILE)


def _offered(text: str) -> set[str]:
    return set(re.findall(r"\bmake ([a-z-]+)", text)) - {"room", "it"}  # words


def _targets(makefile: str) -> set[str]:
    return set(" ".join(re.findall(r"^([a-z -]+):", makefile, re.MULTILINE)).split()) - {"help"}


def _make(folder: Path, *words: str) -> str:
    plain = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        ["make", "-C", folder, "--no-print-directory", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=plain,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.parametrize("makefile", [MAKEFILE, OF_A_CLASS], ids=["whole", "of a class"])
def test_make_help_names_each_target_and_each_has_its_program(
    tmp_path: Path, makefile: str
) -> None:
    (tmp_path / "Makefile").write_text(makefile)
    there = _targets(makefile)
    assert _offered(_make(tmp_path)) == _offered(_make(tmp_path, "help")) == there
    for target in sorted(there):
        recipe = _make(tmp_path, "-n", target)
        assert recipe, target
        for program in re.findall(r"\btools/\w+\.py\b", recipe):
            assert (ROOT / program).is_file(), f"{target}: {program}"


def test_a_class_is_offered_what_works_there() -> None:
    there = _targets(OF_A_CLASS)
    assert there >= {"lab", "tour", "torch", "clean"}
    assert not there & {"test", "lint", "lock", "pages", "masters"}
    readme = (ROOT / "class-copy/README.md").read_text()
    assert {"lab", "tour"} <= _offered(readme) <= there
    assert "solutions/" not in readme and "CONTRIBUTING" not in readme
    linked = re.findall(r"\]\(([^)#]+)\)", readme)
    assert linked and all((ROOT / name).is_file() for name in linked)


def test_the_tour_of_a_class_names_the_labs_that_are_not_solved(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    (tmp_path / "copy/notebooks/00_tiny-Copy1.ipynb").write_text("{}")
    book, _ = tour._books()
    assert book == tmp_path / "copy/notebooks/00_tiny.ipynb"
    stop = tour._waiting("00_tiny", type("Book", (), {"metadata": {}}))
    assert (
        stop and stop.waits and stop.headline == ("Waits for TODO 1: type  scaleout check 00_tiny")
    )
    history.keep_state("00_tiny", 1, "passed")
    assert tour._waiting("00_tiny", type("Book", (), {"metadata": {}})) is None


def test_a_hint_is_veiled_at_its_own_place() -> None:
    """Also where its text stands elsewhere, several times in a line, or behind other alphabets."""
    given = """WORD = "use é"
OTHER = ["use é", "first"]
@todo(1, hints=["first", "second", "use é", "use é",
    "two "
    "lines", "last"])
def one(job): return "use é"
@todo(2, hints=["é", "second", "first"])
def two(job): ...
"""
    out = _veil(given)
    kept = [line for line in given.splitlines() if "WORD" in line or "OTHER" in line]
    assert out.splitlines()[:2] == kept and 'def one(job): return "use é"' in out
    functions = [node for node in ast.parse(out).body if isinstance(node, ast.FunctionDef)]
    hints = [ast.literal_eval(f.decorator_list[0].keywords[0].value) for f in functions]
    assert hints == [
        ["first", "second", *map(veiled, ("use é", "use é", "two lines", "last"))],
        ["é", "second", veiled("first")],
    ]
