"""A script that Python cannot read is told once, whatever the number of its ranks, and none starts."""

from pathlib import Path
from typing import Any

import pytest

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.jobs import unreadable
from scaleout.launch import hosts
from scaleout.launch import run as launch

OPEN = "def step(x):\n    return (x + 1\n\n\nprint(step(2))\n"
TOLD = """Python cannot read line 2 of bad.py: SyntaxError: '(' was never closed. No rank was started.
    return (x + 1
           ^"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that would have been started; bad.py has a syntax error."""
    jobs: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(hosts, "run", lambda job, say: jobs.append(job))
    Path("bad.py").write_text(OPEN)
    return jobs


def test_a_syntax_error_is_told_once_for_all_ranks(
    started: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "bad.py", "-n", "3", "--", "--epochs", "1"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"scaleout: {TOLD}\n")
    assert started == [] and not Path("results").exists()
    assert cli.main(["run", "-m", "bad", "-n", "3"]) == 1
    assert capsys.readouterr().err == f"scaleout: {TOLD}\n"
    with pytest.raises(ScaleoutError) as refused:
        launch.run(["python", "-u", "bad.py"], name="bad", ranks=2)
    assert str(refused.value) == TOLD


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"if True:\nprint(1)\n", "line 2 of a.py: IndentationError: expected an indented block"),
        (b"a = 1\n\n\nprint 'a'\n", "line 4 of a.py: SyntaxError: Missing parentheses"),
        (b"a = '\xff'\n", "SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff"),
        (b"a = 1\n\0", "line 2 of a.py: SyntaxError: a null byte. No rank was started."),
    ],
    ids=["indentation", "Python 2", "Latin-1", "null"],
)
def test_each_kind_of_it_is_told_with_its_line(started: list[Any], text: bytes, told: str) -> None:
    Path("a.py").write_bytes(text)
    with pytest.raises(ScaleoutError) as refused:
        unreadable.refuse(["python", "-m", "mpi4py", "a.py"])
    assert told in str(refused.value)
    if b"\0" not in text:
        line = text.decode("latin-1").splitlines()[-1]
        assert line[:4] in str(refused.value).splitlines()[1]


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-m", "mpi4py", "good.py", "bad.py"],
        ["python", "-c", "bad.py"],
        ["python", "-X", "dev", "bad.py"],  # what stands behind it is not known to be the script
        ["sh", "bad.py"],
        ["python", "gone.py"],
        ["python", "-m", "gone"],
        ["python"],
    ],
    ids=" ".join,
)
def test_what_is_no_such_script_is_started(started: list[Any], command: list[str]) -> None:
    Path("good.py").write_text("pattern = '\\d'\nprint(1)\n")
    launch.run(command, name="x", ranks=2, echo=None)
    assert len(started) == 1


MINE, THEIRS = b"rank = comm.rank\n", b"rank = 0\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"<<<<<<< HEAD\n" + MINE + b"=======\n" + THEIRS + b">>>>>>> origin/main\n", "1 to 5"),
        (b"<<<<<<< Updated upstream\n=======\n" + MINE + b">>>>>>> Stashed changes", "1 to 4"),
        (b"a = 1\r\n<<<<<<< HEAD\r\n=======\r\nb = 1\r\n>>>>>>> 1a2b3c (Mend)\r\n", "2 to 5"),
        (b"<<<<<<< HEAD\n||||||| base\n" + MINE + b"=======\n" + THEIRS + b">>>>>>> x\n", "1 to 6"),
        (b"<<<<<<< HEAD\n" + MINE, ""),
        (b"a = 1 <<<<<<< 2\n=======\n>>>>>>> b\n", ""),
    ],
    ids=["pull", "stash", "CRLF", "diff3", "no end", "no mark"],
)
def test_two_versions_that_git_has_left_are_told(
    started: list[Any], text: bytes, lines: str
) -> None:
    Path("a.py").write_bytes(text)
    with pytest.raises(ScaleoutError) as refused:
        unreadable.refuse(["python", "a.py"])
    told = f"In a.py git has left two versions in lines {lines}: keep one of them"
    assert str(refused.value).startswith(told if lines else "Python cannot read line 1 of a.py")


@pytest.mark.parametrize(("status", "refused"), [(0, False), (1, True)])
def test_another_python_is_asked_whether_it_can_read_it(
    started: list[Any], status: int, refused: bool
) -> None:
    """A newer one reads what ours cannot."""
    other = Path("python9")
    other.write_text(f"#!/bin/sh\nexit {status}\n")
    other.chmod(0o755)
    words = ["run", "bad.py", "-n", "2", "--python", str(other.absolute())]
    if refused:
        assert cli.main(words) == 1 and started == []
    else:
        assert cli.main(words) == 0 and len(started) == 1
