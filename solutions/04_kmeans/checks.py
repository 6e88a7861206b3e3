"""What each TODO of 04_kmeans is checked by: a job on four ranks, then on two.

instruments.py reads what the ranks hold after each step of the lab, and the
checks look at that, never at the code. The photograph is made small: 3,927
pixels, of which 3 are left when four ranks share them, and 1 on two. TODO 1
is tried on five, too, where 2 are left and a rounded share loses them.
"""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from scaleout import ScaleoutError, data, todo

LIMIT_S = 30  # of ranks that wait for each other
RANKS = 4
FEWER = 2  # ranks of the second job
MORE = 5  # ranks of the third one, of TODO 1
SCALE = 0.12
PIXELS = 3927
COLOURS = 8
ITERATIONS = 3  # few, so that an inertia that lags behind by one shows
SEED = 0
FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")
FIXED = "4 is written where `ranks` should stand."
# What a job says that ends in TODO 4, and why.
GATHERED_WRONGLY = {
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
    "truncat": "Has the room on rank 0 a place for the labels of all ranks, "
    "sum(sizes), and of the same kind of number as `labels`?",
}


class Watched:
    """What the ranks held after each step, and how the job failed, if so."""

    def __init__(self, job, ranks=RANKS):
        small = Path(FOLDER.name, "small.png")
        if not small.exists():
            pixels = np.rint(data.photo(SCALE) * 255).astype(np.uint8)
            Image.fromarray(pixels).save(small)  # (h, w, 3)
        self.ranks = ranks
        self.failed = None
        try:
            run = job(
                ranks=ranks, threads=1, photo=small, colours=COLOURS,
                iterations=ITERATIONS, script="instruments.py",
                timeout=LIMIT_S,
            )
        except ScaleoutError as failed:
            self.failed = failed
            run = getattr(failed, "run", None)
            if run is None:
                raise
        self.said = run.output
        self.waited = run.status is None
        self.steps, self.starts = {}, []
        for row in run.records.to_dict("records"):
            if row["variant"] == "palette":
                self.starts.append(row["metrics.found"][0]["start"])
            if row["variant"] and row["seed"] == SEED:
                self.steps[row["variant"]] = row["metrics.found"]

    def after(self, step):
        """What each rank held after this step, which must have ended."""
        if step not in self.steps and self.failed is not None:
            raise self.failed
        assert step in self.steps, (
            f"expected the {step} to be told by the lines that stand between "
            "the TODOs; saw that they are changed. Put them back, or get the "
            "lab anew with  scaleout reset."
        )
        return self.steps[step]

    def rows(self):
        """The rows of each rank, which must be split for what comes later."""
        found = self.after("rows")
        wrong = wrong_rows(found)
        assert not wrong, (
            "expected each row on one rank before anything is judged that "
            "comes after it; saw that it is not so. Is TODO 1 done?"
        )
        return [each["rows"] for each in found]


def pixels_of_the_picture():
    """The rows that the job works on: (n, 3)."""
    return data.photo(SCALE).reshape(-1, 3).astype(np.float64)


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
            if (labels == colour).any() else palette[colour]
            for colour in range(len(palette))
        ]
    return np.array(palette)


def all_equal(found, what):
    """Whether all ranks hold the same numbers."""
    return all(each[what] == found[0][what] for each in found)


def a(kind):
    """A kind with its article."""
    vowel = kind[0] in "aeiou" or kind == "ndarray"
    return f"{'an' if vowel else 'a'} {kind}"


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
    for ranks in (RANKS, FEWER, MORE):
        saw = Watched(job, ranks)
        assert "slice indices must be integers" not in str(saw.failed), (
            "expected whole numbers as the ends of a slice; saw a number with "
            "a point. // divides and rounds down, / does not."
        )
        found = saw.after("rows")
        wrong = wrong_rows(found) or unfair_rows(found)
        assert not wrong, wrong


def wrong_rows(found):
    """What is wrong with the rows of the ranks; nothing if they are split."""
    ranks = len(found)
    where = "" if ranks == RANKS else f" where {ranks} ranks take part"
    if not all(each["has_ends"] for each in found):
        kind = found[0]["kind"]
        return (
            f"expected a slice of the rows; saw {a(kind)}. slice(begin, end) "
            "makes one, and data.shard gives one."
        )
    rows = [each["rows"] for each in found]
    sizes = [len(some) for some in rows]
    taken = Counter(row for some in rows for row in some)
    twice = sum(count > 1 for count in taken.values())
    missing = PIXELS - len(taken)
    if missing or twice:
        return (
            f"expected each of the {PIXELS:,} rows on one rank{where}; saw "
            f"{sum(sizes):,} taken, {twice:,} of them more than once, "
            f"{missing:,} missing. {why_not_split(rows, missing, twice)}"
        )
    in_order = [row for some in rows for row in some]
    if in_order != sorted(in_order):
        because = (
            "Rank 0 is to put the labels one behind the other, so let it have "
            "the first rows, rank 1 those that follow, and so on."
        )
        if any(np.diff(some).max(initial=1) > 1 for some in rows):
            because = (
                "A slice with a step deals the rows out like cards. Rank 0 is "
                "to put the labels one behind the other, so give each rank "
                "rows that are neighbours."
            )
        return (
            f"expected the rows of the ranks in order{where}; saw another "
            f"order. {because}"
        )
    return ""


def why_not_split(rows, missing, twice):
    """What the rows of the ranks tell, where some are on none or on two."""
    ranks = len(rows)
    sizes = [len(some) for some in rows]
    each = PIXELS // ranks
    ends = [(some[0], some[-1]) for some in rows if some]
    if sizes == [PIXELS] * ranks:
        return "Each rank takes all rows: start from `rank`."
    if ranks == FEWER and set(sizes) <= {PIXELS // RANKS, PIXELS // RANKS + 1}:
        return FIXED
    if len({first for first, _ in ends}) == 1 and len(ends) > 1:
        return "All ranks begin at the same row: start from `rank`."
    if missing and not twice and set(sizes) == {each}:
        return (
            "What is left over when you divide must be somebody's: "
            f"{PIXELS:,} // {ranks} is {each}, and {ranks} * {each} only "
            f"{each * ranks:,}."
        )
    if missing == ranks and not twice:
        return (
            "Does each rank leave out the last of its rows? A slice ends "
            "before its stop."
        )
    if missing and (not ends or min(ends)[0] > 0):
        return "Rank 0 begins at row 0: ranks are counted from 0."
    if missing and not twice and max(ends, key=max)[1] < PIXELS - 1:
        return (
            "The last rows are nobody's: the last rank ends at n, the number "
            "of pixels."
        )
    return "Where one rank ends the next begins."


def unfair_rows(found):
    """What is wrong with the sizes of the parts; nothing if they are fair."""
    sizes = [len(each["rows"]) for each in found]
    if max(sizes) - min(sizes) <= 1:
        return ""
    left_over = PIXELS % len(sizes)
    because = (
        f"give the {left_over} rows that are left over to {left_over} "
        "different ranks."
    )
    if max(sizes) == PIXELS:
        because = "the others have nothing to do."
    elif max(sizes) - min(sizes) > len(sizes):
        because = "divide the rows by `ranks`."
    return (
        f"expected parts that differ by one row at most; saw {sizes}. All "
        f"wait for the rank that has most: {because}"
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
    for ranks in (RANKS, FEWER):
        saw = Watched(job, ranks)
        rows = saw.rows()
        if "palette" not in saw.steps:
            # daal4py itself says nothing that would help.
            alike = "Traceback (" in saw.said and "root rank" not in saw.said
            assert alike and not saw.waited, (
                "expected all ranks to look for one palette; saw that "
                f"{'they wait for ever' if saw.waited else 'the job ends'} "
                "inside daal4py. In each of the two calls `distributed` must "
                "be the same on every rank, and so must the engine's seed: "
                "all of them take part."
            )
        one_palette(saw, rows)


def one_palette(saw, rows):
    """That the ranks have one start of all rows, and its palette."""
    found = saw.after("palette")
    start = np.array(found[0]["start"])  # (k, 3)
    assert len(start) == COLOURS == len(found[0]["palette"]), (
        f"expected {COLOURS} colours; saw {len(start)} in the start, and "
        f"{len(found[0]['palette'])} in the palette. `k` says how many."
    )
    assert all_equal(found, "start"), (
        "expected one start on all ranks; saw different ones. Each rank draws "
        "its start from its own rows alone: kmeans_init must know of the "
        "others."
    )
    pixels = pixels_of_the_picture()
    whose = [rank for rank, mine in enumerate(rows)
             if all_among(start, pixels[mine])]
    assert not whose, (
        "expected a start drawn from the rows of all ranks; saw one whose "
        f"colours are all on rank {whose[0]}. A start that is handed on does "
        "not know the other rows: kmeans_init must know of the others."
    )
    assert len(saw.starts) < 2 or saw.starts[0] != saw.starts[1], (
        "expected another start with another --seed; saw the same. The random "
        "numbers come from engine=engine: is it still in kmeans_init?"
    )
    assert all_equal(found, "palette"), (
        "expected one palette on all ranks; saw different ones. They begin at "
        "one start, and then each rank follows its own rows: kmeans must know "
        "of the others."
    )
    palette = np.array(found[0]["palette"])
    done = [
        count for count in range(ITERATIONS + 3) if count != ITERATIONS
        and np.abs(palette - lloyd(pixels, start, count)).max() < 1e-4
    ]
    off = np.abs(palette - lloyd(pixels, start, ITERATIONS)).max()
    alone = [
        rank for rank, mine in enumerate(rows)
        if np.abs(palette - lloyd(pixels[mine], start, ITERATIONS)).max()
        < 1e-4
    ]
    because = "`iterations` says how many, for the rows of all ranks."
    if done:
        because = f"It is the palette after {done[0]} of them."
    elif alone:
        because = (
            f"It is that of rank {alone[0]}'s pixels: kmeans must know of the "
            "others."
        )
    assert off < 1e-4, (
        f"expected the palette of all {PIXELS:,} pixels after {ITERATIONS} "
        f"iterations; saw one that is off by {off:.1e}. {because}"
    )


def all_among(colours, pixels):
    """Whether each of these colours is that of a pixel."""
    known = {tuple(each) for each in np.rint(pixels * 255).astype(int)}
    return all(tuple(each) in known
               for each in np.rint(colours * 255).astype(int))


@todo(
    3,
    hints=[
        "The palette is final now; finding the nearest colour of a row needs "
        "no other rank. Which routine does that?",
        "d4p.kmeans with 0 iterations and assignFlag=True, not distributed, "
        "on your rows and the palette. Its assignments are the labels, its "
        "objectiveFunction is the inertia of your rows; one allreduce adds "
        "up those of all ranks.",
        'nearest = d4p.kmeans(k, 0, "float", assignFlag=True)'
        ".compute(rows, palette); labels = nearest.assignments.ravel(); "
        "inertia = comm.allreduce(float(nearest.objectiveFunction[0, 0]))",
    ],
)
def inertia_belongs_to_the_palette(job):
    """The inertia is that of all ranks' pixels, for the palette as it is."""
    for ranks in (RANKS, FEWER):
        saw = Watched(job, ranks)
        rows = saw.rows()
        fits = saw.after("palette")
        assert ranks == RANKS or "labels" in saw.steps, (
            f"expected labels and inertia on {FEWER} ranks, too; saw the job "
            f"fail, though on {RANKS} it goes on. Is 4 written where `ranks` "
            "should stand?"
        )
        found = saw.after("labels")
        labels_are_nearest(found, fits, rows)
        inertia_is_of_all(found[0]["inertia"], fits, rows)


def labels_are_nearest(found, fits, rows):
    """That each rank has a label for each of its rows: the nearest colour."""
    for rank, each in enumerate(found):
        pixels = pixels_of_the_picture()[rows[rank]]
        count = len(pixels)
        assert each["shape"] != [count, 1], (
            "expected a label for each row, (rows_local,); saw a column, "
            "(rows_local, 1). nearest.assignments.ravel() makes it flat."
        )
        because = "Look for the labels of `rows`."
        if len(each["values"]) == PIXELS:
            because = "They are of all pixels: a rank labels its own `rows`."
        assert each["shape"] == [count], (
            f"expected {count:,} labels on rank {rank}, one for each of its "
            f"rows; saw {each['kind']} of shape {tuple(each['shape'])}. "
            f"{because}"
        )
        labels = np.array(each["values"])
        assert each["dtype"] == "int32", (
            "expected labels of int32, like nearest.assignments; saw "
            f"{each['dtype']}. In TODO 4 rank 0 makes room for int32."
        )
        assert max(each["labelled"], default=count) <= count, (
            f"expected rank {rank} to label its own {count:,} rows; saw "
            f"{max(each['labelled']):,} labelled. Give the second d4p.kmeans "
            "your `rows` alone, or each rank does the work of all."
        )
        right = are_nearest(labels, pixels, fits[rank]["palette"])
        because = (
            "Is it `palette` that the labels belong to? It stays as it is "
            "with 0 iterations; with 1 it moves first."
        )
        if are_nearest(labels, pixels, fits[rank]["start"]) > 0.999:
            because = "They are those of `start`: compute(rows, palette)."
        elif len(set(labels.tolist())) == 1:
            because = "All are alike: nearest.assignments has them."
        elif are_nearest(labels[::-1], pixels, fits[rank]["palette"]) > 0.999:
            because = "They are in another order than the rows."
        assert right > 0.999, (
            f"expected the nearest colour of each row; saw it for {right:.1%} "
            f"of the rows of rank {rank}. {because}"
        )


def are_nearest(labels, pixels, palette):
    """For how many of these pixels the label is that of the nearest colour."""
    squares = distances(pixels, palette)  # (rows, k)
    if labels.min() < 0 or labels.max() >= squares.shape[1]:
        return 0.0
    own = squares[np.arange(len(labels)), labels]
    return np.mean(own <= squares.min(axis=1) + 1e-6)


def inertia_is_of_all(saw, fits, rows):
    """That rank 0 has the sum of the inertia of all ranks."""
    ranks = len(rows)
    assert isinstance(saw, float | int), (
        "expected the inertia as one number on rank 0, which writes it down; "
        f"saw {'nothing' if saw is None else saw}. "
        "float(nearest.objectiveFunction[0, 0]) is the number of one rank."
    )
    pixels = pixels_of_the_picture()
    start = np.array(fits[0]["start"])
    parts = [
        inertia_of(pixels[mine], fit["palette"])
        for mine, fit in zip(rows, fits, strict=True)
    ]
    wanted = sum(parts)
    before = inertia_of(pixels, lloyd(pixels, start, ITERATIONS - 1))

    def is_near(number):
        return abs(saw - number) < 1e-4 * abs(number)

    because = ""
    if is_near(wanted / ranks):
        because = (
            "That is the mean of the ranks: add up their inertia, and do not "
            "divide."
        )
    elif any(is_near(part) for part in parts):
        because = (
            "That is the inertia of one rank's rows: comm.allreduce adds up "
            "those of all."
        )
    elif is_near(inertia_of(pixels, start)):
        because = "That is the inertia of `start`: compute(rows, palette)."
    elif is_near(before):
        because = (
            "That is what the fit reports: the inertia one iteration before. "
            "The pass with 0 iterations says what it is now."
        )
    elif is_near(ranks * before):
        because = (
            f"That is what the fit reports, {ranks} times: it is of all ranks "
            "already, and of one iteration before."
        )
    elif is_near(ranks * wanted):
        because = f"That is the inertia of all ranks, {ranks} times."
    elif is_near(wanted / PIXELS):
        because = "That is the mean of the pixels: the inertia is their sum."
    elif any(is_near(wanted - part) for part in parts):
        because = "The inertia of one rank is missing."
    elif ranks == FEWER and saw < wanted:
        because = f"On {RANKS} ranks it is right: look for a 4 in it."
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
        "if rank == 0: all_labels = np.empty(n, np.int32); and then, on all "
        "ranks: comm.Gatherv(labels, (all_labels, sizes), root=0)",
    ],
)
def rank_0_has_the_whole_picture(job):
    """Rank 0 has a label for every pixel, in order, and paints them all."""
    saw = Watched(job)
    saw.rows()
    pieces = [each["values"] for each in saw.after("labels")]
    if "picture" not in saw.steps:
        for words, because in GATHERED_WRONGLY.items():
            assert words not in saw.said, (
                f"expected {PIXELS:,} labels on rank 0; saw the job fail: "
                f'"{words}". {because}'
            )
    labels_are_gathered(saw.after("picture")[0], pieces)
    saw = Watched(job, FEWER)
    pieces = [each["values"] for each in saw.after("labels")]
    assert "picture" in saw.steps, (
        f"expected the labels of {FEWER} ranks, too; saw the job fail, though "
        f"on {RANKS} it ends well. Is 4 written where `ranks` should stand?"
    )
    labels_are_gathered(saw.after("picture")[0], pieces)


def labels_are_gathered(found, pieces):
    """That rank 0 has the labels of all ranks, one behind the other."""
    ranks = len(pieces)
    count = len(found["values"])
    expected = [label for piece in pieces for label in piece]
    assert found["kind"] != "NoneType", (
        f"expected {PIXELS:,} labels on rank 0; saw nothing there. It is rank "
        "0 that paints: root=0, and what the call gives back is kept."
    )
    assert "pieces" not in found, (
        f"expected {PIXELS:,} labels on rank 0; saw {found['pieces']} arrays. "
        "comm.gather gives rank 0 a list of arrays: join them to one."
    )
    because = "Are they the labels of all ranks, each once?"
    if found["values"] == pieces[0]:
        because = "These are rank 0's own: those of the others are missing."
    elif count == PIXELS - len(pieces[-1]):
        because = "Those of the last rank are missing."
    elif count == PIXELS - len(pieces[0]):
        because = "Those of rank 0 itself are missing."
    elif not count:
        because = f"What is there is {a(found['kind'])}, without labels."
    assert count == PIXELS, (
        f"expected {PIXELS:,} labels on rank 0; saw {count:,}. {because}"
    )
    assert len(found["shape"]) == 1, (
        f"expected {PIXELS:,} labels in a row on rank 0; saw the shape "
        f"{tuple(found['shape'])}. .ravel() makes it flat."
    )
    assert found["dtype"][:3] in ("int", "uin"), (
        "expected whole numbers as labels; saw "
        f"{found['dtype']}. Has the room on rank 0 the same kind of number as "
        "`labels`, np.int32?"
    )
    saw = np.array(found["values"])
    right = np.mean(saw == expected)
    first = len(pieces[0])
    in_reverse = [label for piece in pieces[::-1] for label in piece]
    because = "Are the pieces in the order of the ranks?"
    if saw.tolist() == sorted(expected):
        because = "They are sorted: they must be in the order of the rows."
    elif saw.tolist() == in_reverse:
        because = (
            "Are the pieces in the order of the ranks? The last comes first."
        )
    elif saw.tolist() == expected[::-1]:
        because = "All are there, but from the last to the first."
    elif ranks == FEWER:
        because = f"On {RANKS} ranks they are right: look for a 4 in it."
    elif saw[:first].tolist() == pieces[0]:
        because = "Those of rank 0 are right, but not those of the others."
    elif saw[first:].tolist() == expected[first:]:
        because = "Those of the others are right, but not rank 0's own."
    elif saw.min() < 0 or saw.max() >= COLOURS:
        because = (
            "There are numbers of no colour among them: np.empty makes room "
            "only, and Gatherv fills it on the rank that is `root`."
        )
    assert right == 1, (
        "expected every pixel in its nearest colour; saw the right label for "
        f"{right:.1%} of them on rank 0. {because}"
    )
