"""What each TODO of 11_parallelism is checked by: one way of splitting each.

The checks look at the record of a small job on 4 ranks, never at the code: how
far each rank's gradients are from those of one rank alone, and how many times
too large they are; who meets whom; what the optimizer keeps; and which of 100
faults the alarm saw.
"""

from scaleout import todo

LIMIT_S = 12  # stages that wait for ever are told so before a reader tires
SIZES = {"ranks": 4, "threads": 1, "timeout": LIMIT_S, "layers": 8,
         "width": 16, "batch": 16, "steps": 1,
         # A rank that waits leaves its core to the others.
         "env": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}}
PARTS = {"micro_batches": 2}  # of a pipeline
CLOSE = 1e-10


def found(job, **more):
    """What each rank found in a small job, of the last way that it tried."""
    return job(**SIZES, **more).records["metrics.shares"].iloc[-1]


def wrong_layers(ranks):
    """The layers whose gradient is not that of one rank, on any rank."""
    wrong = set()
    for each in ranks:
        for layer, off in zip(each["layers"], each["off"], strict=True):
            if not off <= CLOSE:
                wrong.add(layer)
    return sorted(wrong)


def factors(ranks, layer):
    """How many times too large the gradient of a layer is, on each rank."""
    return [each["factor"][each["layers"].index(layer)]
            for each in ranks if layer in each["layers"]]


def all_near(values, wanted):
    """Whether all numbers are as wanted, but for rounding."""
    return all(abs(value - wanted) < 1e-6 for value in values)


@todo(
    1,
    hints=[
        "In forward each rank has a part of a sum after `rows`. Going back, "
        "which product gives a part of a sum?",
        "Every rank's columns use the whole `before`. So its gradient is the "
        "sum of what comes back through the columns of all ranks.",
        "g = add_up(comm, g_inner @ columns.T)",
    ],
    script="tensor.py",
)
def one_sum_a_pair(job):
    """Split into columns and rows, each gradient is that of one rank."""
    ranks = found(job)
    wrong = wrong_layers(ranks)
    last = factors(ranks, 5)
    because = (
        "Only the last pair is right, which needs no g from another pair. "
        "What each rank hands on is its part, g_inner @ columns.T, and not "
        "the sum of all parts."
    )
    if all_near(last, 0.25):
        because = (
            "Below the last pair, gradients are a quarter of what they should "
            "be: the parts are a sum, not a mean."
        )
    elif all_near(last, 4):
        because = (
            "Below the last pair, gradients are four times too large: the sum "
            "over 4 ranks was made twice."
        )
    assert 7 not in wrong, (
        "expected the gradients of the last pair, layers 6 and 7, as serial; "
        "saw others. They come before TODO 1: is all around it as it was?"
    )
    assert not wrong, (
        f"expected the gradients of 8 layers as serial; saw layers {wrong} "
        f"wrong. {because}"
    )


@todo(
    2,
    hints=[
        "Read Stage.forward from right to left: who has the gradient that "
        "this stage needs, and who needs the one that it makes?",
        "Three things in this order: Recv from pipe.rank + 1, unless this is "
        "the last stage; g = self.back(m, g); Isend to pipe.rank - 1.",
        "if pipe.rank < self.last: pipe.Recv(g, pipe.rank + 1); "
        "g = self.back(m, g); if pipe.rank > 0: "
        "self.to_left = pipe.Isend(g, pipe.rank - 1)",
    ],
    script="pipeline.py",
)
def gradients_come_back(job):
    """Four stages of two layers: each gradient is that of one rank."""
    ranks = found(job, **PARTS)
    wrong = wrong_layers(ranks)
    backs = [sum(row[0] == "backward" for row in each["logs"][0])
             for each in ranks]
    assert min(backs) > 0, (
        "expected each of 4 stages to take both micro-batches back; saw "
        f"{backs} by self.back. Each stage works in backward, not the last "
        "one alone."
    )
    assert max(backs) == 2, (
        f"expected each stage to take each micro-batch back once; saw {backs} "
        "times for 2 micro-batches."
    )
    because = (
        "What goes to the left is what self.back(m, g) returns, and what "
        "self.back takes is what came from the right."
    )
    lost = sum(each["unreceived"] for each in ranks)
    if lost:
        because += f" {lost} messages were sent that no stage received."
    assert not wrong, (
        f"expected the gradients of 8 layers as serial; saw layers {wrong} "
        f"wrong. {because}"
    )
    other = wrong_layers(found(job, schedule="1f1b", **PARTS))
    assert not other, (
        f"with GPipe all is right; with 1F1B layers {other} are wrong. Is g "
        "changed while it may still be on its way? Isend it, keep the "
        "request, and leave g alone."
    )
    given = ranks[-1]["given"]
    blocking = [name for name in ("Send", "send") if name in given]
    assert not blocking, (
        "the gradients are right, but this stage waits in "
        f"{''.join(blocking)} until the stage before it has received a long "
        "message, and computes nothing meanwhile: Isend it."
    )
    dropped = sum(each["unfinished"] for each in ranks)
    assert not dropped, (
        "the gradients are right, but nobody waits for what Isend began: "
        f"{dropped} requests were dropped. A long message may then be "
        "overwritten before it has left. Keep the request in self.to_left."
    )


@todo(
    3,
    hints=[
        "Write down replica and stage of ranks 0 to 3. Which two ranks hand "
        "activations to each other? Which two have the same layers?",
        "The stages of a pipeline have the same replica: that is their "
        "colour, and stage is the key. For `same` it is the other way round.",
        "pipe = comm.Split(replica, stage), same = comm.Split(stage, replica)",
    ],
    script="pipeline.py",
)
def two_groups(job):
    """On 4 ranks: pipelines 0-1 and 2-3, and 0-2 and 1-3 add up."""
    ranks = found(job, replicas=2, **PARTS)
    pipes = [each["groups"][0] for each in ranks]
    sames = [each["groups"][1] for each in ranks]
    right_pipes = [[0, 1], [0, 1], [2, 3], [2, 3]]
    right_sames = [[0, 2], [1, 3], [0, 2], [1, 3]]
    swapped = pipes == right_sames and sames == right_pipes
    because = ""
    if swapped:
        because = " They have changed places."
    elif max(len(pipe) for pipe in pipes) == 4:
        because = " All four are in it: the colour must tell replicas apart."
    elif [sorted(pipe) for pipe in pipes] == right_pipes:
        because = " The order is wrong: the key is the stage."
    elif max(len(pipe) for pipe in pipes) == 1:
        because = " Each rank is alone: no two have the same colour."
    assert pipes == right_pipes, (
        "expected `pipe` to join ranks 0 and 1, and ranks 2 and 3; saw "
        f"{in_words(pipes)}.{because}"
    )
    assert [sorted(same) for same in sames] == right_sames, (
        "expected `same` to join ranks 0 and 2, which have the first layers, "
        f"and 1 and 3; saw {in_words(sames)}. Ranks with the same stage have "
        "the same colour."
    )
    wrong = wrong_layers(ranks)
    assert not wrong, (
        f"the groups are right, but layers {wrong} are wrong: is TODO 2 done?"
    )


def in_words(groups):
    """Each group once."""
    return " ".join(str(list(each)) for each in dict.fromkeys(
        tuple(group) for group in groups))


@todo(
    4,
    hints=[
        "An allreduce is a reduce-scatter and an allgather (03). What can be "
        "done between the two, on a shard alone?",
        "Adam's step stands between them: part = np.empty_like(g[mine]), "
        "Reduce_scatter, adam on w[mine] and part, Allgatherv.",
        "comm.Reduce_scatter(g, part, counts); adam(w[mine], part, state); "
        "comm.Allgatherv(MPI.IN_PLACE, [w, counts])",
    ],
    script="sharded.py",
)
def a_quarter_of_adam(job):
    """Four ranks keep a quarter of Adam's memory each; same weights."""
    ways = job(**SIZES).records["metrics.shares"]
    whole = ways.iloc[0][0]["state_bytes"]
    ranks = ways.iloc[1]
    kept = [each["state_bytes"] / whole for each in ranks]
    wrong = wrong_layers(ranks)
    assert max(kept) < 0.9, (
        "expected each of 4 ranks to keep a quarter of Adam's memory; saw "
        f"{max(kept):.0%} of it. adam keeps two arrays as long as the "
        "gradient that it is given: give it `part`."
    )
    because = "Does adam change w[mine] before the shards are collected?"
    starts_right = all(each["off"] and each["factor"] for each in ranks)
    if starts_right and any(differ(ranks)):
        because = (
            "The ranks' weights differ: each has brought its own shard up to "
            "date, and the others' are old. Allgatherv brings them together."
        )
    assert not wrong, (
        f"expected the weights of one rank after 3 steps; saw layers {wrong} "
        f"wrong. {because}"
    )
    assert max(kept) < 0.3, (
        "expected a quarter of Adam's memory on each of 4 ranks; saw "
        f"{max(kept):.0%}."
    )
    assert "Allreduce" not in ranks[0]["given"], (
        "weights and memory are right, but each rank asked for the whole sum, "
        "of which it needs a quarter. An allreduce ends in an allgather, and "
        "so all travels once more than it must: Reduce_scatter gives each "
        "rank its own shard alone."
    )


def differ(ranks):
    """For each layer, whether its weights differ between the ranks."""
    columns = zip(*[each["factor"] for each in ranks], strict=True)
    return [max(column) - min(column) > 1e-12 for column in columns]


@todo(
    5,
    hints=[
        "The sum of all numbers of `total` must be the sum of all numbers of "
        "every `mine`. Which of the three faults does that not see?",
        "Weigh each number, on each rank with the same random weights w: "
        "w @ total must be the sum over ranks of w @ mine, but for rounding. "
        "And if one rank sees it, all must know.",
        "w = np.random.default_rng(1).random(len(mine)); wanted = "
        "comm.allreduce(w @ mine); size = comm.allreduce(w @ abs(mine)); "
        "return comm.allreduce(abs(w @ total - wanted) > 1e-7 * size, "
        "op=MPI.LOR)",
    ],
    script="broken.py",
)
def all_faults_and_no_other(job):
    """The alarm sees 100 of 100 faults, and never cries wolf."""
    record = job(ranks=3, threads=1, timeout=LIMIT_S,
                 env=SIZES["env"]).records.iloc[0]
    rung = record["metrics.rung"]
    tried = record["metrics.tried"]
    clean = record["metrics.trials"]
    false_alarms = record["metrics.false_alarms"]
    assert sum(rung) > 0, (
        f"expected an alarm for each of {sum(tried)} faults; saw none. Is the "
        "limit far too high, or does alarm not look at `total`?"
    )
    assert false_alarms == 0, (
        f"expected no alarm where nothing was wrong; saw {false_alarms} in "
        f"{clean}. A sum in another order is rounded differently: allow for "
        "a little, such as a ten-millionth of the sum of the sizes."
    )
    assert record["metrics.some_only"] == 0, (
        f"in {record['metrics.some_only']} of {sum(tried)} trials some ranks "
        "raised the alarm and others went on: they would wait for each other "
        "for ever. One rank that sees it must tell all."
    )
    given = record["metrics.alarm_bytes"]
    whole = record["metrics.sum_bytes"]
    assert given < whole / 8, (
        f"the alarm gave {given:,.0f} bytes to the other ranks, and the sum "
        f"that it watches has {whole:,}: that costs as much as to add up "
        "again. Tell the others a few numbers."
    )
    reasons = [
        "the rank whose copy is wrong must compare it with what it should be",
        "all ranks have the same wrong sum, so comparing ranks with each "
        "other shows nothing: compare with what they brought",
        "a sum is the same in any order: weigh each number by its place",
    ]
    for name, seen, of, why in zip(record["metrics.faults"], rung, tried,
                                   reasons, strict=True):
        assert seen == of, (
            f"expected an alarm for each of {of} faults of the kind "
            f"'{name}'; saw {seen}. In this kind, {why}."
        )
