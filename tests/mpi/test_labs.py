"""Every topic: the untouched lab fails each check, and each check sees its own TODO. That the
solution passes them all is proved by its master (tests/notebooks/test_masters.py)."""

import json
import re
import shutil
from pathlib import Path

import pytest

from scaleout import lab
from scaleout.course import checks
from scaleout.course.cutting import cut, numbers
from scaleout.course.masters import generate
from scaleout.jobs.job import JobFailed

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
TOPICS = sorted(path.parent.name for path in (ROOT / "solutions").glob("*/runme.py"))
TODOS = [
    pytest.param(topic, number, id=f"{topic}-{number}")
    for topic in TOPICS
    for number in numbers((ROOT / "solutions" / topic / "runme.py").read_text())
]
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
def _every_job_ends(results: Path, no_process_left):
    yield
    for path in results.glob("*/*/run.json"):
        about = json.loads(path.read_text())
        assert about["status"] is not None, f"it had to be ended: {about['command']}"
        no_process_left(about["id"])


def _states(topic: str, *, solution: bool = False, number: int | None = None) -> dict[int, str]:
    found = {}
    for result in checks.check(lab(topic, solution=solution), number):
        print(result)
        found[result.number] = result.state
    return found


def test_there_are_topics() -> None:
    assert "00_welcome" in TOPICS and TODOS


@pytest.mark.parametrize("topic", TOPICS)
def test_every_todo_has_one_check_and_hints_from_vague_to_plain(topic: str, copy: Path) -> None:
    marked = checks._checks(lab(topic, solution=True))
    asked = numbers((copy / "solutions" / topic / "runme.py").read_text())
    assert [check.todo for check in marked] == sorted(asked) == list(range(1, len(asked) + 1))
    for check in marked:
        assert len(check.hints) >= 2 and all(hint.strip() for hint in check.hints), check.__name__
        assert check.__doc__ and "\n" not in check.__doc__.strip(), (
            f"{check.__name__}: what it expects, in one line"
        )


@pytest.mark.parametrize("topic", TOPICS)
def test_the_untouched_lab_fails_every_check(topic: str, copy: Path) -> None:
    states = _states(topic)
    assert states and "passed" not in states.values(), states


@pytest.mark.parametrize(("topic", "number"), TODOS)
def test_a_check_sees_when_its_own_todo_alone_is_not_done(
    topic: str, number: int, copy: Path
) -> None:
    """All solutions in place but one: that one's check goes red."""
    master = (copy / "solutions" / topic / "runme.py").read_text()
    (copy / "labs" / topic / "runme.py").write_text(cut(master, keep=lambda other: other != number))
    assert _states(topic, number=number)[number] in ("not yet", "not started")


@pytest.mark.parametrize("topic", TOPICS)
def test_an_untouched_lab_ends_on_any_number_of_ranks(topic: str, copy: Path) -> None:
    """It runs as it stands, or says which TODO it waits for; it never hangs."""
    for ranks in (1, 2):
        try:
            run = lab(topic, solution=False).run(
                ranks=ranks, threads=1, echo=False, timeout=JOB_LIMIT_S
            )
        except JobFailed as failed:
            waits = re.search(r"^NotImplementedError: TODO (\d+)", failed.run.output, re.M)
            asked = numbers((copy / "solutions" / topic / "runme.py").read_text())
            assert waits and int(waits[1]) in asked, str(failed)
        else:
            assert run.status == 0 and len(run.records) > 0, run.output
