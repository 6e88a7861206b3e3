"""Every topic: the solution passes its checks, the untouched lab fails each, and each check sees its own TODO."""

import json
import shutil
import time
from pathlib import Path

import pytest

from scaleout import exercises, lab
from scaleout.launch import JobFailed

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
TOPICS = sorted(path.parent.name for path in (ROOT / "solutions").glob("*/runme.py"))
TODOS = [
    pytest.param(topic, number, id=f"{topic}-{number}")
    for topic in TOPICS
    for number in exercises.numbers((ROOT / "solutions" / topic / "runme.py").read_text())
]
JOB_LIMIT_S = 120  # of a check's job, on a small and busy machine


@pytest.fixture
def copy(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop of its own with all masters, its labs made anew: what somebody wrote in labs/ plays no part."""
    for name in ("labs", "notebooks"):
        (tmp_path / "workshop" / name).mkdir(parents=True)
    shutil.copytree(ROOT / "solutions", tmp_path / "workshop/solutions", ignore=shutil.ignore_patterns("*.ipynb"))
    monkeypatch.chdir(tmp_path / "workshop")
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    exercises.generate()
    return tmp_path / "workshop"


@pytest.fixture(autouse=True)
def _every_job_ends(results: Path, no_process_left):
    yield
    for path in results.glob("*/*/run.json"):
        about = json.loads(path.read_text())
        assert about["status"] is not None, f"it had to be ended: {about['command']}"
        assert about["wall_s"] < JOB_LIMIT_S, f"{about['wall_s']} s: {about['command']}"
        no_process_left(about["id"])


def _states(topic: str, *, solution: bool = False, number: int | None = None) -> dict[int, str]:
    found = {}
    for result in exercises.check(lab(topic, solution=solution), number):
        print(result)
        found[result.number] = result.state
    return found


def test_there_are_topics() -> None:
    assert "00_welcome" in TOPICS and TODOS


@pytest.mark.parametrize("topic", TOPICS)
def test_every_todo_has_one_check_and_hints_from_vague_to_plain(topic: str, copy: Path) -> None:
    checks = exercises._checks(lab(topic, solution=True))
    asked = exercises.numbers((copy / "solutions" / topic / "runme.py").read_text())
    assert [check.todo for check in checks] == sorted(asked) == list(range(1, len(asked) + 1))
    for check in checks:
        assert len(check.hints) >= 2 and all(hint.strip() for hint in check.hints), check.__name__
        assert check.__doc__ and "\n" not in check.__doc__.strip(), f"{check.__name__}: what it expects, in one line"


@pytest.mark.parametrize("topic", TOPICS)
def test_the_solution_passes_every_check(topic: str, copy: Path) -> None:
    states = _states(topic, solution=True)
    assert states and set(states.values()) == {"passed"}, states


@pytest.mark.parametrize("topic", TOPICS)
def test_the_untouched_lab_fails_every_check(topic: str, copy: Path) -> None:
    states = _states(topic)
    assert states and "passed" not in states.values(), states


@pytest.mark.parametrize(("topic", "number"), TODOS)
def test_a_check_sees_when_its_own_todo_alone_is_not_done(topic: str, number: int, copy: Path) -> None:
    """All solutions in place but one: that one's check goes red."""
    master = (copy / "solutions" / topic / "runme.py").read_text()
    (copy / "labs" / topic / "runme.py").write_text(exercises.cut(master, keep=lambda other: other != number))
    assert _states(topic, number=number)[number] in ("not yet", "not started")


@pytest.mark.parametrize("topic", TOPICS)
def test_an_untouched_lab_ends_on_any_number_of_ranks(topic: str, copy: Path) -> None:
    """It runs as it stands, or says which TODO it waits for; it never hangs."""
    for ranks in (1, 2):
        start = time.monotonic()
        try:
            lab(topic, solution=False).run(ranks=ranks, threads=1, echo=False, timeout=JOB_LIMIT_S)
        except JobFailed as failed:
            assert "NotImplementedError: TODO " in failed.run.output, str(failed)
        assert time.monotonic() - start < JOB_LIMIT_S
