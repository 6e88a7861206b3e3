"""Draw what a network between the ranks costs a step, by the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..plots.look import GREY, LINES, Look, guess_star, style
from .step import Step

ALPHA_WITHIN = 10  # a network's alpha is known up to this factor


@style
def efficiency_of_networks(
    networks: Mapping[str, Sequence[Step]], most: int, guess: float | None, within: float
) -> Figure:
    """Draw what `scaling.efficiency_of_networks` describes."""
    figure, panels = plt.subplots(1, len(networks), sharey=True, squeeze=False, figsize=(8, 4))
    counts = [2**k for k in range(int(np.log2(most)) + 1)]
    said = []
    for axes, (name, steps) in zip(panels[0], networks.items(), strict=True):
        for step, look in zip(steps, LINES, strict=False):
            none, whole, worth = (
                [_with(step, *how).efficiency(count) for count in counts]
                for how in (
                    (0.0, ALPHA_WITHIN, within),
                    (1.0, 1 / ALPHA_WITHIN, 1 / within),
                    (step.overlap, 1.0, 1.0),
                )
            )
            axes.fill_between(counts, none, whole, color=look["color"], alpha=0.18, linewidth=0)
            label = step.network.name if axes is panels[0, 0] else ""
            own: Look = {"markersize": 5, "label": label}
            axes.plot(counts, worth, **look, **own)
            ends = f"{none[-1]:.2f} to {whole[-1]:.2f}"
            said.append(f"{name}, {step.network.name}: {worth[-1]:.2f} ({ends}) on {most} ranks.")
            if step is steps[0]:
                ends_of_first = ends
        mb, ms = steps[0].gradient_bytes / 1e6, 1e3 * steps[0].compute_s
        found = f"on {most:,} ranks with {steps[0].network.name}: {ends_of_first}"
        title = f"{name}: step {ms:,.0f} ms, gradient {mb:,.1f} MB\n{found}"
        axes.set_title(title, fontsize=10, loc="left")
        axes.axhline(1, linestyle="--", color=GREY, linewidth=1)
        axes.set(xscale="log", xlabel="ranks (count)", ylim=(0, 1.05))
        axes.set_xticks(counts[::2], counts[::2])
        axes.minorticks_off()
    if guess is not None:
        guess_star(panels[0, -1], most, guess, f"{guess:g}")
    panels[0, 0].set_ylabel("efficiency (compute / step)")
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    figure.set_label(" ".join(said))
    return figure


def _with(step: Step, overlap: float, alphas: float, exchanges: float) -> Step:
    """Give a step another overlap, and so many times the alpha and the exchange."""
    link = step.network
    network = replace(
        link, alpha_s=alphas * exchanges * link.alpha_s, beta_s=exchanges * link.beta_s
    )
    return replace(step, overlap=overlap, network=network, gamma_s=exchanges * step.gamma_s)
