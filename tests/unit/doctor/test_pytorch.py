"""The doctor on PyTorch, from made-up answers of a side environment."""

from pathlib import Path

import pytest

from scaleout.doctor import pytorch

WELL = {"version": "2.13.0+cpu", "gloo": True, "threads": 1, "libmpi": [".side/torch/lib/libmpi.so.12"]}  # fmt: skip


def test_a_whole_one_is_fine() -> None:
    check = pytorch.pytorch(WELL)
    assert (check.status, check.fix) == ("ok", "")
    assert "2.13.0+cpu" in check.seen and "Gloo built" in check.seen


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"gloo": False}, "built without Gloo"),
        ({"libmpi": []}, "not one MPI but: none"),
        ({"libmpi": ["a/libmpi.so.12", "b/libmpi.so.40"]}, "a/libmpi.so.12, b/libmpi.so.40"),
        ({"threads": 4}, "takes 4 threads where OMP_NUM_THREADS says 1"),
        ({"error": "No module named 'torch'"}, "No module named 'torch'"),
    ],
)
def test_what_is_wrong_is_named_with_its_fix(
    other: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    check = pytorch.pytorch({**WELL, **other})
    assert check.status == "warn" and words in check.seen and "make torch" in check.fix


def test_another_library_on_the_path_is_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert pytorch.pytorch({**WELL, "libmpi": []}).fix.startswith("unset LD_LIBRARY_PATH")


@pytest.mark.parametrize(
    ("text", "error"),
    [("exit 1", "it said nothing"), ("echo broken >&2; exit 1", "broken"), (None, "cannot be started")],
)  # fmt: skip
def test_a_python_that_says_nothing_is_an_error(
    tmp_path: Path, text: str | None, error: str
) -> None:
    if text is not None:
        (tmp_path / "bin").mkdir()
        python = tmp_path / "bin" / "python"
        python.write_text(f"#!/bin/sh\n{text}\n")
        python.chmod(0o755)
    assert error in pytorch.ask(tmp_path, {"PATH": "/usr/bin:/bin"})["error"]
