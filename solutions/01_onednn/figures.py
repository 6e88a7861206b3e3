"""The figure of 01_onednn: what the operations of a step take, as a stack,
and beside it those of its batch normalisation."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from scaleout.plots import look

SMALLEST = 0.03  # of the tallest bar: a lower part holds no line of text
APART = 0.036  # of the tallest bar, between two lines of text
SAME = 1.1  # times as long, at most: hardly longer
BETWEEN = "between operations"
NORM = "_bn"  # stands in the name of most operations of batch normalisation
# By the library that runs an operation; time between operations is nobody's.
FILLS = {"oneDNN": look.DARK, "Eigen": look.LIGHT, "": "white"}
LABELS = {"oneDNN": "run by oneDNN", "Eigen": "run by Eigen", "": BETWEEN}


def norm_share(step) -> float:
    """The share of a step that batch normalisation takes; step: a frame of
    profile.read."""
    return float(_norm(step).time_ms.sum() / _whole(step))


def eigen_share(step) -> float:
    """The share of a step that Eigen's operations take."""
    own = step[step.library == "Eigen"]
    return float(own.time_ms.sum() / _whole(step))


def passes(step) -> str:
    """Say which of a convolution's three passes uses the processor worst."""
    names = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"]
    took = step[step.op.isin(names)].groupby("op").time_ms.sum()
    longest, shortest = took.idxmax(), took.idxmin()
    ratio = took[longest] / took[shortest]
    told = (f"{longest} takes {ratio:.1f} times as long as {shortest}, for "
            "about as many multiplications")
    if round(ratio, 1) <= SAME:
        return f"{told}."
    return f"{told}: it uses the processor less well."


def _norm(step):
    """The operations of batch normalisation.

    AddN adds up the gradients of what several operations read, as Keras's
    layer reads its input. A few belong to the blocks' shortcuts.
    """
    own = step.name.str.contains(NORM)
    return step[own | (own.any() & (step.op == "AddN"))]


def _whole(step) -> float:
    """The milliseconds of a step, or of its operations where they overlap."""
    return max(float(step.attrs["step_ms"]), float(step.time_ms.sum()))


@look.style
def operations(step, guess: str | None = None):
    """Draw what the operations of a step take, one on top of the other, and
    beside them those of batch normalisation; step: a frame of profile.read;
    guess: an operation."""
    norm = _norm(step)
    tallest = _whole(step)
    parts = {"a step": _parts(step, tallest)}
    if len(norm):
        parts["its batch normalisation"] = _parts(norm)
    stacks = [_lumped(found, SMALLEST * tallest) for found in parts.values()]
    figure, axes = plt.subplots(figsize=(1.2 + 3.6 * len(parts), 5.6))
    for place, stack in enumerate(stacks):
        # The second bar hangs from the top: below it is what would be left.
        bottom = tallest - sum(ms for *_, ms in stack) if place else 0.0
        _stack(axes, place, stack, APART * tallest, bottom)
    if len(norm):
        left = (1 - norm_share(step)) * tallest
        axes.text(1.04, left / 2, f"left without it\n{left:,.0f} ms",
                  va="center", fontsize=9)
        axes.annotate("", (1, 0), (1, left), arrowprops={
            "arrowstyle": "<->", "color": look.DARK})
    shown = {library for found in parts.values() for _, library, _ in found}
    for library, label in LABELS.items():
        if library in shown:
            axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=FILLS[library],
                                     edgecolor=look.DARK, label=label))
    if guess:
        _guessed(axes, stacks[:1], str(guess).strip())
    axes.set_xticks(range(len(parts)), list(parts))
    axes.set(xlim=(-0.25, len(parts) - 0.12), ylim=(0, 1.1 * tallest),
             ylabel="time of a step (ms)")
    axes.grid(axis="x", visible=False)
    values = [f"{name}: {', '.join(map(_told, stack))}."
              for name, stack in zip(parts, stacks, strict=True)]
    longest = max((part for part in parts["a step"] if part[1]),
                  key=lambda part: part[2])
    title = (f"The longest operation is {longest[0]}, with "
             f"{100 * longest[2] / tallest:.0f} % of a step.")
    if len(norm):
        title += (f" Batch normalisation takes "
                  f"{100 * norm_share(step):.0f} %, in "
                  f"{norm.calls.sum():,.0f} operations. In all, Eigen runs "
                  f"{100 * eigen_share(step):.0f} %.")
    return look.finish(figure, title, " ".join(values), legend=2)


def _stack(axes, place: int, stack, apart: float, bottom: float) -> None:
    """Draw a bar of parts, each with its label at its right, as near as the
    labels below allow."""
    last = bottom - apart
    for part in stack:
        _, library, ms = part
        edge = "white" if library else look.DARK
        axes.bar(place, ms, 0.3, bottom, color=FILLS[library], edgecolor=edge)
        last = max(bottom + ms / 2, last + apart)
        axes.text(place + 0.18, last, _told(part), va="center", fontsize=9)
        bottom += ms


def _told(part) -> str:
    """Say what a part takes."""
    return f"{part[0]} {part[2]:,.{0 if part[2] >= 10 else 1}f} ms"


def _guessed(axes, stacks, guess: str) -> None:
    """Put a star on the operation that the reader named, in the first bar
    that shows it; else words into the legend."""
    for place, stack in enumerate(stacks):
        at = look.find_name([operation for operation, *_ in stack], guess)
        if at is not None:
            middle = sum(ms for *_, ms in stack[:at]) + stack[at][2] / 2
            look.guess_star(axes, place, middle, guess)
            return
    axes.plot([], [], linestyle="",
              label=f"your guess: {guess} (too small to be shown)")


def _parts(frame, step_ms: float = 0.0) -> list:
    """List (operation, library, milliseconds), oneDNN's before Eigen's, each
    the longest first; then what a step takes beyond its operations."""
    sums = frame.groupby(["library", "op"]).time_ms.sum()
    found = [(op, library, float(ms)) for (library, op), ms in sums.items()]
    found.sort(key=lambda part: (part[1] != "oneDNN", -part[2]))
    left = step_ms - float(sums.sum())
    return [*found, (BETWEEN, "", left)] if left > 0 else found


def _lumped(found, least: float) -> list:
    """Keep the parts that can be labelled, and add up the others of each
    library."""
    result = []
    for library in FILLS:
        own = [part for part in found if part[1] == library]
        few = [part for part in own if part[2] < least]
        result += [part for part in own if part[2] >= least]
        if few:
            name = f"other {library} operations" if library else few[0][0]
            result.append((name, library, sum(part[2] for part in few)))
    return result
