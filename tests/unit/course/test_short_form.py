"""With SCALEOUT_QUICK=1 a lab's job does less of the same, whatever a cell asks for."""

from pathlib import Path

import pytest

from scaleout import lab
from scaleout.course import topic

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("quick", "flags"),
    [
        ("0", ["--steps", "200", "--batch", "64", "--mode", "weak"]),
        ("1", ["--steps", "10", "--batch", "64", "--mode", "weak"]),
    ],
)
def test_long_jobs_are_cut_short(
    quick: str, flags: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SCALEOUT_QUICK", quick)
    monkeypatch.setattr(topic, "run", lambda command, **how: seen.append(command))
    lab("07", solution=True).run(steps=200, batch=64, mode="weak")
    assert seen[0][4:] == flags
