"""What each TODO of 04_kmeans is checked by: one job on four ranks.

The checks look at the record and at the picture, never at the code. The
photograph is made small: 3,927 pixels, of which 3 are left when four ranks
share them.
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from scaleout import ScaleoutError, data, todo

RANKS = 4
SCALE = 0.12
PIXELS = 3927
ITERATIONS = 3  # few, so that an inertia that lags behind by one shows
FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")
# What a job says that ends in TODO 4, and why.
GATHERED_WRONGLY = {
    "inhomogeneous shape": "comm.gather gives rank 0 a list of arrays: join "
    "them to one.",
    "dispatcher for __array_function__": "comm.gather gives None to all ranks "
    "but 0, so only rank 0 can put the pieces together.",
    "is not a multiple of required number of blocks": "Gather takes pieces of "
    "one size, and these differ: Gatherv takes them.",
    "Comm.Gatherv": "Gatherv must be told how long each piece is: "
    "(all_labels, sizes). What each rank sends are its `labels`, an array.",
    "could not be broadcast together": "A reduction adds labels up, but you "
    "need them one behind the other.",
    "Assertion failed in file": "Has the room on rank 0 the same kind of "
    "number as `labels`, np.int32? Gatherv copies bytes as they are.",
}


def small_job(job):
    """Runs the one job that all checks look at; its metrics and its folder."""
    small = Path(FOLDER.name, "small.png")
    if not small.exists():
        pixels = np.rint(data.photo(SCALE) * 255).astype(np.uint8)  # (h, w, 3)
        Image.fromarray(pixels).save(small)
    run = job(
        ranks=RANKS, threads=1, photo=small, colours=8, iterations=ITERATIONS
    )
    assert len(run.records) == 1, (
        f"expected one record, from rank 0; saw {len(run.records)}."
    )
    return run.records["metrics"].iloc[0], run.folder


def pixels_of_the_picture():
    """The rows that the job works on: (n, 3)."""
    return data.photo(SCALE).reshape(-1, 3).astype(np.float64)


def rows_are_split(metrics):
    """That the parts of the ranks cover each row once, and how long they are.

    What comes later in the lab cannot be judged before this is so.
    """
    shares = metrics["shares"]
    ends = [(share["first"], share["stop"]) for share in shares]
    sizes = [stop - first for first, stop in ends]
    taken = Counter()
    for first, stop in ends:
        taken.update(range(first, stop))
    twice = sum(count > 1 for count in taken.values())
    missing = PIXELS - len(taken)
    because = ""
    if sizes == [PIXELS] * RANKS:
        because = "Each rank takes all rows: start from `rank`."
    elif ends == [(rank, PIXELS) for rank in range(RANKS)]:
        because = (
            "A slice with a step deals the rows out like cards. Rank 0 is to "
            "put the labels one behind the other, so give each rank rows that "
            "are neighbours."
        )
    elif missing and not twice:
        because = (
            "What is left over when you divide must be somebody's: "
            f"{PIXELS:,} // {RANKS} is {PIXELS // RANKS}, and "
            f"{RANKS} * {PIXELS // RANKS} only {PIXELS // RANKS * RANKS:,}."
        )
    elif len({first for first, _ in ends}) == 1:
        because = "All ranks begin at the same row: start from `rank`."
    elif twice:
        because = "Where one rank ends the next begins."
    assert not (missing or twice), (
        f"expected each of the {PIXELS:,} rows on one rank; saw "
        f"{sum(sizes):,} taken, {twice:,} of them more than once, "
        f"{missing:,} missing. {because} (TODO 1)"
    )
    return sizes


def distances(pixels, palette):
    """Squared distance of each pixel to each colour: (n, k)."""
    return ((pixels[:, None] - np.asarray(palette)) ** 2).sum(axis=2)


def inertia_of(pixels, palette):
    """The squared distances of the pixels to their nearest colours, summed."""
    return distances(pixels, palette).min(axis=1).sum()


def lloyd(pixels, palette, iterations):
    """The palette after these iterations, by one rank and in NumPy: (k, 3)."""
    for _ in range(iterations):
        labels = distances(pixels, palette).argmin(axis=1)
        palette = [
            pixels[labels == colour].mean(axis=0)
            for colour in range(len(palette))
        ]
    return np.array(palette)


def all_equal(shares, what):
    """Whether all ranks hold the same numbers."""
    return all(share[what] == shares[0][what] for share in shares)


@todo(
    1,
    hints=[
        "3,927 pixels on 4 ranks: 3 are left when each has 981. No pixel may "
        "be lost, and no rank should take all three.",
        "data.shard gives the slice of a rank, from how many rows there are, "
        "who you are, and how many you are.",
        "mine = data.shard(n, rank, ranks)",
    ],
)
def each_row_is_on_one_rank(job):
    """Four ranks have each of the 3,927 pixels once, in fair parts."""
    metrics, _ = small_job(job)
    sizes = rows_are_split(metrics)
    assert max(sizes) - min(sizes) <= 1, (
        f"expected parts that differ by one row at most; saw {sizes}. All "
        "wait for the rank that has most: give the 3 rows that are left over "
        "to 3 different ranks."
    )


@todo(
    2,
    hints=[
        "As it stands, each rank clusters its own rows alone, and you get "
        "four palettes.",
        "Two objects must be told that there are other ranks: the one that "
        "draws the start, and the one that iterates.",
        "Add distributed=True to d4p.kmeans_init(...) and to d4p.kmeans(...).",
    ],
)
def all_ranks_find_one_palette(job):
    """Four ranks find one palette, that of a process with their start."""
    metrics, _ = small_job(job)
    rows_are_split(metrics)
    shares = metrics["shares"]
    assert all_equal(shares, "start"), (
        "expected one start on all four ranks; saw different ones. Each rank "
        "draws its start from its own rows alone: kmeans_init must know of "
        "the others."
    )
    assert all_equal(shares, "palette"), (
        "expected one palette on all four ranks; saw different ones. They "
        "begin at one start, and then each rank follows its own rows: kmeans "
        "must know of the others."
    )
    pixels = pixels_of_the_picture()
    start = np.array(shares[0]["start"])
    saw = np.array(shares[0]["palette"])
    done = [
        count for count in range(ITERATIONS)
        if np.abs(saw - lloyd(pixels, start, count)).max() < 1e-4
    ]
    off = np.abs(saw - lloyd(pixels, start, ITERATIONS)).max()
    because = ""
    if done:
        because = f"It is the palette after {done[0]} of them."
    assert off < 1e-4, (
        f"expected the palette of all {PIXELS:,} pixels after {ITERATIONS} "
        f"iterations; saw one that is off by {off:.1e}. {because}"
    )


@todo(
    3,
    hints=[
        "The palette is final now; finding the nearest colour of a row needs "
        "no other rank. Which routine does that?",
        "d4p.kmeans with 0 iterations and assignFlag=True, not distributed, "
        "on your rows and the palette. Its assignments are the labels, its "
        "objectiveFunction is the inertia of your rows; one allreduce adds "
        "up those of all ranks.",
        "nearest = d4p.kmeans(k, 0, fptype, assignFlag=True)"
        ".compute(rows, palette); labels = nearest.assignments.ravel(); "
        "inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))",
    ],
)
def inertia_belongs_to_the_palette(job):
    """The inertia is that of all ranks' pixels, for the palette as it is."""
    try:
        metrics, _ = small_job(job)
    except ScaleoutError as failed:
        assert "object too deep" not in str(failed), (
            "expected a label for each row, (rows_local,); saw a column, "
            "(rows_local, 1). nearest.assignments.ravel() makes it flat."
        )
        raise
    rows_are_split(metrics)
    pixels = pixels_of_the_picture()
    start = np.array(metrics["shares"][0]["start"])
    palette = np.array(metrics["shares"][0]["palette"])
    before = lloyd(pixels, start, ITERATIONS - 1)
    parts = [
        inertia_of(pixels[share["first"]:share["stop"]], palette)
        for share in metrics["shares"]
    ]
    wanted = sum(parts)
    saw = metrics["inertia"]

    def is_near(number):
        return abs(saw - number) < 1e-4 * abs(number)

    because = ""
    if any(is_near(part) for part in parts):
        because = (
            "That is the inertia of one rank's rows: comm.allreduce adds up "
            "those of all."
        )
    elif is_near(inertia_of(pixels, start)):
        because = "That is the inertia of `start`: compute(rows, palette)."
    elif is_near(inertia_of(pixels, before)):
        because = (
            "That is what the fit reports: the inertia one iteration before. "
            "The pass with 0 iterations says what it is now."
        )
    elif is_near(RANKS * inertia_of(pixels, before)):
        because = (
            "That is what the fit reports, four times: it is of all ranks "
            "already, and of one iteration before."
        )
    elif is_near(RANKS * wanted):
        because = "That is the inertia of all ranks, four times."
    elif saw < wanted:
        because = (
            "That is of a better palette than yours: has the second pass 0 "
            "iterations?"
        )
    assert is_near(wanted), (
        f"expected inertia {wanted:.4f}, of the pixels of all ranks and for "
        f"the palette as it is; saw {saw:.4f}. {because}"
    )


@todo(
    4,
    hints=[
        "Rank 0 has only the labels of its own rows. First it must make room "
        "for those of all ranks: `sizes` says how many each has.",
        "Room for all of them on rank 0 (np.empty, of np.int32 like "
        "`labels`), then Gatherv, the gather that takes pieces of unequal "
        "size.",
        "all_labels = np.empty(sum(sizes), np.int32) if rank == 0 else None; "
        "comm.Gatherv(labels, (all_labels, sizes), root=0)",
    ],
)
def rank_0_has_the_whole_picture(job):
    """Rank 0 has a label for every pixel, in order, and paints them all."""
    try:
        metrics, folder = small_job(job)
    except ScaleoutError as failed:
        for words, because in GATHERED_WRONGLY.items():
            assert words not in str(failed), (
                f"expected {PIXELS:,} labels on rank 0; saw the job fail: "
                f'"{words}". {because}'
            )
        raise
    sizes = rows_are_split(metrics)
    saw = sum(metrics["count"])
    because = ""
    if saw == sizes[0]:
        because = "These are rank 0's own: those of the others are missing."
    assert saw == PIXELS, (
        f"expected {PIXELS:,} labels on rank 0; saw {saw:,}. {because}"
    )
    palette = np.array(metrics["shares"][0]["palette"])
    nearest = distances(pixels_of_the_picture(), palette).argmin(axis=1)
    colours = np.rint(np.clip(palette, 0, 1) * 255)
    painted = np.asarray(Image.open(folder / "quantised.png")).reshape(-1, 3)
    right = (painted == colours[nearest]).all(axis=1)  # (n,)
    first = metrics["shares"][0]["stop"]
    because = "Are the pieces in the order of the ranks?"
    if right[:first].mean() > 0.99:
        because = "Those of rank 0 are right, but not those of the others."
    if not all_equal(metrics["shares"], "palette"):
        because = "The ranks have different palettes: TODO 2 comes first."
    assert right.mean() > 0.999, (
        "expected every pixel in its nearest colour; saw "
        f"{right.mean():.1%} of them in quantised.png. {because}"
    )
