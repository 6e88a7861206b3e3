"""What each TODO of 09_networks is checked by: small jobs, small networks.

For TODO 1 to 3 instruments.py runs the steps of runme.py with a network that
sleeps. TODO 4 to 9 stand in ddp.py, which needs PyTorch (`make torch`);
instruments.py runs it, too, and notes what each rank did. All of them run on
two ranks, and on three once that is right. The checks look at what the ranks
put into the record and at the checkpoint, never at the code, and never at how
long anything took.
"""

import math
import tempfile
from collections import Counter

from scaleout import ScaleoutError, todo

EFFECTIVE = 24
DEFAULT = 32  # what --batch is unless somebody says it
WORDS = {2: "two", 3: "three"}
TWO_IS_WRITTEN = "2 is written where the number of ranks should stand: "

# 519 images do not divide by two; on three ranks each has three steps.
IMAGES = 519
EPOCHS = 2
LR = 0.01
BASE_BATCH = 32
FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")
OTHER_FOLDER = tempfile.TemporaryDirectory(prefix="scaleout-check-")
DDP = {
    "script": "instruments.py",
    "ddp": True,
    "threads": 1,
    "env": {"SCALEOUT_IMAGES": str(IMAGES)},
}
TWO = DDP | {
    "ranks": 2,
    "batch_per_rank": 130,
    "epochs": EPOCHS,
    "schedule": "constant",
    "lr": LR,
    "checkpoint": FOLDER.name,
}
THREE = TWO | {
    "ranks": 3,
    "batch_per_rank": 60,
    "epochs": 3,
    "seed": 1,
    "checkpoint": OTHER_FOLDER.name,
}
in_ddp = {"script": "ddp.py", "needs": "torch"}


def trained(job, ranks):
    """A few steps of two ranks or three: the one record."""
    run = job(script="instruments.py", ranks=ranks, threads=1,
              batch=EFFECTIVE, warmup=1, steps=3)
    return run.records.iloc[0]


def why(saw, reasons):
    """The reason for a number: that of the first slip which gives it."""
    for number, reason in reasons:
        if math.isclose(saw, number):
            return reason
    return ""


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
    for ranks in (2, 3):
        try:
            shares = trained(job, ranks)["metrics.shares"]
        except ScaleoutError as failed:
            because = why_not_a_number(failed)
            assert not because, (
                f"expected {EFFECTIVE // ranks} images on each of "
                f"{WORDS[ranks]} ranks with --batch {EFFECTIVE}; {because}"
            )
            raise
        # The loss of the network that sleeps: its images.
        saw = [round(share["loss"]) for share in shares]
        wanted = EFFECTIVE // ranks
        because = why(saw[0], [
            (EFFECTIVE, "Each rank takes all of them, so a step has "
             f"{WORDS[ranks]} times as many."),
            (EFFECTIVE * ranks, "It is the other way round: more ranks, "
             "fewer on each."),
            (ranks, "Those are ranks. How many images has each of them?"),
            (EFFECTIVE % ranks, "That is what is left over when you divide: "
             "// gives each rank's share, % the rest."),
            (DEFAULT // ranks, f"That is of {DEFAULT}, whatever was asked "
             "for: args.batch knows it."),
            (DEFAULT, f"That is the {DEFAULT} of a job that says no --batch: "
             "divide args.batch."),
            (wanted + 1, "That is one too many."),
            (wanted - 1, "That is one too few."),
            (EFFECTIVE - ranks, "The ranks are taken away: divide by them."),
            (EFFECTIVE // (ranks + 1), f"`ranks` is {ranks} here: divide by "
             "it, and by no more."),
        ])
        if len(set(saw)) > 1:
            because = ("They are not alike. `rank` is the number of this "
                       "one; `ranks` is how many there are.")
        elif ranks == 3 and saw[0] == EFFECTIVE // 2:
            because = TWO_IS_WRITTEN + "`ranks` knows it."
        listed = ", ".join(map(str, saw[:-1])) + f" and {saw[-1]}"
        assert saw == [wanted] * ranks, (
            f"expected {wanted} images on each of {WORDS[ranks]} ranks with "
            f"--batch {EFFECTIVE}; saw {listed}. {because}"
        )


def why_not_a_number(failed):
    """What stopped the job, if it was a number of images that is none."""
    said = str(failed)
    if "batch = " in said and "ZeroDivisionError" in said:
        return ("saw a division by 0. `rank` is 0 on the first one: `ranks` "
                "is how many there are.")
    if "'float' object cannot be interpreted as an integer" in said:
        return "saw a fraction. / gives one, also where it is even: take //."
    if "made_up(" in said and "negative dimensions" in said:
        return "saw fewer than none. Divide args.batch by `ranks`."
    return ""


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
    for ranks in (2, 3):
        record = trained(job, ranks)
        rate = record["rate"]
        copies = record["metrics.copies_rate"]
        saw = float(record["metrics.efficiency"])
        share = rate / copies
        steps = record["step_s"]
        copies_steps = record["metrics.copies_s"]
        because = why(saw, [
            (1.0, "It is written there, not measured; or cut off at 1, as // "
             "does: these ranks are faster together."),
            (1 / share, "It is the other way round."),
            (share / ranks, "copies_rate is the rate of "
             + ("both copies" if ranks == 2 else "all copies") + " already."),
            (share * ranks, "`rate` counts the images of all ranks already, "
             "and so does copies_rate."),
            (100 * share, "A share, not per cent."),
            (rate - copies, "That is a difference: divide."),
            (copies - rate, "That is a difference: divide."),
            (1 - share, "That is what gets lost. Asked is what is left: "
             "without the 1."),
            (share - 1, "That is what is won. Asked is what is left: without "
             "the 1."),
            (rate // copies, "// drops the fraction: divide by /."),
            (rate / ranks, "That is the rate of one rank: divide by that of "
             "the copies."),
            (rate, "That is a rate: divide it by that of the copies."),
            (copies, "That is the rate of the copies: what is left of it?"),
            (rate / (rate + copies), "That is a part of the sum: divide by "
             "the rate of the copies alone."),
            (sum(copies_steps) / sum(steps), "That is of means. `rate` and "
             "`copies_rate` are of medians: one slow step moves a mean."),
        ])
        if not because and abs(saw - share) < 0.06:
            because = "Is it rounded? Keep all its digits."
        if ranks == 3:
            because = because or TWO_IS_WRITTEN + "`ranks` knows it."
        assert math.isclose(saw, share), (
            f"expected an efficiency of {share:.4f}, from {rate:.1f} "
            f"images/s together and {copies:.1f} of {WORDS[ranks]} copies; "
            f"saw {saw:.4f}. {because}"
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
    for ranks in (2, 3):
        record = trained(job, ranks)
        rate = record["rate"]
        one = record["metrics.flops_per_image"]
        saw = float(record["metrics.flops_per_s"])
        right = rate * one
        copies = record["metrics.copies_rate"]
        images = rate * record["step_median_s"]
        mean_s = sum(record["step_s"]) / len(record["step_s"])
        because = why(saw, [
            (rate, "Those are images in a second."),
            (one, "That is the arithmetic of one image."),
            (rate / one, "Multiply: images/s times operations per image."),
            (one / rate, "Multiply: images/s times operations per image."),
            (copies * one, "That is the rate of independent copies: take "
             "`rate`."),
            (right / 1e9, "Leave the 1e9 out: what is printed divides by it "
             "later."),
            (right / ranks, "Those are one rank's images: `rate` counts "
             "those of " + ("both." if ranks == 2 else "all.")),
            (right * ranks, "`rate` counts the images of all ranks already, "
             "and `flops` both kinds of operation."),
            (right * 3, "`flops` is that of a whole step already, there and "
             "back."),
            (one * images, "That is one step. How many are there in a "
             "second? `rate` knows the images."),
            (one * images / ranks, "That is one rank's step. How many images "
             "are there in a second?"),
            (one * images / mean_s, "That is of the mean step. `rate` is of "
             "the median: one slow step moves a mean."),
            (rate + one, "Multiply: images/s times operations per image."),
            (rate * record["metrics.parameters"], "Those are parameters: "
             "`flops` is the arithmetic of an image."),
            (rate * record["metrics.efficiency"] * one, "The efficiency is "
             "in `rate` already."),
            (record["metrics.efficiency"] * one, "That is a share, times the "
             "arithmetic of an image: take `rate`."),
            *((right / unit, "In operations, and in no larger unit.")
              for unit in (1e3, 1e6, 1e12)),
        ])
        if not because and math.isclose(saw, right, rel_tol=0.01):
            because = "Is it rounded? Keep all its digits."
        if ranks == 3:
            because = because or TWO_IS_WRITTEN + "`rate` has it already."
        assert math.isclose(saw, right), (
            f"expected {right:.4g} operations in a second, {rate:.1f} images "
            f"of {one:.4g} each; saw {saw:.4g}. {because}"
        )


def apart(run):
    """What is wrong with who wrote the record, if anything."""
    ranks = run.ranks
    records = run.records
    if len(records) == 0:
        return ("expected a record, written by rank 0; saw none. Is no "
                "rank's number 0? dist.get_rank() knows it, and counts from "
                "0.")
    saw = int(records["ranks"].iloc[0])
    wanted = f"expected one record, of {WORDS[ranks]} ranks; "
    if len(records) > 1 and saw == 1:
        return (f"{wanted}saw {len(records)}, one from each: each believes "
                "that it is alone. dist.get_rank() and "
                "dist.get_world_size() know better.")
    if len(records) > 1:
        return (f"{wanted}saw {len(records)}: so many take themselves for "
                "rank 0. dist.get_rank() tells each its own number; a local "
                "rank counts within its machine.")
    if len(records["metrics"].iloc[0]["shares"]) != ranks:
        return (f"{wanted}saw one of rank 0 alone: they have not met. "
                'dist.init_process_group("gloo") comes first.')
    if ranks == 3 and saw == 2:
        return (f"{wanted}saw one of 2. {TWO_IS_WRITTEN}"
                "dist.get_world_size() knows it.")
    if saw != ranks:
        return (f"expected a record of {ranks} ranks; saw one of {saw}. How "
                "many there are is no fixed number, and no number of a rank: "
                "dist.get_world_size() knows it.")
    return ""


def metrics_of(run):
    """The metrics of the one record of all ranks."""
    wrong = apart(run)
    assert not wrong, f"{wrong} TODO 4 comes first."
    return run.records["metrics"].iloc[0]


def per_rank(metrics, name):
    """What each rank said."""
    return [share[name] for share in metrics["shares"]]


def in_epochs(metrics):
    """The images of each epoch: a list for each rank, in its order."""
    epochs = len(metrics["accuracy"])
    of_ranks = []
    for steps in per_rank(metrics, "rows"):
        many = len(steps) // epochs
        of_ranks.append([sum(steps[at * many:(at + 1) * many], [])
                         for at in range(epochs)])
    return list(zip(*of_ranks, strict=True))


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
    try:
        wrong = apart(job(**TWO))
        assert not wrong, wrong
        wrong = apart(job(**THREE))
    except ScaleoutError as failed:
        line = of_the_sampler(failed)
        assert "ranks" not in line, (
            "expected each rank's number to be less than `ranks`; saw a "
            "sampler that refuses one. Are the two swapped, or written as "
            "fixed numbers? dist.get_rank() says which rank this is, and "
            "dist.get_world_size() how many there are."
        )
        raise
    assert not wrong, wrong


def of_the_sampler(failed):
    """The line of a sampler that refuses the number of a rank, if any."""
    said = str(failed)
    if "Invalid rank" not in said and "by zero" not in said:
        return ""
    lines = [line for line in said.splitlines()
             if "DistributedSampler(" in line]
    return lines[0] if lines else ""


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
    orders = []
    for how in (TWO, THREE):
        ranks = how["ranks"]
        try:
            metrics = metrics_of(job(**how))
        except ScaleoutError as failed:
            line = of_the_sampler(failed)
            assert "digits, ranks, rank" not in line, (
                f"expected a sampler for {WORDS[ranks]} ranks; saw it refuse "
                "`rank` and `ranks`, which are other numbers: TODO 4 comes "
                "first."
            )
            assert not line or ranks == 2, (
                "expected a part for each of three ranks; saw a sampler that "
                f"refuses one of them. {TWO_IS_WRITTEN}`ranks` knows it."
            )
            assert not line, (
                "expected the number of ranks and then this rank; saw a "
                "sampler that refuses them. Are the two swapped? The first "
                "rank is 0."
            )
            raise
        wrong = not_dealt(metrics, ranks)
        assert not wrong, wrong
        first = in_epochs(metrics)[0]
        assert sorted(first[0]) != first[0], (
            "expected images in a random order; saw rank 0 begin with "
            f"{first[0][0]}, {first[0][1]}, {first[0][2]}: they are not "
            "shuffled. Leave shuffle as it is, and hand the seed on by its "
            "name, seed=args.seed."
        )
        ends = [(min(part), max(part)) for part in first]
        assert any(last - begin >= len(set(part)) for (begin, last), part
                   in zip(ends, first, strict=True)), (
            "expected rank 0 to have images from everywhere, as cards are "
            f"dealt; saw only some between {ends[0][0]} and {ends[0][1]}, of "
            f"{IMAGES}. Is it a block of its own, the same in each epoch? "
            "DistributedSampler deals all of them anew."
        )
        orders.append([number for turn in zip(*first, strict=True)
                       for number in turn])
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
        times = Counter(number for part in parts for number in part)
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
        return ("Both" if ranks == 2 else "All") + (
            " ranks have all of them: say how many ranks there are.")
    if ranks == 3 and size == -(-IMAGES // 2):
        return TWO_IS_WRITTEN + "`ranks` knows it."
    if all(set(part) == set(parts[0]) for part in parts):
        return ("Do both ranks take the same part? Each says its own rank."
                if ranks == 2 else
                "All ranks take the same part: each says its own rank.")
    if size == -(-IMAGES // (ranks + 1)):
        return (f"Each has one part of {ranks + 1}: are there more parts than "
                "ranks?")
    if len(set(per_rank(metrics, "seed"))) > 1:
        return ("The ranks draw unlike orders: all draw the order from the "
                "same seed, and each says its own rank.")
    if len({tuple(told) for told in per_rank(metrics, "told")}) > 1:
        return ("The ranks tell their samplers unlike epochs: TODO 8 comes "
                "first.")
    if lost < ranks:
        return ("What is left over when you divide is dropped, by drop_last "
                "or by //.")
    return ("Each rank takes its own part of one order, which all of them "
            "share.")


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
    for how in (TWO, THREE):
        metrics = metrics_of(job(**how))
        where = "both ranks" if how["ranks"] == 2 else "all three ranks"
        drawn, start, end = (set(per_rank(metrics, name))
                             for name in ("drawn", "start", "end"))
        assert len(drawn) > 1, (
            "expected ranks that draw different weights, or this check would "
            "prove nothing; saw equal ones. Leave the seeds as they were."
        )
        assert len(start) == 1, (
            f"expected the weights of rank 0 on {where} before the first "
            "step; saw different ones. DistributedDataParallel(model) hands "
            "them out."
        )
        assert start != end, (
            "expected weights that the training changes; saw them end as "
            "they began. Is it `model` that is wrapped, and not a new one?"
        )
        alike = len(set(map(tuple, per_rank(metrics, "rates")))) == 1
        assert len(end) == 1 or alike, (
            f"expected equal weights on {where} in the end; saw different "
            "ones, and unlike learning rates: TODO 7 comes first."
        )
        assert len(end) == 1, (
            f"expected equal weights on {where} in the end, bit for bit; "
            "saw different ones. They began equal, so the gradients were not "
            "averaged. Is what DistributedDataParallel gives back kept in "
            "`model`? Only that averages them."
        )
    steps_of_one(job, metrics)


def steps_of_one(job, metrics):
    """Three ranks take the steps of one that has all their images."""
    alone = THREE | {
        "ranks": 1,
        "batch_per_rank": 3 * THREE["batch_per_rank"],
        "schedule": "none",
        "lr": metrics["learning_rates"][0],
        "checkpoint": None,
    }
    one = metrics_of_one(job(**alone))
    images = [sorted(sum(parts, [])) for parts
              in zip(*per_rank(metrics, "rows"), strict=True)]
    if one is None or images != [sorted(rows) for rows
                                 in one["shares"][0]["rows"]]:
        return  # TODO 5 or 8 is to blame
    wanted, saw = one["losses"][0], metrics["losses"][0]
    assert math.isclose(wanted, saw, rel_tol=0.01), (
        "expected three ranks to take the steps of one that has all their "
        f"images, to a loss of {wanted:.4f}; saw {saw:.4f}. A mean is asked "
        "for: are the gradients added up, and not divided?"
    )


def metrics_of_one(run):
    """The metrics of a job of one rank; None unless it wrote one record."""
    return run.records["metrics"].iloc[0] if len(run.records) == 1 else None


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
    before = None
    for how in (TWO, THREE):
        ranks = how["ranks"]
        batch = how["batch_per_rank"]
        rates = [each[-1] for each
                 in per_rank(metrics_of(job(**how)), "rates")]
        saw = rates[0]
        images = batch * ranks
        wanted = LR * images / BASE_BATCH
        one = LR * batch / BASE_BATCH
        reasons = [
            (one, "That is for the images of one rank."),
            (LR * ranks, "That counts the ranks alone: --lr is meant for "
             "BASE_BATCH images."),
            (LR * images, "Those are all images: --lr is meant for "
             "BASE_BATCH of them."),
            (LR * (images // BASE_BATCH), "Divide by /, as // drops the "
             "fraction."),
            (LR * (batch // BASE_BATCH) * ranks, "Divide by /, as // drops "
             "the fraction."),
            (LR * BASE_BATCH / images, "It is the other way round: more "
             "images, a higher rate."),
            (LR * wanted, "`scale` is a factor: --lr itself comes in later."),
            (0, "`rank` is 0 on the first one: `ranks` is how many there "
             "are."),
            (one / ranks, "The ranks multiply the images of a step: batch is "
             "that of one rank."),
            (LR * math.sqrt(images / BASE_BATCH), "That is the square root, "
             "another rule. Here the rate grows as the images do."),
            (LR * (batch + ranks) / BASE_BATCH, "Multiply: each rank has a "
             "batch."),
            (LR * batch, "Those are one rank's images: --lr is meant for "
             "BASE_BATCH of all ranks'."),
            (LR, "It is --lr as it stands."),
        ]
        because = why(saw, reasons)
        if len(set(rates)) > 1:
            because = ("They are not alike. `rank` is the number of this "
                       "one; `ranks` is how many there are.")
        elif ranks == 3 and math.isclose(saw, 2 * one):
            because = TWO_IS_WRITTEN + "`ranks` knows it."
        elif ranks == 3 and math.isclose(saw, before):
            because = "That is the rate of two ranks: a number is written."
        listed = " and ".join(f"{rate:g}" for rate
                              in (rates if len(set(rates)) > 1 else [saw]))
        assert all(abs(rate - wanted) < 1e-6 for rate in rates), (
            f"expected a learning rate of {wanted:g} for {ranks} x {batch} "
            f"images in a step; saw {listed}. {because}"
        )
        before = saw


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
    for how in (TWO, THREE):
        metrics = metrics_of(job(**how))
        orders = [parts[0] for parts in in_epochs(metrics)]
        assert orders[0] != orders[1], (
            "expected another order in the second epoch; saw rank 0 begin "
            f"with image {orders[0][0]} in both. The sampler wants to be told "
            "which epoch it is."
        )
        assert len(orders) < 3 or orders[2] not in orders[:2], (
            "expected another order in the third epoch; saw one that was "
            "there before. The sampler wants the number of the epoch itself."
        )
        unlike = [len(set(map(str, per_rank(metrics, name)))) > 1
                  for name in ("told", "seed")]
        wrong = not_dealt(metrics, how["ranks"])
        because = "Tell all ranks the same number."
        if unlike[1] or not unlike[0]:
            because = "They were told the same epochs: TODO 5 comes first."
        assert not wrong, (
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
    for how in (TWO, THREE):
        ranks, epochs = how["ranks"], how["epochs"]
        wrote = [len(names) for names
                 in per_rank(metrics_of(job(**how)), "wrote")]
        because = ""
        if not any(wrote):
            because = "Nobody keeps one."
        elif all(wrote):
            because = (f"{WORDS[ranks].capitalize()} ranks write one file at "
                       "once.")
        elif wrote[0] == 0 and wrote[-1]:
            because = (
                "The last rank has another number in every job: rank 0 has "
                "the same."
            )
        elif wrote[0] == 0:
            because = "Every job has a rank 0: let that one keep it."
        elif any(wrote[1:]):
            because = "More than one rank writes one file: rank 0 is enough."
        elif wrote[0] < epochs:
            because = ("One after each epoch: a job that is cut short goes on "
                       "from the last.")
        listed = ", ".join(map(str, wrote[:-1])) + f" and {wrote[-1]}"
        others = "rank 1" if ranks == 2 else "the others"
        assert wrote == [epochs] + [0] * (ranks - 1), (
            f"expected {epochs} checkpoints from rank 0, one an epoch, and "
            f"none from {others}; saw {listed}. {because}"
        )
    more = metrics_of(job(**TWO | {"epochs": EPOCHS + 1}))
    saw = len(more["accuracy"])
    assert saw == 1, (
        f"expected 1 more epoch after the checkpoint of 2; saw {saw}."
    )
    end = per_rank(more, "end")
    assert end[0] == end[1], (
        "expected equal weights on both ranks after the checkpoint; saw "
        "different ones. Is TODO 6 done?"
    )
