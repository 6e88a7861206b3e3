"""The gate of a comparison: when it looks, what it says, how often it is wrong, what a program reads."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from scaleout import cli, compare
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons import document as of_comparison
from scaleout.comparisons import gate
from scaleout.comparisons.calibrate import Drawn, replay
from scaleout.jobs.job import JobFailed, Run
from scaleout.launch import run as launch
from scaleout.sweeps import document as of_sweep

DOCS = Path(__file__).parents[3] / "docs"
SCHEMAS = {
    "compare.schema.json": of_comparison.Compared,
    "sweep.schema.json": of_sweep.Searched,
}


def test_all_looks_together_are_wrong_no_more_often_than_one() -> None:
    every = gate.looks(gate.MOST_ROUNDS)
    assert every[:6] == [5, 7, 10, 14, 20, 28]
    assert 0.04 < sum(1 - gate.level(n) for n in every) < 0.05
    assert gate.level(8) == gate.level(10), "between two looks it is as sure as at the next"


def _values(ratio: float, noise: float, rounds: int, seed: int = 0) -> Drawn:
    draw = np.random.default_rng(seed)
    logs = noise * draw.normal(size=(rounds, 3)) + [0, 0, math.log(ratio)]
    return Drawn(100 * np.exp(logs))


@pytest.mark.parametrize(
    ("ratio", "noise", "rounds", "status", "words"),
    [
        (
            1.0,
            0.001,
            5,
            gate.PASSES,
            "slowed is shown to be no more than 5.0 % slower: it is 1.000",
        ),
        (0.97, 0.001, 5, gate.PASSES, "no more than 5.0 % slower: it is 0.970"),
        (1.5, 0.001, 5, gate.PASSES, "no more than 5.0 % slower"),
        (0.9, 0.001, 5, gate.SLOWER, "shown to be more than 5.0 % slower: it is 0.9"),
        (1.0, 0.1, 5, gate.UNKNOWN, "nobody can tell whether it is more than 5.0 % slower"),
        (0.95, 0.02, 20, gate.UNKNOWN, "ounds "),
        (1.0, 0.001, 2, gate.UNKNOWN, "nobody can tell after 2 rounds; it takes 5."),
    ],
)
def test_a_gate_says_what_is_shown(
    ratio: float, noise: float, rounds: int, status: int, words: str
) -> None:
    judged = gate.judge(_values(ratio, noise, rounds), 0.05)
    assert judged.status == status and words in str(judged)
    assert str(judged).startswith(f"Gate of 5.0 %: {gate.WORDS[judged.status]}.")


def test_how_many_rounds_would_tell_is_about_right() -> None:
    few = gate.judge(_values(1.0, 0.06, 7), 0.05)
    needed = few.needed["slowed"]
    assert few.status == gate.UNKNOWN and 10 < needed < 120
    assert f"About {needed:,} rounds would tell" in str(few)
    many = [gate.judge(_values(1.0, 0.06, 2 * needed, seed), 0.05).status for seed in range(20)]
    assert many.count(gate.PASSES) >= 18


def _says(ratio: float, noise: float, seed: int, rounds: int = 40) -> int:
    """What a gate says that looks as it does while a comparison goes on."""
    values = _values(ratio, noise, rounds, seed).values
    found = (gate.judge(Drawn(values[:n]), 0.05).status for n in gate.looks(rounds))
    return next((status for status in found if status != gate.UNKNOWN), gate.UNKNOWN)


@pytest.mark.parametrize(
    ("ratio", "wrong", "most", "right", "least"),
    [
        (1.0, gate.SLOWER, 0, gate.PASSES, 195),
        (0.9, gate.PASSES, 0, gate.SLOWER, 195),
        (0.95, gate.SLOWER, 10, gate.UNKNOWN, 180),  # on the edge nothing is shown
    ],
)
def test_however_often_it_looks_a_gate_is_seldom_wrong(
    ratio: float, wrong: int, most: int, right: int, least: int
) -> None:
    said = [_says(ratio, 0.03, seed) for seed in range(200)]
    assert said.count(wrong) <= most and said.count(right) >= least


@pytest.fixture
def jobs(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, float]], list[str]]:
    """Jobs that print the rate of their last word, with noise of 1 %; what was started."""
    monkeypatch.delenv("SCALEOUT_QUICK", raising=False)
    monkeypatch.chdir(tmp_path)

    def play(rates: dict[str, float], noise: float = 0.01) -> list[str]:
        started: list[str] = []
        draw = np.random.default_rng(1)

        def run(script: list[str], name: str, **how: Any) -> Run:
            started.append(" ".join(script))
            value = rates.get(script[-1], 100.0) * math.exp(noise * draw.normal())
            said = [(0, f"rate: {value:.3f} images/s")]
            made = Run("id", name, "mpirun x", tmp_path, 1, 1, 0, 1.0, said)
            if value < 0:
                made.status = 1
                raise JobFailed("x failed: exit status 1", made)
            return made

        monkeypatch.setattr(launch, "run", run)
        return started

    return play


LINE = ["--metric", "rate: ([0-9.]+)", "--name", "g"]


@pytest.mark.parametrize(
    ("rate", "gated", "status", "words"),
    [
        (100.0, ["--gate", "5"], 0, "Gate of 5.0 %: passes."),
        (88.0, ["--gate", "5"], 1, "Gate of 5.0 %: slower."),
        (95.0, ["--gate", "5", "--minutes", "0.02"], 3, "Gate of 5.0 %: cannot tell."),
        (88.0, [], 0, "b: slower"),
        (-1.0, ["--gate", "5"], 2, ""),
        (-1.0, [], 1, ""),
    ],
)
def test_the_exit_status_is_the_gates(
    jobs, capsys: pytest.CaptureFixture[str], rate: float, gated: list[str], status: int, words: str
) -> None:
    jobs({"b": rate})
    assert cli.main(["compare", *LINE, *gated, "--", "true", "a", "::", "true", "b"]) == status
    assert words in capsys.readouterr().out


def test_a_gate_that_could_not_tell_goes_on_from_there(jobs, capsys) -> None:
    line = [
        "compare",
        *LINE,
        "--gate",
        "5",
        "--minutes",
        "0.01",
        "--",
        "true",
        "a",
        "::",
        "true",
        "b",
    ]
    jobs({"b": 95.0})
    assert cli.main(line) == 3
    first = capsys.readouterr().out.count("b: 9")
    assert cli.main(line) == 3
    assert f"{first} rounds were measured before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gate", "0"], "--gate takes a percentage"),
        (["--gate", "nan"], "--gate takes a percentage"),
        (["--gate", "5", "--minutes", "-1"], "--gate takes a percentage"),
        (["--gate", "5", "--rounds", "9"], "leave --rounds out"),
        (["--minutes", "5"], "--minutes is for --gate"),
        (["--calibrate", "--refs", "a,b"], "--calibrate takes one command"),
        (["--refs", "main"], "--refs takes two commits or more"),
        (["--refs", "main,main"], "each once"),
    ],
)
def test_bad_words_are_one_sentence(jobs, capsys, words: list[str], said: str) -> None:
    jobs({})
    assert cli.main(["compare", *LINE, *words, "--", "true", "a"]) == 2
    out = capsys.readouterr().err
    assert said in out and out.count("\n") == 1


def test_what_prepares_a_run_runs_before_each_and_is_not_measured(jobs) -> None:
    started = jobs({"b": 90.0})
    words = [
        "--rounds",
        "3",
        "--prepare",
        "rm -rf kept-{ROUND}",
        "--",
        "true",
        "a",
        "::",
        "true",
        "b",
    ]
    assert cli.main(["compare", *LINE, *words]) == 0
    assert started[::2] == [f"sh -c rm -rf kept-{n}" for n in "111222333"]
    assert set(started[1::2]) == {"true a", "true b"}


def test_a_preparation_that_fails_is_named(jobs, monkeypatch, capsys) -> None:
    jobs({"rm -rf kept": -1.0})
    assert (
        cli.main(["compare", *LINE, "--prepare", "rm -rf kept", "--", "true", "::", "true", "b"])
        == 1
    )
    assert "true, round 1, --prepare: " in capsys.readouterr().err


@pytest.mark.parametrize("where", ["-", "found.json"])
def test_a_program_reads_all_that_was_found(jobs, capsys, where: str) -> None:
    jobs({"b": 88.0})
    env = ["--env", "API_TOKEN=s3cret"]
    words = [*env, "--gate", "5", "--json", where, "--", "true", "a", "::", "true", "b"]
    assert cli.main(["compare", *LINE, *words]) == 1
    out = capsys.readouterr().out
    text = out if where == "-" else Path(where).read_text()
    found = msgspec.json.decode(text, type=of_comparison.Compared)  # and nothing beside it
    assert found.kind == "compare" and found.argv[:2] == ["scaleout", "compare"]
    assert "s3cret" not in text and "API_TOKEN=***" in found.argv
    assert found.baseline.name == "a" and len(found.baseline.again) == found.rounds
    (b,) = found.variants
    assert b.verdict == "slower" and len(b.values) == found.rounds
    assert b.ratio.low < b.ratio.middle < b.ratio.high < 0.95
    assert found.gate and (found.gate.status, found.gate.says) == (1, "slower")
    assert found.gate.variants[0].ratio.high >= b.ratio.high, "surer, as it looks more often"
    assert found.stamp.machine.cores >= 1 and found.stamp.utc and found.noise


def test_too_few_rounds_are_null_in_the_document(jobs, capsys, monkeypatch) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    jobs({"b": 88.0})
    assert cli.main(["compare", *LINE, "--json", "-", "--", "true", "a", "::", "true", "b"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["noise"] is None and found["variants"][0]["ratio"]["high"] is None


@pytest.mark.parametrize("file", SCHEMAS)
def test_the_schemas_are_those_of_the_documents(file: str) -> None:
    written = json.loads((DOCS / file).read_text())
    assert written == msgspec.json.schema(SCHEMAS[file]), (
        "type  python tests/unit/comparisons/test_gate.py"
    )


def test_a_replay_of_equal_runs_is_no_alarm_and_finds_what_was_slowed() -> None:
    speeds = _values(1.0, 0.02, 20).values
    equal, slowed = (replay(speeds, 0.05, share, draws=60) for share in (0.0, 0.2))
    assert equal.red == 0 and equal.passed > 0.9 and slowed.red == 1 and slowed.passed == 0
    assert replay(speeds, 0.05, 0.2, draws=60) == slowed, "the same each time"


@pytest.mark.parametrize("noise", [0.005, 0.05])
def test_a_gate_is_tried_on_this_machine(jobs, capsys, noise: float) -> None:
    started = jobs({}, noise)
    assert cli.main(["compare", *LINE, "--calibrate", "--minutes", "0.05", "--", "true", "a"]) == 0
    out = capsys.readouterr().out
    assert len(started) >= 15 and set(started) == {"true a"}
    assert "False alarms of a gate of 5.0 % on equal commands: 0 %." in out
    smallest = out.partition("finds in 95 of 100: ")[2].partition(" %")[0]
    assert 5 < float(smallest) < 25 if smallest else noise > 0.01


def test_too_few_rounds_tell_nothing_of_a_gate(jobs, capsys) -> None:
    jobs({})
    line = ["compare", *LINE, "--calibrate", "--minutes", "1e-9", "--", "true", "a"]
    assert cli.main(line) == 2
    assert "1 round came to an end" in capsys.readouterr().err


def test_a_share_of_a_gate_is_checked(jobs) -> None:
    for how in ({"gate": 5}, {"gate": 0.05, "minutes": 0}):
        with pytest.raises(ScaleoutError, match="A gate is a share"):
            compare(lambda speed: speed, {"a": {"speed": 1.0}, "b": {"speed": 2.0}}, **how)


if __name__ == "__main__":
    for file, kind in SCHEMAS.items():
        (DOCS / file).write_text(json.dumps(msgspec.json.schema(kind), indent=1) + "\n")
