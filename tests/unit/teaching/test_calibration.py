"""How far off a day's guesses were, and which of them most of a class had wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT

from scaleout import cli
from scaleout.teaching import calibration, classroom, collect
from scaleout.teaching.calibration import Guess

CAME = [0.47, 0.8, 1.02, 1.24, 1.9, 3.7, 22.0]


def day(*factors: float, unit: str = "times") -> list[Guess]:
    """A day on which each guess is so many times what came."""
    return [
        Guess("05_horovod", f"guess_{at}", factor * came, came, unit)
        for at, came in enumerate(CAME)
        for factor in factors
    ]


def keep(folder: Path, guesses: list[Guess]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"utc": "2026-11-29T08:00:00+00:00", **one._asdict()}) for one in guesses]
    (folder / calibration.FILE).write_text("".join(f"{line}\n" for line in lines))


def test_a_perfect_day_is_off_by_nothing() -> None:
    said = calibration.in_words(day(1))
    assert "7 guesses" in said and "half of 7 were within a factor of 1 of" in said
    assert "0 were too high, 0 too low" in said
    assert "6 of 6 lay on the right side of 1. (1 more came within 5 % of 1.)" in said
    assert "farthest" not in said and not any(one.wrong for one in day(1))


def test_a_day_of_halves_is_off_by_two_and_too_low() -> None:
    said = calibration.in_words(day(0.5))
    assert "half of 7 were within a factor of 2 of" in said and "0 were too high, 7 too low" in said
    # 0.62 of 1.24 and 0.95 of 1.9 lie on the other side
    assert "4 of 6 lay on the right side of 1." in said
    assert [one.wrong for one in day(0.5)] == [False, False, False, True, True, False, False]
    farthest = said.split("The farthest:\n")[1].splitlines()
    assert len(farthest) == 5
    assert "you said 0.235, and 0.470 came (times): 2.00 times too low" in farthest[0]


def test_the_farthest_come_first_and_tell_which_way() -> None:
    guesses = [*day(1.1), Guess("03_spmd", "guess_us", 5.0, 1000.0, "us")]
    said = calibration.in_words(guesses).split("The farthest:\n")[1].splitlines()
    assert said[0] == "  03 guess_us: you said 5.00, and 1,000 came (us): 200 times too low"
    assert said[1].endswith("1.10 times too high")


@pytest.mark.parametrize(
    ("guess", "came", "unit", "right"),
    [
        (1.1, 3.0, "times", True),
        (0.9, 3.0, "times", False),
        (1.0, 1.2, "times", False),
        (0.5, 0.9, "times", True),
        (2.0, 1.04, "times", None),
        (0.5, 0.97, "times", None),
        (0.9, 3.0, "ms", None),
        (0.0, 3.0, "times", None),
    ],
)
def test_the_side_of_one(guess: float, came: float, unit: str, right: bool | None) -> None:
    assert Guess("05_horovod", "guess_four", guess, came, unit).right_side is right


@pytest.mark.parametrize(
    ("guess", "came", "wrong"),
    [
        ("Error", "error", False),
        ("None", "error", True),
        (0.0, 0.0, False),
        (5.0, 0.0, True),
        (0.01, -0.008, True),
        (19.0, 10.0, False),
        (4.9, 10.0, True),
    ],
)
def test_words_and_zeros_are_right_or_wrong(
    guess: float | str, came: float | str, wrong: bool
) -> None:
    one = Guess("05_horovod", "guess_before", guess, came, "")
    assert one.wrong == wrong
    if one.off is None:
        assert f"{int(not wrong)} of 1 right" in calibration.in_words([one])


def test_a_day_of_words_has_no_factor_and_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    keep(tmp_path, [Guess("05_horovod", "guess_before", "0", "error", "")])
    assert cli.main(["guesses"]) == 0
    said = capsys.readouterr().out
    assert said == "You made 1 guess.\nWords, and numbers around 0: 0 of 1 right.\n"
    assert not (tmp_path / calibration.PICTURE).exists()


def test_the_command_draws_a_day_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    keep(tmp_path, [*day(1.3), Guess("03_spmd", "guess_us", 5.0, 1000.0, "us")])
    assert cli.main(["guesses"]) == 0
    assert "You made 8 guesses." in (said := capsys.readouterr().out)
    assert said.rstrip().endswith(calibration.PICTURE)
    assert (tmp_path / calibration.PICTURE).read_bytes().startswith(b"\x89PNG")


def test_without_a_guess_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    assert cli.main(["guesses"]) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith(
        "scaleout: No guess of yours is kept yet: open a notebook"
    )
    assert not [*tmp_path.iterdir()]


def test_the_picture_has_a_point_for_each_ratio_and_counts_all_numbers() -> None:
    guesses = [*day(0.9), Guess("03_spmd", "guess_us", 5.0, 1000.0, "us"),
               Guess("04_kmeans", "guess_same", "True", "False", "")]  # fmt: skip
    figure = classroom.guesses_picture(guesses)
    points, bars = figure.axes
    drawn = [line for line in points.lines if line.get_marker() in "os^"]
    assert sum(len(line.get_xdata()) for line in drawn) == 7
    assert np.isclose(sum(bar.get_height() for bar in bars.patches), 8)
    assert "7 of 8 numbers within a factor of 2" in figure.get_label()
    assert "6 of 6 ratios on the right side of 1" in figure.get_label()


@pytest.mark.parametrize(
    "changed",
    [
        {"notebook": "../x"},
        {"notebook": f"05_{'h' * 50}"},
        {"name": "<b>"},
        {"unit": 1},
        {"guess": "word"},
        {"guess": True},
        {"guess": 1e300},
        {"came": None},
        {"guess": "a\nb", "came": "b"},
    ],
)
def test_what_is_no_guess_is_left_out_and_said(tmp_path: Path, changed: dict[str, object]) -> None:
    good = {
        "notebook": "05_horovod",
        "name": "guess_four",
        "guess": 2,
        "came": 0.5,
        "unit": "times",
    }
    file = tmp_path / calibration.FILE
    file.write_text(f"{json.dumps(good)}\n{json.dumps(good | {'guess': 9})}\n")
    assert calibration.read(file) == ([Guess("05_horovod", "guess_four", 2, 0.5, "times")], "")
    file.write_text(f"{json.dumps(good | changed)}\n")
    guesses, left_out = calibration.read(file)
    assert guesses == [] and ", line 1: no record (" in left_out


def test_a_class_gets_the_ten_that_most_were_wrong_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    for who in range(12):
        guesses = [
            Guess("05_horovod", f"guess_{at:02}", 9.0 if who >= at else 1.5, 2.0, "a | <b>")
            for at in range(12)
        ]
        words = [Guess("05_horovod", "guess_before", "0" if who else "error", "error", "")]
        keep(tmp_path / f"class/person-{who}/results", guesses + words)
    out = collect.collect([tmp_path / "class"], names=True)
    assert capsys.readouterr().out == ""
    text = (out / calibration.PAGE).read_text(encoding="utf-8")
    assert text.startswith("# What 12 people were wrong about\n") and "person-" not in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| 05")]
    assert len(rows) == 10
    assert rows[0][1:4] == ["guess_00", "12", "12"] and rows[1][1:4] == ["guess_01", "11", "12"]
    assert rows[2][1:] == ["guess_before", "11", "12", "a word", "", " |"]
    assert rows[0][4:6] == ["9.00", "2.00"] and "<b>" not in text
    assert "- 05 guess_before: What do you get from `hvd.rank()` if you call it before" in text
    assert text.count("\n- ") == 1, "the others are no guesses of 05"


def test_nearly_every_guess_is_asked_for_in_its_notebook() -> None:
    books = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    asked = {book: calibration.questions(book) for book in books}
    assert all(asked.values()) and sum(map(len, asked.values())) > 90
    assert asked["08_precision"]["guess_ms"].endswith("answer 95 of 100?")
    assert calibration.questions("13_none") == {}


def test_a_class_that_guessed_nothing_gets_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    topic = tmp_path / "class/one/results/05_horovod"
    topic.mkdir(parents=True)
    (topic / "checks.jsonl").write_text('{"todo": 1, "state": "passed"}\n')
    assert not (collect.collect([tmp_path / "class"]) / calibration.PAGE).exists()
    (topic.parent / calibration.FILE).write_text("no guess\n")
    assert not (collect.collect([tmp_path / "class"]) / calibration.PAGE).exists()
    assert "guesses.jsonl, line 1: no record" in capsys.readouterr().out
