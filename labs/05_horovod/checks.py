"""What each TODO of 05_horovod is checked by: one small job on two ranks.

It trains for one epoch. The checks look at what the ranks put into the record
and at the file that they keep, never at the code.
"""

from scaleout import ScaleoutError, todo

# Three steps of two ranks and a shorter one. An odd number, so that one image
# is left over when you divide; and few, also where there is all of MNIST.
IMAGES = 1499
BATCH = 230
LR = 0.01
BASE_BATCH = 32
# MPICH then takes the two ranks for two machines: a local rank is no rank.
APART = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1", "SCALEOUT_IMAGES": str(IMAGES)}
BRIEF = {
    "ranks": 2,
    "threads": 1,
    "batch_per_rank": BATCH,
    "schedule": "constant",
    "lr": LR,
    "epochs": 1,
    "env": APART,
}


def metrics_of(run):
    """The metrics of the one record of two ranks."""
    assert len(run.records) == 1, (
        "expected one record, of two ranks; saw "
        f"{len(run.records)}, one from each: TODO 1 comes first."
    )
    metrics = run.records["metrics"].iloc[0]
    saw = len(metrics["shares"])
    assert saw == 2, (
        f"expected the shares of two ranks; saw {saw}: TODO 1 comes first."
    )
    return metrics


def per_rank(metrics, name):
    """What each of the two ranks said."""
    return [share[name] for share in metrics["shares"]]


@todo(
    1,
    hints=[
        "Two ranks were started, and each believes that it is alone. What "
        "can tell it that there are two?",
        "Horovod needs one call before all others. Then it knows the rank, "
        "and how many ranks there are.",
        "hvd.init(), then rank = hvd.rank() and ranks = hvd.size()",
    ],
)
def the_ranks_know_each_other(job):
    """Two ranks write one record, together."""
    try:
        run = job(**BRIEF)
    except ScaleoutError as failed:
        assert "by zero" not in str(failed), (
            "expected a job of 2 ranks; saw one that counts 0 of them. "
            "hvd.rank() says which rank this is, hvd.size() how many there "
            "are: are the two swapped?"
        )
        raise
    metrics_of(run)
    saw = run.records["ranks"].iloc[0]
    assert saw == 2, (
        f"expected a record of 2 ranks; saw one of {saw}. How many there are "
        "is no fixed number: hvd.size() knows it."
    )


@todo(
    2,
    hints=[
        "Each rank computes the gradient of its own images. All ranks should "
        "step by the average of these.",
        "Horovod wraps the tape: hvd.DistributedGradientTape takes it, and "
        "gives back one that averages.",
        "tape = hvd.DistributedGradientTape(tape)",
    ],
)
def gradients_are_averaged(job):
    """Both ranks step by one gradient."""
    try:
        norms = per_rank(metrics_of(job(**BRIEF)), "norm")
    except ScaleoutError as failed:
        assert "DistributedOptimizer(" not in str(failed), (
            "expected the tape to average; saw an optimizer in its place. "
            "Horovod's does not work with Keras 3: wrap `tape`."
        )
        raise
    assert norms[0] == norms[1], (
        "expected one gradient on both ranks, bit for bit; saw lengths of "
        f"{norms[0]:.6f} and {norms[1]:.6f}. Each rank steps by its own: is "
        "what hvd.DistributedGradientTape gives back kept in `tape`?"
    )


@todo(
    3,
    hints=[
        "The ranks begin with different weights. Equal steps do not make them "
        "equal.",
        "There is one call that gives all ranks the variables of one; "
        "`weights` holds all that has to be the same.",
        "hvd.broadcast_variables(weights, root_rank=0)",
    ],
)
def all_ranks_begin_equal(job):
    """Both ranks begin with the same weights."""
    try:
        start = per_rank(metrics_of(job(**BRIEF)), "start")
    except ScaleoutError as failed:
        assert "has no attribute 'assign'" not in str(failed), (
            "expected TensorFlow's variables to be sent; saw those of Keras, "
            "which Horovod cannot assign to. `weights` holds the `.value` of "
            "each."
        )
        waited = "#stalled-tensor" in str(failed)
        assert not (waited and "HorovodBroadcast" in str(failed)), (
            "expected both ranks to call hvd.broadcast_variables; saw one "
            "wait for the other. Rank 0 gives and the others take, so the "
            "call stands outside any `if rank == 0:`."
        )
        raise
    assert start[0] == start[1], (
        "expected the same weights on both ranks before the first step; saw "
        "different ones. Equal steps do not make them equal: are all of "
        "`weights` sent?"
    )


@todo(
    4,
    hints=[
        "In one step all ranks together see batch * ranks images. How many "
        "steps for n of them, rounded up?",
        "-(-a // b) is a / b, rounded up. Take care that the number is the "
        "same on every rank.",
        "steps = -(-n // (batch * ranks))",
    ],
)
def steps_are_divided_by_the_ranks(job):
    """An epoch has as many steps as two ranks need for all images."""
    metrics = metrics_of(job(**BRIEF))
    n = metrics["images"]
    wanted = -(-n // (2 * BATCH))
    saw = per_rank(metrics, "steps")
    because = ""
    if saw[0] == -(-n // BATCH):
        because = "That is what one rank alone would need."
    elif saw[0] == n // (2 * BATCH):
        because = "Rounded down, the last images of each epoch are never seen."
    elif saw[0] == -(-n // BATCH) // 2:
        because = "Divide before you round up."
    assert saw == [wanted, wanted], (
        f"expected {wanted} steps on both ranks, for {n:,} images and "
        f"{2 * BATCH} in a step; saw {saw[0]} and {saw[1]}. {because}"
    )


@todo(
    5,
    hints=[
        "A step averages over more images now. The batch that counts is that "
        "of all ranks together.",
        "batch * ranks images a step, where --lr is meant for BASE_BATCH of "
        "them.",
        "scale = batch * ranks / BASE_BATCH",
    ],
)
def the_learning_rate_is_scaled(job):
    """With two ranks the learning rate is that of twice the batch."""
    saw = metrics_of(job(**BRIEF))["learning_rates"][-1]
    wanted = LR * 2 * BATCH / BASE_BATCH
    reasons = {
        LR * BATCH / BASE_BATCH: "That is for the images of one rank.",
        LR * 2: "That counts the ranks alone: --lr is meant for BASE_BATCH "
        "images.",
        LR * 2 * BATCH: "Those are all images: --lr is meant for BASE_BATCH "
        "of them.",
        LR * (2 * BATCH // BASE_BATCH): "Divide by /, as // drops the "
        "fraction.",
        LR * BASE_BATCH / (2 * BATCH): "It is the other way round: more "
        "images, a higher rate.",
        LR * wanted: "`scale` is a factor: --lr itself comes in later.",
    }
    near = [why for rate, why in reasons.items() if abs(saw - rate) < 1e-6]
    assert abs(saw - wanted) < 1e-6, (
        f"expected a learning rate of {wanted:g} for 2 x {BATCH} images in a "
        f"step; saw {saw:g}. {' '.join(near)}"
    )


@todo(
    6,
    hints=[
        "`order` holds every image once. Deal it out: each rank takes its "
        "part, none is dealt twice or kept back.",
        "A slice with a step takes every second element; begin where your "
        "rank begins: order[first::every]",
        "mine = order[rank::ranks]",
    ],
)
def each_image_is_seen_once(job):
    """In an epoch two ranks have each image once between them."""
    try:
        metrics = metrics_of(job(**BRIEF))
    except ScaleoutError as failed:
        # What TensorFlow says of a convolution without images.
        assert "input depth must be" not in str(failed), (
            "expected images for each step of an epoch; saw a step "
            "without any. `mine` holds this rank's images of the whole epoch."
        )
        raise
    fewest, most = metrics["seen"]
    because = "Is an image left over when you divide?"
    if fewest == most:
        because = "Both ranks have all of them: start from `rank`."
    elif most > 1:
        because = "Do both ranks begin at the same image? Start from `rank`."
    assert fewest == most == 1, (
        "expected every image on one of the two ranks; saw some "
        f"{fewest} times, some {most} times. {because}"
    )
    dealt = metrics["dealt"]
    assert any(sorted(images) != list(images) for images in dealt), (
        "expected images in the random order of each epoch; saw rank 0 begin "
        f"with {dealt[0][:3]}: they are not shuffled. Take them from `order`."
    )


@todo(
    7,
    hints=[
        "All ranks hold the same weights, so one file is enough. Who should "
        "write it?",
        "There is one rank that every job has, however many ranks: rank 0.",
        "keeps = rank == 0",
    ],
)
def one_rank_keeps_the_network(job):
    """Rank 0 alone keeps the trained network."""
    run = job(**BRIEF)
    wrote = [len(names) for names in per_rank(metrics_of(run), "wrote")]
    because = ""
    if wrote == [0, 0]:
        because = "Nobody keeps one."
    elif wrote == [1, 1]:
        because = "Two ranks write one file at once."
    elif wrote == [0, 1]:
        because = (
            "The last rank has another number in every job: rank 0 has the "
            "same."
        )
    assert wrote == [1, 0], (
        "expected 1 file from rank 0 and none from rank 1; saw "
        f"{wrote[0]} and {wrote[1]}. {because}"
    )
    kept = [file.name for file in run.folder.glob("*.npz")]
    assert kept == ["checkpoint-000001.npz"], (
        f"expected the network in one file beside the record; saw {kept}."
    )
