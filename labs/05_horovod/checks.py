"""What each TODO of 05_horovod is checked by: three small jobs on two ranks.

The first trains for one epoch and keeps a checkpoint, the second goes on from
it, the third sends its gradients in half precision. The checks look at what
the ranks put into the record and at the checkpoint, never at the code.
"""

import tempfile
from pathlib import Path

import numpy as np

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
    "env": APART,
}
# Ranks that wait for each other in vain are told so sooner than in the lab.
IMPATIENT = {
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "4",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "10",
}
FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")


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


def first_job(job):
    """One epoch on two ranks, with a checkpoint at its end."""
    return metrics_of(job(**BRIEF, epochs=1, checkpoint=FOLDER.name))


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
        run = job(**BRIEF, epochs=1, checkpoint=FOLDER.name)
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
        "Horovod wraps the tape: hvd.DistributedGradientTape takes the tape, "
        "and how gradients are to be sent.",
        "tape = hvd.DistributedGradientTape(tape, compression=compression)",
    ],
)
def gradients_are_averaged(job):
    """Both ranks step by one gradient, and --fp16 sends it as half bytes."""
    try:
        norms = per_rank(first_job(job), "norm")
    except ScaleoutError as failed:
        assert "does not support functions" not in str(failed), (
            "expected the tape to take `compression`; saw it taken for the "
            "name of a device, which stands second in that call. Give it by "
            "name: compression=..."
        )
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
    halved = per_rank(metrics_of(job(**BRIEF, epochs=1, fp16=True)), "norm")
    assert halved[0] != norms[0], (
        "expected a slightly different gradient with --fp16, which sends half "
        "the bytes; saw the same, bit for bit. The tape must be told of "
        "`compression`."
    )


@todo(
    3,
    hints=[
        "The ranks begin with different weights. Equal steps do not make them "
        "equal.",
        "There is one call that gives all ranks the variables of one; `state` "
        "holds all that has to be the same.",
        "hvd.broadcast_variables(state, root_rank=0)",
    ],
)
def all_ranks_begin_equal(job):
    """Both ranks begin with one state, also after a checkpoint."""
    try:
        start = per_rank(first_job(job), "start")
    except ScaleoutError as failed:
        assert "has no attribute 'assign'" not in str(failed), (
            "expected TensorFlow's variables to be sent; saw those of Keras, "
            "which Horovod cannot assign to. `state` holds the `.value` of "
            "each, and the momentum and `epochs_done` too."
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
        "different ones. Equal steps do not make them equal."
    )
    try:
        again = {**BRIEF, "env": {**APART, **IMPATIENT}}
        more = metrics_of(job(**again, epochs=2, checkpoint=FOLDER.name))
    except ScaleoutError as failed:
        waited = "#stalled-tensor" in str(failed)
        assert not waited, (
            "expected both ranks to go on from the checkpoint with epoch 2; "
            "saw one wait for the other, which had another number of epochs "
            "left. Do all ranks get `epochs_done`? It is in `state`."
        )
        raise
    start = per_rank(more, "start")
    assert start[0] == start[1], (
        "expected one state on both ranks after the checkpoint; saw "
        "different ones, as only rank 0 has read it. The momentum must be "
        "handed on too: it is in `state`."
    )
    saw = len(more["accuracy"])
    assert saw == 1, (
        f"expected 1 more epoch after the checkpoint of the first; saw {saw}. "
        "Rank 0 has read the checkpoint, so its state is the one to hand on."
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
    metrics = first_job(job)
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
    saw = first_job(job)["learning_rates"][-1]
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
        metrics = first_job(job)
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
def one_rank_keeps_the_checkpoint(job):
    """Rank 0 alone keeps a checkpoint, of one whole epoch."""
    wrote = [len(names) for names in per_rank(first_job(job), "wrote")]
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
        "expected 1 checkpoint from rank 0 and none from rank 1; saw "
        f"{wrote[0]} and {wrote[1]}. {because}"
    )
    with np.load(Path(FOLDER.name, "checkpoint-000001.npz")) as kept:
        done = int(kept["arr_0"])
    assert done == 1, f"expected a checkpoint of 1 epoch; saw {done}."
