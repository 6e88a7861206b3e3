"""What may be mistyped behind the scripts of labs 08, 10 and 11, a line each in lab_flags.txt: all is
refused in one sentence, before anything is computed or written.

A lab's lines run in one process that starts its scripts one after another, as one rank does."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("lab_flags.txt")
EACH = """
import contextlib, io, json, runpy, sys
from mpi4py import MPI

MPI.Finalize = lambda: None  # the next script needs it, too
folder, cases = sys.argv[1], json.loads(sys.argv[2])
sys.path.insert(0, folder)
for words in cases:
    for name, module in list(sys.modules.items()):
        if folder in str(getattr(module, "__file__", "")):
            del sys.modules[name]
    sys.argv = [f"{folder}/{words[0]}", *words[1:]]
    how = "it ran"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            how = end.code
        except Exception as error:
            how = repr(error)
    print(json.dumps([how, said.getvalue()]))
"""


def _cases() -> dict[str, list[tuple[list[str], str]]]:
    found: dict[str, list[tuple[list[str], str]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line[0] != "#":
            typed, piece = line.split(" | ")
            topic, _, words = typed.partition("/")
            found.setdefault(topic, []).append((shlex.split(words), piece.strip()))
    return found


CASES = _cases()


def test_no_line_stands_twice() -> None:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert len(lines) == len({line.partition(" | ")[0] for line in lines}) >= 95


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "topic",
    [
        "08_precision",
        pytest.param("10_input", marks=pytest.mark.choice),  # which starts TensorFlow
        "11_parallelism",
    ],
)
def test_each_is_refused_in_a_sentence_and_nothing_is_written(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RECORDS", str(tmp_path / "records.jsonl"))
    folder = str(ROOT / "solutions" / topic)
    typed = json.dumps([words for words, _ in CASES[topic]])
    done = subprocess.run(
        [sys.executable, "-c", EACH, folder, typed],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        timeout=250,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(CASES[topic])
    for (words, piece), (how, said) in zip(CASES[topic], answers, strict=True):
        assert str(how).startswith(piece), f"{words}: {how}"
        assert "\n" not in str(how) and not said, words
    assert not list(tmp_path.iterdir())
