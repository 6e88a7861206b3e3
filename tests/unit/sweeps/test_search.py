"""The search of a sweep: what it asks for, what it measures again, and what it finds on grids that
were measured whole."""

import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout import plots, sweeps
from scaleout.errors import ScaleoutError
from scaleout.sweeps import race, search, starts

DATA = Path(__file__).parents[2] / "data"
(KMEANS,) = DATA.glob("sweep_kmeans_*.jsonl")
(HOROVOD,) = DATA.glob("sweep_horovod_*.jsonl")
CHOICES = {"ranks": (1, 2, 4), "threads": (4, 1, 2), "A": ("x", "y")}


def _bowl(place: tuple, times: int = 0) -> float:
    return 100.0 - 10 * abs(place[0] - 2) - 10 * abs(place[1] - 2) + 5 * (place[2] == "y")


@pytest.mark.parametrize("trials", [1, 6, 18, 50])
@pytest.mark.parametrize("repeat", [1, 3])
def test_a_search_keeps_to_its_points_and_its_jobs(trials: int, repeat: int) -> None:
    jobs: list = []
    found = search.ask(
        CHOICES, trials, repeat, 3, 2, lambda p, n: jobs.append((p, n)) or _bowl(p, n)
    )
    assert len(found) <= min(trials, 18) and len(jobs) == len(set(jobs)) <= min(trials, 18) * repeat
    assert set(jobs) == {(place, n) for place, worth in found.items() for n in range(len(worth))}


def test_what_it_calls_the_best_was_measured_again() -> None:
    for repeat, least in ((1, 2), (2, 2), (3, 3)):
        found = search.ask(CHOICES, 9, repeat, 0, 2, _bowl)
        best = race.leader(found)
        assert best == (2, 2, "y") and len(found[best]) >= least


def test_a_lucky_job_is_not_called_the_best() -> None:
    """One job of a poor point comes out far too high, its others do not."""

    def measure(place: tuple, times: int) -> float:
        return 150.0 if place == (1, 1, "x") and times == 0 else _bowl(place)

    found = search.ask(CHOICES, 18, 3, 0, 2, measure)
    assert race.leader(found) == (2, 2, "y") and len(found[1, 1, "x"]) > 1


def test_a_hopeless_point_is_measured_once() -> None:
    found = search.ask(CHOICES, 18, 3, 0, 2, _bowl)
    poor = [worth for place, worth in found.items() if _bowl(place) < 80]
    assert poor and all(len(worth) == 1 for worth in poor)


def test_the_same_seed_searches_in_the_same_order() -> None:
    orders = [list(search.ask(CHOICES, 9, 1, seed, 2, lambda p, n: 1.0)) for seed in (1, 1)]
    assert orders[0] == orders[1] and len(orders[0]) >= 7


def test_failed_points_do_not_stop_a_search_or_draw_it() -> None:
    found = search.ask(CHOICES, 12, 1, 0, 2, lambda p, n: None if p[1] == 4 else _bowl(p))
    assert race.leader(found) == (2, 2, "y")
    nothing = search.ask(CHOICES, 5, 2, 0, 2, lambda p, n: None)
    assert len(nothing) == 5 and race.leader(nothing) is None
    assert race.hopeless(nothing) == set(nothing)


def test_of_times_the_shortest_is_the_best() -> None:
    found = search.ask(CHOICES, 12, 1, 0, 2, lambda p, n: 1000 / _bowl(p), lower=True)
    assert race.leader(found) == (2, 2, "y")


def test_a_search_begins_with_what_is_usually_good() -> None:
    choices = {
        "ranks": (1, 2, 4),
        "threads": (1, 2, 4),
        "HOROVOD_CYCLE_TIME": ("1", "3", "10"),
        "TF_ENABLE_ONEDNN_OPTS": ("0", "1"),
        "MINE": ("a", None),
    }
    assert starts.starts(choices, 4) == [(4, 1, "3", "1", None), (1, 4, "3", "1", None)]
    first = list(search.ask(choices, 4, 1, 0, 4, lambda p, n: 1.0))
    assert first[:2] == starts.starts(choices, 4)


def test_scatter_is_learned_from_what_was_repeated() -> None:
    quiet = {n: [1.0, 1.001, 0.999] for n in range(20)}
    loud = {n: [1.0, 1.3, 0.7] for n in range(20)}
    assert race.scatter(quiet) < 0.5 * race.SCATTER < race.SCATTER < race.scatter(loud)
    assert race.scatter({1: [1.0]}) == pytest.approx(race.SCATTER)


def test_a_sweep_is_there_without_pandas() -> None:
    code = "import sys; from scaleout import sweep; print('pandas' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"


# Grids that were measured whole


@pytest.fixture(scope="module")
def kmeans() -> sweeps.Result:
    """scikit-learn's K-means on 2 cores (kmeans_rate.py says how)."""
    return sweeps.read(KMEANS)


@pytest.fixture(scope="module")
def horovod() -> sweeps.Result:
    """The lab of 05, two epochs, on 2 cores."""
    return sweeps.read(HOROVOD)


@pytest.mark.parametrize("file", [KMEANS, HOROVOD])
def test_the_recorded_grids_are_whole_and_name_their_machine(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {(row["cpu"], row["cores"]) for row in rows} == {("AMD EPYC", 2)}
    assert "amd_epyc_2_cores" in file.name
    measured = sweeps.read(file).frame
    assert len(measured) == {KMEANS: 36, HOROVOD: 112}[file] and (measured.status == "ok").all()


def test_a_tenth_of_the_time_comes_within_5_percent_of_the_best(horovod) -> None:
    """Twenty seeds, which draw the order and which of a point's jobs a search gets."""
    last = [sweeps.replay(horovod, 11, seed).iloc[-1] for seed in range(20)]
    assert statistics.median(row.spent for row in last) <= 0.10
    assert statistics.median(row.of_best for row in last) >= 0.95


def test_a_replay_shows_each_job_it_asked_for(kmeans) -> None:
    rows = sweeps.replay(kmeans, 7, seed=1)
    assert len(rows) == 7 and rows.spent.is_monotonic_increasing
    whole = sweeps.replay(kmeans, 36, seed=1, repeat=3)
    assert len(whole) <= 36 * 3 and whole.of_best.iloc[-1] <= 1.0
    assert math.isclose(whole.head(34).spent.iloc[-1], 34 / 36, rel_tol=0.1)


def test_a_grid_with_gaps_is_not_replayed(kmeans) -> None:
    rows = [json.loads(line) for line in KMEANS.read_text().splitlines()]
    point = {key: rows[10][key] for key in ("ranks", "threads", "env")}
    less = [row for row in rows if any(row[key] != value for key, value in point.items())]
    with pytest.raises(ScaleoutError, match="over a whole grid"):
        sweeps.replay(sweeps.Result(less), 5)


def test_the_picture_shows_each_search_and_says_what_a_tenth_gave(kmeans) -> None:
    replays = [sweeps.replay(kmeans, 8, seed) for seed in range(3)]
    (axes,) = plots.searches(replays).axes
    assert len(axes.lines) == 3 + 2
    ends = [100 * rows[rows.spent <= 0.1].of_best.iloc[-1] for rows in replays]
    assert f"{statistics.median(ends):.0f} % of the best" in axes.get_title()
