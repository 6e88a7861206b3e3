"""Bringing the OpenMP build: what cannot work ends in one sentence, and is not taken for whole."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout import openmp

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-intel.lock"
NO_INDEX = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
NOT_311 = "import sys; sys.version_info = (3, 12, 1, 'final', 0); sys.path.insert(0, 'tools'); import make_intel; "


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


def _python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=100, cwd=tree)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="only Python 3.11 gets as far as pip")
def test_without_a_network_it_says_so_in_a_sentence(tree: Path) -> None:
    done = _python(tree, "tools/make_intel.py")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "no network, or pip's index is out of reach" in last and "make intel" in last
    assert not (tree / ".side/intel" / openmp.WHOLE).exists()


def test_without_python_3_11_it_says_so_in_a_sentence(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tree))  # no python3.11 there
    done = _python(tree, "-c", NOT_311 + "sys.exit(make_intel.main())")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "needs Python 3.11 and this is" in done.stderr and "make intel" in done.stderr
    assert not (tree / ".side").exists()


def test_a_second_make_intel_does_not_disturb_the_first(tree: Path) -> None:
    (tree / ".setup").mkdir()
    with open(tree / ".setup/intel.lock", "w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        done = _python(tree, "tools/make_intel.py")
    assert done.returncode == 1 and done.stderr == "make intel is at work already: wait for it.\n"


def test_what_is_in_place_but_does_not_run_is_not_whole(tree: Path) -> None:
    """A Python that starts nothing: the proof fails, and says so."""
    program = (
        "import sys; sys.path.insert(0, 'tools'); import make_intel; from pathlib import Path\n"
        "own = Path('.side/intel/bin/python').absolute(); own.parent.mkdir(parents=True)\n"
        "own.write_text('#!/bin/sh\\necho broken >&2; exit 1\\n'); own.chmod(0o755)\n"
        "try: make_intel.prove()\n"
        "except make_intel.Stop as stop: print(stop)\n"
    )
    done = _python(tree, "-c", program)
    assert "It is in place, but a job of two ranks fails on this machine (" in done.stdout, done.stdout + done.stderr
