"""`scaleout compare`: the variants of a command line, and what is printed of them."""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ..errors import ScaleoutError
from ..jobs import run as launch
from ..jobs.environment import check_variables
from ..jobs.job import check_size
from ..jobs.ranges import spread
from ..jobs.site import Site
from ..paths import show
from .compare import compare
from .metric import Metric

BETWEEN = "::"
MOST_ROUNDS = 1000
MOST_VARIANTS = 100  # of one variable


def main(args: argparse.Namespace, words: Sequence[str], metric: Metric) -> int:
    """Runs the comparison, a line a run, then prints what was found."""
    check_size(args.ranks, args.threads, args.timeout)
    if args.rounds > MOST_ROUNDS:
        raise ScaleoutError(f"--rounds takes {MOST_ROUNDS} at most, not {args.rounds}.")
    result = compare(
        launch.run,
        variants(words, args.env),
        rounds=args.rounds,
        metric=metric,
        lower=True if args.lower else None,
        name=args.name,
        echo=lambda text: print(text, flush=True),
        ranks=args.ranks,
        threads=args.threads,
        timeout=args.timeout,
        site=Site.read(args.site) if args.site else None,
    )
    print(f"\n{result}")
    written = result.write()
    print(f"{show(written[0].parent)}/ holds runs.jsonl, {', '.join(p.name for p in written)}")
    return 0


def variants(words: Sequence[str], env: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """{name: arguments of scaleout.run}, the baseline first."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == BETWEEN:
            commands.append([])
        else:
            commands[-1].append(word)
    choices = [_values(text) for text in env]
    named = [name for name, _ in choices]
    for name in named:
        if named.count(name) > 1:
            raise ScaleoutError(
                f"--env {name} is there twice: give all its values in one, {name}=V1,V2."
            )
    several = [(name, values) for name, values in choices if len(values) > 1]
    fixed = {name: values[0] for name, values in choices if len(values) == 1}
    for command in commands:
        _check(command)
    if len(commands) > 1 and several:
        raise ScaleoutError(
            "Compare commands, with :: between them, or values of --env; not both at once."
        )
    if len(commands) == 1 and not several:
        raise ScaleoutError(
            "There is one variant, and nothing to compare it with: type  A :: B  after the --, "
            "or two values,  --env K=V1,V2"
        )
    if len(commands) > 1:
        names = _names(commands)
        _differ(names)
        return {name: _job(c, fixed) for name, c in zip(names, commands, strict=True)}
    found = {}
    for values in product(*(values for _, values in several)):
        setting = {name: value for (name, _), value in zip(several, values, strict=True)}
        label = " ".join(f"{name}={value or 'unset'}" for name, value in setting.items())
        found[label] = _job(commands[0], {**fixed, **setting})
    return found


def _values(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not (name and equals):
        raise ScaleoutError(
            f"--env takes NAME=VALUE1,VALUE2, such as --env TF_ENABLE_ONEDNN_OPTS=0,1; not {text!r}."
        )
    typed = values.split(";") if ";" in values else values.split(",")
    found = [value for each in typed for value in spread(name, each)]
    if len(found) > MOST_VARIANTS:
        raise ScaleoutError(
            f"{name}={values} makes {len(found)} variants, and compare takes {MOST_VARIANTS} at "
            "most: scaleout sweep finds the best of many."
        )
    for value in found:
        check_variables({name: value})
    _differ([f"{name}={value}" for value in found])
    return name, found


def _differ(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ScaleoutError(
                f"{name} is there twice: the baseline runs against itself in any case, so give "
                "each variant once."
            )


def _names(commands: Sequence[Sequence[str]]) -> list[str]:
    """What the commands differ in, with the flag before it, or the word where else nothing of one
    is left."""
    shared = len(os.path.commonprefix([list(command) for command in commands]))
    flag = shared > 0 and commands[0][shared - 1].startswith("-")
    if flag or any(len(command) == shared for command in commands):
        shared -= 1
    return [" ".join(command[max(0, shared) :]) for command in commands]


def _job(command: Sequence[str], setting: dict[str, str]) -> dict[str, Any]:
    unset = [word for name, value in setting.items() if not value for word in ("-u", name)]
    env = {name: value for name, value in setting.items() if value}
    return {"script": [*(["env", *unset] if unset else []), *command], "env": env}


def _check(command: Sequence[str]) -> None:
    if not command:
        raise ScaleoutError(
            "A command is missing: put them last, as in  -n 2 -- python a.py :: python b.py"
        )
    if Path(command[0]).name in ("mpirun", "mpiexec", "srun", "horovodrun"):
        raise ScaleoutError(f"Leave {command[0]} out: -n says on how many ranks a command runs.")
    path = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    if shutil.which(command[0], path=path) is None:
        raise ScaleoutError(
            f"There is no program {shlex.quote(command[0])} to start: check what follows the --"
        )
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if "python" in command[0] and script.endswith(".py") and not Path(script).is_file():
        raise ScaleoutError(f"There is no script {script}: check what follows the --")
