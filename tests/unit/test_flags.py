"""The numbers that the labs' scripts take: each lab has the same few lines for them."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
FILES = sorted(SOLUTIONS.glob("*/flags.py"))


@pytest.fixture(params=FILES, ids=lambda path: path.parent.name)
def take(request: pytest.FixtureRequest) -> Callable[[str, str], float]:
    """take("one_or_more", "3"), by the functions of one lab."""
    functions = _functions(request.param)
    return lambda name, typed: functions[name](typed)


def _functions(file: Path) -> dict[str, Callable[[str], float]]:
    """What a file defines, without the MPI that it imports."""
    lines = file.read_text().splitlines()
    library = ("from mpi4py import", "import horovod")
    text = "\n".join(line for line in lines if not line.startswith(library))
    functions: dict[str, Callable[[str], float]] = {}
    exec(compile(text, str(file), "exec"), functions)
    return functions


def test_there_are_labs_with_flags() -> None:
    assert len(FILES) >= 9


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("zero_or_more", "0", 0),
        ("one_or_more", "1", 1),
        ("one_or_more", "999999999", 999_999_999),
    ],
)
def test_a_whole_number_is_taken(
    take: Callable[[str, str], float], name: str, typed: str, value: int
) -> None:
    assert take(name, typed) == value


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("zero_or_more", "-1", "it takes 0 or more, not -1"),
        ("one_or_more", "0", "it takes 1 or more, not 0"),
        ("one_or_more", "2.5", "it takes 1 or more, not 2.5"),
        ("one_or_more", "\u00b2", "it takes 1 or more, not \u00b2"),
        ("one_or_more", "9" * 30, "it takes 999,999,999 at most, not 999999999999..."),
        ("zero_or_more", "9" * 400, "it takes 999,999,999 at most, not 999999999999..."),
        ("one_or_more", "9" * 5000, "it takes 999,999,999 at most, not 999999999999..."),
    ],
)
def test_another_is_refused_in_a_sentence(
    take: Callable[[str, str], float], name: str, typed: str, says: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        take(name, typed)
    assert str(refused.value) == says


FRACTIONS = [path for path in FILES if "def above_zero" in path.read_text()]


@pytest.mark.parametrize("file", FRACTIONS, ids=lambda path: path.parent.name)
def test_a_fraction_is_one_that_a_program_can_wait_for(file: Path) -> None:
    take = _functions(file)["above_zero"]
    assert [take(typed) for typed in ("0.5", "1e-8", "999999999")] == [0.5, 1e-8, 999_999_999]
    for typed in ("0", "-1", "nan", "x", "", "1e-400"):
        with pytest.raises(argparse.ArgumentTypeError, match=f"it takes more than 0, not {typed}"):
            take(typed)
    for typed in ("1e300", "inf", "1e-320", "9" * 400):
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            take(typed)
        assert str(refused.value) == f"it takes 0.00000001 to 999,999,999, not {typed[:12]}"
