"""What each TODO of 01_onednn is checked by: short runs of small networks.

The checks look at the records and at what oneDNN reports of itself, never at
the code, and never at how long anything took. Five jobs serve all of them.
"""

import numpy as np

from scaleout import ScaleoutError, onednn, todo

WARMUP = 2  # not the 3 that is usual: a number in the code would be seen
STEPS = 4


def trained(job, kernels, **how):
    """A short run. What the shell had set is what the lab must overrule."""
    shell = "1" if kernels == "default" else "0"
    env = {"ONEDNN_VERBOSE": "1", "TF_ENABLE_ONEDNN_OPTS": shell}
    how = {"network": "cnn", **how}
    return job(ranks=1, env=env, kernels=kernels,
               warmup=WARMUP, steps=STEPS, **how)


def primitives(run):
    """The names of what oneDNN ran: a list, maybe empty."""
    try:
        return list(onednn.parse(run.lines).primitive)
    except ScaleoutError:  # oneDNN ran nothing at all
        return []


def convolutions(run):
    """How many convolutions oneDNN ran."""
    return primitives(run).count("convolution")


@todo(
    1,
    hints=[
        "TensorFlow decides while it is imported. What it reads then is an "
        "environment variable; in Python these are in os.environ.",
        'os.environ["TF_ENABLE_ONEDNN_OPTS"] takes "0" or "1", as text. Set '
        "it for every kind of kernels: only one of the five is without "
        "oneDNN.",
        'choice = "0" if args.kernels == "default" else "1", and below it '
        'os.environ["TF_ENABLE_ONEDNN_OPTS"] = choice',
    ],
)
def the_library_is_chosen(job):
    """oneDNN runs no convolution for default, and is on for all others."""
    # The shell says 1, 0 and 0.
    default = convolutions(trained(job, "default"))
    library = convolutions(trained(job, "onednn"))
    if default and not library:
        raise AssertionError(
            "expected no convolution from oneDNN with --kernels default, and "
            "some with onednn; saw it the other way round. Either the two "
            'values are swapped ("0" is off), or the shell\'s own setting has '
            "won: assign to os.environ, in any case, and before TensorFlow is "
            "imported."
        )
    assert not default, (
        f"expected no convolution from oneDNN with --kernels default; saw "
        f"{default}, where the shell had said 1. Is it set to 0 there?"
    )
    assert library, (
        "expected oneDNN to run the convolutions with --kernels onednn; saw "
        "none, where the shell had said 0. Is it set to 1 there?"
    )
    # Not by its convolutions: without AVX-512, oneDNN runs none in bf16.
    bf16 = trained(job, "bf16").records["metrics.onednn"].iloc[0]
    assert bf16 == "1", (
        "expected oneDNN to be switched on with --kernels bf16, too; saw "
        f"{bf16!r}. It is off for default alone, and on for all others."
    )


@todo(
    2,
    hints=[
        "step_s holds the seconds of all steps, in order. Which of them do "
        "not show how fast the training is?",
        "A slice of a list leaves out its first elements: step_s[how_many:]",
        "timed_s = step_s[args.warmup:]",
    ],
)
def warm_up_is_left_out(job):
    """Of 2 + 4 steps, only the last 4 are timed, and only they are counted."""
    record = trained(job, "onednn").records.iloc[0]
    every = record["metrics.all_step_s"]
    timed = record["metrics.timed_s"]
    because = ""
    if np.array_equal(timed, every):
        because = "All steps are there: leave out the first args.warmup."
    elif np.array_equal(timed, every[:WARMUP]):
        because = "Those are the warm-up itself: keep what comes after it."
    elif np.array_equal(timed, every[-WARMUP:]):
        because = "Count from the front: how many are left out, not kept."
    elif np.array_equal(timed, every[3:]):
        because = "3 are left out, of --warmup 2: args.warmup says how many."
    elif np.array_equal(timed, every[1:]):
        because = "Leave out args.warmup steps, not only the first."
    elif np.array_equal(timed, every[:STEPS]):
        because = "The first ones are the slow ones: leave these out."
    assert np.array_equal(timed, every[WARMUP:]), (
        f"expected the last 4 steps out of --warmup 2 --steps 4; saw "
        f"{len(timed)} steps that are not these 4. {because}"
    )
    rate = record["rate"]
    wanted = record["batch_per_rank"] * STEPS / sum(timed)
    assert np.isclose(rate, wanted), (
        f"expected the rate of the 4 timed steps, {wanted:.1f} images/s; saw "
        f"{rate:.1f}. Do other steps count in it?"
    )


@todo(
    3,
    hints=[
        "A mean, a variance, a difference, a product: each of these lines "
        "reads the whole of x. Which one operation does them all?",
        "Call tf.compat.v1.nn.fused_batch_norm with x, gamma and beta in "
        "this order. epsilon goes in by its name. It returns three things, "
        "and so does normalise.",
        "return tf.compat.v1.nn.fused_batch_norm(x, gamma, beta, "
        "epsilon=epsilon), in place of the four lines",
    ],
)
def batch_norm_is_one_operation(job):
    """oneDNN normalises in one operation, and the network learns the same."""
    small = {"network": "normed", "batch_norm": "fused"}
    fused = trained(job, "onednn", **small)
    keras = trained(job, "onednn", network="normed", batch_norm="keras")
    loss = fused.records["metrics.loss"].iloc[0]
    wanted = keras.records["metrics.loss"].iloc[0]
    assert np.isclose(loss, wanted, rtol=1e-3), (
        f"expected the loss that Keras's own layer gives after 6 steps, "
        f"{wanted:.4f}; saw {loss:.4f}. Is it x, then gamma, which "
        "multiplies, then beta, which is added? And does epsilon=epsilon "
        "stand there? Without it TensorFlow takes 0.001."
    )
    moving = fused.records["metrics.moving"].iloc[0]
    expected = keras.records["metrics.moving"].iloc[0]
    assert np.allclose(moving, expected, rtol=1e-3, atol=1e-5), (
        f"expected running averages of {shown(expected)} for mean and "
        f"variance; saw {shown(moving)}. normalise returns what is "
        "normalised, then the means, then the variances."
    )
    ran = primitives(fused)
    assert "convolution" in ran, (
        "expected oneDNN to run the convolutions; saw none. Is TODO 1 done?"
    )
    assert "batch_normalization" in ran, (
        "expected oneDNN to normalise, in one operation; saw it run "
        f"{', '.join(sorted(set(ran)))}. The result is right, but it still "
        "comes from many operations."
    )


def shown(numbers):
    """A few numbers in a sentence."""
    return " and ".join(f"{number:.4f}" for number in numbers)
