"""What each TODO of 00_welcome is checked by: a job on four ranks, then three.

The checks look at what the ranks said and at the record, never at the code.
1,003 strips leave 3 when four ranks share them; 1,001 leave 2 on three. In the
second job, instruments.py gives each rank a number of its own to add up, so
that nobody can know the sum beforehand. TODO 2 is tried with 1,002 strips on
four, too: a share that is rounded to the nearest number does not fit there.
"""

import math
import re
from collections import Counter

from scaleout import ScaleoutError, todo

RANKS = 4
STRIPS = 1003
FEWER = 3  # ranks of the second job
OTHER_STRIPS = 1001
HALVES = 1002  # strips of the third job, which leave half a share
FIXED = (
    "4 is written where the number of ranks should stand: `ranks` knows it."
)


def ended(job, **how):
    """A job's run; also of one that failed, when its record was written."""
    try:
        return job(threads=1, repeats=1, **how)
    except ScaleoutError as failed:
        run = getattr(failed, "run", None)
        # After the record, the lab prints pi. TODO 3 says what that is.
        if run is None or run.status is None or not len(run.records):
            raise
        return run


def small(job):
    """The job that all three checks look at first."""
    return ended(job, ranks=RANKS, strips=STRIPS)


def fewer(job):
    """The second one, on other ranks, with numbers that nobody can know."""
    return ended(
        job, ranks=FEWER, strips=OTHER_STRIPS, script="instruments.py"
    )


def shares_of(run):
    """What each rank took and found, in the order of the ranks."""
    assert len(run.records), (
        "expected a record from rank 0; saw none: no rank believes that it is "
        "rank 0. Is TODO 1 done?"
    )
    return run.records["metrics.shares"].iloc[0]


def hellos(job, start):
    """What each process said of itself, (rank, ranks), in their order."""
    try:
        lines = start(job).lines
    except ScaleoutError as failed:
        lines = getattr(failed, "run", None) and failed.run.lines
        if "Hello" not in str(lines):
            raise
    said = {}
    for process, line in lines:
        if hello := re.search(r"Hello from rank (.+?) of (.+?): ", line):
            said[process] = hello.groups()
    return [said[process] for process in sorted(said)]


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
    said = hellos(job, small)
    right = [(str(rank), str(RANKS)) for rank in range(RANKS)]
    assert "method" not in str(said), (
        "expected numbers in the hello; saw methods. A method does nothing "
        "until it is called, with ()."
    )
    assert said == right, (
        "expected a hello from rank 0 of 4, 1 of 4, 2 of 4 and 3 of 4; saw "
        f"{in_words(said)}. {why_not_itself(said)}"
    )
    said = hellos(job, fewer)
    because = "The numbers come from `comm`, on any number of ranks."
    if {ranks for _, ranks in said} == {str(RANKS)}:
        because = "4 is no fixed number: comm.Get_size() knows it."
    assert said == [(str(rank), str(FEWER)) for rank in range(FEWER)], (
        "expected rank 0 of 3, 1 of 3 and 2 of 3 where only three ranks take "
        f"part; saw {in_words(said)}. {because}"
    )


def in_words(said):
    """What the ranks said, such as 0 of 4, 1 of 4."""
    each = [f"{rank} of {ranks}" for rank, ranks in said]
    return ", ".join(each) or "no hello"


def why_not_itself(said):
    """What the hellos of four ranks tell of TODO 1."""
    right = [str(rank) for rank in range(RANKS)]
    numbers = [rank for rank, _ in said]
    sizes = [ranks for _, ranks in said]
    if said == [("0", "1")] * RANKS:
        return "Every rank believes that it is alone: ask `comm`."
    if numbers == [str(RANKS)] * RANKS and sizes == right:
        return "The two are swapped: the rank comes first."
    if ".0" in "".join(numbers + sizes):
        return "Both are whole numbers."
    if numbers in ([str(int(n) + by) for n in right] for by in (1, -1)):
        return "Ranks are counted from 0."
    if numbers == right and sizes == right:
        return "`ranks` is how many there are: Get_size()."
    if numbers == right and set(sizes) in ({str(RANKS - 1)}, {str(RANKS + 1)}):
        return (
            "Get_size() is how many there are, 4; the last of them is rank 3."
        )
    if len(set(sizes)) == 1 and sizes[0] != str(RANKS):
        return "How many there are is no fixed number: Get_size() knows it."
    if len(set(numbers)) == 1:
        return "Every rank gives itself the same number: Get_rank()."
    if sorted(numbers) == right:
        return (
            "Each number is there, but on another rank than `comm` gives it "
            "to: take Get_rank() as it is."
        )
    return "comm.Get_rank() gives the one, comm.Get_size() the other."


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
    try:
        run = small(job)
    except ScaleoutError as failed:
        assert "cannot be interpreted as an integer" not in str(failed), (
            "expected whole numbers as `first` and `last`; saw a number with "
            "a point. // divides and rounds down, / does not."
        )
        raise
    strips_are_taken_once(shares_of(run), RANKS, STRIPS)
    run = fewer(job)
    shares = shares_of(run)
    ranks = run.records["ranks"].iloc[0]
    assert ranks == FEWER, (
        f"expected the strips on three ranks; saw {ranks} ranks in the "
        "record. Is TODO 1 done?"
    )
    strips_are_taken_once(shares, FEWER, OTHER_STRIPS)
    run = ended(job, ranks=RANKS, strips=HALVES)
    strips_are_taken_once(shares_of(run), RANKS, HALVES)


def strips_are_taken_once(shares, ranks, strips):
    """That the ranks took each of these strips once, in fair parts."""
    sizes = [share["last"] - share["first"] for share in shares]
    taken = Counter()
    for share in shares:
        taken.update(range(share["first"], share["last"]))
    twice = sum(count > 1 for count in taken.values())
    outside = len(set(taken) - set(range(strips)))
    missing = strips + outside - len(taken)
    each = strips // ranks
    left_over = strips - ranks * each

    if [share["rank"] for share in shares] != list(range(ranks)):
        because = "The ranks do not know who they are: is TODO 1 done?"
    elif ranks == FEWER and sum(sizes) == STRIPS:
        because = "1,003 is no fixed number: args.strips says how many."
    elif ranks == FEWER and set(sizes) <= {strips // RANKS,
                                           strips // RANKS + 1}:
        because = FIXED
    elif set(sizes) == {strips}:
        because = "Every rank does all of the work: start from `rank`."
    elif len({share["first"] for share in shares}) == 1:
        because = "All ranks begin at the same strip: start from `rank`."
    elif missing == ranks and sum(sizes) == strips - ranks:
        because = (
            "Does each rank leave out the last strip of its share? `last` is "
            "the first strip that is not mine."
        )
    elif missing and set(sizes) == {each}:
        because = (
            "What is left over when you divide must be somebody's: "
            f"{strips:,} // {ranks} is {each}, and {ranks} * {each} only "
            f"{ranks * each:,}."
        )
    elif outside and not twice:
        because = (
            f"There is no strip before 0, and none after {strips - 1:,}. "
            "Rank 0 begins at 0, and the last rank ends at args.strips."
        )
    elif twice or missing:
        because = (
            "Where one rank ends the next begins: `last` is the first strip "
            "of the next rank."
        )
    else:
        because = ""
    where = "" if ranks == RANKS else " where three ranks take part"
    assert not (missing or twice or outside), (
        f"expected each of the {strips:,} strips once{where}; saw "
        f"{sum(sizes):,} taken, {twice:,} of them more than once, "
        f"{missing:,} missing. {because}"
    )
    most = each + bool(left_over)
    because = (
        f"give the {left_over} strips that are left over to {left_over} "
        "different ranks."
    )
    if max(sizes) == strips:
        because = "the others have nothing to do. Start from `rank`."
    assert max(sizes) <= most, (
        f"expected no rank to take more than {most} strips{where}; saw "
        f"{sizes}. All wait for the rank that has most: {because}"
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
        assert "'pi'" not in str(failed), (
            "expected `pi` on all four ranks; saw a rank that has none. All "
            "ranks make the call, and all keep what it gives back."
        )
        raise
    shares = shares_of(run)
    assert [share["rank"] for share in shares] == list(range(RANKS)), (
        "expected four ranks to add up; saw ranks that do not know who they "
        "are. Is TODO 1 done?"
    )
    everything = [
        share for share in shares if share["last"] - share["first"] >= STRIPS
    ]
    assert not everything, (
        "expected four parts, each much smaller than pi; saw a rank with all "
        f"{STRIPS:,} strips. Is TODO 2 done?"
    )
    answers = [share["pi"] for share in shares]
    if not all(close(answer, math.pi) for answer in answers):
        saw = ", ".join(text(answer) for answer in answers)
        parts = [share["part"] for share in shares]
        raise AssertionError(
            f"expected {math.pi:.6f} on all four ranks; saw {saw} on ranks 0 "
            f"to 3. {why_not_pi(answers, parts)}"
        )
    it_is_the_sum(job)


def it_is_the_sum(job):
    """That pi is the sum of what the ranks found, whatever they found."""
    try:
        run = fewer(job)
    except ScaleoutError as failed:
        raise AssertionError(
            "expected the sum on three ranks, too; saw the job fail, though "
            "on four it ends well. Is 4 written where `ranks` should stand?"
        ) from failed
    assert "metrics.found" in run.records, (
        "expected one number as pi on each of three ranks; saw the job fail "
        "when rank 0 prints it, though on four ranks it does not. Is 4 "
        "written where `ranks` should stand?"
    )
    found = run.records["metrics.found"].dropna().iloc[0]
    own = [each["own"] for each in found]
    answers = [each["pi"] for each in found]
    if all(close(answer, sum(own)) for answer in answers):
        return
    again = [
        first_last for each in found for first_last in each["asked"]
        if first_last[1] - first_last[0] >= OTHER_STRIPS
    ]
    because = why_not_pi(answers, own)
    if again:
        because = (
            "It is computed anew from all strips, so each rank does all of "
            "the work again: add up the parts."
        )
    elif all(close(answer, math.pi) for answer in answers):
        because = "That is pi from elsewhere: add up the parts."
    elif all(isinstance(a, float) and a < sum(own) for a in answers):
        because = "A part is missing: there may be other than four ranks."
    parts = ", ".join(f"{part:g}" for part in own)
    saw = ", ".join(text(answer) for answer in answers)
    raise AssertionError(
        f"expected {sum(own):g} on three ranks whose parts were made {parts} "
        f"for a test; saw {saw}. {because}"
    )


def why_not_pi(answers, parts):
    """What the answers of the ranks tell of TODO 3."""
    count = len(parts)
    total = sum(parts)
    told = [rank for rank, answer in enumerate(answers) if answer is not None]
    numbers = all(isinstance(answer, float) for answer in answers)
    if any(isinstance(answer, list) for answer in answers):
        if any(isinstance(each, list) and len(each) == 1 for each in answers):
            return "That is an array of one number: pi is the number in it."
        return "That is every part in a list: somebody must add them up."
    if not told:
        return "Is what the call gives back kept in `pi`?"
    if len(told) == 1 and close(answers[told[0]], total):
        return (
            f"Only rank {told[0]} was told: `allreduce` tells all, `reduce` "
            "one."
        )
    if not numbers:
        return "Every rank needs the sum, as one number."
    if all(close(answer, total) for answer in answers):
        return (
            "That is the sum of the parts, so the parts are not right yet: is "
            "TODO 2 done?"
        )
    if all(map(close, answers, parts)):
        return "Each rank still has only its own part."
    running = [sum(parts[:rank + 1]) for rank in range(count)]
    if all(map(close, answers, running)):
        return (
            "Each rank has the sum up to its own part only: `scan` does that, "
            "`allreduce` adds up all."
        )
    if all(close(answer, total / count) for answer in answers):
        return "That is the mean of the parts: add them up, do not divide."
    if all(close(answer, total * count) for answer in answers):
        return f"That is {count} times the sum: add up each part once."
    if any(all(close(answer, part) for answer in answers) for part in parts):
        return "That is one rank's part, told to all: op=MPI.SUM adds up."
    if all(close(a, count * b) for a, b in zip(answers, parts, strict=True)):
        return f"The parts differ, so one part times {count} is not the sum."
    if all(close(answer, math.prod(parts)) for answer in answers):
        return "That is the product of the parts: op=MPI.SUM adds up."
    if sum(close(answer, total) for answer in answers):
        return "Not all ranks have the sum: `allreduce` tells all."
    if len({text(answer) for answer in answers}) == 1:
        return "All agree, but it is not the sum of the parts."
    return "Add up the parts of all ranks, and tell all of them."


def close(answer, number):
    """Whether an answer is this number, up to the strips' own error."""
    return isinstance(answer, float) and abs(answer - number) < 1e-6


def text(answer):
    """An answer as a person would write it."""
    return f"{answer:.6f}" if isinstance(answer, float) else str(answer)
