"""Every topic: the untouched lab fails each check. That a check sees its own TODO alone is proved by
test_wrong_fills.py, that the solution passes them all by its master (tests/notebooks), but for those
of shell scripts."""

import json
import re
import shutil
from pathlib import Path

import pytest

from scaleout import lab
from scaleout.base.paths import course_files
from scaleout.course import checks
from scaleout.course.marks import numbers
from scaleout.course.masters import SCRIPTS, generate
from scaleout.jobs.job import JobFailed

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
TOPICS = sorted(path.parent.name for path in (ROOT / "solutions").glob("*/runme.py"))
JOB_LIMIT_S = 240  # of a check's job, on a small and busy machine


@pytest.fixture
def copy(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop of its own with all masters, its labs made anew: what somebody wrote in labs/
    plays no part."""
    for name in ("labs", "notebooks"):
        (tmp_path / "workshop" / name).mkdir(parents=True)
    shutil.copytree(
        ROOT / "solutions",
        tmp_path / "workshop/solutions",
        ignore=shutil.ignore_patterns("*.ipynb"),
    )
    monkeypatch.chdir(tmp_path / "workshop")
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    generate()
    return tmp_path / "workshop"


@pytest.fixture(autouse=True)
def _every_job_ends(results: Path, no_process_left, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checks, "CHECK_TIMEOUT_S", JOB_LIMIT_S)
    yield
    for path in results.glob("*/*/run.json"):
        about = json.loads(path.read_text())
        if about["status"] is None:
            said = path.with_name("output.txt").read_text()[-4000:]
            pytest.fail(f"it had to be ended: {about['command']}\nIt said:\n{said}")
        no_process_left(about["id"])


@pytest.mark.parametrize("topic", TOPICS)
def test_every_todo_has_one_check_and_hints_from_vague_to_plain(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    marked = checks._checks(lab(topic, solution=True))
    folder = ROOT / "solutions" / topic
    scripts = course_files(folder, *SCRIPTS)
    where = {number: path.name for path in scripts for number in numbers(path.read_text())}
    asked = list(where)
    assert {check.todo: check.script for check in marked} == where
    assert [check.todo for check in marked] == sorted(asked) == list(range(1, len(asked) + 1))
    for check in marked:
        assert len(check.hints) >= 2 and all(hint.strip() for hint in check.hints), check.__name__
        assert check.__doc__ and "\n" not in check.__doc__.strip(), (
            f"{check.__name__}: what it expects, in one line"
        )


@pytest.mark.parametrize("topic", TOPICS)
def test_the_untouched_lab_fails_every_check_and_ends(topic: str, copy: Path) -> None:
    states = {found.number: found.state for found in checks.check(lab(topic, solution=False))}
    assert states and "passed" not in states.values(), states


SHELL = [
    pytest.param(path.parent.name, number, id=f"{path.parent.name}-{number}")
    for path in sorted((ROOT / "solutions").glob("*/*.sh"))
    for number in numbers(path.read_text())
]


@pytest.mark.parametrize(("topic", "number"), SHELL)
def test_the_solution_passes_the_check_of_a_shell_script(
    topic: str, number: int, copy: Path
) -> None:
    """No cell runs one: srun and scontrol have stand-ins."""
    (found,) = checks.check(lab(topic, solution=True), [number])
    assert found.state == "passed", found.what


@pytest.mark.choice
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("topic", TOPICS)
def test_the_untouched_lab_ends_on_one_rank_and_two(topic: str, ranks: int, copy: Path) -> None:
    """It runs as it stands, or says which TODO it waits for; it never hangs."""
    untouched = lab(topic, solution=False)
    try:
        run = untouched.run(ranks=ranks, threads=1, echo=False, timeout=JOB_LIMIT_S)
    except JobFailed as failed:
        waits = re.search(r"^NotImplementedError: TODO (\d+)", failed.run.output, re.M)
        asked = numbers((copy / "solutions" / topic / "runme.py").read_text())
        assert waits and int(waits[1]) in asked, str(failed)
    else:
        assert run.status == 0 and len(run.records) > 0, run.output
