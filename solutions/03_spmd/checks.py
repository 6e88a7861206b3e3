"""What each TODO of 03_spmd is checked by: arrays of a few lengths on three ranks, each block of each rank's result."""

from scaleout.exercises import todo

LENGTHS = [7, 1000]  # neither divides by 3
FEW_CORES = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}  # a rank that waits leaves its core to the others


def ring(job):
    """The records of the ring on three ranks, one for each length."""
    run = job(ranks=3, threads=1, timeout=60, env=FEW_CORES, algorithm="ring", sizes=LENGTHS, repeats=1)
    return zip(LENGTHS, run.records.to_dict("records"), strict=True)


@todo(
    1,
    hints=[
        "7 elements on 3 ranks: 2, 2 and 3 would do. Where does the block of a rank begin, and where does it end?",
        "Let block `rank` end where block `rank + 1` begins: at n * (rank + 1) // ranks, rounded down.",
        "return [slice(n * rank // ranks, n * (rank + 1) // ranks) for rank in range(ranks)]",
    ],
)
def blocks_are_even(job):
    """7 and 1,000 elements in three blocks each: every element in one, sizes that differ by one at most."""
    for n, record in ring(job):
        found = [list(range(*block)) for block in record["metrics.blocks"]]
        sizes = [len(block) for block in found]
        assert sorted(sum(found, [])) == list(range(n)), (
            f"expected each of {n:,} elements in one block; saw blocks of {sizes}, {sum(sizes):,} elements in all."
        )
        assert len(sizes) == 3 and max(sizes) - min(sizes) <= 1, (
            f"expected three blocks of {n:,} elements that differ by one at most; saw sizes {sizes}."
        )


@todo(
    2,
    hints=[
        "Draw three ranks in a circle. In each step each rank gives one block to the right, takes one from the left.",
        "What you take in one step, with your own part added, is what you give in the next: its index is one lower.",
        "give, take = block[(rank - step) % ranks], block[(rank - step - 1) % ranks], then "
        "comm.Sendrecv(x[give], right, spare[take], left) and x[take] += spare[take], for step in range(ranks - 1)",
    ],
)
def one_block_is_whole(job):
    """After the first trip around, rank r holds the whole sum of block r + 1."""
    for n, record in ring(job):
        whole = [blocks[(rank + 1) % 3] for rank, blocks in enumerate(record["metrics.right"])]
        assert all(whole), (
            f"expected rank 0 to hold the sum of block 1, rank 1 that of block 2, and rank 2 that of block 0 "
            f"({n:,} elements); saw it {'on no rank' if not any(whole) else f'only on {sum(whole)} of the ranks'}."
        )
        sent = min(record["metrics.sent_bytes"])
        least = 2 * (n // 3) * 4
        assert sent >= least, f"expected each rank to send at least {least:,} bytes by comm.Sendrecv; saw {sent:,}."


@todo(
    3,
    hints=[
        "The same trip around the circle. Now what comes from the left is whole: there is nothing to add.",
        "Rank r begins with block r + 1. What you take in one step you give in the next. Receive into its place in x.",
        "give, take = block[(rank + 1 - step) % ranks], block[(rank - step) % ranks], then "
        "comm.Sendrecv(x[give], right, x[take], left), for step in range(ranks - 1)",
    ],
)
def every_block_is_everywhere(job):
    """The ring agrees with MPI's Allreduce on every rank, and no rank sends more than the formula says."""
    for n, record in ring(job):
        right = sum(map(sum, record["metrics.right"]))
        assert right == 9, (
            f"expected all 3 blocks right on all 3 ranks ({n:,} elements); saw {right} of 9. Is TODO 2 done?"
        )
        sent, formula = max(record["metrics.sent_bytes"]), record["metrics.formula_bytes"]
        spare = 4 * 4  # in each of 4 steps a block may be one element larger than the mean
        assert formula - spare <= sent <= formula + spare, (
            f"expected each rank to send about 2 x 2/3 of {4 * n:,} bytes, {formula:,.0f}; saw {sent:,}."
        )
