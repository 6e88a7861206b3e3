"""The figure of 01_onednn: what the operations of a step take, as stacks: one
with Keras's layers, one with fused layers, and so on."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from scaleout.plots import look

SMALLEST = 0.02  # of the tallest bar: a lower part holds no line of text
APART = 0.034  # of the tallest bar, between two lines of text
BETWEEN = "between operations"
# By the library that runs an operation; time between operations is nobody's.
FILLS = {"oneDNN": look.DARK, "Eigen": look.LIGHT, "": "white"}
LABELS = {"oneDNN": "run by oneDNN", "Eigen": "run by Eigen", "": BETWEEN}


@look.style
def operations(profiles, guess: str | None = None):
    """Draw what the operations of a step take, one on top of the other: a bar
    for each profile, {name: frame of profile.read}; guess: an operation."""
    parts = {name: _parts(frame) for name, frame in profiles.items()}
    totals = {name: sum(ms for *_, ms in found)
              for name, found in parts.items()}
    tallest = max(totals.values())
    stacks = [_lumped(found, SMALLEST * tallest) for found in parts.values()]
    figure, axes = plt.subplots(figsize=(1.2 + 3.3 * len(parts), 5.6))
    for place, stack in enumerate(stacks):
        _stack(axes, place, stack, APART * tallest)
    shown = {library for found in parts.values() for _, library, _ in found}
    for library, label in LABELS.items():
        if library in shown:
            axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=FILLS[library],
                                     edgecolor=look.DARK, label=label))
    if guess:
        _guessed(axes, stacks, str(guess).strip())
    axes.set_xticks(range(len(parts)), list(parts))
    axes.set(xlim=(-0.25, len(parts) - 0.12), ylim=(0, 1.1 * tallest),
             ylabel="time of a step (ms)")
    axes.grid(axis="x", visible=False)
    values = [f"{name}: {', '.join(map(_told, stack))}."
              for name, stack in zip(parts, stacks, strict=True)]
    first, last = list(totals)[0], list(totals)[-1]
    if len(parts) > 1:
        title = (f"A step takes {totals[first]:,.0f} ms with {first}, "
                 f"and {totals[last]:,.0f} ms with {last}.")
    else:
        longest = max((part for part in parts[first] if part[1]),
                      key=lambda part: part[2])
        share = 100 * longest[2] / totals[first]
        title = (f"The longest operation: {_told(longest)}, "
                 f"{share:.0f} % of a step.")
    return look.finish(figure, title, " ".join(values), legend=2)


def _stack(axes, place: int, stack, apart: float) -> None:
    """Draw a bar of parts, each with its label at its right, as near as the
    labels below allow."""
    bottom, last = 0.0, -apart
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


def _parts(frame) -> list:
    """List (operation, library, milliseconds), oneDNN's before Eigen's, each
    the longest first; then what a step takes beyond its operations."""
    sums = frame.groupby(["library", "op"]).time_ms.sum()
    found = [(op, library, float(ms)) for (library, op), ms in sums.items()]
    found.sort(key=lambda part: (part[1] != "oneDNN", -part[2]))
    left = frame.attrs.get("step_ms", 0.0) - float(sums.sum())
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
