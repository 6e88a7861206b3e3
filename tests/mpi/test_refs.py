"""`scaleout compare --refs`: one command at two commits, and nothing is left of their worktrees."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from helpers import COMMAND

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(240)]
HOW = ["--metric", "rate: ([0-9.]+)", "-t", "1", "--name", "refs"]


def git(*words: str) -> str:
    me = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    done = subprocess.run(["git", *me, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose branch `main` has a rate of 100, and whose last commit one of 150."""
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "code" / "part").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "code")
    git("init", "--quiet", "--initial-branch", "main")
    for rate in (100, 150):
        Path("part/bench.py").write_text(f"print('rate: {rate}')\n")
        git("add", ".")
        git("commit", "--quiet", "-m", f"{rate}")
        if rate == 100:
            git("checkout", "--quiet", "-b", "mine")
    return tmp_path


def nothing_is_left(place: Path, within_s: float = 40.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if (
            not list((place / "tmp").glob("scaleout-refs-*"))
            and len(git("worktree", "list").splitlines()) == 1
        ):
            return True
        time.sleep(0.2)
    return False


def test_two_commits_are_compared_in_the_same_folder_of_each(repository: Path) -> None:
    os.chdir("part")
    Path("new.txt").touch()
    line = [COMMAND, "compare", *HOW, "--rounds", "3", "--prepare", "touch made-{ROUND}"]
    line += ["--refs", "main,HEAD", "--", "python", "bench.py"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "HEAD: faster, 1.5" in done.stdout and "times as fast as main" in done.stdout
    assert "1 file of this tree is not as git has it: that is not measured" in done.stdout
    assert nothing_is_left(repository, 0.1) and not list(Path().glob("made-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_worktree(repository: Path, number: signal.Signals) -> None:
    Path("part/bench.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(200)\n")
    git("commit", "--quiet", "-am", "slow")
    line = [COMMAND, "compare", *HOW, "--refs", "HEAD,main", "--", "python", "part/bench.py"]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        end = time.monotonic() + 60
        jobs = repository / "results" / "compare" / "refs" / "jobs"
        while time.monotonic() < end and not any(
            "up" in p.read_text() for p in jobs.glob("*/output.txt")
        ):
            time.sleep(0.1)
        assert list((repository / "tmp").glob("scaleout-refs-*"))
        started.send_signal(number)
        started.wait(60)
    assert nothing_is_left(repository)


@pytest.mark.parametrize(
    ("refs", "said"),
    [
        ("main,nowhere", "git knows no commit 'nowhere' here: fetch it first"),
        ("HEAD,mine", "HEAD and mine are the same commit"),
        ("--help,HEAD", "git knows no commit '--help'"),
    ],
)
def test_what_is_no_other_commit_is_refused(repository: Path, refs: str, said: str) -> None:
    line = [COMMAND, "compare", *HOW, f"--refs={refs}", "--", "python", "part/bench.py"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr
    assert nothing_is_left(repository, 0.1)


def test_without_a_repository_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = [COMMAND, "compare", *HOW, "--refs", "main,HEAD", "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "not a git repository" in done.stderr
