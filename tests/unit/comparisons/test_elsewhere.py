"""Headline comparisons of other machines: kept by the round, shown below one's own."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from scaleout import Comparison, compare, explain, lab
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons import elsewhere

SMALL = elsewhere.Kind(cpu="AMD EPYC", isa="AVX2", cores=2, l3_kib=8192, memory_gib=24)
LARGE = elsewhere.Kind(
    cpu="Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", isa="AMX", cores=16, l3_kib=107520
)
NOISE = (1.0, 1.01, 0.99, 1.02, 0.98)


def measured(ratio: float = 2.0, others: Sequence = ()) -> Comparison:
    """Compare one rank with two, the second `ratio` times as fast."""
    rows = [
        {
            "round": number,
            "variant": name,
            "again": again,
            "value": 100 * times * noise,
            "unit": "x/s",
        }
        for number, noise in enumerate(NOISE)
        for name, again, times in (("1 rank", 0, 1), ("1 rank", 1, 1), ("2 ranks", 0, ratio))
    ]
    return Comparison(rows, others=others)


def rows_of(
    ratio: float, kind: elsewhere.Kind, name: str = "pi", date: str = "2026-11-28"
) -> list[elsewhere.Headline]:
    rows = elsewhere.headlines(measured(ratio), name)
    return [msgspec.structs.replace(row, machine=kind, date=date) for row in rows]


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: elsewhere.Headline) -> Path:
        path = tmp_path / elsewhere.FILE
        path.write_text("".join(elsewhere.line(row) + "\n" for row in rows))
        return path

    return write


def test_what_is_read_back_has_the_ratio_the_interval_and_the_noise_of_what_was_measured(keep):
    own = measured(1.7)
    (other,) = elsewhere.kept(keep(*rows_of(1.7, SMALL)), "pi")
    assert other.name == "EPYC, AVX2, 2 cores"
    for end in ("low", "middle", "high"):
        there, here = (getattr(one.ratio("2 ranks"), end) for one in (other.found, own))
        assert there == pytest.approx(here, rel=1e-3)
    assert other.found.noise == pytest.approx(own.noise, rel=0.02)
    assert other.found.unit == "x/s"


def test_seconds_are_the_better_the_less_they_are_there_too(keep):
    rows = [
        {"round": n, "variant": name, "again": again, "value": value, "unit": "s"}
        for n in range(3)
        for name, again, value in (("a", 0, 2.0), ("a", 1, 2.0), ("b", 0, 1.0))
    ]
    path = keep(*elsewhere.headlines(Comparison(rows, lower=True), "fit"))
    assert elsewhere.kept(path, "fit")[0].found.ratio("b").middle == pytest.approx(2)


def test_of_one_kind_of_machine_the_last_day_counts(keep):
    richer = msgspec.structs.replace(SMALL, memory_gib=64)
    path = keep(*rows_of(1.5, richer, date="2026-11-30"), *rows_of(1.2, SMALL))
    (other,) = elsewhere.kept(path, "pi")
    assert other.found.ratio("2 ranks").middle == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ({"l3_kib": 32768}, [", L3 8 MiB", ", L3 32 MiB"]),
        ({"l2_kib": 512}, [", L2 unknown", ", L2 512 KiB"]),
        ({"cpu": "AMD EPYC Processor"}, ["", " (2)"]),
    ],
    ids=["L3", "L2", "none"],
)
def test_two_kinds_of_one_name_are_told_apart(keep, change, ends):
    newer = msgspec.structs.replace(SMALL, **change)
    found = elsewhere.kept(keep(*rows_of(1.5, SMALL), *rows_of(1.2, newer)), "pi")
    assert [one.name for one in found] == [f"EPYC, AVX2, 2 cores{end}" for end in ends]


def test_of_several_comparisons_each_machines_last_one_counts(keep):
    path = keep(
        *rows_of(1.5, SMALL, "low"), *rows_of(1.6, LARGE, "low"), *rows_of(3.0, LARGE, "high")
    )
    found = {
        one.name: one.found.ratio("2 ranks").middle for one in elsewhere.kept(path, "low", "high")
    }
    assert found == {
        "EPYC, AVX2, 2 cores": pytest.approx(1.5, rel=1e-3),
        "Xeon Platinum 8481C, AMX, 16 cores": pytest.approx(3.0, rel=1e-3),
    }


def test_a_damaged_line_and_part_of_a_comparison_are_left_out(keep, capsys):
    first, second = rows_of(1.5, SMALL)
    path = keep(second)
    assert elsewhere.kept(path, "pi") == []
    path.write_text(f'{elsewhere.line(first)}\n{{"schema": 1}}\n{elsewhere.line(second)}\n')
    assert len(elsewhere.kept(path, "pi")) == 1
    assert "line 2: no record" in capsys.readouterr().out
    assert elsewhere.kept(path.with_name("none.jsonl"), "pi") == []


def test_the_figure_names_each_other_machine_and_without_one_is_as_it_was(keep):
    others = elsewhere.kept(keep(*rows_of(0.11, SMALL), *rows_of(3.9, LARGE)), "pi")
    words = {text.get_text() for axes in measured(others=others).plot().axes for text in axes.texts}
    assert {"EPYC, AVX2, 2 cores: 0.11x", "Xeon Platinum 8481C, AMX, 16 cores: 3.90x"} <= words
    alone = measured().plot()
    assert not any("cores" in text.get_text() for axes in alone.axes for text in axes.texts)
    assert alone.get_figheight() < measured(others=others).plot().get_figheight()


def test_explain_says_ones_own_finding_first(keep, capsys):
    others = elsewhere.kept(keep(*rows_of(0.11, SMALL), *rows_of(3.9, LARGE)), "pi")
    explain(measured(2.0, others), faster="Two are {ratio} times as fast.")
    assert capsys.readouterr().out.splitlines() == [
        "Two are 2.00 times as fast.",
        "Stored runs of 2 ranks: 0.11 times as fast (0.11 to 0.11) on EPYC, AVX2, 2 cores; 3.90 "
        "times as fast (3.90 to 3.90) on Xeon Platinum 8481C, AMX, 16 cores.",
    ]
    explain(measured(2.0), faster="Two are {ratio} times as fast.")
    assert capsys.readouterr().out.splitlines() == ["Two are 2.00 times as fast."]


def test_another_baseline_is_not_compared_with(keep):
    found = measured(others=elsewhere.kept(keep(*rows_of(2.0, SMALL)), "pi"))
    found.baseline = "another"
    assert found.elsewhere("2 ranks") == {}


def test_the_curve_over_ranks_is_ones_own_and_the_largest_others(keep):
    others = elsewhere.kept(keep(*rows_of(1.5, SMALL)), "pi")
    figure = measured(1.8, others).plot_over_ranks(r"(\d+) ranks", efficiency=True)
    assert "0.90 on 2 ranks, here; 0.75 on 2 ranks, EPYC, AVX2, 2 cores" in figure.get_label()
    with pytest.raises(ScaleoutError, match="No variant matches"):
        measured().plot_over_ranks("threads")


def test_a_labs_comparison_brings_what_its_folder_keeps_under_its_name(
    keep, tmp_path, monkeypatch, results
):
    topic = lab("00", solution=False)
    topic.folder = keep(*rows_of(1.5, SMALL)).parent
    (tmp_path / "runme.py").touch()
    topic.script = tmp_path / "runme.py"
    monkeypatch.setattr(type(topic), "run", lambda self, ranks=1: float(ranks))
    variants = {"1 rank": {"ranks": 1}, "2 ranks": {"ranks": 2}}
    assert [*compare(topic.run, variants, name="pi", rounds=3).elsewhere("2 ranks")] == [
        "EPYC, AVX2, 2 cores"
    ]
    assert compare(topic.run, variants, name="other", rounds=3).others == []
