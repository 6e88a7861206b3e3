"""The network that 11_parallelism splits, here whole and on one rank.

The scripts beside it import this; there is nothing to fill in here. A
layer is relu(x @ w), and w is square. The loss is the sum of (h - y)**2 / 2
over all numbers, divided by the rows of the whole batch: so the gradients of
parts of a batch add up to that of the batch.
"""

import numpy as np


def layer(k: int, width: int, dtype: str) -> np.ndarray:
    """The weights of layer k, the same on whichever rank makes them."""
    w = np.random.default_rng([k, width]).standard_normal((width, width))
    return (w * np.sqrt(2 / width)).astype(dtype)  # (width, width)


def examples(batch: int, width: int, dtype: str) -> tuple:
    """What goes in, and what should come out."""
    rng = np.random.default_rng([batch, width])
    x = rng.standard_normal((batch, width)).astype(dtype)  # (batch, width)
    y = rng.standard_normal((batch, width)).astype(dtype)  # (batch, width)
    return x, y


def relu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0)


def forward(weights: list, x: np.ndarray) -> list:
    """The input, and what each layer makes of it: (rows, width) each."""
    h = [x]
    for w in weights:
        h.append(relu(h[-1] @ w))
    return h


def backward(weights: list, h: list, g: np.ndarray, gradients: list,
             first: bool = False):
    """Adds to the gradients of the layers; returns that of the input.

    h: what forward gave.  g: the gradient with respect to the last of it.
    first: their input is the examples, whose gradient nobody needs.
    """
    for k in reversed(range(len(weights))):
        g = g * (h[k + 1] > 0)  # (rows, width)
        gradients[k] += h[k].T @ g  # (width, width)
        if k > 0 or not first:
            g = g @ weights[k].T  # (rows, width)
    return g


def loss(h: np.ndarray, y: np.ndarray, batch: int) -> float:
    """The part that these rows have in the loss of a batch."""
    return float(((h - y) ** 2).sum() / 2 / batch)


def slope(h: np.ndarray, y: np.ndarray, batch: int) -> np.ndarray:
    """The gradient of that loss with respect to h."""
    return (h - y) / batch  # (rows, width)


def serial(weights: list, x: np.ndarray, y: np.ndarray) -> tuple:
    """The loss and the gradients of the whole network, on one rank."""
    h = forward(weights, x)
    gradients = [np.zeros_like(w) for w in weights]
    backward(weights, h, slope(h[-1], y, len(x)), gradients, first=True)
    return loss(h[-1], y, len(x)), gradients


def adam(w: np.ndarray, g: np.ndarray, state: dict) -> None:
    """One step of the optimizer Adam; w changes in its place.

    state holds two arrays as long as g, made when they are first needed.
    """
    if len(w) != len(g):
        raise SystemExit(f"adam was given {len(w)} weights and a gradient of "
                         f"{len(g)} numbers: give it the same shard of both.")
    if not state:
        state["mean"] = np.zeros_like(g)
        state["square"] = np.zeros_like(g)
        state["steps"] = 0
    mean = state["mean"]
    square = state["square"]
    state["steps"] += 1
    mean += 0.1 * (g - mean)
    square += 0.001 * (g**2 - square)
    rate = 0.001 * np.sqrt(1 - 0.999 ** state["steps"])
    rate = rate / (1 - 0.9 ** state["steps"])
    w -= (rate * mean / (np.sqrt(square) + 1e-8)).astype(w.dtype)
