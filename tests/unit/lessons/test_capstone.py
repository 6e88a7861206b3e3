"""12: the phantoms, the split, the loss and the Dice, and the slices that are refused."""

import argparse
import sys

import numpy as np
import pandas as pd
import pytest
from helpers import lesson, read_figure

from scaleout import Comparison, lab

TOPIC = lab("12_capstone", solution=True)


@pytest.fixture(scope="module")
def runme():
    """The solution's runme.py; it imports TensorFlow."""
    pytest.importorskip("tensorflow")
    sys.path.insert(0, str(TOPIC.folder))
    beside = ("bookkeeping", "phantoms", "unet")
    try:
        yield TOPIC.module("runme")
    finally:
        sys.path.remove(str(TOPIC.folder))
        for name in beside:
            sys.modules.pop(name, None)


@pytest.fixture
def phantoms():
    return TOPIC.module("phantoms")


def test_a_patient_is_always_the_same_and_another_with_another_seed(phantoms) -> None:
    few, more = phantoms.make(3, seed=1), phantoms.make(4, seed=1)
    assert np.array_equal(few.images, more.images[: len(few.images)])
    assert np.array_equal(few.labels, more.labels[: len(few.labels)])
    assert not np.array_equal(few.images, phantoms.make(3, seed=2).images)


def test_half_of_the_tumours_differ_from_their_surroundings_by_less_than_the_noise_of_ct(
    phantoms,
) -> None:
    slices = phantoms.make(16)
    above: dict[bool, list[float]] = {True: [], False: []}
    for number in range(16):
        own = slices.patient == number
        inside = slices.labels[own][..., 0] == 1
        ct = slices.images[own][..., 0]
        near = (ct > -50) & (ct < 200) & ~inside
        above[phantoms.hidden(number)].append(ct[inside].mean() - ct[near].mean())
    assert np.mean(above[True]) < phantoms.CT_NOISE < min(above[False])
    numbers = np.arange(phantoms.PATIENTS)
    for part in range(4):
        assert np.mean([phantoms.hidden(n) for n in numbers[numbers % 4 == part]]) == 0.5


def test_slices_of_one_patient_are_in_one_part(runme) -> None:
    patient = np.repeat(np.arange(10), 8)
    part = runme.parts_of(patient)
    assert all(len(set(part[patient == number])) == 1 for number in range(10))
    assert set(part) == {0, 1, 2, 3}


def test_dice_and_jaccard_are_special_cases_of_tversky(runme) -> None:
    draw = np.random.default_rng(0)
    truth = (draw.random((3, 8, 8, 1)) < 0.2).astype(np.float32)
    guess = draw.random((3, 8, 8, 1)).astype(np.float32)
    both, sizes = (truth * guess).sum(), truth.sum() + guess.sum()
    dice = 1 - (2 * both + 2 * runme.SMOOTH) / (sizes + 2 * runme.SMOOTH)
    jaccard = 1 - (both + runme.SMOOTH) / (sizes - both + runme.SMOOTH)
    assert float(runme.tversky(truth, guess, 0.5, 0.5)) == pytest.approx(dice, abs=1e-5)
    assert float(runme.tversky(truth, guess, 1.0, 1.0)) == pytest.approx(jaccard, abs=1e-5)


def test_a_patient_without_a_tumour_has_a_dice_and_a_batch_without_one_a_loss(runme) -> None:
    dice = runme.dice_of(*np.array([[0, 0, 7], [0, 3, 0], [0, 0, 0]]))
    assert dice.tolist() == [1.0, 0.0, 1.0]
    none = np.zeros((2, 8, 8, 1), np.float32)
    assert float(runme.tversky(none, none, 0.3, 0.7)) == 0.0
    assert float(runme.tversky(none, none + 0.5, 0.3, 0.7)) > 0.5


def test_a_wrong_variant_ends_a_study_before_its_first_training(runme, monkeypatch) -> None:
    study, trained = TOPIC.module("study"), []
    monkeypatch.setattr(study.runme, "main", trained.append)
    asked = argparse.Namespace(variants=["channels=ct", "loss=nice"], seeds=1, epochs=1, patients=8)
    with pytest.raises(SystemExit):
        study.main(asked)
    assert trained == []
    study.main(argparse.Namespace(**{**vars(asked), "variants": ["channels=ct", "lr=0.1"]}))
    assert [training.channels for training in trained] == ["ct", "ct+pet"]


def test_a_part_that_the_ranks_cannot_share_is_refused_in_a_sentence(monkeypatch) -> None:
    bookkeeping, said = lesson("12_capstone", "bookkeeping"), []
    monkeypatch.setattr(bookkeeping, "refuse", said.append)
    bookkeeping.refuse_few(2, "validation", 2)
    assert said == []
    bookkeeping.refuse_few(0, "test", 1)
    assert said[0].startswith("1 rank cannot share 0 slices of the test: start fewer")


def broken(slices, what: str) -> None:
    """Spoil something in a file of slices."""
    if what == "odd":
        slices.images, slices.labels = slices.images[:, 1:], slices.labels[:, 1:]
    if what == "label":
        slices.labels = slices.labels * 2
    if what == "nan":
        slices.images[9, 5, 5, 1] = np.nan
    if what == "channels":
        slices.images = slices.images[..., :1]
    if what == "few":
        slices.patient = slices.patient * 0


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("odd", "multiples of 4, not 63 x 64"),
        ("label", "a label is 2: 1 stands for tumour"),
        (
            "nan",
            "slice 9 of patient 1 has a pixel that is no number (NaN or infinite), and it is one of 1",
        ),
        ("channels", "CT and PET, not (32, 64, 64, 1)"),
        ("few", "there must be 4 patients or more"),
    ],
)
def test_slices_that_cannot_be_learned_from_are_refused_in_a_sentence(
    phantoms, what: str, says: str
) -> None:
    slices = phantoms.make(4)
    assert phantoms.wrong_with(slices) == ""
    broken(slices, what)
    assert says in phantoms.wrong_with(slices)


def test_a_fused_network_gives_what_keras_gives(runme) -> None:
    unet = sys.modules["unet"]
    fused, plain = unet.network(fused=True), unet.network(fused=False)
    plain.set_weights(fused.get_weights())
    x = np.random.default_rng(0).random((2, 64, 64, 2)).astype(np.float32)
    assert np.allclose(fused(x, training=True), plain(x, training=True), atol=1e-3)
    gated = unet.network(attention=True, dropout=(0, 0.1, 0.2))
    assert gated.output_shape == (None, None, None, 1)
    assert gated.count_params() > fused.count_params()


def trained(phantoms, variant: str, seed: int, dice: float, second_s: float = 1.0) -> dict:
    """A record of a training whose outlines reach a pixel too far to the left, or of one that
    finds nothing."""
    slices = phantoms.make(16)
    judge = np.flatnonzero(slices.patient % 4 == 2)
    truth = slices.labels[judge].astype(bool)
    found = truth.copy()
    found[:, :, :-1] |= truth[:, :, 1:]
    found &= dice > 0.5
    counts = [pixels.sum((1, 2, 3)) for pixels in (found & truth, found & ~truth, ~found & truth)]
    patient = slices.patient[judge]
    shown = [int(np.flatnonzero(patient == number)[4]) for number in np.unique(patient)]
    shares = {"train_s": 6.0, "input_s": 2.0, "evaluation_s": 4.0}
    metrics = {
        "dice": [dice / 2, dice],
        "at_s": [3 * second_s, 4 * second_s],
        "test_dice": dice,
        "goal": 0.6,
        "validation": judge.tolist(),
        "counts": np.array(counts).tolist(),
        "found": [[row, np.flatnonzero(found[row]).tolist()] for row in shown],
        "shares": [shares],
    }
    if dice >= metrics["goal"]:
        metrics["reached_s"] = 4 * second_s
    return {
        "variant": variant, "seed": seed, "ranks": 2, "threads_per_rank": 1, "metrics": metrics
    }  # fmt: skip


def test_pet_is_worth_what_the_seeds_agree_on(phantoms) -> None:
    figures = lesson("12_capstone")
    rows = [trained(phantoms, "ct, tversky", seed, 0.4 + 0.01 * seed) for seed in range(4)]
    rows += [trained(phantoms, "ct+pet, tversky", seed, 0.8 - 0.01 * seed) for seed in range(4)]
    words = read_figure(
        figures.seeds(pd.DataFrame(rows), "ct, tversky", "ct+pet, tversky", guess=0.1, least=0.05)
    )
    assert "+0.370 Dice" in words and "4 seeds: more than 0.05" in words
    assert "your guess: +0.1 Dice" in words
    few = pd.DataFrame(rows[:1] + rows[4:5])
    assert "So few seeds" in figures.difference(few, "ct, tversky", "ct+pet, tversky")
    noisy = [trained(phantoms, "b", seed, dice) for seed, dice in enumerate((0.3, 0.5, 0.38, 0.46))]
    said = figures.difference(pd.DataFrame(rows[:4] + noisy), "ct, tversky", "b")
    assert "no difference shown" in said


def test_a_patient_is_drawn_with_both_outlines_and_the_worst_comes_first(phantoms) -> None:
    figures, slices = lesson("12_capstone"), phantoms.make(16)
    record = pd.DataFrame([trained(phantoms, "ct+pet, tversky", 0, 0.8)]).iloc[0]
    dice = figures.dice_of(record["metrics"]["counts"], np.repeat([2, 6, 10, 14], 8))
    lowest = min(dice, key=dice.get)
    words = read_figure(figures.dice_by_patient(record, slices, phantoms.hidden))
    assert f"for patient {lowest}, the lowest" in words
    assert f"patient {lowest} {dice[lowest]:.2f}" in read_figure(figures.worst(record, slices, 2))
    assert "patients 0, 1, 4, 5" in read_figure(figures.patients(slices, [0, 1, 4, 5]))


def test_time_to_the_goal_is_compared_seed_by_seed(phantoms) -> None:
    figures = lesson("12_capstone")
    rows = [trained(phantoms, "first", seed, 0.7, 3 + seed) for seed in range(3)]
    rows += [trained(phantoms, "mine", seed, 0.7, 1 + seed / 3) for seed in range(3)]
    both = pd.DataFrame(rows)
    words = read_figure(figures.time_to_goal(both, "first", "mine", guess=2))
    assert "3.00 times as fast as first (3.00 to 3.00), 3 seeds" in words
    assert "first 32 core-seconds" in figures.cost_in_words(both, "first", "mine")
    assert "mine takes 2 epochs" in figures.epochs_in_words(both, "first", "mine")
    never = pd.DataFrame([trained(phantoms, name, 0, 0.4) for name in ("first", "mine")])
    assert "With no seed" in figures.sooner(never, "first", "mine")
    assert "mine never gets there" in figures.epochs_in_words(never, "first", "mine")


def test_the_profile_counts_the_first_evaluation_too(phantoms) -> None:
    figures = lesson("12_capstone")
    record = pd.DataFrame([trained(phantoms, "first", 0, 0.7)]).iloc[0]
    assert figures.share_of(record, "evaluation_s") == pytest.approx(50)  # 2 x 4 of 16 s
    assert "most of it, 50 %, it evaluates" in read_figure(figures.profile(record, guess=60))


def test_small_tumours_are_told_from_large_ones(phantoms) -> None:
    figures = lesson("12_capstone")
    rows = [trained(phantoms, f"ct+pet, {loss}", 0, 0.8) for loss in ("dice", "tversky")]
    rows += [trained(phantoms, "ct+pet, jaccard", 0, 0.4)]
    words = read_figure(figures.sensitivity(pd.DataFrame(rows), guess="jaccard"))
    assert "dice 100 %, tversky 100 %, jaccard 0 %" in words
    assert "your guess: jaccard" in words


def test_a_step_helps_only_when_it_does_more_than_the_noise() -> None:
    figures = lesson("12_capstone")
    rates = {"first.py": 100.0, "+ evaluation": 200.0, "+ checkpoint": 201.0, "+ bf16": 150.0}
    rows = []
    for round_ in range(5):
        for variant, rate in rates.items():
            for again in (0, 1) if variant == "first.py" else (0,):
                wobble = 1 + 0.01 * ((round_ * 3 + again + len(variant)) % 5 - 2)
                row = {"round": round_, "variant": variant, "again": again, "unit": "slices/s"}
                rows.append({**row, "place": len(rows), "value": rate * wobble})
    found = Comparison(rows)
    words = read_figure(figures.waterfall(found, guess="evaluation"))
    assert "Not shown to help: checkpoint, bf16" in words
    noise, *lines = figures.steps_in_words(found).splitlines()
    assert noise.startswith("The noise: two equal epochs may differ by")
    assert [line.rsplit(", ")[-1] for line in lines] == [
        "helps.", "not shown to help.", "harms."
    ]  # fmt: skip
