"""What each TODO of 11_parallelism is checked by: one way of splitting each.

The checks look at the record of a small job on 4 ranks, never at the code: how
far each rank's gradients are from those of one rank alone, and how many times
too large they are; who meets whom; what the optimizer keeps; and which of 100
faults the alarm saw. What is right is then tried on another number of ranks.
instruments.py says what each rank was given and gave, for the reasons.
"""

from scaleout import ScaleoutError, todo

LIMIT_S = 12  # stages that wait for ever are told so before a reader tires
SIZES = {"ranks": 4, "threads": 1, "timeout": LIMIT_S, "layers": 8,
         "width": 16, "batch": 16, "steps": 1,
         # A rank that waits leaves its core to the others.
         "env": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}}
PARTS = {"micro_batches": 2}  # of a pipeline
CLOSE = 1e-10
BLOCKING = ("Send", "send", "Ssend", "ssend", "Bsend", "bsend", "Rsend",
            "Sendrecv", "sendrecv")


def found(job, **more):
    """What each rank found in a small job, of the last way that it tried."""
    return job(**SIZES, **more).records["metrics.shares"].iloc[-1]


def watched(job, way, **more):
    """What each rank was given and gave, as instruments.py tells it."""
    how = {**SIZES, "script": "instruments.py", "way": way, **more}
    return job(**how).records["metrics.found"].iloc[-1]


def elsewhere(job, way, was, because, **more):
    """The same on another number of ranks, for what is right on `was`."""
    try:
        return watched(job, way, **more)
    except ScaleoutError as failed:
        now = more["ranks"]
        raise AssertionError(
            f"on {was} ranks all is right, on {now} the job does not end "
            f"well. {because}\n{failed}"
        ) from None


def wrong_layers(ranks):
    """The layers whose gradient is not that of one rank, on any rank."""
    wrong = set()
    for each in ranks:
        for layer, off in zip(each["layers"], each["off"], strict=True):
            if not off <= CLOSE:
                wrong.add(layer)
    return sorted(wrong)


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
    """Split into columns and rows, it has the gradients of one rank."""
    try:
        wrong = wrong_layers(found(job))
    except ScaleoutError as failed:
        assert "exit status 142" not in str(failed), (
            "expected all ranks to add up together; saw a sum in which some "
            "took no part. add_up is called by every rank, outside any "
            "`if comm.rank == 0:`."
        )
        raise
    if wrong:
        because = tensor_slip(watched(job, "tensor"), 4, wrong)
        raise AssertionError(
            "expected the gradients of 8 layers as serial; saw layers "
            f"{wrong} wrong. {because}"
        )
    ranks = elsewhere(
        job, "tensor", 4, "Is 4 written where comm.size should stand?",
        ranks=3, layers=4, width=10, batch=6)
    wrong = wrong_layers(ranks)
    factors = [factor for each in ranks
               for layer, factor in zip(each["layers"], each["factor"],
                                        strict=True) if layer in (0, 1)]
    because = "Is 4 written where the number of ranks should stand?"
    assert not wrong, (
        "on 4 ranks all is right, on 3 layers "
        f"{wrong} of 4 are wrong, {max(factors):.2f} times too large. "
        f"{because}"
    )
    given = max(each["given"] for each in watched(
        job, "tensor", ranks=3, layers=4, width=40, batch=3))
    assert given < 3, (
        "the gradients are right, but for each pair a rank gives the others "
        f"{given:.1f} times as many bytes as g has. Its columns need not "
        "travel: add up the parts g_inner @ columns.T."
    )


def tensor_slip(ranks, size, wrong):
    """What each rank handed on, where that is known."""
    slips = set(ranks[0]["slips"]).intersection(
        *(each["slips"] for each in ranks))
    part = (
        "What each rank hands on is its part, g_inner @ columns.T, and not "
        "the sum of all parts.")
    reasons = {
        "part": f"Only the last pair is right, which needs no g from another. "
        f"{part}",
        "mean": "Below the last pair, gradients are a quarter of what they "
        "should be: the parts are a sum, not a mean.",
        "twice": "For each pair below the last, gradients are four times too "
        f"large: the sum over {size} ranks was made twice, or multiplied by "
        "their number.",
        "inner": "g_inner was added up, but each rank's belongs to other "
        "columns. Multiply by columns.T first: g_inner @ columns.T is the "
        "part of a sum.",
        "kept": "g goes on as it came: what was computed is not kept in g.",
        "unmasked": "ReLU between the two is left out: g_inner holds g @ "
        "rows.T where inner is above 0.",
        "unmasked part": "ReLU between the two is left out, and so is the "
        "sum: take g_inner, and add up over the ranks.",
        "first": "All ranks go on with rank 0's part. A sum is asked for.",
        "largest": "All ranks go on with the largest part. A sum is asked "
        "for.",
        "but last": "The last rank's part is missing from the sum.",
        "one rank": "Rank 0 alone has the sum: all ranks go on with it.",
        "columns": "The gradients of the columns were added up over the "
        "ranks, too. They are whole on each: only g needs a sum.",
        "rows": "The gradients of the rows were added up over the ranks, "
        "too. They are whole on each: only g needs a sum.",
    }
    known = [why for name, why in reasons.items() if name in slips]
    if known:
        return known[0]
    last = {6, 7}.intersection(wrong)
    if last:
        return (
            f"Also wrong is {' and '.join(f'layer {k}' for k in sorted(last))}"
            ", of the last pair, which comes before TODO 1: does it change an "
            "array that others use?")
    return (
        "The last pair is right, which needs no g from another. Each rank "
        "should hand on the sum over the ranks of g_inner @ columns.T.")


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
    """Four stages of two layers have the gradients of one rank."""
    try:
        ranks = found(job, **PARTS)
    except ScaleoutError as failed:
        said = str(failed)
        assert "was to exchange a message" not in said, (
            "expected each stage to talk to the one before and the one after "
            f"it; saw a stage that is not there. {reason_in(said)}"
        )
        groups = watched(job, "groups")
        asked_for_four(groups)
        raise
    asked_for_four([{"4": each["groups"]} for each in ranks])
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
    if wrong:
        lost = sum(each["unreceived"] for each in ranks)
        because = backward_slip(watched(job, "pipeline", **PARTS))
        if lost:
            because += f" {lost} messages were sent that no stage received."
        raise AssertionError(
            "expected the gradients of 8 layers as serial; saw layers "
            f"{wrong} wrong. {because}"
        )
    written = (
        "Is 3 or 4 written where self.last or pipe.size should stand? Or is "
        "it a Recv from whoever sends first?"
    )
    three = {"ranks": 3, "micro_batches": 3, "batch": 15}
    ranks = elsewhere(job, "pipeline", 4, written, schedule="1f1b", **three)
    sources = {source for each in ranks for source in each["sources"]}
    assert "any" not in sources, (
        "expected each stage to receive from the one after it; saw a Recv "
        "from whoever sends first. With 1F1B that may be the stage before: "
        "say pipe.rank + 1."
    )
    other = wrong_layers(ranks)
    if other:
        again = wrong_layers(watched(job, "pipeline", **three))
        assert not again, (
            f"on 4 stages all is right, on 3 layers {again} are wrong. "
            f"{written}"
        )
        raise AssertionError(
            f"with GPipe all is right; with 1F1B layers {other} are wrong. Is "
            "g changed while it may still be on its way? Isend it, keep the "
            "request, and leave g alone."
        )
    blocking = [name for name in BLOCKING
                for each in ranks if name in each["calls"]]
    assert not blocking, (
        "the gradients are right, but this stage waits in "
        f"{blocking[0]} until the stage before it has received a long "
        "message, and computes nothing meanwhile: Isend it."
    )
    dropped = sum(each["unfinished"] for each in ranks)
    assert not dropped, (
        "the gradients are right, but nobody waits for what Isend began: "
        f"{dropped} requests were dropped. A long message may then be "
        "overwritten before it has left. Keep the request in self.to_left."
    )
    waited = sum(each["waited"] for each in ranks)
    assert not waited, (
        "the gradients are right, but this stage waits for what it has just "
        "sent, and computes nothing meanwhile. Keep the request in "
        "self.to_left: self.back waits for it the next time."
    )


def reason_in(said):
    """The sentence that a rank ended with, without what stands around it."""
    at = max(said.find("Rank "), 0)
    return " ".join(said[at:].split("\n")[0].split())


def asked_for_four(ranks):
    """TODO 3 joins all four ranks, where four stages are asked for."""
    pipes = [each["4"][0] for each in ranks]
    lengths = sorted({len(pipe) for pipe in pipes})
    assert pipes == [[0, 1, 2, 3]] * 4, (
        f"TODO 3 gives groups of {' and '.join(map(str, lengths))}, 4 were "
        f"asked: for 4 stages `pipe` should join ranks 0 to 3; saw "
        f"{in_words(pipes)}. Mend TODO 3 first."
    )


def backward_slip(ranks):
    """Where the gradients of a pipeline go astray, as far as it shows."""
    stages = ranks[:-1]  # those which have one after them
    calls = {name for each in ranks for name in each["calls"]}
    if any(each["given"] > each["returned"] for each in ranks[1:]):
        return (
            "What goes to the left is what self.back(m, g) returns; here a "
            "stage sends on what self.back was given.")
    if any(each["zeros"] for each in stages):
        if "Irecv" in calls:
            return "Irecv has only begun when it returns: Wait for it."
        return (
            "self.back was given the zeros that g begins with: what self.back "
            "takes is what came from the right, so receive it first.")
    if any("any" in each["sources"] for each in stages):
        return "Recv takes from whoever sends first: say pipe.rank + 1."
    return (
        "What goes to the left is what self.back(m, g) returns, and what "
        "self.back takes is what came from the right.")


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
    groups = watched(job, "groups")
    pipes = [each["2"][0] for each in groups]
    sames = [each["2"][1] for each in groups]
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
    elif pipes == right_sames:
        because = " Those have the same stage: the colour is the replica."
    elif not min(len(pipe) for pipe in pipes):
        because = " Some ranks are in none: each needs a colour."
    assert pipes == right_pipes, (
        "expected `pipe` to join ranks 0 and 1, and ranks 2 and 3; saw "
        f"{in_words(pipes)}.{because}"
    )
    because = "Ranks with the same stage have the same colour."
    if sames == right_pipes:
        because = "Those are the stages of one replica, as in `pipe`."
    elif max(len(same) for same in sames) == 1:
        because = (
            "Each rank is alone, so no gradients are added up. " + because)
    assert [sorted(same) for same in sames] == right_sames, (
        "expected `same` to join ranks 0 and 2, which have the first layers, "
        f"and 1 and 3; saw {in_words(sames)}. {because}"
    )
    # As many stages as ranks, and one: what is written for two shows here.
    written = "Is 2 written where `stages` should stand?"
    for stages, pipe, same in (
        ("4", [[0, 1, 2, 3]] * 4, [[0], [1], [2], [3]]),
        ("1", [[0], [1], [2], [3]], [[0, 1, 2, 3]] * 4),
    ):
        for name, at, wanted in (("pipe", 0, pipe), ("same", 1, same)):
            saw = [each[stages][at] for each in groups]
            long = sorted({len(group) for group in saw})
            saw_in_order = saw if at == 0 else [sorted(g) for g in saw]
            assert saw_in_order == wanted, (
                f"with 2 stages all is right, with {stages} `{name}` has "
                f"groups of {' and '.join(map(str, long))}, and "
                f"{len(wanted[0])} were asked; saw {in_words(saw)}. {written}"
            )
    wrong = wrong_layers(found(job, replicas=2, **PARTS))
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
    try:
        ways = job(**SIZES).records["metrics.shares"]
    except ScaleoutError as failed:
        # sharded.py ends the job with a sentence.
        said = str(failed)
        for words in ("as long as g[mine]", "the same shard of both"):
            assert words not in said, (
                "expected shards of one length; saw others. "
                f"{sentence_with(words, said)}"
            )
        raise
    whole = ways.iloc[0][0]["state_bytes"]
    ranks = ways.iloc[1]
    kept = [each["state_bytes"] / whole for each in ranks]
    wrong = wrong_layers(ranks)
    assert max(kept) < 0.9, (
        "expected each of 4 ranks to keep a quarter of Adam's memory; saw "
        f"{max(kept):.0%} of it. adam keeps two arrays as long as the "
        "gradient that it is given: give it `part`."
    )
    if wrong:
        raise AssertionError(
            "expected the weights of one rank after 3 steps; saw layers "
            f"{wrong} wrong. {adam_slip(watched(job, 'sharded'), 'a quarter')}"
        )
    assert max(kept) < 0.3, (
        "expected a quarter of Adam's memory on each of 4 ranks; saw "
        f"{max(kept):.0%}."
    )
    ranks = elsewhere(
        job, "sharded", 4, "Is 4 written where comm.size should stand, or "
        "are all shards taken to be as long, as Reduce_scatter_block does?",
        ranks=3)
    right = all(each["own"] and each["others"] for each in ranks)
    assert right, (
        "on 4 ranks the weights are right, on 3 they are not. "
        f"{adam_slip(ranks, 'a third')}"
    )
    for each in ranks:
        assert each["numbers"] == each["shard"], (
            f"expected Adam's memory for {each['shard']} numbers of 10 on one "
            f"of 3 ranks; saw {each['numbers']}. Is 4 written where comm.size "
            "should stand?"
        )
    narrow = [each["float32"] for each in ranks if each["float32"]]
    assert not narrow, (
        "in float64 all is right, with --dtype float32 it is not: "
        f"{narrow[0]}. Is `part` of the type of g, as np.empty_like(g[mine]) "
        "is?"
    )
    calls = {name.lower().removeprefix("i") for each in ranks
             for name in each["calls"]}
    assert "allreduce" not in calls, (
        "weights and memory are right, but each rank asked for the whole sum, "
        "of which it needs a quarter. An allreduce ends in an allgather, and "
        "so all travels once more than it must: Reduce_scatter gives each "
        "rank its own shard alone."
    )
    one = calls & {"reduce", "gather", "gatherv"}
    assert not one, (
        "weights and memory are right, but all goes through one rank by "
        f"{min(one)}: the others wait for it. Reduce_scatter gives each rank "
        "its own shard."
    )


def sentence_with(words, said):
    """The line of what was said that holds these words."""
    line = next(line for line in said.split("\n") if words in line)
    starts = [at for at in (line.find("Reduce_scatter brings"),
                            line.find("adam was given")) if at >= 0]
    return " ".join(line[min(starts, default=0):].split())


def adam_slip(ranks, share):
    """What adam was given, or what became of the shards."""
    kinds = set(ranks[0]["kinds"]).intersection(
        *(each["kinds"] for each in ranks))
    calls = {name for each in ranks for name in each["calls"]}
    own = all(each["own"] for each in ranks)
    others = all(each["others"] for each in ranks)
    if "mean" in kinds:
        return (
            f"adam was given {share} of the gradient: a mean. Each rank's "
            "rows are a part of the batch, so the parts are a sum.")
    if "own" in kinds:
        return (
            "adam was given this rank's own gradient, which was never added "
            "up with the others'.")
    if "zeros" in kinds:
        return (
            "adam was given zeros: what Reduce_scatter brings belongs into "
            "`part`.")
    if "twice" in kinds:
        return "adam was given the sum many times over: add up once."
    if not any(each["kinds"] for each in ranks):
        return "adam was never called: no weight changes."
    if own and not others:
        if "Allgatherv" in calls or "Allgather" in calls:
            return (
                "Does adam change w[mine] before the shards are collected? "
                "Here each rank has old shards of the others.")
        return (
            "The ranks' weights differ: each has brought its own shard up to "
            "date, and the others' are old. Allgatherv brings them together.")
    if not own and "sum" in kinds:
        return (
            "adam was given the right sum, but what it changes is not kept "
            "in w: give it w[mine] itself, no copy.")
    return (
        "Give adam w[mine] and this rank's shard of the sum, and collect the "
        "shards of w after that.")


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
    how = {"threads": 1, "timeout": LIMIT_S, "env": SIZES["env"]}
    record = job(ranks=3, **how).records.iloc[0]
    sees_all(record, lambda: probed(job, 3, how)[1])
    try:
        record, known = probed(job, 2, how)
    except ScaleoutError as failed:
        raise AssertionError(
            "on 3 ranks all is right, on 2 the job does not end well. Is 3 "
            f"written where the number of ranks should stand?\n{failed}"
        ) from None
    sees_all(record, lambda: known, "on 3 ranks all is right, on 2: ")
    assert known[0]["small"] and not known[0]["big"], (
        "with these gradients all is right; with some 1,024 times "
        + ("as large it rings where nothing is wrong."
           if known[0]["big"] else "smaller it misses faults.")
        + " Compare with a part of the sum of the sizes, not with a fixed "
        "number."
    )
    assert not any(each["changed"] for each in known), (
        "the alarm is right, but it changes `mine` or `total`: the training "
        "goes on with them, so let it only look."
    )


def probed(job, ranks, how):
    """Some trials, and what the alarm says of sums that are known."""
    records = job(ranks=ranks, script="instruments.py", way="broken",
                  **how).records
    return records.iloc[0], records.iloc[-1]["metrics.found"]


def sees_all(record, known, start=""):
    """Every fault, and nothing else; known() says more, for the reasons."""
    rung = record["metrics.rung"]
    tried = record["metrics.tried"]
    clean = record["metrics.trials"]
    false_alarms = record["metrics.false_alarms"]
    if not sum(rung):
        because = "Does alarm look at `total`, and is its answer given back?"
        if any(known()[0]["loud"]):
            because = (
                "Is the limit far too high? Faults a million times as large "
                "are seen.")
        raise AssertionError(
            f"{start}expected an alarm for each of {sum(tried)} faults; saw "
            f"none. {because}"
        )
    if false_alarms:
        raise AssertionError(
            f"{start}expected no alarm where nothing was wrong; saw "
            f"{false_alarms} in {clean}. {false_reason(known())}"
        )
    assert record["metrics.some_only"] == 0, (
        f"{start}in {record['metrics.some_only']} of {sum(tried)} trials some "
        "ranks raised the alarm and others went on: they would wait for each "
        "other for ever. One rank that sees it must tell all."
    )
    given = record["metrics.alarm_bytes"]
    whole = record["metrics.sum_bytes"]
    assert given < whole / 8, (
        f"{start}the alarm gave {given:,.0f} bytes to the other ranks, and "
        f"the sum that it watches has {whole:,}: that costs as much as to add "
        "up again. Tell the others a few numbers."
    )
    reasons = [
        "In this kind, the rank whose copy is wrong must compare it with what "
        "it should be.",
        "In this kind, all ranks have the same wrong sum, so comparing ranks "
        "with each other shows nothing: compare with what they brought.",
        "In this kind, a sum is the same in any order: weigh each number by "
        "its place.",
    ]
    if list(rung) == list(tried):
        return
    for at, (name, seen, of) in enumerate(
            zip(record["metrics.faults"], rung, tried, strict=True)):
        because = reasons[at]
        if seen < of and known()[0]["loud"][at]:
            because = (
                "The limit is too high: the same faults are seen where they "
                "are a million times as large. Rounding needs a ten-millionth "
                "of the sum of the sizes.")
        assert seen == of, (
            f"{start}expected an alarm for each of {of} faults of the kind "
            f"'{name}'; saw {seen}. {because}"
        )


def false_reason(known):
    """Why the alarm goes off where nothing is wrong."""
    rings = known[0]["rings"]
    seeds = [each["seeds"] for each in known]
    if "nothing" in rings:
        return "It rings even where all numbers are 0: is its answer fixed?"
    if any(some != seeds[0] for some in seeds) or "()" in str(seeds):
        return (
            "The weights differ between the ranks: let each make the same, "
            "from one fixed seed.")
    if "one number" in rings and "its mean" not in rings:
        return (
            "It compares `total` with a mean of what the ranks brought, and "
            "it is their sum.")
    if "one number" in rings:
        return (
            "It rings even for one number that only rank 0 brings: do all "
            "ranks weigh alike, and do all parts of the sum count once?")
    return (
        "A sum in another order is rounded differently: allow for a little, "
        "such as a ten-millionth of the sum of the sizes.")
