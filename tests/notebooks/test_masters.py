"""The masters run, hold what they promise, and are in step with what is made from them."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from scaleout.course import cutting, masters
from scaleout.course.masters import generate

ROOT = Path(__file__).resolve().parents[2]
MASTERS = sorted((ROOT / "solutions").glob("*.ipynb"))
SCRIPTS = sorted((ROOT / "solutions").glob("*/runme.py"))
EVERY_BOOK = [*MASTERS, *sorted((ROOT / "notebooks").glob("*.ipynb"))]
# Lines: checkpoints, two networks, two ways to move, the order of images, six ways to split.
LONGER = {
    "05_horovod": 250,
    "06_tuning": 250,
    "07_scaling": 210,
    "10_input": 250,
    "11_parallelism": 320,
}
CELL_LIMIT_S = 600  # for what never ends; two notebooks may share two cores
KIB = 1024


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def _nbval(book: Path) -> subprocess.CompletedProcess[str]:
    """Runs one notebook as CI does: every cell must run, and the cells tagged nbval-check-output
    must say the same."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:timeout",
        "--nbval-lax",
    ]
    command += [
        "-c",
        os.devnull,
        "--rootdir",
        str(book.parent),
        f"--nbval-cell-timeout={CELL_LIMIT_S}",
        str(book),
    ]
    environment = {**os.environ, "SCALEOUT_QUICK": "1"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1800, cwd=book.parent
    )


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


@pytest.mark.slow
@pytest.mark.timeout(1900)
@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_runs(book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    done = _nbval(book)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)


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
    done = _nbval(book)
    assert done.returncode == 1, done.stdout[-3000:]
    assert "ValueError: broken" in done.stdout


@pytest.mark.timeout(400)
def test_a_changed_answer_turns_its_notebook_red(tmp_path: Path) -> None:
    book = _workshop(tmp_path, "00_welcome") / "solutions/made_up.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cell = nbformat.v4.new_code_cell(
        "print(6 * 7)", execution_count=1, metadata={"tags": ["nbval-check-output"]}
    )
    for shown, status in (("42\n", 0), ("43\n", 1)):
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=shown)]
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=kernel), book)
        assert _nbval(book).returncode == status


def test_labs_and_notebooks_are_in_step_with_their_masters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert generate(only_check=True) == []


def test_every_topic_is_complete() -> None:
    assert [book.stem for book in MASTERS] == [script.parent.name for script in SCRIPTS]
    assert all((script.parent / "checks.py").is_file() for script in SCRIPTS)


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
    passed = sorted(map(int, re.findall(r"^TODO (\d+) +passed\b", said, re.M)))
    todos = cutting.numbers((book.with_suffix("") / "runme.py").read_text(encoding="utf-8"))
    assert passed == sorted(todos) != []


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_can_be_toured(book: Path) -> None:
    tags = [cell.metadata.get("tags", []) for cell in _cells(book, "code")]
    assert sum("headline" in t and "tour" in t for t in tags) == 1
    assert all("headline" not in t or "tour" in t for t in tags)


def _names(cells: list[nbformat.NotebookNode], context: type[ast.expr_context]) -> set[str]:
    lines = [line for c in cells if not c.source.startswith("%%") for line in c.source.splitlines()]
    code = "\n".join(line for line in lines if not line.startswith("%"))
    return {
        node.id
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Name) and type(node.ctx) is context
    }


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_tour_needs_no_name_from_the_other_cells(book: Path) -> None:
    tour = [c for c in _cells(book, "code") if "tour" in c.metadata.get("tags", [])]
    others = [c for c in _cells(book, "code") if c not in tour]
    assert _names(tour, ast.Load) & (_names(others, ast.Store) - _names(tour, ast.Store)) == set()


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_master_was_run_whole_and_without_error(book: Path) -> None:
    counts = [cell.execution_count for cell in _cells(book, "code")]
    assert counts == list(range(1, len(counts) + 1))
    assert not [o for c in _cells(book, "code") for o in c.outputs if o.output_type == "error"]


@pytest.mark.parametrize("book", EVERY_BOOK, ids=_id)
def test_size_and_cells(book: Path) -> None:
    text = book.read_text(encoding="utf-8")
    assert len(text.encode()) < 1024 * KIB
    bare = masters._cut_notebook(text, book.name) if book.parent.name == "solutions" else text
    assert len(bare.encode()) <= 40 * KIB, f"{len(bare.encode()) / KIB:.1f} KiB without outputs"
    code, words = _cells(book, "code"), _cells(book, "markdown")
    assert len(words) >= len(code), f"{len(words)} text cells for {len(code)} code cells"
    assert [c.source for c in code if len(c.source.splitlines()) > 15] == []


@pytest.mark.parametrize("book", EVERY_BOOK, ids=_id)
def test_no_bare_launch_and_no_path_of_one_machine(book: Path) -> None:
    for cell in _cells(book, "code"):
        assert not re.search(r"^\s*!|%%(bash|sh)\b|%sx", cell.source, re.M), cell.source
    text = book.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(root|work|farm|home|tmp|Users)/", text)


@pytest.mark.parametrize("book", EVERY_BOOK, ids=_id)
def test_relative_links_resolve(book: Path) -> None:
    words = "\n".join(cell.source for cell in _cells(book, "markdown"))
    missing = [link for link in _links(words) if not (book.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")), ids=_id
)
def test_relative_links_of_pages_resolve(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    assert [link for link in _links(text) if not (page.parent / link).exists()] == []


def _links(text: str) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text)
    links = [(a or b).split("#")[0] for a, b in found]
    return [link for link in links if link and not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("book", MASTERS, ids=_id)
def test_the_notebook_defines_nothing_that_its_lab_defines(book: Path) -> None:
    lab = ast.parse((book.with_suffix("") / "runme.py").read_text(encoding="utf-8"))
    named = {
        node.name for node in ast.walk(lab) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    source = "\n".join(cell.source for cell in _cells(book, "code"))
    assert set(re.findall(r"^(?:def|class) (\w+)", source, re.M)) & named == set()


@pytest.mark.parametrize("script", SCRIPTS, ids=_id)
def test_a_lab_reads_beside_its_notebook(script: Path) -> None:
    """79 columns, as many lines as it needs, and a docstring with the command that starts it."""
    text = script.read_text(encoding="utf-8")
    given = cutting.cut(text)
    assert [line for line in text.splitlines() if len(line) > 79] == []
    assert 60 <= len(given.splitlines()) <= LONGER.get(script.parent.name, 200)
    assert text.count("add_argument(") <= 8
    doc = ast.get_docstring(ast.parse(text)) or ""
    assert re.search(rf"mpirun -n \d.* {re.escape(_id(script))}", doc), (
        "the docstring names the command and this file"
    )


TALKS = re.compile(r"(comm|hvd)\.[A-Za-z_]+\(|MPI\.COMM_WORLD$|distributed=True")


def _silent(text: str) -> list[str]:
    """The lines that talk to other ranks and say no why: in themselves, or in a comment above them
    and others that talk."""
    lines = text.splitlines()
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    found = []
    for at, line in enumerate(lines, 1):
        if line.strip().startswith("#") or not TALKS.search(line):
            continue
        begins = max(s.lineno for s in statements if s.lineno <= at <= (s.end_lineno or at))
        first = begins - 1
        while first > 0 and re.match(rf" *#|.*{TALKS.pattern}", lines[first - 1]):
            first -= 1
        if not any("# Distributed: " in near for near in lines[first:at]):
            found.append(line)
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=_id)
def test_every_use_of_the_other_ranks_says_why(script: Path) -> None:
    """Each line that talks to other ranks carries `# Distributed: why`: grep for it and you have
    the lesson."""
    text = script.read_text(encoding="utf-8")
    assert "# Distributed: " in text
    assert _silent(text) == []


def test_a_use_that_says_no_why_is_seen() -> None:
    said = "# Distributed: all\na = comm.allreduce(\n    1)\n# other\nb = hvd.size()\n"
    assert _silent(said) == ["b = hvd.size()"]
    assert _silent(said.replace("# other", "# Distributed: b")) == []


def test_the_folders_show_the_course() -> None:
    """The same two digits and topic name everywhere."""
    for folder in ("notebooks", "labs", "solutions"):
        names = {p.stem for p in (ROOT / folder).iterdir() if not p.name.startswith(".")}
        assert names == {book.stem for book in MASTERS}


def test_notebooks_hold_no_outputs() -> None:
    for book in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(book.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs") and cell.get("execution_count") is None
