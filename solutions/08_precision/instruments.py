"""What the checks look at: three functions, on known numbers.

    mpirun -n 1 python -m mpi4py solutions/08_precision/instruments.py

It takes 3 seconds. Nothing is learned: each function of runme.py gets a few
numbers, and what it makes of them goes into the record. One that fails does
not keep the others from being looked at. There is nothing to fill in here.
"""

import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import runme
from common import BATCH, became_zero, listed, partly_infinite

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, fp16, gradients, start

from scaleout import records

X = [-1, -0.4, 0, 0.006, 0.61, 2, 9, -9]
BETWEEN = [0, 0.003, -0.3, 0.5, 1.2, -0.9]
COLUMNS = [[0.01, -8.0], [0.005, 4.0]]
ENDS = [[0.01, 8.0]]  # a range for each column


def attempt(probe: Callable) -> dict:
    """What a probe finds, or at which line it fails."""
    try:
        return probe()
    except Exception as error:
        here = Path(runme.__file__)
        lines = [frame for frame in traceback.extract_tb(error.__traceback__)
                 if Path(frame.filename) == here]
        where = (f"line {lines[-1].lineno} of runme.py fail, "
                 f"`{lines[-1].line}`: " if lines else "")
        said = str(error).strip().split("\n")[0]
        return {"error": f"{where}{type(error).__name__}: {said}"}


def quantised(x: list, low, high, bits: int) -> dict:
    """What quantise makes of some numbers."""
    given = np.array(x, np.float32)
    scale, zero, q, back = runme.quantise(given, low, high, bits)
    off = np.abs(np.asarray(back, float) - given) / np.max(scale)
    return {"scale": listed(scale), "zero": listed(zero), "q": listed(q),
            "off": listed(off), "back": listed(back),
            "types": [str(np.asarray(part).dtype) for part in (zero, q)],
            "kept": bool(np.array_equal(given, np.array(x, np.float32)))}


def whole_numbers() -> dict:
    """TODO 1: in 8 and 4 bits, in a range that needs rounding, in columns."""
    ends = np.array(ENDS, np.float32)
    return {"8": quantised(X, -1.0, 2.0, 8),
            "4": quantised(X, -1.0, 2.0, 4),
            "rounded": quantised(BETWEEN, -1.0, 1.7, 8),
            "columns": quantised(COLUMNS, -ends, ends, 8)}


def sums() -> dict:
    """TODO 2: products of known sums."""
    q_x = np.array([[127] * 784, [-128] * 784, [3] * 784], np.int8)
    q_w = np.full((784, 1), 127, np.int8)
    odd = np.array([[127]] * 783 + [[126]], np.int8)
    two = np.array([[5, 3], [7, -2]], np.int8)
    given = {"large": (q_x, np.int8(-128), q_w),
             "odd": (q_x[:1], np.int8(-128), odd),
             "small": (np.array([[1, 2]], np.int8), np.int8(1), two)}
    found = {}
    for name, (x, zero, w) in given.items():
        made = np.asarray(runme.multiply(x.copy(), zero, w.copy()))
        found[name] = {"shape": list(made.shape), "sums": listed(made)[:20]}
    return found


class Noted:
    """Stands in for `gradients`, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.calls = []

    def __call__(self, weights, x, y, number=None, mean_over=64, times=1.0):
        """As in network.py."""
        self.calls.append({"times": float(times),
                           "number": getattr(number, "__name__", "fp32"),
                           "mean_over": mean_over})
        how = {} if number is None else {"number": number}
        return gradients(weights, x, y, mean_over=mean_over, times=times,
                         **how)


def step(of: tuple, mean_over: int, scale: float) -> dict:
    """TODO 3: one step with this scale."""
    noted = runme.gradients = Noted()
    loss, exact = gradients(*of, mean_over=mean_over)
    loss_16 = gradients(*of, fp16, mean_over)[0]
    said, found, after = runme.scaled_gradients(*of, fp16, mean_over, scale)
    used_up = found is not None and iter(found) is found
    found = None if found is None else list(found)
    return {"scale": scale, "mean_over": mean_over, "after": float(after),
            "calls": noted.calls,
            "none": found is None, "used_up": used_up,
            "loss": float(said), "losses": [loss, loss_16],
            "many": None if found is None else len(found),
            "times": None if found is None else
            [times_as_large(*pair) for pair
             in zip(found, exact, strict=False)],
            "lost": None if found is None or len(found) != len(exact) else
            became_zero(found, exact)}


def times_as_large(found: np.ndarray, exact: np.ndarray) -> float | None:
    """By the sum of all sizes; None if that is no number."""
    with np.errstate(all="ignore"):
        sums = [np.abs(np.asarray(g, np.float64)).sum()
                for g in (found, exact)]
        times = float(sums[0] / sums[1])
    return times if np.isfinite(times) else None


def scaled() -> dict:
    """TODO 3: with scales that fit, and with some too large."""
    images, labels, _, _ = examples()
    of = (start(0), images[:BATCH], labels[:BATCH])
    return {"good": step(of, BATCH, 2.0 ** 10),
            "small": step(of, 10 ** 7, 2.0 ** 17),
            "partly": step(of, BATCH, partly_infinite(of)),
            "large": step(of, BATCH, 2.0 ** 40),
            "odd": step(of, 2.0 ** -34, 3.0)}


def main() -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    found = {"todo1": attempt(whole_numbers),
             "todo2": attempt(sums),
             "todo3": attempt(scaled)}
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        records.write(lab="08_precision", variant="instruments",
                      ranks=comm.size, metrics={"found": found})
        for name, saw in found.items():
            print(f"{name}: {saw.get('error', 'looked at')}", flush=True)


if __name__ == "__main__":
    main()
