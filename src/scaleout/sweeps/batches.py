"""A sweep whose axis is the effective batch, for 09."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from .. import machine, settings
from ..jobs.environment import SHORT_STEPS
from .result import Result
from .sweep import sweep


def batch_grid(script: Path | str, batches: Sequence[int], repeat: int = 1) -> Result:
    """A script at each effective batch, on one rank and on two, with one thread each and with as
    many as there are cores.

    With SCALEOUT_QUICK=1 the batch in the middle alone, and ranks that share the cores.
    """
    file = shlex.quote(str(script))
    each = f"exec python -m mpi4py {file} --steps 30 --warmup 5 --batch ${{BATCH:-{batches[0]}}}"
    quick = settings.quick()
    middle = len(batches) // 2
    return sweep(
        ["sh", "-c", each],
        ranks=[1, 2],
        threads=[] if quick else sorted({1, machine.usable_cores()}),
        env={
            "BATCH": list(batches[middle : middle + 1] if quick else batches),
            **{name: [value] for name, value in SHORT_STEPS.items()},
        },
        repeat=repeat,
        echo=None,
    )
