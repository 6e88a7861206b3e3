"""How long the rest of a sweep will take, and whether that is more than was allowed."""

import math

from ..errors import ScaleoutError


def how_long(jobs: int, each_s: float) -> str:
    """What to say of the jobs that are left."""
    return f"{jobs} more jobs of about {each_s:.1f} s: {duration(jobs * each_s)}."


def check_length(rest_s: float, max_minutes: float) -> None:
    """Refuses a sweep that would take too long."""
    if rest_s > 60 * max_minutes:
        raise ScaleoutError(
            f"The rest would take {duration(rest_s)}, more than --max-minutes {max_minutes:g}: "
            "sweep over fewer values, let --search 20 choose points, or type  --max-minutes "
            f"{math.ceil(rest_s / 60)}  (what was measured is kept)."
        )


def duration(seconds: float) -> str:
    """Roughly, as a person would say it: 40 s, 12 min, 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
