"""The numbers that the labs' scripts take: each lab has the same few lines for them."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
FILES = sorted(SOLUTIONS.glob("*/flags.py"))


@pytest.fixture(params=FILES, ids=lambda path: path.parent.name)
def take(request: pytest.FixtureRequest) -> Callable[[str, str], float]:
    """take("one_or_more", "3"), by the functions of one lab, without the MPI that they import."""
    lines = request.param.read_text().splitlines()
    library = ("from mpi4py import", "import horovod")
    text = "\n".join(line for line in lines if not line.startswith(library))
    functions: dict[str, Callable[[str], float]] = {}
    exec(compile(text, str(request.param), "exec"), functions)
    return lambda name, typed: functions[name](typed)


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
