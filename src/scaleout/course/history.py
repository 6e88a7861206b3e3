"""What you did so far: the checks that you passed, and your last runs of a lab with what changed
between them."""

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import jsonlines
from ..paths import home, results, results_path
from ..settings import STACKS
from .marks import numbers
from .masters import untouched

if TYPE_CHECKING:
    import pandas as pd


# what checks give a job beside what a person asked for
OURS = ("PYTHONPATH", "PYTHONFAULTHANDLER", STACKS, "SCALEOUT_IMAGES")


def keep_state(topic: str, todo: int, state: str) -> None:
    """Adds what a check found to results/TOPIC/checks.jsonl."""
    line = {"utc": datetime.now(UTC).isoformat(timespec="seconds"), "todo": todo, "state": state}
    with open(results(topic) / "checks.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def last_states(path: Path) -> list[tuple[int, str]]:
    """The last state of each TODO in a checks.jsonl, in order; half-written lines are left out."""
    lines, _ = jsonlines.read(path, _wrong_state)
    return sorted({line["todo"]: line["state"] for line in lines}.items())


def _wrong_state(line: dict[str, Any]) -> str:
    """What is wrong with a line of a checks.jsonl."""
    known = type(line.get("todo")) is int and isinstance(line.get("state"), str)
    return "" if known else "no state of a TODO"


def passed() -> str:
    """The course on one line: of each topic, how many TODOs have passed their check when it was
    last run."""
    said = []
    for topic in sorted(folder.name for folder in home().glob("labs/*/")):
        if asked := _asked(topic):  # else a folder of the attendee's own
            passed = len(asked) - len(not_passed(topic))
            said.append(f"{topic[:2]} " + "●" * passed + "○" * (len(asked) - passed))
    return "   ".join(said)


def not_passed(topic: str) -> list[int]:
    """The TODOs of a topic whose check has not passed when it was last run, or was never run."""
    states = dict(last_states(results_path(topic) / "checks.jsonl"))
    return [number for number in _asked(topic) if states.get(number) != "passed"]


def _asked(topic: str) -> list[int]:
    """The TODOs of all scripts of a topic."""
    return sorted(number for text in untouched(topic).values() for number in numbers(text))


def runs(topic: str, last: int = 5) -> "pd.DataFrame":
    """The last runs of a lab, and what changed from each to the next."""
    import pandas as pd

    from .. import records

    known = []
    for path in sorted(results_path(topic).glob("*/run.json")):
        about = jsonlines.table(path)
        try:
            known.append((path, _settings(about), about["status"], about["wall_s"]))
        except (LookupError, TypeError, ValueError, AttributeError):
            continue  # damaged, or half-written
    rows, before = [], None
    for path, settings, status, wall_s in known[-last - 1 :]:
        frame = records.read(path.with_name("records.jsonl"))
        row: dict[str, Any] = {"run": path.parent.name, "status": status, "wall_s": wall_s}
        if len(frame):
            row |= {"step_median_s": frame.step_median_s.iloc[-1], "rate": frame.rate.iloc[-1]}
        row["changed"] = "" if before is None else _changes(before, settings)
        rows.append(row)
        before = settings
    columns = ["run", "status", "wall_s", "step_median_s", "rate", "changed"]
    return pd.DataFrame(rows, columns=columns).iloc[-last:].set_index("run")


def _settings(about: dict[str, Any]) -> dict[str, str]:
    """What may differ between two runs: ranks, threads, variables, the program's flags, the text of
    runme.py."""
    words = shlex.split(str(about["command"]))
    flags: dict[str, str] = {}
    script = next((at for at, word in enumerate(words) if word.endswith(".py")), len(words))
    name = ""
    for word in words[script + 1 :]:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            flags[name] = value
        elif name:
            flags[name] = f"{flags[name]} {word}".strip()
    fixed = {
        "ranks": str(about["ranks"]),
        "threads": str(about["threads"]),
        "script": about.get("script", ""),
    }
    chosen = {name: value for name, value in about["env"].items() if name not in OURS}
    return {**fixed, **chosen, **flags}


def _changes(before: dict[str, str], after: dict[str, str]) -> str:
    said = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if name == "script" and old and new and old != new:
            said.append("the script was edited")
        elif name != "script" and old != new:
            said.append(
                f"{name} {'unset' if old is None else old or 'on'} -> {'unset' if new is None else new or 'on'}"
            )
    return ", ".join(said) or "nothing"
