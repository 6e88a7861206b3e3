"""What each TODO of 05_horovod is checked by: a small job on two ranks, one on
three.

instruments.py goes along with the lab: it sees what each rank has filled in,
and by what one step has moved its weights. The checks look at what it saw,
never at the code. Three ranks start once all is right on two.
"""

import numpy as np

from scaleout import ScaleoutError, todo

EPOCHS = 2
LR = 0.01
# MPICH then takes the ranks for two machines: a local rank is no rank.
APART = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1", "SCALEOUT_IMAGES": "501"}
BRIEF = {
    "threads": 1,
    "script": "instruments.py",
    "schedule": "constant",
    "lr": LR,
    "epochs": EPOCHS,
    "env": APART,
}
BATCH = {2: 70, 3: 9}
# First a number that leaves something over, when you divide and in the last
# step; then one that leaves nothing, little, and nearly a step.
IMAGES = {2: [501, 420, 150, 279], 3: [55, 54, 30, 53]}
STAGES = ["begun", "dealt", "ended"]
TWO = "2 is written where the number of ranks should stand: "


def seen(job, ranks, what, enough=lambda each: True):
    """What each rank showed, though the job may have failed later on.

    what: "asked", "gone through" or "one step". enough: tells of a rank
    whether it came far enough.
    """
    failed = None
    try:
        run = job(ranks=ranks, batch_per_rank=BATCH[ranks],
                  images=IMAGES[ranks], **BRIEF)
    except ScaleoutError as error:
        failed, run = error, getattr(error, "run", None)
        if run is None:
            raise
    records = run.records
    found = list(records["metrics.found"][records["variant"] == what]
                 if len(records) else [])
    if what != "asked":
        asked = list(records["metrics.found"][records["variant"] == "asked"]
                     if len(records) else [])
        if asked:
            saw = [(each["rank"], each["ranks"]) for each in asked[0]]
            assert saw == [(rank, ranks) for rank in range(ranks)], (
                f"expected {ranks} ranks that know each other; saw rank "
                f"{saw[-1][0]} of {saw[-1][1]} on the last: TODO 1 comes "
                "first."
            )
    if failed and not (found and all(map(enough, found[0]))):
        raise failed
    return found[0]


def walks(job, ranks, until="begun"):
    """(images, what each rank did), for each number of images.

    until: how far all ranks must have come, "begun", "dealt" or "ended".
    """
    def enough(each):
        return all(walk["until"] >= STAGES.index(until)
                   for walk in each["walks"])

    found = [each["walks"]
             for each in seen(job, ranks, "gone through", enough)]
    return list(zip(IMAGES[ranks], zip(*found, strict=True), strict=True))


def listed(values):
    """Such as "4, 4 and 3"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}"


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
    for ranks in BATCH:
        asked = seen(job, ranks, "asked")
        rank = [each["rank"] for each in asked]
        of = [each["ranks"] for each in asked]
        there = list(range(ranks))
        because = (
            "hvd.rank() and hvd.size() count all ranks of the job; the local "
            "ones count within a machine, the cross ones the machines."
        )
        if "a function" in rank + of:
            because = "A call has brackets: hvd.rank(), hvd.size()."
        elif not all(each["started"] for each in asked):
            because = "Horovod has not been started: hvd.init() comes first."
        elif rank == [ranks] * ranks and of == there:
            because = (
                "hvd.rank() says which rank this is, hvd.size() how many "
                "there are: are the two swapped?"
            )
        elif ranks == 3 and of == [2] * 3 and rank == there:
            because = f"{TWO}hvd.size() knows it."
        elif rank == [0] * ranks and of == [1] * ranks:
            because = (
                "Each believes that it is alone. Ask hvd.rank() and "
                "hvd.size(); local_rank() and local_size() count within one "
                "machine."
            )
        elif rank == [0] * ranks:
            because = "All are rank 0: hvd.rank() tells each its own number."
        elif rank == [one + 1 for one in there] and of == [ranks] * ranks:
            because = "Ranks are counted from 0, as hvd.rank() does."
        elif rank == there and set(of) != {ranks}:
            because = f"hvd.size() says how many there are. {because}"
        started = all(each["started"] for each in asked)
        assert started and rank == there and of == [ranks] * ranks, (
            f"expected rank {listed(there)} of {ranks}; saw rank "
            f"{listed(rank)}, of {listed(of)}. {because}"
        )


def explained(failed):
    """Why TODO 2 fails, where what the job said tells."""
    assert "DistributedOptimizer(" not in failed, (
        "expected the tape to average; saw an optimizer in its place. "
        "Horovod's does not work with Keras 3: wrap `tape`."
    )
    assert not ("No gradients provided" in failed
                or "non-persistent GradientTape" in failed), (
        "expected gradients of `loss`; saw none. A tape knows only what was "
        "computed inside of `with`: leave `loss` as it is, and wrap `tape` "
        "itself, not a new one."
    )
    waited = "#stalled-tensor" in failed
    assert not (waited and "DistributedGradientTape" in failed), (
        "expected all ranks to wrap the tape; saw one wait for the other. "
        "Each gives its gradients and gets the average, so all of them call "
        "it."
    )
    assert "Adasum" not in failed, (
        "expected the average; saw Adasum, which adds gradients in another "
        "way, and not on 3 ranks. op=hvd.Average is what Horovod does unless "
        "told."
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
    for ranks in BATCH:
        try:
            found = seen(job, ranks, "one step")
        except ScaleoutError as failed:
            explained(str(failed))
            raise
        assert all(found), (
            "expected a step on each rank; saw a rank that takes none. Are "
            "TODO 4 and TODO 6 done?"
        )
        of = found[0]["of"]
        like = {way: min(each["like"][way] for each in found)
                for way in found[0]["like"]}
        called = found[0]["called"]
        because = "hvd.DistributedGradientTape(tape) averages all of them."
        if like["own"] == of and "DistributedOptimizer" in called:
            because = (
                "Each rank steps by its own: Keras 3 never calls what "
                "hvd.DistributedOptimizer adds. Wrap `tape` in its place."
            )
        elif like["own"] == of and "DistributedGradientTape" in called:
            because = (
                "Each rank steps by its own: is what "
                "hvd.DistributedGradientTape gives back kept in `tape`, "
                "before tape.gradient is called?"
            )
        elif like["own"] == of:
            because = (
                "Each rank steps by its own: nothing averages them. "
                "hvd.DistributedGradientTape does; keep what it gives back "
                "in `tape`."
            )
        elif like["sum"] == of:
            because = (
                f"That is the sum, {ranks} times the average: op=hvd.Average "
                "is what Horovod does unless told."
            )
        elif like["average again"] == of:
            because = (
                "That is the average divided by the number of ranks once "
                "more: Horovod has divided already."
            )
        elif like["nothing"] == of:
            because = "The weights did not move: the gradients were 0."
        elif like["rank 0"] == of:
            because = (
                "All step by the gradient of rank 0: what the others have "
                "found is lost."
            )
        elif 0 < like["average"] < of:
            because = (
                f"{like['average']} of {of} gradients are the average, the "
                "others are not: all of them are to be averaged."
            )
        assert like["average"] == of, (
            f"expected all of {ranks} ranks to step by the average of their "
            f"gradients, of length {found[0]['average']:.4f}; saw a step of "
            f"length {found[0]['length']:.4f} on rank 0. {because}"
        )


def not_sent(failed):
    """Why TODO 3 fails, where what the job said tells."""
    assert "has no attribute 'assign'" not in failed, (
        "expected TensorFlow's variables to be sent; saw those of Keras, "
        "which Horovod cannot assign to. `weights` holds the `.value` of "
        "each."
    )
    assert "Mismatched BROADCAST root" not in failed, (
        "expected root_rank=0 on all ranks; saw another one on each. "
        "`root_rank` says whose weights are sent, not who calls."
    )
    waited = "#stalled-tensor" in failed or "subset of ranks" in failed
    assert not (waited and "HorovodBroadcast" in failed), (
        "expected all ranks to call hvd.broadcast_variables; saw one "
        "wait for the other. Rank 0 gives and the others take, so the "
        "call stands outside any `if rank == 0:`."
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
    for ranks in BATCH:
        try:
            found = seen(job, ranks, "gone through")
        except ScaleoutError as failed:
            run = getattr(failed, "run", None)
            not_sent(f"{failed}\n{run.output if run else ''}")
            raise
        begin = [each["begin"] for each in found]
        start = [each["start"] for each in found]
        names = found[0]["names"]
        unlike = [name for name, *some in zip(names, *start, strict=True)
                  if len(set(some)) > 1]
        because = (
            f"{len(unlike)} of {len(names)} variables are not, such as "
            f"{unlike[:1]}: are all of `weights` sent?"
        )
        if start == begin:
            because = (
                "All are as they were: hvd.broadcast_variables has sent "
                "nothing to the network's variables. A seed is no way out: "
                "after a restart weights come from a file."
            )
        elif len(unlike) == len(names):
            because = (
                "Not one is the same: hvd.broadcast_variables(weights, "
                "root_rank=0) assigns to them, on all ranks."
            )
        assert not unlike, (
            "expected the same weights on all ranks before the first step; "
            f"saw different ones. {because}"
        )
        sent = [rank for rank in range(ranks) if start[0] == begin[rank]]
        because = "They are those of no rank."
        if sent:
            because = (
                f"They are those of rank {sent[0]}: root_rank says whose are "
                "sent, and rank 0 is in every job."
            )
        assert start[0] == begin[0], (
            f"expected the weights of rank 0 on all {ranks} ranks; saw "
            f"others. {because}"
        )


@todo(
    4,
    hints=[
        "In one step all ranks together see batch * ranks images. How many "
        "whole steps do n of them make?",
        "a // b is a / b, rounded down. Take care that the number is the "
        "same on every rank.",
        "steps = n // (batch * ranks)",
    ],
)
def steps_are_divided_by_the_ranks(job):
    """An epoch has the whole steps that two ranks can make of it."""
    for ranks, batch in BATCH.items():
        found = walks(job, ranks)
        slip = slip_of_steps(ranks, batch, [saw[0]["steps"] for _, saw in
                                            found])
        for n, each in found:
            all_ = batch * ranks
            saw = [rank["steps"] for rank in each]
            wanted = n // all_
            because = slip
            if any(not isinstance(steps, int) for steps in saw):
                because = (
                    "It takes a whole number: // divides without a fraction, "
                    "and int() makes one of what np.ceil gives."
                )
            elif len(set(saw)) > 1:
                because = (
                    "The number must be the same on all ranks, or one waits "
                    "for another for ever: only n, batch and ranks tell."
                )
            # A float is no number of steps, though 4.0 == 4.
            assert list(map(repr, saw)) == [repr(wanted)] * ranks, (
                f"expected {wanted} step{'s'[:wanted - 1]} on all {ranks} "
                f"ranks, for {n:,} images and {all_} in a step; saw "
                f"{listed(saw)}. {because}"
            )


def slip_of_steps(ranks, batch, saw):
    """Which slip gives what rank 0 took, for all numbers of images."""
    if len(set(map(str, saw))) == 1:
        return "It is the same for all numbers of images: it grows with `n`."
    all_ = batch * ranks
    down = (
        "Rounded up, the last step has fewer images than the others, and a "
        "rank may have none: drop it."
    )
    slips = [
        (lambda n: n // (batch * 2), f"{TWO}`ranks` knows it."),
        (lambda n: n // batch, "That is what one rank alone would take."),
        (lambda n: -(-n // batch), "That is what one rank alone would take."),
        (lambda n: -(-n // all_), down),
        (lambda n: -(-n // batch) // ranks, down),
        (lambda n: round(n / all_), down),
        (lambda n: n // all_ + 1, "One step too many: there is nothing left "
         "for it."),
        (lambda n: n // batch * ranks, "Are there brackets around batch * "
         "ranks? Without them, what was divided is multiplied."),
        (lambda n: n // ranks, "Those are the images of a rank: divide them "
         "by `batch`, too."),
        (lambda n: n // (batch + ranks), "All ranks together see batch * "
         "ranks images in a step, not their sum."),
    ]
    numbers = IMAGES[ranks]
    near = [why for slip, why in slips if list(map(slip, numbers)) == saw]
    return "".join(near[:1])


@todo(
    5,
    hints=[
        "A step averages over more images now. The batch that counts is that "
        "of all ranks together.",
        "--lr is meant for the images of one rank. How many times as many "
        "have all ranks?",
        "scale = ranks",
    ],
)
def the_learning_rate_is_scaled(job):
    """With two ranks the learning rate is twice that of one."""
    for ranks, batch in BATCH.items():
        reasons = {
            1: "Nothing is scaled.",
            batch: "Those are the images of one rank, for which --lr is "
            "meant.",
            batch * ranks: "Those are all images of a step: how many times "
            "those of one rank?",
            1 / ranks: "It is the other way round: more images, a higher "
            "rate.",
            LR * ranks: "`scale` is a factor: --lr itself comes in later.",
            ranks ** 0.5: "That is the square root: here the rate grows as "
            "the images do.",
            ranks ** 2: "That counts the ranks twice.",
        }
        if ranks == 3:
            reasons[2] = f"{TWO}`ranks` knows it."
        found = walks(job, ranks)
        one_for_all = len({str(each[0]["scale"]) for _, each in found}) == 1
        for _, each in found:
            saw = [rank["scale"] for rank in each]
            assert all(isinstance(some, (int, float)) for some in saw), (
                f"expected a number as `scale`; saw {saw[0]}."
            )
            near = [why for scale, why in reasons.items()
                    if np.isclose(saw[0], scale, 1e-6, 0)]
            because = "".join(near[:1])
            if not one_for_all:
                because = (
                    "It is another one for other numbers of images: only "
                    "those of one step count."
                )
            if max(saw) - min(saw) > 1e-9:
                because = (
                    "It is to be the same on all ranks, which make the same "
                    "step."
                )
            assert all(abs(some / ranks - 1) < 1e-6 for some in saw), (
                f"expected `scale` to be {ranks} on all ranks, for {ranks} "
                f"times the images of one; saw "
                f"{listed(f'{x:g}' for x in saw)}. {because}"
            )


def not_dealt(failed):
    """Why TODO 6 fails, where what the job said tells."""
    assert "'slice' object is not subscriptable" not in failed, (
        "expected the numbers of this rank's images; saw a slice, which only "
        "says where they stand: take it of `order`, order[...]."
    )
    assert "slice step cannot be zero" not in failed, (
        "expected every `ranks`-th image, from `rank` on; saw a step of 0. "
        "Are the two swapped? order[first::every]"
    )


def reason(ranks, batch, order, dealt):
    """Why some images were not dealt well, as far as it shows.

    order: all of them; dealt: those of each rank, of the same epoch.
    """
    n = len(order)
    times = np.bincount(sum(dealt, []), minlength=n)
    missing = set(np.flatnonzero(times == 0).tolist())
    blocks = [order[rank * n // 2:(rank + 1) * n // 2]
              for rank in range(ranks)]
    halves = [order[rank * (n // 2):(rank + 1) * (n // 2)]
              for rank in range(ranks)]
    twos = [order[rank::2] for rank in range(ranks)]
    if ranks == 3 and dealt in (twos, blocks, halves):
        return f"{TWO}order[rank::ranks]"
    if all(sorted(some) == sorted(order) for some in dealt):
        return "All ranks have all of them: start from `rank`."
    if any(len(set(some)) == n for some in dealt):
        return ("One rank has all of them, and others have none or some "
                "again: each takes a part.")
    if times.max() == 1 and missing == {order[0]}:
        return ("The first image of `order` is on no rank: they are counted "
                "from 0, and so is `order`.")
    if max(map(len, dealt)) <= batch < n // ranks:
        return ("Those are images for one step: `mine` holds this rank's "
                "images of the whole epoch.")
    if all(set(some) == set(dealt[0]) for some in dealt):
        return "Do all ranks begin at the same image? Start from `rank`."
    if times.max() == 1:
        return "Each rank takes as large a part as the others."
    if not missing or missing < set(order[:ranks]):
        return "Do all ranks begin at the same image? Start from `rank`."
    return ("Some are on several, some on none. Does each rank draw its own? "
            "`order` is the same on all: deal it out.")


def dealt_once(ranks, batch, n, dealt):
    """In each epoch no image is on two ranks, and each step is whole.

    dealt: for each rank the images of each epoch.
    """
    steps = n // (batch * ranks)
    for epoch, parts in enumerate(zip(*dealt, strict=True)):
        order = np.random.default_rng([0, epoch]).permutation(n).tolist()
        parts = [list(map(int, part)) for part in parts]
        times = np.bincount(sum(parts, []), minlength=n)
        assert len(times) == n and times.max() <= 1, (
            f"expected each of {n} images on one of {ranks} ranks; saw some "
            f"{times.min()} times, some {times.max()} times. "
            f"{reason(ranks, batch, order, parts)}"
        )
        saw = [len(part) for part in parts]
        assert min(saw) >= steps * batch, (
            f"expected {steps * batch} images or more on each rank, for "
            f"{steps} steps of {batch}; saw {listed(saw)}. "
            f"{reason(ranks, batch, order, parts)}"
        )
        assert any(sorted(part) != part for part in parts), (
            "expected images in the random order of each epoch; saw rank "
            f"0 begin with {listed(parts[0][:3])}: they are not "
            "shuffled. Take them from `order`, as they come."
        )
    assert dealt[0][0] != dealt[0][1], (
        "expected another order in each epoch; saw the same in the first "
        "two. Take them from `order`, which is made anew."
    )


@todo(
    6,
    hints=[
        "`order` holds every image once. Deal it out: each rank takes as "
        "large a part as the others, and none is dealt twice.",
        "A slice with a step takes every second element; begin where your "
        "rank begins: order[first::every]",
        "mine = order[rank::ranks]",
    ],
)
def no_image_is_seen_twice(job):
    """In an epoch two ranks never see the same image."""
    for ranks, batch in BATCH.items():
        try:
            found = walks(job, ranks, until="dealt")
        except ScaleoutError as failed:
            not_dealt(str(failed))
            raise
        for n, each in found:
            dealt_once(ranks, batch, n, [rank["dealt"] for rank in each])


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
    for ranks in BATCH:
        for _, found in walks(job, ranks, until="ended"):
            saw = [each["kept"] for each in found]
            keep = [rank for rank in range(ranks) if saw[rank]]
            because = ""
            if not keep:
                because = "Nobody keeps one."
            elif len(keep) == ranks == 2:
                because = "Two ranks write one file at once."
            elif len(keep) > 1:
                because = (
                    f"Ranks {listed(keep)} write one file at once: rank 0 "
                    "alone, out of all."
                )
            elif keep != [0]:
                because = (
                    "That rank has another number in other jobs: rank 0 is "
                    "in every one."
                )
            assert saw == [1] + [0] * (ranks - 1), (
                f"expected 1 file from rank 0 and none from the others; saw "
                f"{listed(saw)}. {because}"
            )
