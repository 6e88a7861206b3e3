"""Sweeps that are killed, interrupted, or whose jobs fail: nothing is repeated, nothing lost,
nothing left behind."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import COMMAND, until

from scaleout import sweeps
from scaleout.base.errors import ScaleoutError

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

BENCH = str(Path(__file__).parents[1] / "data" / "bench.py")
TOTAL = r"Total img/sec on \d+ CPU\(s\): ([0-9.]+)"


@pytest.fixture
def started(tmp_path: Path) -> Callable[[], list[str]]:
    """The jobs that were started."""
    path = tmp_path / "count"
    return lambda: path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A sweep of 6 points and two defaults, 0.3 s each."""
    grid = ["-n", "1,2", "-t", "1", "--env", "TF_NUM_INTEROP_THREADS=0,1,2", "--name", "mine"]
    return [
        *grid,
        "--metric",
        TOTAL,
        "--",
        "python",
        BENCH,
        "pause=0.3",
        f"count={tmp_path / 'count'}",
    ]


@pytest.fixture
def background(results: Path, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts the command; whatever is left of it is ended after the test."""
    begun = []

    def start(*words: str) -> "subprocess.Popen[str]":
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        begun.append(subprocess.Popen([COMMAND, "sweep", *words], start_new_session=True, **how))
        return begun[-1]

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=300)


def _kept(results: Path) -> list[dict]:
    path = results / "sweep/mine/points.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.choice), signal.SIGINT]
)
def test_a_sweep_that_is_stopped_half_way_goes_on_from_there(
    how: signal.Signals,
    background,
    words,
    started,
    results: Path,
    scaleout,
    tmp_path: Path,
    no_process_left,
) -> None:
    process = background(*words)
    until(lambda: len(_kept(results)) >= 3)
    until(lambda: len(started()) > len(_kept(results)))  # in the middle of a job
    process.send_signal(how)
    _, said = process.communicate(timeout=300)
    before, begun = _kept(results), started()
    assert 3 <= len(before) < 8 and len(begun) == len(before) + 1
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert (
            f"Interrupted: {len(before)} of 8 jobs are kept; the same line goes on from there."
            in said
        )
        assert "Traceback" not in said
    for folder in (results / "sweep/mine/jobs").iterdir():
        no_process_left(folder.name, within_s=60)

    done = scaleout("sweep", *words, cwd=tmp_path)
    after = _kept(results)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} of 8 jobs were measured before, in " in done.stdout
    assert after[: len(before)] == before, "lines are added, never changed"
    assert len(after) == 8 and len({_key(row) for row in after}) == 8, (
        "nothing is repeated, nothing lost"
    )
    assert len(started()) == len(begun) + (8 - len(before)), (
        "only the job that was cut off is started again"
    )
    assert (results / "sweep/mine/best.sh").exists()


def _key(row: dict) -> tuple:
    return row["role"], row["ranks"], row["env"]["TF_NUM_INTEROP_THREADS"], row["round"]


def test_a_search_that_is_killed_goes_on_with_the_points_it_had_chosen(
    background, words, results: Path, scaleout, tmp_path: Path
) -> None:
    at = words.index("--")
    words = [*words[:at], "--search", "4", *words[at:]]
    process = background(*words)
    until(lambda: len(_kept(results)) >= 3)
    process.kill()
    process.wait(60)
    before = _kept(results)
    assert scaleout("sweep", *words, cwd=tmp_path).returncode == 0
    rows = _kept(results)
    assert rows[: len(before)] == before and len(rows) == len({_key(row) for row in rows}) == 6


def test_a_line_that_was_cut_off_is_measured_again(
    words, started, results: Path, scaleout, tmp_path: Path
) -> None:
    scaleout("sweep", *words, cwd=tmp_path)
    path = results / "sweep/mine/points.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:40])
    done = scaleout("sweep", *words, cwd=tmp_path)
    assert done.returncode == 0 and "line 6: no record" in done.stdout
    assert len(sweeps.read(path).runs) == 8 and len(started()) == 8 + 3


def test_a_second_sweep_of_the_same_name_is_refused_while_the_first_works(
    background, words, started, results: Path, scaleout, tmp_path: Path
) -> None:
    first = background(*words)
    until(started)
    second = scaleout("sweep", *words, cwd=tmp_path)
    assert second.returncode == 2 and "The sweep mine is running already" in second.stderr
    first.communicate(timeout=300)
    assert first.returncode == 0 and len(_kept(results)) == 8


@pytest.fixture
def measure(results: Path, tmp_path: Path) -> Callable[..., sweeps.Result]:
    def measure(*words: str, **how: object) -> sweeps.Result:
        command = ["python", BENCH, f"count={tmp_path / 'count'}", *words]
        grid = {"ranks": [1, 2], "threads": [1, 2], "metric": TOTAL, "echo": None}
        return sweeps.sweep(command, **{**grid, "timeout": 30, **how})

    return measure


def _failed(result: sweeps.Result) -> dict[tuple[int, int], tuple[str, str]]:
    rows = result.frame[result.frame.status != "ok"]
    return {(row.ranks, row.threads): (row.status, row.reason) for row in rows.itertuples()}


def test_a_point_that_fails_is_kept_as_failed_with_its_reason(
    measure, started, no_process_left
) -> None:
    result = measure("fail=2x2", repeat=3)
    ((point, (status, reason)),) = _failed(result).items()
    assert point == (2, 2) and status == "failed"
    assert "exit status 1" in reason and reason.endswith("MemoryError: no room for so many")
    assert len(started()) == 3 * 3 + 1 + 6, "its other repeats are left out"
    assert (result.folder / "ranks-threads.png").exists() and result.best.ranks == 2


def test_a_failed_point_says_what_failed_and_not_only_where_it_is_explained(
    script: Callable[..., Path], results: Path
) -> None:
    path = script("raise ModuleNotFoundError(\"No module named 'torch'\")")
    result = sweeps.sweep(["python", str(path)], ranks=[1], threads=[1], echo=None)
    assert result.frame.reason.iloc[0].endswith("ModuleNotFoundError: No module named 'torch'")


def test_a_point_that_takes_too_long_is_kept_as_failed_and_ended(
    measure, no_process_left, time_is_up_at
) -> None:
    time_is_up_at("hanging")
    result = measure("hang=2x2", timeout=300)
    assert _failed(result) == {(2, 2): ("timeout", "it took longer than --timeout 300 s")}
    for folder in (result.folder / "jobs").iterdir():
        no_process_left(folder.name)


def test_failed_points_alone_are_tried_again_by_the_same_line(measure, started) -> None:
    result = measure("fail=2x2")
    begun = len(started())
    again = measure("fail=2x2")
    assert [line.split()[:2] for line in started()[begun:]] == [["2", "2"], ["1", "unset"]]
    assert _failed(again).keys() == _failed(result).keys() == {(2, 2)}


def test_a_command_that_never_works_is_given_up_soon_and_begins_anew_once_mended(
    script, results: Path
) -> None:
    grid = {
        "ranks": [1, 2],
        "threads": [1, 2],
        "metric": "rate ([0-9]+)",
        "reduce": "sum",
        "echo": None,
        "name": "mine",
    }
    path = script("import sys; sys.exit('no such data')")
    with pytest.raises(
        ScaleoutError, match=r"The first 3 settings all failed .*: mend the command, then"
    ):
        sweeps.sweep(["python", str(path)], **grid)
    assert len(_kept(results)) == 3
    text = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nprint('rate 5')"
    script(text)
    result = sweeps.sweep(["python", str(path)], **grid)
    assert result.frame.rate.tolist() == [5, 5, 10, 10] and len(_kept(results)) == 6


def test_where_every_point_fails_the_status_is_1(script, results: Path, scaleout) -> None:
    path = script("raise SystemExit(3)")
    done = scaleout("sweep", "-t", "1", "--metric", "rate ([0-9]+)", "--", "python", path)
    assert done.returncode == 1 and "No point gave a figure" in done.stdout
    assert (
        "the default: failed: exit status 3, after" in done.stdout
        and "Traceback" not in done.stderr
    )
