"""The masters run, and are in step with what is made from them."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from scaleout.base.paths import WHOLE, course_files
from scaleout.course import marks
from scaleout.course.masters import generate

ROOT = Path(__file__).resolve().parents[2]
MASTERS = course_files(ROOT / "solutions", "*.ipynb")
SCRIPTS = sorted((ROOT / "solutions").glob("*/runme.py"))
WITH_TORCH = (ROOT / ".side/torch" / WHOLE).exists()
CELL_LIMIT_S = 600  # for what never ends; two notebooks may share two cores


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def _run(book: Path, nbclient: bool) -> subprocess.CompletedProcess[str]:
    """Runs one notebook as CI does: every cell must run, and the cells tagged nbval-check-output
    must say the same."""
    if nbclient:
        words = [str(Path(__file__).with_name("without_nbval.py"))]
    else:
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:timeout", "--nbval-lax"]
        words += ["-c", os.devnull, "--rootdir", str(book.parent)]
        words += [f"--nbval-cell-timeout={CELL_LIMIT_S}"]
    command = [sys.executable, *words, str(book)]
    how = {"capture_output": True, "text": True, "timeout": 1800, "cwd": book.parent}
    return subprocess.run(command, env={**os.environ, "SCALEOUT_QUICK": "1"}, **how)


def _workshop(tmp_path: Path, *topics: str) -> Path:
    """A workshop of its own with a few topics, to break."""
    for name in ("labs", "notebooks", "solutions"):
        (tmp_path / name).mkdir()
        for topic in topics:
            if (ROOT / name / topic).is_dir():
                shutil.copytree(ROOT / name / topic, tmp_path / name / topic)
            if (ROOT / name / f"{topic}.ipynb").exists():
                shutil.copy(ROOT / name / f"{topic}.ipynb", tmp_path / name)
    return tmp_path


def _tags(cell: nbformat.NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _short(book: Path) -> nbformat.NotebookNode:
    """The cells of the tour and those whose output is compared, but for what stands below *Further*,
    needs PyTorch where `make torch` was not typed, or needs a name from the others."""
    notebook = nbformat.read(book, as_version=4)
    every = [cell for cell in notebook.cells if cell.cell_type == "code"]
    asked = {"tour", "nbval-check-output"}
    left_out = {"further"} if WITH_TORCH else {"further", "torch"}
    kept = [c for c in every if _tags(c) & asked and not _tags(c) & left_out]
    while True:
        others = [cell for cell in every if cell not in kept]
        missing = _names(others, ast.Store) - _names(kept, ast.Store)
        complete = [cell for cell in kept if not _names([cell], ast.Load) & missing]
        if len(complete) == len(kept):
            notebook.cells = kept
            return notebook
        kept = complete


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_masters_tour_runs_and_its_solution_passes_every_check(
    book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    for room in ("labs", "notebooks", "docs", ".side"):
        (tmp_path / room).symlink_to(ROOT / room)
    (tmp_path / "solutions").mkdir()
    for topic in SCRIPTS:
        (tmp_path / "solutions" / topic.parent.name).symlink_to(topic.parent)
    short = _short(book)
    asked = re.compile(r"\.check\(")
    assert all(c in short.cells for c in _cells(book, "code")
               if asked.search(c.source) and "nbval-check-output" in _tags(c)
               and (WITH_TORCH or "torch" not in _tags(c)))  # fmt: skip
    nbformat.write(short, tmp_path / "solutions" / book.name)
    done = _run(tmp_path / "solutions" / book.name, pytestconfig.getoption("nbclient"))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


@pytest.mark.choice
@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_runs(
    book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    done = _run(book, pytestconfig.getoption("nbclient"))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


@pytest.mark.parametrize("nbclient", [False, True], ids=["nbval", "nbclient"])
def test_a_cell_that_says_something_else_turns_its_notebook_red(
    nbclient: bool, tmp_path: Path
) -> None:
    output = nbformat.v4.new_output("stream", text="before\n")
    cell = nbformat.v4.new_code_cell("print('after')", outputs=[output], execution_count=1)
    cell.metadata["tags"] = ["nbval-check-output"]
    book = tmp_path / "book.ipynb"
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=spec), book)
    done = _run(book, nbclient)
    assert done.returncode == 1 and "before" in done.stdout and "after" in done.stdout


@pytest.mark.timeout(400)
def test_a_broken_job_turns_its_notebook_red(tmp_path: Path) -> None:
    root = _workshop(tmp_path, "00_welcome")
    script = root / "solutions/00_welcome/runme.py"
    script.write_text(
        script.read_text().replace(
            "    comm = MPI", '    raise ValueError("broken")\n    comm = MPI', 1
        )
    )
    book = root / "solutions/00_welcome.ipynb"
    notebook = nbformat.read(book, as_version=4)
    jobs = [
        c
        for c in notebook.cells
        if c.cell_type == "code" and re.search(r"import|lab\(|\.run\(", c.source)
    ]
    notebook.cells = jobs[: 1 + next(i for i, c in enumerate(jobs) if ".run(" in c.source)]
    nbformat.write(notebook, book)
    done = _run(book, nbclient=False)
    assert done.returncode == 1, done.stdout[-3000:]
    assert "ValueError: broken" in done.stdout


def test_labs_and_notebooks_are_in_step_with_their_masters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert generate(only_check=True) == []


def test_every_topic_is_complete() -> None:
    assert [book.stem for book in MASTERS] == [script.parent.name for script in SCRIPTS]
    assert all((script.parent / "checks.py").is_file() for script in SCRIPTS)


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_its_head_and_the_readme_promise_the_same_minutes(book: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    planned = re.search(rf"notebooks/{book.name}\).*\| (\d+) \| \d+ \|$", readme, re.M)
    head = re.search(r"About (\d+) minutes", _cells(book, "markdown")[0].source)
    assert planned and head and planned[1] == head[1]


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_has_cells_whose_output_is_compared(book: Path) -> None:
    tagged = [c for c in _cells(book, "code") if "nbval-check-output" in c.metadata.get("tags", [])]
    assert tagged, "no cell is tagged nbval-check-output: nbval would compare nothing"
    assert all(cell.outputs for cell in tagged), "a compared cell has no stored output"


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_shows_that_its_solution_passes_every_check(book: Path) -> None:
    """In cells whose output is compared, so that test_the_master_runs proves it."""
    compared = [
        c for c in _cells(book, "code") if "nbval-check-output" in c.metadata.get("tags", [])
    ]
    said = "".join(out.get("text", "") for cell in compared for out in cell.outputs)
    said = re.sub(r"^.*\r(?=[^\n])", "", said, flags=re.M)  # a bar that was wiped away
    passed = sorted(map(int, re.findall(r"^TODO (\d+) +passed\b", said, re.M)))
    scripts = course_files(book.with_suffix(""), "*.py")
    todos = [number for path in scripts for number in marks.numbers(path.read_text("utf-8"))]
    assert passed == sorted(todos) != [], "tests/mpi/test_labs.py has those of shell scripts"


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_can_be_toured(book: Path) -> None:
    tags = [cell.metadata.get("tags", []) for cell in _cells(book, "code")]
    assert sum("headline" in t and "tour" in t for t in tags) == 1
    assert all("headline" not in t or "tour" in t for t in tags)


def _names(cells: list[nbformat.NotebookNode], context: type[ast.expr_context]) -> set[str]:
    lines = [line for c in cells if not c.source.startswith("%%") for line in c.source.splitlines()]
    code = "\n".join(line for line in lines if not line.startswith("%"))
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and type(node.ctx) is context:
            found.add(node.id)
        elif isinstance(node, ast.alias) and context is ast.Store:
            found.add((node.asname or node.name).partition(".")[0])
    return found


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_tour_needs_no_name_from_the_other_cells(book: Path) -> None:
    tour = [c for c in _cells(book, "code") if "tour" in c.metadata.get("tags", [])]
    others = [c for c in _cells(book, "code") if c not in tour]
    assert _names(tour, ast.Load) & (_names(others, ast.Store) - _names(tour, ast.Store)) == set()
