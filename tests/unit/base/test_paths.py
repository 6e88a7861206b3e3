"""Where the workshop, its topics and the results are, from wherever one stands."""

import os
from pathlib import Path

import pytest

from scaleout import records
from scaleout.base import paths
from scaleout.base.errors import ScaleoutError


def test_the_workshop_is_the_nearest_one_above(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for inside in (".", "labs/00_tiny", "notebooks", "solutions"):
        monkeypatch.chdir(workshop / inside)
        assert paths.home() == workshop


def test_without_any_workshop_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site-packages/scaleout/paths.py"))
    with pytest.raises(ScaleoutError, match="No workshop here: change to the folder"):
        paths.home()


def test_results_are_made_where_they_are_asked_for(results: Path) -> None:
    assert not results.exists()
    assert paths.results() == results and results.is_dir()
    assert paths.results("00_welcome", "a-run") == results / "00_welcome" / "a-run"
    assert (results / "00_welcome" / "a-run").is_dir()


def test_results_of_a_workshop_are_in_it(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALEOUT_RESULTS")
    monkeypatch.chdir(workshop / "notebooks")
    assert paths.results() == workshop / "results"


@pytest.mark.parametrize("under", ["file", "file/results", "results"])
def test_results_that_cannot_be_made_are_named_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, under: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "results").symlink_to(tmp_path / "nowhere" / "else")
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / under))
    with pytest.raises(
        ScaleoutError, match=r"cannot be written .*type  export SCALEOUT_RESULTS="
    ) as caught:
        paths.results()
    assert "\n" not in str(caught.value)


def test_results_that_nobody_may_write_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", "/proc/nothing")
    assert paths.results_path() == Path("/proc/nothing") and len(records.read()) == 0


def test_results_without_permission_are_refused_before_the_job_starts(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(ScaleoutError, match="no permission"):
        paths.results()


@pytest.mark.parametrize("name", ["00_tiny", "00", "0", 0, "tiny"])
def test_a_topic_has_several_names(workshop: Path, name: str) -> None:
    assert paths.topic(name) == "00_tiny"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("00_tinny", "Did you mean 00_tiny?"),
        ("zzz", "There are 00_tiny."),
        ("", "There are 00_tiny."),
        ("..", "There"),
    ],
)
def test_an_unknown_topic_is_answered_with_the_nearest(
    workshop: Path, name: str, words: str
) -> None:
    with pytest.raises(ScaleoutError) as caught:
        paths.topic(name)
    assert f"There is no lab called {name!r}." in str(caught.value) and words in str(caught.value)


def test_paths_are_shown_as_one_would_type_them(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert paths.show(workshop / "labs/00_tiny/runme.py") == "labs/00_tiny/runme.py"
    monkeypatch.chdir(workshop / "notebooks")
    assert paths.show(workshop / "labs/00_tiny/runme.py") == "../labs/00_tiny/runme.py"


@pytest.mark.parametrize(
    ("variables", "writable", "given"),
    [
        ({"HOME": "/"}, False, True),
        ({"HOME": "/nowhere/at/all"}, False, True),
        ({"XDG_CONFIG_HOME": "/proc"}, False, True),
        ({"HOME": "/", "MPLCONFIGDIR": "/mine"}, False, False),
        ({"HOME": "/tmp"}, True, False),
    ],
)
def test_a_home_that_cannot_be_written_is_made_up_for(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], writable: bool, given: bool
) -> None:
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    before = os.environ.get("MPLCONFIGDIR")
    monkeypatch.setattr(paths.os, "access", lambda path, mode: writable)
    paths.give_libraries_a_folder()
    now = os.environ.pop("MPLCONFIGDIR", None)
    assert (now != before) == given and (not given or Path(now).is_dir())
