"""Which kinds take part where, how they are started, and what is said of what they gave."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from helpers import compared, lesson

from scaleout import machine
from scaleout.comparisons.intervals import Ratio
from scaleout.course import pytorch

kernels = lesson("01_onednn", "kernels")
JOB = pd.Series({"batch_per_rank": 8, "metrics.flops_per_image": 1e10})
RATES = {"onednn": 4.0, "default": 2.0, "onednn+fused": 6.0}


@pytest.mark.parametrize(
    ("quick", "here", "found"),
    [
        ("", "python", ["onednn", "default", "torch"]),
        ("", None, ["onednn", "default"]),
        ("1", "python", ["onednn", "default"]),
    ],
)
def test_pytorch_takes_part_where_it_is_and_else_a_line_says_how_to_get_it(
    quick: str,
    here: str | None,
    found: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    for module in (kernels, pytorch):
        monkeypatch.setattr(module, "python", lambda: here)
    assert kernels.with_pytorch(["onednn", "default"], ["torch"]) == found
    said = capsys.readouterr().out
    assert ("make torch" in said) == (here is None) and bool(said) == ("torch" not in found)


class Started:
    """A lab whose turns.py gives rates that differ from start to start."""

    name = "01_onednn"

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, []
        (folder / "side").mkdir()
        (folder / "side/turns.py").write_text("")

    def run(self, kinds: list[str], ranks: int, **how: Any) -> Any:
        assert how["script"] == "side/turns.py" and how["network"] == "cnn" and ranks == len(kinds)
        self.asked.append(kinds)
        start = 1 + 0.01 * len(self.asked)
        rows = [
            {"variant": kind, "rate": start * RATES[kind], "rate_unit": "images/s", "ranks": ranks}
            for kind in kinds
        ]
        return SimpleNamespace(records=pd.DataFrame(rows))


def test_each_round_is_a_start_with_the_first_kind_twice(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "")
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    lab = Started(tmp_path)
    found = kernels.in_turns(lab, ["onednn", "default", "onednn+fused"], network="cnn")
    assert len(lab.asked) == found.rounds == 3, "the intervals are narrow"
    assert lab.asked[0] == ["onednn", "onednn", "default", "onednn+fused"]
    assert lab.asked[1] == lab.asked[0][::-1]
    assert found.baseline == "oneDNN" and found.unit == "images/s"
    assert found.ratio("oneDNN, fused").middle == pytest.approx(1.5)


def test_the_short_form_starts_each_kind_once(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    lab = Started(tmp_path)
    assert kernels.in_turns(lab, ["onednn", "default"], network="cnn").rounds == 1
    assert lab.asked == [["onednn", "default"]]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.25, 1.4, "more than the 1.20 of the profile"),
        (1.05, 1.15, "saves 9 % of a step (5 to 13), of the 17 % that batch normalisation took"),
        (1.1, 1.3, "The 1.20 of the profile lies in the interval."),
    ],
)
def test_a_gain_is_compared_with_what_the_profile_allows(
    low: float, high: float, words: str
) -> None:
    gain = Ratio((low + high) / 2, low, high, 5)
    assert words in kernels.beside_bound(gain, 1.2)


def test_what_is_above_the_roof_was_not_measured_well() -> None:
    assert "kernels at the roof would be 2.0 times as fast" in kernels.room(0.5, 70.0)
    assert "Measure it again" in kernels.room(1.2, 70.0)


def test_a_gain_of_2019_is_possible_where_the_default_kernels_leave_room_for_it() -> None:
    assert kernels.beside_2019(0.2) == "[DECK19] gained 4.6, and there is room for that here."
    assert "cannot be repeated here" in kernels.beside_2019(0.3)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (["weights"], "Reorders take 2.0 % of oneDNN's time. They move weights alone"),
        (["weights", "images"], "Reorders take 4.0 % of oneDNN's time. Some move images"),
        ([], "This step needed no reorder."),
    ],
)
def test_what_was_moved_is_said(moved: list[str], words: str) -> None:
    table = pd.DataFrame({"moved": moved, "share": [0.02] * len(moved)})
    assert kernels.moved(table).startswith(words)


@pytest.mark.parametrize(("low", "reason"), [(1.9, True), (1.4, False)])
def test_what_eigen_runs_is_told_where_the_two_networks_differ(low: float, reason: bool) -> None:
    table = pd.DataFrame(
        {
            "environment": ["default", "oneDNN", "oneDNN, fused"],
            "speed-up": [1.0, 1.43, 1.73],
            "high": [float("nan"), 1.55, 1.87],
            "of the roof": [0.34, 0.48, 0.58],
        }
    )
    told = kernels.two_networks(Ratio(2.0, low, 2.2, 5), 0.37, table, 0.35)
    assert told.startswith("oneDNN makes the small network 2.00 times as fast, and ResNet-50 1.43")
    assert ("In ResNet-50, Eigen still runs 35 % of a step;" in told) is reason
    assert "uses 0.74 of the roof, ResNet-50 0.48, and with your layer 0.58: the roof" in told
    assert told.endswith(" leaves room for another 1.7.")
    table.loc[2, "of the roof"] = 1.1
    told = kernels.two_networks(Ratio(2.0, low, 2.2, 5), 0.37, table, 0.35)
    assert told.endswith("and with your layer 1.10.")


def test_the_sentences_on_pytorch_name_what_they_compare(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kernels.pytorch(compared({"oneDNN, eager": 0.01, "oneDNN": 0.04}))
    assert not capsys.readouterr().out
    kernels.pytorch(compared({"oneDNN, eager": 0.01, "oneDNN": 0.04, "PyTorch": 0.02}))
    assert capsys.readouterr().out.startswith("PyTorch: slower, 0.5000 times as fast as oneDNN (")


@pytest.mark.parametrize("first", ["default", "onednn"])
def test_the_summary_compares_with_the_default_kernels_and_the_roof(first: str) -> None:
    kinds = [first, *sorted(RATES, key=lambda kind: kind == first)]
    found = compared({kernels.NAMES[kind]: RATES[kind] / 100 for kind in kinds})
    table = kernels.summary(found, JOB, 90.0).set_index("environment")
    assert sorted(table.index[:3]) == ["default", "oneDNN", "oneDNN, fused"]
    assert table.index[0] == "default"
    assert table.loc["oneDNN, fused", "speed-up"] == pytest.approx(3, rel=0.01)
    assert table.loc["oneDNN", "low"] <= 2.01 and table.loc["oneDNN", "high"] >= 1.99
    assert list(table.columns[:4]) == ["Network", "Batch size", "images/s", "speed-up"]
    ours = table.loc["oneDNN"]
    assert ours["images/s"] / table.loc["default", "images/s"] == pytest.approx(ours["speed-up"])
    assert ours["of the roof"] == pytest.approx(ours["images/s"] * 10 / 90)
    assert table.loc["MKL-DNN, 2019", "speed-up"] == pytest.approx(4.6, abs=0.01)


def test_an_interval_that_reaches_zero_has_no_upper_end_the_other_way_round() -> None:
    found = SimpleNamespace(middle=0.5, low=0.0, high=4.0)
    result = SimpleNamespace(baseline="oneDNN", ratio=lambda variant: found)
    assert kernels._beside_default(result, "oneDNN") == (2.0, 0.25, float("inf"))
