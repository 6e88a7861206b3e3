"""The points of a sweep: ranks, threads and variables; the grid they form; the job and the script
that each becomes."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .. import words
from ..errors import ScaleoutError
from ..jobs.environment import check_variables, exports, job_environment, thread_variables
from ..jobs.site import Site
from . import allocators, knobs

MOST_RANKS = 16  # a core: beyond it a machine is out of memory before it has measured anything
MOST_THREADS = 64  # a core
COLUMNS = (
    *("ranks", "threads", "rate", "spread", "ratio", "repeats"),
    *("wall_s", "status", "reason", "role", "repeat", "utc", "run_id"),
)
Value = int | str | None
Choices = dict[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Point:
    """One setting of a job."""

    ranks: int
    threads: int | None
    env: tuple[tuple[str, str | None], ...] = ()

    def __str__(self) -> str:
        threads = words.count(self.threads, "thread") if self.threads else "threads unset"
        size = f"{words.count(self.ranks, 'rank')} x {threads}"
        return " ".join(
            [size, *(f"{name}={'unset' if value is None else value}" for name, value in self.env)]
        )

    @property
    def settings(self) -> dict[str, Value]:
        """The values in the columns of a table: ranks, threads, then each variable; "unset" where
        it is taken away."""
        env = {name: "unset" if value is None else value for name, value in self.env}
        return {"ranks": self.ranks, "threads": self.threads or "unset", **env}

    def script(self, command: Sequence[str]) -> list[str]:
        """The command as a rank starts it: {NAME} filled in, and without the variables that this
        point takes away."""
        plain = [] if self.threads else list(thread_variables(1))
        gone = dict.fromkeys([*plain, *(name for name, value in self.env if value is None)])
        kept = [name for name, value in self.env if value is not None]
        unset = [word for name in gone if name not in kept for word in ("-u", name)]
        own = filled(command, dict(self.env))
        return ["env", *unset, *own] if unset else own

    @property
    def variables(self) -> dict[str, str]:
        """The variables that this point sets itself."""
        return {name: value for name, value in self.env if value is not None}

    def shell(self, line: str, site: Site) -> str:
        """The environment and the mpirun line of this point, for sh."""
        given = job_environment(self.threads, site_env=site.env, env=self.variables)
        return "\n".join([*exports(given), f"{line} < /dev/null"])


def filled(command: Sequence[str], env: Mapping[str, str | None]) -> list[str]:
    """The words with the point's values for {NAME}; where it is unset, the word is left out, and so
    is a flag that stands before it.
    """
    found: list[str] = []
    for word in command:
        names = [name for name in env if "{" + name + "}" in word]
        if any(env[name] is None for name in names):
            if word == "{" + names[0] + "}" and found and found[-1].startswith("-"):
                found.pop()
            continue
        for name in names:
            word = word.replace("{" + name + "}", str(env[name]))
        found.append(word)
    return found


def default(axes: Iterable[str], kept: Mapping[str, str] = MappingProxyType({})) -> Point:
    """The point that sets nothing: 1 rank, and every variable that the sweep would set taken
    away.
    """
    names = [name for name in axes if name not in ("ranks", "threads")]
    return Point(1, None, tuple((name, kept.get(name)) for name in names))


def programs(found: Choices, words: Sequence[str]) -> dict[str, str]:
    """{name: first value} of the variable that names the program itself, as in {PY} train.py."""
    return {k: str(values[0]) for k, values in found.items() if "{" + k + "}" in words[0]}


def choices(
    ranks: int | Sequence[int],
    threads: int | Sequence[int],
    env: Mapping[str, str | int | Sequence[str | int | None]],
    cores: int,
) -> Choices:
    """The values on each axis that was asked for, in order, each once."""
    found: Choices = {
        "ranks": _counts("ranks", "-n", ranks, MOST_RANKS * cores, cores),
        "threads": _counts("threads", "-t", threads, MOST_THREADS * cores, cores),
    }
    for name, values in sorted(env.items()):
        knobs.check(name)
        several = [values] if isinstance(values, (str, int)) else list(values)
        for value in several:
            check_variables({name: value})
        if name in COLUMNS:
            raise ScaleoutError(
                f"A variable cannot be called {name} here, as a column of the table is: call it "
                f"{name.upper()}."
            )
        found[name] = tuple(
            dict.fromkeys(None if value in (None, "") else str(value) for value in several)
        )
        if name == "LD_PRELOAD":
            found[name] = tuple(v and allocators.library(str(v)) for v in found[name])
        if found[name] in ((), (None,)):
            raise ScaleoutError(f"{name} has no value to try: type  --env {name}=VALUE1,VALUE2")
    found = {axis: values for axis, values in found.items() if values}
    if not found:
        raise ScaleoutError(
            "There is nothing to sweep over: type, for example,  -n 1,2 -t 1,2  before the --"
        )
    return found


def ends(found: Choices) -> Choices:
    """The first and the last value of each axis: the short form of a sweep."""
    return {axis: tuple(dict.fromkeys((values[0], values[-1]))) for axis, values in found.items()}


def _counts(
    what: str, flag: str, asked: int | Sequence[int], most: int, cores: int
) -> tuple[int, ...]:
    counts = tuple(dict.fromkeys([asked] if isinstance(asked, int) else asked or ()))
    if any(type(count) is not int or count < 1 for count in counts):
        raise ScaleoutError(
            f"{flag} takes numbers of {what}, 1 or more, such as {flag} 1,2; not {list(counts)}."
        )
    if counts and max(counts) > most:
        raise ScaleoutError(
            f"{max(counts)} {what} on {words.count(cores, 'core')} would measure nothing but "
            "waiting: "
            f"{flag} goes up to {most} here."
        )
    return counts


def grid(
    found: Choices, cores: int, settle: Callable[[Mapping[str, Value]], dict[str, Value]] = dict
) -> dict[tuple[Value, ...], Point]:
    """Every combination of the choices, each once."""
    points = {}
    for values in itertools.product(*found.values()):
        named = settle(dict(zip(found, values, strict=True)))
        place = tuple(named.values())
        ranks = int(named.pop("ranks", 1) or 1)
        threads = int(named.pop("threads", 0) or 0) or max(1, cores // ranks)
        points[place] = Point(
            ranks, threads, tuple((k, None if v is None else str(v)) for k, v in named.items())
        )
    return points
