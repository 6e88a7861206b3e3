"""Any training command over ranks x threads x variables: which settings make it fast on this
machine, and by how much.

    from scaleout import sweep
    result = sweep("python train.py --batch 32", ranks=[1, 2], metric="images/s: ([0-9.]+)")
    result.table, result.frame, result.heat_map()

Every job is a fresh process. What was measured is kept line by line in
results/sweep/NAME/points.jsonl, and the same call goes on from there, repeating nothing."""

from .result import Result, read
from .sweep import sweep

__all__ = ["Result", "read", "sweep"]
