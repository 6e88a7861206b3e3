"""What each TODO of 03_spmd is checked by: the ring on 3, 2 and 4 ranks.

instruments.py cuts blocks, and then goes through the ring of each length of
the array. The checks look at what it notes, never at the code: where blocks
begin and end; and, after the first trip and after both, which blocks of the
sum each rank holds, and what it gave to whom. By 3, a length of 7 leaves 1,
and 8 leaves 2; a third of the long one is more than MPI sends before somebody
receives it.
"""

from scaleout import ScaleoutError, todo

RANKS = 3
OTHERS = [2, 4]  # ranks of the jobs after it; a tree has 2 steps on 3 and 4
LENGTHS = [7, 8, 1_000_001]
SHORT = LENGTHS[:2]
LIMIT_S = 20  # a ring that waits for ever is told so before its author tires
# A rank that waits leaves its core to the others.
FEW_CORES = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
WAITS = (
    "with 8 elements your ring ends, with 1,000,001 it waits for ever. A long "
    "Send waits until somebody receives: if all ranks send first, nobody "
    "does. comm.Sendrecv gives and takes at once."
)
NO_ROOM = (
    "expected each rank to make room for what comes; saw a block that is "
    "longer than the room for it. x[give] goes to the right, x[take] is for "
    "what comes from the left: are give and take swapped, or left and right?"
)
NO_FIT = (
    "expected what comes to go into the block that it belongs to; saw two "
    "blocks of unlike length. What comes as `take` belongs to x[take]."
)


class Watched:
    """What instruments.py has written, and how its job failed, if it did."""

    def __init__(self, job, ranks=RANKS, sizes=LENGTHS):
        self.failed = None
        try:
            run = job(
                ranks=ranks, threads=1, timeout=LIMIT_S, env=FEW_CORES,
                script="instruments.py", sizes=sizes,
            )
        except ScaleoutError as failed:
            self.failed = failed
            run = getattr(failed, "run", None)
            if run is None:
                raise
        rows = run.records.to_dict("records")
        self.ranks = ranks
        self.ended = run.status is not None
        self.cuts = [row["metrics.cuts"] for row in rows
                     if row["variant"] == "blocks"]
        self.first = of_each_length(rows, "first trip")
        self.both = of_each_length(rows, "both trips")

    def stops_at_the_long_one(self, trips):
        """Whether the job ran out of time after the short ones."""
        return not self.ended and list(trips) == SHORT


def of_each_length(rows, after):
    """What each rank has noted, by the length of the array."""
    return {int(row["metrics.n"]): row["metrics.found"] for row in rows
            if row["variant"] == after}


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
    saw = Watched(job)
    if not saw.cuts:
        raise saw.failed
    for found in saw.cuts[0]:
        wrong = wrong_blocks(found)
        assert not wrong, wrong


def wrong_blocks(found):
    """What is wrong with the blocks of an array; nothing where they are right.

    found: n, ranks, the kind of what `blocks` gives back, and its blocks.
    """
    n, ranks, blocks = found["n"], found["ranks"], found["blocks"]
    where = f"for {n} elements on {ranks} rank{'s' if ranks > 1 else ''}"
    if found["kind"] not in ("list", "tuple"):
        return (
            f"expected a list of {ranks} slices {where}; saw "
            f"{a(found['kind'])}. Give back a slice for each rank, in a list."
        )
    others = [block for block in blocks if isinstance(block, str)]
    if others and others[0].startswith("slice("):
        return (
            f"expected slices of whole numbers {where}; saw {others[0]}. // "
            "divides and rounds down, / does not."
        )
    if others:
        return (
            f"expected a list of slices {where}; saw {a(others[0])} in it. "
            "slice(begin, end) makes one."
        )
    if len(blocks) != ranks:
        because = "There is one for each rank."
        if len(blocks) == RANKS:
            because = f"{RANKS} is written where `ranks` should stand."
        return (
            f"expected {ranks} blocks; saw {len(blocks)} {where}. {because}"
        )
    steps = {step for begin, end, step in blocks}
    if steps != {1}:
        return (
            f"expected blocks of neighbours {where}; saw slices with a step "
            f"of {max(steps, key=abs)}, which deal the elements out like "
            "cards. A block is sent in one piece: slice(begin, end), without "
            "a step."
        )
    sizes = [end - begin for begin, end, _ in blocks]
    starts = [begin for begin, _, _ in blocks] + [n]
    stops = [0] + [end for _, end, _ in blocks]
    if starts != stops:
        return (
            f"expected each of {n} elements in one block; saw blocks of "
            f"{sizes} {where}. {why_not_once(n, ranks, blocks)}"
        )
    if max(sizes) - min(sizes) > 1:
        because = "Spread what is left over evenly: n * r // ranks does."
        if max(sizes) == n:
            because = "Every rank needs a part of its own."
        return (
            f"expected blocks of {n} elements that differ by one at most; saw "
            f"{sizes} {where}. {because}"
        )
    return ""


def why_not_once(n, ranks, blocks):
    """What the blocks tell, where some elements are in none or in two."""
    sizes = [end - begin for begin, end, _ in blocks]
    if [block[:2] for block in blocks] == sorted(
        ([n * r // ranks, n * (r + 1) // ranks] for r in range(ranks)),
        reverse=True,
    ):
        return "Block 0 comes first, then block 1, and so on."
    if len({tuple(block) for block in blocks}) == 1 < ranks:
        return "All blocks are the same: each begins at its own place."
    if set(sizes) == {n // ranks} and sum(sizes) < n:
        return (
            f"{n} // {ranks} is rounded down: what is left over must be in a "
            "block, too."
        )
    if sum(sizes) < n:
        return (
            "Some are in no block: a slice ends before its stop, so let each "
            "stop where the next one begins."
        )
    if sum(sizes) > n:
        return (
            "Some are in two blocks: a slice ends before its stop, so let "
            "each begin where the one before it stops."
        )
    return "Let each begin where the one before it stops."


def a(kind):
    """A kind with its article."""
    if kind == "NoneType":
        return "nothing"
    vowel = kind[0] in "aeiou" or kind == "ndarray"
    return f"{'an' if vowel else 'a'} {kind}"


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
    saw = Watched(job)
    blocks_come_first(saw)
    if len(saw.first) < len(LENGTHS):
        assert not saw.stops_at_the_long_one(saw.first), WAITS
        assert "truncat" not in str(saw.failed), NO_ROOM
        assert "broadcast" not in str(saw.failed), NO_FIT
        raise saw.failed
    for n, found in saw.first.items():
        wrong = wrong_first_trip(found, n)
        assert not wrong, wrong
    for ranks in OTHERS:
        saw = Watched(job, ranks, SHORT)
        assert len(saw.first) == len(SHORT), on_other_ranks(ranks, "fails")
        for n, found in saw.first.items():
            wrong = wrong_first_trip(found, n)
            assert not wrong, on_other_ranks(ranks, "is not")


def blocks_come_first(saw):
    """The ring cannot be judged before its blocks are right."""
    wrong = [wrong_blocks(found) for found in saw.cuts[0]] if saw.cuts else []
    assert not any(wrong), (
        "expected the ring of even blocks; saw other blocks. Is TODO 1 done?"
    )


def on_other_ranks(ranks, what):
    """What is said of a trip that is right on 3 ranks, but not on these."""
    return (
        f"expected a ring on any number of ranks; saw that on {RANKS} it is "
        f"right, and on {ranks} it {what}. Is a number written where `ranks` "
        "should stand? A trip has ranks - 1 steps."
    )


def wrong_first_trip(found, n):
    """What is wrong after TODO 2; nothing where all is right.

    found: what each rank has noted, for an array of n.
    """
    called = sorted({name for each in found for name in each["collectives"]})
    if called:
        return (
            f"expected a ring built by hand; saw comm.{called[0]}: the "
            "library's own collective added them up. Give and take block by "
            "block, in ranks - 1 steps."
        )
    whole = has_its_sum(found)
    if not all(whole):
        return (
            "expected rank 0 to hold the sum of block 1, rank 1 that of block "
            f"2, and rank 2 that of block 0 ({n:,} elements); saw it "
            f"{on(whole)}. {why_no_sum(found, n)}"
        )
    return wrong_gifts(found, n, "A trip")


def wrong_gifts(found, n, trip):
    """What is wrong with what was given on a trip whose sums are right."""
    ranks = len(found)
    some = ranks > 1 and all(given(each) for each in found)
    if not some:
        return (
            "expected ranks - 1 blocks from each rank; saw right sums, and a "
            "rank that gave nothing by `comm`. It counts what is sent, so let "
            "all messages go by comm.Sendrecv."
        )
    largest = max(sent for each in found for sent, *_ in each["gives"])
    if largest == 4 * n:
        return (
            "expected blocks to travel; saw whole arrays, of "
            f"{n:,} elements. Give one block at a time: x[give]."
        )
    to = [sorted({dest for _, dest, _ in each["gives"]}) for each in found]
    if any(len(dests) > 1 for dests in to):
        return (
            "expected each rank to give to its neighbour alone; saw rank 0 "
            f"give to ranks {to[0]}. In a ring all goes to the `right`."
        )
    blocks = round(max(map(given, found)) / (4 * n / ranks))
    least, most = (ranks - 1) * (n // ranks), (ranks - 1) * -(-n // ranks)
    if all(4 * least <= given(each) <= 4 * most for each in found):
        return ""
    if blocks > ranks - 1:
        return (
            f"expected {ranks - 1} steps on {ranks} ranks; saw a rank give "
            f"{blocks} blocks. {trip} has ranks - 1 steps: with one more, the "
            "parts of a rank count twice."
        )
    return (
        f"expected {ranks - 1} blocks from each rank, of about {n // ranks:,} "
        f"elements; saw {[given(each) // 4 for each in found]} elements "
        "given. Let all go by comm.Sendrecv, and nothing twice."
    )


def given(each):
    """The bytes that a rank has given."""
    return sum(sent for sent, *_ in each["gives"])


def has_its_sum(found):
    """Of each rank, whether it holds the sum of its block: r has r + 1."""
    ranks = len(found)
    return [each["holds"][(rank + 1) % ranks] == "sum"
            for rank, each in enumerate(found)]


def why_no_sum(found, n):
    """What was given, and what each rank holds, tell of TODO 2."""
    ranks = len(found)
    gives = [each["gives"] for each in found]
    holds = [each["holds"] for each in found]
    everywhere = range(ranks)
    counts = {len(some) for some in gives}
    largest = max((sent for some in gives for sent, *_ in some), default=0)
    if largest == 0:
        return "Nobody has given anything by comm.Sendrecv yet."
    if not all(gives):
        return "Some ranks give nothing: in a ring all do the same."
    if any(each["stale"] for each in found):
        return (
            "In `x` is what lay in `spare` before anything came: add only "
            "x[take] += spare[take], and not before it has come. Irecv has "
            "only begun: Wait() first."
        )
    if all(holds[rank][rank] == "sum" for rank in everywhere):
        return (
            "Each rank r holds that of block r instead: in step 0, give "
            "block `rank`."
        )
    if all(holds[rank][(rank - 1) % ranks] == "sum" for rank in everywhere):
        return (
            "Rank r holds that of block r - 1 instead: `give` goes to the "
            "`right`, and `take` comes from the `left`."
        )
    if largest == 4 * n:
        return "Whole arrays travel: give one block at a time, x[give]."
    if all(each["unchanged"] for each in found):
        return (
            "`x` is as it was before. Is what has come added, x[take] += "
            "spare[take]?"
        )
    if all(isinstance(one, int) for some in holds for one in some):
        return (
            "What comes has taken the place of what was there. Is what has "
            "come added, x[take] += spare[take]?"
        )
    if counts == {1}:
        return (
            f"One step is not enough for {ranks} ranks: it takes ranks - 1."
        )
    if all(dest == (rank - 1) % ranks for rank in everywhere
           for _, dest, _ in gives[rank]):
        return "It went to the left: give to `right`, and take from `left`."
    if all(len({begin for *_, begin in some}) == 1 for some in gives):
        return (
            "Each rank gives the same block in every step: give what you have "
            "just added to, so that the index is one lower each time."
        )
    if min(counts) >= ranks:
        return (
            f"Each rank gave {min(counts)} blocks. A trip has ranks - 1 "
            "steps: with one more, the parts of a rank count twice."
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
    saw = Watched(job)
    blocks_come_first(saw)
    if len(saw.first) < len(LENGTHS):
        assert not saw.stops_at_the_long_one(saw.first), (
            "TODO 2 comes first: its trip ends with 8 elements, but with "
            "1,000,001 it waits for ever."
        )
        raise saw.failed
    if len(saw.both) < len(LENGTHS):
        assert not saw.stops_at_the_long_one(saw.both), WAITS
        assert "truncat" not in str(saw.failed), NO_ROOM
        assert "broadcast" not in str(saw.failed), NO_FIT
        raise saw.failed
    for n, found in saw.both.items():
        wrong = wrong_second_trip(found, saw.first[n], n)
        assert not wrong, wrong
    for ranks in OTHERS:
        saw = Watched(job, ranks, SHORT)
        assert len(saw.both) == len(SHORT), on_other_ranks(ranks, "fails")
        for n, found in saw.both.items():
            wrong = wrong_second_trip(found, saw.first[n], n)
            assert not wrong, on_other_ranks(ranks, "is not")


def wrong_second_trip(found, first, n):
    """What is wrong after TODO 3; nothing where all is right.

    found, first: what each rank has noted after both trips, and after one.
    """
    ranks = len(found)
    rest = []  # what the second trip alone has done
    for both, one in zip(found, first, strict=True):
        gives = both["gives"][len(one["gives"]):]
        calls = both["collectives"][len(one["collectives"]):]
        rest.append({**both, "gives": gives, "collectives": calls})
    called = sorted({name for each in rest for name in each["collectives"]})
    if called:
        return (
            f"expected a ring built by hand; saw comm.{called[0]}, the "
            "library's own collective. Let `give` and `take` travel to the "
            "neighbour, and in TODO 3 add nothing any more."
        )
    count = sum(each["holds"].count("sum") for each in found)
    passed_on = all(all(each["passed_on"]) for each in found)
    whole = all(has_its_sum(first))
    if not passed_on or not whole:
        because = (
            "This trip itself is right. TODO 2 comes first: no block is whole "
            "when this one begins."
        )
        if not passed_on:
            because = why_not_passed_on(rest, first, n)
        return (
            f"expected all {ranks} blocks right on all {ranks} ranks ({n:,} "
            f"elements); saw {count} of {ranks * ranks}. {because}"
        )
    wrong = wrong_gifts(rest, n, "This trip")
    if wrong or not wrong_gifts(first, n, "A trip"):
        return wrong
    sent = max(given(each) for each in found)
    return (
        f"expected each rank to send about {2 * (ranks - 1)} blocks on both "
        f"trips; saw {sent:,} bytes of {4 * n:,}. This trip is right: look at "
        "TODO 2."
    )


def why_not_passed_on(rest, first, n):
    """What was given, and what each rank holds, tell of TODO 3."""
    ranks = len(rest)
    gives = [each["gives"] for each in rest]
    largest = max((sent for some in gives for sent, *_ in some), default=0)
    if not all(has_its_sum(first)) and largest == 0:
        return "TODO 2 comes first: no block is whole when this trip begins."
    if largest == 0 and all(each["unchanged"] for each in rest):
        return (
            "Each rank has one block of the sum, and none passes it on yet."
        )
    if largest == 0:
        return (
            "Nothing has gone around by comm.Sendrecv, and in TODO 3 nothing "
            "is added any more."
        )
    if not all(gives):
        return "Some ranks give nothing: in a ring all do the same."
    if all(each["unchanged"] for each in rest):
        return (
            "What comes is not kept where it belongs: receive into x[take], "
            "and add nothing."
        )
    if all(each["added"] for each in rest):
        return (
            "What comes is whole, and it was added: let it take its place in "
            "x[take], and add nothing."
        )
    if largest == 4 * n:
        return "Whole arrays travel: give one block, x[give]."
    if all(dest == (rank - 1) % ranks for rank in range(ranks)
           for _, dest, _ in gives[rank]):
        return "It went to the left: give to `right`, and take from `left`."
    if all(has_its_sum(first)) and not all(has_its_sum(rest)):
        return (
            "After TODO 2 each rank held a whole block, and now it is gone. "
            "Send x[give], the whole one, and receive into x[take]."
        )
    return "Is what comes kept in x[take], and is x[give] what goes?"
