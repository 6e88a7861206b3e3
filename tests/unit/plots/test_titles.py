"""A title says what was found, in words made from the numbers; the text beside it has the values."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from scaleout import plots, scaling


def _sizes(ways: dict[str, list[float]]) -> pd.DataFrame:
    """Seconds of each way, for arrays of 4 and of 1,024 bytes."""
    rows = [
        {"variant": way, "metrics.bytes": n, "step_s": [s], "step_median_s": s, "ranks": 2}
        for way, seconds in ways.items()
        for n, s in zip((4, 1024), seconds, strict=True)
    ]
    return pd.DataFrame(rows)


def _message() -> Figure:
    sizes = [1, 1_000, 10_000, 1_000_000]
    fit = scaling.fit_alpha_beta(sizes, [2e-6 + 1e-9 * n for n in sizes])
    return plots.message_time(sizes, [[2e-6 + 1e-9 * n] * 3 for n in sizes], fit)


def _allreduce() -> Figure:
    return plots.allreduce_time(_sizes({"ring": [9e-6, 2e-5], "tree": [5e-6, 4e-5]}))


def _bytes() -> Figure:
    rows = [
        {"variant": way, "metrics.sent_bytes": [0, sent], "metrics.bytes": 100, "ranks": 4}
        for way, sent in {"gather-broadcast": 300, "tree": 200, "ring": 150}.items()
    ]
    return plots.bytes_sent([pd.DataFrame(rows)])


def _libraries() -> Figure:
    seconds = {"MPICH": [1e-6, 4e-6], "Intel MPI": [1e-6, 2e-6], "Open MPI": [2e-6, 1e-6]}
    return plots.mpi_libraries({name: _sizes({"mpi": s}) for name, s in seconds.items()})


def _servers() -> Figure:
    rows = [
        {"metrics.servers": n, "metrics.sent_bytes": [mib * 2**20], "ranks": 4, "step_s": [0.1]}
        for n, mib in ((1, 6), (2, 4), (4, 1.5), (0, 1.5))
    ]
    return plots.servers_or_ring([pd.DataFrame(rows)], cores=2)


def _straggler() -> Figure:
    logs = {"all wait": [(1, 0.0, 0.01, 0.04)], "nobody waits": [(1, 0.0, 0.03, 0.04)]}
    return plots.straggler_timeline(
        {how: pd.DataFrame({"metrics.timeline": [log], "ranks": 2}) for how, log in logs.items()}
    )


def _losses() -> Figure:
    ends = {"all wait": [(4.0, 60, 0.2)], "nobody waits": [(1.0, 60, 0.3), (2.0, 60, 0.5)]}
    curves = {
        how: [pd.DataFrame({"metrics.curve": [[(0.0, 0, 2.0), end]]}) for end in runs]
        for how, runs in ends.items()
    }
    return plots.stale_losses(curves)


def _quality() -> Figure:
    jobs = [{"colours": k, "inertia": 1 / k, "psnr_db": 20.0 + k} for k in (2, 4, 8)]
    return plots.quality([pd.DataFrame({"metrics": [job]}) for job in jobs])


def _memory() -> Figure:
    jobs = {"batch": [300.0], "distributed": [180.0, 190.0]}
    frames = {
        name: pd.DataFrame(
            {"metrics.memory_mib": [mib], "metrics.program_mib": [[100.0] * len(mib)]}
        )
        for name, mib in jobs.items()
    }
    return plots.memory_bars(frames, data_mib=200)


def _strong_and_weak() -> Figure:
    def jobs(seconds: dict[int, float]) -> list[pd.DataFrame]:
        return [
            pd.DataFrame({"ranks": [n], "step_median_s": s, "cores": 2}) for n, s in seconds.items()
        ]

    return plots.strong_and_weak(jobs({1: 8.0, 2: 5.0, 4: 6.0}), jobs({1: 8.0, 2: 10.0, 4: 20.0}))


def _drifting() -> Figure:
    weights = {"no-broadcast": [[1.0, 0.5], [2.0, 1.5]], "right": [[1.0, 0.5], [1.0, 0.5]]}
    return plots.drifting_ranks(
        {how: pd.DataFrame({"metrics.weight": [own]}) for how, own in weights.items()}
    )


def _step_shares() -> Figure:
    parts = {"compute_s": [0.02, 0.03], "waiting_s": [0.01, 0.0], "communication_s": [0.005, 0.006]}
    return plots.step_shares({"tuned": pd.DataFrame({"rank": [0, 1], **parts})})


TITLES = {
    _message: ("A message takes 2.00 us, and 1.00 ns more for each byte.", "1,000 B: 3.00 us"),
    _allreduce: (
        "Lowest median for 4 bytes: binary tree 5.00 us; for 1,024 bytes: ring 20.0 us.",
        "1,024 bytes: ring 20.0 us, binary tree 40.0 us",
    ),
    _bytes: (
        "Arrays that the busiest of 4 ranks sends: gather and broadcast 3, binary tree 2, ring 1.5.",
        "",
    ),
    _libraries: ("Open MPI takes 0.5 to 2 times as long as Intel MPI", "MPICH 4.00 us"),
    _servers: ("On 4 ranks a single server sends 4 times as much", "a ring: 1.50, 1: 6.00"),
    _straggler: ("workers wait: 75 % (all wait), 25 % (nobody waits).", ""),
    _losses: (
        "After 60 gradients, in the median: all wait: a loss of 0.2 after 4 s; nobody waits: a loss "
        "of 0.4 after 1.5 s.",
        "",
    ),
    _quality: ("8 colours reach 28.0 dB, 2 reach 22.0 dB.", "4: 24.0 dB"),
    _memory: ("batch 200, distributed 90.", "All rows have 200 MiB."),
    _strong_and_weak: ("Speed-up 1.60 on 2 ranks", "Efficiency over ranks: 1: 1.00, 2: 0.80, 4: 0.40."),
    _drifting: ("weights end: no-broadcast 1.00, right 0.00.", ""),
    _step_shares: ("slower rank, in the median: tuned 36.0 ms.", "rank 0: computes 20.0 ms"),
}  # fmt: skip


@pytest.mark.parametrize("draw", TITLES)
def test_a_title_is_made_from_the_numbers(draw: Callable[[], Figure]) -> None:
    title, values = TITLES[draw]
    figure = draw()
    assert title in " ".join(figure.get_suptitle().split())
    said = str(figure.get_label())
    assert title in said and values in said


def test_what_ranks_hold_is_said_without_the_picture() -> None:
    a, b = np.array([1, 2]), np.array([2**8, 2**9])
    held = [[("Reduce", a, a + b)], [("Reduce", b, None)]]
    said = "Reduce: in the end rank 0 a0+b0 a1+b1, rank 1 nothing."
    assert plots.who_holds(held).get_label() == said


def test_the_copies_of_a_photograph_are_named(tmp_path: Path) -> None:
    class Run:
        folder = tmp_path
        records = pd.DataFrame({"metrics": [{
            "colours": 2, "psnr_db": 21.5, "count": [1, 1],
            "shares": [{"palette": [[0, 0, 0], [1, 1, 1]]}],
        }]})  # fmt: skip

    import matplotlib.pyplot as plt

    plt.imsave(tmp_path / "quantised.png", np.zeros((4, 6, 3)))
    said = str(plots.quantised(np.zeros((4, 6, 3)), [Run()]).get_label())
    assert "2 colours, PSNR 21.5 dB" in said
