"""What each TODO of 06_tuning is checked by: a few steps, on two ranks where
it is about both.

A step has two images without a label on each rank. The checks look at what the
record says, never at the code.
"""

from math import exp, log, log1p
from statistics import mean

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


def another(job):
    """A second job: other evaluation, and a setting by the launcher."""
    return metrics_of(job, ranks=2, evaluation="compiled", env={KNOB: "7.5"})


def softplus(logits, sign=1):
    """For each logit: large for a large one, near 0 for one far below 0."""
    return [log1p(exp(sign * logit)) for logit in logits]


@todo(
    1,
    hints=[
        "An image is real if it shows any of the digits. Which single number "
        "is large as soon as one of ten logits is large?",
        "exp, then a sum over the classes, axis 1, then log; TensorFlow has "
        "one function for the three.",
        "return tf.reduce_logsumexp(classes, axis=1)",
    ],
)
def the_heads_share_their_weights(job):
    """The unsupervised head follows from the logits of the supervised one."""
    heads = metrics_of(job)["heads"]
    logits = heads["classes"][0]
    wanted = log(sum(map(exp, logits)))
    saw = heads["real"]
    assert isinstance(saw, list) and len(saw) == len(heads["classes"]), (
        f"expected one number for each of {len(heads['classes'])} images; saw "
        f"{saw if not isinstance(saw, list) else len(saw)}. The sum goes over "
        "the classes, axis=1."
    )
    saw = saw[0]
    reasons = {
        sum(map(exp, logits)): "That is the sum of the exponentials: its "
        "logarithm is missing.",
        sum(logits): "That is the sum of the logits.",
        max(logits): "That is the largest logit alone.",
        log(sum(map(exp, logits)) / len(logits)): "That is the logarithm of "
        "their mean: the sum is asked for.",
    }
    near = [why for number, why in reasons.items() if abs(saw - number) < 1e-4]
    assert abs(saw - wanted) < 1e-3, (
        f"expected {wanted:.3f}, from the class logits of a test image; saw "
        f"{saw:.3f}. {' '.join(near)}"
    )


@todo(
    2,
    hints=[
        "Two terms: one for the images from the data, which are to be called "
        "real, one for those from the generator.",
        "softplus(-a) is large where a is far below 0. The mean over the "
        "images: tf.reduce_mean(tf.nn.softplus(...))",
        "unlabelled = tf.reduce_mean(tf.nn.softplus(-real)), and add "
        "tf.reduce_mean(tf.nn.softplus(fake))",
    ],
)
def images_without_a_label_count(job):
    """Their loss is small when real images are called real, made ones made."""
    losses = metrics_of(job)["losses"]
    real = losses["real"]
    fake = losses["fake"]
    saw = losses["unlabelled"]
    right_real = mean(softplus(real, -1))
    right_fake = mean(softplus(fake))
    wrong_real = mean(softplus(real))
    wrong_fake = mean(softplus(fake, -1))
    wanted = right_real + right_fake
    reasons = {
        wanted * len(real): "That is the sum over the images: take their "
        "mean, or a larger batch needs another learning rate.",
        wrong_real + wrong_fake: "The signs are the other way round: "
        "this calls real images made.",
        wrong_real + right_fake: "The minus is missing: real images "
        "are to have a large logit.",
        right_real + wrong_fake: "Made images are to have a small "
        "logit: no minus for them.",
        right_real: "The images of the generator are missing.",
        right_fake: "The images of the data are missing.",
        wanted / 2: "That is half of it: add the two means up.",
    }
    near = [why for number, why in reasons.items() if abs(saw - number) < 1e-5]
    assert abs(saw - wanted) < 1e-5, (
        f"expected {wanted:.5f} where the logits of the real images are "
        f"{in_words(real)} and those of the made ones {in_words(fake)}; saw "
        f"{saw:.5f}. {' '.join(near)}"
    )


def in_words(logits):
    """Such as "0.123 and 0.456"."""
    return " and ".join(f"{logit:.3f}" for logit in logits)


@todo(
    3,
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
    4,
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
    saw = metrics_of(job)["settings"].get(KNOB)
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
