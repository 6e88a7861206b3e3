"""12: the phantoms, the loss and the Dice, the slices that are refused, our edits, and the figures."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import lesson, read_figure

from scaleout import ScaleoutError, lab

TOPIC = lab("12_capstone", solution=True)


@pytest.fixture(scope="module")
def runme():
    """The solution's runme.py; it imports TensorFlow."""
    pytest.importorskip("tensorflow")
    sys.path.insert(0, str(TOPIC.folder))
    try:
        yield TOPIC.module("runme")
    finally:
        sys.path.remove(str(TOPIC.folder))
        for name in ("bookkeeping", "phantoms", "unet"):
            sys.modules.pop(name, None)


@pytest.fixture
def phantoms():
    return TOPIC.module("phantoms")


def test_a_patient_is_always_the_same_and_another_with_another_seed(phantoms) -> None:
    few, more = phantoms.cohort(6, seed=1), phantoms.cohort(7, test=1, seed=1)
    assert np.array_equal(few.images, more.images[: len(few.images)])
    assert np.array_equal(few.masks, more.masks[: len(few.masks)])
    assert not np.array_equal(few.images, phantoms.cohort(6, seed=2).images)


def test_half_of_the_tumours_hide_on_ct_and_fat_is_as_bright_on_pet(phantoms) -> None:
    slices = phantoms.cohort(48, test=0)
    above: dict[bool, list[float]] = {True: [], False: []}
    healthy = 0
    for number in np.unique(slices.patient):
        own = slices.patient == number
        inside = slices.masks[own][..., 0] == 1
        ct, pet = np.moveaxis(slices.images[own], -1, 0)
        healthy += not inside.any()
        if inside.any():
            near = (ct > -20) & ~inside
            above[phantoms.hidden(number)].append(ct[inside].mean() - np.median(ct[near]))
        fat = (ct < -20) & (pet > 0.45) & ~inside
        assert fat.any(), "each patient has a false friend"
    # A tumour lies in an organ or beside it, so single ones spread; their means do not.
    assert np.mean(above[False]) - np.mean(above[True]) > phantoms.CT_NOISE
    assert 0 < healthy < 24


def test_slices_of_one_patient_are_in_one_part_and_each_part_hides_some(phantoms) -> None:
    slices = phantoms.cohort(48, test=100)
    assert [len(slices.of(part)) for part in phantoms.PARTS] == [480, 96, 1200]
    for part in phantoms.PARTS:
        whose = np.unique(slices.patient[slices.of(part)])
        assert 0.4 < np.mean([phantoms.hidden(number) for number in whose]) < 0.6
    assert phantoms.wrong_with(slices) == ""


def test_dice_and_jaccard_are_special_cases_of_tversky(runme) -> None:
    draw = np.random.default_rng(0)
    masks = (draw.random((3, 8, 8, 1)) < 0.2).astype(np.float32)
    sure = draw.random((3, 8, 8, 1)).astype(np.float32)
    both, sizes = (masks * sure).sum(), masks.sum() + sure.sum()
    dice = 1 - (2 * both + 2 * runme.SMOOTH) / (sizes + 2 * runme.SMOOTH)
    jaccard = 1 - (both + runme.SMOOTH) / (sizes - both + runme.SMOOTH)
    assert float(runme.overlap_loss(masks, sure, 0.5, 0.5)) == pytest.approx(dice, abs=1e-5)
    assert float(runme.overlap_loss(masks, sure, 1.0, 1.0)) == pytest.approx(jaccard, abs=1e-5)


def test_a_patient_without_a_tumour_has_a_dice_and_a_batch_without_one_a_loss(runme) -> None:
    dice = sys.modules["bookkeeping"].dice_of(np.array([[0, 0, 0], [0, 3, 0], [4, 7, 5]]))
    assert dice.tolist() == [1.0, 0.0, pytest.approx(8 / 12)]
    none = np.zeros((2, 8, 8, 1), np.float32)
    assert float(runme.overlap_loss(none, none, 0.1, 0.9)) == 0.0
    assert float(runme.overlap_loss(none, none + 0.5, 0.1, 0.9)) > 0.5


def broken(slices, what: str) -> None:
    """Spoil something in a file of slices."""
    if what == "odd":
        slices.images, slices.masks = slices.images[:, 1:], slices.masks[:, 1:]
    if what == "label":
        slices.masks = slices.masks * 2
    if what == "nan":
        slices.images[9, 5, 5, 1] = np.nan
    if what == "nans":
        slices.images[9:12, 5, 5, 1] = np.nan
    if what == "channels":
        slices.images = slices.images[..., :1]
    if what == "two parts":
        slices.part[3] = 1
    if what == "nobody":
        slices.part[:] = 1
    if what == "empty":
        for name in vars(slices):
            setattr(slices, name, getattr(slices, name)[:0])


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("odd", "multiples of 4, not 63 x 64"),
        ("label", "a mask has 2: 1 stands for tumour"),
        ("nan", "slice 9 of patient 0 has a pixel that is no number (NaN or infinite): mend"),
        ("nans", "(NaN or infinite), as have 2 more: mend"),
        ("channels", "CT and PET, and at least one slice, not (72, 64, 64, 1)"),
        ("two parts", "patient 0 is in two parts"),
        ("nobody", "nobody is in part 0, train"),
        ("empty", "at least one slice, not (0, 64, 64, 2)"),
    ],
)
def test_slices_that_cannot_be_learned_from_are_refused_in_a_sentence(
    phantoms, what: str, says: str
) -> None:
    slices = phantoms.cohort(6)
    assert phantoms.wrong_with(slices) == ""
    broken(slices, what)
    assert says in phantoms.wrong_with(slices)


def test_a_slice_is_scaled_and_moved_as_ours_does_it(runme, phantoms, monkeypatch) -> None:
    """Our gather gives the same batches as the loop, slice by slice."""
    monkeypatch.setattr(runme.hvd, "rank", lambda: 0)
    monkeypatch.setattr(runme.hvd, "size", lambda: 1)
    slices = phantoms.cohort(6)
    ours = dict(vars(runme))
    exec((TOPIC.folder / "ours" / "gather.py").read_text(), ours)  # noqa: S102
    rows = slices.of("train")
    loop = next(runme.batches(slices, rows, np.random.default_rng(3)))
    gathered = next(ours["batches"](slices, rows, np.random.default_rng(3)))
    for one, other in zip(loop, gathered, strict=True):
        assert one.shape == other.shape and np.abs(one - other).mean() < 1e-3
    assert loop[0].min() >= -0.3 and loop[0].max() <= 1.3


def test_an_edit_takes_the_place_of_the_function_of_its_name() -> None:
    edited = TOPIC.module("ours/edit").edited
    text = "A = 1\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return one()\n"
    new = '"""Why."""\n\nimport math\n\n\n@math.cache\ndef help():\n    pass\n\n\ndef two():\n    return 2\n'
    found = edited(text, new)
    assert "def one():\n    return 1" in found and "return one()" not in found
    assert found.index("@math.cache") < found.index("def two") and found.endswith("return 2\n")
    compile(found, "edited", "exec")


def record(phantoms, dice: float, seed: int = 0, variant: str = "mine") -> dict:
    """A record of a training in which that share of each tumour is found, and in the third
    patient without a tumour there is a false alarm."""
    slices = phantoms.cohort(0, test=12, seed=seed)
    found, shown, healthy = [], [], 0
    for number in np.unique(slices.patient):
        true = slices.masks[slices.patient == number][..., 0].astype(int)
        pixels = int(true.sum())
        healthy += not pixels
        right = round(dice * pixels)
        found.append([right, right if pixels else 5 * (healthy == 1), pixels])
        most = int(true.sum(axis=(1, 2)).argmax())
        shown.append([int(number), most, np.flatnonzero(true[most]).tolist()])
    spent = {"input": 2.0, "first step": 1.0, "step": 3.0, "keeping": 0.0, "evaluation": 4.0}
    metrics = {"by_patient": found, "shown": shown, "dice": dice, "shares": [{"spent": spent}]}
    return {"variant": variant, "seed": seed, "metrics": metrics, "metrics.dice": dice}


def test_the_figures_tell_what_a_record_holds(phantoms) -> None:
    figures, frame = lesson("12_capstone"), pd.DataFrame([record(phantoms, 0.5)])
    dice = figures.dice_of(frame.iloc[0])
    words = read_figure(figures.dice_by_patient(frame.iloc[0], phantoms, guess=0.9))
    assert f"12 patients: a mean Dice of {dice.mean():.2f}, and 1 false alarm." in words
    assert "2 patients with a tumour and the lowest Dice" in read_figure(
        figures.worst(frame.iloc[0], phantoms, 2)
    )
    drawn = figures.patients(phantoms.cohort(6), [0, 2])
    assert "patients 0, 2" in read_figure(drawn)
    assert "Most of the time, 40 %, goes into evaluation. You said input." in read_figure(
        figures.profile(frame.iloc[0], guess="input")
    )
    assert "evaluation       40 %   at most 1.67 times as fast" in figures.bounds(frame.iloc[0])


def test_small_tumours_are_told_from_large_ones(phantoms) -> None:
    figures = lesson("12_capstone")
    both = {name: pd.DataFrame([record(phantoms, dice)]) for name, dice in
            (("dice", 0.5), ("tversky", 0.75))}  # fmt: skip
    words = read_figure(figures.found_by_size(both, guess="tversky"))
    assert "dice: Dice 0.50, 1 false alarm; tversky: Dice 0.75, 1 false alarm." in words


def test_quality_is_compared_seed_by_seed(phantoms) -> None:
    figures = lesson("12_capstone")
    rows = [record(phantoms, 0.70 + 0.01 * seed, seed, "first") for seed in range(5)]
    rows += [record(phantoms, 0.71 + 0.01 * seed, seed, "mine") for seed in range(5)]
    frame = pd.DataFrame([*rows, rows[0]])  # the first version runs twice with each seed
    words = read_figure(figures.by_seed(frame, "first", "mine", guess=-0.01))
    assert "mine: +0.010 Dice (+0.010 to +0.010), 5 seeds. You said -0.01." in words
    few = pd.DataFrame([rows[0], rows[5]])
    assert "So few seeds" in read_figure(figures.by_seed(few, "first", "mine"))


class Training:
    """A lab whose training gives the number in its script, times its ranks."""

    name = "12_capstone"

    def __init__(self, folder: Path) -> None:
        self.folder, self.script = folder, folder / "runme.py"
        self.jobs = 0

    def run(self, script: str, ranks: int = 1, **more: Any) -> float:
        self.jobs += 1
        return float(Path(script).read_text()) * ranks

    def edit(self, rate: int) -> None:
        self.script.write_text(f"{rate}\n")


@pytest.fixture
def steps() -> ModuleType:
    return TOPIC.module("steps")


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Training:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    monkeypatch.delenv("SCALEOUT_QUICK", raising=False)
    made = Training(tmp_path)
    made.edit(100)
    return made


def files_of(ladder: Any) -> dict[str, str]:
    """What lies in the folder of the steps, and what was compared."""
    places = [ladder.folder, ladder.folder.parents[1] / "compare"]
    found = [path for place in places for path in place.rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in found}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("first", "such as 'my first'."),
        ("First", "such as 'my First'."),
        ("two-ranks", "the same file as your step 'two ranks': give it another name"),
        ("Two Ranks", "such as 'Two Ranks again'."),
        ("!!!", "needs a letter or a digit"),
        ("", "needs a letter or a digit"),
    ],
)
def test_a_step_takes_no_other_steps_file(
    steps: ModuleType, training: Training, name: str, says: str
) -> None:
    ladder = steps.Ladder(training)
    ladder.step("two ranks", guess=1.5, ranks=2)
    before = files_of(ladder)
    training.edit(150)
    with pytest.raises(ScaleoutError) as refused:
        ladder.step(name, guess=1.2)
    assert says in str(refused.value)
    assert files_of(ladder) == before
    assert (ladder.folder / "first.py").read_text() == "100\n"


def climbed(steps: ModuleType, training: Training) -> Any:
    """A ladder of three steps, each faster than the one before."""
    ladder = steps.Ladder(training)
    ladder.step("two ranks", guess=1.5, ranks=2)
    for name, rate in (("mine 1", 150), ("mine 2", 200)):
        training.edit(rate)
        ladder.step(name, guess=1.2)
    return ladder


def test_run_all_shows_the_steps_as_they_were_measured(
    steps: ModuleType, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(climbed(steps, training))
    jobs = training.jobs
    ladder = steps.Ladder(training)
    capsys.readouterr()
    found = ladder.step("two ranks", guess=1.5, ranks=2)
    assert (found.baseline, found.variants, found.rounds) == ("first", ["two ranks"], 5)
    assert found.ratio("two ranks").middle == pytest.approx(2)
    said = capsys.readouterr().out
    assert "shown as it was measured" in said and "a new name: two ranks again." in said
    assert ladder.step("mine 1", guess=1.2).baseline == "two ranks"
    assert ladder.step("mine 2", guess=1.2).baseline == "mine 1"
    assert training.jobs == jobs and files_of(ladder) == before
    assert ladder.kept == "mine 2" and list(ladder.steps) == list(json.loads(
        ladder.file.read_text()
    ))  # fmt: skip


def test_a_step_in_the_middle_has_its_ranks(steps: ModuleType, training: Training) -> None:
    ladder = climbed(steps, training)
    before = files_of(ladder)
    for other in ({"ranks": 4}, {"ranks": 2, "env": {"A": "1"}}):
        with pytest.raises(ScaleoutError, match="of its own, such as 'two ranks again'"):
            ladder.step("two ranks", guess=1.5, **other)
    assert files_of(ladder) == before


def test_the_last_step_is_tried_again(steps: ModuleType, training: Training) -> None:
    """It takes its own place, nothing is lost, and back() does not undo what was measured."""
    ladder = climbed(steps, training)
    training.edit(120)
    found = ladder.step("mine 2", guess=1.2)
    assert found.verdict("mine 2") == "slower" and found.baseline == "mine 1"
    assert list(ladder.steps) == ["first", "two ranks", "mine 1", "mine 2"]
    assert ladder.kept == "mine 1" and (ladder.folder / "mine-2.py").read_text() == "120\n"
    assert [path.read_text() for path in (ladder.folder / "aside").iterdir()] == ["200\n"]
    ladder.back()
    jobs = training.jobs
    assert ladder.step("mine 2", guess=1.2).verdict("mine 2") == "slower"
    assert training.jobs == jobs and (ladder.folder / "mine-2.py").read_text() == "120\n"


def test_a_step_tried_again_and_interrupted_is_measured_whole(
    steps: ModuleType, training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    ladder = climbed(steps, training)
    training.edit(300)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "compare", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ladder.step("mine 2", guess=1.2)
    again = steps.Ladder(training)
    assert again.kept == "mine 1"
    assert again.step("mine 2", guess=1.2).ratio("mine 2").middle == pytest.approx(2)
    assert again.kept == "mine 2"
