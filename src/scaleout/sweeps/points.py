"""The points of a sweep: ranks, threads and variables; the grid they form; the job and the script
that each becomes."""

import difflib
import itertools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..base import words
from ..base.errors import ScaleoutError
from ..jobs.environment import (
    check_variables,
    exports,
    job_environment,
    programs_first,
    thread_variables,
)
from ..measuring.ranges import named
from ..site import Site

IF = " if "
HOLE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")
Value = int | str | None
Place = tuple[Value, ...]
Choices = dict[str, tuple[Value, ...]]
Only = dict[str, tuple[str, str]]  # {axis: (other axis, its value)}
Variables = Mapping[str, str | int | Sequence[str | int | None]]


@dataclass(frozen=True)
class Point:
    """One setting of a job."""

    ranks: int
    threads: int | None
    env: tuple[tuple[str, str | None], ...] = ()

    def __str__(self) -> str:
        threads = words.count(self.threads, "thread") if self.threads else "threads unset"
        size = f"{words.count(self.ranks, 'rank')} x {threads}"
        return " ".join([size, *(f"{name}={value}" for name, value in self._shown.items())])

    @property
    def settings(self) -> dict[str, Value]:
        """The values in the columns of a table; "unset" where a variable is taken away, "***" where
        it holds a secret."""
        return {"ranks": self.ranks, "threads": self.threads or "unset", **self._shown}

    @property
    def _shown(self) -> dict[str, str]:
        """The variables as people read them."""
        shown = words.veiled(dict(self.env))
        return {name: "unset" if value is None else value for name, value in shown.items()}

    @property
    def variables(self) -> dict[str, str | None]:
        """The variables that this point sets itself; None takes one away."""
        return {**({} if self.threads else dict.fromkeys(thread_variables(1))), **dict(self.env)}

    def script(self, command: Sequence[str]) -> list[str]:
        """Fill in {NAME} in the command, as a rank starts it."""
        return filled(command, dict(self.env))

    def shell(self, line: str, site: Site) -> str:
        """Write the environment and the mpirun line of this point, for sh."""
        given = job_environment(self.threads, site_env=site.env, env=self.variables)
        return "\n".join([programs_first(), *exports(given), f"{line} < /dev/null"])


def holes(word: str) -> list[str]:
    """List the NAMEs of {NAME} in a word; ${NAME} is the shell's own."""
    return HOLE.findall(word)


def filled(command: Sequence[str], env: Mapping[str, str | None]) -> list[str]:
    """Fill in the point's values for {NAME}.

    Where it is unset, the word is left out, and so is a flag that stands before it.
    """
    found: list[str] = []
    for word in command:
        names = [name for name in holes(word) if name in env]
        if any(env[name] is None for name in names):
            if word == "{" + names[0] + "}" and found and found[-1].startswith("-"):
                found.pop()
            continue
        found.append(HOLE.sub(lambda hole: env.get(hole[1]) or hole[0], word))
    return found


def check_holes(command: Sequence[str], axes: Iterable[str]) -> None:
    """Refuse a {NAME} that no --env fills; a {name} in small letters like none is the command's."""
    names = [name for name in axes if name not in ("ranks", "threads")]
    for hole in (hole for word in command for hole in holes(word)):
        near = difflib.get_close_matches(hole.upper(), [name.upper() for name in names], 1)
        if hole in names or not (near or hole.isupper()):
            continue
        have = f"the names are {', '.join(names)}" if names else "there is no --env"
        meant = "".join(f"{{{name}}}  or  " for name in names if name.upper() in near[:1])
        raise ScaleoutError(
            f"Nothing fills {{{hole}}} in the command: {have}; type  {meant}--env "
            f"{hole}=VALUE1,VALUE2"
        )


def default(axes: Iterable[str], kept: Mapping[str, str] = MappingProxyType({})) -> Point:
    """Make the point that sets nothing.

    It has 1 rank, and every variable that the sweep would set is taken away.
    """
    names = [name for name in axes if name not in ("ranks", "threads")]
    return Point(1, None, tuple((name, kept.get(name)) for name in names))


def programs(found: Choices, command: Sequence[str]) -> dict[str, str]:
    """Return {name: first value} of the variable that names the program, as in {PY} train.py."""
    return {k: str(values[0]) for k, values in found.items() if k in holes(command[0])}


def choices(
    ranks: int | Sequence[int], threads: int | Sequence[int], env: Variables
) -> tuple[Choices, Only]:
    """Collect the values on each axis asked for, in order, each once; and the conditions."""
    found: Choices = {
        "ranks": _counts("ranks", "-n", ranks),
        "threads": _counts("threads", "-t", threads),
    }
    only: Only = {}
    for text, values in sorted(env.items()):
        name, where = _condition(text)
        if where:
            only[name] = where
        several = [values] if isinstance(values, (str, int)) else list(values)
        check_variables([name])
        found[name] = tuple(
            dict.fromkeys(None if value in (None, "") else str(value) for value in several)
        )
        if found[name] in ((), (None,)):
            raise ScaleoutError(f"{name} has no value to try: type  --env {name}=VALUE1,VALUE2")
    found = {axis: values for axis, values in found.items() if values}
    if not found:
        raise ScaleoutError(
            "There is nothing to sweep over: type, for example,  -n 1,2 -t 1,2  before the --"
        )
    _check_conditions(only, found)
    return found, only


def _condition(text: str) -> tuple[str, tuple[str, str] | None]:
    """Split "NAME if OTHER=VALUE" into the name and the condition; NAME alone has none."""
    name, word, said = text.partition(IF)
    if not word:
        return text, None
    other, equals, value = said.strip().partition("=")
    if not (other and equals):
        raise ScaleoutError(
            f"A condition names one value of another axis, as in  {name}=1,2{IF}ranks=2  (not {said!r})."
        )
    return name, (other, value)


def _check_conditions(only: Only, found: Choices) -> None:
    """Refuse a condition that no point fulfils."""
    for axis, (other, value) in only.items():
        if other not in found or other == axis or other in only:
            axes = [name for name in found if name != axis and name not in only]
            raise ScaleoutError(
                f"{axis} cannot depend on {other}: it takes another axis without a condition of "
                f"its own ({', '.join(axes) or 'there is none'})."
            )
        typed = ["" if one is None else str(one) for one in found[other]]
        if value not in typed:
            raise ScaleoutError(
                f"No point has {other}={value}, so that {axis} would never count: {other} takes "
                f"{', '.join(one or 'unset' for one in typed)}."
            )


def ends(found: Mapping[Place, Point]) -> dict[Place, Point]:
    """Take the points with the first and with the last value of each axis: a sweep's short form."""
    places = list(found)
    return {place: found[place] for place in (places[0], places[-1])}


def _counts(what: str, flag: str, asked: int | Sequence[int]) -> tuple[int, ...]:
    several = isinstance(asked, Iterable) and not isinstance(asked, str)
    given = list(asked) if several else [] if asked is None else [asked]  # type: ignore[arg-type]
    numbers = (one for one in given if not isinstance(one, bool))
    try:
        counts = [operator.index(one) for one in numbers]  # type: ignore[arg-type]
    except TypeError:
        counts = []
    if len(counts) < len(given) or any(count < 1 for count in counts):
        raise ScaleoutError(
            f"{flag} takes numbers of {what}, 1 or more, such as {flag} 1,2; not {given}."
        )
    return tuple(dict.fromkeys(counts))


def grid(found: Choices, cores: int, only: Only | None = None) -> dict[Place, Point]:
    """Combine all choices, each combination once; an axis is unset where its condition fails."""
    points = {}
    for values in itertools.product(*found.values()):
        named = dict(zip(found, values, strict=True))
        for axis, (other, value) in (only or {}).items():
            if ("" if named[other] is None else str(named[other])) != value:
                named[axis] = None
        place = tuple(named.values())
        ranks = int(named.pop("ranks", 1) or 1)
        threads = int(named.pop("threads", 0) or 0) or max(1, cores // ranks)
        points[place] = Point(
            ranks, threads, tuple((k, None if v is None else str(v)) for k, v in named.items())
        )
    return points


def typed_counts(flag: str, text: str | None) -> list[int]:
    """Read the numbers of -n 1,2,4."""
    try:
        return [] if text is None else [int(word) for word in words.listed(text)]
    except ValueError:
        raise ScaleoutError(
            f"{flag} takes numbers with commas between, such as {flag} 1,2,4; not {text!r}."
        ) from None


def typed_variables(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read {name: values} of NAME=V1,V2, or of NAME='V1;V2' where values hold commas.

    An empty one leaves it unset. 1..4 is 1, 2, 3 and 4, and 1..8*2 is 1, 2, 4 and 8. Of NAME='V1,V2
    if OTHER=VALUE' the condition stands beside the name.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        given, word, where = text.rpartition(IF) if IF in text else (text, "", "")
        name, values = named(given)
        found.setdefault(name + word + where, []).extend(values)
    return found
