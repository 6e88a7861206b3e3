"""Lines that look like a rate, found without being told; and patterns that never end."""

import re
import time
from pathlib import Path

import pytest

from scaleout.jobs.job import Run
from scaleout.sweeps import guess, matching, rates
from scaleout.sweeps.rates import Metric, NoFigure

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
        (["12.3 it/s"], ["12.3"]),
        (["throughput: 99.5"], ["99.5"]),
        (["Throughput = 99.5 images/s"], ["99.5"]),
        ([BAR], ["3.04", "3.14"]),
        (["epoch 3, loss 0.12, 1,234.5 images/s"], ["1,234.5"]),
        (["epoch 3: 100 images/s, 3 s left"], ["100"]),
        (["speed 1.2e+03 samples per second"], ["1.2e+03"]),
        (["samples/s=7"], ["7"]),
        (["Downloading 12 MB/s", "step 3: 10 steps/s"], ["10"]),
        (["2 MB/s"], ["2"]),
        (["rate on 4 ranks, img/s: 100, done"], ["100"]),
    ],
)
def test_one_kind_of_rate_is_found_by_itself(said: list[str], figures: list[str]) -> None:
    ((pattern, line),) = guess.candidates(said).items()
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
    assert guess.candidates([said]) == {}


def test_several_kinds_are_asked_about_with_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(NoFigure) as caught:
        Metric().settled(_job(tmp_path, *HOROVOD))
    first, *choices = str(caught.value).splitlines()
    assert first == "The command prints 3 figures that look like a rate; choose one:"
    assert [line.strip() for line in choices[::2]] == [HOROVOD[1], *HOROVOD[2:]]
    for shown, typed in zip(choices[::2], choices[1::2], strict=True):
        pattern = re.fullmatch(" +--metric '(.*)'", typed)[1]
        assert re.search(pattern, shown), "what is offered finds what is shown"


def test_what_was_settled_is_read_like_a_pattern_that_was_typed(tmp_path: Path) -> None:
    job = _job(tmp_path, "step 1: 10 images/s", "step 2: 12 images/s", ranks=2)
    settled = Metric().settled(job)
    assert settled.pattern and settled.read(job)["rate"] == 22
    assert settled.settled(_job(tmp_path, "7 it/s")) is settled
    typed = Metric("([0-9]+) images")
    assert typed.settled(job) is typed


def test_without_any_rate_nothing_is_settled(tmp_path: Path) -> None:
    metric, job = Metric(), _job(tmp_path, "loss 0.1")
    assert metric.settled(job) == metric
    with pytest.raises(NoFigure, match="the command writes no record"):
        metric.read(job)


def test_a_pattern_that_backtracks_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "LIMIT_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(NoFigure, match=r"takes longer than 0\.5 s on what the job printed"):
        Metric("((a+)+)$").read(_job(tmp_path, "a" * 60 + "!"))
    assert time.monotonic() - begun < 60, "it would take centuries"


def test_matches_are_the_first_group_that_holds_something() -> None:
    lines = ["a 1 b 2", "none", "\udcff b 3"]
    assert matching.matches("a ([0-9])|b ([0-9])", lines) == [(0, "1"), (0, "2"), (2, "3")]
    assert matching.matches("b .", lines) == [(0, "b 2"), (2, "b 3")]
