"""Numbers in words, lists of values, and what is kept of a secret."""

import json
import math
import stat
from pathlib import Path

import pytest

from scaleout import paths, words
from scaleout.jobs.job import Job, Run
from scaleout.jobs.site import Site


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


def test_a_secret_is_not_kept_with_the_run(tmp_path: Path) -> None:
    job = Job(("x",), "x", 1, 1, 1, 1, Site(), {"MY_TOKEN": "hush", "BATCH": "8"})
    Run("id", "x", "mpirun x", tmp_path, 1, 1).keep(job)
    kept = (tmp_path / "run.json").read_text()
    assert json.loads(kept)["env"] == {"MY_TOKEN": "***", "BATCH": "8"} and "hush" not in kept


def test_new_results_are_yours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALEOUT_RESULTS", raising=False)
    monkeypatch.chdir(tmp_path)
    paths.results("topic", "run")
    assert stat.S_IMODE((tmp_path / "results").stat().st_mode) == 0o700


def test_a_results_folder_that_was_named_is_as_open_as_its_owner_makes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "class"))
    paths.results("topic")
    assert (tmp_path / "class").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("value", "said"),
    [(math.nan, "-"), (math.inf, "inf"), (0, "0"), (1e-320, "0.000000000000"), (1234.6, "1,235")],
)
def test_any_number_can_be_said(value: float, said: str) -> None:
    assert words.rounded(value) == said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,2", ["1", "2"]),
        ("1", ["1"]),
        ("a,b;c", ["a,b", "c"]),
        ("a,b;", ["a,b"]),
        ("1,", ["1", ""]),
    ],
)
def test_lists_of_values(text: str, found: list[str]) -> None:
    assert words.listed(text) == found
