"""The variants of a command line: commands with :: between them, or the values of a variable."""

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

from ..errors import ScaleoutError
from ..jobs.environment import check_variables
from . import command, ranges

BETWEEN = "::"  # two commands


def variants(words: Sequence[str], env: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Read {name: arguments of scaleout.run} from a command line, the baseline first."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(word)
    choices: dict[str, dict[str, None]] = {}  # each value once
    for text in env:
        name, values = ranges.named(text)
        choices.setdefault(name, {}).update(dict.fromkeys(values))
    check_variables(choices)
    several = {name: list(values) for name, values in choices.items() if len(values) > 1}
    fixed = {name: next(iter(values)) for name, values in choices.items() if len(values) == 1}
    for each in commands:
        if not each:
            raise ScaleoutError(
                "A command is missing: put them last, as in  -n 2 -- python a.py :: python b.py"
            )
        command.check(each)
    if len(commands) > 1 and several:
        name, values = next(iter(several.items()))
        raise ScaleoutError(
            "Compare commands, with :: between them, or values of --env; not both at once. "
            f"{name} has {len(values)} values, {', '.join(value or 'unset' for value in values)}: give it "
            f"one, or type  --env '{name}={','.join(values)};'  if that is one value with commas."
        )
    if len(commands) == 1 and not several:
        raise ScaleoutError(
            "There is one variant, and nothing to compare it with: type  A :: B  after the --, "
            "or two values,  --env K=V1,V2"
        )
    if len(commands) > 1:
        names = _names(commands)
        return {name: _variant(c, fixed) for name, c in zip(names, commands, strict=True)}
    found = {}
    for chosen in product(*several.values()):
        setting = dict(zip(several, chosen, strict=True))
        label = " ".join(f"{name}={value or 'unset'}" for name, value in setting.items())
        found[label] = _variant(commands[0], {**fixed, **setting})
    return found


def _names(commands: Sequence[Sequence[str]]) -> list[str]:
    """Name each command by its words behind those that all share.

    A flag right before them belongs to them, and so does the last shared word where else nothing of
    one would be left.

    A flag before it belongs to it, and so does the word before it where else nothing of one is
    left.
    """
    shared = len(os.path.commonprefix([list(command) for command in commands]))
    whole = any(len(command) == shared for command in commands)
    shared -= whole
    if shared > 0 and commands[0][shared - 1].startswith("-"):
        shared -= 1
    return [" ".join(command[max(0, shared) :]) for command in commands]


def _variant(words: Sequence[str], setting: dict[str, str]) -> dict[str, Any]:
    return {"script": list(words), "env": {name: value or None for name, value in setting.items()}}
