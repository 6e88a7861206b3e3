"""The command `scaleout compare` with jobs of its own: loops of known lengths on two ranks."""

import json
import subprocess
from pathlib import Path

import pytest
from helpers import COMMAND

from scaleout import Comparison

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(240)]

# Its rate follows from its work alone: what else the machine does changes nothing.
LOOP = """
import os, sys
cost = sum(i % 7 for i in range(int(sys.argv[1])))
print(f"rate: {1e6 / cost:.3f} loops/s, KNOB={os.environ.get('KNOB', 'unset')}")
"""
TWO = ["python", "loop.py", "9000", "::", "python", "loop.py", "6000"]


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    Path("loop.py").write_text(LOOP)
    return tmp_path


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    given = [COMMAND, "compare", *words]
    return subprocess.run(given, capture_output=True, text=True, timeout=200)


def test_the_faster_command_is_named_and_all_is_kept(loop: Path) -> None:
    metric = ["--metric", "rate: ([0-9.]+)", "-n", "2", "-t", "1", "--name", "loops"]
    done = command(*metric, "--", *TWO)
    assert done.returncode == 0, done.stderr
    assert "6000: faster, 1.5" in done.stdout and "times as fast as 9000" in done.stdout
    assert done.stdout.count("9000, again:") == 3  # three rounds are enough where nothing varies
    folder = loop / "results" / "compare" / "loops"
    rows = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert len(rows) == 9 and all((folder / "jobs" / row["run_id"]).is_dir() for row in rows)
    assert (folder / "comparison.png").stat().st_size > 5000
    assert "| 6000 | 3 |" in (folder / "comparison.md").read_text()
    assert Comparison.read(folder).verdict("6000") == "faster"


def test_values_of_a_variable_reach_the_ranks(loop: Path) -> None:
    how = ["--metric", "rate: ([0-9.]+)", "-t", "1", "--rounds", "3", "--env", "KNOB=1,"]
    done = command(*how, "--name", "knob", "--", "python", "loop.py", "3000")
    assert done.returncode == 0, done.stderr
    assert "KNOB=unset: no difference from KNOB=1 is shown (within ±0 %)." in done.stdout
    jobs = loop / "results" / "compare" / "knob" / "jobs"
    said = sorted(path.read_text().split("KNOB=")[1].strip() for path in jobs.glob("*/output.txt"))
    assert said == ["1"] * 6 + ["unset"] * 3


def test_all_variants_of_a_round_get_the_same_seed(loop: Path) -> None:
    (loop / "seed.py").write_text(
        "import os, sys\nprint('seed', sys.argv[1], os.environ['SCALEOUT_ROUND'], 'rate: 5')\n"
    )
    how = ["--metric", "rate: ([0-9.]+)", "-t", "1", "--rounds", "3", "--name", "seeds"]
    words = ["python", "seed.py", "{ROUND}"]
    done = command(*how, "--", *words, "::", *words, "more")
    assert done.returncode == 0, done.stderr
    jobs = loop / "results" / "compare" / "seeds" / "jobs"
    said = sorted(path.read_text().split()[2:4] for path in jobs.glob("*/output.txt"))
    assert said == [[n, n] for n in "111222333"]


def test_a_command_that_fails_ends_it_with_its_status_and_its_own_last_words(loop: Path) -> None:
    Path("crash.py").write_text(
        "import sys; print('reading'); print('no table', file=sys.stderr); sys.exit(3)"
    )
    done = command("--metric", "wall_s", "--", "python", "loop.py", "9", "::", "python", "crash.py")
    assert done.returncode == 3 and "crash.py, round 1: failed" in done.stderr
    assert "Its last lines:" in done.stderr and "\n    no table" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_metric_the_line_that_looks_like_a_rate_is_taken(loop: Path) -> None:
    Path("steps.py").write_text(
        "import sys; print('loss 0.1'); print('rate:', sys.argv[1], 'it/s')"
    )
    done = command("-t", "1", "--", "python", "steps.py", "5.0", "::", "python", "steps.py", "6.0")
    assert done.returncode == 0, done.stderr
    assert "6.0: faster, 1.2000 times as fast as 5.0" in done.stdout
