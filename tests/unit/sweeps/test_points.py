"""The points of a sweep: the grid, its conditions, and what a point puts into its job."""

import pytest

from scaleout.base.errors import ScaleoutError
from scaleout.site import Site
from scaleout.sweeps import points
from scaleout.sweeps.points import Point


def test_a_grid_is_every_combination_in_the_order_asked_for() -> None:
    found, only = points.choices([2, 1, 2], [1], {"A": ["x", None], "B": 3})
    assert found == {"ranks": (2, 1), "threads": (1,), "A": ("x", None), "B": ("3",)} and not only
    grid = points.grid(found, cores=2)
    assert list(grid) == [(2, 1, "x", "3"), (2, 1, None, "3"), (1, 1, "x", "3"), (1, 1, None, "3")]
    assert grid[2, 1, None, "3"] == Point(2, 1, (("A", None), ("B", "3")))


def test_the_default_takes_every_swept_variable_away() -> None:
    found, _ = points.choices([2], [1], {"A": ["1"], "OMP_NUM_THREADS": ["2"]})
    default = points.default(found)
    assert default == Point(1, None, (("A", None), ("OMP_NUM_THREADS", None)))
    away = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "A")
    assert default.variables == dict.fromkeys(away)
    assert "unset TF_NUM_INTEROP_THREADS\n" in default.shell("mpirun", Site())


def test_the_program_itself_may_be_an_axis_and_the_default_keeps_the_first() -> None:
    found, _ = points.choices([], [], {"PY": ["one", "two"], "A": ["1"]})
    default = points.default(found, points.programs(found, ["{PY}", "train.py"]))
    assert dict(default.env) == {"A": None, "PY": "one"}
    assert default.script(["{PY}", "train.py"]) == ["one", "train.py"]


# Conditions


def test_a_condition_leaves_an_axis_unset_elsewhere() -> None:
    env = points.typed_variables(["A=1..3 if ranks=2", "B=x,y"])
    assert env == {"A if ranks=2": ["1", "2", "3"], "B": ["x", "y"]}
    found, only = points.choices([1, 2], [], env)
    assert only == {"A": ("ranks", "2")}
    grid = points.grid(found, 2, only)
    ones, twos = [(1, None, b) for b in "xy"], [(2, a, b) for a in "123" for b in "xy"]
    assert sorted(grid, key=str) == sorted(ones + twos, key=str)
    assert grid[1, None, "x"].env == (("A", None), ("B", "x"))


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"A if C=1": ["1"], "B": ["x"]}, r"A cannot depend on C: .* \(B\)"),
        ({"A if A=1": ["1"], "B": ["x"]}, "A cannot depend on A"),
        ({"A if B=x": ["1"], "B if A=1": ["x"]}, r"A cannot depend on B: .* \(there is none\)"),
        ({"A if B=z": ["1"], "B": ["x", None]}, "No point has B=z, .*: B takes x, unset"),
        ({"A if B": ["1"], "B": ["x"]}, "A condition names one value of another axis"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(env: dict, said: str) -> None:
    with pytest.raises(ScaleoutError, match=said):
        points.choices([], [], env)


# The words of the command line


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("A=1,2", ["1", "2"]),
        ("A=,1", ["", "1"]),
        ("A=granularity=fine,compact,1,0;disabled", ["granularity=fine,compact,1,0", "disabled"]),
        ("A=,0..2,9", ["", "0", "1", "2", "9"]),
        ("A=1..9*2", ["1", "2", "4", "8"]),
        ("A=1.5,..,a..4,../1..4", ["1.5", "..", "a..4", "../1..4"]),
    ],
)
def test_values_are_split_at_commas_or_where_they_hold_some_at_semicolons(
    typed: str, values: list[str]
) -> None:
    assert points.typed_variables([typed]) == {"A": values}
    assert points.typed_variables(["A=1", "A=2"]) == {"A": ["1", "2"]}


@pytest.mark.parametrize(
    "text",
    [
        "KMP_AFFINITY=granularity=fine,compact,1,0",
        "KMP_AFFINITY=verbose,granularity=fine,scatter",
        "OPTS=lr=0.1,batch=32",
        "MALLOC_CONF=oversize_threshold:1,background_thread:true",
        "NUMA=--interleave=0,1",
        "OMP_PLACES={0,1},{2,3}",
        "KMP_AFFINITY=proclist=[0,1],explicit",
        "UCX_TLS=tcp,self,sm",
        "A=x=1,y if ranks=2",
    ],
)
def test_a_value_that_may_hold_commas_is_asked_about(text: str) -> None:
    with pytest.raises(ScaleoutError, match="may be one value with commas in it: type  --env '"):
        points.typed_variables([text])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=x=1,y;", ["x=1,y"]),
        ("A=x=1,y;z", ["x=1,y", "z"]),
        ("A=x=1,x=2", ["x=1", "x=2"]),
        ("A=--localalloc,--interleave=all", ["--localalloc", "--interleave=all"]),
        ("A=host:80,host:81", ["host:80", "host:81"]),
        ("A=1,2,", ["1", "2", ""]),
        ("A=x=1", ["x=1"]),
        ("PY=a/bin/python,b/bin/python", ["a/bin/python", "b/bin/python"]),
    ],
)
def test_values_between_commas_are_several(text: str, values: list[str]) -> None:
    assert points.typed_variables([text]) == {"A" if text[0] == "A" else "PY": values}


@pytest.mark.parametrize(
    ("hole", "names", "meant"),
    [
        ("bacth", ["batch"], "{batch}"),
        ("Bacth", ["BATCH"], "{BATCH}"),
        ("batch", ["BATCH"], "{BATCH}"),
        ("learning_rat", ["LEARNING_RATE", "B"], "{LEARNING_RATE}"),
        ("BACTH", ["BATCH"], "{BATCH}"),
        ("EPOCHS", ["BATCH"], "--env EPOCHS=VALUE1,VALUE2"),
    ],
)
def test_a_hole_that_nothing_fills_is_refused_with_the_nearest_name(
    hole: str, names: list[str], meant: str
) -> None:
    with pytest.raises(ScaleoutError, match=f"Nothing fills {{{hole}}} in the command: ") as caught:
        points.check_holes(["python", "t.py", f"--x={{{hole}}}"], ["ranks", *names])
    assert f"type  {meant}" in str(caught.value)
    points.check_holes(["awk", "{print}", "${HOME}"], ["ranks", *names])
