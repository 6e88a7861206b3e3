"""What each TODO of 05_horovod is checked by: three steps on two ranks, and what each rank says of them."""

import tempfile

from scaleout.exercises import todo

BATCH = 230  # three steps of two ranks and a shorter one for 1,500 images, and no whole number for MNIST either
BRIEF = {"ranks": 2, "threads": 1, "batch_per_rank": BATCH, "epochs": 1, "schedule": "constant", "lr": 0.01}


def small_job(job, **more):
    """Runs the job on two ranks; the metrics of its one record."""
    run = job(**BRIEF, **more)
    saw = f"{len(run.records)}, one from each"
    assert len(run.records) == 1, f"expected one record, of two ranks; saw {saw}: TODO 1 comes first."
    return run.records["metrics"].iloc[0]


def per_rank(metrics, name):
    """What each of the two ranks said."""
    shares = [share[name] for share in metrics["shares"]]
    assert len(shares) == 2, f"expected word from two ranks; saw {len(shares)}: TODO 1 comes first."
    return shares


@todo(
    1,
    hints=[
        "Two ranks were started, and each believes that it is alone. Who can tell it better?",
        "Horovod wants one call before all others; then it knows the rank and the size of the world.",
        "hvd.init(); rank, ranks = hvd.rank(), hvd.size()",
    ],
)
def the_ranks_know_each_other(job):
    """Two ranks write one record, together."""
    metrics = small_job(job)
    per_rank(metrics, "steps")


@todo(
    2,
    hints=[
        "Each rank computes the gradient of its own images. Somebody has to bring them together before they are used.",
        "Horovod wraps the tape: what comes back has gradient(), like the one that goes in, and takes a compression.",
        "tape = hvd.DistributedGradientTape(tape, compression=compression)",
    ],
)
def gradients_are_averaged(job):
    """In the last step both ranks used the same gradient, bit for bit."""
    norms = per_rank(small_job(job), "norm")
    saw = f"{norms[0]:.6f} and {norms[1]:.6f}"
    assert norms[0] == norms[1], f"expected gradients of the same length on both ranks; saw {saw}."


@todo(
    3,
    hints=[
        "The ranks drew different weights. Equal gradients move them by equal steps, from different places.",
        "There is one call that gives all ranks the variables of one; `state` holds all that has to be the same.",
        "hvd.broadcast_variables(state, root_rank=0)",
    ],
)
def all_ranks_begin_equal(job):
    """Before the first step both ranks hold the same weights, bit for bit."""
    different = len(set(per_rank(small_job(job), "start")))
    assert different == 1, f"expected one start on both ranks; saw {different} different ones."


@todo(
    4,
    hints=[
        "In one step all ranks together see batch * ranks images. How many steps for n of them, rounded up?",
        "-(-a // b) is a / b, rounded up. Take care that the number is the same on every rank.",
        "steps = -(-n // (batch * ranks))",
    ],
)
def steps_are_divided_by_the_ranks(job):
    """An epoch has as many steps as two ranks need for all images, the same number on both."""
    metrics = small_job(job)
    wanted, saw = -(-metrics["images"] // (2 * BATCH)), per_rank(metrics, "steps")
    assert saw == [wanted, wanted], f"expected {wanted} steps on both ranks; saw {saw[0]} and {saw[1]}."


@todo(
    5,
    hints=[
        "A step averages over more images now. The batch that counts is that of all ranks together.",
        "batch * ranks images a step, where --lr is meant for BASE_BATCH of them.",
        "scale = batch * ranks / BASE_BATCH",
    ],
)
def the_learning_rate_is_scaled(job):
    """With two ranks the learning rate is that of twice the batch."""
    metrics = small_job(job)
    per_rank(metrics, "steps")
    wanted, saw = BRIEF["lr"] * 2 * BATCH / 32, metrics["learning_rates"][-1]
    assert abs(saw - wanted) < 1e-6, f"expected a learning rate of {wanted:g} for 2 x {BATCH} images; saw {saw:g}."


@todo(
    6,
    hints=[
        "`order` holds every image once. Deal it out: each rank takes its part, none is dealt twice or kept back.",
        "A slice with a step takes every second element; begin where your rank begins: order[first::every]",
        "mine = order[rank::ranks]",
    ],
)
def each_image_is_seen_once(job):
    """In an epoch two ranks have each image once between them."""
    metrics = small_job(job)
    per_rank(metrics, "steps")
    fewest, most = metrics["seen"]
    saw = f"some {fewest} times, some {most} times"
    assert fewest == most == 1, f"expected every image on one of the two ranks; saw {saw}."


@todo(
    7,
    hints=[
        "All ranks hold the same weights, so one file is enough. Who should write it?",
        "There is one rank in every world, however many there are: rank 0.",
        "keeps = rank == 0",
    ],
)
def one_rank_keeps_the_checkpoint(job):
    """Rank 0 alone keeps a checkpoint, and a job on one rank goes on from it."""
    with tempfile.TemporaryDirectory() as folder:
        wrote = per_rank(small_job(job, checkpoint=folder), "wrote")
        saw = " and ".join(str(len(names)) for names in wrote)
        assert [len(names) for names in wrote] == [1, 0], f"expected 1 checkpoint from rank 0 alone; saw {saw}."
        more = job(**BRIEF | {"ranks": 1, "epochs": 2}, checkpoint=folder)
    saw = len(more.records["metrics"].iloc[0]["accuracy"])
    assert saw == 1, f"expected one more epoch after the checkpoint of the first; saw {saw}."
