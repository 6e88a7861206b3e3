"""Any training command over ranks x threads x variables: which settings make it fast on this
machine, and by how much.

    from scaleout import sweep
    result = sweep("python train.py --batch 32", ranks=[1, 2], metric="images/s: ([0-9.]+)")
    result.table, result.frame, result.drift

Every job is a fresh process. What was measured is kept line by line in
results/sweep/NAME/points.jsonl, and the same call goes on from there, repeating nothing."""

from .commands import main
from .outcome import Result, read
from .replay import replay
from .run import sweep

__all__ = ["Result", "main", "read", "replay", "sweep"]
