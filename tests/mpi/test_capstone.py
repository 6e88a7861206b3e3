"""12_capstone: what a file of slices must hold, our own steps on two ranks, and a story of steps."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers import flags, lesson, run_script

from scaleout import lab
from scaleout.base.errors import ScaleoutError
from scaleout.course.lab import Lab
from scaleout.jobs.job import JobFailed
from scaleout.reports import findings, gather

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = lab("12_capstone", solution=True)
READ = """
    import sys

    sys.path.insert(0, {folder!r})
    from bookkeeping import arguments, slices_for

    slices_for(arguments("", ["dice"]))
"""
OURS = ("evaluation", "gather", "fused")
AT_ONCE = """
    from mpi4py import MPI

    from scaleout import records


    def batches(slices, rows, draw):
        pass


    if MPI.COMM_WORLD.allreduce(1) and MPI.COMM_WORLD.rank == 0:
        records.write(
            lab="12_capstone", ranks=MPI.COMM_WORLD.size, rate=100.0, rate_unit="images/s"
        )
"""


def saved(file: Path, patients: int = 6, **other: np.ndarray) -> Path:
    """Write a file of slices, a part of them as given."""
    slices = lesson("12_capstone", "phantoms").cohort(patients, test=2)
    np.savez(file, **{**vars(slices), **other})
    return file


def test_a_patient_in_two_parts_is_refused_once_and_by_rank_0(
    tmp_path: Path, script, results: Path
) -> None:
    part = np.resize([0, 1], 8 * 12)
    file = saved(tmp_path / "slices.npz", part=part)
    with pytest.raises(JobFailed) as failed:
        run_script(script(READ.format(folder=str(TOPIC.folder))), f"--data={file}", ranks=2)
    said = failed.value.run.output
    assert said.count("patient 0 is in two parts: put all slices of a patient into one") == 1
    assert "Traceback" not in said


def test_our_steps_train_the_same_network_on_two_ranks(tmp_path: Path, results: Path) -> None:
    """All three edits on two ranks: the same slices, equal weights, and a Dice of each patient."""
    text = TOPIC.script.read_text()
    for name in OURS:
        text = TOPIC.module("ours/edit").edited(
            text, (TOPIC.folder / "ours" / f"{name}.py").read_text()
        )
    edited = tmp_path / "mine.py"
    edited.write_text(text)
    asked = {"epochs": 1, "data": saved(tmp_path / "slices.npz")}
    env = {"PYTHONPATH": str(TOPIC.folder)}
    ours = run_script(edited, *flags(asked), ranks=2, env=env, timeout=300.0)
    first = run_script(TOPIC.script, *flags(asked), ranks=2, timeout=300.0)
    assert len(ours.records) == len(first.records) == 1, ours.output + first.output
    mine, before = ours.records["metrics"][0], first.records["metrics"][0]
    assert len({share["start"] for share in [*mine["shares"], *before["shares"]]}) == 1
    assert len({share["end"] for share in mine["shares"]}) == 1
    assert {"input", "step", "evaluation", "keeping"} < set(mine["shares"][0]["spent"])
    assert mine["train_s"] > 0 and len(mine["by_patient"]) == 2
    # Of one batch of slices the same pixels are seen, so the first losses are close.
    assert mine["loss"] == pytest.approx(before["loss"], rel=0.2)


@pytest.fixture
def topic(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], Lab]:
    """12 with a training that ends at once: topic(solution=True). Its steps are the real ones."""
    monkeypatch.setenv("SCALEOUT_QUICK", "1")

    def make(solution: bool) -> Lab:
        found = lab("12_capstone", solution=solution)
        found.script = tmp_path / "runme.py"
        found.script.write_text(textwrap.dedent(AT_ONCE).lstrip())
        return found

    return make


def test_a_step_is_measured_against_the_last_that_was_kept(
    topic: Callable[[bool], Lab], results: Path
) -> None:
    ours = topic(True)
    ladder = ours.module("steps").Ladder(ours)
    with pytest.raises(ScaleoutError, match="nothing to prove yet: take another one"):
        ladder.prove(guess=2)
    found = ladder.step("gather", guess=1.2)
    assert found.baseline == "first" and found.variants == ["gather"]
    assert ladder.kept == "gather", "in the short form all is kept"
    assert ladder.story == ["step-gather", "proof"]
    folder = results / "12_capstone" / "steps"
    assert "PICTURES" in (folder / "gather.py").read_text()
    assert (folder / "first.py").read_text() == ours.script.read_text()
    assert "PICTURES" not in ours.script.read_text(), "the solution's own script stays"
    again = ours.module("steps").Ladder(ours)
    assert list(again.steps) == ["first", "gather"]


def test_a_learners_first_step_changes_one_thing(topic: Callable[[bool], Lab]) -> None:
    """The loss that they have filled in stands in the baseline too, and comes back with it."""
    mine = topic(False)
    filled = mine.script.read_text()
    ladder = mine.module("steps").Ladder(mine)
    ladder.step("two ranks", guess=1.2, ranks=2)
    mine.script.write_text(filled + "EDITED = True\n")
    ladder.step("an edit", guess=1.2)
    story = findings.steps(gather.gather(ladder.story[:2]))
    changed = [
        findings.changes(one.baseline, one.setting(one.comparison.variants[0])) for one in story
    ]
    assert changed == [["ranks x threads"], ["the script"]]
    ladder.steps = {name: {**how, "kept": name == "first"} for name, how in ladder.steps.items()}
    ladder.back()
    assert mine.script.read_text() == filled
