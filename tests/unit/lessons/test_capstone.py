"""12: the phantoms, the loss and the Dice, the slices that are refused, our edits, and the figures."""

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import compared, lesson, read_figure

from scaleout import Comparison, ScaleoutError, lab
from scaleout.comparisons.intervals import Ratio

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
    assert "evaluation       44 %   at most 1.80 times as fast" in figures.bounds(frame.iloc[0])


def test_small_tumours_are_told_from_large_ones(phantoms) -> None:
    figures = lesson("12_capstone")
    both = {name: pd.DataFrame([record(phantoms, dice)]) for name, dice in
            (("dice", 0.5), ("tversky", 0.75))}  # fmt: skip
    words = read_figure(figures.found_by_size(both, guess="tversky"))
    assert "dice: 49 % of the smallest, Dice 0.50, 1 false alarm; tversky: 76 % of" in words
    numbers = figures.sizes_of(both["dice"].iloc[0])
    for guess, place in (("tversky", 0.05), ("dice", 0.0), ("neither", 0.05)):
        figure = figures.found_by_size(both, guess=guess)
        stars = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
        assert stars[0].get_xdata()[0] == pytest.approx(place), "where the marker of the name is"
    assert sum(numbers.values()) == 10 and f"up to 150 ({numbers['up to 150']} patient" in words


def test_stored_seeds_tell_a_difference_only_where_it_is_one(phantoms) -> None:
    figures = lesson("12_capstone")
    rows = pd.DataFrame(
        record(phantoms, dice + 0.01 * seed + add * (seed % 2 - 0.5), seed, name)
        for name, dice, add in (("dice", 0.5, 0), ("tversky", 0.7, 0), ("noisy", 0.5, 0.1))
        for seed in range(5)
    )
    said = figures.over_seeds(rows, "dice", "tversky")
    assert said.startswith("tversky beside dice, 5 stored seeds: +0.200 Dice (+0.2 to +0.2);")
    assert said.endswith("5 false alarms in place of 5, in all 8 patients without a tumour.")
    assert "Dice (-0.0" in (noisy := figures.over_seeds(rows, "dice", "noisy"))
    assert noisy.count("no difference is shown") == 2
    assert "too few stored seeds" in figures.over_seeds(rows[rows.seed == 0], "dice", "noisy")


def test_the_worst_patients_are_told_from_the_record(phantoms) -> None:
    said = lesson("12_capstone").of_the_worst(record(phantoms, 0.5), phantoms)
    assert said.startswith("Of the 5 worst patients of the last seed, CT hides the tumour of ")


def a_step(old: dict[str, float], new: dict[str, float], ratio: Ratio) -> Any:
    """A comparison whose jobs have spent these seconds, on as many ranks as there are names."""
    rows = [
        {"variant": name, "metrics": {"shares": [{"spent": {**spent, "first step": 9.0}}] * ranks}}
        for name, spent, ranks in (("first", old, 1), ("mine", new, 2))
    ]
    return SimpleNamespace(
        baseline="first", records=pd.DataFrame(rows), ratio=lambda _: ratio,
        runs=pd.DataFrame({"run_id": ["a", "b"]}),
    )  # fmt: skip


OLD = {"input": 4.0, "step": 2.0, "evaluation": 4.0, "keeping": 0.0}


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (Ratio(1.5, 1.4, 1.6, 5), "at most 1.67 times as fast."),
        (Ratio(1.6, 1.5, 1.7, 5), "The interval holds this bound"),
        (Ratio(1.9, 1.8, 2.0, 5), "More came than that"),
    ],
)
def test_a_step_tells_its_bound_beside_its_gain(steps: ModuleType, ratio: Ratio, says: str) -> None:
    found = a_step(OLD, {**OLD, "evaluation": 1.0}, ratio)
    said = steps.bound(found, "mine")
    assert said.startswith("It has saved most in evaluation, which had 40 % of the time of first")
    assert says in said
    assert "No part takes less time" in steps.bound(a_step(OLD, OLD, ratio), "mine")


def test_the_profile_of_two_ranks_stands_below_that_of_one(phantoms) -> None:
    found = a_step(OLD, {**OLD, "input": 2.0, "step": 5.0}, Ratio(0.8, 0.7, 0.9, 5))
    words = read_figure(lesson("12_capstone").side_by_side(found, "mine"))
    assert "mine, rank 0: training steps 2.0 s before, 5.0 s with it; input 4.0 s before" in words
    assert "mine, rank 1" in words


def test_the_goal_is_that_of_the_machine(
    steps: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    for isa, goal in (
        (("avx2",), "oneDNN off by default, bf16 not native: the goal is 3 times"),
        (("avx2", "avx512f", "avx512_vnni"), "oneDNN on by default, bf16 not native: the goal is 2.5"),
        (("avx2", "avx512f", "avx512_bf16"), "bf16 native: the goal is 2.5 times"),
        (("avx2", "avx512f", "amx_tile", "amx_bf16"), "AMX, oneDNN on by default, bf16 native: the goal is 4"),
    ):  # fmt: skip
        monkeypatch.setattr(steps.machine, "facts", lambda isa=isa: SimpleNamespace(isa=isa))
        assert goal in steps.goal()


def test_ranks_are_drawn_of_the_largest_machine_only_if_it_is_larger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = lesson("12_capstone")
    two = {"first written": 1.0, "tuned, 1 rank": 3.0, "tuned, 2 ranks": 2.0}
    small = SimpleNamespace(name="a laptop", found=compared(two))
    large = SimpleNamespace(name="a server", found=compared({**two, "tuned, 16 ranks": 5.0}))
    assert figures.on_more_cores([small]) is None
    assert " on 2 ranks" in capsys.readouterr().out
    words = read_figure(figures.on_more_cores([small, large]))
    assert "a server: the tuned training is fastest on 16 ranks." in words


def test_the_run_on_two_nodes_is_told_from_its_record() -> None:
    shares = [{"end": "abc"}, {"end": "abc"}]
    row = {"ranks": 2, "nodes": 2, "metrics": {"shares": shares}, "metrics.dice": 0.8}
    two_nodes = lesson("12_capstone").two_nodes
    assert "2 ranks on 2 nodes of the small Slurm: Dice 0.80" in two_nodes(pd.DataFrame([row]))
    shares[1]["end"] = "abd"
    assert "NOT the same weights" in two_nodes(pd.DataFrame([row]))


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
    module = TOPIC.module

    def __init__(self, folder: Path) -> None:
        self.folder, self.script = folder, folder / "runme.py"
        self.jobs = 0
        self.asked: dict[str, Any] = {}

    def run(self, script: str, ranks: int = 1, **more: Any) -> float:
        self.jobs, self.asked = self.jobs + 1, more
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


def test_a_step_needs_a_guess_and_a_change(steps: ModuleType, training: Training) -> None:
    ladder = steps.Ladder(training)
    before = files_of(ladder)
    training.edit(150)
    with pytest.raises(ScaleoutError, match="Your guess comes first: how many times as fast"):
        ladder.step("mine", guess=None)
    training.edit(100)
    with pytest.raises(ScaleoutError, match="is that of first, and starts as it: edit a function"):
        ladder.step("mine", guess=1.2)
    assert files_of(ladder) == before and training.jobs == 0


def test_the_ladder_says_where_it_goes_on(
    steps: ModuleType, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    steps.Ladder(training, env={"A": "1"})
    training.edit(200)  # before the first step: what the ladder began with stays
    assert "is kept as first" in capsys.readouterr().out
    ladder = steps.Ladder(training)
    assert "Going on from the steps that were taken: none. Kept: first." in capsys.readouterr().out
    assert (ladder.folder / "first.py").read_text() == "100\n"
    assert ladder.steps["first"]["env"] == {"A": "1"}


def test_the_proof_is_shown_as_it_was_measured(steps: ModuleType, training: Training) -> None:
    found = climbed(steps, training).prove(guess=3)
    assert training.asked["test"] == 100 and training.asked["epochs"] == 12
    jobs = training.jobs
    again = steps.Ladder(training).prove(guess=3)
    assert training.jobs == jobs and again.ratio("mine").middle == found.ratio("mine").middle
    ladder = steps.Ladder(training)
    training.edit(300)
    ladder.step("mine 3", guess=1.2)
    jobs = training.jobs
    ladder.prove(guess=3)
    assert training.jobs > jobs, "another version was kept, so it is proved anew"


def test_a_step_that_may_harm_is_not_kept(
    steps: ModuleType, training: Training, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ladder = climbed(steps, training)
    training.edit(300)
    with monkeypatch.context() as patch:
        patch.setattr(steps.Ladder, "_harms", lambda *_: True)
        ladder.step("bf16", guess=1.5, dice=True)
    assert training.asked["test"] == 100 and training.asked["epochs"] == 12
    assert "not kept, as more than 0.02 of the Dice may be lost" in capsys.readouterr().out
    training.edit(260)
    assert ladder.step("ranks again", guess=1.2).baseline == "mine 2"
    assert ladder.story == [
        *("step-two-ranks", "step-mine-1", "step-mine-2", "step-bf16"),
        *("step-ranks-again", "proof"),
    ]


def test_run_all_asks_for_the_ranks_again_that_were_measured(
    steps: ModuleType, training: Training
) -> None:
    ladder = climbed(steps, training)
    assert ladder.other_ranks("ranks again") == 1
    training.edit(500)  # so that one rank is faster than two were
    ladder.step("ranks again", guess=1.2, ranks=1)
    assert ladder.kept == "ranks again" and ladder.ranks == 1
    again, jobs = steps.Ladder(training), training.jobs
    again.step("ranks again", guess=1.2, ranks=again.other_ranks("ranks again"))
    assert training.jobs == jobs and again.kept == "ranks again"


def test_a_step_that_is_refused_stays_in_the_story(steps: ModuleType, training: Training) -> None:
    ladder = climbed(steps, training)
    training.edit(500)
    ladder.step("ranks again", guess=1.2, ranks=1)
    training.edit(200)  # and with the two ranks of the step before it
    with pytest.raises(ScaleoutError, match="edit a function"):
        ladder.step("ranks again", guess=1.2, ranks=2)
    assert ladder.kept == "ranks again" and "ranks again" in steps.Ladder(training).taken


def test_notes_keep_what_somebody_wrote(steps: ModuleType, training: Training) -> None:
    ladder = climbed(steps, training)
    notes = ladder.notes("Patient 1 is the worst.")
    lines = notes.read_text().splitlines()
    assert lines == [
        *("- **two ranks**", "- **mine 1**", "- **mine 2**", "- Patient 1 is the worst.")
    ]
    notes.write_text(notes.read_text().replace("**mine 1**", "**mine 1** asks once."))
    ladder.step("mine 2", guess=1.2)
    assert "- **mine 1** asks once.\n" in ladder.notes("Patient 1 is the worst.").read_text()
    assert len(notes.read_text().splitlines()) == 4


def test_our_page_says_of_a_slower_step_that_it_is(steps: ModuleType, training: Training) -> None:
    ladder = climbed(steps, training)
    training.edit(150)
    ladder.step("bf16", guess=1.5)
    (training.folder / "ours").mkdir()
    shutil.copy(TOPIC.folder / "ours" / "why.toml", training.folder / "ours")
    lines = ladder.notes().read_text().splitlines()
    assert lines[0].startswith("- **two ranks** share the input, which one process does")
    assert lines[1] == "- **mine 1**" and lines[3].startswith("- **bf16** is slower, although")


def test_we_say_something_of_each_of_our_steps() -> None:
    book = (TOPIC.folder.parent / "12_capstone.ipynb").read_text()
    told = tomllib.loads((TOPIC.folder / "ours" / "why.toml").read_text())
    taken = re.findall(r'ladder\.step\(\\"([^"\\]+)\\", guess=guess', book)
    assert set(taken) == set(told)
    assert all(how.keys() == {"kept", "slower", "left"} for how in told.values())


def test_larger_slices_have_four_times_as_many_pixels(
    steps: ModuleType, training: Training, phantoms
) -> None:
    found = climbed(steps, training).larger(guess=1.2)
    assert (found.baseline, found.variants) == ("one rank", ["two ranks"])
    with np.load(training.asked["data"]) as file:
        slices = phantoms.Slices(*(file[name] for name in ("images", "masks", "patient", "part")))
    assert slices.images.shape == (216, 128, 128, 2) and phantoms.wrong_with(slices) == ""
    small = phantoms.cohort(18)
    assert slices.masks.sum() == 4 * small.masks.sum(dtype=int)


def test_both_clocks_are_told(steps: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"round": n, "variant": name, "again": again, "value": train, "unit": "s"}
        | {"wall_s": train + 10.0, "run_id": f"{n}{name}{again}"}
        for n in range(5)
        for name, again, train in (
            ("first", 0, 40.0 + n),
            ("first", 1, 40.0 + n),
            ("mine", 0, 10.0),
        )
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    proof = Comparison(rows, lower=True, metric="train_s", folder=tmp_path)
    own, whole = steps.clocks(proof).splitlines()
    assert own.startswith("the training, by its own clock: 4.2")
    assert whole.startswith("the whole job, timed from outside: 2.6")
