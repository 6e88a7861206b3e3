"""Checkpoints: whole or not at all; the damaged one is named, and the one before it is used."""

import errno
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from scaleout import records
from scaleout.base.errors import ScaleoutError


class Variable:
    """As a TensorFlow variable behaves, as far as a checkpoint needs it."""

    def __init__(self, value: np.ndarray) -> None:
        self.value, self.shape = value, value.shape

    def assign(self, value: np.ndarray) -> None:
        self.value = value

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.value


def state(number: float) -> list[Variable]:
    return [Variable(np.array(int(number))), Variable(np.full((3, 2), number, np.float32))]


def first(variables: list[Variable]) -> float:
    return float(variables[1].value[0, 0])


def test_the_newest_comes_back_and_two_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2, 10):
        assert (
            records.keep_checkpoint(tmp_path / "new", state(number), number)
            == f"checkpoint-{number:06d}.npz"
        )
    assert sorted(p.name for p in tmp_path.glob("new/*")) == [
        "checkpoint-000002.npz",
        "checkpoint-000010.npz",
    ]
    found = state(0)
    assert records.take_checkpoint(tmp_path / "new", found) == "checkpoint-000010.npz"
    assert first(found) == 10 and records.digest(found) == records.digest(
        state(10)
    ) != records.digest(state(2))
    assert capsys.readouterr().out == "Going on from checkpoint-000010.npz.\n"


@pytest.mark.parametrize("there", ["another network", "damaged", "the same number"])
def test_what_was_just_written_stays_beside_higher_numbers(tmp_path: Path, there: str) -> None:
    others = [Variable(np.zeros(7))] if there == "another network" else state(9)
    numbers = (1, 12) if there == "the same number" else (11, 12)
    for number in numbers:
        records.keep_checkpoint(tmp_path, others, number)
    if there == "damaged":
        for path in tmp_path.iterdir():
            path.write_bytes(path.read_bytes()[:100])
    for number in (1, 2, 3):
        name = records.keep_checkpoint(tmp_path, state(number), number)
        assert (tmp_path / name).is_file() and len(list(tmp_path.iterdir())) == 2
    if there != "the same number":
        found = state(0)
        assert records.take_checkpoint(tmp_path, found) == "checkpoint-000003.npz"
        assert first(found) == 3
    assert {p.name[-5] for p in tmp_path.iterdir()} == {"2", "3"}


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "text"])
def test_a_damaged_one_is_named_and_the_one_before_it_is_used(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        records.keep_checkpoint(tmp_path, state(number), number)
    newest = tmp_path / "checkpoint-000002.npz"
    content = bytearray(newest.read_bytes())
    at = content.index(np.float32(2).tobytes())  # a weight: the file's own sum of it no longer fits
    flipped = bytes(content[:at] + b"\xff" + content[at + 1 :])
    newest.write_bytes(
        {"cut": content[:-100], "empty": b"", "flipped": flipped, "text": b"no array"}[damage]
    )
    found = state(0)
    assert records.take_checkpoint(tmp_path, found) == "checkpoint-000001.npz" and first(found) == 1
    said = capsys.readouterr().out
    assert (
        said.startswith("checkpoint-000002.npz is damaged (")
        and "passed over" in said
        and "000001" in said
    )


def test_another_networks_checkpoint_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records.keep_checkpoint(tmp_path, state(1)[1:], 1)
    found = state(7)
    assert records.take_checkpoint(tmp_path, found) is None and first(found) == 7
    assert "of another network" in capsys.readouterr().out


def test_what_a_killed_save_left_behind_goes_at_the_next_start(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = f"partial-{os.uname().nodename}"
    left = [f"{here}-{gone.pid}.npz"]
    others = [f"{here}-{os.getpid()}.npz", f"partial-elsewhere-{gone.pid}.npz", f"{here}-mine.npz"]
    for name in left + others:
        (tmp_path / name).write_bytes(b"half")
    assert records.take_checkpoint(tmp_path, state(0)) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ScaleoutError, match="No checkpoint can be kept in .* make room, or choose another folder"
    ):
        records.keep_checkpoint(tmp_path / "file/folder", state(1), 1)


def test_a_save_that_is_cut_off_leaves_the_one_before_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.keep_checkpoint(tmp_path, state(1), 1)
    before = (tmp_path / "checkpoint-000001.npz").read_bytes()

    def cut(file, *arrays: np.ndarray) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", cut)
    for number in (1, 2):
        with pytest.raises(ScaleoutError, match="No space left on device"):
            records.keep_checkpoint(tmp_path, state(2), number)
    assert [path.read_bytes() for path in tmp_path.glob("checkpoint-*")] == [before]
