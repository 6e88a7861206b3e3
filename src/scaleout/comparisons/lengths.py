"""The rate of a job from two lengths of it, timed from outside: neither its start nor a clock of its
own counts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..base.errors import ScaleoutError
from ..base.words import rounded
from ..jobs.job import Run
from ..measuring import command
from ..measuring.numbers import NoFigure

EXAMPLE = "--work steps=40,80 -- python a.py --steps {steps} :: python b.py --steps {steps}"


@dataclass(frozen=True)
class Lengths:
    """What a job does, and how much of it in the short and in the long one."""

    what: str
    short: int
    long: int

    @classmethod
    def asked(cls, text: str, variants: Mapping[str, Mapping[str, object]]) -> "Lengths":
        """Read NAME=A,B; ScaleoutError where it is none, or a command does not take it."""
        asked = re.fullmatch(r"(\w+)=([1-9][0-9]{0,9}),([1-9][0-9]{0,9})", text)
        if asked is None or int(asked[2]) >= int(asked[3]):
            raise ScaleoutError(
                f"--work names what a job does, and two lengths of it, the shorter first: not {text!r}. "
                f"Type  {EXAMPLE}"
            )
        found = cls(asked[1], int(asked[2]), int(asked[3]))
        for name, how in variants.items():
            if not any(found.hole in word for word in _words(how)):
                raise ScaleoutError(
                    f"{name} does not take its length: put {found.hole} where its number of {found.what} stands, as "
                    f"in  {EXAMPLE}"
                )
        return found

    @property
    def hole(self) -> str:
        return f"{{{self.what}}}"

    def around(self, start: Callable[..., object]) -> Callable[..., object]:  # type: ignore[explicit-any]
        """Return what runs the short job and the long one; the run that it returns took the rest."""

        def both(script: object, **how: object) -> object:
            words = _words({"script": script})
            each = [
                start([word.replace(self.hole, str(length)) for word in words], **how)
                for length in (self.short, self.long)
            ]
            short, long = (run for run in each if isinstance(run, Run))
            rest = long.wall_s - short.wall_s
            if rest <= 0:
                raise NoFigure(
                    f"A job of {self.long} {self.what} took {rounded(long.wall_s)} s, and one of {self.short} "
                    f"took {rounded(short.wall_s)} s: take lengths that are further apart, such as  --work "
                    f"{self.what}={self.short},{10 * self.long}"
                )
            return replace(long, wall_s=rest)

        return both


def _words(how: Mapping[str, object]) -> list[str]:
    script = how.get("script") or ""
    return command.words(script if isinstance(script, (list, tuple)) else str(script))
