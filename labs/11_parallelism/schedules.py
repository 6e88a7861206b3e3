"""In which order a stage of a pipeline works, and what it keeps meanwhile.

pipeline.py and stuck.py import this; there is nothing to fill in
here. Each schedule is a list such as
[("forward", 0), ("forward", 1), ("backward", 0)].
"""

import measure
import numpy as np
from network import backward, forward


def gpipe(stage: int, stages: int, micro_batches: int) -> list:
    """All forward, then all backward: every stage keeps every micro-batch."""
    order = [("forward", m) for m in range(micro_batches)]
    return order + [("backward", m) for m in range(micro_batches)]


def one_forward_one_backward(stage: int, stages: int,
                             micro_batches: int) -> list:
    """1F1B: a micro-batch goes back as soon as it can.

    A stage first lets in as many micro-batches as there are stages after it.
    From then on, each forward is followed by a backward. So it keeps at most
    stages - stage of them, however many there are.
    """
    ahead = min(stages - 1 - stage, micro_batches)
    order = [("forward", m) for m in range(ahead)]
    for m in range(micro_batches - ahead):
        order += [("forward", ahead + m), ("backward", m)]
    first_left = micro_batches - ahead
    return order + [("backward", first_left + m) for m in range(ahead)]


SCHEDULES = {"gpipe": gpipe, "1f1b": one_forward_one_backward}


class Layers:
    """Some layers, and what they keep of each micro-batch until it is back."""

    def __init__(self, weights: list) -> None:
        self.weights = weights
        self.gradients = [np.zeros_like(w) for w in weights]
        self.kept = {}
        self.log = measure.Timeline()

    def through(self, m: int, h: np.ndarray) -> np.ndarray:
        """Micro-batch m through these layers."""
        with self.log.work("forward", m, self.kept):
            self.kept[m] = forward(self.weights, h)
        return self.kept[m][-1]

    def back(self, m: int, g: np.ndarray) -> np.ndarray:
        """Its gradient back through them; their own are added up."""
        with self.log.work("backward", m, self.kept):
            g = backward(self.weights, self.kept[m], g, self.gradients)
        del self.kept[m]
        return g
