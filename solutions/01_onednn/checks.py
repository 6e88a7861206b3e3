"""What each TODO of 01_onednn is checked by: short runs of small networks.

The checks look at the records and at what oneDNN reports of itself, never at
the code, and never at how long anything took. instruments.py sees which
library is chosen and what normalise gives back; four more jobs serve all.
"""

import numpy as np

from scaleout import ScaleoutError, onednn, todo

WARMUP = 2  # not the 3 that is usual: a number in the code would be seen
STEPS = 4
# And here others, so that neither 2 nor 4 can stand in the code.
PLAIN = {"warmup": 1, "steps": 5}
# As instruments.py has them
GAMMA = np.array([1.5, 0.5, 2.0])
BETA = np.array([0.25, -0.75, 1.0])
EPSILON = 0.3
ONE = {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}
MANY = {"Mean", "Sum", "Rsqrt", "Sqrt", "Square", "SquaredDifference", "Mul",
        "Sub", "Add", "AddV2", "RealDiv"}


def trained(job, kernels, **how):
    """A short run. What the shell had set is what the lab must overrule."""
    shell = "1" if kernels == "default" else "0"
    env = {"ONEDNN_VERBOSE": "1", "TF_ENABLE_ONEDNN_OPTS": shell}
    how = {"network": "cnn", "warmup": WARMUP, "steps": STEPS, **how}
    return job(ranks=1, env=env, kernels=kernels, **how)


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
    run = job(script="instruments.py", ranks=1, threads=1)
    (found,) = run.records["metrics.found"]
    because = library_reason(found)
    for each in found:
        wanted = "0" if each["kernels"] == "default" else "1"
        saw = each["library"]
        shell = "nothing" if each["shell"] is None else each["shell"]
        assert each["loaded"] and saw == wanted == each["python"], (
            f'expected TF_ENABLE_ONEDNN_OPTS to be "{wanted}" with --kernels '
            f"{each['kernels']}, where the shell had said {shell}, when "
            f"TensorFlow is imported; saw {each['python'] or 'none'}. "
            f"{because}"
        )
    # The shell says 1 and 0.
    default = convolutions(trained(job, "default", **PLAIN))
    library = convolutions(trained(job, "onednn"))
    assert not default, (
        f"expected no convolution from oneDNN with --kernels default; saw "
        f"{default}, where the shell had said 1. Is it set to 0 there?"
    )
    assert library, (
        "expected oneDNN to run the convolutions with --kernels onednn; saw "
        "none, where the shell had said 0. Is it set to 1 there?"
    )


def library_reason(found):
    """Why the variable may have these values, as far as it can be told."""
    saw = {(each["kernels"], each["shell"]): each["python"] for each in found}
    kinds = {kernels for kernels, _ in saw}
    on = {kernels for kernels in kinds
          if all(saw[kernels, shell] == "1" for shell in (None, "0", "1"))}
    off = {kernels for kernels in kinds
           if all(saw[kernels, shell] == "0" for shell in (None, "0", "1"))}
    others = kinds - {"default"}
    if any(each["library"] != each["python"] for each in found):
        return ("Python and the libraries see different values: assign to "
                "os.environ itself.")
    if set(saw.values()) - {"0", "1", None}:
        return 'The text is "0" or "1", and nothing more.'
    if all(text == shell for (_, shell), text in saw.items()):
        return ("Nothing is set when TensorFlow is imported: assign to "
                "os.environ before that.")
    if all(text == shell for (_, shell), text in saw.items() if shell):
        return ("The shell's own setting has won: assign to os.environ, "
                "whatever it has.")
    if on == {"default"} and off == others:
        return 'It is the other way round: "0" is off.'
    if on == kinds or off == kinds:
        return ('It is the same for all kernels: "0" for default, "1" for '
                "all others.")
    if off > {"default"} and on | off == kinds:
        lost = ", ".join(sorted(off - {"default"}))
        return (f"It is off for default alone; here it is off with --kernels "
                f"{lost}, too.")
    if not off and on == others:
        return "Where the shell has said 1, it is to be set to 0 for default."
    if off == {"default"}:
        return "Set it to 1 for all others, whatever the shell has said."
    return '"0" for default, "1" for anything else, whatever the shell says.'


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
    for warmup, steps, run in (
        (WARMUP, STEPS, trained(job, "onednn")),
        (PLAIN["warmup"], PLAIN["steps"], trained(job, "default", **PLAIN)),
    ):
        record = run.records.iloc[0]
        every = record["metrics.all_step_s"]
        timed = np.atleast_1d(record["metrics.timed_s"])
        assert np.array_equal(timed, every[warmup:]), (
            f"expected the last {steps} steps out of --warmup {warmup} "
            f"--steps {steps}; saw {len(timed)} steps that are not these "
            f"{steps}. {warmup_reason(timed, every, warmup, steps)}"
        )
        rate = record["rate"]
        wanted = record["batch_per_rank"] * steps / sum(timed)
        assert np.isclose(rate, wanted), (
            f"expected the rate of the {steps} timed steps, {wanted:.1f} "
            f"images/s; saw {rate:.1f}. Do other steps count in it?"
        )


def warmup_reason(timed, every, warmup, steps):
    """Why these steps may have been kept, as far as it can be told."""
    slips = [
        (every, "All steps are there: leave out the first args.warmup."),
        (every[:warmup], "Those are the warm-up itself: keep what comes "
         "after it."),
        (every[-warmup:], "Those are the last ones alone: args.warmup says "
         "how many are left out, at the front."),
        (every[:-warmup], "The last ones are left out: the first are the "
         "slow ones."),
        (every[warmup:-1], "The last ones count, too: up to the end of "
         "step_s."),
        (every[warmup:steps], "The last ones count, too: up to the end of "
         "step_s."),
        (sorted(every)[:steps], "Their order is that of the training: do "
         "not sort them."),
        (every[1:], "Leave out args.warmup steps, not only the first."),
    ]
    for many in range(len(every)):
        slips.append((every[many:], f"{many} are left out, of --warmup "
                      f"{warmup}: args.warmup says how many."))
    return next((why for some, why in slips if np.array_equal(timed, some)),
                "")


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
    run = job(script="instruments.py", normalise=True, ranks=1, threads=1)
    (found,) = run.records["metrics"]
    as_normalised(found["found"])
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


def is_near(saw, wanted):
    """Whether two arrays agree, up to rounding."""
    return saw.shape == np.shape(wanted) and np.allclose(
        saw, wanted, rtol=1e-3, atol=1e-4)


def as_normalised(found):
    """A few numbers come out normalised, with their means and variances."""
    kind = found["kind"]
    if kind == "NoneType":
        kind = "nothing: does it stand behind `return`?"
    assert kind == "three", (
        "normalise has to return three things: what is normalised, the "
        f"means, the variances; saw {kind}"
    )
    x = np.array(found["x"])
    y, means, variances = map(np.array, found["saw"])
    mean = x.mean((0, 1, 2))
    variance = x.var((0, 1, 2))
    count = x[..., 0].size
    # TensorFlow's operation divides by one less than there are numbers.
    wide = variance * count / (count - 1)

    def by(gamma, beta, epsilon):
        return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta

    wanted = by(GAMMA, BETA, EPSILON)
    slips = [
        (by(BETA, GAMMA, EPSILON), "gamma and beta are swapped: x, then "
         "gamma, which multiplies, then beta, which is added."),
        (by(GAMMA, BETA, 0.001), "Does epsilon=epsilon stand there? Without "
         "it TensorFlow takes 0.001."),
        (by(BETA, GAMMA, 0.001), "gamma, which multiplies, comes before beta, "
         "which is added; and epsilon=epsilon belongs there."),
        (by(1, BETA, EPSILON), "gamma is to multiply it."),
        (by(GAMMA, 0, EPSILON), "beta is to be added."),
        (by(1, 0, EPSILON), "gamma is to multiply it, and beta to be added."),
        (by(GAMMA, GAMMA, EPSILON), "gamma multiplies, and beta is added."),
        (by(BETA, BETA, EPSILON), "gamma multiplies, and beta is added."),
        (x, "It is x, as it was."),
        (mean, "First comes what is normalised."),
    ]
    because = next((why for slip, why in slips if is_near(y, slip)),
                   "Are x, gamma, beta and epsilon what it is given? A "
                   "number more is not needed.")
    because = another_epsilon(y, by) or because
    assert is_near(y, wanted), (
        "expected what the four lines give for a few numbers, such as "
        f"{wanted.flat[0]:.4f} for {x.flat[0]:.4f}; saw {y.flat[0]:.4f}. "
        f"{because}"
    )
    swapped = (is_near(means, variance) or is_near(means, wide)
               ) and is_near(variances, mean)
    assert is_near(means, mean) and (
        is_near(variances, variance) or is_near(variances, wide)), (
        f"expected the means {shown(mean)} and the variances "
        f"{shown(variance)}; saw {shown(means)} and {shown(variances)}. "
        "normalise returns what is normalised, then the means, then the "
        f"variances{': the last two are swapped' if swapped else ''}."
    )
    ran = set(found["operations"])
    assert ran & ONE and not ran & MANY, (
        "expected one operation that normalises; saw TensorFlow run "
        f"{', '.join(sorted(ran & (MANY | ONE)))}. The result is right, but "
        "it still comes from many operations."
    )


def another_epsilon(y, by):
    """What to say where a number stands in the place of epsilon."""
    for epsilon in (0.0, 0.01, 0.1):
        if is_near(y, by(GAMMA, BETA, epsilon)):
            return (f"An epsilon of {epsilon:g} is in it: give it on, as "
                    "epsilon=epsilon.")
    return ""


def shown(numbers):
    """A few numbers in a sentence."""
    return " and ".join(f"{number:.4f}" for number in np.ravel(numbers)[:3])
