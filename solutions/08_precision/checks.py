"""What each TODO of 08_precision is checked by: two short jobs.

The checks look at numbers, never at the code: at what the four functions made
of numbers whose answers are known, and at how many digits the network then
gets right.
"""

import numpy as np

from scaleout import todo

SMALL = {"ranks": 1, "threads": 1, "steps": 60, "seeds": 1,
         "part": "int8", "bits": [8]}


def tried(job):
    """What the functions made of numbers whose answers are known."""
    return job(**SMALL).records["metrics.tried"].iloc[0]


def accuracy(job, variant):
    """The share of test images that a variant gets right."""
    records = job(**SMALL).records
    return float(records["metrics.accuracy"][records.variant == variant]
                 .iloc[0])


def near(seen, wanted, within=1e-5):
    """Whether all numbers are as wanted, but for rounding."""
    return len(seen) == len(wanted) and np.allclose(seen, wanted, rtol=1e-4,
                                                    atol=within)


def few(numbers):
    """Some numbers, as a sentence shows them."""
    return ", ".join(f"{number:g}" for number in numbers)


X = [-1, -0.4, 0, 0.006, 0.61, 2, 9, -9]


@todo(
    1,
    hints=[
        "From low to high there are highest - lowest steps. So how long is "
        "one of them? And which whole number is then 0.0, if lowest is low?",
        "scale = (high - low) / (highest - lowest), zero = "
        "np.rint(lowest - low / scale), and q is np.rint(x / scale) + zero, "
        "held by np.clip between lowest and highest.",
        "zero and q end with .astype(np.int8); back = "
        "(q.astype(np.float32) - zero) * scale",
    ],
)
def there_and_back(job):
    """Numbers become whole ones of 8 and 4 bits, and come back in place."""
    seen = tried(job)["quantise 8"]
    assert seen["q"] != [float(np.float32(x)) for x in X], (
        "expected whole numbers for x; saw x itself."
    )
    scale = 3 / 255
    because = ""
    if near([seen["scale"]], [3 / 256]):
        because = " Between 256 whole numbers there are 255 steps."
    elif near([seen["scale"]], [255 / 3]):
        because = " It is the other way round: numbers for each step."
    elif near([seen["scale"]], [2 / 127]):
        because = " low counts, too: the range is from low to high."
    assert near([seen["scale"]], [scale]), (
        "from -1 to 2 in 8 bits, expected a scale of 3 / 255 = 0.01176; saw "
        f"{seen['scale']:.5g}.{because}"
    )
    because = ""
    if seen["zero"] == 42:
        because = " lowest stands for low: lowest - low / scale."
    elif seen["zero"] in (85, -85, 0):
        because = " Counted from lowest, which is -128 here."
    assert seen["zero"] == -43, (
        f"from -1 to 2, expected -43 to stand for 0.0; saw {seen['zero']:g}."
        f"{because}"
    )
    q = [-128, -77, -43, -42, 9, 127, 127, -128]
    because = ""
    if near(seen["q"][:6], q[:6]):
        because = (" 9 and -9 lie beyond the range: np.clip holds them at "
                   "its ends, before they become int8.")
    elif near(seen["q"], [-85, -34, 0, 1, 52, 127, 127, -128]):
        because = " zero has to be added."
    elif all(abs(a - b) <= 1 for a, b in zip(seen["q"], q, strict=True)):
        because = " astype cuts the digits off: np.rint rounds."
    assert near(seen["q"], q), (
        f"for {few(X)}, expected {few(q)}; saw {few(seen['q'])}.{because}"
    )
    assert seen["types"] == ["int8", "int8"], (
        "expected zero and q as int8; saw "
        f"{' and '.join(seen['types'])}. .astype(np.int8) makes them so."
    )
    back = [(number + 43) * scale for number in q]
    because = ""
    if near(seen["back"], [number * scale for number in q]):
        because = " zero has to be taken away again."
    elif near(seen["back"], [number * scale + 43 for number in q]):
        because = " First minus zero, then times scale."
    elif near(seen["back"][2:3], back[2:3]):
        because = (" Some differences do not fit into int8: widen q first, "
                   "by q.astype(np.float32).")
    assert near(seen["back"], back), (
        f"for these, expected back as {few(back)}; saw {few(seen['back'])}."
        f"{because}"
    )
    four = tried(job)["quantise 4"]
    assert near([four["scale"]], [0.2]) and max(four["q"]) == 7, (
        "in 4 bits, expected a scale of 3 / 15 = 0.2 and nothing above 7; saw "
        f"{four['scale']:g} and {max(four['q']):g}. Take lowest and highest, "
        "and not -128 and 127."
    )
    each = tried(job)["per channel"]
    assert near(each, [1, -8, 0.5, 4], within=0.05), (
        "with a range for each column, expected back 1, -8, 0.5, 4 or close "
        f"to it; saw {few(each)}."
    )


@todo(
    2,
    hints=[
        "Each batch has a smallest and a largest number. Which of them all?",
        "batch.min() and batch.max() for each of batches; then 0.0 is one "
        "more candidate for both.",
        "low = min(0.0, *[batch.min() for batch in batches]), and high the "
        "same with max.",
    ],
)
def all_batches_and_zero(job):
    """The range holds every number of every batch, and 0."""
    ranges = [tuple(pair) for pair in tried(job)["ranges"]]
    wanted = [(0, 6), (-4, 0), (-2, 5)]
    names = ["[0.5, 2] [0.7, 6] [1, 3]", "[-3, -2] [-4, -1] [-2, -1]",
             "[-1, 5] [-2, 3] [-1, 2]"]
    said = {
        (0, 1): "The range does not depend on the batches at all.",
        (0.5, 6): "0 must be in the range, even if no batch holds it.",
        (0, 3): "That is the last batch alone: the range is that of all.",
        (1, 3): "That is the last batch alone: the range is that of all.",
        (0, 2): "That is the first batch alone: the range is that of all.",
        (0.5, 2): "That is the first batch alone: the range is that of all.",
        (-6, 6): "low is the smallest number, not the largest turned round.",
    }
    for seen, right, batches in zip(ranges, wanted, names, strict=True):
        because = said.get(tuple(seen), "")
        if not because and right[0] < seen[0] or seen[1] < right[1]:
            because = because or ("It does not hold all of them. The smallest "
                                  "and the largest count, not the mean.")
        assert near(seen, right), (
            f"for batches {batches}, expected the range {right[0]} to "
            f"{right[1]}; saw {seen[0]:g} to {seen[1]:g}. {because}"
        )
    plain = accuracy(job, "fp32")
    eight = accuracy(job, "8 bits, channel")
    assert eight > plain - 0.05 or not whole(job), (
        f"the ranges are right, and yet in 8 bits {eight:.0%} of the digits "
        f"are right, of {plain:.0%} in fp32. Are TODO 1 and 3 done?"
    )


def whole(job):
    """Whether TODO 1 and 3 give what they should."""
    seen = tried(job)
    exact = seen["sums"][0] == 255 * 127 * 784
    return exact and seen["quantise 8"]["zero"] == -43


@todo(
    3,
    hints=[
        "255 times 127, and 784 of these: how many bits does that take?",
        "astype(np.int32) on q_x and on q_w, and only then minus zero and @.",
        "wide = q_x.astype(np.int32) - zero; "
        "return wide @ q_w.astype(np.int32)",
    ],
)
def sums_in_32_bits(job):
    """784 products of whole numbers are added up exactly."""
    seen = tried(job)["sums"]
    right = [255 * 127 * 784, 0, 131 * 127 * 784]
    because = ""
    if near(seen, narrow(right, np.int16)):
        because = ("In int16, 32,767 is followed by -32,768: the sums went "
                   "round many times.")
    elif np.max(np.abs(seen)) <= 128:
        because = "Nothing leaves int8: widen q_x and q_w first."
    elif near(seen, [number * 127 * 784 for number in (127, -128, 3)]):
        because = "zero has to be taken away from q_x."
    elif near(seen, [number * 127 * 784 for number in (-1, 0, -125)]):
        because = ("127 + 128 does not fit into int8: widen q_x before zero "
                   "is taken away.")
    elif near(seen, [number * 127 * 784 for number in (-1, -256, -125)]):
        because = "zero is taken away, not added."
    elif np.allclose(seen, right, rtol=1e-2):
        because = "That is close: the sum was made in floating point."
    assert seen == right, (
        f"for 784 products of 127 - (-128), -128 - (-128) and 3 - (-128) with "
        f"127, expected {few_whole(right)}; saw {few_whole(seen)}. {because}"
    )
    odd = tried(job)["odd sum"]
    assert odd == [255 * (783 * 127 + 126)], (
        f"for a sum that is 25,389,585, saw {few_whole(odd)}. Beyond "
        "16,777,216 float32 does not have every whole number: add up in "
        "np.int32."
    )
    small = tried(job)["small sum"]
    assert small == [7], (
        f"for (1 - 1) * 5 + (2 - 1) * 7, expected 7; saw {few_whole(small)}."
    )


def narrow(numbers, kind):
    """What is left of whole numbers in fewer bits."""
    return [int(number) for number in np.array(numbers).astype(kind)]


def few_whole(numbers):
    """Whole numbers, as a sentence shows them."""
    return ", ".join(f"{number:,.0f}" for number in numbers)


@todo(
    4,
    hints=[
        "Multiply the loss, and every gradient is multiplied, too. When does "
        "that have to be undone, and in which format?",
        "gradients(weights, x, y, number, mean_over, times=scale), then "
        "np.isfinite on each of them: divide by scale, or give up this step.",
        "if all(np.isfinite(g).all() for g in found): found = [g / scale for "
        "g in found]; else: found = None and scale = scale / 2",
    ],
)
def small_gradients_survive(job):
    """Scaled gradients keep what fp16 loses; a scale too large is halved."""
    seen = tried(job)
    good = seen["scales"]["good"]
    large = seen["scales"]["large"]
    partly = seen["scales"]["partly"]
    lost = seen["lost"]
    assert not good["none"], (
        "with a scale of 1,024 all gradients are finite, and yet found is "
        "None. Only a step with a number that is not finite is left out."
    )
    because = ""
    if near([good["times"]], [1024], within=20):
        because = " Divide them by scale."
    elif near([good["times"]], [1 / 1024], within=1e-4):
        because = " They were divided, but the loss was not multiplied."
    assert 0.97 < good["times"] < 1.03, (
        "with a scale of 1,024, expected gradients as large as in fp32; saw "
        f"{good['times']:.3g} times as large.{because}"
    )
    assert lost is not None and lost < 0.02, (
        "with a scale of 131,072 and a loss that is a mean over ten million, "
        "expected nearly all gradients to survive; saw "
        f"{'no gradients' if lost is None else format(lost, '.0%')} become 0. "
        "Does `gradients` get times=scale?"
    )
    assert large["none"], (
        "with a scale of 2**40 gradients are infinite, and yet found is not "
        "None. One such step makes all weights useless."
    )
    assert partly["none"], (
        f"with a scale of {partly['scale']:,.0f} the first gradient is finite "
        "and another is not, and yet found is not None. Look at all that "
        "`gradients` found."
    )
    because = ""
    if large["after"] == 2.0 ** 40:
        because = " With the same scale, the next step fails in the same way."
    assert large["after"] == 2.0 ** 39, (
        "after a step that overflowed at 2**40, expected half the scale; saw "
        f"{large['after']:g}.{because}"
    )
    assert good["after"] == 1024, (
        "after a good step, expected the same scale, 1,024; saw "
        f"{good['after']:g}. Halve it only where a step is left out."
    )
