"""Show what the doctor found: a table for people, JSON for programs, a frame for notebooks."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from .. import machine
from ..base import words
from ..jobs.job import JobInterrupted
from ..site import Site
from .checks import Check
from .examine import examine, examine_site

if TYPE_CHECKING:
    import pandas as pd


WORDS = {
    "ok": ("ok", "32"),
    "warn": ("warn", "33"),
    "fail": ("FAIL", "31"),
}  # text, terminal colour


def frame() -> "pd.DataFrame":
    """Make all checks of this machine and this environment, and return them as a table.

    Returns
    -------
    pandas.DataFrame
        A row a check: `check` (its name), `status` ("ok", "warn" or "fail"), `seen`, `fix` (what to
        type), and, where one of them is explained on a page, `more`.
    """
    import pandas as pd

    found = examine(machine.facts())
    table = pd.DataFrame([asdict(check) for check in found]).rename(columns={"name": "check"})
    return (
        table.assign(more=[check.page for check in found])
        if any(check.page for check in found)
        else table
    )


def _table(found: Sequence[Check], width: int, colour: bool) -> Iterator[str]:
    """Write the checks as lines: word, name, what was seen (wrapped).

    Below each is the fix, unbroken, to be copied.
    """
    column = max(len(check.name) for check in found) + 2
    margin = " " * (6 + column)
    for check in found:
        text, number = WORDS[check.status]
        word = f"\033[{number}m{text:<6}\033[0m" if colour else f"{text:<6}"
        first, *more = textwrap.wrap(
            check.seen, max(30, width - len(margin)), break_long_words=False
        ) or [""]
        yield f"{word}{check.name:<{column}}{first}"
        yield from (margin + line for line in more)
        if check.fix:
            yield f"{margin}fix: {check.fix}"
        if check.page:
            yield f"{margin}more: {check.page}"


def main(as_json: bool = False, site: Site | None = None) -> int:
    """Make all checks and print them.

    Parameters
    ----------
    as_json : bool
        Print one JSON object, with the machine's facts, in place of the table.
    site : Site, optional
        Check its hosts, or its Slurm, too.

    Returns
    -------
    int
        1 when a check fails, else 0.

    Raises
    ------
    JobInterrupted
        Somebody pressed Ctrl-C; nothing of the doctor is left running.
    """
    facts = machine.facts()
    if sys.stderr.isatty():
        print(f"Looking at {facts.host} ...", file=sys.stderr)
    try:
        found = examine(facts) + (examine_site(site) if site else [])
    except KeyboardInterrupt:
        raise JobInterrupted("Interrupted: nothing of the doctor is left running.") from None
    failed, warned = (sum(check.status == status for check in found) for status in ("fail", "warn"))
    if as_json:
        print(
            json.dumps(
                {"machine": asdict(facts), "checks": [asdict(c) | {"page": c.page} for c in found]},
                indent=1,
            )
        )
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print("\n".join(_table(found, shutil.get_terminal_size((100, 24)).columns, colour)))
        print(f"\n{len(found)} checks: {failed} failed, {words.count(warned, 'warning')}.")
    return 1 if failed else 0
