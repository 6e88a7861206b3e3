"""What the one TODO of 12_capstone is checked by: the loss of a few small
cases. After it nothing is checked: the rest is your own work.

instruments.py asks your overlap_loss, without a training. The check looks at
what it says, never at the code.
"""

from scaleout import todo

BRIEF = {"ranks": 1, "threads": 1, "script": "instruments.py"}
EXCHANGED = "alpha counts alarms and beta counts misses: are they exchanged?"
COUNTED = (
    "These are counts of pixels, which do not change when the network is a "
    "little surer: take products of masks and sure."
)
BATCH = "The sums go over all slices of a batch."
TWO = "The 2 of Dice's loss is still there: Tversky's has none."
BRACKETS = "Which sums belong in brackets? / comes before +."


def near(saw, wanted):
    """Whether two losses are the same, as far as fp32 tells."""
    return saw is not None and abs(saw - wanted) < 1e-5


def whole(case):
    """What is right, alarms and misses of all slices."""
    return [sum(part) for part in zip(*case["sums"], strict=True)]


def tversky(right, alarms, misses, alpha, beta, above=1.0, below=None):
    """The loss, with so much smooth above and below."""
    weighed = right + alpha * alarms + beta * misses
    below = above if below is None else below
    under = weighed + below
    return 1 - (right + above) / under if under else float("nan")


def slips(case, smooth):
    """What each likely slip would give, and what it is."""
    a, b = case["alpha"], case["beta"]
    parts = right, alarms, misses = whole(case)
    pixels = case["pixels"]
    true, drawn = right + misses, right + alarms
    weighed = right + a * alarms + b * misses
    loss = tversky(*parts, a, b, smooth)
    counts = [sum(part) for part in zip(*case["counts"], strict=True)]
    each = [tversky(*slice_, a, b, smooth) for slice_ in case["sums"]]
    means = [part / pixels for part in parts]
    yield (tversky(*parts, 0.5, 0.5, smooth),
           "alpha and beta do not count: it is still Dice's.")
    yield (tversky(*parts, 1, 1, smooth),
           "alpha and beta do not count: that is Jaccard's.")
    yield (tversky(*parts, 0.1, 0.9, smooth),
           "0.1 and 0.9 are written where alpha and beta should stand: each "
           "loss brings its own.")
    yield tversky(*parts, b, a, smooth), EXCHANGED
    yield (tversky(*parts, b, a, 1e-7),
           f"{EXCHANGED} In keras.losses.tversky of Keras 3.15 they are, and "
           "it has no SMOOTH.")
    yield 1 - loss, "1 minus it is asked for: a loss falls."
    yield -loss, "Its sign is wrong: a loss is 0 at best, and above it else."
    yield tversky(*parts, a, b, 1e-7), "Add SMOOTH above and below."
    yield tversky(*parts, a, b, 0, smooth), "SMOOTH is missing above."
    yield tversky(*parts, a, b, smooth, 1e-7), "SMOOTH is missing below."
    yield (tversky(*parts, a, b, smooth, 2 * smooth),
           "SMOOTH stands twice below, as in Dice's: once is asked for.")
    yield (tversky(*parts, a, b, 2 * smooth),
           "SMOOTH stands twice, above and below: once is asked for.")
    yield 1 - 2 * (right + smooth) / (weighed + 2 * smooth), TWO
    yield 1 - 2 * (right + smooth) / (weighed + smooth), TWO
    yield 1 - (2 * right + smooth) / (weighed + smooth), TWO
    yield (1 - (right + smooth) / (weighed - right + smooth),
           "What is right is missing below: there it stands beside alarms "
           "and misses.")
    for wide, why in (
        ((right, drawn, misses), "`alarms` holds all of sure, also where "
         "there is a tumour: only where masks is 0 is it an alarm."),
        ((right, alarms, true), "`misses` holds all of masks, also what was "
         "seen: only 1 - sure of it was missed."),
        ((right, drawn, true), "`alarms` and `misses` hold what is right, "
         "too: it belongs to neither."),
        ((right, pixels - true, misses), "`alarms` holds all pixels without "
         "a tumour: multiply them by sure."),
        ((right, alarms, pixels - drawn), "`misses` holds 1 - sure of all "
         "pixels: only in masks is it a miss."),
        ((right, pixels - true - alarms, misses), "`alarms` holds what is "
         "rightly left alone: take (1 - masks) and sure, not 1 - sure."),
    ):
        yield tversky(*wide, a, b, smooth), why
    yield tversky(right, *counts[1:], a, b, smooth), COUNTED
    yield tversky(*counts, a, b, smooth), COUNTED
    yield (sum(each) / len(each),
           f"That is the mean of a loss for each slice. {BATCH}")
    yield sum(each), f"That adds up a loss for each slice. {BATCH}"
    yield (tversky(*means, a, b, smooth),
           "These are means over the pixels: SMOOTH is meant for sums.")
    yield (tversky(right, *means[1:], a, b, smooth),
           "`alarms` and `misses` are means, and `right` is a sum.")
    yield (tversky(*parts, a, a, smooth),
           "alpha counts for both: beta is for the misses.")
    yield (tversky(*parts, b, b, smooth),
           "beta counts for both: alpha is for the alarms.")
    yield tversky(*parts, a, 0, smooth), "Misses do not count."
    yield tversky(*parts, 0, b, smooth), "Alarms do not count."
    if weighed:
        yield 1 - (right + smooth) / weighed + smooth, BRACKETS
        yield 1 - right + smooth / weighed + smooth, BRACKETS
    yield 1 - right + smooth / (weighed + smooth), BRACKETS
    yield (1 - right - smooth) / (weighed + smooth), BRACKETS


def fits(case, smooth):
    """The slips that give what was seen."""
    return [why for loss, why in slips(case, smooth)
            if near(case["loss"], loss)]


@todo(
    1,
    hints=[
        "The loss needs sums that can change a little when the network is a "
        "little surer: products of masks and sure, not counts.",
        "right: tf.reduce_sum(masks * sure), over all pixels of the batch. "
        "For alarms and misses, one of the factors is 1 minus itself.",
        "alarms = tf.reduce_sum((1 - masks) * sure), misses = tf.reduce_sum("
        "masks * (1 - sure)), then return 1 - (right + SMOOTH) / (right + "
        "alpha * alarms + beta * misses + SMOOTH)",
    ],
)
def dice_and_jaccard_are_cases_of_tversky(job):
    """Tversky's loss, which is Dice with two halves and Jaccard with ones."""
    metrics = job(**BRIEF).records["metrics"].iloc[-1]
    found, smooth = metrics["found"], metrics["smooth"]
    assert found, (
        "expected the function overlap_loss in the lab; saw none. Give it "
        "its name back."
    )
    first = found["missed"]
    assert first["numbers"] is not None, (
        "expected a loss; saw None. Is it given back by return?"
    )
    assert first["numbers"] == 1, (
        "expected one number for the batch; saw "
        f"{first['numbers']}. {BATCH}"
    )
    names = {"dice": "Dice's loss, ", "jaccard": "Jaccard's loss, "}
    likes = [found[name]["loss"] or 0
             for name in ("missed", "dice", "jaccard")]
    for name in ("missed", "others", "dice", "jaccard"):
        case = found[name]
        saw = case["loss"]
        a, b = case["alpha"], case["beta"]
        wanted = tversky(*whole(case), a, b, smooth)
        assert saw is not None, (
            f"expected a loss of {wanted:.4f} for alpha {a} and beta {b}; saw "
            "what is no number. What is divided by 0?"
        )
        because = fits(case, smooth)
        if name == "missed":
            # Of two that fit here, the one that fits elsewhere, too.
            others = fits(found["others"], smooth)
            because.sort(key=lambda why: why not in others)
        if not because and max(likes) - min(likes) < 1e-5:
            because = ["alpha and beta do not count: it is the same whatever "
                       "they are."]
        assert near(saw, wanted), (
            f"expected {names.get(name, 'a loss of ')}{wanted:.4f} for alpha "
            f"{a} and beta {b}, from sums over all pixels of "
            f"{len(case['sums'])} slices; saw {saw:.4f}. "
            f"{' '.join(because[:1])}"
        )
    assert found["nothing"]["loss"] is not None, (
        "expected a loss of 0 for a batch without tumour in which none was "
        "found; saw 0 divided by 0. Add SMOOTH above and below."
    )
    losses = [found[name]["loss"] for name in ("nothing", "right")]
    losses = [float("nan") if loss is None else loss for loss in losses]
    assert all(near(loss, 0) for loss in losses), (
        "expected a loss of 0 where all is right; saw "
        f"{losses[0]:.4f} without a tumour, and {losses[1]:.4f} with one."
    )
    learns(first, smooth)


def learns(case, smooth):
    """The gradient is that of the loss, so that a network can learn by it."""
    assert case["dtype"] == "float32", (
        "the loss is right, but the training adds it to another in float32, "
        f"and it is in {case['dtype']}: leave it in the dtype of sure."
    )
    saw = case["slope"]
    assert saw is not None, (
        "the loss is right, but no gradient comes through it: the network "
        "would learn nothing from it. Compute it from sure, by TensorFlow's "
        "functions alone."
    )
    right, alarms, misses = whole(case)
    weighed = right + case["alpha"] * alarms + case["beta"] * misses + smooth
    right += smooth
    inside = -(weighed - right * (1 - case["beta"])) / weighed**2
    outside = right * case["alpha"] / weighed**2
    assert near(saw[0], inside) and near(saw[1], outside), (
        "the loss is right, but its gradient is not: is a part of it kept "
        "from the gradient, as tf.stop_gradient does?"
    )
