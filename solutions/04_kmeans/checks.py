"""What each TODO of 04_kmeans is checked by: one job on three ranks, whose 2,752 pixels do not divide by three."""

import numpy as np
from PIL import Image

from scaleout import data
from scaleout.exercises import todo

ITERATIONS = 3  # few, so that an inertia that lags behind by one shows


def small_job(job):
    """Runs the job: its metrics, the pixels that it worked on, (n, 3), and the folder of its picture."""
    run = job(ranks=3, threads=1, scale=0.1, colours=8, iterations=ITERATIONS)
    assert len(run.records) == 1, f"expected one record, from rank 0; saw {len(run.records)}."
    return run.records["metrics"].iloc[0], data.photo(0.1).reshape(-1, 3).astype(np.float64), run.folder


def rows_are_split(metrics):
    """The sizes of the ranks' parts, once it is sure that they cover each row exactly once."""
    rows = [row for share in metrics["shares"] for row in range(share["first"], share["stop"])]
    n = metrics["rows"]
    saw = f"{len(rows):,} taken, {len(set(rows)):,} of them different"
    assert sorted(rows) == list(range(n)), f"expected each of the {n:,} rows on one rank; saw {saw} (TODO 1)."
    return sorted(share["stop"] - share["first"] for share in metrics["shares"])


def distances(pixels, palette):
    """Squared distance of each pixel to each colour: (n, k)."""
    return ((pixels[:, None] - np.asarray(palette)) ** 2).sum(axis=2)


def lloyd(pixels, palette):
    """The palette after the iterations of Lloyd's algorithm, on one rank and in NumPy: (k, 3)."""
    for _ in range(ITERATIONS):
        labels = distances(pixels, palette).argmin(axis=1)
        palette = [pixels[labels == colour].mean(axis=0) for colour in range(len(palette))]
    return np.array(palette)


@todo(
    1,
    hints=[
        "2,752 pixels and 3 ranks: the parts are not all of one size, and no pixel may be lost at the end.",
        "data.shard gives the slice of a rank, from how many rows there are, who you are, and how many you are.",
        "mine = data.shard(n, rank, ranks)",
    ],
)
def each_row_is_on_one_rank(job):
    """Three ranks have each of the 2,752 pixels once, in parts that differ by one row at most."""
    sizes = rows_are_split(small_job(job)[0])
    assert sizes[-1] - sizes[0] <= 1, f"expected parts that differ by one row at most; saw {sizes}."


@todo(
    2,
    hints=[
        "Without a word from you, each rank clusters its own rows alone, and you get three palettes.",
        "Both objects must know that they are not alone: the one that draws the start, and the one that iterates.",
        "Add distributed=True to d4p.kmeans_init(...) and to d4p.kmeans(...).",
    ],
)
def all_ranks_find_one_palette(job):
    """Three ranks hold one start and one palette, the one that a single process finds from this start."""
    metrics, pixels, _ = small_job(job)
    rows_are_split(metrics)
    for what, name in (("start", "kmeans_init"), ("palette", "kmeans")):
        different = len({str(share[what]) for share in metrics["shares"]})
        assert different == 1, f"expected one {what} on all three ranks; saw {different} different ones ({name})."
    wanted, saw = lloyd(pixels, metrics["shares"][0]["start"]), np.array(metrics["shares"][0]["palette"])
    off = np.abs(saw - wanted).max()
    assert off < 1e-4, f"expected the palette of all {len(pixels):,} pixels; saw one that is off by {off:.1e} (kmeans)."


@todo(
    3,
    hints=[
        "The palette is final now; finding the nearest colour of a row needs no other rank. Which routine does that?",
        "d4p.kmeans with 0 iterations and assignFlag=True, not distributed, on your rows and the palette; then one "
        "allreduce adds up what the ranks found.",
        "nearest = d4p.kmeans(k, 0, fptype, assignFlag=True).compute(rows, palette); "
        "labels = nearest.assignments.ravel(); inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))",
    ],
)
def inertia_belongs_to_the_palette(job):
    """The inertia is the sum over the pixels of all ranks, for the palette as it is and not one iteration before."""
    metrics, pixels, _ = small_job(job)
    rows_are_split(metrics)
    wanted, saw = distances(pixels, metrics["shares"][0]["palette"]).min(axis=1).sum(), metrics["inertia"]
    assert abs(saw - wanted) < 1e-4 * wanted, (
        f"expected inertia {wanted:.4f}, of the pixels of all ranks and for the palette as it is; saw {saw:.4f}."
    )


@todo(
    4,
    hints=[
        "Look at quantised.png: what rank 0 does not know stays black. Its own labels are only the first third.",
        "First the sizes of all pieces (allgather), then room for all of them on rank 0, then Gatherv, the gather that "
        "takes pieces of unequal size.",
        "sizes = comm.allgather(len(labels)); everyone = np.empty(sum(sizes), np.int32) if rank == 0 else None; "
        "comm.Gatherv(labels, (everyone, sizes), root=0)",
    ],
)
def rank_0_has_the_whole_picture(job):
    """Rank 0 has a label for every pixel, in order, and writes the whole picture."""
    metrics, pixels, folder = small_job(job)
    rows_are_split(metrics)
    saw = sum(metrics["count"])
    assert saw == len(pixels), f"expected {len(pixels):,} labels on rank 0; saw {saw:,}."
    palette = np.rint(np.clip(metrics["shares"][0]["palette"], 0, 1) * 255)
    wanted = palette[distances(pixels, metrics["shares"][0]["palette"]).argmin(axis=1)]  # (n, 3)
    painted = np.asarray(Image.open(folder / "quantised.png")).reshape(-1, 3)
    right = (painted == wanted).all(axis=1).mean()
    assert right > 0.999, f"expected every pixel in its nearest colour; saw {right:.1%} of them in quantised.png."
