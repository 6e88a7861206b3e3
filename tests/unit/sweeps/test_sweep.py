"""Sweeps without jobs: the grid, mistyped knobs, figures in output, journal, result, the
picture."""

import html
import math
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from scaleout import cli, plots, records, sweeps
from scaleout.errors import ScaleoutError
from scaleout.jobs.job import Run
from scaleout.sweeps import commands, estimate, journal, knobs, points
from scaleout.sweeps.points import Point
from scaleout.sweeps.rates import Metric, NoFigure
from scaleout.words import rounded

HOROVOD = [
    (None, "mpirun's own: 7 img/sec"),
    (0, "Running benchmark..."),
    (0, "Iter #0: 3.1 img/sec per CPU"),
    (0, "Iter #1: 12.1 img/sec per CPU"),
    (0, "Iter #2: 12.5 img/sec per CPU"),
    (0, "Img/sec per CPU: 12.3 +-0.4"),
    (0, "Total img/sec on 2 CPU(s): 24.6 +-0.8"),
]


# The grid


def test_a_grid_is_every_combination_in_the_order_asked_for() -> None:
    found = points.choices([2, 1, 2], [1], {"A": ["x", None], "B": 3}, cores=2)
    assert found == {"ranks": (2, 1), "threads": (1,), "A": ("x", None), "B": ("3",)}
    grid = points.grid(found, cores=2)
    assert list(grid) == [(2, 1, "x", "3"), (2, 1, None, "3"), (1, 1, "x", "3"), (1, 1, None, "3")]
    assert grid[2, 1, None, "3"] == Point(2, 1, (("A", None), ("B", "3")))


def test_threads_that_are_not_asked_for_are_a_ranks_share_of_the_cores() -> None:
    shares = {
        p.ranks: p.threads
        for p in points.grid(points.choices([1, 2, 4, 8], [], {}, 4), cores=4).values()
    }
    assert shares == {1: 4, 2: 2, 4: 1, 8: 1}


def test_the_default_takes_every_swept_variable_away() -> None:
    default = points.default(points.choices([2], [1], {"A": ["1"], "OMP_NUM_THREADS": ["2"]}, 2))
    assert default == Point(1, None, (("A", None), ("OMP_NUM_THREADS", None)))
    words = " ".join(default.script(["python", "x.py"]))
    assert words == (
        "env -u OMP_NUM_THREADS -u TF_NUM_INTRAOP_THREADS -u TF_NUM_INTEROP_THREADS -u A python x.py"
    )


def test_a_point_that_takes_nothing_away_leaves_the_command_as_it_is() -> None:
    assert Point(2, 1, (("A", "1"),)).script(["python", "x.py"]) == ["python", "x.py"]
    assert Point(2, 1, (("A", None),)).script(["python", "x.py"]) == [
        "env",
        "-u",
        "A",
        "python",
        "x.py",
    ]


# Mistyped knobs


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("OMP_NUM_THREAD", "OMP_NUM_THREADS"),
        ("OPM_NUM_THREADS", "OMP_NUM_THREADS"),
        ("omp_num_threads", "OMP_NUM_THREADS"),
        ("TF_INTEROP_THREADS", "TF_NUM_INTEROP_THREADS"),
        ("TF_NUM_INTRA_OP_THREADS", "TF_NUM_INTRAOP_THREADS"),
        ("TF_ENABLE_ONEDNN_OPT", "TF_ENABLE_ONEDNN_OPTS"),
        ("KMP_AFINITY", "KMP_AFFINITY"),
        ("KMP_BLOCK_TIME", "KMP_BLOCKTIME"),
        ("HOROVOD_CYCLETIME", "HOROVOD_CYCLE_TIME"),
        ("HOROVOD_FUSION_TRESHOLD", "HOROVOD_FUSION_THRESHOLD"),
        ("I_MPI_PIN_DOMAINS", "I_MPI_PIN_DOMAIN"),
        ("MKL_NUM_THREAD", "MKL_NUM_THREADS"),
        ("ONEDNN_MAX_CPU_ISE", "ONEDNN_MAX_CPU_ISA"),
    ],
)
def test_a_mistyped_knob_is_refused_with_what_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(ScaleoutError, match=rf"{typed}: did you mean {meant}\?"):
        knobs.check(typed)


@pytest.mark.parametrize(
    "name",
    [
        "BATCH",
        "MY_MODEL_DIR",
        "NCCL_DEBUG",
        "CUDA_VISIBLE_DEVICES",
        "PAUSE",
        "DNNL_VERBOSE",
        "MPIR_CVAR_CH4_OFI",
    ],
)
def test_a_variable_that_resembles_none_is_the_programs_own(name: str) -> None:
    knobs.check(name)


def test_no_known_knob_is_refused() -> None:
    assert len(knobs.KNOBS) > 150
    for name in knobs.KNOBS:
        assert re.fullmatch(r"[A-Z0-9_]+", name)
        knobs.check(name)


# Figures


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
    found = Metric(r"Total img/sec on \d+ CPU\(s\): ([0-9.]+)").read(job(HOROVOD))
    assert found == {"rate": 24.6, "unit": "", "values": {"0": [24.6]}}
    assert Metric(r"([0-9.]+) img/sec").read(job(HOROVOD))["values"] == {"0": [3.1, 12.1, 12.5]}


def test_the_first_figures_are_dropped_and_the_median_of_the_others_counts(job) -> None:
    assert Metric(r"([0-9.]+) img/sec", skip=0).read(job(HOROVOD))["rate"] == 12.1
    assert Metric(r"([0-9.]+) img/sec", skip=1).read(job(HOROVOD))["rate"] == pytest.approx(12.3)
    with pytest.raises(NoFigure, match="--skip 3 leaves nothing of the 3"):
        Metric(r"([0-9.]+) img/sec", skip=3).read(job(HOROVOD))


def test_ranks_are_summed_or_averaged_as_asked_each_without_its_own_warm_up(job) -> None:
    lines = [(0, "rate 1"), (1, "rate 2"), (1, "rate 40"), (0, "rate 20")]
    assert Metric("rate ([0-9]+)", "sum", 1).read(job(lines))["rate"] == 60
    assert Metric("rate ([0-9]+)", "mean", 1).read(job(lines))["rate"] == 30


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1,234.5", 1234.5), ("1e3", 1000.0), ("12", 12.0), ("1,234,567", 1234567.0), (" 7 ", 7.0)],
)
def test_numbers_are_read_as_programs_print_them(job, text: str, rate: float) -> None:
    assert Metric("r=(.*)!").read(job([(0, f"r={text}!")]))["rate"] == rate


@pytest.mark.parametrize("text", ["12,3", "fast", "nan", "0", "-1", "inf"])
def test_what_is_no_rate_is_not_taken_for_one(job, text: str) -> None:
    with pytest.raises(NoFigure):
        Metric("r=(.*)!").read(job([(0, f"r={text}!")]))


def test_where_no_line_tells_its_rank_all_count_as_one(job) -> None:
    assert Metric("rate ([0-9]+)").read(job([(None, "rate 4"), (None, "rate 6")]))["values"] == {
        "?": [4, 6]
    }


@pytest.mark.parametrize(
    ("pattern", "reduce", "values", "ranks", "words"),
    [
        ("Img/sec per CPU: (.*)", "sum", {"0": [1.0]}, 2, "One rank alone prints that figure"),
        ("Img/sec per CPU: (.*)", "sum", {"0": [1.0]}, 1, ""),
        ("Img/sec per CPU: (.*)", "sum", {"0": [1.0], "1": [1.0]}, 2, ""),
        ("Total img/sec: (.*)", "sum", {"0": [1.0]}, 2, ""),
        ("Total img/sec: (.*)", "sum", {"0": [1.0], "1": [1.0]}, 2, "add  --reduce mean"),
        ("Total img/sec: (.*)", "mean", {"0": [1.0], "1": [1.0]}, 2, ""),
        ("", "sum", {"record": [1.0]}, 2, ""),
    ],
)
def test_a_figure_of_one_rank_or_a_total_of_each_is_doubted(
    pattern, reduce, values, ranks: int, words: str
) -> None:
    said = Metric(pattern, reduce).doubt(values, ranks)
    assert words in said and bool(said) == bool(words)


def test_a_record_is_read_where_there_is_one(job) -> None:
    assert Metric().read(job([], {"rate": 5.5, "rate_unit": "images/s"})) == {
        "rate": 5.5,
        "unit": "images/s",
        "values": {"record": [5.5]},
    }


def test_a_record_without_a_rate_counts_its_steps(job) -> None:
    found = Metric().read(job([], {"step_s": [0.1, 0.2, 0.4]}))
    assert found["rate"] == pytest.approx(5) and found["unit"] == "steps/s"


def test_records_of_several_kinds_are_not_mixed(job) -> None:
    with pytest.raises(NoFigure, match="2 kinds .ring, tree."):
        Metric().read(job([], {"variant": "ring", "rate": 1}, {"variant": "tree", "rate": 2}))


@pytest.mark.parametrize(
    ("line", "figure"),
    [
        ("Total img/sec on 2 CPU(s): 24.6 +-0.8", "24.6"),
        ("Iter #9: 12.3 img/sec per CPU", "12.3"),
        ("throughput = 8.25", "8.25"),
        ("epoch 3: loss 0.4, 1234.5 images/s", "1234.5"),
        ("Images/sec: 99", "99"),
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
    assert Metric(pattern).read(run)["rate"] == float(figure)


def test_a_silent_job_is_told_how_a_pattern_looks(job) -> None:
    with pytest.raises(
        NoFigure,
        match=r"writes no record. Its last lines are:\n    \(nothing\)\nType  --metric 'im",
    ):
        Metric().read(job())


# The journal

ABOUT = {"command": ["x"], "choices": {"ranks": ["1"]}}
ONE = Point(1, 1)


def _row(rate: float | None = 1.0, **more: object) -> dict:
    status = "ok" if rate else "failed"
    return {
        "rate": rate,
        "unit": "",
        "status": status,
        "reason": "" if rate else "it broke",
        "wall_s": 1.0,
        **more,
    }


@pytest.fixture
def kept(results: Path) -> journal.Journal:
    return journal.Journal("mine")


def _open(name: str = "mine", about: dict = ABOUT) -> journal.Journal:
    """The journal as the next sweep finds it."""
    found = journal.Journal(name)
    with found.open(about, print):
        return found


def test_what_was_kept_is_found_again(kept) -> None:
    point = Point(2, 1, (("A", None), ("B", "x y")))
    with kept.open(ABOUT, print):
        kept.add((journal.FIRST, points.default("AB"), 0), _row(2.0))
        kept.add((journal.POINT, point, 1), _row(3.0))
    assert [(key, row["rate"]) for key, row in _open().done.items()] == [
        ((journal.FIRST, Point(1, None, (("A", None), ("B", None))), 0), 2.0),
        ((journal.POINT, point, 1), 3.0),
    ]


@pytest.mark.parametrize(
    "damage", ['{"schema": 1, "role": "poi', "null", "[1]", '{"role": "point"}', "\0\0\0"]
)
def test_a_damaged_line_is_left_out_and_cuts_no_other(kept, capsys, damage: str) -> None:
    with kept.open(ABOUT, print):
        kept.add((journal.POINT, ONE, 0), _row())
        with open(kept.path, "a") as file:
            file.write(damage)  # and no end of line
    after = journal.Journal("mine")
    with after.open(ABOUT, print):
        assert "line 2: no record" in capsys.readouterr().out
        after.add((journal.POINT, ONE, 1), _row())
    assert [key[2] for key in _open().done] == [0, 1]


def test_a_later_line_of_the_same_job_counts(kept) -> None:
    with kept.open(ABOUT, print):
        kept.add((journal.POINT, Point(2, 1), 0), _row())
        kept.add((journal.POINT, ONE, 0), _row(None))
        kept.add((journal.POINT, ONE, 0), _row(7.0))
    assert [row["rate"] for row in _open().done.values()] == [1.0, 7.0]


def test_a_default_is_not_the_last_once_a_point_comes_after_it(kept) -> None:
    with kept.open(ABOUT, print):
        for role in (journal.FIRST, journal.POINT, journal.LAST, journal.POINT):
            kept.add((role, ONE, len(kept.done)), _row())
    assert [role for role, _, _ in _open().done] == [journal.FIRST, journal.POINT, journal.POINT]


def test_a_folder_that_holds_another_sweep_is_refused(kept) -> None:
    with kept.open(ABOUT, print):
        kept.add((journal.POINT, ONE, 0), _row())
    with pytest.raises(ScaleoutError, match="with another command: name this one with --name"):
        _open(about=ABOUT | {"command": ["y"]})
    with pytest.raises(ScaleoutError, match="with another axes"):
        _open(about=ABOUT | {"choices": {"threads": ["1"]}})
    assert _open(about=ABOUT | {"choices": {"ranks": ["1", "2"]}}).done  # a larger grid of the same


def test_where_all_failed_the_next_sweep_begins_anew_and_keeps_the_old_lines(kept) -> None:
    with kept.open(ABOUT, print):
        kept.add((journal.POINT, ONE, 0), _row(None))
    assert _open(about=ABOUT | {"command": ["mended"]}).done == {}
    assert len((kept.folder / "failed-1.jsonl").read_text().splitlines()) == 1


def test_two_sweeps_never_share_a_folder(kept) -> None:
    with kept.open(ABOUT, print), pytest.raises(ScaleoutError, match="mine is running already"):
        _open()
    _open()


def test_an_edited_script_is_another_sweep(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("print(1)")
    before = journal.scripts(["python", str(path), "missing.py", "--log", "train.log"])
    path.write_text("print(2)")
    after = journal.scripts(["python", str(path)])
    assert list(before) == list(after) == [str(path)] and before != after
    assert journal.digest({"scripts": before}) != journal.digest({"scripts": after})


# The result


def _result(rates: dict[int, list], defaults: list[list], **how: object) -> sweeps.Result:
    rows = []
    for role, given in zip((journal.FIRST, journal.LAST), defaults, strict=True):
        rows += [
            _row(r, role=role, ranks=1, threads=None, env={}, repeat=i) for i, r in enumerate(given)
        ]
    for ranks, given in rates.items():
        rows += [
            _row(r, role=journal.POINT, ranks=ranks, threads=1, env={}, repeat=i)
            for i, r in enumerate(given)
        ]
    return sweeps.Result(rows, **how)


def test_median_spread_ratio_best_and_drift() -> None:
    result = _result({4: [9, 10, 14], 2: [20, 30, 22]}, [[10, 12, 11], [12, 13, 14]])
    assert result.frame.ranks.tolist() == [2, 4] and result.frame.rate.tolist() == [22, 10]
    assert result.frame.spread.tolist() == [5, 2.5]
    assert (
        result.default.rate == 12
        and result.default.threads == "unset"
        and result.default.repeats == 6
    )
    assert result.best.ranks == 2 and result.best.ratio == pytest.approx(22 / 12)
    assert result.drift == pytest.approx(13 / 11 - 1)
    assert result.table.loc["best", "rate"] == 22 and list(result.table.index) == [
        "default",
        "best",
    ]
    head = "The best of 2 points gives 22.0, 1.83 times the default's 12.0."
    assert result.summary.startswith(head)
    assert len(result.runs) == 12
    assert repr(result).splitlines()[2].split() == ["best", "2", "1", "22.0", "5.00", "1.83", "3"]
    assert "<table" in result._repr_html_() and html.escape(result.summary) in result._repr_html_()


def test_of_times_the_least_is_the_best() -> None:
    result = _result({2: [5.0], 4: [20.0]}, [[10.0], [10.0]], lower=True)
    assert result.best.ranks == 2 and result.best.ratio == 2.0


def test_a_point_that_failed_once_is_not_recommended() -> None:
    result = _result({2: [90.0, None], 4: [11.0, 11.0]}, [[10.0], [10.0]])
    failed = result.frame.iloc[0]
    assert result.best.ranks == 4 and math.isnan(failed.rate)
    assert (failed.status, failed.reason, failed.repeats) == ("failed", "it broke", 1)


def test_the_default_itself_can_be_the_best() -> None:
    result = _result({2: [5.0]}, [[10.0], [10.0]])
    assert (
        result.best is result.default
        and result.summary == "Nothing in 1 point beats the default: 10.0."
    )


def test_no_difference_is_called_none() -> None:
    assert "no difference to be seen" in _result({2: [11, 10, 12]}, [[9, 12], [9, 12]]).summary
    assert (
        "the default's own drift"
        in _result({2: [11.0]}, [[10.0, 10, 10, 10, 10, 10], [12.0]]).summary
    )


def test_all_failed_or_nothing_measured_is_said() -> None:
    assert _result({2: [None]}, [[None], []]).best is None
    assert "No point gave a figure" in repr(_result({2: [None]}, [[None], []]))
    assert "No point gave a figure" in repr(sweeps.Result([]))
    assert "the default gives no figure (it broke)" in _result({2: [5.0]}, [[None], []]).summary


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.012345, "0.0123"), (24.55, "24.6"), (1234.5, "1,234"), (0, "0"), (math.nan, "-")],
)
def test_figures_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert rounded(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (99, "99 s"), (600, "10 min"), (7260, "2 h 1 min")]
)
def test_a_duration_is_said_as_a_person_would(seconds: float, text: str) -> None:
    assert estimate.duration(seconds) == text


# The picture


def _frame(**cells: float) -> pd.DataFrame:
    """cells: r2t1=3.0 is 2 ranks x 1 thread; not a number where it failed."""
    rows = [{"ranks": int(k[1]), "threads": int(k[3:]), "rate": v} for k, v in cells.items()]
    return pd.DataFrame(rows)


def _texts(figure) -> dict[tuple[int, int], str]:
    """{(column, row): text} of the cells."""
    return {tuple(map(int, text.get_position())): text.get_text() for text in figure.axes[0].texts}


def test_a_heat_map_shows_each_cell_failed_and_unmeasured_ones_apart() -> None:
    figure = plots.heat_map(_frame(r1t1=10, r1t16=20, r2t1=math.nan), default=12, unit="images/s")
    axes, bar = figure.axes
    assert _texts(figure) == {(0, 0): "10.0", (1, 0): "20.0", (0, 1): "failed", (1, 1): ""}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "16"]
    assert (axes.get_xlabel(), axes.get_ylabel(), bar.get_ylabel()) == (
        "threads a rank (count)",
        "ranks (count)",
        "images/s",
    )
    assert axes.get_title("left").startswith("best: 20.0 images/s with ranks 1, threads 16")
    assert "ranks 1, threads 1: 10.0" in figure.get_label()
    colours = axes.images[0].cmap(axes.images[0].norm(axes.images[0].get_array()))
    assert colours[1][0][3] == 0, "the failed cell shows the white paper"
    hatched, framed = (
        [p for p in axes.patches if p.get_hatch()],
        [p for p in axes.patches if not p.get_fill()],
    )
    assert [p.get_xy() for p in hatched] == [(0.5, 0.5)] and [p.get_xy() for p in framed] == [
        (0.5, -0.5)
    ]


def test_a_heat_map_counts_the_rate_of_a_copy_for_nothing() -> None:
    frame = _frame(r1t1=10, r1t2=20, r2t1=99).assign(status=["ok", "ok", "copies"])
    assert _texts(plots.heat_map(frame)) == {
        (0, 0): "10.0",
        (1, 0): "20.0",
        (0, 1): "copies",
        (1, 1): "",
    }


@pytest.mark.parametrize("lower", [False, True])
def test_the_better_is_the_darker_also_in_grey(lower: bool) -> None:
    figure = plots.heat_map(_frame(r1t1=10, r1t2=20, r1t4=30), lower=lower)
    image = figure.axes[0].images[0]
    light = [
        float(rgba[:3] @ [0.299, 0.587, 0.114])
        for rgba in image.cmap(image.norm(image.get_array()))[0]
    ]
    assert light == sorted(light, reverse=not lower) and max(light) - min(light) > 0.5


def test_a_cell_is_the_best_over_the_other_settings() -> None:
    frame = pd.DataFrame(
        {"ranks": [1, 1, 2], "threads": 1, "A": ["x", "y", "x"], "rate": [1.0, 3.0, 2.0]}
    )
    figure = plots.heat_map(frame)
    assert _texts(figure) == {(0, 0): "3.00", (0, 1): "2.00"}
    assert "best over the other settings" in figure.axes[0].get_title("left")


# Bad input: one sentence, status 2, and no job

BENCH = str(Path(__file__).parents[2] / "data" / "bench.py")
GO = ["--", "python", BENCH]
BAD = {
    "nothing to sweep": ([*GO], "There is nothing to sweep over: type, for example,  -n 1,2"),
    "no command": (["-n", "1,2"], "There is no command to measure: put it last, after --"),
    "an unknown program": (["-n", "1", "--", "pyton", BENCH], "There is no program pyton"),
    "an unknown script": (["-n", "1", "--", "python", "no.py"], "There is no script no.py"),
    "its own mpirun": (["-n", "1", "--", "mpirun", "-n", "2", "python"], "Leave mpirun out"),
    "no values": (["--env", "A=", *GO], "--env takes NAME=VALUE1,VALUE2"),
    "no name": (["--env", "=1", *GO], "--env takes NAME=VALUE1,VALUE2"),
    "no equals sign": (["--env", "OMP", *GO], "--env takes NAME=VALUE1,VALUE2"),
    "only commas": (["--env", "A=,", *GO], "A has no value to try"),
    "ranks in words": (["-n", "one,two", *GO], "-n takes numbers with commas between"),
    "an empty list": (["-n", "", *GO], "-n takes numbers with commas between"),
    "no ranks": (["-n", "0,1", *GO], "-n takes numbers of ranks, 1 or more"),
    "no threads": (["-t", "-1", *GO], "-t takes numbers of threads, 1 or more"),
    "absurdly many ranks": (
        ["-n", "100000", *GO],
        "would measure nothing but waiting: -n goes up to",
    ),
    "absurdly many threads": (
        ["-t", "100000", *GO],
        "would measure nothing but waiting: -t goes up to",
    ),
    "a mistyped knob": (["--env", "OMP_NUM_TREADS=1,2", *GO], "did you mean OMP_NUM_THREADS?"),
    "a pattern that is none": (
        ["-n", "1", "--metric", "rate: ([0-9", *GO],
        "is no regular expression",
    ),
    "an unknown reduction": (
        ["-n", "1", "--reduce", "max", *GO],
        "--reduce takes sum or mean, not 'max'",
    ),
    "a negative skip": (["-n", "1", "--skip", "-1", *GO], "--skip takes a count, 0 or more"),
    "no repeats": (["-n", "1", "--repeat", "0", *GO], "--repeat takes a number, 1 or more"),
    "negative search": (["-n", "1", "--search", "-1", *GO], "--search takes a number, 0 or more"),
    "no minutes": (["-n", "1", "--max-minutes", "nan", *GO], "--max-minutes takes a number"),
    "no time": (["-n", "1", "--timeout", "0", *GO], "above 0 and finite"),
    "a name that is a path": (["-n", "1", "--name", "../x", *GO], "--name takes letters, digits"),
    "a missing site": (
        ["-n", "1", "--site", "no.toml", *GO],
        "The site file no.toml cannot be read",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_with_one_sentence(case: str, results: Path, capsys) -> None:
    words, answer = BAD[case]
    assert cli.main(["sweep", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("scaleout: ") and answer in line
    assert not list(results.rglob("output.txt")) or case == "no time"


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("A=1,2", ["1", "2"]),
        ("A=,1", ["", "1"]),
        (
            "KMP_AFFINITY=granularity=fine,compact,1,0;disabled",
            ["granularity=fine,compact,1,0", "disabled"],
        ),
        ("KMP_AFFINITY=granularity=fine,compact,1,0;", ["granularity=fine,compact,1,0"]),
        ("A=1..4", ["1", "2", "3", "4"]),
        ("A=,0..2,9", ["", "0", "1", "2", "9"]),
        ("A=1..9*2", ["1", "2", "4", "8"]),
        ("A=3..3", ["3"]),
        ("A=1.5,..,a..4,../1..4", ["1.5", "..", "a..4", "../1..4"]),
    ],
)
def test_values_are_split_at_commas_or_where_they_hold_some_at_semicolons(
    typed: str, values: list[str]
) -> None:
    assert list(commands._variables([typed])[0].values()) == [values]
    assert commands._variables(["A=1", "A=2"]) == ({"A": ["1", "2"]}, {})


@pytest.mark.parametrize(
    "typed",
    ["4..1", "1..9*1", "0..9*2", "1..9*0", "1..999999999", "1...4", "0.5..2", "1...", "-1.0..2"],
)
def test_a_range_that_has_no_end_or_no_value_is_refused(typed: str) -> None:
    with pytest.raises(ScaleoutError, match=r"is no range of 1 to 1,000 values: type  A=1\.\.10 "):
        commands._variables([f"A={typed}"])
