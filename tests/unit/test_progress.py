"""Loops with a bar."""

import pytest

from scaleout import progress


@pytest.mark.parametrize(("quick", "expected"), [("0", [1, 2, 1, 2, 1, 2]), ("1", [1, 2])])
def test_rounds_give_every_item_once_a_round(
    monkeypatch: pytest.MonkeyPatch, quick: str, expected: list[int]
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    assert list(progress.rounds([1, 2])) == expected
