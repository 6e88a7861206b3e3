"""What each TODO of 06_tuning is checked by: a few steps, on two ranks where
it is about both.

A step has two images without a label on each rank. The checks look at what the
record says, never at the code.
"""

from scaleout import data, todo

BRIEF = {
    "threads": 1,
    "steps": 4,
    "batch_per_rank": 2,
}
KNOB = "HOROVOD_CYCLE_TIME"


def metrics_of(job, ranks=1, evaluation="shared", **more):
    """Runs the job; the metrics of its one record."""
    run = job(**BRIEF, ranks=ranks, evaluation=evaluation, **more)
    assert len(run.records) == 1, (
        f"expected one record, from rank 0; saw {len(run.records)}."
    )
    return run.records["metrics"].iloc[0]


def alone(job):
    """One rank that goes through its graph after each step."""
    return metrics_of(job, evaluation="compiled", evaluate_every=1)


def another(job):
    """A second job: other evaluation, and a setting by the launcher."""
    return metrics_of(job, ranks=2, evaluation="compiled", env={KNOB: "7.5"})


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
    metrics = alone(job)
    tested = metrics["shares"][0]["tested"]
    calls = len(metrics["at_step"]) * -(-tested // 100)
    saw = metrics["shares"][0]["looked"]
    # The last batch may be smaller, and has a graph of its own.
    most = 1 + (tested % 100 > 0)
    assert saw > 0, (
        f"expected Python to go through the layers of `classify` once; saw "
        f"{calls} calls, and none of `classify`. The graph is to be made of "
        "`classify` itself."
    )
    assert saw <= most, (
        f"expected Python to go through the layers {most} time(s) in {calls} "
        f"calls, once for each size of a batch; saw {saw}. "
        + ("No graph is used again: either there is none, or each call "
           "builds its own. Make it once, and give it back."
           if saw >= calls else "")
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
    whole = len(data.digits()[3])
    shares = metrics_of(job, ranks=2)["shares"]
    tested = [share["tested"] for share in shares]
    because = ""
    if tested == [whole, 0]:
        because = "Rank 0 tests them all, and rank 1 waits."
    elif tested == [whole, whole]:
        because = "Both test all of them: start from `rank`."
    elif sum(tested) > whole:
        because = "Some are tested twice."
    elif sum(tested) < whole:
        because = "Some are not tested: batches[rank::ranks] deals out all."
    assert min(tested) > 0 and sum(tested) == whole, (
        f"expected some of the {whole} test images on each of two ranks; saw "
        f"{tested[0]} and {tested[1]}. {because}"
    )
    shares = another(job)["shares"]
    tested = [share["tested"] for share in shares]
    assert tested == [whole, 0], (
        f"with --evaluation compiled, expected all {whole} test images on "
        f"rank 0; saw {tested[0]} and {tested[1]}. Only \"shared\" deals them "
        "out: `evaluation` says which it is."
    )


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
    saw = alone(job)["settings"].get(KNOB)
    assert saw is not None, (
        f"expected {KNOB} among the settings of the job; saw none. This one "
        "can wait until you have found yours, in the step \"Waiting\"."
    )
    try:
        above_zero = float(saw) > 0
    except ValueError:
        above_zero = False
    assert above_zero, (
        f"expected a number of milliseconds in {KNOB}, as text; saw {saw!r}."
    )
    saw = another(job)["settings"].get(KNOB)
    assert saw == "7.5", (
        f"expected the 7.5 that the launcher asked for in {KNOB}; saw {saw}. "
        "What the launcher asks for must win."
    )
