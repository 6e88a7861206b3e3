"""What a stored output belongs to: the sentences of the lint, and the tool that runs the masters."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lint_text
import make_masters
import nbformat
import outputs
import pytest

from scaleout import records
from scaleout.base import paths
from scaleout.kit.fetching import MNIST

SCRIPT = '''"""A lab."""

from scaleout import records
from scaleout.flags import Parser


def add(a, b):
    """Add."""
    records.write(Parser())
    return a + b  # like this
'''
RECORDS = '''"""Records."""

import json

from . import data, paths
from .checkpoints import digest as digest

SCHEMA = 1


def write(x):
    """Write."""
    return _line(x), SCHEMA


def _line(x):
    return json.dumps([digest(x), data.shard(x), paths.show(x)])  # one line


def read(path):
    return path, data.digits()
'''
KIT = {
    "records": RECORDS,
    "checkpoints": "def digest(x):\n    return _short(x)\n\n\ndef _short(x):\n    return x[:16]\n"
    "\n\ndef keep_checkpoint(x):\n    return x\n",
    "data": "def shard(n):\n    return n\n\n\ndef digits():\n    return 10\n",
    "flags": "class Parser:\n    least = 0\n\n\ndef refuse(problem):\n    raise SystemExit(problem)\n",
    "waiting": "def sleep_until_all_are_here(comm):\n    comm.Barrier()\n",
    "paths": "def show(x):\n    return x\n",
}
CELLS = [
    "import sys",
    "print('fast')",
    "print('10 %\\r100 %')\nprint('done', file=sys.stderr)",
    "6 * 7",
]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that was never run, its lesson and a package beside it, and all of MNIST's names."""
    (tmp_path / "scaleout").mkdir()
    for module, text in KIT.items():
        (tmp_path / "scaleout" / f"{module}.py").write_text(text)
    monkeypatch.setattr(outputs, "PACKAGE", tmp_path / "scaleout")
    (tmp_path / "05_tiny/more").mkdir(parents=True)
    for name in ("runme.py", "more/other.py"):
        (tmp_path / "05_tiny" / name).write_text(SCRIPT)
    (tmp_path / "05_tiny/job.sh").write_text("hostname\n")
    path = tmp_path / "05_tiny.ipynb"
    code = [nbformat.v4.new_code_cell(source) for source in CELLS]
    text = nbformat.v4.new_markdown_cell("A tiny lesson")
    nbformat.write(nbformat.v4.new_notebook(cells=[text, *code], metadata=KERNEL), path)
    for file in MNIST:
        (tmp_path / "mnist" / file).parent.mkdir(exist_ok=True)
        (tmp_path / "mnist" / file).touch()
    monkeypatch.setenv("SCALEOUT_DATA", str(tmp_path / "mnist"))
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    return path


def _change(path: Path, change: Callable[[Any, list[Any]], Any]) -> None:
    """Changes a notebook, given as a whole and as its code cells."""
    read = json.loads(path.read_text())
    change(read, [cell for cell in read["cells"] if cell["cell_type"] == "code"])
    path.write_text(json.dumps(read))


@pytest.fixture
def was_run(book: Path) -> Path:
    """The same with made-up outputs, recorded as those of a run."""

    def fill(whole: Any, code: list[Any]) -> None:
        for cell in code[1:]:
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}]
        lesson = book.with_suffix("")
        code = {"scripts": outputs.scripts(lesson), "package": outputs.package(lesson)}
        whole["metadata"]["scaleout"] = {**outputs.record(whole), **code}

    _change(book, fill)
    return book


def test_a_notebook_in_step_is_not_spoken_of(was_run: Path) -> None:
    assert list(lint_text.belongs(was_run)) == [] and make_masters.in_step(was_run)


def test_it_does_not_matter_how_the_lines_are_stored(was_run: Path) -> None:
    read = nbformat.read(was_run, as_version=4)
    nbformat.write(read, was_run)
    assert list(lint_text.belongs(was_run)) == []


CHANGES = {
    "the output of cell [2] was edited after the run": lambda whole, code: code[1]["outputs"][
        0
    ].update(text="9\n"),
    "cell [4] shows what was measured, and stores no output": lambda whole, code: code[3].update(
        outputs=[]
    ),
    "cell [3] is new or changed since the run": lambda whole, code: code[2].update(source="2"),
    "cell [1] is new or changed since the run": lambda whole, code: whole["cells"].insert(
        0, {**code[0], "source": "import os"}
    ),
    "a cell that was run is gone": lambda whole, code: whole["cells"].pop(2),
    "nothing says which code its outputs come from": lambda whole, code: whole["metadata"].pop(
        "scaleout"
    ),
}


@pytest.mark.parametrize("sentence", CHANGES)
def test_one_sentence_says_what_is_wrong(was_run: Path, sentence: str) -> None:
    _change(was_run, CHANGES[sentence])
    assert list(lint_text.belongs(was_run)) == [sentence]
    assert not make_masters.in_step(was_run)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runme.py", SCRIPT.replace("a + b", "a - b")),
        ("more/other.py", "def add(a, b)"),
        ("job.sh", "hostname  # of this node\n"),
        ("new.py", "x = 1\n"),
    ],
)
def test_a_changed_script_is_named(was_run: Path, name: str, text: str) -> None:
    (was_run.with_suffix("") / name).write_text(text)
    assert list(lint_text.belongs(was_run)) == [f"05_tiny/{name} changed since the run"]


def test_a_comment_a_docstring_or_a_copy_makes_nothing_stale(was_run: Path) -> None:
    text = SCRIPT.replace("A lab.", "The lab.").replace('    """Add."""\n', "    # Adds\n")
    assert text != SCRIPT
    (was_run.with_suffix("") / "runme.py").write_text(text.replace("  # like this", ""))
    (was_run.with_suffix("") / "runme-Copy1.py").write_text("x = 1\n")
    assert list(lint_text.belongs(was_run)) == []


CHECKS = '''"""The checks."""

from scaleout import todo


@todo(1, hints=["One.", "Two."])
def it_adds(job):
    """It adds two numbers.

    More of it.
    """
    assert job
'''


def test_of_the_checks_an_output_holds_what_they_say_when_passed(was_run: Path) -> None:
    lesson = was_run.with_suffix("")
    (lesson / "checks.py").write_text(CHECKS)
    (name,) = lint_text.belongs(was_run)
    assert name == "05_tiny/checks.py changed since the run"

    def take(whole: Any, code: list[Any]) -> None:
        whole["metadata"]["scaleout"]["scripts"] = outputs.scripts(lesson)

    _change(was_run, take)
    other = CHECKS.replace("assert job", "assert job.ok").replace("More of", "Less of")
    (lesson / "checks.py").write_text(other)
    (lesson / "instruments.py").write_text("import runme\n")
    assert list(lint_text.belongs(was_run)) == []
    (lesson / "checks.py").write_text(CHECKS.replace("adds two", "adds"))
    assert list(lint_text.belongs(was_run)) == ["05_tiny/checks.py changed since the run"]


def test_where_our_modules_lie_makes_nothing_stale(tmp_path: Path) -> None:
    old = "from scaleout.plots import look\nfrom scaleout.words import count\nprint(look, count)\n"
    new = old.replace("scaleout.words", "scaleout.base.words")
    plots, words, last = new.splitlines(keepends=True)
    texts = [old, new, words + plots + last, new.replace("import count", "import rounded as count")]
    files = [tmp_path / f"{number}.py" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    first, *same, other = map(outputs.script_digest, files)
    assert {first} == set(same) and other != first


def test_a_string_that_is_no_docstring_counts(was_run: Path) -> None:
    (was_run.with_suffix("") / "runme.py").write_text(SCRIPT + 'name = ""\n')
    assert [*lint_text.belongs(was_run)] == ["05_tiny/runme.py changed since the run"]


def _edit(book: Path, module: str, old: str, new: str) -> None:
    """Changes a module of the package beside a notebook."""
    path = book.parent / "scaleout" / f"{module}.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("records", "_line(x), SCHEMA", "_line(x), 1"),
        ("records", "SCHEMA = 1", "SCHEMA = 2"),
        ("flags", "least = 0", "least = 1"),
        ("records", "json.dumps([", "json.dumps([0, "),
        ("checkpoints", "return _short(x)", "return x"),
        ("checkpoints", "x[:16]", "x[:8]"),
        ("data", "return n", "return n + 1"),
    ],
    ids=["a function", "a number", "a class", "a helper", "beside it", "its helper", "a module's"],
)
def test_what_a_lesson_uses_of_the_package_makes_it_stale(
    was_run: Path, module: str, old: str, new: str
) -> None:
    _edit(was_run, module, old, new)
    told = f"what it uses of scaleout/{module}.py changed since the run"
    assert list(lint_text.belongs(was_run)) == [told]
    assert make_masters.chosen([], was_run.parent) == [was_run]


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("records", "return path", "return None"),
        ("checkpoints", "return x\n", "return None\n"),
        ("data", "return 10", "return 11"),
        ("flags", "SystemExit(problem)", "SystemExit(1)"),
        ("waiting", "comm.Barrier()", "comm.Ibarrier()"),
        ("paths", "return x", "return str(x)"),
        ("records", '"""Write."""', '"""Write a line."""'),
        ("records", "  # one line", ""),
        ("records", "import json\n", "import json\nimport os\n"),
        ("records", "from .checkpoints", "from scaleout.kit.checkpoints"),
    ],
    ids=["a function", "a helper's neighbour", "another module's", "beside a class", "a module"]
    + ["not for labs", "a docstring", "a comment", "an import", "another way to import"],
)
def test_what_it_does_not_use_of_the_package_makes_nothing_stale(
    was_run: Path, module: str, old: str, new: str
) -> None:
    _edit(was_run, module, old, new)
    assert list(lint_text.belongs(was_run)) == []


def test_what_one_module_hands_on_from_another_is_seen(was_run: Path) -> None:
    lesson = was_run.with_suffix("")
    (lesson / "runme.py").write_text("from scaleout import records as books\nbooks.digest(1)\n")
    (lesson / "more/other.py").write_text("import records\nrecords.write(1)\n")
    assert set(outputs.package(lesson)) == {"checkpoints"}


def test_a_notebook_that_records_nothing_of_the_package_is_stale(was_run: Path) -> None:
    _change(was_run, lambda whole, code: whole["metadata"]["scaleout"].pop("package"))
    assert len(list(lint_text.belongs(was_run))) == len({"checkpoints", "data", "flags", "records"})


def test_of_a_real_lesson_it_is_all_that_the_lesson_imports() -> None:
    kit = {"checkpoints", "data", "flags", "records", "waiting"}
    assert set(outputs.package(make_masters.SOLUTIONS / "01_onednn")) == kit


def test_a_known_stale_notebook_is_excused_until_it_is_run(
    was_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint_text, "STALE", {"05_tiny": "records more/other.py"})
    off = "{} no longer makes it stale: take that off the list STALE"
    assert list(lint_text.belongs(was_run)) == [off.format("records"), off.format("more/other.py")]
    _edit(was_run, "records", "SCHEMA = 1", "SCHEMA = 2")
    (was_run.with_suffix("") / "more/other.py").write_text(SCRIPT.replace("a + b", "b + a"))
    assert list(lint_text.belongs(was_run)) == []
    assert make_masters.chosen([], was_run.parent) == [was_run]
    _edit(was_run, "flags", "least = 0", "least = 1")
    (was_run.with_suffix("") / "job.sh").write_text("ls\n")
    flags = "what it uses of scaleout/flags.py changed since the run"
    assert list(lint_text.belongs(was_run)) == ["05_tiny/job.sh changed since the run", flags]


def test_the_lists_of_what_is_known_name_notebooks() -> None:
    assert lint_text.STALE.keys() | lint_text.NOISY <= {book.stem for book in lint_text.BOOKS}


def test_a_notebook_that_a_browser_would_load_slowly_is_told(
    was_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = was_run.stat().st_size / 1024
    for most, says in ((size + 1, []), (size / 2, [f"it has more than {size / 2} KiB"])):
        monkeypatch.setattr(lint_text, "BOOK_KIB", most)
        assert [one for one in lint_text.size(was_run) if "KiB" in one] == says


SAYS = "Here two identical jobs\ncould differ by 26 %."


@pytest.mark.parametrize(
    ("noise", "text", "known", "told"),
    [
        (
            0.26,
            "A lesson.",
            False,
            "no text says that two identical jobs could differ by 26 %: run",
        ),
        (0.26, SAYS.replace("26", "25"), False, "by 26 %: run it again (make masters ARGS=05), or"),
        (0.26, SAYS, False, ""),
        (0.10, "A lesson.", False, ""),
        (0.26, "A lesson.", True, ""),
        (0.26, SAYS, True, "it is no longer noisy, or it says so: take it off the list NOISY"),
        (0.03, "A lesson.", True, "it is no longer noisy, or it says so: take it off the list"),
    ],
)
def test_a_noisy_notebook_says_so(
    book: Path, monkeypatch: pytest.MonkeyPatch, noise: float, text: str, known: bool, told: str
) -> None:
    monkeypatch.setattr(lint_text, "NOISY", {"05_tiny"} if known else set())
    _change(book, lambda whole, code: whole["metadata"].update(scaleout={"null_pair": noise}))
    _change(book, lambda whole, code: whole["cells"][0].update(source=text))
    found = list(lint_text.noisy(book))
    assert len(found) == bool(told) and all(told in sentence for sentence in found)


def test_a_text_may_name_the_noise_and_no_other_measured_figure(book: Path) -> None:
    _change(book, lambda whole, code: whole["metadata"].update(scaleout={"null_pair": 0.26}))
    text = f"{SAYS} A speed-up of 26 % is none; {SAYS.replace('26', '27')}"
    _change(book, lambda whole, code: whole["cells"][0].update(source=text))
    figures = [sentence.split("'")[1] for sentence in lint_text.measured(book)]
    assert figures == ["26 %", "27 %"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("result", True),
        ("x = 1\nlab.figures.bars(x)", True),
        ("%pxconfig --progress-after 300", False),
        ("engines.start();", False),
        ("%%px\nheld.append(1)", False),
        ("%%px\nprint(1)", True),
        ("for x in y:\n    x", False),
    ],
)
def test_which_cells_show_something(source: str, shown: bool) -> None:
    assert outputs.measures(source) is shown


def test_a_run_writes_outputs_and_what_they_belong_to(book: Path) -> None:
    _change(book, lambda whole, code: whole["metadata"].update(scaleout={"needs": []}))
    make_masters.make(book, wait=False)
    read = nbformat.read(book, as_version=4)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4]
    assert [output.text for output in code[2].outputs] == ["100 %\n", "done\n"]
    assert code[3].outputs[0].data["text/plain"] == "42"
    assert all(set(cell.metadata) <= {"tags"} for cell in read.cells)
    about = read.metadata.scaleout
    assert about.needs == [] and about.runs == 1 and about.minutes >= 0
    assert about.stamp.startswith("Run on ") and about.data.startswith("MNIST, ")
    assert set(about.scripts) == {"runme.py", "more/other.py", "job.sh"}
    assert set(about.package) == {"checkpoints", "data", "flags", "records"}
    assert len(about.cells) == len(about.outputs) == len(CELLS)
    assert list(lint_text.belongs(book)) == [] and make_masters.chosen([], book.parent) == []
    assert make_masters.chosen(["5"], book.parent) == [book]
    assert [path.name for path in book.parent.glob("*.part")] == []


def test_a_run_has_none_of_the_shells_settings(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("OPENBLAS_CORETYPE", "SCALEOUT_QUICK", "SCALEOUT_DATA")
    for name in asked[:2]:
        monkeypatch.setenv(name, "1")
    seen = f"import os\nprint([name for name in {asked} if name in os.environ])"
    _change(book, lambda whole, code: code[1].update(source=seen))
    make_masters.make(book, wait=False)
    cells = [cell for cell in nbformat.read(book, as_version=4).cells if cell.cell_type == "code"]
    assert cells[1].outputs[0].text == "['SCALEOUT_DATA']\n"


def test_what_earlier_notebooks_measured_last_is_there(book: Path) -> None:
    """So 02 can begin with the number of 01, and 05 can draw the day."""
    masters = book.parent / "results/masters"
    for at, folder in enumerate(("01_a/run-x/01_a", "01_a/run-a/01_a", "07_z/run-x/07_z")):
        (masters / folder / "ID").mkdir(parents=True)
        (masters / folder / "ID/records.jsonl").write_text(folder)
        os.utime(masters / folder, (at, at))
    make_masters.bring_earlier("05_tiny", book.parent / "own")
    found = {path.name: path for path in (book.parent / "own").iterdir()}
    assert list(found) == ["01_a"]
    assert (found["01_a"] / "ID/records.jsonl").read_text() == "01_a/run-a/01_a"


def test_the_quietest_run_is_kept_also_when_the_next_is_broken_off(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noises = iter([0.4, 0.2, 0.3])
    monkeypatch.setattr(make_masters, "null_pair", lambda results, earlier: next(noises))
    make_masters.make(book, wait=False)
    about = nbformat.read(book, as_version=4).metadata.scaleout
    assert (about.runs, about.null_pair) == (3, 0.2) and list(lint_text.belongs(book)) == []

    def broken_off(results: Path, earlier: set[Path]) -> float:
        if noise := next(noises, 0.0):
            return noise
        raise KeyboardInterrupt

    noises = iter([0.5])
    monkeypatch.setattr(make_masters, "null_pair", broken_off)
    with pytest.raises(KeyboardInterrupt):
        make_masters.make(book, wait=False)
    about = nbformat.read(book, as_version=4).metadata.scaleout
    assert (about.runs, about.null_pair) == (1, 0.5) and list(lint_text.belongs(book)) == []


def test_a_notebook_with_an_error_stays_as_it_was(book: Path) -> None:
    _change(book, lambda whole, code: code[1].update(source="1 / 0"))
    before = book.read_bytes()
    with pytest.raises(make_masters.CellControlSignal, match="ZeroDivisionError"):
        make_masters.make(book, wait=False)
    assert book.read_bytes() == before


def test_a_processor_that_lacks_an_instruction_is_told_so(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = {"needs": ["sse4_2", "avx4096"]}
    _change(book, lambda whole, code: whole["metadata"].update(scaleout=wish))
    before = book.read_bytes()
    assert make_masters.main([], book.parent) == 1
    assert "05_tiny needs avx4096, which this processor lacks." in capsys.readouterr().out
    assert book.read_bytes() == before


def test_other_digits_are_refused(
    book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_DATA", str(book.parent / "none"))
    assert make_masters.main(["05"], book.parent) == 1
    assert "scaleout data fetch mnist" in capsys.readouterr().out


def test_a_mistyped_name_is_told_so(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_masters.main(["55"], book.parent) == 1
    assert capsys.readouterr().out == "There is no notebook '55': there are 05_tiny.\n"


def test_a_bar_that_was_wiped_away_leaves_nothing() -> None:
    texts = [("stdout", "a\n"), ("stderr", "\r 10 %\r100 %\r      \r"), ("stdout", "b\n")]
    given = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in texts]
    assert [output.text for output in make_masters.as_shown(given)] == ["a\nb\n"]


def test_no_path_of_this_machine_is_kept() -> None:
    built = "/elsewhere/.venv/tmp/pip-install-x1/horovod_2be/horovod/common/stall.cc:107"
    text = f'"{paths.home()}/src/scaleout/kit/records.py", "{sys.base_prefix}/lib/python3/os.py", {built}'
    (shown,) = make_masters.as_shown([nbformat.v4.new_output("stream", name="stdout", text=text)])
    assert (
        shown.text
        == '"src/scaleout/kit/records.py", "lib/python3/os.py", horovod/common/stall.cc:107'
    )


@pytest.mark.parametrize(("values", "noise"), [((10, 10.1), 0.2), ((10, 30), None)])
def test_the_noise_of_a_run_is_that_of_its_null_pairs(
    tmp_path: Path, values: tuple[float, float], noise: float | None
) -> None:
    folder = tmp_path / "compare/job"
    folder.mkdir(parents=True)
    (folder / "compare.json").write_text('{"lower": false, "metric": "rate"}')
    rows = [
        {
            "round": r,
            "place": 3 * r + c,
            "variant": v,
            "again": int(c == 1),
            "value": value + r / 100,
        }
        for r in range(5)
        for c, (v, value) in enumerate((("a", values[r % 2]), ("a", values[1 - r % 2]), ("b", 11)))
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = make_masters.null_pair(tmp_path)
    assert 0 < found < noise if noise else found > make_masters.MOST_NOISE
    assert make_masters.null_pair(tmp_path / "none") == 0


ROUNDS = 5
SAME, QUIET, LOUD = [10.0] * ROUNDS, [10, 10.1, 10.1, 10, 10], [10, 13, 8, 12, 9]


def _compared(again: list[float]) -> dict[str, Any]:
    """A record with the rows of a comparison, as tune.py of 05 and turns.py of 09 write it."""
    names = {("a", 0): SAME, ("a", 1): again, ("b", 0): [11] * ROUNDS}
    rows = [
        {"round": at, "variant": variant, "again": twice, "value": values[at]}
        for at in range(ROUNDS)
        for (variant, twice), values in names.items()
    ]
    return {"variant": "tune", "metrics": {"runs": rows, "variants": {"a": {}, "b": {}}}}


def _ladder(rates: list[float], again: list[float], twin: int = 0) -> dict[str, Any]:
    """A record as ladder.py of 08 writes it; bf16 on AVX2 has no rates."""
    about = {"step": "AVX2", "rates": rates, "again": again, "twin": twin}
    return {"variant": "GEMM fp32", "metrics": about}


def _step(way: str, step_s: list[float], batch: int = 32) -> dict[str, Any]:
    """A record as which.py of 11 writes it."""
    return {"variant": way, "step_s": step_s, "metrics": {"batch": batch}}


JOBS = {
    "rows of a comparison": lambda other: [_compared(other)],
    "against": lambda other: [
        {"variant": "tune", "metrics": {"against": _compared(other)["metrics"]["runs"]}}
    ],
    "fp32 again": lambda other: [_ladder(SAME, other)],
    "two ranks of AVX2": lambda other: [
        _ladder(SAME, []),
        _ladder([], []),
        _ladder(other, [], twin=1),
    ],
    "data again": lambda other: [
        _step("data", SAME),
        _step("tensor", LOUD),
        _step("data again", LOUD, 64),
        _step("data again", other),
    ],
}


@pytest.mark.parametrize("kind", JOBS)
def test_what_a_job_measures_twice_is_a_null_pair_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    found = {}
    for name, other in {"quiet": QUIET, "loud": LOUD}.items():
        file = tmp_path / name / "05_tiny/job/records.jsonl"
        file.parent.mkdir(parents=True)
        monkeypatch.setenv("SCALEOUT_RECORDS", str(file))
        for record in JOBS[kind](other):
            records.write(lab="05_tiny", **record)
        found[name] = make_masters.null_pair(tmp_path / name)
        assert make_masters.null_pair(tmp_path / name, earlier={file}) == 0
    assert 0 < found["quiet"] < make_masters.MOST_NOISE < found["loud"]


def test_what_differs_or_has_two_rounds_is_no_null_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RECORDS", str(tmp_path / "records.jsonl"))
    different = [_step("data", SAME)]
    short = [_ladder([1.0, 2.0], [3.0, 1.0])]
    for record in (*different, *short):
        records.write(lab="05_tiny", **record)
    records.write(lab="05_tiny", metrics={"runs": [{"seed": 0}], "rates": [1.0], "again": []})
    assert make_masters.null_pair(tmp_path) == 0


@pytest.mark.parametrize(
    ("heading", "tags", "told"),
    [
        ("## Further\n\n### More", ["further"], []),
        ("## Recap", ["tour"], []),
        ("## Further\n\n## Read on", [], []),
        ("# Further\n\n## More", [], ["cell [1] is below the heading Further: its tags are []"]),
        ("Further", ["further"], ["not below a heading Further"]),
        ("## Further", ["further", "tour"], ["cell [1] is tagged further, which no tour runs"]),
    ],
)
def test_what_stands_below_further_is_tagged_so_and_in_no_tour(
    tmp_path: Path, heading: str, tags: list[str], told: list[str]
) -> None:
    code = nbformat.v4.new_code_cell("1", metadata={"tags": tags})
    cells = [nbformat.v4.new_markdown_cell(heading), code]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "05_tiny.ipynb")
    found = list(lint_text.further(tmp_path / "05_tiny.ipynb"))
    assert len(found) == len(told) and all(a in b for a, b in zip(told, found, strict=True))
