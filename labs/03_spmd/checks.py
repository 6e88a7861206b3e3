"""What each TODO of 03_spmd is checked by: the ring, as one job on 3 ranks.

The checks look at the record of each length of the array, never at the code:
where its blocks begin and end, and, after the first trip and after both, which
blocks of the sum each rank had right and how many bytes it had sent. By 3, a
length of 7 leaves 1, and 8 leaves 2; a third of the long one is more than MPI
sends before somebody receives it.
"""

from scaleout import ScaleoutError, todo

RANKS = 3
LENGTHS = [7, 8, 1_000_001]
LIMIT_S = 20  # a ring that waits for ever is told so before its author tires
# A rank that waits leaves its core to the others.
FEW_CORES = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}


def ring(job):
    """The records of the ring, one for each length."""
    try:
        run = job(ranks=RANKS, threads=1, timeout=LIMIT_S, env=FEW_CORES,
                  algorithm="ring", sizes=LENGTHS, repeats=1, warmup=0)
    except ScaleoutError as failed:
        if stops_at_the_long_one(failed):
            raise AssertionError(
                "with 8 elements your ring ends, with 1,000,001 it waits for "
                "ever. A long Send waits until somebody receives: if all "
                "ranks send first, nobody does. comm.Sendrecv gives and takes "
                "at once; use it in TODO 2 and in TODO 3."
            ) from None
        assert "truncat" not in str(failed), (
            "expected each rank to make room for what comes; saw a block that "
            "is longer than the room for it. x[give] goes to the right, "
            "x[take] is for what comes from the left: are the two swapped?"
        )
        raise
    return list(zip(LENGTHS, run.records.to_dict("records"), strict=True))


def stops_at_the_long_one(failed):
    """Whether a job ran out of time after it was done with the short ones."""
    job = getattr(failed, "run", None)
    return job and job.status is None and len(job.records) == 2


def after(record, trips):
    """Which blocks each rank has right, (ranks, blocks), and how many blocks
    the busiest rank has sent so far."""
    shares = record["metrics.shares"]
    if trips == 1:
        shares = [share["first_trip"] for share in shares]
    sent = max(share["sent_bytes"] for share in shares)
    blocks = round(sent / (record["metrics.bytes"] / RANKS))
    return [share["right"] for share in shares], blocks


def has_its_sum(right):
    """Of each rank, whether it holds the sum of its block: r has r + 1."""
    return [right[rank][(rank + 1) % RANKS] for rank in range(RANKS)]


@todo(
    1,
    hints=[
        "7 elements on 3 ranks: 2, 2 and 3 would do. Where does the block of "
        "a rank begin, and where does it end?",
        "Let block r end where block r + 1 begins: at n * (r + 1) // ranks, "
        "rounded down.",
        "return [slice(n * r // ranks, n * (r + 1) // ranks) for r in "
        "range(ranks)]",
    ],
)
def blocks_are_even(job):
    """7 and 8 in three blocks: each element in one, and blocks of 2 or 3."""
    for n, record in ring(job):
        found = record["metrics.blocks"]
        sizes = [end - begin for begin, end in found]
        if sum(sizes) < n:
            because = (
                f"{n:,} // {RANKS} is rounded down: what is left over must be "
                "in a block, too."
            )
        elif sum(sizes) > n:
            because = (
                "Some are in two blocks: a slice ends before its stop, so let "
                "each begin where the one before it stops."
            )
        else:
            because = "Let each begin where the one before it stops."
        starts = [begin for begin, end in found] + [n]
        stops = [0] + [end for begin, end in found]
        assert starts == stops, (
            f"expected each of {n:,} elements in one block; saw blocks of "
            f"{sizes}. {because}"
        )
        assert max(sizes) - min(sizes) <= 1, (
            f"expected blocks of {n:,} elements that differ by one at most; "
            f"saw {sizes}. Spread what is left over evenly: n * r // ranks "
            "does."
        )


@todo(
    2,
    hints=[
        "Draw three ranks in a circle. In each step each rank gives one block "
        "to the right, and takes one from the left.",
        "What you take in one step, with your own part added, is what you "
        "give in the next: its index is one lower. There are ranks - 1 steps.",
        "for step in range(ranks - 1): give = block[(rank - step) % ranks], "
        "take = block[(rank - step - 1) % ranks], comm.Sendrecv(x[give], "
        "right, spare[take], left), x[take] += spare[take]",
    ],
)
def one_block_is_whole(job):
    """After the first trip, rank r holds the whole sum of block r + 1."""
    for n, record in ring(job):
        right, sent = after(record, trips=1)
        whole = has_its_sum(right)
        if not all(whole):
            raise AssertionError(
                "expected rank 0 to hold the sum of block 1, rank 1 that of "
                f"block 2, and rank 2 that of block 0 ({n:,} elements); saw "
                f"it {on(whole)}. {what_went_wrong(job)}"
            )
    assert sent > 0, (
        "expected comm.Sendrecv to send the sums, block by block; saw right "
        "sums, and not a byte sent by it. What added them up?"
    )
    assert sent < 3, (
        "expected 2 steps on 3 ranks; saw each rank give 3 blocks. A trip has "
        "ranks - 1 steps: with one more, the parts of a rank count twice."
    )


def what_went_wrong(job):
    """What the bytes and the blocks of the long array tell of TODO 2."""
    n, record = ring(job)[-1]
    right, sent = after(record, trips=1)
    if max(record["metrics.blocks"][0]) == n:
        return "Is TODO 1 done?"
    if sent == 0:
        return "Nobody has given anything by comm.Sendrecv yet."
    if sent == 1:
        return "One step is not enough for 3 ranks: it takes ranks - 1."
    if all(right[rank][rank] for rank in range(RANKS)):
        return (
            "Each rank r holds that of block r instead: in step 0, give "
            "block `rank`."
        )
    if all(right[rank][(rank - 1) % RANKS] for rank in range(RANKS)):
        return (
            "Rank r holds that of block r - 1 instead: `give` goes to the "
            "`right`, and `take` comes from the `left`."
        )
    return (
        "Is what has come added, x[take] += spare[take]? Is it what you give "
        "in the next step, so that the index is one lower each time?"
    )


def on(whole):
    """On how many ranks something is right, in words."""
    count = sum(whole)
    if count == 0:
        return "on no rank"
    return f"on {count} of the {len(whole)} ranks only"


@todo(
    3,
    hints=[
        "The same trip around the circle. But what comes from the left is "
        "whole: there is nothing to add.",
        "comm.Sendrecv, once more. Send x[give] to the right, and receive "
        "straight into its place in x.",
        "comm.Sendrecv(x[give], right, x[take], left)",
    ],
)
def every_block_is_everywhere(job):
    """On each rank the ring agrees with MPI, and sends what it should."""
    for n, record in ring(job):
        right, _ = after(record, trips=2)
        count = sum(sum(blocks) for blocks in right)
        assert count == RANKS * RANKS, (
            f"expected all 3 blocks right on all 3 ranks ({n:,} elements); "
            f"saw {count} of 9. {what_is_missing(job)}"
        )
        shares = record["metrics.shares"]
        sent = max(share["sent_bytes"] for share in shares)
        formula = record["metrics.formula_bytes"]
        slack = 4 * 4  # in each of 4 steps a block may be one float larger
        assert abs(sent - formula) <= slack, (
            f"expected each rank to send about 2 x 2/3 of {4 * n:,} bytes, "
            f"{formula:,.0f}; saw {sent:,}. Each trip gives ranks - 1 blocks "
            "by comm.Sendrecv, no more and no less."
        )


def what_is_missing(job):
    """What the bytes and the blocks of the long array tell of TODO 3."""
    _, record = ring(job)[-1]
    before, sent_before = after(record, trips=1)
    right, sent = after(record, trips=2)
    sent -= sent_before
    whole = has_its_sum(right)
    if not all(has_its_sum(before)):
        return "TODO 2 comes first: no block is whole when this trip begins."
    if right == before and sent == 0:
        return "Each rank has one block of the sum, and none passes it on yet."
    if sent == 0:
        return (
            "Nothing has gone around by comm.Sendrecv, and in TODO 3 nothing "
            "is added any more."
        )
    if all(whole):
        return (
            "What comes is not kept where it belongs: receive into x[take], "
            "and add nothing."
        )
    return (
        "After TODO 2 each rank held a whole block, and now it is gone. Send "
        "x[give], the whole one, and receive into x[take]."
    )
