"""`scaleout sweep`: what its flags ask for, and what is printed of a sweep."""

import argparse
import math
from collections.abc import Sequence

from ..errors import ScaleoutError
from ..jobs.ranges import spread
from ..jobs.site import Site
from ..paths import show
from ..words import listed
from .conditions import condition
from .run import sweep

KEPT = (".jsonl", ".md", ".png", ".sbatch", ".sh")


def main(args: argparse.Namespace, command: Sequence[str]) -> int:
    """`scaleout sweep`: prints as it goes, then the table."""
    values, only = _variables(args.env)
    result = sweep(
        command,
        ranks=_numbers("-n", args.ranks),
        threads=_numbers("-t", args.threads),
        env=values,
        only=only,
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


def _variables(texts: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, tuple[str, str]]]:
    """{name: values} of NAME=V1,V2, or of NAME='V1;V2' where values hold commas; an empty one
    leaves it unset. 1..4 is 1, 2, 3 and 4, and 1..8*2 is 1, 2, 4 and 8. Then {name: condition} of
    NAME='V1,V2 if OTHER=VALUE'."""
    found: dict[str, list[str]] = {}
    only: dict[str, tuple[str, str]] = {}
    for text in texts:
        given, where = condition(text)
        name, equals, values = given.partition("=")
        if not (name and equals and values):
            raise ScaleoutError(
                "--env takes NAME=VALUE1,VALUE2, such as --env KMP_BLOCKTIME=0,1,200; not "
                f"{text!r}."
            )
        if where:
            only[name] = where
        for value in listed(values):
            found.setdefault(name, []).extend(spread(name, value))
    return found, only
