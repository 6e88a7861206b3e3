"""What each TODO of 09_networks is checked by: small jobs, small networks.

All of them stand in ddp.py, which needs PyTorch (`make torch`); instruments.py
notes what each of its ranks did. All run on two ranks, and on three once that
is right. The checks look at the record and at the checkpoint, never at the
code, and never at how long anything took.
"""

import math
import re
import tempfile
from collections import Counter

from scaleout import ScaleoutError, todo

WORDS = {2: "two", 3: "three"}
TWO_IS_WRITTEN = "2 is written where the number of ranks should stand: "
UNLIKE = ("They are not alike. `rank` is the number of this one; `ranks` is "
          "how many there are.")

# 519 images do not divide by two; on three ranks each has three steps.
IMAGES = 519
EPOCHS = 2
LR = 0.01
BASE_BATCH = 32
FOLDERS = [tempfile.TemporaryDirectory(prefix="scaleout-check-")
           for _ in range(2)]
TWO = {
    "script": "instruments.py",
    "threads": 1,
    "env": {"SCALEOUT_IMAGES": str(IMAGES)},
    "ranks": 2,
    "batch_per_rank": 130,
    "epochs": EPOCHS,
    "schedule": "constant",
    "lr": LR,
    "checkpoint": FOLDERS[0].name,
}
THREE = TWO | {
    "ranks": 3,
    "batch_per_rank": 60,
    "epochs": 3,
    "seed": 1,
    "checkpoint": FOLDERS[1].name,
}
in_ddp = {"script": "ddp.py", "needs": "torch"}


def why(saw, reasons):
    """The reason for a number: that of the first slip which gives it."""
    return next((reason for reason, *numbers in reasons
                 if any(math.isclose(saw, number) for number in numbers)), "")


def listed(numbers):
    """2, 3 and 4."""
    *others, last = map(str, numbers)
    return ", ".join(others) + f" and {last}"


def apart(run):
    """What is wrong with who wrote the record, if anything."""
    ranks, records = run.ranks, run.records
    if len(records) == 0:
        return ("expected a record, written by rank 0; saw none that could "
                "be read. dist.get_rank() counts from 0, and "
                "dist.get_world_size() knows how many ranks there are.")
    saw = int(records["ranks"].iloc[0])
    wanted = f"expected one record, of {WORDS[ranks]} ranks; saw "
    if len(records) > 1:
        return (f"{wanted}{len(records)}: so many take themselves for rank "
                "0. dist.get_rank() tells each its own number; a local rank "
                "counts within its machine.")
    if len(records["metrics"].iloc[0]["shares"]) != ranks:
        return (f"{wanted}one of rank 0 alone: they have not met. "
                'dist.init_process_group("gloo") comes first.')
    if saw != ranks:
        fixed = TWO_IS_WRITTEN if ranks == 3 and saw == 2 else ""
        return f"{wanted}one of {saw}. {fixed}dist.get_world_size() knows it."
    return ""


def metrics_of(run):
    """The metrics of the one record of all ranks."""
    wrong = apart(run)
    assert not wrong, f"{wrong} TODO 1 comes first."
    return run.records["metrics"].iloc[0]


def per_rank(metrics, name):
    """What each rank said."""
    return [share[name] for share in metrics["shares"]]


def in_epochs(metrics):
    """The images of each epoch: a list for each rank, in its order."""
    many = len(metrics["accuracy"])
    return [[sum(steps[len(steps) * epoch // many:
                       len(steps) * (epoch + 1) // many], [])
             for steps in per_rank(metrics, "rows")]
            for epoch in range(many)]


def ended(job, how):
    """The job; what is wrong is told if a sampler refuses a rank's number."""
    try:
        return job(**how)
    except ScaleoutError as failed:
        said = re.search(r"Invalid rank .*?\]", str(failed))
        because = ("Are `rank` and `ranks` swapped, in TODO 1 or in TODO 2? "
                   "The first rank is 0.")
        if how["ranks"] == 3:
            because = TWO_IS_WRITTEN + "`ranks` knows it."
        assert not said, (
            "expected a sampler that takes each rank's number; saw it say "
            f"{said[0]}. {because}"
        )
        raise


@todo(
    1,
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
    for how in (TWO, THREE):
        wrong = apart(ended(job, how))
        assert not wrong, wrong


@todo(
    2,
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
    orders = []
    for how in (TWO, THREE):
        metrics = metrics_of(ended(job, how))
        wrong = not_dealt(metrics, how["ranks"])
        assert not wrong, wrong
        first = in_epochs(metrics)[0]
        mine = first[0]
        assert sorted(mine) != mine, (
            "expected images in a random order; saw rank 0 begin with "
            f"{mine[0]}, {mine[1]}, {mine[2]}: they are not shuffled. Leave "
            "shuffle as it is, and hand the seed on by its name, "
            "seed=args.seed."
        )
        assert any(max(part) - min(part) >= len(set(part))
                   for part in first), (
            "expected rank 0 to have images from everywhere, as cards are "
            f"dealt; saw only some between {min(mine)} and {max(mine)}, of "
            f"{IMAGES}. Is it a block of its own, the same in each epoch? "
            "DistributedSampler deals all of them anew."
        )
        orders.append(sum(zip(*first, strict=False), ()))
    # As many as both jobs deal out before any image comes again.
    assert orders[0][:IMAGES] != orders[1][:IMAGES], (
        "expected another order with --seed 1 than with --seed 0; saw the "
        "same. The sampler draws it from what it is told by seed=args.seed."
    )


def not_dealt(metrics, ranks):
    """What is wrong if some image is on no rank, or on several; else ''.

    Where the images do not divide, the sampler fills up with the first.
    """
    for parts in in_epochs(metrics):
        times = Counter(sum(parts, []))
        lost = IMAGES - len(times)
        often = sum(1 for n in times.values() if n > 1)
        if lost or often > -IMAGES % ranks:
            return (f"expected each of {IMAGES} images on one of the "
                    f"{WORDS[ranks]} ranks in an epoch; saw {lost} on none, "
                    f"and {often} more than once. "
                    + why_not_dealt(metrics, parts, ranks, lost))
    return ""


def why_not_dealt(metrics, parts, ranks, lost):
    """What has gone wrong with the parts of the ranks."""
    size = len(parts[0])
    if all(len(set(part)) == IMAGES for part in parts):
        return "Each rank has all of them: say how many ranks there are."
    if ranks == 3 and size == -(-IMAGES // 2):
        return TWO_IS_WRITTEN + "`ranks` knows it."
    if all(set(part) == set(parts[0]) for part in parts):
        return "They take the same part: each says its own rank."
    if size == -(-IMAGES // (ranks + 1)):
        return "There is one part more than there are ranks."
    if unlike(metrics, "seed"):
        return "All ranks draw the order from the same seed."
    if unlike(metrics, "told"):
        return "The ranks told their samplers unlike epochs: TODO 5 is first."
    if lost < ranks:
        return "What is left over is dropped, by drop_last or by //."
    return "Each rank takes its own part of one order, which all share."


def unlike(metrics, name):
    """Whether the ranks said unlike things."""
    return len(set(map(str, per_rank(metrics, name)))) > 1


@todo(
    3,
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
    for how in (TWO, THREE):
        metrics = metrics_of(job(**how))
        assert unlike(metrics, "drawn"), (
            "expected ranks that draw different weights, or this check would "
            "prove nothing; saw equal ones. Leave the seeds as they were."
        )
        assert not unlike(metrics, "start"), (
            "expected the weights of rank 0 on all ranks before the first "
            "step; saw different ones. DistributedDataParallel(model) hands "
            "them out."
        )
        because = ("They began equal, so the gradients were not averaged. Is "
                   "what DistributedDataParallel gives back kept in `model`? "
                   "Only that averages them.")
        if unlike(metrics, "rates"):
            because = "The learning rates are unlike: TODO 4 comes first."
        assert not unlike(metrics, "end"), (
            "expected equal weights on all ranks in the end, bit for bit; "
            f"saw different ones. {because}"
        )
    # Three ranks take the steps of one that has all their images.
    one = job(**THREE | {
        "ranks": 1,
        "batch_per_rank": 3 * THREE["batch_per_rank"],
        "schedule": "none",
        "lr": metrics["learning_rates"][0],
        "checkpoint": None,
    }).records["metrics"].iloc[0]
    together = [sorted(sum(parts, [])) for parts
                in zip(*per_rank(metrics, "rows"), strict=False)]
    if together != [sorted(rows) for rows in per_rank(one, "rows")[0]]:
        return  # TODO 2 or 5 is to blame
    wanted, saw = one["losses"][0], metrics["losses"][0]
    assert math.isclose(wanted, saw, rel_tol=0.01), (
        "expected three ranks to take the steps of one that has all their "
        f"images, to a loss of {wanted:.4f}; saw {saw:.4f}. A mean is asked "
        "for: are the gradients added up, and not divided?"
    )


@todo(
    4,
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
    before = None
    for how in (TWO, THREE):
        ranks, batch = how["ranks"], how["batch_per_rank"]
        rates = [each[-1] for each
                 in per_rank(metrics_of(job(**how)), "rates")]
        saw, images = rates[0], batch * ranks
        wanted, one = LR * images / BASE_BATCH, LR * batch / BASE_BATCH
        because = why(saw, [
            ("Each rank has a batch: multiply it by the ranks.",
             one, one / ranks, LR * (batch + ranks) / BASE_BATCH),
            ("--lr is meant for BASE_BATCH images: divide all those of a "
             "step by it.", LR * ranks, LR * images, LR * batch),
            ("Divide by /, as // drops the fraction.",
             LR * (images // BASE_BATCH), LR * (batch // BASE_BATCH) * ranks),
            ("It is the other way round: more images, a higher rate.",
             LR * BASE_BATCH / images),
            ("`scale` is a factor: --lr itself comes in later.", LR * wanted),
            ("The rate grows as the images do, not as their root.",
             LR * math.sqrt(images / BASE_BATCH)),
            ("It is --lr as it stands.", LR),
        ])
        if len(set(rates)) > 1:
            because = UNLIKE
        elif ranks == 3 and math.isclose(saw, 2 * one):
            because = TWO_IS_WRITTEN + "`ranks` knows it."
        elif ranks == 3 and math.isclose(saw, before):
            because = "That is the rate of two ranks: a number is written."
        assert all(abs(rate - wanted) < 1e-6 for rate in rates), (
            f"expected a learning rate of {wanted:g} for {ranks} x {batch} "
            f"images in a step; saw {listed(f'{rate:g}' for rate in rates)}. "
            f"{because}"
        )
        before = saw


@todo(
    5,
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
    for how in (TWO, THREE):
        metrics = metrics_of(job(**how))
        orders = [parts[0] for parts in in_epochs(metrics)]
        again = [order for order in orders if orders.count(order) > 1]
        assert not again, (
            f"expected another order in each of {WORDS[len(orders)]} epochs; "
            f"saw rank 0 begin with image {again[0][0]} twice. The sampler "
            "wants to be told which epoch it is."
        )
        because = "They were told the same epochs: TODO 2 comes first."
        if unlike(metrics, "told") and not unlike(metrics, "seed"):
            because = "Tell all ranks the same number."
        assert not not_dealt(metrics, how["ranks"]), (
            "expected one order, which all ranks share; saw unlike ones, with "
            f"images left out. {because}"
        )
    known = [parts[0] for parts in in_epochs(metrics_of(job(**TWO)))]
    more = in_epochs(metrics_of(job(**TWO | {"epochs": EPOCHS + 1})))
    assert len(more) > 1 or more[0][0] not in known, (
        "expected another order in the epoch after a checkpoint; saw the one "
        "of an epoch before it. Epochs are counted on from there: `epoch` "
        "has the number."
    )


@todo(
    6,
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
    for how in (TWO, THREE):
        wrote = [len(names) for names
                 in per_rank(metrics_of(job(**how)), "wrote")]
        writers = sum(map(bool, wrote))
        because = ("One after each epoch: a job that is cut short goes on "
                   "from the last.")
        if writers == 0:
            because = "Nobody keeps one."
        elif writers > 1:
            because = (f"{WORDS[writers].capitalize()} ranks write one file "
                       "at once: rank 0 is enough.")
        elif wrote[0] == 0:
            because = "Every job has a rank 0: let that one keep it."
        wanted = [how["epochs"]] + [0] * (how["ranks"] - 1)
        assert wrote == wanted, (
            f"expected {listed(wanted)} checkpoints from the "
            f"{WORDS[how['ranks']]} ranks, one an epoch from rank 0; saw "
            f"{listed(wrote)}. {because}"
        )
    more = metrics_of(job(**TWO | {"epochs": EPOCHS + 1}))
    saw = len(more["accuracy"])
    assert saw == 1 and not unlike(more, "end"), (
        "expected 1 more epoch after the checkpoint of 2, and equal weights "
        f"on both ranks; saw {saw}. Is TODO 3 done?"
    )
