"""What each TODO of 00_welcome is checked by: one job on three ranks, and its record."""

import math
import re

from scaleout.exercises import todo


@todo(
    1,
    hints=[
        "`comm` is everybody who takes part. It knows your number in it and how many there are.",
        "Two methods of the communicator: one gets the rank, one gets the size.",
        "rank, ranks = comm.Get_rank(), comm.Get_size()",
    ],
)
def every_rank_knows_itself(job):
    """Three ranks say 0, 1 and 2 of 3."""
    said = sorted(re.findall(r"Hello from rank (\d+) of (\d+)", job(ranks=3, threads=1, strips=1000, repeats=1).output))
    wanted = [("0", "3"), ("1", "3"), ("2", "3")]
    words = ", ".join(f"{rank} of {ranks}" for rank, ranks in said) or "no hello"
    assert said == wanted, f"expected a hello from rank 0 of 3, 1 of 3 and 2 of 3; saw {words}."


@todo(
    2,
    hints=[
        "With 1,000 strips and 3 ranks: who takes which? The sizes may differ by one.",
        "data.shard(n, rank, ranks) gives the slice of a rank; a slice has .start and .stop.",
        "mine = data.shard(args.strips, rank, ranks); first, last = mine.start, mine.stop",
    ],
)
def each_strip_is_taken_once(job):
    """Three ranks take the 1,000 strips once each, in shares that differ by one at most."""
    frame = job(ranks=3, threads=1, strips=1000, repeats=1).records
    shares = frame["metrics.shares"].iloc[0]
    taken = [strip for share in shares for strip in range(share["first"], share["last"])]
    assert sorted(taken) == list(range(1000)), (
        f"expected each of the 1,000 strips once; saw {len(taken):,} taken, {len(set(taken)):,} of them different."
    )
    sizes = sorted(share["last"] - share["first"] for share in shares)
    assert sizes[-1] - sizes[0] <= 1, f"expected shares that differ by one strip at most; saw {sizes}."


@todo(
    3,
    hints=[
        "Each rank holds a part in its own memory. Somebody has to add three numbers that live in three processes.",
        "One call of the communicator adds a number over all ranks and gives the sum back to all: allreduce.",
        "pi = comm.allreduce(part, op=MPI.SUM)",
    ],
)
def every_rank_knows_pi(job):
    """Every one of the three ranks knows pi, though each computed only a part of it."""
    frame = job(ranks=3, threads=1, strips=1000, repeats=1).records
    shares = frame["metrics.shares"].iloc[0]
    parts = [round(share["part"], 6) for share in shares]
    assert max(parts) < 3, f"expected three parts, each smaller than pi; saw {parts} (is TODO 2 done?)"
    saw = ", ".join("nothing" if share["pi"] is None else f"{share['pi']:.6f}" for share in shares)
    right = [share["pi"] is not None and abs(share["pi"] - math.pi) < 1e-6 for share in shares]
    assert all(right), f"expected {math.pi:.6f} on all three ranks; saw {saw} on rank 0, 1 and 2."
