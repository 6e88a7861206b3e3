"""Sweeps whose jobs are made up: what is kept, what is mixed with nothing, what is said of it."""

import html
import importlib
import json
import math
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from scaleout import sweeps
from scaleout.base.errors import ScaleoutError
from scaleout.jobs.job import Job, JobFailed, Run
from scaleout.launch import run as launch
from scaleout.measuring.row import FIRST, LAST, POINT
from scaleout.site import Site
from scaleout.sweeps import files
from scaleout.sweeps.picture import heat_map

# Jobs that are made up


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, results: Path, tmp_path: Path) -> list[tuple]:
    """The jobs that were started, as (ranks, threads, variables); each rank prints the file `says`."""
    started: list[tuple] = []

    def start(job: Job, echo: None) -> Run:
        started.append((job.ranks, job.threads, dict(job.env)))
        text = Path("says").read_text()
        lines = [(rank, text.format(rate=10 + rank)) for rank in range(job.ranks)]
        return Run("id", "job", "mpirun job", tmp_path, job.ranks, job.threads, 0, 2.0, lines)

    monkeypatch.setattr(launch, "start", start)
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    Path("says").write_text("rate: {rate} steps/s")
    return started


@pytest.fixture
def measure(jobs: list[tuple]) -> Callable[..., sweeps.Result]:
    return lambda **how: sweeps.sweep("python train.py", **{"threads": 1, "echo": None, **how})


def test_the_same_call_again_starts_nothing_and_more_repeats_add(jobs, measure) -> None:
    one = measure(ranks=[1, 2], name="mine")
    again = measure(ranks=[1, 2], name="mine")
    assert len(jobs) == 4 and again.frame.equals(one.frame)
    more = measure(ranks=[1, 2], name="mine", repeat=2)
    assert len(jobs) == 4 + 1 + 2 + 2 and more.frame.repeats.tolist() == [2, 2]
    assert sweeps.read(more.folder).frame.equals(more.frame)


def test_what_a_sweep_finds_to_judge_by_is_said_once(jobs, measure) -> None:
    said: list[str] = []
    how = {"ranks": [1, 2], "name": "mine", "echo": said.append}
    measure(**how)
    assert sum(line.startswith("Judged by what this finds:  --metric '") for line in said) == 1
    said.clear()
    assert measure(**how, repeat=2).frame.repeats.tolist() == [2, 2]
    assert not any(line.startswith("Judged by") for line in said), "known from before"


def test_the_short_form_runs_two_points_and_the_default_once(jobs, measure, monkeypatch) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    for _ in range(2):
        result = measure(ranks=[1, 2, 4], env={"A": ["1", "2", "3"]}, repeat=5, name="mine")
        assert [started[:1] + (started[2].get("A"),) for started in jobs[1:]] in (
            [(1, "1"), (4, "3")],
            [(4, "3"), (1, "1")],
        )
        assert len(jobs) == 3 and result.default.repeats == 2 and result.drift == 0


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"ranks": [1, 2]}, "grid"),
        ({"ranks": [2]}, "grid"),
        ({"ranks": [1], "env": {"A": ["1"]}}, "grid"),
        ({"ranks": [1], "metric": "wall_s"}, "metric"),
    ],
)
def test_another_sweep_of_the_same_name_does_not_mix(jobs, measure, how: dict, what: str) -> None:
    measure(ranks=[1], name="mine")
    with pytest.raises(ScaleoutError, match=f"another {what}: name this one with --name"):
        measure(**how, name="mine")


def test_an_edited_script_is_another_sweep(jobs, measure) -> None:
    first = measure(ranks=[1, 2])
    Path("train.py").write_text("pass\n")
    assert measure(ranks=[1, 2]).folder != first.folder and len(jobs) == 8


def test_a_damaged_line_costs_its_job_alone(jobs, measure) -> None:
    said: list[str] = []
    one = measure(ranks=[1, 2], name="mine")
    with open(one.folder / "points.jsonl", "a") as file:
        file.write('{"role": "poi')  # and no end of line
    again = measure(ranks=[1, 2], name="mine", repeat=2, echo=said.append)
    assert "line 5: no record" in said[0] and again.frame.repeats.tolist() == [2, 2]
    assert len(jobs) == 9


def test_a_sweep_that_is_taken_up_with_more_repeats_gets_its_interval(jobs, measure) -> None:
    measure(ranks=[1, 2], name="mine")
    measure(ranks=[1, 2], name="mine", repeat=2)
    said = measure(ranks=[1, 2], name="mine", repeat=3).summary
    assert "The interval of that ratio" in said and "for an interval, add" not in said


@pytest.mark.parametrize(
    ("says", "metric", "words"),
    [
        ("total: 48.0", "total: (.*)", "2 ranks x 1 thread: The 2 ranks print the same figure"),
        ("total: 48.{rate}", "total: (.*)", "2 ranks x 1 thread: The 2 ranks print the same"),
        ("r: {rate} s, 1,234 img/s", "([0-9.]+) img/s", "--reduce sum"),
    ],
)
def test_sums_that_may_be_totals_are_no_figure_until_reduce_says_so(
    jobs, measure, says: str, metric: str, words: str
) -> None:
    Path("says").write_text(says)
    for _ in range(2):  # the same line asks again
        with pytest.raises(ScaleoutError, match=words):
            measure(ranks=[1, 2], metric=metric, name="mine")
    started = len(jobs)
    mean = measure(ranks=[1, 2], metric=metric, reduce="mean", name="mine")
    assert len(jobs) == started + 3, "what one rank gave is kept"
    assert abs(mean.best.ratio - 1) < 0.01
    added = measure(ranks=[1, 2], metric=metric, reduce="sum", name="mine")
    assert len(jobs) == started + 3 and added.best.ratio == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("once", ["mean", "sum", "max"])
def test_what_reduce_has_answered_is_asked_again_without_it(jobs, measure, once: str) -> None:
    Path("says").write_text("total: 48.0")
    how = {"ranks": [1, 2], "metric": "total: (.*)", "name": "mine"}
    rate = measure(**how, reduce=once).best.rate
    started, kept = len(jobs), Path("results/sweep/mine/best.sh").read_text()
    with pytest.raises(ScaleoutError, match="2 ranks x 1 thread: The 2 ranks print the same"):
        measure(**how)
    assert len(jobs) == started and Path("results/sweep/mine/best.sh").read_text() == kept
    assert measure(**how, reduce=once).best.rate == rate and len(jobs) == started


def test_copies_that_reduce_had_let_through_are_never_added_up(
    jobs, measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(job: Job, echo: None) -> Run:
        lines = [(rank, f"total: 4{rank}.0") for rank in range(job.ranks)]
        alone = None if job.ranks == 1 else False
        run = Run("id", "job", "mpirun job", tmp_path, job.ranks, job.threads, 0, 2.0, lines)
        run.talked = alone
        return run

    monkeypatch.setattr(launch, "start", start)
    how = {"ranks": [1, 2], "metric": "total: (.*)", "name": "mine"}
    assert measure(**how, reduce="sum").best.rate == 81
    without = measure(**how)
    point = without.frame[without.frame.ranks == 2].iloc[0]
    assert (point.status, point.rate) == ("copies", 40.5) and without.best.rate == 40
    assert "never talked to each other" in without.summary
    again = sweeps.read(without.folder)
    assert again.frame.status.tolist() == without.frame.status.tolist(), "as its file says"
    assert measure(**how, reduce="sum").best.rate == 81, "the answer counts again"


@pytest.mark.parametrize(
    ("said", "metric"),
    [
        ("steps/s: 5", "steps/s: (.*)"),
        ("3.0 it/s", "([0-9.]+) it/s"),
        ("Img/sec per CPU: 12", "Img/sec per CPU: (.*)"),
    ],
)
def test_one_rank_that_counts_steps_is_no_total(
    jobs, measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, metric: str
) -> None:
    def start(job: Job, echo: None) -> Run:
        return Run("id", "job", "mpirun job", tmp_path, job.ranks, job.threads, 0, 2.0, [(0, said)])

    monkeypatch.setattr(launch, "start", start)
    with pytest.raises(ScaleoutError, match="2 ranks x 1 thread: One rank alone prints"):
        measure(ranks=[1, 2], metric=metric, name="mine")
    assert measure(ranks=[1, 2], metric=metric, reduce="sum", name="mine").best.ratio == 1


def test_what_others_took_is_kept_and_said_everywhere_and_nothing_runs_again(
    jobs, measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = iter(range(0, 10**7, 1000))
    sweep = importlib.import_module("scaleout.sweeps.sweep")
    monkeypatch.setattr(sweep, "spent", lambda: ((at := next(total)), 0.72 * at))
    result = measure(ranks=[1, 2])
    assert len(jobs) == 4
    rows = [json.loads(line) for line in (result.folder / "points.jsonl").read_text().splitlines()]
    assert all(0.7 < row["others"] <= 0.75 for row in rows)
    assert "of the CPUs' time, during 4 of 4 jobs" in result.summary
    assert repr(result).splitlines()[1].endswith("%")
    assert "| others |" in (result.folder / "table.md").read_text()
    assert "other programs took up to 7" in (result.folder / "best.sh").read_text()


# The result


def _jobs(role: str, rates: list, ranks: int = 1, threads: int | None = 1) -> list[dict]:
    return [
        {
            "role": role,
            "ranks": ranks,
            "threads": threads,
            "env": {},
            "repeat": repeat,
            "rate": rate,
            "unit": "",
            "status": "ok" if rate else "failed",
            "reason": "" if rate else "it broke",
            "wall_s": 1.0,
        }
        for repeat, rate in enumerate(rates)
    ]


def _result(rates: dict[int, list], defaults: list[list], **how: Any) -> sweeps.Result:
    first, last = defaults
    rows = [*_jobs(FIRST, first, threads=None), *_jobs(LAST, last, threads=None)]
    for ranks, given in rates.items():
        rows += _jobs(POINT, given, ranks)
    return sweeps.Result(rows, **how)


def test_median_spread_ratio_best_and_drift() -> None:
    result = _result({4: [9, 10, 14], 2: [20, 30, 22]}, [[10, 12, 11], [12, 13, 14]])
    assert result.frame.ranks.tolist() == [2, 4] and result.frame.rate.tolist() == [22, 10]
    assert result.frame.spread.tolist() == [5, 2.5]
    assert (result.default.rate, result.default.threads, result.default.repeats) == (12, "unset", 6)
    assert result.best.ranks == 2 and result.best.ratio == pytest.approx(22 / 12)
    assert result.drift == pytest.approx(13 / 11 - 1)
    assert list(result.table.index) == ["default", "best"] and len(result.runs) == 12
    head = "The best of 2 points gives 22.0, 1.83 times the default's 12.0."
    assert result.summary.startswith(head)
    best = repr(result).splitlines()[2].split()
    assert best == ["best", "2", "1", "22.0", "5.00", "1.83", "3", "0", "%"]
    assert "<table" in result._repr_html_() and html.escape(result.summary) in result._repr_html_()


def test_a_point_that_failed_once_is_not_recommended() -> None:
    result = _result({2: [90.0, None], 4: [11.0, 11.0]}, [[10.0], [10.0]])
    failed = result.frame.iloc[0]
    assert result.best.ranks == 4 and math.isnan(failed.rate)
    assert (failed.status, failed.reason, failed.repeats) == ("failed", "it broke", 1)


def test_a_ratio_stands_with_its_interval_or_as_so_many_runs() -> None:
    defaults = [[100, 101, 99, 100], [101, 100, 99, 101]]
    gain = _result({2: [130, 131, 129.5, 130]}, defaults).summary
    assert gain.endswith(
        "The interval of that ratio (95 %, for the best of 1 point): 1.29 to 1.31."
    )
    times = _result({2: [77, 77, 76.5, 77]}, defaults, lower=True).summary
    assert times.endswith(": 1.29 to 1.31.")
    once = _result({2: [14.1]}, [[10.0], [10.0]]).summary
    assert once == (
        "The best of 1 point gives 14.1, 1.41 times the default's 10.0. It rests on one run of "
        "the best point: for an interval, add  --repeat 3."
    )
    assert "It rests on 2 runs" in _result({2: [14.1, 14]}, [[10.0, 10], [10.0, 10]]).summary


def test_a_doubt_about_the_figure_comes_before_what_it_would_mean() -> None:
    rows = [*_jobs(FIRST, [10.0], threads=None), *_jobs(LAST, [10.0], threads=None)]
    rows += [job | {"doubt": "Is it added up?"} for job in _jobs(POINT, [20.0], 2)]
    said = sweeps.Result(rows).summary
    assert said.startswith("Is it added up? If it is right as it was read, the best of 1 point ")


def test_a_gain_within_the_defaults_own_drift_is_none() -> None:
    said = _result({2: [122, 123, 121]}, [[100, 101, 99], [120, 121, 119]]).summary
    assert "the default alone varies by 2" in said and "That shows no gain" in said
    said = _result({2: [11.0]}, [[10.0, 10, 10, 10, 10, 10], [12.0]]).summary
    assert "the default's own drift" in said
    assert "no difference to be seen" in _result({2: [11, 12]}, [[9, 12], [9, 12]]).summary


def test_all_failed_or_nothing_measured_is_said() -> None:
    assert _result({2: [None]}, [[None], []]).best is None
    assert "No point gave a figure" in repr(_result({2: [None]}, [[None], []]))
    assert "No point gave a figure" in repr(sweeps.Result([]))
    assert "the default gives no figure (it broke)" in _result({2: [5.0]}, [[None], []]).summary


# The picture


def _frame(**cells: float) -> pd.DataFrame:
    """cells: r2t1=3.0 is 2 ranks x 1 thread; not a number where it failed."""
    rows = [{"ranks": int(k[1]), "threads": int(k[3:]), "rate": v} for k, v in cells.items()]
    return pd.DataFrame(rows)


def _texts(figure) -> dict[tuple[int, int], str]:
    """{(column, row): text} of the cells."""
    return {tuple(map(int, text.get_position())): text.get_text() for text in figure.axes[0].texts}


def test_a_heat_map_shows_each_cell_failed_and_unmeasured_ones_apart() -> None:
    figure = heat_map(_frame(r1t1=10, r1t16=20, r2t1=math.nan), default=12, unit="images/s")
    axes, bar = figure.axes
    assert _texts(figure) == {(0, 0): "10.0", (1, 0): "20.0", (0, 1): "failed", (1, 1): ""}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "16"]
    assert axes.get_xlabel() == "threads of each rank (count)" and bar.get_ylabel() == "images/s"
    assert axes.get_title("left").startswith("best: 20.0 images/s with ranks 1, threads 16")
    assert "ranks 1, threads 1: 10.0" in figure.get_label()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("x", "y"), [("ranks", "A"), ("A", "ranks")])
def test_a_picture_has_room_for_long_names(x: str, y: str, tmp_path: Path) -> None:
    values = ["granularity=fine,compact,1,0", "granularity=fine,scatter", "a:8,b" * 10]
    frame = pd.DataFrame({"ranks": [1, 1, 1], "A": values, "rate": [1.0, 2.0, 3.0]})
    figure = heat_map(frame, x, y, "images/s", 2.5)
    figure.savefig(tmp_path / "a.png")
    box = figure.axes[0].get_tightbbox()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


def test_a_command_that_works_once_ends_the_sweep_with_what_it_left(
    jobs, measure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []

    def start(job: Job, echo: None) -> Run:
        jobs.append(())
        error = "FileExistsError: [Errno 17] File exists: 'output'"
        lines = [(0, "rate: 5 steps/s" if len(jobs) == 1 else error)]
        run = Run("id", "job", "mpirun", tmp_path, job.ranks, 1, int(len(jobs) > 1), 2.0, lines)
        if len(jobs) > 1:
            raise JobFailed(f"job failed first on rank 0:\n{error}", run)
        return run

    monkeypatch.setattr(launch, "start", start)
    with pytest.raises(ScaleoutError, match="All jobs but the first failed .* File exists"):
        measure(ranks=[1, 2, 4, 8], echo=said.append)
    assert len(jobs) == 4
    assert sum("--prepare 'rm -rf output'" in line for line in said) == 1


def test_best_sh_of_a_sweep_on_slurm_submits_its_job_script(tmp_path: Path) -> None:
    rows = [*_jobs(FIRST, [10.0], threads=None), *_jobs(POINT, [20.0], 2)]
    inner = 'mpirun -prepend-pattern "$MARK" "${TELL[@]}" python train.py'
    about = {"cpu": "X", "cores": 2, "command": inner, "others": 0.0}
    result = sweeps.Result([row | about for row in rows], folder=tmp_path)
    files.write(result, ["python", "train.py"], Site(scheduler="slurm", cores=2))
    fake = tmp_path / "bin/sbatch"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho submitted $1\n")
    fake.chmod(0o755)
    path = {"PATH": f"{fake.parent}:/usr/bin:/bin"}
    said = subprocess.run([tmp_path / "best.sh"], env=path, capture_output=True, text=True)
    assert said.stdout == f"submitted {tmp_path}/best.sbatch\n" and not said.stderr


@pytest.mark.parametrize("site", [Site(cores=2), Site(scheduler="slurm", cores=2)])
def test_no_line_of_what_best_sh_tells_is_executed(tmp_path: Path, site: Site) -> None:
    code = "import time\ntouch EXECUTED #'\n\n\rtouch EXECUTED"
    rows = [*_jobs(FIRST, [10.0], threads=None), *_jobs(POINT, [20.0], 2)]
    about = {"cpu": "X\ntouch EXECUTED", "cores": 2, "command": "echo ran", "others": 0.0}
    about |= {"env": {"A": "1\ntouch EXECUTED"}}
    result = sweeps.Result([row | about for row in rows], folder=tmp_path)
    files.write(result, ["python", "-c", code], site)
    text = (tmp_path / "best.sh").read_text()
    comment = text.partition("exec sbatch" if site.scheduler else "export ")[0]
    assert "touch EXECUTED" in comment
    assert all(line.startswith("#") for line in comment.splitlines())
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "sbatch").chmod(0o755)
    said = subprocess.run(
        ["sh", "best.sh"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "ran\n", "")
    assert not (tmp_path / "EXECUTED").exists()


def test_the_value_of_a_secret_is_shown_to_nobody_and_kept_for_its_owner(
    jobs, measure, results: Path
) -> None:
    said: list[str] = []
    env = {"API_TOKEN": ["s3cret"], "A": ["1"]}
    result = measure(ranks=[2], env=env, name="mine", echo=said.append)
    assert jobs[1][2]["API_TOKEN"] == "s3cret"
    folder = results / "sweep/mine"
    assert sweeps.read(folder).frame.equals(result.frame)
    shown = [*said, repr(result), result._repr_html_(), (folder / "table.md").read_text()]
    assert "API_TOKEN=***" in "".join(shown) and "s3cret" not in "".join(shown)
    assert "s3cret" not in result.frame.to_csv() + result.runs.to_csv()
    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir() if f.is_file()}
    private = {"points.jsonl", "sweep.json", "best.sh", "best.sbatch"}
    assert {f.name for f in folder.iterdir() if b"s3cret" in f.read_bytes()} <= private
    assert {name: modes[name] for name in private} == {
        **dict.fromkeys(private, 0o600),
        "best.sh": 0o700,
    }
    assert "s3cret" in (folder / "best.sh").read_text(), "it sets what was measured"
    measure(env={"A": ["1"]}, name="open")
    assert stat.S_IMODE((results / "sweep/open/points.jsonl").stat().st_mode) == modes["table.md"]
