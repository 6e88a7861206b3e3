"""What each TODO of 00_welcome is checked by: one job on four ranks.

The checks look at what the ranks said and at the record, never at the code.
1,003 strips leave 3 when four ranks share them.
"""

import math
import re
from collections import Counter

from scaleout import ScaleoutError, todo

RANKS = 4
STRIPS = 1003
MOST = 251  # no rank must take more


def small(job):
    """The one job that all three checks look at."""
    return job(ranks=RANKS, threads=1, strips=STRIPS, repeats=1)


def shares_of(run):
    """What each rank took and found, in the order of the ranks."""
    assert len(run.records), (
        "expected a record from rank 0; saw none: no rank believes that it is "
        "rank 0. Is TODO 1 done?"
    )
    return run.records["metrics.shares"].iloc[0]


@todo(
    1,
    hints=[
        "`comm` is everybody who takes part. It knows your number in it, and "
        "how many there are.",
        "Two methods of the communicator: one gets the rank, one gets the "
        "size. Call them, with ().",
        "rank = comm.Get_rank(), and below it ranks = comm.Get_size()",
    ],
)
def every_rank_knows_itself(job):
    """Four ranks say 0, 1, 2 and 3 of 4."""
    try:
        output = small(job).output
    except ScaleoutError as failed:
        output = getattr(failed, "run", failed).output
        if "Hello" not in output:
            raise
    hello = re.findall(r"Hello from rank (.+?) of (.+?): ", output)
    said = sorted(hello)
    if said == [(str(rank), str(RANKS)) for rank in range(RANKS)]:
        return
    assert "method" not in str(said), (
        "expected numbers in the hello; saw methods. A method does nothing "
        "until it is called, with ()."
    )
    saw = ", ".join(f"{rank} of {ranks}" for rank, ranks in said) or "no hello"
    numbers = [rank for rank, ranks in said]
    sizes = {ranks for rank, ranks in said}
    because = ""
    if said == [("0", "1")] * RANKS:
        because = "Every rank believes that it is alone: ask `comm`."
    elif numbers == [str(RANKS)] * RANKS and len(sizes) > 1:
        because = "The two are swapped: the rank comes first."
    elif numbers == [str(rank + 1) for rank in range(RANKS)]:
        because = "Ranks are counted from 0."
    elif len(sizes) == 1 and sizes != {str(RANKS)}:
        because = "How many there are is no fixed number: Get_size() knows it."
    elif len(set(numbers)) == 1:
        because = "Every rank gives itself the same number: Get_rank()."
    raise AssertionError(
        "expected a hello from rank 0 of 4, 1 of 4, 2 of 4 and 3 of 4; saw "
        f"{saw}. {because}"
    )


@todo(
    2,
    hints=[
        "1,003 strips on 4 ranks: who takes which? 3 are left when each has "
        "250, and one rank alone should not take them all.",
        "data.shard(n, rank, ranks) gives the slice of one rank. A slice has "
        ".start, its first strip, and .stop, the first that is not in it.",
        "mine = data.shard(args.strips, rank, ranks), then first = mine.start "
        "and last = mine.stop",
    ],
)
def each_strip_is_taken_once(job):
    """Four ranks take the 1,003 strips once each, and none more than 251."""
    shares = shares_of(small(job))
    sizes = [share["last"] - share["first"] for share in shares]
    taken = Counter()
    for share in shares:
        taken.update(range(share["first"], share["last"]))
    twice = sum(count > 1 for count in taken.values())
    missing = STRIPS - len(set(taken) & set(range(STRIPS)))

    if [share["rank"] for share in shares] != list(range(RANKS)):
        because = "The ranks do not know who they are: is TODO 1 done?"
    elif set(sizes) == {STRIPS}:
        because = "Every rank does all of the work: start from `rank`."
    elif len({share["first"] for share in shares}) == 1:
        because = "All ranks begin at the same strip: start from `rank`."
    elif missing == RANKS:
        because = (
            "Does each rank leave out the last strip of its share? `last` is "
            "the first strip that is not mine."
        )
    elif missing and not twice:
        because = (
            "What is left over when you divide must be somebody's: "
            f"{STRIPS} // {RANKS} is 250, and 4 * 250 only 1,000."
        )
    elif twice:
        because = (
            "Where one rank ends the next begins: `last` is the first strip "
            "of the next rank."
        )
    else:
        because = "There is no strip after the last one."
    assert not (missing or twice or len(taken) > STRIPS), (
        f"expected each of the 1,003 strips once; saw {sum(sizes):,} taken, "
        f"{twice:,} of them more than once, {missing:,} missing. {because}"
    )
    assert max(sizes) <= MOST, (
        f"expected no rank to take more than {MOST} strips; saw {sizes}. All "
        "wait for the rank that has most: give the 3 strips that are left "
        "over to 3 different ranks."
    )


@todo(
    3,
    hints=[
        "Each rank holds a part in its own memory. Somebody has to add four "
        "numbers that live in four processes.",
        "One call of the communicator adds a number over all ranks and gives "
        "the sum back to all of them: comm.allreduce.",
        "pi = comm.allreduce(part, op=MPI.SUM)",
    ],
)
def every_rank_knows_pi(job):
    """Each of the four ranks knows pi, though it computed only a part."""
    try:
        run = small(job)
    except ScaleoutError as failed:
        output = getattr(failed, "run", failed).output
        assert "comm.Allreduce(" not in output, (
            "expected the sum of four numbers; saw comm.Allreduce fail. With "
            "a capital A it adds NumPy arrays, and needs one to write the "
            "sum to. A single number takes comm.allreduce, with a small a."
        )
        raise
    shares = shares_of(run)
    parts = [share["part"] for share in shares]
    assert max(parts) < 3, (
        "expected four parts, each much smaller than pi; saw "
        f"{', '.join(f'{part:.3f}' for part in parts)}. Is TODO 2 done?"
    )
    answers = [share["pi"] for share in shares]
    if all(close(answer, math.pi) for answer in answers):
        return
    saw = ", ".join(text(answer) for answer in answers)
    rest = answers[1:]
    because = ""
    if close(answers[0], math.pi) and rest == [None] * len(rest):
        because = "Only rank 0 was told: `allreduce` tells all, `reduce` one."
    elif answers == [None] * RANKS:
        because = "Is what the call gives back kept in `pi`?"
    elif any(isinstance(answer, list) for answer in answers):
        because = "That is every part in a list: somebody must add them up."
    elif answers == parts:
        because = "Each rank still has only its own part."
    elif all(close(answer, max(parts)) for answer in answers):
        because = "That is one rank's part, told to all: op=MPI.SUM adds up."
    elif all(close(a, RANKS * b) for a, b in zip(answers, parts, strict=True)):
        because = "The parts differ, so one part times 4 is not the sum."
    elif len({text(answer) for answer in answers}) == 1:
        because = "All agree, but it is not the sum of the parts."
    raise AssertionError(
        f"expected {math.pi:.6f} on all four ranks; saw {saw} on ranks 0 to "
        f"3. {because}"
    )


def close(answer, number):
    """Whether an answer is this number, up to the strips' own error."""
    return isinstance(answer, float) and abs(answer - number) < 1e-6


def text(answer):
    """An answer as a person would write it."""
    return f"{answer:.6f}" if isinstance(answer, float) else str(answer)
