"""The network of runme.py, and the number formats that it learns in.

784 pixels, 64 numbers with ReLU, 10 classes, in NumPy. There is nothing to
fill in here.
"""

import numpy as np

from scaleout import data

WIDTHS = [784, 64, 10]


def examples() -> tuple:
    """Digits as rows of pixels, moved to mean 0 and scaled to deviation 1."""
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,)
    middle = x.mean()
    spread = x.std()
    rows = [(part.reshape(len(part), -1) - middle) / spread
            for part in (x, x_test)]  # (n, 784)
    return rows[0], y, rows[1], y_test


def start(seed: int) -> list:
    """Weights and biases to begin with: w, b, w, b."""
    rng = np.random.default_rng(seed)
    found = []
    for before, after in zip(WIDTHS, WIDTHS[1:], strict=False):
        w = rng.standard_normal((before, after)) * np.sqrt(2 / before)
        found += [w.astype(np.float32), np.zeros(after, np.float32)]
    return found


def fp32(x: np.ndarray) -> np.ndarray:
    """As it is."""
    return x


def fp16(x: np.ndarray) -> np.ndarray:
    """Each number rounded to the nearest that fp16 has."""
    return x.astype(np.float16).astype(np.float32)


def bf16(x: np.ndarray) -> np.ndarray:
    """Each number rounded to the nearest that bf16 has."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    # Half of the last bit that stays; a tie goes to the even neighbour.
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32)


NUMBERS = {"fp32": fp32, "bf16": bf16, "fp16": fp16}


def forward(weights: list, x: np.ndarray, number=fp32) -> list:
    """What goes into each layer, and what comes out of the last one.

    Products are added up in fp32, and what is kept is rounded.
    """
    h = [number(x)]
    for k in range(0, len(weights), 2):
        z = h[-1] @ number(weights[k]) + weights[k + 1]
        last = k + 2 == len(weights)
        h.append(number(z if last else np.maximum(z, 0)))
    return h


def gradients(weights: list, x: np.ndarray, y: np.ndarray, number=fp32,
              mean_over: int = 64, times: float = 1.0) -> tuple:
    """The loss, and the gradients of `times` the loss by weights and biases.

    The loss is the mean cross entropy. Its gradient is divided by mean_over:
    by more than there are images, as if each had many pixels with a label.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        h = forward(weights, x, number)
        z = h[-1] - h[-1].max(axis=1, keepdims=True)  # (batch, 10)
        p = np.exp(z)
        p = p / p.sum(axis=1, keepdims=True)
        rows = np.arange(len(y))
        loss = -np.log(p[rows, y] + 1e-30).mean()
        p[rows, y] -= 1
        g = number(p * np.float32(times / mean_over))  # (batch, 10)
        found = []
        for k in reversed(range(0, len(weights), 2)):
            before = h[k // 2]
            found = [number(before.T @ g), number(g.sum(axis=0))] + found
            g = number(number(g @ number(weights[k]).T) * (before > 0))
    return float(loss), found


def right(logits: np.ndarray, y: np.ndarray) -> int:
    """How many images are given their own class."""
    return int((np.argmax(logits, axis=1) == y).sum())
