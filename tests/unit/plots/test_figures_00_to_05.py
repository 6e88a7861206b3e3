"""Every figure of the topics 00 to 05, drawn from small made-up records: a title, words for who
cannot see it, units at the axes, and the reader's guess in the picture."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from helpers import figures_of, guesses_in, lesson, read_figure

from scaleout import Comparison, machine, scaling

Draw = Callable[..., Any]


def spread(middle: float, runs: int = 5) -> list[float]:
    """Single runs around a median."""
    return [middle * (0.96 + 0.08 * n / (runs - 1)) for n in range(runs)]


def frame(**columns: Any) -> pd.DataFrame:
    """One record, also where a value is a list."""
    return pd.DataFrame([columns])


# 00_welcome
def limits(draw: Draw, guess: Any) -> Any:
    return draw([90.0, 100.0, 110.0], [10.0], guess)


def shares(draw: Draw) -> Any:
    strips = [{"rank": r, "first": 500 * r, "last": 500 * r + 500, "part": 1.5} for r in range(2)]
    return draw(frame(**{"metrics.shares": strips}))


# 01_onednn
def layouts(draw: Draw) -> Any:
    return draw(pixels=2, channels=4, block=2)


def number_formats(draw: Draw, guess: Any = None) -> Any:
    return draw(lesson("01_onednn", "formats").formats(), guess)


# 02_threads
def rank_map(draw: Draw) -> Any:
    node = machine.example_cores(sockets=2, cores=24)
    return draw({"a": (node, 4, 12), "b": (node, 3, 16), "c": (node[:24], 2, 6)})


def which_knob(draw: Draw, guess: Any) -> Any:
    rows = [
        {"variant": name, "rate": 100 * busy, "metrics.cpus_busy": busy}
        for name, middle in (("all 1", 1.0), ("intra-op", 1.9), ("inter-op", 1.05))
        for busy in spread(middle, 3)
    ]
    knobs = pd.DataFrame(rows)
    still = knobs.assign(**{"metrics.cpus_busy": 1.0})
    return draw({"ours": still, "theirs": knobs}, guess)


# 03_spmd
def who_holds(draw: Draw) -> Any:
    a, b = np.array([1, 2]), np.array([2**8, 2**9])
    calls = ["Reduce", "Allreduce", "Scatter"]
    ends = {0: (a, [a + b, a + b, a[:1]]), 1: (b, [None, a + b, a[1:]])}
    return draw(
        [
            [(call, mine, end) for call, end in zip(calls, each, strict=True)]
            for mine, each in ends.values()
        ]
    )


def by_size(ways: dict[str, list[float]]) -> pd.DataFrame:
    """Seconds of each way, for arrays of 4 and of 1,024 bytes."""
    rows = [
        {"variant": way, "metrics.bytes": n, "step_s": spread(s), "step_median_s": s, "ranks": 2}
        for way, seconds in ways.items()
        for n, s in zip((4, 1024), seconds, strict=True)
    ]
    return pd.DataFrame(rows)


def bytes_sent(draw: Draw, guess: Any) -> Any:
    sent = {
        "gather-broadcast": {2: 100, 4: 300},
        "tree": {2: 100, 4: 200},
        "ring": {2: 100, 4: 150},
    }
    rows = [
        {"variant": way, "metrics.sent_bytes": [0, count], "metrics.bytes": 100, "ranks": ranks}
        for way, counts in sent.items()
        for ranks, count in counts.items()
    ]
    table = pd.DataFrame(rows)
    return draw([table[table.ranks == ranks] for ranks in (2, 4)], guess)


def message_time(draw: Draw, guess: Any) -> Any:
    sizes = [1, 1_000, 10_000, 1_000_000]
    seconds = [2e-6 + 1e-9 * n for n in sizes]
    return draw(sizes, list(map(spread, seconds)), scaling.fit_alpha_beta(sizes, seconds), guess)


def allreduce_time(draw: Draw) -> Any:
    expected = {"ring": lambda n: 8e-6 + 1e-8 * n}
    return draw(by_size({"ring": [9e-6, 2e-5], "tree": [5e-6, 4e-5]}), expected)


def mpi_libraries(draw: Draw) -> Any:
    seconds = {"MPICH": [1e-6, 4e-6], "Intel MPI": [1e-6, 2e-6], "Open MPI": [2e-6, 1e-6]}
    return draw({name: by_size({"mpi": each}) for name, each in seconds.items()}, published=1.27)


def servers_or_ring(draw: Draw, guess: Any) -> Any:
    sent = {1: 6.0, 2: 4.0, 0: 1.5}
    rows = [
        {
            "metrics.servers": servers,
            "metrics.sent_bytes": [mib * ranks / 4 * 2**20],
            "ranks": ranks,
            "step_s": spread(0.01 * ranks + 0.02 * servers),
        }
        for ranks in (2, 4)
        for servers, mib in [*sent.items(), (4, 1.5)]
        if servers <= ranks
    ]
    return draw([pd.DataFrame(rows)], cores=2, guess=guess)


def straggler_timeline(draw: Draw) -> Any:
    logs = {
        "all wait": [(1, 0.0, 0.01, 0.04), (2, 0.0, 0.04, 0.04), (1, 0.04, 0.05, 0.08)],
        "nobody waits": [(1, 0.0, 0.03, 0.04), (2, 0.0, 0.06, 0.08)],
    }
    return draw({how: frame(**{"metrics.timeline": log, "ranks": 3}) for how, log in logs.items()})


def stale_losses(draw: Draw) -> Any:
    ends = {"all wait": [(4.0, 60, 0.2)], "nobody waits": [(1.0, 60, 0.3), (2.0, 60, 0.5)]}
    curves = {
        how: [frame(**{"metrics.curve": [(0.0, 0, 2.0), (0.5, 30, 1.0), end]}) for end in runs]
        for how, runs in ends.items()
    }
    return draw(curves)


# 04_kmeans
def quantised(draw: Draw, folder: Path) -> Any:
    plt.imsave(folder / "quantised.png", np.zeros((4, 6, 3)))
    job = {
        "colours": 2,
        "psnr_db": 21.5,
        "count": [1, 3],
        "shares": [{"palette": [[0, 0, 0], [1, 1, 1]]}],
    }

    run = SimpleNamespace(records=frame(metrics=job), folder=folder)
    return draw(np.zeros((4, 6, 3)), [run])


def quality(draw: Draw, guess: Any) -> Any:
    jobs = [{"colours": k, "inertia": 1000 / k, "psnr_db": 20.0 + k} for k in (2, 4, 8)]
    return draw([frame(metrics=job) for job in jobs], guess)


def strong_and_weak(draw: Draw) -> Any:
    def jobs(seconds: dict[int, float]) -> list[pd.DataFrame]:
        return [
            frame(ranks=n, step_median_s=s, cores=2)
            for n, middle in seconds.items()
            for s in spread(middle, 3)
        ]

    return draw(jobs({1: 8.0, 2: 5.0, 4: 6.0}), jobs({1: 8.0, 2: 10.0, 4: 20.0}))


def memory_bars(draw: Draw, guess: Any) -> Any:
    jobs = {"batch": [300.0], "distributed": [180.0, 190.0]}
    return draw(
        {
            name: frame(**{"metrics.memory_mib": mib, "metrics.program_mib": [100.0] * len(mib)})
            for name, mib in jobs.items()
        },
        data_mib=200,
        guess=guess,
    )


# 05_horovod
def drifting_ranks(draw: Draw) -> Any:
    weights = {"no-broadcast": [[1.0, 0.5], [2.0, 1.5]], "right": [[1.0, 0.5], [1.0, 0.5]]}
    return draw({how: frame(**{"metrics.weight": own}) for how, own in weights.items()})


def schedules(draw: Draw, guess: Any) -> Any:
    accuracy = {"batch 64": 0.98, "512, decay": 0.95, "512, gradual warm-up": 0.97}
    runs = [
        {"variant": name, "again": 0, "accuracy": mean + (seed - 1) / 100, "tested": 1234}
        for name, mean in accuracy.items()
        for seed in range(3)
    ]
    runs.append({"variant": "batch 64", "again": 1, "accuracy": 0.1, "tested": 1234})
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


def step_shares(draw: Draw) -> Any:
    parts = {"compute_s": [0.02, 0.03], "waiting_s": [0.01, 0.0], "communication_s": [0.005, 0.006]}
    tuned = pd.DataFrame({"rank": [0, 1], **parts})
    return draw({"as it comes": tuned, "tuned": tuned})


def step_timeline(draw: Draw) -> Any:
    """Eight steps of 30 ms, two gradients each."""
    steps = pd.DataFrame(
        {
            "step": np.repeat(range(1, 9), 2),
            "rank": [0, 1] * 8,
            "start_s": np.repeat(range(1, 9), 2) * 0.03,
            "compute_s": 0.02,
            "waiting_s": [0.004, 0.0] * 8,
            "communication_s": 0.006,
        }
    )
    phases = {
        "NEGOTIATE_ALLREDUCE": (0.0, 0.002),
        "ALLREDUCE": (0.002, 0.006),
        "MPI_ALLREDUCE": (0.003, 0.005),
    }
    spans = [
        (f"gradient {n}", phase, begin + start, begin + end)
        for n in range(2)
        for begin in 0.03 * np.arange(1, 9) + 0.015 + 0.003 * n
        for phase, (start, end) in phases.items()
    ]
    columns = ["tensor", "phase", "start_s", "end_s"]
    table = pd.DataFrame(spans, columns=columns)
    return draw(SimpleNamespace(steps=lambda: steps, spans=table))


# Of each topic its figures: how to draw one, words that must be among its own, and a guess.
FIGURES: dict[str, dict[str, tuple[Draw, str, object]]] = {
    "00_welcome": {
        "limits": (limits, "At most 100 GFLOP/s from the cores, and 10 GB/s from memory.", 3),
        "shares": (shares, "2 ranks took 1,000 strips together; there are 1,000.", None),
    },
    "01_onednn": {
        "layouts": (layouts, "NHWC: all channels of a pixel; NCHW", None),
        "number_formats": (number_formats, "bf16: 9.2e-41 to 3.4e+38, gap above 1 0.0078.", None),
    },
    "02_threads": {
        "rank_map": (
            rank_map,
            "a: 4 ranks x 12 threads, 0 of them in both memories. b: 3 ranks x 16 threads, 1 of "
            "them in both memories. c: 2 ranks x 6 threads.",
            None,
        ),
        "which_knob": (
            which_knob,
            "ours: no setting was shown to bring more CPUs to work. theirs: more CPUs work with "
            "intra-op.",
            3,
        ),
    },
    "03_spmd": {
        "who_holds": (who_holds, "Reduce: in the end rank 0 a0+b0 a1+b1, rank 1 nothing.", None),
        "bytes_sent": (
            bytes_sent,
            "the busiest of 4 ranks sends: gather and broadcast 3, binary tree 2, ring 1.5.",
            3,
        ),
        "message_time": (
            message_time,
            "A message takes 2.00 us, and 1.00 ns more for each byte.",
            3,
        ),
        "allreduce_time": (
            allreduce_time,
            "Lowest median for 4 bytes: binary tree 5.00 us; for 1,024 bytes: ring 20.0 us.",
            None,
        ),
        "mpi_libraries": (
            mpi_libraries,
            "Open MPI takes 0.5 to 2 times as long as Intel MPI",
            None,
        ),
        "servers_or_ring": (
            servers_or_ring,
            "On 4 ranks a single server sends 4 times as much as a rank of a ring.",
            3,
        ),
        "straggler_timeline": (straggler_timeline, "50 % (all wait), 25 % (nobody waits).", None),
        "stale_losses": (
            stale_losses,
            "in the median: all wait: a loss of 0.2 after 4 s; nobody waits: a loss of 0.4 after "
            "1.5 s.",
            None,
        ),
    },
    "04_kmeans": {
        "quantised": (quantised, "2 colours, PSNR 21.5 dB", None),
        "quality": (quality, "8 colours reach 28.0 dB, 2 reach 22.0 dB.", 3),
        "strong_and_weak": (strong_and_weak, "speed-up 1.60 on 2 ranks", None),
        "memory_bars": (memory_bars, "batch 200, distributed 90.", 3),
    },
    "05_horovod": {
        "drifting_ranks": (drifting_ranks, "weights end: no-broadcast 1.00, right 0.00.", None),
        "schedules": (
            schedules,
            "512, gradual warm-up: 97.00 ± 0.58 %, the best of the large batch; batch 64: 98.00 ± "
            "0.58 %",
            "512, decay",
        ),
        "cycle_times": (
            cycle_times,
            "Best at 4 ms: an efficiency of 0.87; without talking they reach 0.98",
            3,
        ),
        "step_shares": (step_shares, "in the median: as it comes 36.0 ms, tuned 36.0 ms.", None),
        "step_timeline": (step_timeline, "computes 20.0 ms, waits for the slowest 2.0 ms", None),
    },
}
EACH = [(topic, name) for topic, figures in FIGURES.items() for name in figures]


@pytest.mark.parametrize("topic", FIGURES)
def test_every_figure_is_drawn_here(topic: str) -> None:
    assert figures_of(topic) == set(FIGURES[topic])


@pytest.mark.parametrize(("topic", "name"), EACH)
def test_a_figure_says_what_it_found(topic: str, name: str, tmp_path: Path) -> None:
    drawing, words, guess = FIGURES[topic][name]
    draw = getattr(lesson(topic), name)
    if guess is None:
        folder = [tmp_path] if "folder" in drawing.__annotations__ else []
        assert words in read_figure(drawing(draw, *folder))
        return
    empty = drawing(draw, None)
    assert words in read_figure(empty) and not guesses_in(empty)
    guessed = drawing(draw, guess)
    assert any(str(guess) in text for text in guesses_in(guessed))
    assert f"our guess: {guess}" in read_figure(guessed)


def test_mpis_are_put_in_proportion_only_where_both_are() -> None:
    draw = lesson("03_spmd").mpi_libraries
    assert len(draw({"MPICH": by_size({"mpi": [1e-6, 4e-6]})}, published=1.27).axes) == 1
    ratio = mpi_libraries(draw).axes[1].lines[0].get_ydata()
    assert ratio.tolist() == pytest.approx([2, 0.5])


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
    label = lesson("05_horovod").cycle_times(found).get_label()
    assert label.startswith("Best at 4 ms")


@pytest.mark.parametrize(("guess", "rows"), [("fp16", [1]), ("BF16", [2]), ("fp8", []), (None, [])])
def test_the_format_that_was_guessed_is_marked(guess: str | None, rows: list[int]) -> None:
    texts = number_formats(lesson("01_onednn").number_formats, guess).axes[0].texts
    assert [t.get_position()[1] for t in texts if "your guess" in t.get_text()] == rows
