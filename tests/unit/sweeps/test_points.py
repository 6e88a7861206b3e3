"""What a point puts into its job: values in the command, and an allocator."""

import ctypes.util
import sys
from pathlib import Path

import pytest

from scaleout.errors import ScaleoutError
from scaleout.sweeps import points
from scaleout.sweeps.points import Point

COMMAND = ["python", "x.py", "--batch", "{BATCH}", "--lr={LR}", "--like", "{this}"]


def test_a_value_in_braces_is_filled_in() -> None:
    point = Point(2, 1, (("BATCH", "64"), ("LR", "0.1")))
    assert point.script(COMMAND) == [
        *("python", "x.py", "--batch", "64"),
        *("--lr=0.1", "--like", "{this}"),
    ]


def test_where_it_is_unset_the_program_has_its_own() -> None:
    default = points.default(points.choices([], [], {"BATCH": ["16", "32"], "LR": ["0.1"]}, 2))
    words = default.script(COMMAND)
    assert words[words.index("python") :] == ["python", "x.py", "--like", "{this}"]


def test_an_allocator_is_named_and_its_library_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    libraries = {"jemalloc": "libjemalloc.so.2"}
    monkeypatch.setattr(ctypes.util, "find_library", libraries.get)
    env = {"LD_PRELOAD": ["jemalloc", "libc.so.6", None]}
    assert points.choices([], [], env, 2) == {"LD_PRELOAD": ("libjemalloc.so.2", "libc.so.6", None)}
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libjemalloc.so.2").touch()
    found = points.choices([], [], {"LD_PRELOAD": ["jemalloc"]}, 2)
    assert found == {"LD_PRELOAD": (str(tmp_path / "lib/libjemalloc.so.2"),)}


@pytest.mark.parametrize("name", ["nosuch.so", "/no/such.so", "libc.so.6:/no/such.so", __file__])
def test_a_library_that_the_loader_would_leave_out_is_said(name: str) -> None:
    with pytest.raises(ScaleoutError, match="names no library that can be loaded here"):
        points.choices([], [], {"LD_PRELOAD": ["libc.so.6", name]}, 2)


def test_an_allocator_that_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(ScaleoutError, match="There is no tcmalloc on this machine: install it"):
        points.choices([], [], {"LD_PRELOAD": ["tcmalloc"]}, 2)


def test_the_ends_of_each_axis() -> None:
    found = points.choices([1, 2], [1, 2, 4], {"LR": ["0.1"]}, 4)
    assert points.ends(found) == {"ranks": (1, 2), "threads": (1, 4), "LR": ("0.1",)}
