"""One process at a time holds a lock file."""

import subprocess
import sys
from pathlib import Path

from scaleout.locks import held

HOLD = """
import sys, time
from pathlib import Path
from scaleout.locks import held
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
