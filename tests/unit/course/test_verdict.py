"""Which TODO is blamed for a job that fails, and what the others are told."""

from pathlib import Path

import pytest

from scaleout import lab
from scaleout.course import checks, verdict
from scaleout.course.marks import cut
from scaleout.course.masters import generate

pytestmark = pytest.mark.mpi

UNWRITTEN = 'raise NotImplementedError("TODO 2: add up the numbers of all ranks")'


@pytest.fixture
def fill(workshop: Path):
    """Writes the lab with these lines in its two gaps: None leaves a gap as it was given out."""

    def write(first: str | None, second: str | None, before: str = "") -> list[verdict.Verdict]:
        mine = workshop / "labs/00_tiny/runme.py"
        text = mine.read_text()
        if first is not None:
            text = text.replace("rank = 0", first)
        if second is not None:
            text = text.replace(UNWRITTEN, second)
        mine.write_text(before + text)
        return [*checks.check(lab("00_tiny"))]

    return write


def test_a_crash_is_blamed_on_the_todo_at_its_line_and_hides_the_others(fill) -> None:
    first, second = fill("rank = comm.Get_rank()", "total = comm.allreduce(wrong)")
    assert (first.state, second.state) == ("not judged", "not yet")
    assert first.what.startswith("first mend TODO 2: line 14 of runme.py fails: NameError")
    assert "failed in line 14 of runme.py" in second.what and "Traceback" in second.what


def test_a_todo_that_nobody_has_touched_is_not_blamed(fill) -> None:
    first, second = fill("rank = wrong", None)
    assert (first.state, second.state) == ("not yet", "not started")
    assert "NameError" in first.what and second.what == "write it, then check again."


def test_a_crash_below_a_todo_is_blamed_on_the_one_that_was_touched(fill) -> None:
    first, _ = fill("rank = 'one'", "total = comm.allreduce(rank + 1)")
    assert first.state == "not judged" and "TypeError" in first.what


def test_a_crash_in_lines_as_they_were_given_out_is_blamed_on_those_that_were_not(
    workshop: Path, fill
) -> None:
    master = workshop / "solutions/00_tiny/runme.py"
    text = master.read_text().replace("# STARTER: rank = 0", "# STARTER: rank = None")
    master.write_text(text.replace("if comm.Get_rank() == 0:", "if rank + 1 == 1:"))
    generate()
    first, second = fill(None, "total = comm.allreduce(1)")
    assert (first.state, second.state) == ("not started", "not judged")
    assert second.what.startswith("TODO 1 is still open: write it first. Without it line 15 of")


def test_a_line_of_ones_own_is_known_without_its_mark(workshop: Path, fill) -> None:
    mine = workshop / "labs/00_tiny/runme.py"
    lines = mine.read_text().splitlines(keepends=True)
    mine.write_text("".join(line for line in lines if "# TODO 2" not in line))
    first, second = fill("rank = comm.Get_rank()", "total = comm.allreduce(wrong)")
    assert (first.state, second.state) == ("not judged", "not yet")


def test_a_file_that_python_cannot_read_starts_no_job(fill, results: Path) -> None:
    first, second = fill("rank = (comm.Get_rank()", None)
    assert (first.state, second.state) == ("not yet", "not started")
    assert first.what.startswith("Python cannot read line 11 of runme.py: SyntaxError: '(' was")
    assert first.what.endswith("\n    rank = (comm.Get_rank()")
    assert not list(results.glob("00_tiny/*/run.json"))


def test_two_versions_that_git_has_left_are_told_where_they_stand(fill) -> None:
    both = "<<<<<<< HEAD\nrank = comm.Get_rank()\n=======\nrank = 1\n>>>>>>> origin/main"
    first, second = fill(both, "total = comm.allreduce(rank + 1)")
    assert (first.state, second.state) == ("not yet", "not judged")
    assert first.what.startswith("in runme.py, git has left two versions in lines 11 to 15: keep")
    assert second.what.startswith("first mend TODO 1: in runme.py, git has left two versions")


def test_a_rank_that_waits_is_named_with_its_line_and_its_todo(
    fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHECK_TIMEOUT_S", 3600.0)  # ended before, or this test is
    first, second = fill("rank = comm.Get_rank()", "total = comm.recv() if rank == 0 else 9")
    assert (first.state, second.state) == ("not judged", "not yet")
    assert "\n    rank 0 waits in line 14: total = comm.recv() if rank == 0 else 9" in second.what
    assert "rank 0 waits in line 14" in first.what


def test_a_crash_in_native_code_is_blamed_by_its_line(fill) -> None:
    first, second = fill("rank = comm.Get_rank()", "import os; os.abort()")
    assert (first.state, second.state) == ("not judged", "not yet")
    assert "failed in line 14" in second.what


def test_what_a_lab_refuses_is_its_own_sentence(fill) -> None:
    refuse = "rank = comm.Get_rank()\nif rank == 0:\n    raise SystemExit('--steps: at least 1.')"
    first, second = fill(refuse + "\ncomm.Barrier()", "total = comm.allreduce(rank + 1)")
    assert "--steps: at least 1." in first.what and "Traceback" not in first.what
    assert (first.state, second.state) == ("not judged", "not judged")
    assert second.what == "the same job failed: see TODO 1."


def test_without_a_touched_todo_a_failure_is_still_told(workshop: Path) -> None:
    mine = workshop / "labs/00_tiny/runme.py"
    mine.write_text("raise OSError('no network')\n" + mine.read_text())
    said = [str(result) for result in checks.check(lab("00_tiny"))]
    assert any("no network" in text for text in said)


def test_the_solutions_are_judged_too(workshop: Path) -> None:
    master = workshop / "solutions/00_tiny/runme.py"
    master.write_text(master.read_text().replace("total = comm", "total = wrong"))
    assert cut(master.read_text())
    first, second = checks.check(lab("00_tiny", solution=True))
    assert (first.state, second.state) == ("not judged", "not yet")
