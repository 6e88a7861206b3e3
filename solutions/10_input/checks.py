"""What each TODO of 10_input is checked by: a pipeline of numbers, watched.

instruments.py runs the lab's pipeline on two ranks. In place of 41 pictures it
has 41 numbers, and it counts who reads and changes them. The checks look at
what it counted, never at the code. One job watches all the pipelines, for
whichever TODO is checked.
"""

from scaleout import todo

IMAGES = 41  # which neither 2 nor 3 ranks can share equally
WORKERS = 4
BATCH = 8
EPOCHS = 2
BRIEF = {
    "ranks": 2,
    "threads": 1,
    "script": "instruments.py",
    "pipelines": ["naive", "parallel", "cache", "batch", "prefetch"],
}
DEAL = {"ranks": 3, "threads": 1, "script": "instruments.py", "deal": True}


def noted(job, how, *variants):
    """What each rank noted, for each of these variants."""
    records = job(**how).records.set_index("variant")
    return list(records["metrics.found"].loc[list(variants)])


def watched(job, wanted, *pipelines):
    """What each of two ranks did, for each of these pipelines.

    wanted: what the TODO asks for, said if TensorFlow refused the pipeline.
    """
    found = noted(job, BRIEF, *pipelines)
    errors = [each["error"] for ranks in found for each in ranks
              if each["error"]]
    assert not errors, f"expected {wanted}; saw {errors[0]}"
    return found


def behind_decoded(job, wanted, pipeline):
    """The same, once what `decoded` makes is known to be right."""
    (plain,) = noted(job, BRIEF, "naive")
    errors = [each["error"] for each in plain if each["error"]]
    assert not errors, (
        "this needs what `decoded` gives, and that ends early: see TODO 2. "
        f"It said: {errors[0]}"
    )
    lost = any(sorted(numbers_out(each, epoch)) != sorted(each["mine"])
               for each in plain for epoch in range(EPOCHS))
    assert not lost, (
        "this needs what `decoded` gives, and that has not each image once: "
        "see TODO 2."
    )
    (found,) = watched(job, wanted, pipeline)
    return found, plain


def numbers_out(rank, epoch):
    """The images that came out on a rank in an epoch, in that order."""
    return [number for e, numbers, _ in rank["out"] if e == epoch
            for number in numbers]


def nothing_lost(ranks):
    """What came out in each epoch is what this rank was dealt."""
    for rank, each in enumerate(ranks):
        assert not each["endless"], (
            f"expected {EPOCHS} epochs; saw images without an end. repeat() "
            "has no place here."
        )
        for epoch in range(EPOCHS):
            saw = numbers_out(each, epoch)
            wanted = len(each["mine"])
            because = ""
            if len(saw) == wanted - wanted % BATCH:
                because = " The last, short batch is kept, too."
            assert sorted(saw) == sorted(each["mine"]), (
                f"expected each of the {wanted} images of rank {rank} once in "
                f"epoch {epoch}; saw {len(saw)} images, {len(set(saw))} of "
                f"them different.{because}"
            )


def changed_anew(ranks):
    """Each image carries its number and its epoch."""
    for each in ranks:
        for epoch, numbers, pixels in each["out"]:
            wanted = [number + 1000 * (epoch + 1) for number in numbers]
            added = [pixel - number for pixel, number in
                     zip(pixels, numbers, strict=False)]
            because = (
                "Has what was augmented been kept, or was it augmented twice?")
            if added and set(added) == {0}:
                because = "They are as they were read: is changed() called?"
            elif added and set(added) == {2000 * (epoch + 1)}:
                because = "Each was augmented twice."
            elif added and set(added) == {1000}:
                because = (
                    "They are augmented as in epoch 0. Has what was augmented "
                    "been kept? changed() knows the epoch.")
            assert pixels == wanted, (
                f"expected images that were augmented for epoch {epoch}; saw "
                f"others. {because}"
            )


def as_before(ranks, plain, because):
    """The same order as without this step."""
    for each, other in zip(ranks, plain, strict=True):
        for epoch in range(EPOCHS):
            assert numbers_out(each, epoch) == numbers_out(other, epoch), (
                f"expected the same order as without this step; saw another "
                f"in epoch {epoch}. {because}"
            )


@todo(
    1,
    hints=[
        "Every image on exactly one rank: like cards, the first to rank 0, "
        "the second to rank 1, and so on around.",
        "A slice has a first, an end and a step: numbers[first::step]",
        "return numbers[rank::ranks]",
    ],
)
def each_image_on_one_rank(job):
    """Of 41 images one rank has 21, the other 20, and together all."""
    (two,) = noted(job, BRIEF, "deal")
    each_once(two)
    (three,) = noted(job, DEAL, "deal")
    hint = ""
    if [deal["numbers"] for deal in three[:2]] == [
            deal["numbers"] for deal in two]:
        hint = (" Ranks 0 and 1 have what they had on 2 ranks: is 2 written "
                "where `ranks` should stand?")
    each_once(three, "with 2 ranks all is right, with 3 it is not: ", hint)


def each_once(deals, start="", hint=""):
    """Each image is on one rank, and no rank has two more than another."""
    errors = [deal["error"] for deal in deals if deal["error"]]
    swapped = any("step cannot be zero" in error for error in errors)
    assert not swapped, (
        f"{start}expected a slice that begins at `rank` and takes every "
        "`ranks`-th number; saw a step of 0. Are the two swapped?"
    )
    assert not errors, (
        f"{start}expected the numbers of some images; saw {errors[0]}{hint}"
    )
    kinds = {deal["kind"] for deal in deals if deal["numbers"]}
    assert "b" not in kinds, (
        f"{start}expected the numbers of some images; saw True and False. "
        "They say which: numbers[...] of them are the images."
    )
    assert kinds <= set("iu"), (
        f"{start}expected whole numbers of images; saw "
        f"{next(deal['numbers'][0] for deal in deals if deal['numbers'])}."
    )
    mine = [deal["numbers"] for deal in deals]
    sizes = [len(some) for some in mine]
    saw = listed(sizes)
    of = "both" if len(deals) == 2 else f"all {len(deals)}"
    dealt = [number for some in mine for number in set(some)]
    twice = sorted(number for number in set(dealt) if dealt.count(number) > 1)
    missing = sorted(set(range(IMAGES)) - set(dealt))
    assert set(map(frozenset, mine)) != {frozenset(range(IMAGES))}, (
        f"{start}expected each of {IMAGES} images on one rank; saw all of "
        f"them on {of}. Then {len(deals)} ranks do the work of one, "
        f"{'twice' if len(deals) == 2 else 'each again'}.{hint}"
    )
    begins = [some[0] if some else None for some in mine]
    late = (
        f"Rank 0 begins with image {begins[0]}: ranks count from 0, as images "
        "do, so rank 0 has the first.")
    because = "Does the slice begin at `rank`, and is its step `ranks`?"
    if len(mine[0]) == 1 and begins[0] == IMAGES - 1:
        because = late
    elif len(set(map(tuple, mine))) == 1:
        because = "All have the same. Does the slice begin at `rank`?"
    elif any(uneven(some) for some in mine):
        because = ("Are they drawn at random, or repeated to give all as many?"
                   " Deal out `numbers` as they come.")
    assert not twice, (
        f"{start}expected no image on two ranks; saw {len(twice)} on "
        f"{'both' if len(deals) == 2 else 'several'}, such as {twice[0]}. "
        f"{hint.strip() or because}"
    )
    because = "What is left over belongs to somebody, too."
    if missing and missing[0] == 0:
        because = late if mine[0] else "Rank 0 has images, too."
    elif sizes[0] and not any(sizes[1:]):
        because = "Only rank 0 has some."
    elif missing and missing[-1] < IMAGES - 1:
        because = "Is the step of the slice `ranks`?"
    assert not missing, (
        f"{start}expected all of {IMAGES} images on some rank; saw {saw}, "
        f"and {len(missing)} on none, such as {missing[0]}. "
        f"{hint.strip() or because}"
    )
    assert sum(sizes) == IMAGES, (
        f"{start}expected {IMAGES} images in all; saw {sum(sizes)}: some "
        "stand twice on one rank."
    )
    wanted = listed(sorted((len(range(rank, IMAGES, len(deals)))
                            for rank in range(len(deals))), reverse=True))
    other = "the other rank" if len(deals) == 2 else "the others"
    assert max(sizes) - min(sizes) < 2, (
        f"{start}expected {wanted} images; saw {saw}. In every step {other} "
        "would wait for the one with more. "
        f"{hint.strip() or 'Give each rank one of what is left over.'}"
    )


def uneven(numbers):
    """Whether numbers follow each other at unlike distances."""
    some = sorted(numbers)
    return len({b - a for a, b in zip(some, some[1:], strict=False)}) > 1


def listed(numbers):
    """1, 2 and 3."""
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}"


@todo(
    2,
    hints=[
        "map() does one element after another unless it is told how many it "
        "may have in work at a time.",
        "map takes num_parallel_calls; `at_once` is what it should be, or "
        "None where one after another is wanted.",
        "images = some.map(lambda i: (read(i), i), "
        "num_parallel_calls=at_once)",
    ],
)
def several_at_a_time(job):
    """Several images are read at a time with --use parallel, one without."""
    ranks, alone = watched(
        job, "pairs (image, number) from map()", "parallel", "naive")
    for some in (ranks, alone):
        nothing_lost(some)
        changed_anew(some)
        for rank, each in enumerate(some):
            reads, wanted = len(each["read"]), EPOCHS * len(each["mine"])
            assert reads == wanted, (
                f"expected {wanted} reads on rank {rank} in {EPOCHS} epochs; "
                f"saw {reads}. read(i) belongs there once."
            )
            assert each["changed"] == ["image"], (
                "expected pairs (image, number), in this order, for "
                "`changed`; saw something else in the image's place."
            )
            assert numbers_out(each, 0) != numbers_out(each, 1), (
                "expected the images in the order of `some`, another one in "
                "each epoch; saw the same. Does the map go over `some`?"
            )
    most = max(each["most_at_once"] for each in ranks)
    assert most > 1, (
        f"expected {WORKERS} images in work at a time on a rank; saw one "
        "after another. map() takes num_parallel_calls."
    )
    assert most == WORKERS, (
        f"expected {WORKERS} images in work at a time, as `workers` "
        f"says; saw {most}. Give map() `at_once`."
    )
    most = max(each["most_at_once"] for each in alone)
    assert most == 1, (
        "expected one after another without --use parallel, so that you can "
        f"measure what it is worth; saw {most} at a time. `at_once` is None "
        "then."
    )
    as_before(ranks, alone,
              "With deterministic=False no order can be repeated.")


@todo(
    3,
    hints=[
        "A cache keeps what the steps before it give. What is the same in "
        "every epoch, and what is not?",
        "What is decoded is the same in every epoch; its order and its "
        "augmentation are not. `decoded(numbers)` is all images of this "
        "rank, decoded.",
        "kept = decoded(numbers).cache()",
    ],
)
def decoded_once(job):
    """In two epochs each image is read once, and augmented in both."""
    ranks, _ = behind_decoded(
        job, "what `decoded` gives to be kept, pairs (image, number)",
        "cache")
    for rank, each in enumerate(ranks):
        reads = len(each["read"])
        wanted = len(each["mine"])
        because = "Are all images kept, and no others?"
        if not each["cached"]:
            because = "cache() gives a new dataset: is `kept` that one?"
        assert reads != EPOCHS * wanted, (
            f"expected {wanted} reads on rank {rank} in two epochs, one for "
            f"each image; saw {reads}: all are read again in the second. "
            "Nothing is kept, or it is numbers that are kept, not images."
        )
        assert reads == wanted, (
            f"expected {wanted} reads on rank {rank} in two epochs; saw "
            f"{reads}. {because}"
        )
    nothing_lost(ranks)
    changed_anew(ranks)
    for each in ranks:
        first, second = numbers_out(each, 0), numbers_out(each, 1)
        assert first != second, (
            "expected another order in the second epoch; saw the same. Leave "
            "the shuffling to one_epoch, behind the cache."
        )
        assert len(each["resumed"]) == len(second[BATCH:]), (
            "expected a job that goes on in the middle of an epoch to have "
            f"the {len(second[BATCH:])} images that are left; saw "
            f"{len(each['resumed'])}. `kept` holds all: one_epoch leaves out "
            "what was done."
        )
        assert each["resumed"] == second[BATCH:], (
            "expected an order that follows from seed and epoch alone; saw "
            "another when the same epoch was made again. Leave the shuffling "
            "to one_epoch, behind the cache."
        )
    files = [name for each in ranks for name in each["cached"] if name]
    assert not files, (
        f"expected images that are kept in memory; saw a file, {files[0]}. "
        "cache() without a name keeps them in memory."
    )


@todo(
    4,
    hints=[
        "Which of the two is cheap for a whole batch at once? That one comes "
        "second.",
        "First .batch(batch), then .map(changed): augment() takes a batch as "
        "well as an image.",
        "batches = images.batch(batch).map(changed)",
    ],
)
def changed_by_the_batch(job):
    """With --use batch a whole batch is augmented at once."""
    ranks, plain = behind_decoded(
        job, "one batch(batch), and after it one map(changed)", "batch")
    nothing_lost(ranks)
    for each in ranks:
        assert each["changed"], (
            "expected whole batches to be augmented; saw none that was. Is "
            "map(changed) there?"
        )
        assert each["changed"] == ["batch"], (
            "expected whole batches to be augmented; saw augment called with "
            f"{' and '.join(each['changed'])} at a time. batch() comes first."
        )
        sizes = [len(numbers) for e, numbers, _ in each["out"] if e == 0]
        last = len(each["mine"]) % BATCH
        because = "The last, short batch is kept, too."
        if sizes[0] != BATCH:
            because = "`batch` says how many, and is not always BATCH."
        if sorted(sizes) == [last, BATCH, BATCH]:
            because = "Their order is another: nothing is shuffled here."
        assert sizes == [BATCH, BATCH, last], (
            f"expected batches of 8, 8 and {last} images; saw {sizes}. "
            f"{because}"
        )
    changed_anew(ranks)
    as_before(ranks, plain, "batch() and map() alone keep it.")


@todo(
    5,
    hints=[
        "What makes batches in a thread of its own, while your step "
        "computes? It is the last step of a pipeline.",
        "prefetch(how many batches): it gives a new dataset, and `every` is "
        "to be that one.",
        "every = every.prefetch(2)",
    ],
)
def made_before_it_is_asked_for(job):
    """After the first batch, two more are made while nobody asks."""
    ranks, plain = behind_decoded(job, "batches as before", "prefetch")
    nothing_lost(ranks)
    changed_anew(ranks)
    as_before(ranks, plain, "prefetch() alone keeps it.")
    ahead = [batches_ahead(each) for each in ranks]
    called = [each["prefetched"] for each in ranks]
    because = "Is prefetch() there?"
    if any(called):
        because = "prefetch() gives a new dataset: is `every` that one?"
    assert max(ahead) > 0, (
        "expected two batches more to be made after the first, while nobody "
        f"asks for them; saw none. {because}"
    )
    whole = [batches_in(each) - 1 for each in ranks]
    assert ahead != whole, (
        "expected two batches ahead; saw both epochs made at once, before "
        "the second batch was asked for. All that waits in memory: prefetch "
        "counts batches, not images."
    )
    because = ""
    if any("-1" in some for some in called):
        because = " AUTOTUNE chooses how many by itself, and begins with one."
    elif min(ahead) < 2:
        because = " prefetch counts batches where it stands behind batch()."
    if any(each["most_at_once"] > 1 for each in plain):
        because = (" But several are read at a time without --use parallel: "
                   "see TODO 2.")
    saw = f"{ahead[0]:g} on each rank"
    if len(set(ahead)) > 1:
        saw = f"{ahead[0]:g} on rank 0 and {ahead[1]:g} on rank 1"
    assert ahead == [2, 2], (
        "expected two batches ahead on each rank, while nobody asks for "
        f"them; saw {saw}.{because}"
    )


def batches_in(rank):
    """The batches of both epochs."""
    return EPOCHS * -(-len(rank["mine"]) // BATCH)


def batches_ahead(rank):
    """How many batches were read while the first was in use."""
    left = rank["read_ahead"] or 0
    of_epoch = len(rank["mine"])
    sizes = [min(BATCH, of_epoch - at) for at in range(0, of_epoch, BATCH)]
    ahead = -1
    for size in sizes * EPOCHS:
        ahead += min(1, left / size)
        left = max(0, left - size)
    return round(ahead, 1)
