"""The checks that you passed so far."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..base import jsonlines
from ..base.paths import home, results, results_path
from .marks import numbers
from .masters import untouched


def keep_state(topic: str, todo: int, state: str) -> None:
    """Add what a check found to results/TOPIC/checks.jsonl."""
    line = {"utc": datetime.now(UTC).isoformat(timespec="seconds"), "todo": todo, "state": state}
    jsonlines.append(results(topic) / "checks.jsonl", json.dumps(line))


def last_states(path: Path) -> list[tuple[int, str]]:
    """Read the last state of each TODO in a checks.jsonl, in order.

    Half-written lines are left out.
    """
    lines, _ = jsonlines.read(path, _wrong_state)
    return sorted({line["todo"]: line["state"] for line in lines}.items())


def _wrong_state(line: dict[str, Any]) -> str:
    """Say what is wrong with a line of a checks.jsonl; "" when it is whole."""
    known = type(line.get("todo")) is int and isinstance(line.get("state"), str)
    return "" if known else "no state of a TODO"


def passed() -> str:
    """Write the course on one line: of each topic, how many TODOs passed their last check.

    Returns
    -------
    str
        Such as "03 ●●○   04 ○○": a full circle for each TODO that passed, else an empty one.

    Raises
    ------
    ScaleoutError
        There is no workshop here.
    """
    said = []
    for topic in sorted(folder.name for folder in home().glob("labs/*/")):
        if asked := _asked(topic):  # else a folder of the attendee's own
            passed = len(asked) - len(not_passed(topic))
            said.append(f"{topic[:2]} " + "●" * passed + "○" * (len(asked) - passed))
    return "   ".join(said)


def not_passed(topic: str) -> list[int]:
    """List the TODOs of a topic whose check did not pass when last run, or was never run."""
    states = dict(last_states(results_path(topic) / "checks.jsonl"))
    return [number for number in _asked(topic) if states.get(number) != "passed"]


def _asked(topic: str) -> list[int]:
    """List the TODOs of all scripts of a topic."""
    return sorted(number for text in untouched(topic).values() for number in numbers(text))
