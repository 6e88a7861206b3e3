"""The tools' own arguments: what makes no sense is one sentence, and nothing is written."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["keep_reference.py", "nosuch"], "There is no comparison in nosuch/compare/knobs"),
    ],
)
def test_arguments_that_make_no_sense_are_one_sentence(
    words: list[str], said: str, tmp_path: Path
) -> None:
    line = [sys.executable, str(TOOLS / words[0]), *words[1:]]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())
