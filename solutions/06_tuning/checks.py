"""What each TODO of 06_tuning is checked by: its functions, on two ranks and
on three.

instruments.py calls them with a few batches; nothing is trained. The checks
look at what they gave back, never at the code. Three ranks start once all is
right on two.
"""

import math

from scaleout import ScaleoutError, todo

# MPICH then takes the ranks for two machines: a local rank is no rank.
APART = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
KNOB = "HOROVOD_CYCLE_TIME"
ASKED = "7.5"  # by the launcher, of the first job
JOBS = {2: APART | {KNOB: ASKED}, 3: APART}
COUNTS = [3, 7, 6, 1]  # batches that are dealt out
OTHERS = ["predict", "predict_on_batch", "compiled"]
TWO = "2 is written where the number of ranks should stand: "


def seen(job, ranks, what):
    """What each rank showed, though the job may have failed later on."""
    failed = None
    try:
        run = job(ranks=ranks, threads=1, script="instruments.py",
                  env=JOBS[ranks])
    except ScaleoutError as error:
        failed, run = error, getattr(error, "run", None)
        if run is None:
            raise
    records = run.records
    found = list(records["metrics.found"][records["variant"] == what]
                 if len(records) else [])
    if failed and not (found and all(found[0])):
        raise failed
    return found[0]


def listed(values):
    """Such as "4, 4 and 3"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}"


def a_graph(way, gives, calls, looked, same, after, error, size=0):
    """What way_to_classify gave back is one graph of `classify`."""
    assert calls, (
        "expected TODO 1 to give back a function, which classifies when it "
        f"is called; saw {gives}, which cannot be called. Give back the "
        "graph itself, without brackets behind it for images."
    )
    assert not error, (
        f"expected what TODO 1 gives back to classify {size} images, as "
        "many as a batch has here; saw "
        f"{error} "
        + ("The last batch is smaller than the others." if looked
           else "Is it made of `classify`?")
    )
    assert looked > 0, (
        "expected Python to go through the layers of `classify` once; saw "
        f"{calls} calls, and none of `classify`. The graph is to be made of "
        "`classify` itself."
    )
    # The last batch may be smaller, and has a graph of its own.
    assert looked <= 2, (
        f"with --evaluation {way}, expected Python to go through the layers "
        f"2 times in {calls} calls, once for each size of a batch; saw "
        f"{looked}. "
        + ("No graph is used again: either there is none, or each call "
           "builds its own. Make it once, and give it back."
           if looked >= calls else "Is one graph used for all batches?")
    )
    assert same, (
        "expected the logits that `classify` gives for the images of each "
        "call; saw others. The graph is to compute all of it, each time."
    )
    assert after, (
        "expected the logits of the classifier as it is at each call; saw, "
        "after its weights had changed, those of the old ones. The graph is "
        "made before training, and is to read the weights, not a copy."
    )


@todo(
    1,
    hints=[
        "Called as it is, `classify` asks Python for each layer, each time. "
        "What turns a Python function into a graph?",
        "tf.function takes a function and gives one back: its first call "
        "builds the graph, and the later ones run it.",
        "return tf.function(classify, autograph=False)",
    ],
)
def the_graph_is_built_once(job):
    """Python goes through the layers once, whatever the number of calls."""
    for ranks in JOBS:
        for way, found in seen(job, ranks, "ways")[0].items():
            a_graph(way, **found)


def all_there(way, found):
    """Each rank is told its batches, as often as it asks."""
    for rank, each in enumerate(found):
        assert each["first"] is not None, (
            f"with --evaluation {way}, expected a list of batches on each "
            f"rank; saw {each['gives']} on rank {rank}, which is none. Is "
            "there a `return` for each case?"
        )
        assert each["again"] == each["first"], (
            f"expected the same batches in each evaluation; saw none left in "
            f"the second, on rank {rank}. A {each['gives']} can be gone "
            "through once: make a list of it."
        )


def shared(ranks, count, found):
    """With "shared", each batch is on one rank, and nobody waits long."""
    all_there("shared", found)
    parts = [each["first"] for each in found]
    saw = [len(part) for part in parts]
    whole = list(range(count))
    both = sorted(sum(parts, []))
    because = "Some are not tested: batches[rank::ranks] deals out all."
    if ranks == 3 and parts in twos(count):
        because = f"{TWO}batches[rank::ranks]"
    elif saw == [count] + [0] * (ranks - 1):
        because = "Rank 0 tests them all, and rank 1 waits."
    elif all(part == whole for part in parts):
        because = "All test all of them: start from `rank`."
    elif both == whole:
        because = "The others wait for the rank that has most."
    elif both == whole[1:]:
        because = (
            "The first is not tested: ranks are counted from 0, and so are "
            "batches."
        )
    elif all(part == parts[0] for part in parts):
        because = "All test the same: start from `rank`."
    elif set(both) == set(whole):
        because = "Some are tested twice."
    elif len(set(both)) < len(both):
        because = (
            "Some are tested twice, some not at all: begin at `rank`, and "
            "take every `ranks`-th."
        )
    assert both == whole and max(saw) <= -(-count // ranks), (
        f"expected each of {count} batches on one of {ranks} ranks, and at "
        f"most {-(-count // ranks)} on each; saw {listed(saw)}. {because}"
    )


def twos(count):
    """What three ranks take where 2 is written for their number."""
    numbers = list(range(count))
    half = count // 2
    more = -(-count // 2)
    return [
        [numbers[rank::2] for rank in range(3)],
        [numbers[rank * half:(rank + 1) * half] for rank in range(3)],
        [numbers[rank * more:(rank + 1) * more] for rank in range(3)],
        [[i for i in numbers if i % 2 == rank] for rank in range(3)],
        [numbers[rank * count // 2:(rank + 1) * count // 2]
         for rank in range(3)],
    ]


def alone(way, count, found):
    """With the others, rank 0 tests all, and the others none."""
    all_there(way, found)
    saw = [each["first"] for each in found]
    wanted = [list(range(count))] + [[]] * (len(found) - 1)
    assert saw == wanted, (
        f"with --evaluation {way}, expected all {count} batches on "
        f"rank 0; saw {listed(map(len, saw))}. Only \"shared\" deals them "
        "out: `evaluation` says which it is."
    )


@todo(
    2,
    hints=[
        "While rank 0 tests everything, the others wait. Deal the batches out "
        "to the ranks, as in TODO 6 of 05.",
        "A slice with a step takes every second element; begin where your "
        "rank begins: batches[first::every]",
        'if evaluation == "shared": return batches[rank::ranks]',
    ],
)
def nobody_waits_for_the_evaluation(job):
    """With --evaluation shared both ranks test, each image on one of them."""
    for ranks in JOBS:
        found = seen(job, ranks, "deals")
        for nth, count in enumerate(COUNTS):
            shared(ranks, count, [each["shared"][nth] for each in found])
            for way in OTHERS:
                alone(way, count, [each[way][nth] for each in found])


@todo(
    3,
    hints=[
        "The step \"Waiting\" of the notebook prints what it kept: which "
        "variables are these?",
        "A dictionary from names to text; Horovod reads HOROVOD_CYCLE_TIME "
        "(milliseconds) when it starts.",
        'found = {"HOROVOD_CYCLE_TIME": "5"}, with the values that won on '
        "your machine",
    ],
)
def the_settings_are_in_effect(job):
    """HOROVOD_CYCLE_TIME is set when nobody asks for another."""
    saw = seen(job, 3, "settings")[0]["settings"]
    like = [name for name in saw if name != KNOB]
    assert KNOB in saw, (
        f"expected {KNOB} among the settings of the job; saw "
        f"{like[0] if like else 'none'}. This one can wait until you have "
        "found yours, in the step \"Waiting\"."
    )
    saw = saw[KNOB]
    try:
        ms = float(saw)
    except ValueError:
        ms = 0.0
    assert 0 < ms < math.inf, (
        f"expected a number of milliseconds in {KNOB}, as text; saw {saw!r}."
    )
    assert ms >= 0.1, (
        f"expected milliseconds in {KNOB}, such as those that you have "
        f"tried; saw {saw}. Are these seconds?"
    )
    assert ms <= 1000, (
        f"expected milliseconds in {KNOB}, such as those that you have "
        f"tried; saw {saw}, more than a second. Are these microseconds?"
    )
    saw = seen(job, 2, "settings")[0]["settings"].get(KNOB)
    assert saw == ASKED, (
        f"expected the {ASKED} that the launcher asked for in {KNOB}; saw "
        f"{saw}. What the launcher asks for must win."
    )
