"""The variants of a command line: commands with :: between them, or the values of a variable."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from ..base.errors import ScaleoutError
from ..jobs.environment import check_variables
from ..measuring import command, ranges
from .refs import Ref

BETWEEN = "::"  # two commands
TWIN = "SCALEOUT_TWIN"  # by which alone two variants that do the same differ


def variants(words: Sequence[str], env: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Read {name: arguments of scaleout.run} from a command line, the baseline first."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(word)
    choices: dict[str, list[str]] = {}
    for text in env:
        name, values = ranges.named(text)
        choices.setdefault(name, []).extend(values)
    check_variables(choices)
    several = {name: values for name, values in choices.items() if len(values) > 1}
    fixed = {name: values[0] for name, values in choices.items() if len(values) == 1}
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
    _each_once(map(shlex.join, commands))
    for name, values in several.items():
        _each_once(f"{name}={value}" for value in values)
    if len(commands) > 1:
        return _called(_names(commands), [_variant(words, fixed) for words in commands])
    settings = [dict(zip(several, chosen, strict=True)) for chosen in product(*several.values())]
    labels = [
        " ".join(f"{name}={value or 'unset'}" for name, value in setting.items())
        for setting in settings
    ]
    return _called(labels, [_variant(commands[0], {**fixed, **setting}) for setting in settings])


def of_itself(words: Sequence[str], env: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Read one command as two variants that do the same."""
    if BETWEEN in words:
        raise ScaleoutError(f"--calibrate takes one command: leave {BETWEEN} out.")
    command.check(words)
    fixed = _fixed(env, "--calibrate measures one command")
    return {"itself": _variant(words, fixed), "once more": _variant(words, fixed, twin=True)}


def of_refs(
    refs: Sequence[Ref], words: Sequence[str], env: Sequence[str] = ()
) -> dict[str, dict[str, object]]:
    """Read {commit: arguments of scaleout.run} of one command that runs in several worktrees.

    What prepares a run belongs in the same folder: `inside` has the words that bring it there.
    """
    if BETWEEN in words:
        raise ScaleoutError(f"--refs compares one command at several commits: leave {BETWEEN} out.")
    if not words:
        raise ScaleoutError(
            "A command is missing: put it last, as in  --refs main,HEAD -- python a.py"
        )
    fixed = _fixed(env, "--refs compares commits")
    return {
        ref.name: {**_variant(ref.inside(words), fixed), "inside": ref.inside([])} for ref in refs
    }


def _fixed(env: Sequence[str], why: str) -> dict[str, str]:
    """Read variables that have one value each."""
    fixed: dict[str, str] = {}
    for text in env:
        name, values = ranges.named(text)
        if len(values) > 1:
            raise ScaleoutError(f"{why}: give {name} one value, not {len(values)}.")
        fixed[name] = values[0]
    check_variables(fixed)
    return fixed


def _each_once(choices: Iterable[str]) -> None:
    """Refuse what stands there twice."""
    for text, times in Counter(choices).items():
        if times > 1:
            raise ScaleoutError(
                f"{text} stands there twice: leave one of them out (the baseline runs against "
                "itself in any case)."
            )


def _called(
    names: Sequence[str], found: Sequence[dict[str, object]]
) -> dict[str, dict[str, object]]:
    """Call each variant by its name; one that differs and is called alike gets its number too."""
    called: dict[str, dict[str, object]] = {}
    for number, (name, how) in enumerate(zip(names, found, strict=True), 1):
        called[f"{name} ({number})" if name in called else name] = how
    return called


def _names(commands: Sequence[Sequence[str]]) -> list[str]:
    """Name each command by its words behind those that all share.

    A flag right before them belongs to them, and so does the last shared word where else nothing of
    one would be left.
    """
    shared = len(os.path.commonprefix([list(command) for command in commands]))
    whole = any(len(command) == shared for command in commands)
    shared -= whole
    if shared > 0 and commands[0][shared - 1].startswith("-"):
        shared -= 1
    return [" ".join(command[max(0, shared) :]) for command in commands]


def _variant(
    words: Sequence[str], setting: Mapping[str, str], twin: bool = False
) -> dict[str, object]:
    env = {name: value or None for name, value in setting.items()}
    return {"script": list(words), "env": {**env, **({TWIN: "1"} if twin else {})}}
