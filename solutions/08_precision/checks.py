"""What each TODO of 08_precision is checked by: a short job.

instruments.py gives numbers whose answers are known to the three functions.
The checks look at what they made of these, never at the code.
"""

import math

import numpy as np

from scaleout import todo

X = [-1, -0.4, 0, 0.006, 0.61, 2, 9, -9]


def tried(job, number, wanted):
    """What a function made of numbers whose answers are known.

    wanted: what the TODO asks for, said if its function fails.
    """
    run = job(script="instruments.py", ranks=1, threads=1)
    found = run.records["metrics.found"].iloc[0][f"todo{number}"]
    error = found.get("error")
    assert not error, f"expected {wanted}; saw {error}"
    return found


def near(seen, wanted, within=1e-5):
    """Whether all numbers are as wanted, but for rounding."""
    return len(seen) == len(wanted) and np.allclose(seen, wanted, rtol=1e-4,
                                                    atol=within)


def why(seen, reasons):
    """The reason for some numbers: that of the first slip which gives them."""
    for numbers, reason in reasons:
        if near(seen, numbers):
            return " " + reason
    return ""


def few(numbers):
    """Some numbers, as a sentence shows them."""
    more = " ..." if len(numbers) > 8 else ""
    return ", ".join(f"{number:g}" for number in numbers[:8]) + more


def held(numbers, bits=8):
    """Whole numbers, held between those that so many bits have."""
    end = 2 ** (bits - 1)
    return [min(max(number, -end), end - 1) for number in numbers]


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
    found = tried(job, 1, "whole numbers for x")
    seen = found["8"]
    assert seen["q"] != [float(np.float32(x)) for x in X], (
        "expected whole numbers for x; saw x itself."
    )
    scale = 3 / 255
    because = why(seen["scale"], [
        ([3 / 256], "Between 256 whole numbers there are 255 steps."),
        ([3 / 254], "Between 256 whole numbers there are 255 steps."),
        ([255 / 3], "It is the other way round: numbers for each step."),
        ([2 / 127], "low counts, too: the range is from low to high."),
        ([2 / 255], "low counts, too: the range is from low to high."),
        ([3 / 127], "The whole numbers begin at `lowest`, and not at 0."),
        ([3 / 128], "The whole numbers begin at `lowest`, and end at "
         "`highest`."),
        ([1 / 255], "From low to high it is high - low."),
        ([1 / 3], "highest - lowest is how many steps there are."),
        ([3], "That is the whole range: one of 255 steps is asked for."),
        ([1 / 255 / 3], "That divides twice."),
    ])
    assert near(seen["scale"], [scale]), (
        "from -1 to 2 in 8 bits, expected a scale of 3 / 255 = 0.01176; saw "
        f"{few(seen['scale'])}.{because}"
    )
    because = why(seen["zero"], [
        ([42], "lowest stands for low: lowest - low / scale."),
        ([43], "lowest stands for low: lowest - low / scale."),
        ([85], "Counted from lowest, which is -128 here."),
        ([-85], "Counted from lowest, which is -128 here."),
        ([0], "Counted from lowest, which is -128 here."),
        ([-213], "Where low is below 0, zero is above lowest: take low / "
         "scale away."),
        ([-42], "That is cut off, not rounded: np.rint rounds."),
        ([-44], "np.rint gives the nearest."),
        ([-128], "That is lowest, which stands for low."),
        ([127], "That is highest, which stands for high."),
    ])
    assert near(seen["zero"], [-43]), (
        f"from -1 to 2, expected -43 to stand for 0.0; saw "
        f"{few(seen['zero'])}.{because}"
    )
    q = [-128, -77, -43, -42, 9, 127, 127, -128]
    steps = [float(np.rint(np.float32(x) / scale)) for x in X]
    early = [n - 43 for n in held(steps)]
    inside = [seen["q"][at] for at in range(min(6, len(seen["q"])))]
    because = why(seen["q"], [
        (held(steps), "zero has to be added."),
        (steps, "zero has to be added."),
        (held([n + 43 for n in steps]), "zero is added, not taken away."),
        (early, "Add zero first, then np.clip: at the ends it is left out."),
        (np.array(early).astype(np.int8), "Add zero first, then np.clip: at "
         "the ends it does not fit."),
        ([max(n, -127) for n in q], "int8 begins at -128: `lowest` is it."),
        ([min(n, 126) for n in q], "int8 ends at 127: `highest` is it."),
        ([n + 128 for n in q], "Counted from lowest, which is -128 here."),
    ])
    if not because and near(inside, q[:6]):
        because = (" 9 and -9 lie beyond the range: np.clip holds them at "
                   "its ends, before they become int8.")
    elif not because and len(seen["q"]) == len(q) and all(
            abs(a - b) <= 1 for a, b in zip(seen["q"], q, strict=True)):
        because = " astype cuts the digits off: np.rint rounds."
    assert near(seen["q"], q), (
        f"for {few(X)}, expected {few(q)}; saw {few(seen['q'])}.{because}"
    )
    assert seen["types"] == ["int8", "int8"], (
        "expected zero and q as int8; saw "
        f"{' and '.join(seen['types'])}. .astype(np.int8) makes them so."
    )
    back = [(number + 43) * scale for number in q]
    because = why(seen["back"], [
        (X, "That is x itself, and not what q stands for."),
        ([number * scale for number in q], "zero has to be taken away again."),
        ([number * scale + 43 for number in q], "First minus zero, then times "
         "scale."),
        ([(number - 43) * scale for number in q], "zero is taken away, not "
         "added."),
        ([number + 43 for number in q], "Each whole number is worth one "
         "scale."),
        ([(number + 43) / scale for number in q], "Times scale: each whole "
         "number is worth one."),
        (q, "That is q itself, and not what it stands for."),
    ])
    if not because and near(seen["back"][2:3], back[2:3]):
        because = (" Some differences do not fit into int8: widen q first, "
                   "by q.astype(np.float32).")
    assert near(seen["back"], back), (
        f"for these, expected back as {few(back)}; saw {few(seen['back'])}."
        f"{because}"
    )
    four = found["4"]
    ends = [min(four["q"]), max(four["q"])]
    assert near(four["scale"], [0.2]) and ends == [-8, 7], (
        "in 4 bits, expected a scale of 3 / 15 = 0.2 and whole numbers from "
        f"-8 to 7; saw {few(four['scale'])}, and {few(ends)}. Take lowest and "
        "highest, and not -128 and 127."
    )
    assert near(four["zero"], [-3]), (
        "in 4 bits, expected -3 to stand for 0.0; saw "
        f"{few(four['zero'])}. Count from `lowest`, which is -8 there."
    )
    zero = found["rounded"]["zero"]
    assert near(zero, [-34]), (
        "from -1 to 1.7, expected -33.56 to become -34, which stands for "
        f"0.0; saw {few(zero)}. np.rint gives the nearest whole number, "
        "before astype cuts the digits off."
    )
    columns = found["columns"]
    because = ("" if len(columns["scale"]) == 2 else " There is one scale for "
               "all: `low` and `high` may be arrays.")
    right = [0.01, -8, 0.005, 4]
    assert (len(columns["back"]) == 4
            and np.allclose(columns["back"], right, rtol=0.02)), (
        "with a range for each column, 0.01 for one and 8 for the other, "
        f"expected back {few(right)} or close to it; saw "
        f"{few(columns['back'])}.{because}"
    )
    assert all(each["kept"] for each in found.values()), (
        "expected x to stay as it was; saw it changed, and whoever called "
        "`quantise` goes on with it. Make new arrays, as x / scale does."
    )
    worst = max(found["rounded"]["off"])
    assert worst < 0.501, (
        "from -1 to 1.7, expected each x back within half a step; saw one "
        f"that is {worst:.2f} steps off. Add the rounded zero: x / scale is "
        "rounded to the nearest whole number, and then zero is added."
    )


@todo(
    2,
    hints=[
        "255 times 127, and 784 of these: how many bits does that take?",
        "astype(np.int32) on q_x and on q_w, and only then minus zero and @.",
        "wide = q_x.astype(np.int32) - zero; "
        "return wide @ q_w.astype(np.int32)",
    ],
)
def sums_in_32_bits(job):
    """784 products of whole numbers are added up exactly."""
    found = tried(job, 2, "sums of products")
    seen = found["large"]["sums"]
    right = [255 * 127 * 784, 0, 131 * 127 * 784]
    shape = found["large"]["shape"]
    because = ("@ multiplies, and adds up over the inputs; q_x comes first."
               if shape else "Is it returned?")
    assert shape == [3, 1], (
        "for three rows and one output, expected a sum for each row, "
        f"(3, 1); saw {tuple(shape)}. {because}"
    )
    because = why(seen, [
        (narrow(right, np.int16), "In int16, 32,767 is followed by -32,768: "
         "the sums went round many times."),
        ([number * 127 * 784 for number in (127, -128, 3)], "zero has to be "
         "taken away from q_x."),
        ([number * 127 * 784 for number in (-1, 0, -125)], "127 + 128 does "
         "not fit into int8: widen q_x before zero is taken away."),
        ([number * 127 * 784 for number in (-1, -256, -125)], "zero is taken "
         "away, not added."),
        ([number * 255 * 784 for number in (127, -128, 3)], "zero belongs to "
         "q_x: it is the whole number that stands for 0 there."),
        ([number * 255 * 784 for number in (255, 0, 131)], "zero belongs to "
         "q_x alone: for the weights 0 stands for 0."),
        ([number * 127 * 784 + 128 for number in (127, -128, 3)], "zero is "
         "taken away from q_x, before the products are added up."),
        ([number / 784 for number in right], "That is a mean: a sum is asked "
         "for."),
        ([-number for number in right], "It is q_x - zero, not the other way "
         "round."),
    ])
    if not because and np.max(np.abs(seen)) <= 255:
        because = " Nothing leaves int8: widen q_x and q_w first."
    elif not because and np.max(np.abs(seen)) <= 65535:
        because = " 16 bits are too few: 25 million needs np.int32."
    elif not because and np.allclose(seen, right, rtol=1e-2):
        because = " That is close: the sum was made in floating point."
    elif not because and np.max(np.abs(seen)) > 2 ** 31:
        because = (" Without a sign, numbers below 0 become large ones: "
                   "np.int32 has a sign.")
    assert seen == right, (
        f"for 784 products of 127 - (-128), -128 - (-128) and 3 - (-128) with "
        f"127, expected {few_whole(right)}; saw {few_whole(seen)}.{because}"
    )
    odd = found["odd"]["sums"]
    assert odd == [255 * (783 * 127 + 126)], (
        f"for a sum that is 25,389,585, saw {few_whole(odd)}. Beyond "
        "16,777,216 float32 does not have every whole number: add up in "
        "np.int32."
    )
    small = found["small"]["sums"]
    because = why(small, [
        ([5, 3, 7, -2], "That is two rows: @ adds up over the inputs."),
        ([1 * 5 + 2 * 7 - 12, 1 * 3 - 2 * 2 - 1], "zero is taken away from "
         "q_x, before the products are added up."),
        ([0 * 4 + 1 * 6, 0 * 2 + 1 * -3], "zero belongs to q_x alone."),
    ])
    assert small == [7, -2], (
        "for (1 - 1) * 5 + (2 - 1) * 7 and the same with 3 and -2, expected 7 "
        f"and -2; saw {few_whole(small)}.{because}"
    )


def narrow(numbers, kind):
    """What is left of whole numbers in fewer bits."""
    return [int(number) for number in np.array(numbers).astype(kind)]


def few_whole(numbers):
    """Whole numbers, as a sentence shows them."""
    return ", ".join(f"{number:,.0f}" for number in numbers[:6])


@todo(
    3,
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
    found = tried(job, 3, "the loss, its gradients and a scale")
    good, small, partly, large = (found[name] for name in (
        "good", "small", "partly", "large"))
    for each in found.values():
        called_rightly(each)
    assert not good["none"], (
        "with a scale of 1,024 all gradients are finite, and yet found is "
        "None. Only a step with a number that is not finite is left out."
    )
    assert good["many"] == 4 and not good["used_up"], (
        "expected the four gradients in a list; saw "
        + (f"{good['many']}. None is left out." if good["many"] != 4 else
           "what is used up once it was looked at. [ ] around it makes a "
           "list.")
    )
    times = [each or 0.0 for each in good["times"]]
    because = ""
    if near(times, [1024] * 4, within=20):
        because = " Divide them by scale."
    elif near(times, [1024 ** 2] * 4, within=2e4):
        because = " They are to be divided, not multiplied."
    elif near(times, [1 / 1024] * 4, within=1e-4):
        because = " They were divided, but the loss was not multiplied."
        if math.isclose(times_of(good), 1024):
            because = " They were divided twice."
    elif any(0.9 < one < 1.1 for one in times):
        because = " All four of them are to be divided."
    assert all(0.97 < one < 1.03 for one in times), (
        "with a scale of 1,024, expected gradients as large as in fp32; saw "
        f"{few(times)} times as large.{because}"
    )
    lost = small["lost"]
    because = "Does `gradients` get times=scale?"
    if math.isclose(times_of(small), small["scale"]):
        because = "Divide in fp32: who rounds to 16 bits again, loses them."
    assert lost is not None and lost < 0.02, (
        "with a scale of 131,072 and a loss that is a mean over ten million, "
        "expected nearly all gradients to survive; saw "
        f"{'no gradients' if lost is None else format(lost, '.0%')} become 0. "
        f"{because}"
    )
    for step in found.values():
        saw = times_of(step)
        many = len(step["calls"])
        assert many == 1, (
            f"expected one call of `gradients` in a step; saw {many}. A step "
            "that overflows is left out, and the next one has half the scale."
        )
        assert math.isclose(saw, step["scale"]), (
            f"with a scale of {step['scale']:,.0f}, expected `gradients` with "
            f"times={step['scale']:,.0f}; saw {saw:,.0f}. Does `gradients` "
            "get times=scale?"
        )
    because = ""
    if abs(good["loss"] - good["losses"][1]) > 1e-6:
        because = (" `times` is for the gradients alone: the loss comes back "
                   "as it was.")
    assert any(math.isclose(good["loss"], loss, rel_tol=1e-3)
               for loss in good["losses"]), (
        f"expected a loss of {good['losses'][1]:.4f}; saw "
        f"{good['loss']:.4g}.{because}"
    )
    assert large["none"], (
        "with a scale of 2**40 gradients are infinite, and yet found is not "
        "None. One such step makes all weights useless. Is it `found` that "
        "np.isfinite looks at? The loss is finite all the same, and "
        "np.isinf does not see NaN."
    )
    assert partly["none"], (
        f"with a scale of {partly['scale']:,.0f} the first gradient is finite "
        "and another is not, and yet found is not None. Look at all that "
        "`gradients` found, by np.isfinite: np.isnan does not see what is "
        "infinite."
    )
    for each in (large, partly, found["odd"]):
        scale = each["scale"]
        because = ""
        if each["after"] == scale:
            because = (" With the same scale, the next step fails in the "
                       "same way.")
        elif each["after"] == 2 * scale:
            because = " That is twice as large: it overflows all the more."
        elif each["after"] == scale // 2:
            because = " // rounds down, and makes 0 of 1."
        elif each["after"] == scale / 4:
            because = " That is halved twice."
        assert each["after"] == scale / 2, (
            f"after a step that overflowed at {power(scale)}, expected half "
            f"the scale; saw {each['after']:g}.{because}"
        )
    because = " Halve it only where a step is left out."
    if good["after"] == 2048:
        because = " It is not doubled here, and halved where one is left out."
    assert good["after"] == 1024 and small["after"] == 2.0 ** 17, (
        "after a good step, expected the same scale, 1,024; saw "
        f"{good['after']:g}.{because}"
    )


def power(scale):
    """A scale, as a power of two if it is one."""
    if scale < 1024:
        return f"{scale:g}"
    return f"2**{math.log2(scale):.0f}"


def times_of(step):
    """By what `gradients` was asked to multiply, in one way or another."""
    call = step["calls"][-1]
    return call["times"] * step["mean_over"] / call["mean_over"]


def called_rightly(step):
    """Whether `gradients` was given what it should be, but for the scale."""
    assert step["calls"], (
        "expected `gradients` to be called; saw no call. It computes the "
        "loss and what is to be divided."
    )
    call = step["calls"][-1]
    assert call["number"] == "fp16", (
        "expected gradients in the format that the function is given; saw "
        f"them in {call['number']}. Hand `number` on, behind y."
    )
    over = step["mean_over"]
    assert call["mean_over"] == over or math.isclose(
            times_of(step), step["scale"]), (
        f"expected gradients of a mean over {over:,}; saw "
        f"{call['mean_over']:,}. Hand `mean_over` on, behind `number`."
    )
