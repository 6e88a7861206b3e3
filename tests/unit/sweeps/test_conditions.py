"""Axes that count at some points only: because somebody said so, or because nothing reads them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scaleout.errors import ScaleoutError
from scaleout.sweeps import conditions, points, race, search
from scaleout.sweeps.commands import _variables

COMMAND = ["{PY}", "train.py"]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose system brings no OpenMP, and whose shell points at none."""
    monkeypatch.setattr(conditions.ctypes.util, "find_library", lambda name: None)
    for name in ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    conditions.read_by.cache_clear()
    yield
    conditions.read_by.cache_clear()


def _python(folder: Path, *libraries: str) -> str:
    """An environment that holds these libraries."""
    for file in ("bin/python", *(f"lib/python3.11/site-packages/{name}" for name in libraries)):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "bin/python").chmod(0o755)
    return str(folder / "bin/python")


def _places(env: dict[str, list[str]], **only: tuple[str, str]) -> tuple[list, list[str]]:
    found = points.choices([], [], env, 2)
    places = list(points.grid(found, 2, conditions.settle(COMMAND, only, here=True)))
    return places, conditions.told(found, places, COMMAND, here=True)


def test_openmps_variables_are_tried_only_with_the_build_that_reads_them(tmp_path: Path) -> None:
    ours = _python(tmp_path / "ours", "scikit_learn.libs/libgomp-e98.so.1")
    other = _python(tmp_path / "other", "_solib/libiomp5.so")
    env = {"KMP_BLOCKTIME": ["0", "1", "200"], "OMP_PROC_BIND": ["close"], "PY": [ours, other]}
    places, said = _places(env)
    assert [place[0] for place in places if place[2] == ours] == [None]
    assert [place[0] for place in places if place[2] == other] == ["0", "1", "200"]
    assert all(place[1] == "close" for place in places)  # scikit-learn's own reads it in ours
    assert said == ["KMP_BLOCKTIME counts in 3 of 4 points."]


def test_what_nothing_reads_is_named_once_and_not_searched(tmp_path: Path) -> None:
    python = _python(tmp_path / "ours", "scikit_learn.libs/libgomp-e98.so.1")
    found = points.choices([], [], {"KMP_BLOCKTIME": ["0", "1"], "OMP_PROC_BIND": ["close"]}, 2)
    places = list(points.grid(found, 2, conditions.settle([python], {}, here=True)))
    assert places == [(None, "close")]
    no_reader, one = conditions.told(found, places, [python, "train.py"], here=True)
    assert no_reader == "Nothing reads KMP_BLOCKTIME in this Python, so it is not searched."
    assert "only scikit_learn brings an OpenMP, which reads OMP_PROC_BIND" in one


def test_where_it_cannot_be_known_all_is_tried(tmp_path: Path, monkeypatch) -> None:
    python = _python(tmp_path / "ours")
    assert conditions.read_by("KMP_BLOCKTIME", python) == ()
    assert conditions.read_by("OMP_NUM_THREADS", python) is None  # OpenBLAS reads it too
    assert conditions.read_by("HOROVOD_CYCLE_TIME", python) is None
    assert conditions.read_by("KMP_BLOCKTIME", "sh") is None
    choices = points.choices([], [], {"KMP_BLOCKTIME": ["0", "1"]}, 2)
    assert len(points.grid(choices, 2, conditions.settle([python], {}, here=False))) == 2
    named = conditions.settle([python], {}, here=True)
    assert named({"KMP_BLOCKTIME": "0", "LD_PRELOAD": "libomp.so"})["KMP_BLOCKTIME"] == "0"
    assert named({"KMP_BLOCKTIME": "0", "LD_PRELOAD": None})["KMP_BLOCKTIME"] is None
    (tmp_path / "ours/pyvenv.cfg").write_text("include-system-site-packages = true\n")
    conditions.read_by.cache_clear()
    assert conditions.read_by("KMP_BLOCKTIME", python) is None
    (tmp_path / "ours/pyvenv.cfg").unlink()
    monkeypatch.setenv("LD_PRELOAD", "libiomp5.so")
    conditions.read_by.cache_clear()
    assert conditions.read_by("KMP_BLOCKTIME", python) is None


def test_a_condition_is_said_with_the_values() -> None:
    values, only = _variables(["A=1..3 if ranks=2", "B=x,y"])
    assert values == {"A": ["1", "2", "3"], "B": ["x", "y"]} and only == {"A": ("ranks", "2")}
    found = points.choices([1, 2], [], values, 2)
    conditions.check(only, found)
    settle = conditions.settle(["python"], only, here=True)
    grid = points.grid(found, 2, settle)
    assert sorted(grid, key=str) == sorted(
        [(1, None, b) for b in "xy"] + [(2, a, b) for a in "123" for b in "xy"], key=str
    )
    assert grid[1, None, "x"].env == (("A", None), ("B", "x"))
    asked: list = []
    worth = search.ask(
        found, 50, 2, 0, 2, lambda p, n: asked.append(p) or 1.0 + (p[1] == "3"), settle=settle
    )
    assert set(asked) == set(grid) and race.leader(worth)[:2] == (2, "3")


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ({"A": ("C", "1")}, r"A cannot depend on C: .* \(B\)"),
        ({"C": ("A", "1")}, r"C cannot depend on A: .* \(A, B\)"),
        ({"A": ("A", "1")}, "A cannot depend on A"),
        ({"A": ("B", "x"), "B": ("A", "1")}, r"A cannot depend on B: .* \(there is none\)"),
        ({"A": ("B", "z")}, "No point has B=z, so that A would never count: B takes x, unset"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(only: dict, said: str) -> None:
    found = points.choices([], [], {"A": ["1", "2"], "B": ["x", None]}, 2)
    with pytest.raises(ScaleoutError, match=said):
        conditions.check(only, found)


@pytest.mark.parametrize("text", ["A=1,2 if ", "A=1 if x", "A=1 if =2"])
def test_a_condition_without_a_value_is_refused(text: str) -> None:
    with pytest.raises(ScaleoutError, match="A condition names one value of another axis"):
        conditions.condition(text)


def test_the_program_itself_may_be_an_axis(tmp_path: Path) -> None:
    one, two = (_python(tmp_path / name) for name in ("one", "two"))
    found = points.choices([], [], {"PY": [one, two], "A": ["1"]}, 2)
    default = points.default(found, points.programs(found, COMMAND))
    assert dict(default.env) == {"A": None, "PY": one}
    words = default.script(COMMAND)
    assert words[-2:] == [one, "train.py"] and os.access(words[-2], os.X_OK)


def test_memory_policies_are_an_axis_of_numactl(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["numactl", "{NUMA}", "python", "x.py"]
    found = points.choices([], [], {"NUMA": ["--localalloc", "--interleave=all"]}, 2)
    grid = points.grid(found, 2, conditions.settle(words, {}, here=True))
    assert [point.script(words)[:2] for point in grid.values()] == [
        ["numactl", "--localalloc"],
        ["numactl", "--interleave=all"],
    ]
    default = points.default(found).script(words)
    assert default[default.index("numactl") :] == ["numactl", "python", "x.py"]
    facts = conditions.machine.facts()
    for nodes, lines in ((1, 1), (2, 0)):
        other = replace(facts, numa_nodes=nodes)
        monkeypatch.setattr(conditions.machine, "facts", lambda other=other: other)
        said = conditions.told(found, list(grid), words, here=True)
        assert len(said) == lines and all("has one memory" in text for text in said)
