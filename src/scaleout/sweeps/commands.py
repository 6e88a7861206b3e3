"""`scaleout sweep`: what its flags ask for, and what is printed of a sweep."""

import argparse
import math
import re
from collections.abc import Sequence

from ..clusters.site import Site
from ..errors import ScaleoutError
from ..paths import show
from ..words import listed
from .run import sweep

__all__ = ["main"]

KEPT = (".jsonl", ".md", ".png", ".sbatch", ".sh")
RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})(?:\*(\d{1,9}))?")
LIKE_A_RANGE = re.compile(r"-?\d+\.\.([-\d]|$)")  # where it is none, somebody has mistyped it
MOST = 1000  # values of a range


def main(args: argparse.Namespace, command: Sequence[str]) -> int:
    """`scaleout sweep`: prints as it goes, then the table.

    Parameters
    ----------
    args : Namespace
        The flags.
    command : sequence of str
        What follows the `--`.

    Returns
    -------
    int
        The exit status: 1 when no point gave a figure.
    """
    result = sweep(
        command,
        ranks=_numbers("-n", args.ranks),
        threads=_numbers("-t", args.threads),
        env=_variables(args.env),
        metric=args.metric,
        reduce=args.reduce,
        skip=args.skip,
        lower=args.lower,
        repeat=args.repeat,
        seed=args.seed,
        timeout=args.timeout,
        search=args.search,
        published=args.published,
        name=args.name,
        max_minutes=args.max_minutes,
        site=Site.read(args.site) if args.site else None,
        retry=args.retry,
        echo=lambda text: print(text, flush=True),
    )
    print(f"\n{result}")
    if not math.isnan(result.drift):
        print(
            f"The default drifted by {100 * result.drift:+.1f} % from the first to the last time."
        )
    assert result.folder is not None
    kept = sorted(path.name for path in result.folder.iterdir() if path.suffix in KEPT)
    print(f"{show(result.folder)}/ holds {', '.join(kept)}")
    return 0 if result.best is not None else 1


def _numbers(flag: str, text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        return [int(word) for word in listed(text)]
    except ValueError:
        raise ScaleoutError(
            f"{flag} takes numbers with commas between, such as {flag} 1,2,4; not {text!r}."
        ) from None


def _variables(texts: Sequence[str]) -> dict[str, list[str]]:
    """{name: values} of NAME=V1,V2, or of NAME='V1;V2' where values hold commas; an empty one
    leaves it unset. 1..4 is 1, 2, 3 and 4, and 1..8*2 is 1, 2, 4 and 8."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise ScaleoutError(
                "--env takes NAME=VALUE1,VALUE2, such as --env KMP_BLOCKTIME=0,1,200; not "
                f"{text!r}."
            )
        for value in listed(values):
            found.setdefault(name, []).extend(_range(name, value))
    return found


def _range(name: str, text: str) -> list[str]:
    """The values of 1..10, of 1..1024*2, or the one value that it is."""
    asked = RANGE.fullmatch(text)
    if asked is None and not LIKE_A_RANGE.match(text):
        return [text]
    value, last = (int(asked[1]), int(asked[2])) if asked else (1, 0)
    factor = int(asked[3]) if asked and asked[3] else None
    values: list[str] = []
    if factor is None or (factor > 1 and value > 0):  # else it would never end
        while value <= last and len(values) <= MOST:
            values.append(str(value))
            value = value + 1 if factor is None else value * factor
    if not 0 < len(values) <= MOST:
        raise ScaleoutError(
            f"{name}={text} is no range of 1 to {MOST:,} values: type  {name}=1..10  for each "
            f"number between, or  {name}=1..1024*2  for 1, 2, 4 and so on."
        )
    return values
