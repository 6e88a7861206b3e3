"""What each TODO of 09_networks is checked by: small jobs, small networks.

TODO 4 to 9 stand in ddp.py, which needs PyTorch
(`make torch`). The checks look at what the ranks put into the record and at
the checkpoint, never at the code, and never at how long anything took.
"""

import math
import tempfile

from scaleout import todo

EFFECTIVE = 12
# 1,500 images are three steps of two ranks and a shorter one. For MNIST it is
# no whole number of steps either.
BATCH = 230
EPOCHS = 2
LR = 0.01
BASE_BATCH = 32
DDP = {
    "ranks": 2,
    "threads": 1,
    "batch_per_rank": BATCH,
    "schedule": "constant",
    "lr": LR,
}
FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")
in_ddp = {"script": "ddp.py", "needs": "torch"}


def trained(job):
    """A few steps of two ranks: the one record."""
    run = job(ranks=2, threads=1, batch=EFFECTIVE, warmup=1, steps=3)
    return run.records.iloc[0]


@todo(
    1,
    hints=[
        "Two ranks take a step together. How many images does that step see, "
        "and how many were asked for?",
        "args.batch counts the images of all ranks. Each rank has its share.",
        "batch = args.batch // ranks",
    ],
)
def the_effective_batch_stays(job):
    """Two ranks share the images of a step: together they have --batch."""
    record = trained(job)
    saw = record["batch_per_rank"]
    because = ""
    if saw == EFFECTIVE:
        because = "Each rank takes all of them, so a step has twice as many."
    elif saw == EFFECTIVE * 2:
        because = "It is the other way round: more ranks, fewer on each."
    elif saw in (1, 2):
        because = "Those are ranks. How many images has each of them?"
    assert saw == EFFECTIVE // 2, (
        f"expected {EFFECTIVE // 2} images on each of two ranks with --batch "
        f"{EFFECTIVE}; saw {saw:g}. {because}"
    )


@todo(
    2,
    hints=[
        "Copies that share nothing lose nothing. What is left of their rate "
        "when the ranks train together?",
        "A share: the rate of the ranks together, over that of the copies.",
        "efficiency = rate / copies_rate",
    ],
)
def efficiency_is_against_copies(job):
    """Efficiency is the rate together over that of independent copies."""
    record = trained(job)
    rate = record["rate"]
    copies = record["metrics.copies_rate"]
    saw = record["metrics.efficiency"]
    because = ""
    if saw == 1.0:
        because = "It is written there, not measured."
    elif math.isclose(saw, copies / rate):
        because = "It is the other way round."
    elif math.isclose(saw, rate / copies / 2):
        because = "copies_rate is the rate of both copies already."
    elif math.isclose(saw, 100 * rate / copies):
        because = "A share, not per cent."
    elif math.isclose(saw, rate - copies):
        because = "That is a difference: divide."
    assert math.isclose(saw, rate / copies), (
        f"expected an efficiency of {rate / copies:.4f}, from {rate:.1f} "
        f"images/s together and {copies:.1f} of two copies; saw {saw:.4f}. "
        f"{because}"
    )


@todo(
    3,
    hints=[
        "How many images are trained in a second, and how much arithmetic is "
        "there in one image?",
        "images/s times operations per image are operations per second.",
        "flops_per_s = rate * flops",
    ],
)
def arithmetic_is_counted(job):
    """Multiplications and additions in a second: rate times those of one."""
    record = trained(job)
    rate = record["rate"]
    one = record["metrics.flops_per_image"]
    saw = record["metrics.flops_per_s"]
    because = ""
    if math.isclose(saw, rate):
        because = "Those are images in a second."
    elif math.isclose(saw, one):
        because = "That is the arithmetic of one image."
    elif math.isclose(saw * one, rate) or math.isclose(saw * rate, one):
        because = "Multiply: images/s times operations per image."
    elif math.isclose(saw, record["metrics.copies_rate"] * one):
        because = "That is the rate of independent copies: take `rate`."
    elif math.isclose(saw * 1e9, rate * one):
        because = "Leave the 1e9 out: what is printed divides by it later."
    elif math.isclose(saw * 2, rate * one):
        because = "Those are one rank's images: `rate` counts those of both."
    assert math.isclose(saw, rate * one), (
        f"expected {rate * one:.4g} operations in a second, {rate:.1f} images "
        f"of {one:.4g} each; saw {saw:.4g}. {because}"
    )


def first_job(job):
    """Two epochs on two ranks, with a checkpoint."""
    return metrics_of(job(**DDP, epochs=EPOCHS, checkpoint=FOLDER.name))


def metrics_of(run):
    """The metrics of the one record of two ranks."""
    assert len(run.records) > 0, (
        "expected a record, written by rank 0; saw none. Is no rank's number "
        "0? dist.get_rank() knows it: TODO 4 comes first."
    )
    assert len(run.records) == 1, (
        "expected one record, of two ranks; saw "
        f"{len(run.records)}, one from each: TODO 4 comes first."
    )
    metrics = run.records["metrics"].iloc[0]
    saw = len(metrics["shares"])
    assert saw == 2, (
        f"expected the shares of two ranks; saw {saw}: TODO 4 comes first."
    )
    return metrics


def per_rank(metrics, name):
    """What each of the two ranks said."""
    return [share[name] for share in metrics["shares"]]


@todo(
    4,
    hints=[
        "Two ranks were started, and each believes that it is alone.",
        "dist.init_process_group takes the name of a backend. After it, dist "
        "knows the rank and the size of the world.",
        'dist.init_process_group("gloo"), then rank = dist.get_rank() and '
        "ranks = dist.get_world_size()",
    ],
    **in_ddp,
)
def the_ranks_know_each_other(job):
    """Two ranks write one record, together."""
    run = job(**DDP, epochs=EPOCHS, checkpoint=FOLDER.name)
    metrics_of(run)
    saw = run.records["ranks"].iloc[0]
    assert saw == 2, (
        f"expected a record of 2 ranks; saw one of {saw}. How many there are "
        "is no fixed number: dist.get_world_size() knows it."
    )


@todo(
    5,
    hints=[
        "The sampler holds every image once. It deals them out: which part "
        "is this rank's, of how many?",
        "DistributedSampler takes the data, then the number of ranks, then "
        "this rank.",
        "sampler = DistributedSampler(digits, ranks, rank, seed=args.seed)",
    ],
    **in_ddp,
)
def each_image_is_seen_once(job):
    """In an epoch two ranks have each image once between them."""
    metrics = first_job(job)
    fewest, most = metrics["seen"]
    because = "Is an image left over: more parts than ranks?"
    if fewest == most:
        because = "Both ranks have all of them: say how many ranks there are."
    elif most > EPOCHS:
        because = (
            "Do both ranks take the same part? Each says its own rank, and "
            "all draw the order from the same seed."
        )
    assert fewest == most == EPOCHS, (
        f"expected every image once in each of {EPOCHS} epochs, on one of "
        f"the two ranks; saw some {fewest} times in all, some {most} times. "
        f"{because}"
    )
    half = metrics["images"] / 2
    mine = [*metrics["dealt"][0], *metrics["firsts"]]
    assert min(mine) < half <= max(mine), (
        "expected rank 0 to have images from everywhere, as cards are dealt; "
        f"saw only some between {min(mine)} and {max(mine)}, of "
        f"{metrics['images']}. Is it a block of its own, the same in each "
        "epoch? DistributedSampler deals all of them anew."
    )


@todo(
    6,
    hints=[
        "Each rank has drawn weights of its own, and computes the gradient "
        "of its own images.",
        "DistributedDataParallel takes the model and gives back one that "
        "begins and stays equal on all ranks.",
        "model = DistributedDataParallel(model)",
    ],
    **in_ddp,
)
def the_weights_are_equal(job):
    """Ranks draw unequal weights, begin and end equal, bit for bit."""
    metrics = first_job(job)
    drawn = per_rank(metrics, "drawn")
    start = per_rank(metrics, "start")
    end = per_rank(metrics, "end")
    assert drawn[0] != drawn[1], (
        "expected ranks that draw different weights, or this check would "
        "prove nothing; saw equal ones. Leave the seeds as they were."
    )
    assert start[0] == start[1], (
        "expected the weights of rank 0 on both ranks before the first step; "
        "saw different ones. DistributedDataParallel(model) hands them out."
    )
    assert end[0] == end[1], (
        "expected equal weights on both ranks after two epochs, bit for bit; "
        "saw different ones. They began equal, so the gradients were not "
        "averaged. Is what DistributedDataParallel gives back kept in "
        "`model`? Only that averages them."
    )


@todo(
    7,
    hints=[
        "A step averages over more images now. The batch that counts is that "
        "of all ranks together.",
        "batch * ranks images a step, where --lr is meant for BASE_BATCH of "
        "them.",
        "scale = batch * ranks / BASE_BATCH",
    ],
    **in_ddp,
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
    8,
    hints=[
        "A sampler that is told nothing draws the same order in each epoch.",
        "DistributedSampler has a method for it. Call it with the number of "
        "the epoch.",
        "sampler.set_epoch(epoch)",
    ],
    **in_ddp,
)
def each_epoch_has_another_order(job):
    """The order changes with the epoch, and all ranks share it."""
    metrics = first_job(job)
    firsts = metrics["firsts"]  # the first image of each step of rank 0
    steps = len(firsts) // EPOCHS
    assert firsts[:steps] != firsts[steps:], (
        "expected another order in the second epoch; saw rank 0 begin with "
        f"image {firsts[0]} in both. The sampler wants to be told which epoch "
        "it is."
    )
    fewest, most = metrics["seen"]
    assert fewest == most == EPOCHS, (
        "expected one order, which both ranks share; saw some images "
        f"{fewest} times in {EPOCHS} epochs, some {most} times. Tell all "
        "ranks the same number. (Or is it TODO 5?)"
    )


@todo(
    9,
    hints=[
        "All ranks hold the same weights, so one file is enough. Who should "
        "write it?",
        "There is one rank that every job has, however many ranks: rank 0.",
        "keeps = rank == 0",
    ],
    **in_ddp,
)
def one_rank_keeps_the_checkpoint(job):
    """Rank 0 alone keeps the checkpoint, and all ranks go on from it."""
    wrote = [len(names) for names in per_rank(first_job(job), "wrote")]
    because = ""
    if wrote == [0, 0]:
        because = "Nobody keeps one."
    elif wrote == [2, 2]:
        because = "Two ranks write one file at once."
    elif wrote == [0, 2]:
        because = (
            "The last rank has another number in every job: rank 0 has the "
            "same."
        )
    assert wrote == [2, 0], (
        "expected 2 checkpoints from rank 0, one an epoch, and none from rank "
        f"1; saw {wrote[0]} and {wrote[1]}. {because}"
    )
    more = metrics_of(job(**DDP, epochs=3, checkpoint=FOLDER.name))
    saw = len(more["accuracy"])
    assert saw == 1, (
        f"expected 1 more epoch after the checkpoint of 2; saw {saw}."
    )
    end = per_rank(more, "end")
    assert end[0] == end[1], (
        "expected equal weights on both ranks after the checkpoint; saw "
        "different ones."
    )
