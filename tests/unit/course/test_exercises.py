"""Masters in, labs and notebooks out; what a wrong mark says; check, hint and reset."""

import json
import shutil
from pathlib import Path

import pytest

from scaleout import lab
from scaleout.base.errors import ScaleoutError
from scaleout.course import checks, masters
from scaleout.course.marks import cut
from scaleout.course.masters import generate
from scaleout.jobs.job import JobFailed

GOOD = """\
def step(x):
    # TODO 1: double it.  (1 line)
    # BEGIN SOLUTION
    y = 2 * x
    # STARTER: y = x
    # END SOLUTION
    # TODO 2: add the "one" of \\ all.  (2 lines)
    # BEGIN SOLUTION
    one = 1
    y += one
    # END SOLUTION
    return y
"""


def test_the_solution_gives_way_to_the_starter_or_to_an_error_that_names_the_todo() -> None:
    made = cut(GOOD)
    assert "SOLUTION" not in made and "STARTER" not in made and "2 * x" not in made
    assert "    # TODO 1: double it.  (1 line)\n    y = x\n" in made
    scope: dict = {}
    exec(made, scope)
    with pytest.raises(NotImplementedError) as caught:
        scope["step"](1)
    assert str(caught.value) == 'TODO 2: add the "one" of \\ all'


@pytest.mark.parametrize(("kept", "result"), [({1, 2}, 7), ({2}, 4)])
def test_chosen_solutions_can_stay(kept: set[int], result: int) -> None:
    made = cut(GOOD, keep=lambda number: number in kept)
    assert "SOLUTION" not in made and "STARTER" not in made
    scope: dict = {}
    exec(made, scope)
    assert scope["step"](3) == result


BEGIN, END, ASK = "# BEGIN SOLUTION", "# END SOLUTION", "# TODO 1: this."
WRONG = {
    "nested": ([ASK, BEGIN, BEGIN, END, END], 3, "begins inside another"),
    "unnumbered": (["# TODO: this.", BEGIN, END], 2, "without a number"),
    "without a todo": (["x = 1", BEGIN, END], 2, "without a number"),
    "never ends": (["", ASK, BEGIN, "x = 1"], 3, "never ends"),
    "twice": ([ASK, BEGIN, END, ASK, BEGIN, END], 4, "twice"),
    "stray end": (["x = 1", END], 2, "never began"),
    "no solution": (["", ASK, "x = 1"], 2, "has no solution"),
    "todo inside": ([ASK, BEGIN, "# TODO 2: that.", END], 3, "a TODO inside a solution"),
    "stray starter": ([ASK, "# STARTER: x = 1", BEGIN, END], 2, "is no mark here"),
    "more behind it": ([ASK, "# BEGIN SOLUTION (1 line)", END], 2, "is no mark here"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mark_is_named_with_file_and_line(name: str) -> None:
    lines, at, words = WRONG[name]
    with pytest.raises(ScaleoutError) as caught:
        cut("\n".join(lines), "solutions/x/runme.py")
    assert str(caught.value).startswith(f"solutions/x/runme.py, line {at}: ")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_wrong_mark_stops_the_command_before_it_writes(workshop: Path) -> None:
    lines, at, _ = WRONG["nested"]
    before = (workshop / "labs/00_tiny/runme.py").read_text()
    (workshop / "solutions/00_tiny/runme.py").write_text("\n".join(lines))
    with pytest.raises(ScaleoutError, match=rf"solutions/00_tiny/runme\.py, line {at}: "):
        generate()
    assert (workshop / "labs/00_tiny/runme.py").read_text() == before


def _book(*sources: str) -> str:
    cells = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {"tags": ["tour"], "execution": {"shell.execute_reply": "now"}},
            "source": source.splitlines(keepends=True),
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["42\n"]}],
            "execution_count": i,
        }
        for i, source in enumerate(sources, 1)
    ]
    cells.append(
        {
            "cell_type": "markdown",
            "id": "m",
            "metadata": {},
            "source": ["# BEGIN SOLUTION is a mark"],
        }
    )
    return json.dumps(
        {"cells": cells, "metadata": {"language_info": {}}, "nbformat": 4, "nbformat_minor": 5}
    )


def test_notebooks_lose_solutions_and_outputs_and_keep_the_rest(workshop: Path) -> None:
    source = (
        "# TODO 1: say it — aloud.\n# BEGIN SOLUTION\nprint(42)\n# STARTER: pass\n# END SOLUTION"
    )
    (workshop / "solutions/00_tiny.ipynb").write_text(_book("x = 1", source))
    assert generate() == ["notebooks/00_tiny.ipynb"]
    made = json.loads((workshop / "notebooks/00_tiny.ipynb").read_text())
    master = json.loads((workshop / "solutions/00_tiny.ipynb").read_text())
    first, second, text = made["cells"]
    assert "".join(second["source"]) == "# TODO 1: say it — aloud.\npass\n"
    for cell in (first, second):
        assert (
            cell["outputs"] == []
            and cell["execution_count"] is None
            and cell["metadata"] == {"tags": ["tour"]}
        )
    assert text == master["cells"][2] and "".join(first["source"]) == "x = 1"
    assert {k: v for k, v in made.items() if k != "cells"} == {
        k: v for k, v in master.items() if k != "cells"
    }
    assert generate() == []


def test_generated_files_are_in_step_and_the_check_writes_nothing(workshop: Path) -> None:
    assert generate(only_check=True) == []
    files = ["labs/00_tiny/runme.py", "labs/00_tiny/checks.py"]
    for name in files:
        path = workshop / name
        good = path.read_bytes()
        for bad in (good + b"#", good.replace(b"\n", b"\r\n"), b"\xff"):
            path.write_bytes(bad)
            assert generate(only_check=True) == [name]
            assert path.read_bytes() == bad
        path.unlink()
        assert generate(only_check=True) == [name]
        path.write_bytes(good)
    assert generate(only_check=True) == []


def test_an_edited_runme_is_kept_when_the_labs_are_made_anew(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = workshop / "labs/00_tiny/runme.py"
    for count in (1, 2):
        mine.write_text(f"my work, {count}\n")
        assert generate() == ["labs/00_tiny/runme.py"]
        assert f"Kept: labs/00_tiny/runme.kept-{count}.py" in capsys.readouterr().out
    assert (workshop / "labs/00_tiny/runme.kept-1.py").read_text() == "my work, 1\n"
    assert (workshop / "labs/00_tiny/runme.kept-2.py").read_text() == "my work, 2\n"
    assert "TODO 1" in mine.read_text()


def test_an_edited_notebook_is_kept_when_its_master_changes(workshop: Path) -> None:
    master, mine = workshop / "solutions/00_tiny.ipynb", workshop / "notebooks/00_tiny.ipynb"
    master.write_text(_book("guess = None"))
    generate()
    master.write_text(_book("guess = None  # a number"))
    generate()
    assert not list(mine.parent.glob("*kept*"))  # nobody had touched it
    mine.write_text("{half")
    generate()
    assert (workshop / "notebooks/00_tiny.kept-1.ipynb").read_text() == "{half"


def test_nothing_of_an_attendee_is_removed(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [
        "labs/00_tiny/mine.py",
        "labs/00_tiny/runme.kept-1.py",
        "notebooks/scratch.ipynb",
        "notebooks/00_tiny-Copy1.ipynb",
    ]
    for name in own:
        (workshop / name).write_text("mine")
    assert generate(only_check=True) == []
    shutil.copytree(workshop / "labs/00_tiny", workshop / "labs/08_gone")
    (workshop / "notebooks/08_gone.ipynb").write_text("{}")
    stale = ["labs/08_gone/checks.py", "notebooks/08_gone.ipynb"]
    assert generate(only_check=True) == stale
    assert generate() == []
    said = capsys.readouterr().out
    for name in stale:
        assert f"{name} has no master" in said
    for name in [*own, *stale]:
        assert (workshop / name).exists()


def test_a_class_without_solutions_has_everything_but_the_masters(workshop: Path) -> None:
    start = workshop / "class-copy/starts/00_tiny/runme.py"
    start.parent.mkdir(parents=True)
    start.write_text((workshop / "labs/00_tiny/runme.py").read_text())
    shutil.rmtree(workshop / "solutions")
    with pytest.raises(ScaleoutError, match="solutions/ is missing"):
        generate()
    mine = workshop / "labs/00_tiny/runme.py"
    mine.write_text("my work\n")
    assert "as new" in masters.reset("tiny")
    assert "TODO 1" in mine.read_text()
    assert checks.hint(lab("00_tiny"), 1).startswith("Hint 1 of 2")


def test_reset_brings_back_a_runme_that_was_removed(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = workshop / "labs/00_tiny/runme.py"
    fresh = mine.read_text()
    mine.unlink()
    with pytest.raises(ScaleoutError, match="type  scaleout reset 00_tiny"):
        lab("00_tiny")
    masters.reset("00_tiny")
    assert mine.read_text() == fresh
    mine.write_text("my work\n")
    lab("00_tiny").reset()
    assert "is as new" in capsys.readouterr().out and mine.read_text() == fresh


@pytest.mark.mpi
def test_the_untouched_lab_runs_whatever_runme_has_become(workshop: Path) -> None:
    master = workshop / "solutions/00_tiny/runme.py"
    master.write_text("from beside import word\nprint(word)\n" + master.read_text())
    master.with_name("beside.py").write_text("word = 'from beside'\n")
    generate()
    (workshop / "labs/00_tiny/runme.py").write_text("print('mine')\n")
    with pytest.raises(JobFailed) as caught:
        lab("00_tiny").start.run(ranks=1, threads=1, echo=False)
    said = caught.value.run
    assert (
        "results/00_tiny/start/runme.py" in said.command.replace("mine/", "results/")
        and "[0] from beside" in said.output
    )
    assert "TODO 2" in said.output and "mine" not in said.output


SECOND = "# TODO 3: say it.\n# BEGIN SOLUTION\nprint(1)\n# STARTER: pass\n# END SOLUTION\n"


@pytest.fixture
def second(workshop: Path) -> Path:
    """A second script with a gap, in labs/."""
    (workshop / "solutions/00_tiny/more.py").write_text(SECOND)
    generate()
    return workshop / "labs/00_tiny/more.py"


def test_a_second_script_with_gaps_is_cut_and_comes_back(second: Path, workshop: Path) -> None:
    assert second.read_text() == "# TODO 3: say it.\npass\n"
    assert generate(only_check=True) == []
    second.write_text("my work\n")
    said = masters.reset("00_tiny")
    assert "labs/00_tiny/runme.py is as new. " in said
    assert said.endswith("more.py is as new. The old one is labs/00_tiny/more.kept-1.py.")
    assert second.read_text() == "# TODO 3: say it.\npass\n"


def test_hints_come_one_at_a_time_and_the_last_stays(workshop: Path, results: Path) -> None:
    tiny = lab("00_tiny")
    assert checks.hint(tiny, 1) == "Hint 1 of 2: The communicator knows."
    assert checks.hint(tiny, 2) == "Hint 1 of 2: One call."
    for _ in range(2):
        assert checks.hint(tiny, 1) == "Hint 2 of 2: rank = comm.Get_rank()"
    (results / "00_tiny/hints.json").write_text("{half")
    assert checks.hint(tiny, 1) == "Hint 1 of 2: The communicator knows."


def _states(name: str = "00_tiny", number: int | None = None) -> list[tuple[int, str]]:
    return [(result.number, result.state) for result in checks.check(lab(name), number)]


@pytest.mark.mpi
def test_a_check_says_not_started_then_not_yet_then_passed(workshop: Path) -> None:
    mine = workshop / "labs/00_tiny/runme.py"
    assert _states() == [(1, "not started"), (2, "not started")]
    mine.write_text(mine.read_text().replace("rank = 0", "rank = 1"))
    assert _states() == [(1, "not judged"), (2, "not started")]
    mine.write_text(
        mine.read_text().replace(
            'raise NotImplementedError("TODO 2: add up the numbers of all ranks")', "total = rank"
        )
    )
    assert _states() == [(1, "not yet"), (2, "not yet")]
    mine.write_text(
        cut((workshop / "solutions/00_tiny/runme.py").read_text(), keep=lambda number: True)
    )
    assert _states() == [(1, "passed"), (2, "passed")]
    assert _states(number=2) == [(2, "passed")]


@pytest.mark.mpi
def test_in_the_short_form_a_job_runs_again_only_after_an_edit(
    workshop: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "1")

    def jobs() -> int:
        return len([f for f in (results / "00_tiny").iterdir() if f.is_dir()])

    assert _states(number=1) == [(1, "not started")] and _states(number=2) == [(2, "not started")]
    assert jobs() == 1
    solution = (workshop / "solutions/00_tiny/runme.py").read_text()
    (workshop / "labs/00_tiny/runme.py").write_text(cut(solution, keep=lambda number: True))
    assert _states(number=1) == [(1, "passed")] and _states(number=2) == [(2, "passed")]
    assert jobs() == 2


@pytest.mark.mpi
@pytest.mark.parametrize("wrong", ["open('gone.png')", "{}['x']"])
def test_what_a_check_does_not_find_is_no_traceback(workshop: Path, wrong: str) -> None:
    mine = workshop / "labs/00_tiny/checks.py"
    text = mine.read_text().replace("    total = job", f"    {wrong}\n    total = job", 1)
    mine.write_text(text)
    result = next(checks.check(lab("00_tiny"), 1))
    assert result.state == "not yet" and "left no complete record (" in result.what


def test_a_bug_in_a_check_shows_as_one(workshop: Path) -> None:
    mine = workshop / "labs/00_tiny/checks.py"
    mine.write_text(mine.read_text().replace("    total = job", "    1 / 0\n    total = job", 1))
    with pytest.raises(ZeroDivisionError):
        next(checks.check(lab("00_tiny"), 1))


@pytest.mark.mpi
def test_a_check_of_a_lab_that_waits_for_ever_ends(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHECK_TIMEOUT_S", 2.0)
    (workshop / "labs/00_tiny/runme.py").write_text(
        "from mpi4py import MPI\nMPI.COMM_WORLD.recv(source=0)\n"
    )
    results = [*checks.check(lab("00_tiny"))]
    assert [result.state for result in results] == ["not judged", "not judged"]
    assert (
        "came to no end in 2 s" in results[0].what
        and "waits for a message that nobody sends" in results[0].what
    )


def test_what_editors_and_jupyter_leave_beside_files_is_no_part_of_the_course(
    workshop: Path, scaleout
) -> None:
    """`make test` after a used `make lab`."""
    book = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    (workshop / "solutions/00_tiny.ipynb").write_text(book)
    generate()
    for folder in ("labs/00_tiny", "solutions/00_tiny", "solutions/00_tiny/more"):
        here = workshop / folder
        (here / ".ipynb_checkpoints").mkdir(parents=True)
        (here / ".ipynb_checkpoints/runme-checkpoint.py").write_text("")
        (here / "__pycache__").mkdir()
        for name in (
            "runme-Copy1.py",
            ".runme.py.swp",
            "runme.py~",
            "#runme.py#",
            "runme.kept-1.py",
        ):
            (here / name).write_text("# TODO 1: and more.\n")
        (here / ".#runme.py").symlink_to("nowhere")
    for folder in ("labs", "notebooks", "solutions"):
        (workshop / folder / ".ipynb_checkpoints").mkdir()
        (workshop / folder / "00_tiny-Copy1.ipynb").write_text("no notebook")
    assert generate(only_check=True) == []
    assert list(masters.untouched("00_tiny")) == ["runme.py"]
    assert scaleout("exercises", "--check").returncode == 0
    done = scaleout("reset", "00_tiny")
    assert done.returncode == 0 and done.stdout.count("is as new") == 1
