"""Bad input, a line each in bad_input.txt: it is answered in one sentence and with its exit status,
without a traceback, and nothing is written beside the results.

A line of the table is `command | what is wrong | exit status | a piece of the sentence`. In a
command, {{80*x}} stands for eighty letters x, {{newline}} for a line's end, and NAME=VALUE before it
sets a variable, as in a shell. All run in this one process, and none of them may come as far as a
job."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from faults import untrusted
from faults.untrusted import answer, tree

TABLE = Path(__file__).with_name("bad_input.txt")
Seen = list[dict[str, tuple[int, int]]]
LONGEST = 1200  # characters of an answer: more is no sentence


class Case(NamedTuple):
    """A line of the table."""

    command: str
    wrong: str
    status: int
    piece: str


def _table() -> list[Case]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [re.split(r" \| ", line) for line in lines if line.strip() and line[0] != "#"]
    return [Case(row[0].strip(), row[1].strip(), int(row[2]), row[3].strip()) for row in rows]


CASES = _table()


def _words(command: str) -> list[str]:
    """The words of a command, with what cannot be typed into a table filled in."""
    filled = {"newline": "\n", "tab": "\t", "null": "\0", "bar": "|", "escape": "\x1b"}
    filled |= {"byte": "\udcff", "bom": "\ufeff"}  # no UTF-8, and an editor's mark

    def fill(found: re.Match[str]) -> str:
        times, _, text = found[1].partition("*")
        return filled[found[1]] if found[1] in filled else int(times) * text

    return [re.sub(r"\{\{([^{}]+)\}\}", fill, word) for word in shlex.split(command)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with untrusted.at_work(tmp_path_factory.mktemp("place") / "workshop") as folder:
        yield folder


@pytest.fixture(scope="module")
def seen(place: Path) -> Seen:
    """The files of the place, as the last command has left them."""
    return [tree(place)]


def test_the_table_is_long_and_names_no_command_twice() -> None:
    commands = [case.command for case in CASES]
    assert len(commands) >= 930 and len(set(commands)) == len(commands)
    assert all(case.wrong and case.piece for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.command[:60]}: {case.wrong}")
def test_bad_input_is_answered_in_one_sentence(
    case: Case, place: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = _words(case.command)
    while words and (setting := re.fullmatch(r"([A-Z_]+)=(.*)", words[0], re.DOTALL)):
        monkeypatch.setenv(setting[1], setting[2])
        words.pop(0)
    status, out, errors = answer(words)
    assert (status, case.piece in out + errors) == (case.status, True), (status, out, errors)
    assert "Traceback" not in out + errors and len(errors) < LONGEST
    if status == 2:
        assert len(errors.splitlines()) == 1 and errors.startswith("scaleout"), errors
        assert out == ""
    before, seen[:] = seen[0], [tree(place)]
    assert seen == [before]


def test_what_is_right_in_the_same_place_passes(place: Path) -> None:
    assert answer(["scaling", "csv/good.csv", "--predict", "16"])[0] == 0
    words = ["submit", "train.py", "--site", "sites/slurm.toml", "--dry-run"]
    assert answer(words)[1].startswith("#!/bin/bash")
    for name in ("00_tiny", "00", "0"):
        assert answer(["hint", name, "1"])[1] == "Hint 1 of 1: one\n"
    with pytest.raises(AssertionError, match="a job was started"):  # so the table can fail
        answer(["run", "train.py"])
