"""06's tuning step by step: each step is against what is kept, and only what is shown to be faster is
kept."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import compared, lesson, read_figure

from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.intervals import Ratio

steps = lesson("06_tuning", "steps")


class Job:
    """Stands in for a lab's run: each setting has its speed, and noise that a seed fixes."""

    def __init__(self, noise: float = 0.002) -> None:
        self.noise, self.asked = noise, list[dict[str, Any]]()

    def run(self, *, variants: dict[str, Any], rounds: int | None = None, **how: Any) -> Any:
        self.asked.append({**how, "variants": variants})
        draw = np.random.default_rng(len(self.asked))
        names = list(variants)
        rows = []
        for round_ in range(rounds or 5):
            for name, again in [(names[0], 0), (names[0], 1), *((name, 0) for name in names[1:])]:
                how = variants[name]
                speed = how["threads"] * (1.5 if how["bind"] == "core" else 1.0)
                value = 100 * speed * float(np.exp(self.noise * draw.normal()))
                row = {"round": round_, "variant": name, "again": again, "unit": "images/s"}
                rows.append({**row, "value": value})
        return SimpleNamespace(records=pd.DataFrame({"metrics.runs": [rows]}))


FIRST = {"ranks": 2, "threads": 1, "bind": "none"}


def test_a_step_begins_with_what_the_ones_before_have_kept() -> None:
    job = Job()
    tuning = steps.Tuning(job.run, **FIRST)
    bound = tuning.step("binding", {"bound": {"bind": "core"}})
    assert bound.best == "bound" and tuning.kept == {**FIRST, "bind": "core"}
    threads = tuning.step("threads", {"two": {"threads": 2}, "three": {"threads": 3}})
    assert job.asked[1]["variants"]["bound"] == {**FIRST, "bind": "core"}, "the new baseline"
    assert threads.baseline == "bound" and threads.best == "three"
    assert tuning.kept == {"ranks": 2, "threads": 3, "bind": "core"}
    promised = tuning.promised
    assert promised.middle == pytest.approx(4.5, rel=0.02)
    assert promised.low < 4.5 < promised.high < 1.1 * promised.low
    assert tuning.said("threads").startswith("three is kept: 3.00 times as fast as bound.")
    bound_twice = tuning.same_settings().partition(": ")
    assert bound_twice[0] == "bound" and "(binding), 15" in bound_twice[2]


def test_of_changes_that_are_not_told_apart_the_simplest_is_kept() -> None:
    tuning = steps.Tuning(Job().run, **FIRST)
    changes = {"easy": {"threads": 2}, "hard": {"threads": 2, "more": 1}, "less": {"bind": "core"}}
    found = tuning.step("both", changes)
    assert found.best in ("easy", "hard") and tuning.choices["both"] == "easy"
    assert tuning.said("both").endswith(" hard is not told apart from it, and it is the simplest.")
    twin = tuning.step("again", {"a": {"threads": 3}, "same as a": {"threads": 3}})
    assert twin.variants == ["a"]


def test_what_was_unclear_is_tried_once_more_on_top_of_what_is_kept() -> None:
    job = Job(noise=1.0)
    tuning = steps.Tuning(job.run, **FIRST)
    assert tuning.step("binding", {"bound": {"bind": "core"}}).verdict("bound") == "unclear"
    job.noise = 0.002
    tuning.step("threads", {"two": {"threads": 2}})
    again = tuning.once_more(rounds=10)
    assert again is not None and again.variants == ["bound"] and again.rounds == 10
    assert job.asked[-1]["variants"]["bound"] == {"ranks": 2, "threads": 2, "bind": "core"}
    assert tuning.choices["once more"] == "bound" and tuning.kept["bind"] == "core"
    clear = steps.Tuning(Job().run, **FIRST)
    clear.step("threads", {"two": {"threads": 2}})
    assert clear.once_more() is None and "Nothing was unclear" in clear.said("once more")


def test_what_is_slower_or_lost_in_the_noise_is_not_kept() -> None:
    tuning = steps.Tuning(Job(noise=1.0).run, **FIRST)
    lost = tuning.step("binding", {"bound": {"bind": "core"}})
    assert lost.verdict("bound") == "unclear" and tuning.kept == FIRST
    tuning = steps.Tuning(Job().run, ranks=2, threads=1, bind="core")
    slower = tuning.step("binding", {"unbound": {"bind": "none"}})
    assert slower.verdict("unbound") == "slower" and tuning.kept["bind"] == "core"
    assert (tuning.promised.low, tuning.promised.middle) == (1.0, 1.0)
    assert tuning.said("binding").startswith("Nothing is kept: no change is shown to be faster.")


def test_a_change_that_changes_nothing_is_refused() -> None:
    tuning = steps.Tuning(Job().run, **FIRST)
    with pytest.raises(ScaleoutError, match="'same' changes nothing"):
        tuning.step("threads", {"same": {"threads": 1}})


def test_inter_x_intra_tries_each_pair_but_the_one_that_is_kept() -> None:
    tuning = steps.Tuning(Job().run, **FIRST)
    pairs = tuning.pairs([2, 1])
    assert list(pairs) == ["1 x 2", "2 x 1", "2 x 2"]
    assert pairs["1 x 2"] == {"inter": 1, "threads": 2}
    kept = {"kept": FIRST, **{name: {**FIRST, **how} for name, how in pairs.items()}}
    assert steps.processes(kept) == 8, "two ranks for each pair, as its threads are fixed at start"
    assert steps.processes({"a": FIRST, "b": {**FIRST, "bind": "core"}}) == 2


def test_the_best_pair_of_each_number_of_ranks_joins_in_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps.machine, "usable_cores", lambda: 2)
    tuning = steps.Tuning(Job().run, ranks=2, threads=2, bind="none")
    points = [(1, 1, 50.0), (1, 2, 90.0), (2, 1, 80.0), (2, 2, 85.0), (4, 1, math.nan)]
    grid = SimpleNamespace(frame=pd.DataFrame(points, columns=["ranks", "threads", "rate"]))
    one = {"ranks": 1, "threads": 2, "inter": 0, "bind": "none"}
    two = {"ranks": 2, "threads": 1, "inter": 0, "bind": "core"}
    assert tuning.rivals(grid, {}) == {"1 x 2": one, "2 x 1, bound": two}
    others = {"one rank": one, "Intel MPI": {"site": None}}
    assert tuning.rivals(grid, others) == {"2 x 1, bound": two}
    bound = steps.Tuning(Job().run, **two)
    assert bound.rivals(grid, others) == {"2 x 2": {**two, "threads": 2, "bind": "none"}}
    grid.frame = grid.frame[4:]
    assert bound.rivals(grid, {}) == {}


def test_whole_jobs_are_yours_the_changes_on_top_and_the_first(results: Path) -> None:
    """Yours leaves the cycle to the lab's own file; another MPI library goes on to tune.py."""
    envs = dict[str, list[dict[str, Any]]]()

    def whole(*, ranks: int, env: dict[str, Any], site: str = "here", **how: Any) -> float:
        envs.setdefault(f"{ranks} {site}", []).append(env)
        return 200.0 if site == "there" else 100.0

    first = {**FIRST, "cycle_ms": 1}
    tuning = steps.Tuning(whole, **first)
    found = tuning.whole_jobs("MPI", {"other": {"site": "there"}, "one": {"ranks": 1}})
    assert found.baseline == "yours" and found.variants == ["other", "one", "first written"]
    assert envs["2 there"] == envs["1 here"] == [{}] * found.rounds
    assert envs["2 here"].count({"HOROVOD_CYCLE_TIME": 1}) == found.rounds
    assert envs["2 here"].count({}) == 2 * found.rounds
    assert tuning.kept == {**first, "site": "there"}
    assert tuning.measured.middle == pytest.approx(2.0)
    job = Job()
    tuning._job = job.run
    tuning.step("binding", {"bound": {"bind": "core"}})
    assert job.asked[0]["site"] == "there"
    assert job.asked[0]["variants"]["bound"] == {**first, "bind": "core"}


def test_a_sweep_has_all_that_is_kept_but_the_two_that_it_varies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    swept = list[Any]()
    monkeypatch.setattr(steps, "sweep", lambda words, **how: swept.append((words, how)))
    kept = {"evaluation": "shared", "evaluate_every": 10, "cycle_ms": 4, "bf16": True}
    tuning = steps.Tuning(Job().run, **FIRST, **kept, site="there")
    tuning.sweep("lab.py", ranks=[1, 2], threads=[2, 1])
    ((words, how),) = swept
    assert words[4:] == ["--steps=80", "--evaluation=shared", "--evaluate-every=10", "--bf16"]
    assert how["site"] == "there" and how["env"] == {"HOROVOD_CYCLE_TIME": [4]}


def test_the_first_to_reach_a_goal_is_one_whose_latest_run_beats_all_others() -> None:
    said = lesson("06_tuning").first_to_reach
    apart = said({"one rank": [3.0, 3.1, 3.2], "yours": [3.9, 4.0, math.inf]}, 75)
    assert apart.startswith(
        "One rank is the first to reach 75 %: one rank after 3.1 s (3.0 to 3.2)"
    )
    assert "yours after 4.0 s (3.9 to never)" in apart
    mixed = said({"one rank": [3.0, 3.1, 4.2], "yours": [3.9, 4.0, 4.1]}, 75)
    assert mixed.startswith("No job is shown to be the first or the last to reach 75 %")
    assert "a not in most runs" in said({"a": [math.inf] * 3, "b": [1.0] * 3}, 75)


def test_the_images_that_a_goal_takes_stand_beside_the_rate() -> None:
    job = {"at_s": [1.0, 2.0], "at_step": [10, 20], "accuracy": [0.5, 0.8]}
    late = {**job, "accuracy": [0.5, 0.7]}
    kinds = {
        "one rank": pd.DataFrame({"batch_global": [64] * 3, "metrics": [job, job, late]}),
        "yours": pd.DataFrame({"batch_global": [128] * 3, "metrics": [job, late, late]}),
    }
    assert lesson("06_tuning").images_to_reach(kinds, 75) == (
        "To reach 75 %: one rank needs 1,280 images, at 640 images/s; yours needs more images than "
        "most of its runs had, at 1,280 images/s, with the building of the graphs counted."
    )


def test_the_images_over_the_rate_are_the_time_to_the_goal() -> None:
    job = {"at_s": [4.0, 5.0, 7.0], "at_step": [10, 20, 30], "accuracy": [0.5, 0.8, 0.8]}
    kinds = {"yours": pd.DataFrame({"batch_global": [64] * 3, "metrics": [job] * 3})}
    said = lesson("06_tuning").images_to_reach(kinds, 75)
    assert "yours needs 1,280 images, at 256 images/s" in said  # 5 s, as the curve has it


def test_memory_that_is_given_back_is_no_gain() -> None:
    gain = lesson("06_tuning").gain
    to_and_fro = [681, 725, 664, 725, 669, 718, 658, 723, 656, 719, 665, 713]
    assert gain(to_and_fro) < 0
    assert gain([0, 99, *range(10)]) == pytest.approx(1)
    assert gain([0, 99, *(k + 30 * (k % 2) for k in range(10))]) == pytest.approx(1)


def test_memory_grows_only_when_all_runs_agree() -> None:
    said = lesson("06_tuning").growth_in_words
    assert said([0.20, 0.22, 0.21]) == "0.21 MiB (0.19 to 0.23), 0.2 GiB in a thousand"
    assert "thousand" not in said([0.2, -0.1, 0.3]) and "too few" in said([0.2])


def memory(*slopes: float, evaluations: int = 24) -> list[pd.DataFrame]:
    """Three runs, whose ranks gain so many MiB with each evaluation, a little more in each run."""
    jobs = [
        {
            "shares": [
                {"rss_mib": [[k, 600 + (slope + run / 100) * k] for k in range(evaluations)]}
                for slope in slopes
            ]
        }
        for run in range(3)
    ]
    return [pd.DataFrame({"metrics": [job]}) for job in jobs]


def test_memory_counts_what_rank_0_gains_more_than_the_others_in_enough_evaluations() -> None:
    draw = lesson("06_tuning").memory_over_time
    said = read_figure(draw({"leaks": memory(2.0, 0.5), "trains": memory(0.5, 0.5)}))
    assert "leaks: 1.50 MiB" in said and ", 1.5 GiB in a thousand" in said
    assert said.startswith("Growth is shown") and "trains: 0.00 MiB (0.00 to 0.00)." in said
    assert read_figure(draw({"trains": memory(0.5, 0.5)})).startswith("No growth is shown")
    assert "few: too few runs to tell" in read_figure(
        draw({"few": memory(2.0, 0.5, evaluations=6), "none": memory(0.5)})
    )


def profile(train_s: float) -> pd.DataFrame:
    share = {"train_s": train_s, "input_s": 0.0, "evaluation_s": 1 - train_s, "wait_s": 0.0}
    return pd.DataFrame({"metrics.shares": [[share]]})


def test_a_gain_stands_beside_the_bound_that_the_profile_gave() -> None:
    figures = lesson("06_tuning")
    assert "1 / 0.40 = 2.5 times" in figures.most_to_gain(profile(0.4))
    found = compared({"first": 1.0, "a": 2.0})
    words = [figures.beside_the_bound(profile(share), found) for share in (0.9, 0.5, 0.2)]
    ends = ["more than that, but it is", "that is all of it,", "the rest of that time is"]
    for said, end in zip(words, ends, strict=True):
        assert f"a gives 2.00 times (2.00 to 2.00): {end}" in said or end in said, said
    assert figures.beside_the_bound(profile(0.5), compared({"first": 1.0, "a": 1.0})).endswith(
        "nothing is shown."
    )


def test_what_a_gap_brought_is_told_beside_the_change_before_it() -> None:
    said = lesson("06_tuning").what_gaps_brought
    rates = {"first": 1.0, "+ on batch": 2.88, "+ eager": 2.0, "+ compiled": 2.88, "+ shared": 4.0}
    graph, share = said(compared(rates)).splitlines()
    assert "times as fast as on batch" in graph and "runs a graph, too. It is 1.4" in graph
    assert share.startswith("Your second gap is 1.3") and "not shown" not in share
    assert "share only what" in said(compared({**rates, "+ shared": 2.88}))


def test_a_promise_is_held_against_the_whole_job() -> None:
    said = lesson("06_tuning").promise
    promised, whole = Ratio(3.8, 3.5, 4.1, 5), Ratio(3.2, 3.1, 3.3, 5)
    assert said(promised, whole) == (
        "Promised 3.8x (3.5 to 4.1), measured 3.2x (3.1 to 3.3): the steps promised too much."
    )
    assert said(whole, promised).endswith("promised too little.")
    assert said(promised, Ratio(3.6, 3.3, 3.9, 5)).endswith("the two are not told apart.")
    assert said(promised, Ratio(3.2, 0.0, math.inf, 1)).endswith("too few rounds to tell.")


def test_a_seed_counts_with_and_without_the_images_that_have_no_label() -> None:
    draw = lesson("06_tuning").with_and_without
    jobs = {
        (seed, alone): pd.DataFrame(
            {"metrics": [{"labelled": [0] * 20, "accuracy": [0.1, seed / 100 + 0.8 - alone / 10]}]}
        )
        for seed in range(3)
        for alone in (True, False)
    }
    assert "3 seeds, 20 labels: +10.0 points (+10.0 to +10.0), so images" in read_figure(draw(jobs))
    one = {key: frame for key, frame in jobs.items() if not key[0]}
    assert "too few seeds to tell" in read_figure(draw(one, 20))


def test_how_many_ranks_fit_leaves_a_tenth_to_the_system() -> None:
    job = {"side": 128, "shares": [{"peak_mib": 1024.0}, {"peak_mib": 2048.0}]}
    said = lesson("06_tuning").ranks_that_fit(pd.DataFrame({"metrics": [job]}), 24.0)
    assert "a rank took up to 2.00 GiB: 10 of them fit" in said


def test_another_cycle_in_the_labs_own_file_is_told() -> None:
    tuning = steps.Tuning(Job().run, **FIRST, cycle_ms=4)

    def said(own: dict[str, str]) -> str:
        jobs = [{"variant": "yours", "metrics.settings": own}]
        return tuning.cycle_of_yours(SimpleNamespace(records=pd.DataFrame(jobs)))

    assert said({"HOROVOD_CYCLE_TIME": "4.0"}).endswith("the cycle that was kept, 4 ms.")
    assert "a cycle of 1 ms, but 4 ms was kept" in said({})
