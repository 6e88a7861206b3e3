"""Numbers in words, lists of values, and what is kept of a secret."""

import json
import stat
from pathlib import Path

import pytest

from scaleout.base import paths, words
from scaleout.jobs.job import Run


def test_secrets_are_known_by_their_names() -> None:
    said = {"MY_TOKEN": "a", "api_key": "b", "AWS_SECRET_ACCESS_KEY": "c", "PASSWORD2": "d"}
    assert words.veiled(said) == dict.fromkeys(said, "***")
    plain = {
        "TOKENIZERS_PARALLELISM": "1",
        "KMP_AFFINITY": "x",
        "OMP_NUM_THREADS": "2",
        "KEYBOARD": "us",
        "BYPASS": "1",
    }
    assert words.veiled(plain) == plain


def test_what_is_taken_away_is_no_secret() -> None:
    assert words.veiled({"A_TOKEN": None, "B_TOKEN": "b"}) == {"A_TOKEN": None, "B_TOKEN": "***"}


def test_a_secret_is_not_kept_with_the_run(tmp_path: Path) -> None:
    asked = {"MY_TOKEN": "hush", "BATCH": "8"}
    Run("id", "x", "mpirun x", tmp_path, 1, 1, env=asked).keep()
    kept = (tmp_path / "run.json").read_text()
    assert json.loads(kept)["env"] == {"MY_TOKEN": "***", "BATCH": "8"} and "hush" not in kept


def test_new_results_are_yours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALEOUT_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    paths.results("topic", "run")
    assert stat.S_IMODE((tmp_path / "results").stat().st_mode) == 0o700


def test_the_words_of_a_command_line_are_veiled_by_the_same_names() -> None:
    asked = ["scaleout", "sweep", "--env", "API_TOKEN=a,b", "--env=HF_TOKEN=c", "--env", "BATCH=8"]
    shown = words.veiled_words([*asked, "--", "python", "t.py", "max_tokens=9", "--tokens=5", "=x"])
    assert shown == [
        *("scaleout", "sweep", "--env", "API_TOKEN=***", "--env=HF_TOKEN=***", "--env", "BATCH=8"),
        *("--", "python", "t.py", "max_tokens=9", "--tokens=5", "=x"),
    ]
