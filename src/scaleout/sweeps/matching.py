"""Looks for a pattern in lines, in a process of its own: a pattern that backtracks without end
cannot be stopped in any other way. Also that process: `python matching.py`, the standard library
alone."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence

LIMIT_S = 60.0


def matches(pattern: str, lines: Sequence[str], limit_s: float = LIMIT_S) -> list[tuple[int, str]]:
    """What a pattern finds."""
    asked = json.dumps({"pattern": pattern, "lines": list(lines)}).encode()
    command = [sys.executable, "-I", "-S", __file__]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, timeout=limit_s, check=True
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{limit_s:g} s") from None
    return [(index, words) for index, words in json.loads(done.stdout)]


def _found(pattern: str, lines: Sequence[str]) -> list[tuple[int, str]]:
    return [
        (index, next((group for group in match.groups() if group is not None), match[0]))
        for index, line in enumerate(lines)
        for match in re.finditer(pattern, line)
    ]


if __name__ == "__main__":
    print(json.dumps(_found(**json.load(sys.stdin))))
