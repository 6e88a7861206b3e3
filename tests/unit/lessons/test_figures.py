"""Figures of the notebooks that judge what they show, drawn from small made-up records: a title that
follows from the numbers, words for who cannot see it, and the reader's guess in the picture. The
masters draw every figure."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import compared, guesses_in, lesson, read_figure

from scaleout import Comparison, scaling
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.intervals import Ratio

Draw = Callable[..., Any]


def spread(middle: float, runs: int = 5) -> list[float]:
    """Single runs around a median."""
    return [middle * (0.96 + 0.08 * n / (runs - 1)) for n in range(runs)]


def frame(**columns: Any) -> pd.DataFrame:
    """One record, also where a value is a list."""
    return pd.DataFrame([columns])


def profiled(**ms: float) -> pd.DataFrame:
    """What each operation of a step takes, and 10 ms between them."""
    library = {"Conv2D": "oneDNN", "FusedBatchNormV3": "oneDNN"}
    rows = [(op, op, library.get(op, "Eigen"), 1.0, time) for op, time in ms.items()]
    found = pd.DataFrame(rows, columns=["name", "op", "library", "calls", "time_ms"])
    found.attrs = {"step_ms": sum(ms.values()) + 10}
    return found


def operations(draw: Draw, guess: Any) -> Any:
    return draw(profiled(Mean=50.0, Conv2D=40.0, Mul=30.0), guess)


def thread_census(draw: Draw, guess: Any) -> Any:
    ranks = [{"threads": {"Python": 1, "Eigen": 4}, "cpus": {"Python": 0.1, "Eigen": 1.5}}]
    job = pd.DataFrame([{"metrics.shares": ranks, "metrics.cores": [[0], [1]]}])
    return draw({"nothing set": job, "again": job}, guess)


def crowd(draw: Draw, guess: Any) -> Any:
    return draw(compared({"a fair share": 1.0, "threads sleep": 0.98, "by default": 0.02}), guess)


def inter_intra(draw: Draw, guess: Any) -> Any:
    cells = {"1 x 1": 1.0, "OMP_NUM_THREADS": 0.99, "1 x 2": 1.83, "2 x 1": 1.45, "2 x 2": 1.9}
    return draw(compared(cells), guess)


def pings(last: float = 1.0) -> pd.DataFrame:
    """Messages of 1 us and 10 GB/s; the longest takes so many times as long."""
    sizes = [4**k for k in range(13)]
    seconds = [1e-6 + 1e-10 * n for n in sizes[:-1]] + [last * (1e-6 + 1e-10 * sizes[-1])]
    return pd.DataFrame(
        {"metrics.bytes": sizes, "step_median_s": seconds, "step_s": map(spread, seconds)}
    )


def fitted() -> scaling.AlphaBeta:
    found = pings()
    return scaling.fit_alpha_beta(found["metrics.bytes"], found.step_median_s)


def message_time(draw: Draw, guess: Any) -> Any:
    return draw(pings(last=2.0), fitted(), guess)


def memory_modes(draw: Draw, guess: Any) -> Any:
    def job(ranks: int, mib: int, rows: int) -> pd.DataFrame:
        each = {"memory_mib": 150 + mib, "program_mib": 150, "rows_mib": rows}
        lists = {name: [value] * ranks for name, value in each.items()}
        return frame(metrics=lists | {"palette": [[0.1, 0.2], [0.3, 0.4]]}, step_s=[0.5])

    modes = {"batch": job(1, 200, 153), "distributed": job(2, 100, 76), "online": job(1, 10, 2)}
    return draw(modes, data_mib=153, guess=guess)


def schedules(draw: Draw, guess: Any) -> Any:
    accuracy = {"batch 64": 0.98, "512, decay": 0.95, "512, gradual warm-up": 0.97}
    runs = [
        {"variant": name, "accuracy": mean + (seed - 1) / 100, "tested": 1234}
        for name, mean in accuracy.items()
        for seed in range(3)
    ]
    rates = {name: [0.1 * n for n in range(n + 1, 3 * n + 9)] for n, name in enumerate(accuracy)}
    return draw(frame(metrics={"runs": runs, "rates": rates}), guess)


def tuned(cycles: dict[int, list[float]]) -> Comparison:
    """One rank, two that do not talk, and two with Horovod's cycle at so many milliseconds."""
    rates = {"1 rank": [100.0] * 3, "2 ranks, apart": [196.0] * 3}
    rates |= {f"2 ranks, cycle {ms} ms": each for ms, each in cycles.items()}
    order = [("1 rank", 1), *((name, 0) for name in rates)]
    return Comparison(
        [
            {"round": r, "place": 9 * r + i, "variant": name, "again": again}
            | {"value": rates[name][r]}
            for r in range(3)
            for i, (name, again) in enumerate(order)
        ]
    )


def cycle_times(draw: Draw, guess: Any) -> Any:
    found = tuned({1: [118, 120, 121], 4: [170, 176, 177], 10: [150, 150, 152]})
    return draw(found, goal=0.85, guess=guess)


def of_this_day(**wanted: float) -> pd.DataFrame:
    """Records of 01 as its lab writes them, three jobs each, with a short one, one of another
    network, one of two copies, one of 02, one of another machine, which must not count."""
    plain = {"lab": "01_onednn", "ranks": 1, "batch_per_rank": 64, "metrics.network": "cnn"}
    plain |= {"step_s": [0.1] * 100, "cpu": "ours", "utc": "2026-01-02"}
    rows = []
    for name, rate in wanted.items():
        kind = {"metrics.kernels": name}
        rows += [plain | kind | {"rate": rate * wobble} for wobble in (0.98, 1.0, 1.02)]
        rows += [
            plain | kind | {"rate": 99_999.0} | other
            for other in (
                {"step_s": [0.1]},
                {"metrics.network": "resnet50"},
                {"ranks": 2},
                {"lab": "02_threads"},
                {"batch_per_rank": 16},
                {"cpu": "another", "utc": "2026-01-01"},
            )
        ]
    return pd.DataFrame(rows)


def your_day(draw: Draw, guess: Any) -> Any:
    found = of_this_day(default=1000.0, onednn=4000.0)
    last = compared({"1 rank": 15.0, "2 ranks, unbound": 25.0, "2 ranks, cycle 4 ms": 30.0})
    day = lesson("05_horovod").day(found, last, "2 ranks, cycle 4 ms")
    return draw(day, 300.0, guess)


def kept_steps(draw: Draw, guess: Any) -> Any:
    tried = {"one": {"a": 1.5, "b": 2.0}, "other": {"c": 0.8}, "last": {"d": 1.5}}
    steps = {name: compared({"so far": 1.0, **times}) for name, times in tried.items()}
    chosen = {name: found.best for name, found in steps.items()}
    whole = Ratio(2.4, 2.3, 2.5, 5)
    tuning = SimpleNamespace(
        steps=steps, choices=chosen, promised=Ratio(3.0, 2.9, 3.1, 5), measured=whole
    )
    return draw(tuning, guess)


def wires(draw: Draw, guess: Any) -> Any:
    """Messages of 10 us and 1 GB/s; 2 MB beside 8 ms of compute then take 10.02 ms."""
    sizes = [8, 512, 8192, 131072, 1 << 20]
    job = {
        "sizes": sizes,
        "messages_s": [1e-5 + 1e-9 * n for n in sizes],
        "steps": [
            {"bytes": 2_000_000, "compute_s": [0.007], "add_s": [0.001], "step_s": [0.02004]}
        ],
    }
    rows = [{"variant": name, "metrics": job} for name in ("memory", "TCP")]
    return draw(pd.DataFrame(rows), ["small"], guess)


def few_bits(draw: Draw, guess: Any) -> Any:
    rows = [{"variant": "fp32", "metrics.part": "int8", "metrics.accuracy": 0.96}]
    for bits, tensor, channel in ((8, 0.96, 0.96), (4, 0.90, 0.95), (2, 0.30, 0.50)):
        rows += [
            {"variant": f"{bits} bits, {per}", "metrics.part": "int8", "metrics.accuracy": value,
             "metrics.off": [1 / bits, 2 / bits]}
            for per, value in (("tensor", tensor), ("channel", channel))
        ]  # fmt: skip
    return draw(pd.DataFrame(rows), guess)


def calibrations(draw: Draw, guess: Any) -> Any:
    shares = {"fp32": 0.97, "int8, 1 batch": 0.96, "int8, 100 times as dark": 0.24}
    rows = [
        {"variant": name, "metrics.part": "models", "metrics.accuracy": share,
         "metrics.bytes": 1024 * 455}
        for name, share in shares.items()
    ]  # fmt: skip
    return draw(pd.DataFrame(rows), guess)


def climbed(draw: Draw, guess: Any) -> Any:
    rung = lesson("08_precision", "isa").Rung
    here = [
        rung("AVX2", "fp32", (np.nan, 1.0, np.nan)),
        rung("AVX2", "int8", (1.0, 1.1, 1.2), 1.0),
    ]
    there = [
        here[0],
        rung("AVX2", "int8", (1.8, 1.9, 2.0), 0.5),
        rung("AVX512_CORE_VNNI", "int8", (3.8, 4.0, 4.2), 0.0),
    ]
    return draw({"This machine": here, "Another": there}, guess)


def latency(draw: Draw, guess: Any) -> Any:
    """At 90 % one process takes 4 ms where one per core takes 8, in each round."""
    rows = []
    for load, slow in ((30, 1.5), (90, 2.0)):
        took = {"one process": 4.0, "one per core": 4.0 * slow}
        runs = compared({way: ms / 100 for way, ms in took.items()}).runs.to_dict("records")
        tried = [
            {"way": way, "ms_50": ms / 2, "ms_95": ms, "longest": 3} for way, ms in took.items()
        ]
        rows.append(
            {"metrics.part": "arrivals", "metrics.load": load, "metrics.per_s": 10.0 * load,
             "metrics.batch": 16, "metrics.runs": runs, "metrics.tried": tried}
        )  # fmt: skip
    return draw(pd.DataFrame(rows), guess)


def frameworks(draw: Draw, guess: Any) -> Any:
    ways = ("TensorFlow, 1 rank", "TensorFlow, 2 ranks", "PyTorch, 2 ranks")
    faster, slower = (
        compared(dict(zip(ways, times, strict=True)))
        for times in ((1.0, 1.3, 1.1), (1.0, 0.8, 0.7))
    )
    return draw({"small": faster, "large": slower}, guess)


# Figures that judge what they show: how to draw one, words that must be among its own, and a guess.
FIGURES: dict[str, tuple[Draw, str, object]] = {
    "01_onednn operations": (
        operations,
        "The longest operation is Mean, with 38 % of a step. a step: Conv2D 40 ms, Mean 50 ms,",
        "conv2d",
    ),
    "02_threads thread_census": (
        thread_census,
        "nothing set: 5 threads keep 1.6 CPUs busy, on 2 cores.",
        3,
    ),
    "02_threads crowd": (
        crowd,
        "With a fair share of threads, two copies of K-means are 50 times as fast as by default.",
        1.5,
    ),
    "02_threads inter_intra": (
        inter_intra,
        "2 threads in place of 1 bring 1.83 times the rate as intra-op threads, and 1.45 times "
        "as inter-op threads; OMP_NUM_THREADS=2 brings 0.99.",
        1.1,
    ),
    "03_spmd message_time": (
        message_time,
        "16 MiB take 3,357 us, 2.0 times as long as alpha and beta say. That is 5 GB/s; the most is "
        "10, at 4 MiB.",
        1700,
    ),
    "04_kmeans memory_modes": (
        memory_modes,
        "The modes find the same palette, to a thousandth. Besides Python and its libraries, a rank "
        "needs this many MiB (in brackets: how long one run took): batch 200 (0.50 s), distributed "
        "100 (0.50 s), online 10 (0.50 s).",
        153,
    ),
    "05_horovod schedules": (
        schedules,
        "Highest mean with a batch of 512: gradual warm-up, 97.00 ± 0.58 %. 3 seeds do not tell "
        "another from it.",
        "512, decay",
    ),
    "05_horovod cycle_times": (
        cycle_times,
        "A cycle of 4 ms: an efficiency of 0.87, before it is measured again. The default, 1 ms: "
        "0.60. Ranks that train apart: 0.98",
        3,
    ),
    "05_horovod your_day": (
        your_day,
        "The highest bar: oneDNN, 4,000 images/s; two tuned ranks: 3,003. The largest step: oneDNN, "
        "4.0 times. default kernels: 1,000 images/s. oneDNN: 4,000 images/s. two ranks: 2,502 "
        "images/s. tuned: 3,003 images/s. At NumPy's rate: 4,606 images/s.",
        "oneDNN",
    ),
    "06_tuning kept_steps": (
        kept_steps,
        "2 of 3 steps kept. Promised 3.0x (2.9 to 3.1), measured 2.4x (2.3 to 2.5): the steps "
        "promised too much.",
        "other",
    ),
    "07_scaling wires": (
        wires,
        "Predictions of small are off by -50 % (memory), -50 % (TCP): all 2 came out too short. "
        "small, memory: 10 (10 to 10) ms predicted, 20 (20 to 20) measured; small, TCP: 10 (10 to 10) ms",
        40,
    ),
    "08_precision latency": (
        latency,
        "90 % of what the better way can answer, one process answers 95",
        5,
    ),
    "08_precision few_bits": (
        few_bits,
        "down to 8 bits per tensor (0.0 points less) and 4 bits per channel (1.0 points less).",
        3,
    ),
    "08_precision calibrations": (
        calibrations,
        "Broken by calibration: 100 times as dark: 24.0 % right",
        50,
    ),
    "08_precision ladder": (
        climbed,
        "AVX2: int8 is 1.1 times (1.0 to 1.2) as fast as fp32 on AVX2, and every sum is wrong. "
        "Elsewhere, AVX512_CORE_VNNI: 4.0 times",
        8,
    ),
    "09_networks frameworks": (frameworks, "large: TensorFlow, 1 rank is the fastest.", 1.5),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_says_what_it_found(figure: str) -> None:
    drawing, words, guess = FIGURES[figure]
    topic, name = figure.split()
    draw = getattr(lesson(topic), name)
    empty = drawing(draw, None)
    assert words in read_figure(empty) and not guesses_in(empty)
    guessed = drawing(draw, guess)
    assert any(str(guess) in text for text in guesses_in(guessed))
    assert re.search(f"our guess: (efficiency )?{guess}", read_figure(guessed))
    for axes in guessed.axes:
        for line in axes.lines:
            if line.get_marker() == "*" and line.get_transform() == axes.transData:
                assert axes.viewLim.contains(*line.get_xydata()[0]), "a guess that nobody sees"


def added(strips: int, step_s: float, allreduce_s: float, ranks: int = 2) -> pd.DataFrame:
    """A job that added up strips, whose ranks took half of them each, or all."""
    share = {"first": 0, "last": -(-strips // ranks)}
    metrics = {"strips": strips, "allreduce_s": allreduce_s, "shares": [share, share]}
    metrics = {f"metrics.{name}": value for name, value in metrics.items()}
    return frame(step_median_s=step_s, **metrics)


def test_what_halving_saves_and_whether_an_allreduce_is_mostly_waiting() -> None:
    said = lesson("00_welcome").halving
    short = added(1_001, 10e-6, 3.2e-6)
    assert said(short, added(40_000_001, 42e-3, 184e-6)) == (
        "At the long sum's pace, halving the strips saves 1.05 microseconds, less than the "
        "allreduce takes; 5.75 of the 10.0 are neither strips nor allreduce. With 40,000,001 "
        "strips the same allreduce took 184 microseconds: most of that was waiting for the other "
        "rank."
    )
    long = added(40_000_001, 42e-3, 9e-6)
    assert said(added(10_001, 14e-6, 3e-6), long).endswith(
        "saves 10.5 microseconds, more than the allreduce takes."
    )
    assert said(added(1_001, 1e-5, 1e-7, ranks=1), long).startswith("Nothing was halved")


def test_a_crowd_is_told_beside_that_of_k_means() -> None:
    said = lesson("02_threads").crowds
    kmeans = compared({"a fair share": 1.0, "by default": 0.02})
    sides = {"1 rank": 1.0, "full": 1.8, "lone": 2.0}
    assert said(compared(sides), "full", "lone", kmeans) == (
        "The crowd keeps 0.90 to 0.90 of the rate here; K-means was slower by a factor of 50."
    )
    few = said(compared(sides, rounds=1), "full", "lone", kmeans)
    assert few == "By default, K-means was slower by a factor of 50."


def test_a_guess_that_is_no_number_is_refused_in_a_sentence() -> None:
    with pytest.raises(ScaleoutError, match="Your guess is 'three': write a number, such as 1.5"):
        thread_census(lesson("02_threads").thread_census, "three")


def test_batch_normalisation_stands_beside_the_step_that_it_is_a_part_of() -> None:
    step = profiled(Mean=50.0, Mul=10.0, Conv2D=120.0, AddN=10.0)
    step["name"] = ["stage/conv1_bn/mean", "stage/conv1_bn/mul", "stage/conv1/conv", "AddN_3"]
    draw = lesson("01_onednn")
    figure = draw.operations(step)
    words = " ".join(read_figure(figure).split())
    assert "Conv2D, with 60 % of a step. Batch normalisation takes 35 %, in 3 operations." in words
    assert "In all, Eigen runs 35 %." in words
    assert "its batch normalisation: Mean 50 ms, AddN 10 ms, Mul 10 ms." in words
    assert draw.norm_share(step) == pytest.approx(0.35)
    assert "left without it\n130 ms" in [text.get_text() for text in figure.axes[0].texts]
    step["name"] = "no normalisation"
    assert draw.norm_share(step) == 0, "AddN is part of something else"


def test_the_longest_of_three_passes_uses_the_processor_less_well() -> None:
    passes = lesson("01_onednn").passes
    found = profiled(Conv2D=20.0, Conv2DBackpropInput=30.0, Conv2DBackpropFilter=40.0, Mean=99.0)
    told = (
        "Conv2DBackpropFilter takes 2.0 times as long as Conv2D, for about as many multiplications"
    )
    assert passes(found) == f"{told}: it uses the processor less well."
    assert passes(profiled(Conv2D=20.0, Conv2DBackpropInput=21.0)).endswith("multiplications.")


def test_a_guessed_operation_has_its_star_on_its_part() -> None:
    draw = lesson("01_onednn").operations
    before = profiled(Conv2DBackpropInput=50.0, Conv2D=40.0)
    (star,) = draw(before, "conv2d").axes[0].lines
    assert star.get_ydata()[0] == 20, "oneDNN's Conv2D lies below, not Conv2DBackpropInput"
    assert guesses_in(draw(before, "Softmax")) == ["your guess: Softmax (too small to be shown)"]


def test_a_guessed_schedule_has_its_star_on_its_row() -> None:
    def stars(guess: str | None) -> list[float]:
        lines = schedules(lesson("05_horovod").schedules, guess).axes[1].lines
        return [float(y) for line in lines if line.get_marker() == "*" for y in line.get_ydata()]

    assert stars("512, decay") == [1.0] and stars("warm-up") == [2.0]
    assert np.isnan(stars("magic")) and stars(None) == []


def test_the_best_cycle_is_the_one_that_is_measured_again() -> None:
    found = tuned({4: [155, 156, 157], 8: [146, 160, 160]})
    again = max(found.variants[1:], key=lambda name: found.ratio(name).middle)  # as 05 chooses
    assert again == "2 ranks, cycle 4 ms", "though the other has the higher median"
    figures = lesson("05_horovod")
    label = figures.cycle_times(found).get_label()
    assert label.startswith("A cycle of 4 ms")


def test_a_run_that_is_left_out_is_crossed_out() -> None:
    """A round is left out for a run of its own, and for all where it is the baseline's."""
    draw = lesson("05_horovod").cycle_times

    def crossed(found: Comparison) -> dict[float, float]:
        crosses = [line for line in draw(found).axes[0].lines if line.get_marker() == "x"]
        return {float(x): float(y) for line in crosses for x, y in line.get_xydata()}

    def rows(**changed: float) -> Comparison:
        plain = compared({"1 rank": 1.0, "2 ranks, cycle 1 ms": 1.1, "2 ranks, cycle 4 ms": 1.6})
        names = {"one": "2 ranks, cycle 1 ms", "alone": "1 rank"}
        factor = {names[key]: value for key, value in changed.items()}
        told = plain.runs.to_dict("records")
        for row in told:
            if row["round"] == 2 and not row["again"]:
                row["value"] *= factor.get(row["variant"], 1)
        return Comparison(told)

    assert crossed(rows()) == {}
    assert "all rounds together" in read_figure(draw(rows()))
    assert crossed(rows(one=1.5)) == {1.0: pytest.approx(0.825, abs=0.01)}
    words = read_figure(draw(rows(one=1.5)))
    assert "far off the others: left out" in words and "without those far off: 1: 0.55" in words
    assert set(crossed(rows(alone=0.5))) == {1.0, 4.0}


def test_how_much_the_adding_explains_is_said_and_no_more() -> None:
    said = lesson("03_spmd").explained

    def found(names: tuple[str, str], ms: tuple[float, float]) -> Comparison:
        times = compared({name: 1.0 / each for name, each in zip(names, ms, strict=True)})
        told = times.runs.to_dict("records")
        for row in told:
            row["value"] = 0.1 / row["value"]  # seconds
        return Comparison(told, lower=True)

    adding = found(("MPI adds", "NumPy adds"), (0.5, 0.25))
    ways = ("recursive doubling", "ring's way")
    told = said(found(ways, (3.5, 2.5)), adding)
    assert told == (
        "Recursive doubling took 1.00 ms longer; the other half of the numbers, which it adds too, "
        "takes MPI 0.50 ms. Adding alone explains no more than that."
    )
    assert said(found(ways, (2.9, 2.5)), adding).endswith("Adding alone can explain all of it.")
    for ms in ((2.5, 2.5), (2.5, 3.0)):
        assert "is not shown to take longer, though the other" in said(found(ways, ms), adding)


def test_a_call_among_too_many_ranks_stands_beside_one_of_two() -> None:
    asking = compared({"keep asking": 8e-5, "let go": 4e-6})  # seconds
    alone = pd.DataFrame(
        {"variant": ["ring", "mpi", "mpi"], "metrics.bytes": [16, 64, 16]}
        | {"step_median_s": [9e-6, 3e-6, 2e-6]}
    )
    assert (
        lesson("03_spmd")
        .one_call(asking, alone)
        .endswith(
            "If they let go, it still takes 400 us; two ranks with a core each took 2.00, for 16 B."
        )
    )


def test_the_ring_is_behind_for_short_arrays_and_ahead_for_long_ones() -> None:
    rows = [
        {"metrics.bytes": size, "variant": way, "step_median_s": seconds}
        for size, ring in ((16, 2.0), (4096, 1.0), (2**20, 0.95), (2**24, 0.85))
        for way, seconds in (("gather-broadcast", 1.0), ("ring", ring), ("mpi", 0.5))
    ]
    words = read_figure(lesson("03_spmd").ring_by_size(pd.DataFrame(rows), fitted()))
    assert words.startswith(
        "In this one job, up to 4 KiB the ring takes 1.5 times as long as gather and broadcast; from "
        "1 MiB on, 0.85 to 0.95 times. Alpha and beta say 1.0 and 0.5 times."
    )


def test_a_winner_that_shrank_and_a_missed_goal_are_said() -> None:
    said = lesson("05_horovod").second_look
    name = "2 ranks, cycle 4 ms"
    search, final = tuned({4: [180, 181, 182]}), tuned({4: [150, 151, 152]})
    fell = said(search, final, name, 0.85)
    assert fell.startswith("2 ranks, cycle 4 ms: the search promised an efficiency of 0.905 (0.8")
    assert "Measured again it is 0.755 (0.737 to 0.773), less than promised, and the two" in fell
    assert fell.endswith(
        "do not overlap. The ranks that train apart, which nobody chose, have 0.98 and then 0.98, so "
        "most of the fall is in the exchange. An interval holds for the rounds of one job; the next "
        "job can lie outside it. The goal of 0.85 is missed."
    )
    before, after = (
        compared({"1 rank": 100.0, "2 ranks, apart": 100.0 * two, name: 98.0 * two})
        for two in (1.9, 1.6)
    )
    assert "so most of the fall is not in the exchange" in said(before, after, name, 0.85)
    assert "no less than promised. The goal of 0.7 is reached" in said(final, search, name, 0.7)
    wide = tuned({4: [140, 150, 176]})
    assert "but the two intervals overlap: no fall is shown." in said(search, wide, name, 0.85)


def test_what_two_ranks_lose_and_why_is_told_apart() -> None:
    """At the default cycle bound and unbound, and at the tuned one, each beside ranks apart."""

    def found(bound: float, unbound: float, longer: float) -> Comparison:
        return compared(
            {"1 rank": 100.0, "2 ranks, apart": 200.0, "2 ranks, unbound": unbound}
            | {"2 ranks, cycle 1 ms": bound, "2 ranks, cycle 4 ms": longer}
        )

    said = lesson("05_horovod").price
    four = "2 ranks, cycle 4 ms"
    waits = tuned({4: [180, 181, 182], 10: [150, 151, 152]})
    search = tuned({4: [150, 151, 152], 10: [180, 181, 182]})
    again = found(120.0, 122.0, 190.0)
    lost, cycle, binding = said(search, again, four).splitlines()
    assert lost == (
        "At 1 ms, the default, two ranks lose 40 % against two ranks apart; at 4 ms, 5 %."
    )
    assert cycle.startswith(
        "The longer cycle alone makes 1.58 times as many images/s. Horovod asks"
    )
    assert binding.startswith("Binding ")
    assert "In the search, 10 ms was 0.83 times as fast as the best" in said(waits, again, four)
    assert "Binding helps, too: 1.50 times" in said(search, found(180.0, 120.0, 190.0), four)
    assert "Binding costs, 0.67 times at 1 ms" in said(search, found(120.0, 180.0, 190.0), four)
    search = tuned({1: [150, 151, 152], 10: [150, 151, 152]})
    again = found(190.0, 190.0, 120.0)
    lost, cycle, _ = said(search, again, "2 ranks, cycle 1 ms").splitlines()
    assert lost.endswith("two ranks lose 5 % against two ranks apart.")
    assert cycle == "Asking less often has not paid here."


def test_a_picture_of_the_tracing_warns() -> None:
    said = lesson("05_horovod").while_traced
    rows = [{"variant": "2 ranks, cycle 1 ms", "value": rate} for rate in (3990, 4000, 4100)]
    untraced = pd.DataFrame({"metrics.runs": [rows], "batch_per_rank": [64]})
    slow, like = (pd.DataFrame({"batch_global": [128], "rate": [r]}) for r in (1280.0, 3900.0))
    warned = said(slow, untraced, "2 ranks, cycle 1 ms")
    assert warned.startswith(
        "2 ranks, cycle 1 ms: 100 ms a step while it is traced, 32 ms untraced. So"
    )
    assert said(like, untraced, "2 ranks, cycle 1 ms").endswith(
        "33 ms a step while it is traced, 32 ms untraced."
    )


def test_two_variants_are_compared_by_their_own_ratio() -> None:
    found = tuned({4: [150, 151, 152], 8: [180, 181, 182]})
    said = lesson("05_horovod").against
    four, eight = "2 ranks, cycle 4 ms", "2 ranks, cycle 8 ms"
    assert said(found, four, eight).startswith(f"{four}: 0.83 times as fast as {eight} (0.83 to")
    assert said(found, four, eight).endswith("That is slower.")
    assert said(found, eight, four).endswith("That is faster.")


def test_a_day_that_was_interrupted_shows_what_there_is() -> None:
    figures = lesson("05_horovod")
    (name,) = day = figures.day(of_this_day(onednn=2000.0))
    assert name == "oneDNN"
    words = read_figure(figures.your_day(day, 300.0))
    assert words.startswith(
        "Your day so far: oneDNN, 2,000 images/s. Not measured yet: default kernels (01), "
        "two ranks (05), tuned (05)."
    )
    with pytest.raises(ScaleoutError, match="Nothing of this day is measured yet"):
        figures.your_day(figures.day(pd.DataFrame(columns=["lab", "rate"])), 300.0)


def test_steps_of_the_day_that_overlap_are_no_gain() -> None:
    figures = lesson("05_horovod")
    found = of_this_day(default=1000.0, onednn=1010.0)
    assert "the largest step" not in read_figure(figures.your_day(figures.day(found), 300.0))


def test_the_factors_of_an_efficiency_multiply_to_it() -> None:
    """One rank takes 1 s; two share it in steps of 0.8 s, of which the formula's messages are 0.1."""
    rows = [(1, "1 rank", 1.0, [1.0], 0.0), (2, "strong", 0.8, [0.4, 0.6], 0.1),
            (2, "weak", 1.25, [1.0, 1.0], 0.25)]  # fmt: skip
    frame = pd.DataFrame(
        {"ranks": ranks, "variant": name, "step_median_s": step_s,
         "metrics": {"shares": [{"compute_s": s} for s in compute], "ring_s": ring_s}}
        for ranks, name, step_s, compute, ring_s in rows
    )  # fmt: skip
    strong, weak = lesson("07_scaling").factors(frame).to_dict("records")
    assert strong["computation scaling"] == pytest.approx(1.0)
    assert strong["load balance"] == pytest.approx(0.5 / 0.6)
    assert strong["serialisation"] == pytest.approx(0.6 / 0.7)
    assert strong["product"] == pytest.approx(1 / (2 * 0.8))
    assert weak["serialisation"] == pytest.approx(1.0) and weak["product"] == pytest.approx(0.8)


def test_a_second_rank_of_06_is_predicted_from_the_profile_of_one() -> None:
    """Steps of 20 ms and tests of 10 ms a step; an exchange of 10 ms: 2 x 30 over 35 ms."""
    shares = [{"train_s": 1.5, "input_s": 0.5, "evaluation_s": 1.0, "steps": 101}]
    metrics = {"shares": shares, "accuracy": [0.1] * 11, "gradient_bytes": 2e6}
    one = {"ranks": 1, "metrics": metrics}
    wire = {"sizes": [8, 10**6], "messages_s": [1e-6, 4e-3]}
    wire |= {"steps": [{"bytes": 2e6, "add_s": [2e-3]}]}
    records = pd.DataFrame({"variant": ["shared memory, as MPICH comes"], "metrics": [wire]})

    def said(low: float, middle: float, high: float) -> str:
        found = SimpleNamespace(
            records=pd.DataFrame([one]),
            variants=["ranks: 2"],
            ratio=lambda name: SimpleNamespace(low=low, middle=middle, high=high),
        )
        return str(lesson("07_scaling").second_rank(found, records, every=10))

    near, late = said(1.6, 1.7, 1.8), said(1.4, 1.5, 1.6)
    assert "20.0 ms a step, and 10.0 for the tests" in near
    assert "of 2.0 MB: 10.0 ms" in near and "Predicted: 1.71 times" in near
    assert near.endswith("The prediction lies within that interval.")
    assert late.endswith("A step of two ranks takes 5.0 ms longer than the formula says.")


def test_errors_of_one_sign_are_said_to_lean() -> None:
    leaning = lesson("07_scaling").leaning
    assert leaning([-5.0, -1.0]) == "all 2 came out too short"
    assert leaning([5.0, 1.0]) == "all 2 came out too long"
    assert leaning([-5.0, 1.0]) == "1 of 2 came out too short"
