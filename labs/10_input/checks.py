"""What each TODO of 10_input is checked by: a pipeline of numbers, watched.

instruments.py runs the lab's pipeline on two ranks. In place of 41 pictures it
has 41 numbers, and it counts who reads and changes them. The checks look at
what it counted, never at the code. One job watches all the pipelines, for
whichever TODO is checked.
"""

from scaleout import todo

IMAGES = 41
WORKERS = 4
BRIEF = {
    "ranks": 2,
    "threads": 1,
    "script": "instruments.py",
    "pipelines": ["parallel", "batch", "cache+batch", "batch+prefetch"],
}


def watched(job, wanted, *pipelines):
    """What each of two ranks did, for each of these pipelines.

    wanted: what the TODO asks for, said if TensorFlow refused the pipeline.
    """
    records = job(**BRIEF).records.set_index("variant")
    found = list(records["metrics.found"].loc[list(pipelines)])
    errors = [each["error"] for ranks in found for each in ranks
              if each["error"]]
    assert not errors, f"expected {wanted}; saw {errors[0]}"
    return found


def numbers_out(rank, epoch):
    """The images that came out on a rank in an epoch, in that order."""
    return [number for e, numbers, _ in rank["out"] if e == epoch
            for number in numbers]


def nothing_lost(ranks):
    """What came out in each epoch is what this rank was dealt."""
    for rank, each in enumerate(ranks):
        for epoch in (0, 1):
            saw = numbers_out(each, epoch)
            wanted = len(each["mine"])
            assert sorted(saw) == sorted(each["mine"]), (
                f"expected each of the {wanted} images of rank {rank} once in "
                f"epoch {epoch}; saw {len(saw)} images, {len(set(saw))} of "
                "them different."
            )


def changed_anew(ranks):
    """Each image carries its number and its epoch."""
    for each in ranks:
        for epoch, numbers, pixels in each["out"]:
            wanted = [number + 1000 * (epoch + 1) for number in numbers]
            assert pixels == wanted, (
                f"expected images that were augmented for epoch {epoch}; saw "
                "others. Has what was augmented been kept, or was it "
                "augmented twice?"
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
    (ranks,) = watched(job, "the numbers of some images", "batch")
    mine = [each["mine"] for each in ranks]
    sizes = [len(some) for some in mine]
    both = set(mine[0]) & set(mine[1])
    missing = set(range(IMAGES)) - set(mine[0]) - set(mine[1])
    assert len(both) < IMAGES, (
        f"expected each of {IMAGES} images on one rank; saw all of them on "
        "both. Then two ranks do the work of one, twice."
    )
    assert not both, (
        f"expected no image on two ranks; saw {len(both)} on both, such as "
        f"{min(both)}. Does the slice begin at `rank`, and is its step "
        "`ranks`?"
    )
    assert not missing, (
        f"expected all of {IMAGES} images on some rank; saw {sizes[0]} and "
        f"{sizes[1]}, and {len(missing)} on none, such as {min(missing)}. "
        "What is left over belongs to somebody, too."
    )
    assert sum(sizes) == IMAGES, (
        f"expected {IMAGES} images in all; saw {sum(sizes)}: some stand twice "
        "on one rank."
    )
    assert abs(sizes[0] - sizes[1]) < 2, (
        f"expected 21 and 20 images; saw {sizes[0]} and {sizes[1]}. In every "
        "step the other rank would wait for the one with more."
    )
    nothing_lost(ranks)


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
        job, "pairs (image, number) from map()", "parallel", "batch")
    nothing_lost(ranks)
    changed_anew(ranks)
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
    orders = [numbers_out(each, 0) for each in alone]
    assert orders == [numbers_out(each, 0) for each in ranks], (
        "expected the same order with four at a time as with one; saw "
        "another. With deterministic=False no order can be repeated."
    )


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
    """In two epochs each image is read once, and comes out anew."""
    (ranks,) = watched(
        job, "what `decoded` gives to be kept, pairs (image, number)",
        "cache+batch")
    for rank, each in enumerate(ranks):
        reads = len(each["read"])
        wanted = len(each["mine"])
        assert reads != 2 * wanted, (
            f"expected {wanted} reads on rank {rank} in two epochs, one for "
            f"each image; saw {reads}: all are read again in the second. "
            "Nothing is kept, or it is numbers that are kept, not images."
        )
        assert reads == wanted, (
            f"expected {wanted} reads on rank {rank} in two epochs; saw "
            f"{reads}. Are all images kept, and no others?"
        )
    nothing_lost(ranks)
    changed_anew(ranks)
    for each in ranks:
        first = numbers_out(each, 0)
        assert first != numbers_out(each, 1), (
            "expected another order in the second epoch; saw the same. Leave "
            "the shuffling to one_epoch, behind the cache."
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
    (ranks,) = watched(
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
        last = len(each["mine"]) % 8
        assert sizes == [8, 8, last], (
            f"expected batches of 8, 8 and {last} images; saw {sizes}. The "
            "last, short batch is kept, too."
        )
    changed_anew(ranks)


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
    (ranks,) = watched(job, "batches as before", "batch+prefetch")
    nothing_lost(ranks)
    changed_anew(ranks)
    ahead = [each["ahead"] for each in ranks]
    read = [each["read_ahead"] for each in ranks]
    assert max(read) > 8, (
        "expected two batches more to be made after the first, while nobody "
        "asks for them; saw none. prefetch() gives a new dataset: is `every` "
        "that one?"
    )
    assert all(ahead), (
        "expected two batches of 8 images more to be made after the first, "
        f"while nobody asks for them; saw {read[0] - 8} and {read[1] - 8} "
        "images. prefetch counts batches where it stands behind batch()."
    )
    whole = [len(each["mine"]) for each in ranks]
    assert any(seen < 2 * all_ for seen, all_ in zip(read, whole,
                                                     strict=True)), (
        "expected two batches ahead; saw both epochs made at once, before "
        "the second batch was asked for. All that waits in memory."
    )
