"""Draw what a network between the ranks costs a step, by the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..plots import primitives
from ..plots.look import LINES, Look, finish, guess_star, style
from .step import Step

ALPHA_WITHIN = 10  # a network's alpha is known up to this factor


@style
def efficiency_of_networks(
    networks: Mapping[str, Sequence[Step]],
    most: int,
    guess: float | None,
    within: tuple[float, float],
) -> Figure:
    """Draw what `scaling.efficiency_of_networks` describes."""
    size = (3.1 * max(2.6, len(networks)), 4.6)
    figure, panels = plt.subplots(1, len(networks), sharey=True, squeeze=False, figsize=size)
    counts = [2**k for k in range(int(np.log2(most)) + 1)]
    said = []
    first = []
    for axes, (name, steps) in zip(panels[0], networks.items(), strict=True):
        for nth, (step, look) in enumerate(zip(steps, LINES, strict=False)):
            low, high = (
                _with(step, *how).efficiency(most)
                for how in (
                    (0.0, ALPHA_WITHIN, max(within)),
                    (1.0, 1 / ALPHA_WITHIN, min(within)),
                )
            )
            worth = [step.efficiency(count) for count in counts]
            own: Look = {"markersize": 5, "label": step.network.name}
            axes.plot(counts, worth, **look, **own)
            # Beside the line's last point, so that no two lie over each other
            ends: Look = {**look, "linestyle": "none"}
            place = most * 1.5 ** (nth + 1)
            label = "" if nth else "from the worst case to the best"
            primitives.interval(axes, place, low, worth[-1], high, label, True, fmt="", **ends)
            said.append(
                f"{name}, {step.network.name}: {worth[-1]:.2f} ({low:.2f} to {high:.2f}) on {most} "
                "ranks."
            )
            if step is steps[0]:
                first.append(f"{worth[-1]:.2f} ({low:.2f} to {high:.2f}) for {name}")
        mb, ms = steps[0].gradient_bytes / 1e6, 1e3 * steps[0].compute_s
        sizes = f"compute {ms:,.0f} ms, gradient {mb:,.1f} MB"
        axes.set_title(f"{name}:\n{sizes}", fontsize=9, loc="left")
        primitives.ideal(axes, counts, np.ones(len(counts)))
        axes.set(xscale="log", xlabel="number of ranks", ylim=(0, 1.05))
        axes.set_xticks(counts[::3], counts[::3])
        axes.minorticks_off()
    if guess is not None:
        guess_star(panels[0, -1], most, guess, f"{guess:g}")
    panels[0, 0].set_ylabel("efficiency (compute / step)")
    return finish(
        figure,
        f"Efficiency on {most:,} ranks with {steps[0].network.name}: {', '.join(first)}.",
        " ".join(said),
        legend=3,
    )


def _with(step: Step, overlap: float, alphas: float, exchanges: float) -> Step:
    """Give a step another overlap, and so many times the alpha and the exchange."""
    link = step.network
    network = replace(
        link, alpha_s=alphas * exchanges * link.alpha_s, beta_s=exchanges * link.beta_s
    )
    return replace(step, overlap=overlap, network=network, gamma_s=exchanges * step.gamma_s)
