"""The figure that a job is judged by: a field of its record, or a number that its ranks print."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleout import records
from scaleout.jobs.job import Run
from scaleout.measuring.metric import Figure, Metric, candidates
from scaleout.measuring.numbers import NoFigure

SAID = [
    (None, "mpirun's own: 7 img/sec"),
    (0, "Running benchmark..."),
    (0, "Iter #0: 3.1 img/sec per CPU"),
    (0, "Iter #1: 12.1 img/sec per CPU"),
    (0, "Iter #2: 12.5 img/sec per CPU"),
    (0, "Img/sec per CPU: 12.3 +-0.4"),
    (0, "Total img/sec on 2 CPU(s): 24.6 +-0.8"),
]


BAR = " 37%|##   | 37/100 [00:12<00:20,  3.04it/s]\r 38%|##   | 38/100 [00:12<00:20,  3.14it/s]"
HOROVOD = [
    "Iter #0: 3.1 img/sec per CPU",
    "Iter #1: 12.1 img/sec per CPU",
    "Img/sec per CPU: 12.3 +-0.4",
    "Total img/sec on 2 CPU(s): 24.6 +-0.8",
]


def _job(folder: Path, *said: str, ranks: int = 1) -> Run:
    lines: list[tuple[int | None, str]] = [(r, text) for text in said for r in range(ranks)]
    return Run("id", "job", "mpirun job", folder, ranks, 1, 0, 1.0, lines)


@pytest.mark.parametrize(
    ("said", "figures"),
    [
        (["images/sec: 123.4"], ["123.4"]),
        (["Throughput = 99.5 images/s"], ["99.5"]),
        ([BAR], ["3.04", "3.14"]),
        (["epoch 3, loss 0.12, 1,234.5 images/s"], ["1,234.5"]),
        (["epoch 3: 100 images/s, 3 s left"], ["100"]),
        (["speed 1.2e+03 samples per second"], ["1.2e+03"]),
        (["Downloading 12 MB/s", "step 3: 10 steps/s"], ["10"]),
        (["rate on 4 ranks, img/s: 100, done"], ["100"]),
        (["Epoch 1, images/s=123.4 (12 left)"], ["123.4"]),
        (["Throughput: 123.4 +/- 2.3 images/s"], ["123.4"]),
        (["123.4 ± 2.3 images/s"], ["123.4"]),
        (["Batch [20]\tSpeed: 123.40 samples/sec\taccuracy=0.51"], ["123.40"]),
        (["Loss: 6.9 (6.91)  Time: 0.259s,  123.40/s  (0.26s, 123.40/s)"], ["123.40", "123.40"]),
        (["{'runtime': 12.3, 'train_samples_per_second': 123.4}"], ["123.4"]),
        (["step=10, SamplesPerSec=123.4, Mem=0.1GB"], ["123.4"]),
        (["throughput: 1.2k tok/s"], ["1.2k"]),
        (["1.2M tok/s"], ["1.2M"]),
        (["9.00E+02 images/s"], ["9.00E+02"]),
        (["step 3: 12.3 it/s: loss 0.4"], ["12.3"]),
        (["rank 0 img/s: 100"], ["100"]),
    ],
)
def test_one_kind_of_rate_is_found_by_itself(said: list[str], figures: list[str]) -> None:
    ((pattern, line),) = candidates(said).items()
    assert [m[1] for text in said for m in re.finditer(pattern, text)] == figures
    assert line and line in said[-1]


@pytest.mark.parametrize(
    "said",
    [
        "accuracy 0.93 in 3.2 s",
        "1875/1875 ------ 3s 2ms/step - accuracy: 0.9",
        "see http://x.org/s 3",
        "a" * 100_000 + " 3 it/s",
        "",
    ],
)
def test_what_is_no_rate_is_not_taken_for_one(said: str) -> None:
    assert candidates([said]) == {}


def test_several_kinds_are_asked_about_with_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(NoFigure) as caught:
        Metric().settled(_job(tmp_path, *HOROVOD))
    first, *choices = str(caught.value).splitlines()
    assert first == "The command prints 3 figures that look like a rate; choose one:"
    assert [line.strip() for line in choices[::2]] == [HOROVOD[1], *HOROVOD[2:]]
    for shown, typed in zip(choices[::2], choices[1::2], strict=True):
        pattern = re.fullmatch(" +--metric '(.*)'", typed)[1]
        assert re.search(pattern, shown), "what is offered finds what is shown"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """A job that has said these lines, and written a record of each of these fields."""

    def said(lines: list = (), *fields: dict) -> Run:
        run = Run("id", "name", "mpirun", tmp_path, 2, 1, 0, 1.0, list(lines))
        monkeypatch.setenv("SCALEOUT_RECORDS", str(tmp_path / "records.jsonl"))
        for more in fields:
            records.write(**{"lab": "x", **more})
        return run

    return said


def test_the_figure_is_found_in_the_ranks_lines_alone(job) -> None:
    found = Metric(r"Total img/sec on \d+ CPU\(s\): ([0-9.]+)").read(job(SAID))
    assert found == Figure(24.6, "", {"0": [24.6]})
    several = Metric(r"([0-9.]+) img/sec").read(job(SAID))
    assert several == Figure(12.1, "", {"0": [3.1, 12.1, 12.5]}), "the median counts"


@pytest.mark.parametrize(
    ("how", "figure"),
    [
        ({}, 400.0),
        ({"reduce": "mean"}, 200.0),
        ({"lower": True}, 210.0),
        ({"lower": True, "reduce": "sum"}, 400.0),
    ],
)
def test_rates_of_the_ranks_add_up_and_a_time_is_the_slowest_ranks(
    job, how: dict[str, Any], figure: float
) -> None:
    lines = [(0, "time 190 ms"), (1, "time 210 ms")]
    assert Metric("time ([0-9]+) ms", **how).read(job(lines)).value == figure


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1,234.5", 1234.5), ("1e3", 1000.0), ("12", 12.0), ("1,234,567", 1234567.0), (" 7 ", 7.0)],
)
def test_numbers_are_read_as_programs_print_them(job, text: str, rate: float) -> None:
    assert Metric("r=(.*)!").read(job([(0, f"r={text}!")])).value == rate


S = "images/s: ([0-9.]+)"  # README's own pattern


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        (S, "images/s: 1,234.5", 1234.5),
        (S, "images/s: 1.2345e+03", 1234.5),
        (S, "images/s: 1'234.5", 1234.5),
        (S, "images/s: 1’234’567", 1234567),
        (S, "images/s: 1_234.5", 1234.5),
        (S, "images/s: 1\u202f234.5", 1234.5),
        (S, "images/s: 1\u00a0234", 1234),
        ("([0-9.]+) images/s", "1,234.5 images/s", 1234.5),
        ("([0-9.]+) images/s", "speed 1\u2009234.5 images/s", 1234.5),
        (".*?([0-9.]+) images/s", "speed 1,234.5 images/s", 1234.5),
        ("([0-9]+) images/s", "1234.5 images/s", 1234.5),
        ("r=([0-9.]+)", "r=9.00D+02", 900),
        ("r=([0-9.]+)", "r=5.E-1", 0.5),
        ("([0-9.]+) steps", "rate: 1.2E3 steps/s", 1200),
        ("IOPS=([0-9.]+)", "write: IOPS=10.4k, BW=40.8MiB/s", 10400),
        ("IOPS=([0-9.]+)", "write: IOPS=4477, BW=17.5MiB/s", 4477),
        ("BW=([0-9.]+)", "write: IOPS=10.4k, BW=0.5MiB/s", 2**19),
        ("speed: ([0-9.]+)", "speed: 1.2 GB/s", 1.2e9),
        ("([0-9.]+)k? tok/s", "1.2k tok/s", 1200),
        ("speed ([0-9.]+)", "speed 1.2Ktok/s", 1200),
        ("speed ([0-9.]+)", "speed 5GPUs", 5),
        ("speed ([0-9.]+)", "speed 1,234.5k/s", 1234500),
        ("([0-9.]+) GB/s", "1.2 GB/s", 1.2),  # the pattern names the unit
        ("time: ([0-9.]+)", "time: 950 ms", 0.95),
        ("time: ([0-9.]+) *ms", "time: 950 ms", 950),
        ("^[0-9]+,([0-9.]+),", "10,123.4,0.5", 123.4),  # the pattern names the commas
        ("real +0m([0-9.]+)s", "real 0m1.234s", 1.234),
        ("gap ([0-9.]+)", "gap 12.3+-0.4", 12.3),
        ("([0-9.]+) img/s", "gpu0:12.5 img/s", 12.5),
        ("step ([0-9]+)", "step 10/100", 10),
        ("loss ([0-9.]+)", "loss 3 k=5", 3),
        ("r ([0-9 ]+[0-9.]*)", "r 1 234.5", 1234.5),
    ],
)
def test_the_whole_number_is_read_of_which_the_pattern_finds_a_part(
    job, pattern: str, line: str, value: float
) -> None:
    assert Metric(pattern).read(job([(0, line)])).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("pattern", "line", "whole"),
    [
        (S, "images/s: 0,125", "'0,125'"),
        (S, "images/s: 12,5", "'12,5'"),
        (S, "images/s: 1.234,5", "'1.234,5'"),
        ("([0-9.]+) images/s", "1.234.567 images/s", "'1.234.567'"),
        (S, "images/s: 1,23,456", "'1,23,456'"),
        (S, "images/s: 1 234.5", "a part of '1 234.5': if that is one number"),
        ("([0-9.]+) images/s", "12 345 images/s", "a part of '12 345'"),
        (S, "images/s: 1 234 567", "a part of '1 234 567'"),
        (S, "images/s: 12 kwidgets/s\rimages/s: 1 Mwidgets/s", "'Mwidgets/s'"),
        (S, "images/s: 1\u202f234,5", "'1\\u202f234,5'"),
        ("([0-9.]+) steps", "-5.0 steps", "is -5,"),
        ("real +([0-9.]+)", "real 0m1.234s", "'0m1.234'"),
        ("time: ([0-9.]+)", "time: 1:30.5", "'1:30.5'"),
        ("r=([0-9.]+)", "r=1.2 x 10^3", "'1.2 x 10^3'"),
    ],
)
def test_a_number_that_can_be_read_in_two_ways_is_shown_whole_and_refused(
    job, pattern: str, line: str, whole: str
) -> None:
    with pytest.raises(NoFigure) as caught:
        Metric(pattern).read(job([(0, line)]))
    assert whole in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        ("[0-9] ([0-9.]+) images/s", "12 345 images/s", 345),  # the pattern names the blank
        ("images/s: ([0-9.]+) ", "images/s: 1 234.5", 1),
        ("([0-9.]+) images/s", "step 100 12.5 images/s", 12.5),
    ],
)
def test_a_blank_that_the_pattern_names_parts_two_numbers(
    job, pattern: str, line: str, value: float
) -> None:
    assert Metric(pattern).read(job([(0, line)])).value == value


@pytest.mark.parametrize("found", [True, False])
def test_whether_something_is_so_is_no_figure(found: bool) -> None:
    with pytest.raises(NoFigure, match="The job returned bool"):
        Metric().read(found)


E = "\x1b["


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        ("speed: .*?([0-9.]+)", f"speed: {E}1;36m1234.5{E}0m images/s", 1234.5),
        ("images/s: ([0-9.]+)", f"{E}32mimages/s{E}0m: {E}1m987.6{E}0m", 987.6),
        ("speed: [^0-9]*([0-9.]+)", f"speed: {E}38;5;208m1234.5{E}0m", 1234.5),
        ("speed: .*?([0-9.]+)", f"speed: {E}38;2;255;128;0m617.2", 617.2),
        ("speed: .*?([0-9.]+)", "speed: \x9b36m12.5\x9b0m", 12.5),
        ("speed: .*?([0-9.]+)", "speed: \x1b]8;;http://a.org/8\x1b\\99\x1b]8;;\x1b\\", 99),
        ("speed: .*?([0-9.]+)", "\x1b]0;job 7\x07speed: \x1b(B5", 5),
        ("([0-9.]+) images/s", "10.0\b\b\b\b1234.5 images/s", 1234.5),
        ("([0-9.]+) images/s", "1/2 9 images/s\b\b\b\b\b\r2/2 11 images/s", 10),
        ("rate", f"speed: 1234.5 {E}32mimages/s{E}0m", 1234.5),
        ("rate", f"{E}2K{E}1A{E}35mspeed{E}39m: {E}1m1234.5{E}0m images/s", 1234.5),
    ],
)
def test_signs_that_steer_a_terminal_are_no_part_of_a_line(
    job, pattern: str, line: str, value: float
) -> None:
    run = job([(0, line)])
    metric = Metric(pattern).settled(run)
    assert metric.read(run).value == value and "\x1b" not in metric.what


@pytest.mark.parametrize("text", ["12,3", "fast", "nan", "0", "-1", "inf"])
def test_what_is_no_number_is_not_taken_for_one(job, text: str) -> None:
    with pytest.raises(NoFigure):
        Metric("r=(.*)!").read(job([(0, f"r={text}!")]))


def test_a_bars_seconds_for_each_are_read_as_the_inverse(job) -> None:
    slow = job(
        [(0, "33%|##| 1/3 [00:01<00:02,  1.25s/it]"), (0, "2/3 [00:04<00:05, 5.00s/it, loss=3]")]
    )
    metric = Metric().settled(slow)
    assert metric.read(slow).value == pytest.approx(0.5)
    assert metric.read(job([(0, "33%|##| 1/3 [00:01<00:02, 3.1kit/s]")])).value == 3100
    assert Metric("([0-9.]+)s/it", lower=True).read(slow).value == pytest.approx(3.125)


@pytest.mark.parametrize(
    ("metric", "values", "ranks", "words"),
    [
        (Metric("([0-9.]+) *it/s"), {"0": [1.0]}, 2, "One rank alone prints that figure"),
        (Metric("steps/s: (.*)"), {"0": [1.0]}, 2, "add  --reduce sum"),
        (Metric("global_step/sec: (.*)"), {"0": [1.0]}, 2, "One rank alone"),
        (Metric("batches per second: (.*)"), {"0": [1.0]}, 4, "total of all 4 ranks"),
        (Metric("total images/s: (.*)"), {"0": [1.0]}, 2, ""),
        (Metric("steps/s: (.*)", reduce="sum"), {"0": [1.0]}, 2, ""),
        (Metric("rate: (.*)"), {"0": [48.0], "1": [48.1]}, 2, "within 1 %"),
        (Metric("rate: (.*)"), {"0": [100.0], "1": [99.5], "2": [100.4]}, 3, "The 3 ranks"),
        (Metric("rate: (.*)"), {"0": [1, 48.0, 90], "1": [48.2]}, 2, "--reduce mean"),
        (Metric("rate: (.*)"), {"0": [48.0], "1": [49.0]}, 2, ""),
        (Metric("rate: (.*)"), {"?": [48.0, 60.0]}, 2, "does not say which rank"),
        (Metric("Img/sec per CPU: (.*)"), {"0": [1.0]}, 2, "One rank alone prints that figure"),
        (Metric("Img/sec per CPU: (.*)"), {"0": [1.0]}, 1, ""),
        (Metric("rate: (.*)"), {"0": [5.0], "1": [5.0]}, 2, "The 2 ranks print the same figure"),
        (Metric("rate: (.*)"), {"0": [5.0], "1": [5.0]}, 2, "add  --reduce mean"),
        (Metric("rate: (.*)"), {"0": [5.0], "1": [6.0]}, 2, ""),
        (Metric("rate: (.*)", reduce="sum"), {"0": [5.0], "1": [5.0]}, 2, ""),
        (Metric("time: (.*)", lower=True), {"0": [5.0], "1": [5.0]}, 2, ""),
        (Metric("time: (.*)", lower=True), {"?": [5.0, 6.0]}, 2, "nobody can know the slowest"),
        (Metric("time: (.*)", lower=True), {"?": [5.0]}, 2, ""),
        (Metric("time: (.*)", lower=True, reduce="mean"), {"?": [5.0, 6.0]}, 2, ""),
        (Metric(), {"record": [1.0]}, 2, ""),
    ],
)
def test_a_figure_of_one_rank_or_the_same_of_each_is_doubted(
    metric: Metric, values: dict[str, list[float]], ranks: int, words: str
) -> None:
    said = metric.doubt(Figure(1.0, "", values), ranks)
    assert words in said and bool(said) == bool(words)


@pytest.mark.parametrize(("how", "value"), [("sum", 108), ("mean", 54), ("max", 54)])
def test_of_ranks_that_are_not_told_apart_each_counts(how: str, value: float, job) -> None:
    """As Open MPI prints their lines."""
    run = job([(None, "r: 48"), (None, "r: 60")])
    run.ranks = 2
    assert Metric("r: (.*)", reduce=how).read(run).value == value


def test_a_record_is_read_where_there_is_one(job) -> None:
    run = job([(0, "9 images/s")], {"rate": 5.5, "rate_unit": "images/s", "metrics": {"loss": 0.5}})
    assert Metric().settled(run).read(run) == Figure(5.5, "images/s", {"record": [5.5]})
    assert Metric("loss").read(run).value == 0.5
    assert Metric("wall_s").read(run) == Figure(1.0, "s")


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame([{"lab": "x", "variant": "", "rate_unit": "images/s", **columns}])


@pytest.mark.parametrize(
    ("found", "what", "words"),
    [
        (frame(rate=5.0), "rat", "has no figure 'rat': type one of rate"),
        (frame(rate=0.0), "rate", "is 0, and a rate or a time is above 0"),
        (frame(rate=None, step_median_s=None), "rate", "neither a rate nor step times"),
        (pd.DataFrame(), "rate", "wrote no record"),
        (frame(rate=True), "rate", "has no figure 'rate'"),
        (frame(rate=5.0, **{"metrics.ok": False}), "ok", "no figure 'ok': type one of rate"),
        ("text", "rate", "returned str, and a comparison needs"),
        (pd.concat([frame(rate=1.0), frame(rate=2.0, variant="b")]), "rate", "records of 2 kinds"),
    ],
)
def test_a_figure_that_is_none_is_one_sentence(found: Any, what: str, words: str) -> None:
    with pytest.raises(NoFigure, match=words):
        Metric(what).read(found)


@pytest.mark.parametrize(
    ("line", "figure"),
    [
        ("Total img/sec on 2 CPU(s): 24.6 +-0.8", "24.6"),
        ("epoch 3: loss 0.4, 1234.5 images/s", "1234.5"),
    ],
)
def test_without_a_match_the_last_lines_are_shown_with_a_pattern_that_works(
    job, line: str, figure: str
) -> None:
    run = job([(0, "step 1"), (0, line), (0, "done")])
    with pytest.raises(NoFigure) as caught:
        Metric("total rate ([0-9]+)").read(run)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("There is no figure: no line matches --metric 'total rate ([0-9]+)'")
    assert rest[:-1] == ["    step 1", f"    {line}", "    done"]
    (pattern,) = re.fullmatch(r"Type  --metric '(.*)'", rest[-1]).groups()
    assert Metric(pattern).read(run).value == float(figure)
