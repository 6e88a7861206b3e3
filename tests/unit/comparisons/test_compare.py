"""Comparisons: what is run in which order, what is kept, what is said; and the command's words."""

import base64
import functools
import io
import itertools
import json
import math
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from scaleout import Comparison, cli, compare
from scaleout import records as books
from scaleout.base.errors import ScaleoutError
from scaleout.base.words import visible
from scaleout.comparisons.compare import columns, plan
from scaleout.comparisons.intervals import difference, paired
from scaleout.comparisons.variants import variants
from scaleout.jobs.job import JobInterrupted, Run
from scaleout.launch import run as launch
from scaleout.measuring.command import left_behind, script
from scaleout.measuring.numbers import NoFigure

TWO = {"base": {"speed": 1.0}, "fast": {"speed": 1.3}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    monkeypatch.delenv("SCALEOUT_QUICK", raising=False)
    return tmp_path


class Job:
    """A job at a known speed, with noise that its seed fixes; what was asked of it is in `asked`."""

    def __init__(self, noise: float = 0.05, seed: int = 0, stop: int = -1) -> None:
        self.draw, self.noise, self.stop = np.random.default_rng(seed), noise, stop
        self.asked: list[dict[str, Any]] = []

    def run(self, **how: Any) -> float:
        if len(self.asked) == self.stop:
            self.stop = -1
            raise KeyboardInterrupt
        self.asked.append(how)
        return 100 * how["speed"] * math.exp(self.noise * self.draw.normal())


def rows(*given: list[float], unit: str = "images/s") -> list[dict[str, Any]]:
    """Rounds of a comparison: the baseline, the baseline again, then a, b ..."""
    names = [("base", 0), ("base", 1), ("a", 0), ("b", 0), ("c", 0)]
    return [
        {"round": n, "variant": name, "again": again, "value": value, "unit": unit}
        for n, values in enumerate(given)
        for (name, again), value in zip(names, values, strict=False)
    ]


# What is run


def test_each_round_has_the_baseline_twice_and_every_variant_once() -> None:
    job = Job()
    found = compare(job.run, TWO, rounds=5)
    speeds = [how["speed"] for how in job.asked]
    assert len(speeds) == 15 and speeds[:3] == [1, 1, 1.3]
    assert all(sorted(speeds[i : i + 3]) == [1, 1, 1.3] for i in range(0, 15, 3))
    assert found.rounds == 5 and found.verdict("fast") == "faster"


@pytest.mark.parametrize("count", [2, 3, 5])
def test_neither_place_nor_drift_favours_a_variant(count: int) -> None:
    of = columns([f"v{n}" for n in range(count)])
    size, many = len(of), 2 * len(of)
    turns = list(itertools.islice(plan(of, 0, lambda: False), many * size))
    places = {column: [] for column in of}
    for number, (_, column) in enumerate(turns):
        places[column].append(number)
    assert {round_ for round_, _ in turns} == set(range(many))
    middles = {float(np.mean(found)) for found in places.values()}
    assert middles == {(many * size - 1) / 2}  # the same middle: a steady drift cancels
    for found in places.values():
        assert sorted(number % size for number in found) == sorted(2 * list(range(size)))


def test_quick_is_one_round_without_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    found = compare(Job().run, TWO)
    assert found.rounds == 1 and found.verdict("fast") == "unclear"
    assert found.sentence("fast") == "fast: unclear after 1 round; it takes 3."
    assert repr(found) and found.plot() is not None
    job = Job()
    again = compare(job.run, TWO)
    assert again.rounds == 1 and len(job.asked) == 2  # the baseline's run counts twice
    assert list(again.runs.variant) == ["base", "base", "fast"]


def test_a_disturbed_round_is_named_left_out_and_replaced() -> None:
    job = Job(noise=0.04)

    def run(speed: float) -> float:
        value = job.run(speed=speed)
        return value / 2 if len(job.asked) == 9 else value

    found = compare(run, TWO, rounds=5)
    assert found.rounds == 6 and found.ratio("fast").rounds == 5
    (note,) = [note for note in found.notes if "disturbed" in note]
    assert re.search(r"Round 3 was disturbed: a run of (base|fast) was 4\d|5\d % slower", note)
    assert "That leaves 5 rounds for the ratios." in found.notes


# What is kept


def test_an_interrupted_comparison_goes_on_and_repeats_only_the_round_that_was_cut_off() -> None:
    job = Job(stop=10)
    with pytest.raises(JobInterrupted, match="3 whole rounds kept; the same call goes on"):
        compare(job.run, TWO, rounds=5)
    found = compare(job.run, TWO, rounds=5)
    assert len(job.asked) == 10 + 6 and found.rounds == 5
    kept = Comparison.read(found.folder)
    assert kept.table.equals(found.table) and kept.runs["round"].tolist() == sorted(
        3 * list(range(5))
    )


def test_after_its_end_the_same_call_measures_anew_and_more_rounds_add() -> None:
    job = Job()
    compare(job.run, TWO, rounds=4, name="x")
    again = compare(job.run, TWO, rounds=4, name="x")
    assert len(job.asked) == 24 and (again.folder / "before-1.jsonl").exists()
    assert json.loads((again.folder / "before-1.json").read_text())["rounds"] == 4
    more = compare(job.run, TWO, rounds=6, name="x")
    assert len(job.asked) == 30 and more.rounds == 6


def test_two_at_once_in_the_same_folder_are_refused() -> None:
    def inside(speed: float) -> float:
        compare(Job().run, TWO, name="x")
        return speed

    with pytest.raises(ScaleoutError, match="is running already"):
        compare(inside, TWO, name="x")


def test_a_damaged_file_is_put_aside() -> None:
    found = compare(Job().run, TWO, rounds=4, name="x")
    path = found.folder / "runs.jsonl"
    path.write_text(path.read_text() + '{"round"')
    assert compare(Job().run, TWO, rounds=4, name="x").rounds == 4


def about(found: Comparison) -> dict[str, Any]:
    return dict(json.loads((found.folder / "compare.json").read_text()))


def test_the_guess_is_kept_before_the_first_run_and_stays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def run(speed: float) -> float:
        kept = json.loads((here / "compare/x/compare.json").read_text())
        seen.append((kept["guess"], kept["guessed"]))
        if len(seen) in (1, 10):
            raise KeyboardInterrupt
        return speed * (1 + 0.1 * (len(seen) % 7))

    for guess in (1.3, 1.4):  # interrupted in the first run, and in a later one
        with pytest.raises(JobInterrupted):
            compare(run, TWO, rounds=5, name="x", guess=guess)
    later = about(compare(run, TWO, rounds=5, name="x", guess=2.0))  # taken up
    again = about(compare(run, TWO, rounds=5, name="x", guess=3.0))  # anew
    assert {*seen, *((one["guess"], one["guessed"]) for one in (later, again))} == {seen[0]}
    assert seen[0][0] == 1.3 and seen[0][1].endswith("+00:00")
    assert "not kept" not in capsys.readouterr().out
    late = about(compare(Job().run, TWO, name="y"))
    assert "guess" not in late
    assert "guess" not in about(compare(Job().run, TWO, name="y", guess=1.5))
    assert "not kept, as its comparison has runs already" in capsys.readouterr().out
    with pytest.raises(ScaleoutError, match="as in guess=1.3; not -1"):
        compare(Job().run, TWO, guess=-1)


def test_no_fewer_rounds_than_the_least() -> None:
    job = Job(noise=0.001)
    assert compare(job.run, TWO, name="x").rounds == 3
    assert compare(job.run, TWO, name="x", least=5).rounds == 5
    assert len(job.asked) == 15  # and three of them were there


class Topic:
    """A lab, whose job prints nothing and takes a text's length."""

    name = "12_x"

    def __init__(self, folder: Path) -> None:
        self.folder, self.script, self.asked = folder, folder / "runme.py", 0
        self.script.write_text("print(1)\n")
        (folder / "input.py").write_text("print(1)\nprint(2)\n")

    def run(self, script: str | None = None, **how: Any) -> float:
        self.asked += 1
        path = self.folder / script if script else self.script
        return len(path.read_text()) + 0.001 * (self.asked % 5)


def test_the_texts_of_the_scripts_are_kept_and_an_edited_one_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(tmp_path)
    ways = {"first": {}, "input": {"script": "input.py", "ranks": np.int64(2)}}
    found = compare(topic.run, ways, name="x")
    kept = about(found)
    assert kept["variants"]["input"] == {"script": "input.py", "ranks": 2}
    assert [Path(file).name for file in kept["scripts"].values()] == ["runme.py", "input.py"]
    assert list(kept["texts"].values()) == ["print(1)\n", "print(1)\nprint(2)\n"]
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")  # where files have other paths
    assert compare(topic.run, ways, name="x", least=5).rounds == 5 and topic.asked == 15
    assert "Measured anew" not in capsys.readouterr().out
    (tmp_path / "input.py").write_text("print(3)\n" * 3)
    assert compare(topic.run, ways, name="x").rounds == 3 and topic.asked == 24
    said = capsys.readouterr().out
    assert "Measured anew, as the text of a script has changed: what was there is put aside" in said
    assert sorted(about(found)["texts"].values()) == ["print(1)\n", "print(3)\n" * 3]


def test_what_a_script_imports_and_reads_is_kept_and_an_edited_module_is_measured_anew(
    tmp_path: Path,
) -> None:
    """The job writes one of the files that its command names: that is no part of what it reads."""
    topic, data, log = Topic(tmp_path), tmp_path / "slices.npz", tmp_path / "log.txt"
    topic.script.write_text("import unet\n")
    (tmp_path / "unet.py").write_text("narrow = 1\n")
    data.write_text("1")

    def run(script: str | None = None, **how: Any) -> float:
        log.write_text(str(topic.asked))
        return topic.run(script)

    run.__self__ = topic  # type: ignore[attr-defined]
    ways = {"first": {"data": data, "log": log}, "input": {"script": "input.py", "data": data}}
    found = compare(run, ways, name="x")
    kept = about(found)
    assert list(kept["modules"]) == ["first"] and list(kept["modules"]["first"]) == ["unet.py"]
    assert "narrow = 1\n" in kept["texts"].values()
    rows = [json.loads(line) for line in (found.folder / "runs.jsonl").read_text().splitlines()]
    first, other = ({*row["files"]} for row in (rows[0], rows[2]))
    assert first == {"unet.py", str(data)} and other == {str(data)}
    (tmp_path / "unet.py").write_text("narrow = 2\n")
    asked = topic.asked
    assert compare(run, ways, name="x", least=5).rounds == 5 and topic.asked == asked + 15  # anew

    def edit(script: str | None = None, **how: Any) -> float:
        (tmp_path / "unet.py").write_text("narrow = 3\n")
        return run(script)

    edit.__self__ = topic  # type: ignore[attr-defined]
    with pytest.raises(ScaleoutError, match="unet.py was edited while it is measured"):
        compare(edit, ways, name="y")


def test_a_script_that_is_edited_while_it_is_measured_ends_it(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    old = topic.script.read_text()

    def edit(script: str | None = None) -> float:
        if topic.asked == 7:
            topic.script.write_text("something else")
        return topic.run(script)

    ways = {"first": {}, "input": {"script": "input.py"}}
    edit.__self__ = topic  # type: ignore[attr-defined]
    with pytest.raises(ScaleoutError, match="runme.py was edited while it is measured"):
        compare(edit, ways, name="x", least=5)
    topic.script.write_text(old)
    asked = topic.asked
    assert compare(edit, ways, name="x", least=5).rounds == 5
    assert topic.asked == asked + 9  # two rounds were there


def _nested(value: float) -> Any:
    def run(speed: float) -> float:
        return sum(step * speed for step in [3.0] for _ in range(int(value)))

    return run


def _by_closure(value: float) -> Any:
    again: list[int] = []

    def inner(speed: float) -> float:
        return value * speed

    def run(speed: float) -> float:
        again.append(1)  # what a function keeps for itself is no edit
        return inner(speed) if speed else run(speed)

    return run


class _Called:
    def __call__(self, speed: float) -> float:
        return 100 * speed


class _Edited:
    def __call__(self, speed: float) -> float:
        return 200 * speed


_Edited.__name__ = _Edited.__qualname__ = "_Called"


@pytest.mark.parametrize(
    ("one", "edited"),
    [
        (lambda speed: 200.0 * speed, lambda speed: 300.0 * speed),
        (lambda speed: math.floor(9.5 * speed), lambda speed: math.ceil(9.5 * speed)),
        (lambda speed, by=2.0: by * speed, lambda speed, by=3.0: by * speed),
        (lambda speed, *, by=(1, 2): by[1] * speed, lambda speed, *, by=(1, 3): by[1] * speed),
        (
            lambda speed: sum(2.0 * speed for _ in "ab"),
            lambda speed: sum(3.0 * speed for _ in "ab"),
        ),
        (
            lambda speed: speed if "a" in {"a", "b"} else 1,
            lambda speed: speed if "a" in {"a"} else 1,
        ),
        (_by_closure(2.0), _by_closure(3.0)),
        (_nested(2), _nested(3)),
        (functools.partial(pow, 2.0), functools.partial(pow, 3.0)),
        (_Called(), _Edited()),
    ],
)
def test_an_edited_function_is_measured_anew_and_the_same_goes_on(
    one: Any, edited: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = {"base": {"speed": 1.0}, "fast": {"speed": 1.3}}
    if not isinstance(one, _Called):
        edited.__name__ = edited.__qualname__ = one.__qualname__ = "job"
    if isinstance(one, functools.partial):
        ways = {"base": {"exp": 1.0}, "fast": {"exp": 1.3}}
    said: list[str] = []
    compare(one, ways, name="x")
    compare(one, ways, name="x", rounds=5, least=5, echo=said.append)
    assert any("3 rounds were measured before" in line for line in said)
    said.clear()
    compare(edited, ways, name="x", rounds=7, least=7, echo=said.append)
    assert not any("were measured before" in line for line in said)
    assert any("Measured anew, as what is measured has changed" in line for line in said)


def test_a_function_is_told_alike_in_every_process() -> None:
    """Sets of texts, and objects, are written in another order and place in each."""
    code = (
        "from scaleout.comparisons.compare import _text; things = [object()]\n"
        "def made(a, b): return lambda n, c=object(): n in {'a', 'b', 'c', 'd'} and (a, b, c)\n"
        "print(_text(made(things, frozenset('abcdef')), {}))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_which_file_a_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.sh", "c"):
        Path(name).write_text("")
    runs = {
        "python a.py 9 b.sh": "a.py",
        "python -u a.py -m c": "a.py",
        "python -m mpi4py a.py": "a.py",
        "python -m a a.py": "",
        "python -c pass": "",
        "sh b.sh": "b.sh",
        "./c a": "./c",
        "python gone.py": "",
        "": "",
    }
    assert {line: script(line.split()) for line in runs} == runs


def test_a_difference_of_pairs_has_an_interval() -> None:
    low, middle, high = 0.0, 1.0, 2.0
    found = difference([(low, middle), (middle, high), (low, middle), (low, high)])
    assert found == pytest.approx((1.25, 0.454, 2.046), abs=1e-3)  # 3.182 * 0.5 / 2
    assert difference([(1.0, 3.0)]) == (2.0, -math.inf, math.inf)
    assert all(map(math.isnan, difference([])))


# What is said


STEADY = [[100, 101, 130], [101, 100, 131], [99, 100, 129.5], [100, 99, 130]]


def test_faster_slower_no_difference_and_unclear() -> None:
    assert Comparison(rows(*STEADY)).verdict("a") == "faster"
    assert Comparison(rows(*STEADY), lower=True).verdict("a") == "slower"
    near = [[100, 101, 100.5], [101, 100, 100], [99, 100, 100], [100, 99, 99.5]]
    assert Comparison(rows(*near)).verdict("a") == "no difference shown"
    wild = [[100, 140, 150], [120, 90, 100], [80, 100, 130]]
    assert Comparison(rows(*wild)).verdict("a") == "unclear"


def test_a_sentence_about_two_variants_comes_from_their_own_ratio() -> None:
    turns = [
        [100, 100.5, 150, 100],
        [101, 100, 151, 101],
        [99, 100, 149, 99],
        [100, 99.5, 150, 100],
    ]
    found = Comparison(rows(*turns))
    assert found.sentence("a", "b").startswith("a: faster, 1.5000 times as fast as b (1.4")
    assert found.sentence("b", "a").startswith("b: slower, 0.6667 times as fast as a (0.6")


def test_the_others_of_a_finding_are_named() -> None:
    turns = [[100, 100, 150, 80, 100.2], [101, 101, 152, 81, 101], [99, 99, 148, 79, 99.1]]
    found = Comparison(rows(*turns, [100, 100, 150, 80, 100], [100.5, 100, 151, 80, 100]))
    assert found.finding.endswith("Against base, b is slower; c is not shown to differ.")


def test_names_with_a_comma_are_told_apart() -> None:
    turns = [[100, 100, 50, 60, 70], [101, 101, 51, 61, 71], [99, 99, 49, 59, 69]]
    found = Comparison(rows(*turns, *turns))
    names = {"a": "a, threads"}
    found = Comparison(
        replace(row, variant=names.get(row.variant, row.variant)) for row in found._rows
    )
    assert found.finding.endswith(' is faster than "a, threads", "b", "c".')


def test_no_gain_smaller_than_what_the_baselines_differ_by() -> None:
    """The second baseline is always 20 % faster: a gain of 11 % on their mean counts for nothing."""
    odd = [[100, 120.5, 121], [100.5, 120, 121], [100, 120, 121.5], [99.5, 120, 121]]
    found = Comparison(rows(*odd))
    ratio = found.ratio("a")
    assert ratio.low > 1 and found.noise > 0.15
    assert found.verdict("a") == "unclear" and "the noise alone can make up to" in found.sentence(
        "a"
    )
    assert any("base differs from itself" in note for note in found.notes)


def test_two_variants_are_compared_round_by_round() -> None:
    """The machine is half as fast in every second round, and b always 1.2 times as fast as a."""
    given = [[10 / slow, 10 / slow, 20 / slow, 24 / slow] for slow in (1, 2, 1, 2)]
    ratio = Comparison(rows(*given)).between("b", "a")
    assert (ratio.low, ratio.middle, ratio.high) == pytest.approx((1.2, 1.2, 1.2))
    assert ratio.rounds == 4
    times = Comparison(rows(*given), lower=True).between("b", "a")
    assert times.middle == pytest.approx(1 / 1.2)
    with pytest.raises(ScaleoutError, match="no variant 'c'"):
        Comparison(rows(*given)).between("b", "c")


def test_a_drift_is_reported_and_does_not_spoil_the_ratio() -> None:
    draw = np.random.default_rng(1)
    slower = [[100 * 0.97**n * x for x in np.exp(0.003 * draw.normal(size=3))] for n in range(7)]
    found = Comparison(rows(*slower))
    assert found.drift == pytest.approx(0.97**6.5 - 1, abs=0.02)
    assert any("% slower over the runs" in note for note in found.notes)
    assert found.ratio("a").low <= 1 <= found.ratio("a").high
    calm = Comparison(rows(*STEADY))
    assert not any("over the runs" in note for note in calm.notes)


def test_more_variants_have_wider_intervals_each() -> None:
    both = rows(*[[*values, values[2]] for values in STEADY])
    one, two = Comparison(rows(*STEADY)), Comparison(both)
    assert two.ratio("a").width > one.ratio("a").width
    assert any(
        "With 95 % confidence, the intervals of all 2 variants" in note for note in two.notes
    )
    assert paired([[1, 1.1]] * 3, {"a": [1, 2, 1]}, compared=9).ratios["a"].width > 0.1


def test_the_figure_says_what_was_found_and_shows_the_guess() -> None:
    picture = Comparison(rows(*STEADY)).plot(guess=1.7)
    assert picture._suptitle.get_text() == "a: faster, 1.30 times as fast as base (1.29 to 1.31)."
    legend = [text.get_text() for text in picture.legends[0].get_texts()]
    assert "your guess: 1.7" in legend and "disturbed" not in legend
    data, about = picture._repr_mimebundle_()
    words = about["image/png"]["alt"]
    stored = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert stored.mode == "P" and stored.size[0] > 600, "a palette, or a notebook grows too large"
    assert "a: median 130 (images/s), ratio 1.30" in words and "your guess: 1.7." in words


@pytest.mark.parametrize(
    ("times", "unit", "axis"),
    [
        ((1e5, 1.3e5), "rows/s", "rows/s"),
        ((1e7, 1.3e7), "rows/s", "million rows/s"),
        ((0.008, 0.0004), "s", "milliseconds"),
        ((2e-6, 3e-6), "s", "microseconds"),
        ((2.0, 900.0), "images/s", "images/s"),
    ],
)
def test_ticks_are_short_and_apart_and_each_variant_is_seen(
    times: tuple[float, float], unit: str, axis: str
) -> None:
    base, other = times
    turns = [[base * wide, base, other * wide] for wide in (1, 1.01, 0.99, 1.005)]
    picture = Comparison(rows(*turns, unit=unit), lower=unit == "s").plot()
    picture.canvas.draw()
    axes = picture.axes[0]
    assert axes.get_xlabel() == axis
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(boxes) > 1
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
    ends = sorted(
        axes.transAxes.inverted().transform(axes.transData.transform([[v, 0]]))[0][0] for v in times
    )
    assert ends[1] - ends[0] > 0.1


# What it is judged by


# What cannot be compared


def test_a_job_that_fails_is_named_with_its_variant() -> None:
    def run(speed: float) -> float:
        if speed > 1:
            raise ScaleoutError("no room.")
        return speed

    with pytest.raises(ScaleoutError, match="^fast, round 1: no room"):
        compare(run, TWO)


# The command's words


def test_a_range_is_a_variant_for_each_of_its_values() -> None:
    found = variants(["python", "-V"], ["A=1..4*2,9"])
    assert list(found) == ["A=1", "A=2", "A=4", "A=9"]
    with pytest.raises(ScaleoutError, match=r"A=1\.\.\.4 is no range of 1 to 1,000 values"):
        variants(["python", "-V"], ["A=1...4"])


def test_two_commands_are_called_by_what_they_differ_in() -> None:
    words = "python -m t --batch 8 :: python -m t --batch 16"
    found = variants(words.split())
    assert list(found) == ["--batch 8", "--batch 16"]
    assert found["--batch 8"] == {"script": ["python", "-m", "t", "--batch", "8"], "env": {}}
    assert list(variants(["python", "-V", "::", "python", "-V", "-c"])) == ["-V", "-V -c"]
    words = "python -m t --epochs 1 :: python -m t --epochs 1 --fast"
    assert list(variants(words.split())) == ["--epochs 1", "--epochs 1 --fast"]


def test_values_of_a_variable_are_variants_and_single_ones_are_for_all() -> None:
    found = variants(["python", "-V"], ["A=1,", "B=2"])
    assert list(found) == ["A=1", "A=unset"]
    assert found["A=1"] == {"script": ["python", "-V"], "env": {"B": "2", "A": "1"}}
    assert found["A=unset"] == {"script": ["python", "-V"], "env": {"A": None, "B": "2"}}


@pytest.mark.parametrize(
    ("words", "env", "name"),
    [
        ("sleep 1 :: sleep 2 :: sleep 1", [], "sleep 1"),
        ("sleep 2 :: sleep 1 :: sleep 1", ["B=1"], "sleep 1"),
        ("sleep 1 :: sleep 1", [], "sleep 1"),
        ("true", ["A=1,2,1"], "A=1"),
        ("true", ["A=1,2", "A=2..3"], "A=2"),
        ("true", ["A=1,1"], "A=1"),
        ("true", ["A=,1,", "B=1,2"], "A="),
    ],
)
def test_a_variant_that_stands_there_twice_is_refused(
    words: str, env: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [word for text in env for word in ("--env", text)]
    line = ["compare", "--metric", "wall_s", *flags, "--", *words.split()]
    assert cli.main(line) == 2
    said = capsys.readouterr().err
    assert f"{name} stands there twice: leave one of them out" in said
    assert "the baseline runs against itself in any case" in said


def test_variants_that_differ_and_are_called_alike_are_all_there() -> None:
    found = variants(["true", "a b", "::", "true", "a", "b"])
    assert [how["script"] for how in found.values()] == [["true", "a b"], ["true", "a", "b"]]
    assert [how["env"]["A"] for how in variants(["true"], ["A=,unset"]).values()] == [None, "unset"]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"speed": 1.0}, {"speed": 1.0}, {}),
        ({"speed": 1.0, "ranks": 2}, {"ranks": 2, "speed": 1.0}, {}),
        ({}, {"ranks": 2}, {"ranks": 2}),
        ({"env": {"A": 1}}, {"env": {"A": "1"}}, {}),
        ({}, {"env": {}}, {}),
        ({"script": "a.py -b"}, {"script": ["a.py", "-b"]}, {}),
    ],
)
def test_a_variant_given_twice_by_two_names_is_refused(
    one: dict, other: dict, shared: dict
) -> None:
    job = Job()
    ways = {"one": one, "between": {"speed": 2.0}, "other": other}
    with pytest.raises(ScaleoutError, match="'one' and 'other' are the same variant"):
        compare(job.run, ways, **shared)
    assert not job.asked


# What ranks print


class Printed:
    """A script whose ranks print these lines in each variant."""

    def __init__(self, folder: Path, ranks: int = 2, talked: bool | None = None) -> None:
        self.folder, self.ranks, self.talked, self.started = folder, ranks, talked, 0

    def run(self, says: list[str], ranks: int = 0) -> Run:
        self.started += 1
        lines = [(rank, text) for rank, text in enumerate(says)]
        return Run("id", "x", "", self.folder, ranks or self.ranks, 1, 0, 1.0, lines, self.talked)


BOTH, ONE, OWN = ["r: 100", "r: 100.4"], ["r: 100"], ["r: 40", "r: 60"]


@pytest.mark.parametrize(
    ("metric", "says", "words"),
    [
        ("r: (.*)", {"a": BOTH, "b": OWN}, "a, round 1: The 2 ranks print the same figure"),
        ("r: (.*)", {"a": OWN, "b": BOTH}, "b, round 1: The 2 ranks print the same figure"),
        ("r: (.*)", {"a": OWN, "b": ONE}, "a prints a figure on each rank, b on 1 of 2"),
        ("steps/s: (.*)", {"a": ["steps/s: 5"], "b": ["steps/s: 6"]}, "One rank alone"),
    ],
)
def test_no_verdict_comes_from_sums_that_may_be_totals(
    here: Path, metric: str, says: dict[str, list[str]], words: str
) -> None:
    job, variants = Printed(here), {name: {"says": lines} for name, lines in says.items()}
    with pytest.raises(ScaleoutError, match=re.escape(words)) as caught:
        compare(job.run, variants, rounds=3, metric=metric, echo=None)
    assert "--reduce " in str(caught.value) and job.started <= 3
    found = compare(job.run, variants, rounds=3, metric=metric, reduce="mean")
    assert found.rounds == 3, "--reduce says it"


@pytest.mark.parametrize("how", [{"lower": True}, {"reduce": "sum"}, {"reduce": "max"}])
def test_a_time_and_what_reduce_says_are_asked_about_no_more(here: Path, how: dict) -> None:
    variants = {"a": {"says": BOTH}, "b": {"says": OWN}}
    assert compare(Printed(here).run, variants, rounds=3, metric="r: (.*)", **how).rounds == 3


@pytest.mark.parametrize(
    ("says", "ranks", "talked"),
    [(BOTH, 2, False), (OWN, 2, False), (ONE, 1, None), (OWN, 2, None), (OWN, 2, True)],
)
def test_copies_are_named_below_the_comparison(
    here: Path, says: list[str], ranks: int, talked: bool | None
) -> None:
    """In a notebook, which shows no line of a job."""
    job = Printed(here, ranks, talked)
    variants = {"a": {"says": says}, "b": {"says": [*says, "end"]}}
    found = compare(job.run, variants, rounds=3, metric="r: (.*)")
    told = [note for note in found.notes if "never talked" in note]
    assert [note.partition(":")[0] for note in told] == ["a", "b"] * (talked is False)
    assert [note for note in Comparison.read(found.folder).notes if "never" in note] == told
    each = [float(line[3:]) for line in says]
    value = sum(each) / (len(each) if talked is False else 1)  # of copies, what one gives
    assert found.runs["value"].to_list() == pytest.approx([value] * 9)


def test_other_numbers_of_ranks_are_no_question(here: Path) -> None:
    variants = {"one": {"says": ONE, "ranks": 1}, "two": {"says": OWN, "ranks": 2}}
    assert compare(Printed(here).run, variants, rounds=3, metric="r: (.*)").rounds == 3


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (
            "990 kcells/s",
            "1.2 Mwidgets/s",
            "Behind the number stands 'cells/s' in a, and 'Mwidgets/s'",
        ),
        ("950 GLUPPS", "1.2 TLUPPS", "'GLUPPS' in a, and 'TLUPPS' in b"),
        ("950 thousand cells", "1.2 million cells", "'thousand' in a, and 'million' in b"),
        ("600 images/min", "12 images/s", "'images/min' in a, and 'images/s' in b"),
        ("95 seconds", "1.7 fortnights", "'s' in a, and 'fortnights' in b"),
        ("12.3 ns/day", "0.5 ms/day", "'ns/day' in a, and 'ms/day' in b"),
        ("950 Mb/s", "120 MB/s", "'b/s' in a, and 'B/s' in b"),
        ("1 234.5", "2 234.5", "a part of '1 234.5'"),
    ],
)
def test_figures_of_two_units_are_not_compared(here: Path, a: str, b: str, words: str) -> None:
    variants = {"a": {"says": [f"r: {a}"]}, "b": {"says": [f"r: {b}"]}}
    with pytest.raises(NoFigure, match=re.escape(words)):
        compare(Printed(here, 1).run, variants, rounds=3, metric="r: ([0-9.]+)")


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        ("980 usec per loop", "1.05 msec per loop", 980 / 1050),
        ("95 seconds", "1.7 minutes", 95 / 102),
        ("900 milliseconds", "1.1 seconds", 900 / 1100),
        ("23 hours", "1.5 days", 23 / 36),
        ("  980   µsec", "  1.05   msec", 980 / 1050),
        ("990 kcells/s", "1.2 Mcells/s", 990 / 1200),
        ("950 TFLOPS", "1.2 PFLOPS", 950 / 1200),
        ("5 images per second", "4 image/s", 5 / 4),
        ("990 ktokens/s", "1.2 Mtokens/s", 990 / 1200),
        ("990 krps", "1.2 Mrps", 990 / 1200),
        ("95", "1.7 min", 95 / 102),
        ("5 on a", "4 on b", 5 / 4),
    ],
)
def test_words_for_times_and_thousands_are_read(here: Path, a: str, b: str, ratio: float) -> None:
    variants = {"a": {"says": [f"r: {a}"]}, "b": {"says": [f"r: {b}"]}}
    found = compare(Printed(here, 1).run, variants, rounds=3, metric="r: *([0-9.]+)", lower=True)
    assert found.ratio("b").middle == pytest.approx(ratio)


@pytest.mark.parametrize("words", [("resnet", "vgg"), ("img/s", "images/s"), ("a/s b", "b/s c")])
def test_words_that_have_a_place_in_the_pattern_may_differ(
    here: Path, words: tuple[str, str]
) -> None:
    variants = {"a": {"says": [f"r: 5 {words[0]}"]}, "b": {"says": [f"r: 6 {words[1]}"]}}
    found = compare(Printed(here, 1).run, variants, rounds=3, metric=r"r: ([0-9.]+) \S+")
    assert found.ratio("b").middle == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("metric", "lower", "words"),
    [
        ("loss: (.*)", None, "called 'loss' less is better, most likely: if so, add  --lower."),
        ("val_perplexity=(.*)", None, "called 'perplexity'"),
        ("took (.*)", None, "called 'took'"),
        ("loss: (.*)", True, ""),
        ("images/s: (.*)", None, ""),
        ("lossless: (.*)", None, ""),
    ],
)
def test_of_a_loss_it_is_asked_whether_less_is_better(
    here: Path, metric: str, lower: bool | None, words: str
) -> None:
    line = metric.replace("(.*)", "5")
    variants = {"a": {"says": [line]}, "b": {"says": [line, "end"]}}
    found = compare(Printed(here, 1).run, variants, rounds=3, metric=metric, lower=lower)
    asked = [note for note in found.notes if "--lower" in note]
    assert len(asked) == bool(words) and all(words in note for note in asked)


LD_SO = (
    "ERROR: ld.so: object '/opt/libtcmalloc.so.4' from LD_PRELOAD cannot be preloaded (cannot open"
)
LD_SO += " shared object file): ignored."


@pytest.mark.parametrize(
    "said",
    [
        LD_SO,
        "libgomp: Invalid value for environment variable OMP_PROC_BIND: sprad",
        "OMP: Warning #42: OMP_SCHEDULE: 'dynamc' is not a valid value, ignored.",
        "<jemalloc>: Invalid conf pair: background_threds:true",
        "\x1b[33mlibgomp: Invalid value for environment variable OMP_NUM_THREADS: two\x1b[0m",
    ],
)
def test_a_setting_that_had_no_effect_is_noted_with_who_said_so(here: Path, said: str) -> None:
    variants = {"plain": {"says": ["rate: 5"]}, "tuned": {"says": [said, "rate: 5"]}}
    found = compare(Printed(here, 1).run, variants, rounds=3, metric="rate: (.*)")
    (note,) = [note for note in found.notes if "had no effect" in note]
    assert note.startswith("tuned: ") and visible(said).rstrip(".") in note
    assert [note for note in Comparison.read(found.folder).notes if "no effect" in note]


def test_what_only_looks_like_it_is_no_setting_without_effect(here: Path) -> None:
    quiet = ["r: 5", "libgomp is loaded", "OMP: Info #155: KMP_AFFINITY: Initial OS proc set"]
    variants = {"a": {"says": quiet}, "b": {"says": [*quiet, "end"]}}
    found = compare(Printed(here, 1).run, variants, rounds=3, metric="r: (.*)")
    assert not [note for note in found.notes if "no effect" in note]


@pytest.mark.parametrize("script", ["train.py --seed {ROUND}", ["train.py", "--seed={ROUND}"]])
def test_all_variants_of_a_round_know_its_number(here: Path, script: Any) -> None:
    seen: list[tuple[str, str]] = []

    def job(script: Any, speed: float) -> float:
        seen.append((os.environ["SCALEOUT_ROUND"], str(script).strip("]'")[-1]))
        return speed

    compare(job, {"a": {"speed": 1.0}, "b": {"speed": 1.5}}, rounds=3, script=script)
    assert seen == [(n, n) for n in "123" for _ in range(3)]
    assert "SCALEOUT_ROUND" not in os.environ


# What is read again


@pytest.mark.parametrize("damage", ['{"round": 3, "va', '{"round": 1}', "[]", "\x00\x00"])
def test_a_damaged_line_of_a_comparison_is_named_and_left_out(
    here: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    found = compare(Job().run, TWO, rounds=4)
    with open(found.folder / "runs.jsonl", "a") as file:
        file.write(damage)
    again = Comparison.read(found.folder)
    assert again.rounds == found.rounds and "no record" in capsys.readouterr().out
    lines = (found.folder / "runs.jsonl").read_text().splitlines()
    lines[4] = lines[4][:20]  # of the second round
    (found.folder / "runs.jsonl").write_text("\n".join(lines))
    assert Comparison.read(found.folder).rounds == found.rounds - 1


@pytest.mark.parametrize(
    "about", [{"lab": "04_kmeans"}, {"lab": "b"}, {"lab": "04_kmeans", "variant": "b"}]
)
def test_a_comparison_without_records_has_none_of_a_strangers(
    here: Path, about: dict[str, str]
) -> None:
    found = compare(Job().run, TWO, rounds=3)
    books.write(**about, rate=6.0)
    assert found.records.empty


# The words of a command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sleep 0.1"], "leave the quotes out and type  sleep 0.1"),
        (["python train.py --lr 1"], "leave the quotes out and type  python train.py"),
        (["sort words.txt | wc -l"], "type  sh -c 'sort words.txt | wc -l'"),
        (["ulimit", "-a"], "type  sh -c 'ulimit -a'"),
        (["cd", "x"], "type  sh -c 'cd x'"),
        (["a $(nproc)"], "sh -c 'a $(nproc)'"),
        (["OMP_NUM_THREADS=2", "python", "x.py"], "type  --env OMP_NUM_THREADS=2"),
        (["python", "x.py --lr 1"], "leave the quotes out and type  python x.py --lr 1"),
        (["nosuchprogram"], "There is no program nosuchprogram to start"),
    ],
)
def test_a_command_that_cannot_start_is_told_with_what_to_type(words: list[str], said: str) -> None:
    with pytest.raises(ScaleoutError) as caught:
        variants([*words, "::", "true"])
    assert said in str(caught.value)


def test_values_beside_commands_are_named() -> None:
    with pytest.raises(ScaleoutError, match="not both at once. A has 2 values, 1, unset: give it"):
        variants(["true", "::", "false"], ["A=1,"])


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("FileExistsError: [Errno 17] File exists: 'output'", "output"),
        ('RuntimeError: logs already exist: "logs/a b"', "logs/a b"),
        ("mkdir: cannot create directory", "WHAT"),
    ],
)
def test_what_the_first_run_may_have_left_behind_is_told(reason: str, name: str) -> None:
    (typed,) = re.findall("--prepare (.*)", left_behind(reason))
    assert shlex.split(shlex.split(typed)[0]) == ["rm", "-rf", name]


class Clock:
    """Jobs that take so many seconds beside their start."""

    def __init__(self, folder: Path, start_s: float) -> None:
        self.folder, self.start_s, self.asked = folder, start_s, []

    def __call__(self, script: list[str], name: str, echo: None = None, **how: Any) -> Run:
        self.asked.append(script[0])
        seconds = self.start_s + float(script[1] if len(script) > 1 else 0)
        return Run("id", "x", "", self.folder, 1, 1, 0, seconds * (1 + len(self.asked) / 1e4))


@pytest.mark.parametrize(
    ("start_s", "seconds", "verdict", "hidden"),
    [
        (0.3, (0.005, 0.00501), "unclear", True),
        (0.3, (0.02, 0.06), "slower", True),
        (0.3, (0.005, 1.0), "slower", True),
        (0.3, (1.0, 1.0001), "no difference shown", True),
        (0.3, (9.0, 9.0001), "no difference shown", False),
        (0.04, (0.5, 0.5001), "no difference shown", False),
    ],
)
def test_the_start_of_a_job_that_hides_a_difference_is_measured_and_said(
    here: Path, monkeypatch: pytest.MonkeyPatch, start_s: float, seconds: tuple, verdict: str,
    hidden: bool,
) -> None:  # fmt: skip
    clock = Clock(here, start_s)
    monkeypatch.setattr(launch, "run", clock)
    a, b = ({"script": ["sleep", str(each)]} for each in seconds)
    found = compare(clock, {"a": a, "b": b}, rounds=3, metric="wall_s")
    assert found.verdict("b") == verdict
    assert clock.asked.count("true") == (2 if start_s + seconds[0] < 10 else 0)
    notes = " ".join(Comparison.read(found.folder).notes)
    assert ("An empty job takes" in notes) == hidden
    assert ("no difference" in repr(found)) == (verdict == "no difference shown")


def test_a_variable_that_was_given_as_a_number_is_read_again(results: Path) -> None:
    def job(env: dict[str, Any]) -> Run:
        return Run("x", "x", "mpirun", results, 1, 1, wall_s=20.0, env=env)

    ways = {"a": {"env": {"HOROVOD_CYCLE_TIME": 1}}, "b": {"env": {"HOROVOD_CYCLE_TIME": None}}}
    found = compare(job, ways, rounds=3, metric="wall_s", echo=None)
    assert Comparison.read(found.folder).table.equals(found.table)


@pytest.mark.parametrize(("variable", "mode"), [("API_TOKEN", 0o600), ("A", 0o644)])
def test_what_holds_the_value_of_a_secret_is_its_owners_alone(
    results: Path, variable: str, mode: int
) -> None:
    numbers = itertools.count(100)
    told = {"a": {"env": {variable: "s3cret"}}, "b": {"env": {}}}
    for rounds in (3, 4):
        compare(lambda env: float(next(numbers)), told, rounds=rounds, name="x", echo=None)
    assert "s3cret" in (results / "compare/x/compare.json").read_text()
    files = [results / "compare/x" / file for file in ("compare.json", "runs.jsonl")]
    assert [stat.S_IMODE(file.stat().st_mode) & 0o644 for file in files] == [mode, mode]
