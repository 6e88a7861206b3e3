"""What each TODO of 06_tuning is checked by: two steps on two ranks, one image each, and what the record says."""

from math import exp, log, log1p

from scaleout import data
from scaleout.exercises import todo

BRIEF = {"ranks": 2, "threads": 1, "steps": 4, "batch_per_rank": 1, "evaluation": "shared"}
KNOB = "HOROVOD_CYCLE_TIME"


def metrics(job, **more):
    """Runs the job on two ranks; the metrics of its one record."""
    run = job(**BRIEF, **more)
    assert len(run.records) == 1, f"expected one record, from rank 0; saw {len(run.records)}."
    return run.records["metrics"].iloc[0]


@todo(
    1,
    hints=[
        "An image of any class is a real one. Which single number is large as soon as one of ten logits is large?",
        "exp, then a sum over the classes, axis 1, then log; TensorFlow has one function for the three.",
        "return tf.reduce_logsumexp(classes, axis=1)",
    ],
)
def the_heads_share_their_weights(job):
    """What the unsupervised head says follows from the logits of the supervised one."""
    heads = metrics(job)["heads"]
    wanted = log(sum(exp(logit) for logit in heads["classes"][0]))
    saw = heads["real"][0]
    assert abs(saw - wanted) < 1e-3, f"expected {wanted:.3f}, from the class logits of a test image; saw {saw:.3f}."


@todo(
    2,
    hints=[
        "Two terms: one for the images from the data, which are to be called real, one for those from the generator.",
        "softplus(-a) is large where a is far below 0. The mean over the images: tf.reduce_mean(tf.nn.softplus(...))",
        "unlabelled = tf.reduce_mean(tf.nn.softplus(-real)) + tf.reduce_mean(tf.nn.softplus(fake))",
    ],
)
def images_without_a_label_count(job):
    """Their loss is small when real images are called real and made ones made."""
    losses = metrics(job)["losses"]
    wanted, saw = log1p(exp(-losses["real"])) + log1p(exp(losses["fake"])), losses["unlabelled"]
    logits = f"where the logit of the real image is {losses['real']:.3f} and that of the made one {losses['fake']:.3f}"
    assert abs(saw - wanted) < 1e-3, f"expected {wanted:.3f} {logits}; saw {saw:.3f}."


@todo(
    3,
    hints=[
        "While rank 0 tests everything, the others wait. Deal the batches out as the training images are dealt.",
        "A slice with a step takes every second element; begin where your rank begins: batches[first::every]",
        'mine = batches[rank::ranks] if args.evaluation == "shared" else batches * (rank == 0)',
    ],
)
def nobody_waits_for_the_evaluation(job):
    """With --evaluation shared both ranks test, each image on one of them."""
    whole, tested = len(data.digits()[3]), [share["tested"] for share in metrics(job)["shares"]]
    saw = f"saw {tested[0]} and {tested[1]}"
    well = min(tested) > 0 and sum(tested) == whole
    assert well, f"expected some of the {whole} test images on each of two ranks; {saw}."


@todo(
    4,
    hints=[
        "Your sweep left a best.sh: which variables does it set?",
        "A dictionary from names to text; Horovod reads HOROVOD_CYCLE_TIME (milliseconds) when it starts.",
        'found = {"HOROVOD_CYCLE_TIME": "5"}, with the values that won on your machine',
    ],
)
def the_settings_are_in_effect(job):
    """HOROVOD_CYCLE_TIME is set when nobody asks for it, and gives way to somebody who does."""
    saw = metrics(job)["settings"].get(KNOB)
    assert saw is not None, f"expected {KNOB} among the settings of the job; saw none."
    saw = metrics(job, env={KNOB: "7.5"})["settings"].get(KNOB)
    assert saw == "7.5", f"expected the 7.5 that the launcher asked for in {KNOB}; saw {saw}."
