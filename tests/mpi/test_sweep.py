"""Sweeps that start jobs: a script that prints a rate computed from its settings
(tests/data/bench.py)."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scaleout import sweeps
from scaleout.base.errors import ScaleoutError
from scaleout.jobs.environment import thread_variables

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

BENCH = str(Path(__file__).parents[1] / "data" / "bench.py")
TOTAL = r"Total img/sec on \d+ CPU\(s\): ([0-9.]+)"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def jobs(tmp_path: Path) -> Callable[[], list[str]]:
    """The jobs that were started, in order: ranks, OMP_NUM_THREADS, TF_NUM_INTEROP_THREADS."""
    return lambda: (tmp_path / "count").read_text().splitlines()


@pytest.fixture
def measure(tmp_path: Path, results: Path, said: list[str]) -> Callable[..., sweeps.Result]:
    def measure(*words: str, **how: object) -> sweeps.Result:
        command = ["python", BENCH, f"count={tmp_path / 'count'}", *words]
        return sweeps.sweep(command, **{"metric": TOTAL, "timeout": 30, "echo": said.append, **how})

    return measure


def _rate(ranks: int, threads: int, inter: str = "unset") -> float:
    """What bench.py prints as the total, by its own formula."""
    over = max(1, ranks * threads / 2) ** 1.3
    return ranks * 10 * min(threads, 2) ** 0.7 * {"0": 1.0, "1": 1.2}.get(inter, 0.9) / over


def test_every_point_is_measured_with_its_own_settings(measure, jobs) -> None:
    result = measure(ranks=[1, 2], threads=[1, 2], env={"TF_NUM_INTEROP_THREADS": ["0", "1", None]})
    assert len(result.frame) == 12 and (result.frame.status == "ok").all()
    for row in result.frame.itertuples():
        assert row.rate == pytest.approx(
            _rate(row.ranks, row.threads, row.TF_NUM_INTEROP_THREADS), abs=0.001
        )
    assert result.best[["ranks", "threads", "TF_NUM_INTEROP_THREADS"]].tolist() == [2, 1, "1"]
    assert result.best.ratio == pytest.approx(_rate(2, 1, "1") / _rate(1, 2), rel=1e-3)
    assert sorted(jobs()[1:-1]) == sorted(
        f"{n} {t} {i}" for n in (1, 2) for t in (1, 2) for i in ("0", "1", "unset")
    )


def test_the_default_comes_first_and_last_and_nothing_is_set_in_it(
    measure, jobs, monkeypatch
) -> None:
    for name in thread_variables(1):
        monkeypatch.setenv(name, "7")  # as a shell may have it
    result = measure(ranks=2, threads=1, env={"A": "1"}, repeat=2)
    assert jobs() == ["1 unset unset"] * 2 + ["2 1 1"] * 2 + ["1 unset unset"] * 2
    first = json.loads((result.folder / "points.jsonl").read_text().splitlines()[0])
    assert first["command"].startswith("mpirun -n 1 python ")
    assert result.default.repeats == 4 and result.drift == 0


def test_a_search_measures_so_many_points_and_goes_on_from_what_it_knows(measure, jobs) -> None:
    grid = {
        "ranks": [1, 2],
        "threads": [1, 2, 4],
        "env": {"TF_NUM_INTEROP_THREADS": ["0", "1", "2"]},
    }
    found = measure(**grid, search=6, repeat=2)
    count = len(jobs())
    assert len(found.frame) == 6 and count == 6 + 3 + 4 and found.best.repeats == 2
    again = measure(**grid, search=6, repeat=2)
    assert len(jobs()) == count and again.frame.equals(found.frame)
    more = measure(**grid, search=9, repeat=2)
    assert len(more.frame) >= 9


def test_best_sh_really_gives_the_best(measure, tmp_path: Path, monkeypatch) -> None:
    result = measure(
        ranks=[1, 2],
        threads=[1, 2],
        env={"TF_NUM_INTEROP_THREADS": ["0", "1"], "A": ["x y", "it's"]},
    )
    script = result.folder / "best.sh"
    bare = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "9"}
    done = subprocess.run(
        [str(script)], env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (
        float(re.search(TOTAL, done.stdout)[1])
        == pytest.approx(result.best.rate)
        == pytest.approx(24.0)
    )
    pasted = "#!/bin/bash\n#SBATCH --nodes=1\n" + script.read_text() + "echo the end\n"
    done = subprocess.run(
        ["bash"], input=pasted, env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert float(re.search(TOTAL, done.stdout)[1]) == pytest.approx(24.0) and done.stdout.endswith(
        "the end\n"
    )
    assert (
        "export OMP_NUM_THREADS=1" in script.read_text()
        and "mpirun -n 2 -bind-to" in script.read_text()
    )
    asked = result.folder / "best.sbatch"
    done = subprocess.run(
        ["bash", asked], env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert float(re.search(TOTAL, done.stdout)[1]) == pytest.approx(24.0), done.stderr
    assert {"#SBATCH --ntasks=2", "#SBATCH --cpus-per-task=1"} <= set(asked.read_text().split("\n"))
    table = (result.folder / "table.md").read_text().splitlines()
    assert table[2].startswith("| ranks | threads | A | TF_NUM_INTEROP_THREADS | rate |")
    assert len(table) == 4 + len(result.frame) + 2 and table[4].split("|")[5].strip() == "24.0"


def test_a_pattern_without_a_match_ends_the_sweep_at_once_and_keeps_nothing(measure, jobs) -> None:
    with pytest.raises(ScaleoutError) as caught:
        measure(ranks=[1, 2], threads=[1, 2], metric="images: ([0-9]+)", name="mine")
    assert len(jobs()) == 1
    *_, last, typed = str(caught.value).splitlines()
    assert last == "    Total img/sec on 1 CPU(s): 14.621 +-0.8"
    pattern = re.fullmatch("Type  --metric '(.*)'", typed)[1]
    assert len(measure(ranks=[1, 2], threads=1, metric=pattern, name="mine").frame) == 2


def test_the_command_line_prints_the_table_and_where_all_is(
    scaleout, results: Path, tmp_path: Path
) -> None:
    words = [
        "-n",
        "1,2",
        "-t",
        "1",
        "--env",
        "TF_NUM_INTEROP_THREADS=0,1",
        "--metric",
        TOTAL,
        "--",
        "python",
        BENCH,
    ]
    done = scaleout("sweep", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *_, head, default, best, summary, drift, holds = done.stdout.splitlines()
    settings = ["ranks", "threads", "TF_NUM_INTEROP_THREADS"]
    assert head.split() == [*settings, "rate", "spread", "ratio", "repeats", "others"]
    assert default.split()[:5] == ["default", "1", "unset", "unset", "14.6"]
    assert best.split()[:5] == ["best", "2", "1", "1", "24.0"]
    assert summary.startswith(
        "The best of 4 points gives 24.0, 1.64 times the default's 14.6. It rests on"
    )
    assert drift == "The default drifted by +0.0 % from the first to the last time."
    assert re.fullmatch(
        r"results/sweep/bench-[0-9a-f]{8}/ holds best.sbatch, best.sh, points.jsonl, ranks-.*png, table.md",
        holds,
    )
    assert "Traceback" not in done.stderr
