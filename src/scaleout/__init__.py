"""scaleout: make training fast on the cores of one machine, then run it on many.

What a notebook or a script of your own needs is public here, and loaded when it is first used.
"""

import importlib
from typing import Any

from .base import settings

__version__ = "0.1.0"

# Each public name and where it is: "package.module:" for a module, "package.module:name" for what a
# module holds.
_PUBLIC = {
    "Comparison": "comparisons.comparison:Comparison",
    "Engines": "engines:Engines",
    "JobFailed": "jobs.job:JobFailed",
    "JobInterrupted": "jobs.job:JobInterrupted",
    "JobTimeout": "jobs.job:JobTimeout",
    "Lab": "course.lab:Lab",
    "Run": "jobs.job:Run",
    "ScaleoutError": "base.errors:ScaleoutError",
    "Site": "site:Site",
    "compare": "comparisons.compare:compare",
    "data": "kit.data:",
    "doctor": "doctor:",
    "explain": "comparisons.comparison:explain",
    "flags": "kit.flags:",
    "lab": "course.lab:lab",
    "layers": "kit.layers:",
    "machine": "machine:",
    "mpis": "launch.mpis:",
    "onednn": "traces.onednn:",
    "passed": "course.history:passed",
    "plots": "plots:",
    "profile": "traces.tensorflow:",
    "progress": "base.progress:",
    "records": "kit.records:",
    "report": "reports:report",
    "run": "launch.run:run",
    "scaling": "scaling:",
    "sweep": "sweeps:sweep",
    "timeline": "traces.horovod:",
    "todo": "course.checks:todo",
}
__all__ = sorted(_PUBLIC, key=lambda name: (name.islower(), name))


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, inside = _PUBLIC[name].partition(":")
    found: Any = importlib.import_module(f".{module}", __name__)
    globals()[name] = getattr(found, inside) if inside else found
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if settings.says_where_it_stands():
    from .base import stacks

    stacks.dump_every_few_seconds()
