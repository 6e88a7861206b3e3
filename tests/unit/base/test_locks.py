"""One process at a time holds a lock file; any number write another one, each whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.base import jsonlines
from scaleout.base.locks import held

HOLD = """
import sys, time
from pathlib import Path
from scaleout.base.locks import held
with held(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def _holder(path: Path, seconds: float) -> "subprocess.Popen[str]":
    line = [sys.executable, "-c", HOLD, str(path), str(seconds)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "True\n"
    return process


def test_a_second_holder_is_told_no(tmp_path: Path) -> None:
    process = _holder(tmp_path / "lock", 60)
    with held(tmp_path / "lock") as mine:
        assert not mine
    process.kill()
    process.communicate()
    with held(tmp_path / "lock") as mine:
        assert mine, "a lock goes with its holder"


def test_who_waits_gets_it(tmp_path: Path) -> None:
    process = _holder(tmp_path / "lock", 0.3)
    with held(tmp_path / "lock", wait_s=60) as mine:
        assert mine
    process.communicate()


def test_two_who_write_one_file_at_once_take_nothing_from_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def late(half: Path, whole: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        jsonlines.write(tmp_path / "file", "theirs")  # begins after ours, and ends before it
        return rename(half, whole)

    monkeypatch.setattr(Path, "rename", late)
    jsonlines.write(tmp_path / "file", "ours")
    assert (tmp_path / "file").read_text() == "ours"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("cut", [KeyboardInterrupt, OSError])
def test_a_file_that_is_cut_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: type[BaseException]
) -> None:
    jsonlines.write(tmp_path / "file", "old")

    def stop(half: Path, whole: Path) -> Path:
        raise cut

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(cut):
        jsonlines.write(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
