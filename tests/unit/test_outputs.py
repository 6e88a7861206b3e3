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

from scaleout import paths
from scaleout.fetching import MNIST

SCRIPT = '"""A lab."""\n\n\ndef add(a, b):\n    """Add."""\n    return a + b  # like this\n'
CELLS = [
    "import sys",
    "print('fast')",
    "print('10 %\\r100 %')\nprint('done', file=sys.stderr)",
    "6 * 7",
]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that was never run, its lesson beside it, and all of MNIST's names."""
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
        scripts = outputs.scripts(book.with_suffix(""))
        whole["metadata"]["scaleout"] = {**outputs.record(whole), "scripts": scripts}

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


def test_a_string_that_is_no_docstring_counts(was_run: Path) -> None:
    (was_run.with_suffix("") / "runme.py").write_text(SCRIPT + 'name = ""\n')
    assert [*lint_text.belongs(was_run)] == ["05_tiny/runme.py changed since the run"]


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
    assert len(about.cells) == len(about.outputs) == len(CELLS)
    assert list(lint_text.belongs(book)) == [] and make_masters.chosen([], book.parent) == []
    assert make_masters.chosen(["5"], book.parent) == [book]
    assert [path.name for path in book.parent.glob("*.part")] == []


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
    monkeypatch.setattr(make_masters, "null_pair", lambda results: next(noises))
    make_masters.make(book, wait=False)
    about = nbformat.read(book, as_version=4).metadata.scaleout
    assert (about.runs, about.null_pair) == (3, 0.2) and list(lint_text.belongs(book)) == []

    def broken_off(results: Path) -> float:
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
    built = f"{sys.prefix}/.scaleout/tmp/pip-install-x1/horovod_2be/horovod/common/stall.cc:107"
    text = (
        f'"{paths.home()}/src/scaleout/records.py", "{sys.base_prefix}/lib/python3/os.py", {built}'
    )
    (shown,) = make_masters.as_shown([nbformat.v4.new_output("stream", name="stdout", text=text)])
    assert (
        shown.text == '"src/scaleout/records.py", "lib/python3/os.py", horovod/common/stall.cc:107'
    )


@pytest.mark.parametrize(("values", "noise"), [((10, 10.1), 0.2), ((10, 30), None)])
def test_the_noise_of_a_run_is_that_of_its_null_pairs(
    tmp_path: Path, values: tuple[float, float], noise: float | None
) -> None:
    folder = tmp_path / "compare/job"
    folder.mkdir(parents=True)
    (folder / "compare.json").write_text('{"lower": false, "metric": "rate"}')
    rows = [
        {"round": r, "place": 3 * r + c, "variant": v, "again": c == 1, "value": value + r / 100}
        for r in range(5)
        for c, (v, value) in enumerate((("a", values[r % 2]), ("a", values[1 - r % 2]), ("b", 11)))
    ]
    (folder / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = make_masters.null_pair(tmp_path)
    assert 0 < found < noise if noise else found > make_masters.MOST_NOISE
    assert make_masters.null_pair(tmp_path / "none") == 0


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
