"""Loops with a bar."""

import pytest

from scaleout import progress


@pytest.mark.parametrize(("quick", "expected"), [("0", [1, 3, 2] * 3), ("1", [1, 2])])
def test_rounds_give_every_item_once_a_round(
    monkeypatch: pytest.MonkeyPatch, quick: str, expected: list[int]
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    assert list(progress.rounds([1, 3, 2])) == expected


@pytest.mark.parametrize(("quick", "expected"), [("0", [1, 3, 2]), ("1", [1, 2])])
def test_a_bar_gives_every_item_or_the_ends_of_a_list(
    monkeypatch: pytest.MonkeyPatch, quick: str, expected: list[int]
) -> None:
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    assert list(progress.bar((1, 3, 2))) == expected
    assert list(progress.bar(iter((1, 3, 2)))) == [1, 3, 2]
