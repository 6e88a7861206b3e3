"""The line that a page of docs/preview/ hands in: what collect reads of it, and what not."""

import os
from pathlib import Path

import pytest

from scaleout.teaching import collect, guesses

LINE = "scaleout-guesses 05_horovod apart=1.9 cycle-1=1.5"
CHECK = '{"todo": 1, "state": "passed"}\n'


def test_a_line_of_a_page_is_read(tmp_path: Path) -> None:
    more = "scaleout-guesses 00_welcome pi=2"
    (tmp_path / guesses.FILE).write_text(f"Here they are:\r\n  {LINE}\r\n{more}\r\n\r\n")
    found = {("05_horovod", "apart"): 1.9, ("05_horovod", "cycle-1"): 1.5, ("00_welcome", "pi"): 2}
    assert guesses.read(tmp_path) == (found, [])


def test_the_first_guess_counts_and_later_lines_add_to_it(tmp_path: Path) -> None:
    again = "scaleout-guesses 05_horovod apart=1.0 cycle-4=1e-3"
    (tmp_path / guesses.FILE).write_text(f"{LINE}\n{again}\n")
    found, _ = guesses.read(tmp_path)
    assert [*found.values()].count(1.9) == 1 and 1.0 not in found.values()
    assert found["05_horovod", "cycle-4"] == 0.001


@pytest.mark.parametrize(
    "said",
    [
        "",
        "05_horovod",
        "../x apart=1",
        f"05_{'h' * 50} apart=1",
        "05_horovod apart=nan",
        "05_horovod apart=1 cycle-1=-2",
        "05_horovod apart=0",
        "05_horovod apart=1e999",
        "05_horovod apart=\N{ARABIC-INDIC DIGIT ONE}",
        f"05_horovod {'a' * 31}=1",
        "05_horovod <b>=1",
    ],
)
def test_what_is_no_line_of_guesses_is_said_and_left_out(tmp_path: Path, said: str) -> None:
    text = f"scaleout-guesses {said}".strip()
    (tmp_path / guesses.FILE).write_text(f"{text}\n", encoding="utf-8")
    assert guesses.read(tmp_path) == ({}, [f"guesses.txt, line 1: no guesses ({text[:60]})"])


def test_a_huge_file_is_cut_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / guesses.FILE).write_text(f"{LINE}\n{100_000 * '-'}\n{LINE} cycle-4=1\n")
    assert len(guesses.read(tmp_path)[0]) == 2
    (tmp_path / guesses.FILE).unlink()
    os.mkfifo(tmp_path / guesses.FILE)
    assert guesses.read(tmp_path) == ({}, [])


def test_collect_counts_a_class_also_those_who_only_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    topic = tmp_path / "class/one/results/04_kmeans"
    topic.mkdir(parents=True)
    (topic / "checks.jsonl").write_text(CHECK)
    out = collect.collect([tmp_path / "class"])
    assert not (out / guesses.PAGE).exists()
    (tmp_path / "class/one" / guesses.FILE).write_text(LINE)  # beside results/
    for who, guess in (("two", 1.2), ("three/handed-in", 2)):
        (tmp_path / "class" / who).mkdir(parents=True)
        line = f"scaleout-guesses 05_horovod apart={guess}"
        (tmp_path / "class" / who / guesses.FILE).write_text(line)
    (tmp_path / "class/two/notes.txt").touch()
    capsys.readouterr()
    out = collect.collect([tmp_path / "class"], names=True)
    text = (out / guesses.PAGE).read_text(encoding="utf-8")
    assert text.startswith("# The guesses of 3 people\n")
    assert "| 05_horovod | apart | 3 | 1.20 | 1.90 | 2.00 |" in text
    assert "| 05_horovod | cycle-1 | 1 | 1.50 | 1.50 | 1.50 |" in text
    assert "two" not in text
    assert capsys.readouterr().out == ""


def test_guesses_beside_results_take_no_results_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    topic = tmp_path / "class/Bea_7/bea/results/04_kmeans"
    topic.mkdir(parents=True)
    (topic / "checks.jsonl").write_text(CHECK)
    (tmp_path / "class/Bea_7" / guesses.FILE).write_text(LINE)  # a folder too high: not hers alone
    (found,) = collect.gather([tmp_path / "class"], names=True)
    assert found.name == "bea" and found.checks and not found.guessed
    (tmp_path / "class/Bea_7/bea" / guesses.FILE).write_text(LINE)
    (found,) = collect.gather([tmp_path / "class"], names=True)
    assert len(found.guessed) == 2
    (one,) = collect.gather([tmp_path / "class/Bea_7/bea/results"], names=True)
    assert one.guessed == found.guessed
