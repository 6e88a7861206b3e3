"""A small network in few bits, by hand.

    mpirun -n 1 python -m mpi4py labs/08_precision/runme.py

One rank, as here, takes about 10 seconds; more ranks share the images and
the seeds. You will see how many digits a network gets right whose numbers have
8 bits and fewer, and then how it learns when its gradients have 16 bits.
network.py is that network.
"""

import argparse

import common
import numpy as np
from common import FIRST_SCALE, HOW, LEARNING_RATE

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import NUMBERS, examples, forward, gradients, right, start

from scaleout import data, records


def limits(bits: int) -> tuple:
    """The smallest and the largest whole number of so many bits."""
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def quantise(x: np.ndarray, low: np.ndarray, high: np.ndarray,
             bits: int) -> tuple:
    """Numbers between low and high as whole numbers of a few bits.

    Returns the size of a step, the whole number that stands for 0.0, the
    whole numbers for x, and what these stand for: (q - zero) * scale.
    """
    lowest, highest = limits(bits)
    # TODO 1: `lowest` stands for low and `highest` for high, with steps of one
    # size between. Set scale, the size of a step; zero, rounded by np.rint; q,
    # the nearest whole numbers for x, none beyond lowest and highest
    # (np.clip); back, what q stands for. zero and q are of the type np.int8,
    # so widen q before you take zero away.  (4 lines)
    scale = 1.0
    zero = 0
    q = x
    back = x
    return scale, zero, q, back


def calibrate(comm: MPI.Intracomm, batches: list) -> tuple:
    """The range of an activation: the smallest number seen, and the largest.

    batches: what this rank has seen of it, an array for each batch.
    """
    # 0 has to be in the range, too: zeros are so frequent that one of the
    # whole numbers has to stand for exactly 0.
    low = min(0.0, *[batch.min() for batch in batches])
    high = max(0.0, *[batch.max() for batch in batches])
    # Distributed: q means the same on all ranks
    low = comm.allreduce(float(low), op=MPI.MIN)
    # Distributed: as above
    high = comm.allreduce(float(high), op=MPI.MAX)
    return low, high


def multiply(q_x: np.ndarray, zero: np.int8, q_w: np.ndarray) -> np.ndarray:
    """Sums of products of whole numbers, (rows, outputs).

    q_x: (rows, inputs), of which `zero` stands for 0.  q_w: (inputs, outputs).
    """
    # TODO 2: the product of q_x - zero and q_w. NumPy adds up in the type of
    # what it multiplies, and in int8 nothing is larger than 127: turn both
    # into np.int32, and q_x before zero is taken away.  (2 lines)
    return (q_x - zero) @ q_w


def range_of_weights(w: np.ndarray, per: str, bits: int) -> tuple:
    """One range for all weights, or one for each output (a column)."""
    high = np.abs(w).max(axis=0 if per == "channel" else None, keepdims=True)
    lowest, highest = limits(bits)
    return high * lowest / highest, high  # so that 0 stands for 0


def in_few_bits(weights: list, x: np.ndarray, ranges: list, per: str,
                bits: int) -> tuple:
    """What the network gives for x, with whole numbers in its products."""
    about = {"zeros": [], "off": [], "inputs": []}
    h = x  # (rows, 784)
    for k in range(0, len(weights), 2):
        low, high = ranges[k // 2]
        scale_x, zero, q_x, _ = quantise(h, low, high, bits)
        w = weights[k]
        low, high = range_of_weights(w, per, bits)
        scale_w, _, q_w, back = quantise(w, low, high, bits)
        # Each whole number of the sum is worth scale_x * scale_w.
        z = multiply(q_x, zero, q_w) * (scale_x * scale_w) + weights[k + 1]
        last = k + 2 == len(weights)
        h = z if last else np.maximum(z, 0)
        about["zeros"].append(float(zero))
        about["off"].append(float(np.std(back - w) / np.std(w)))
        about["inputs"].append((q_x, zero, q_w))
    return h, about


def scaled_gradients(weights: list, x: np.ndarray, y: np.ndarray, number,
                     mean_over: int, scale: float) -> tuple:
    """The loss, its gradients, and the scale of the next step.

    The gradients are None where this step should be left out.
    """
    # TODO 3: let `gradients` compute with times=scale, so that small numbers
    # come out as more than 0. If all that it found is finite (np.isfinite),
    # divide it by scale. If not, the scale was too large: set found to None,
    # and halve scale.  (6 lines)
    loss, found = gradients(weights, x, y, number, mean_over)
    return loss, found, scale


def learn(how: str, seed: int, mean_over: int, steps: int, x: np.ndarray,
          y: np.ndarray) -> tuple:
    """Trains the network, and counts the gradients that became 0."""
    number = NUMBERS[how.split()[0]]
    weights = start(seed)
    rng = np.random.default_rng(seed)
    scale = FIRST_SCALE if "scaled" in how else None
    about = {"losses": [], "lost": [], "skipped": 0}
    for step in range(steps):
        rows = rng.integers(0, len(x), common.BATCH)
        batch = (weights, x[rows], y[rows])  # x: (batch, 784)
        if scale is None:
            loss, found = gradients(*batch, number, mean_over)
        else:
            loss, found, scale = scaled_gradients(*batch, number, mean_over,
                                                  scale)
        about["losses"].append(loss)
        if found is None:
            about["skipped"] += 1
            continue
        if step % 10 == 0:
            exact = gradients(*batch, mean_over=mean_over)[1]
            about["lost"].append(common.became_zero(found, exact))
        # A loss divided by more needs a step that is larger by as much.
        rate = LEARNING_RATE * mean_over / common.BATCH
        weights = [w - np.float32(rate) * g
                   for w, g in zip(weights, found, strict=True)]
    about["scale"] = scale
    return weights, about


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    x, y, x_test, y_test = examples()
    tried = common.tried(comm, quantise, calibrate, multiply, scaled_gradients)
    if args.part in ("all", "int8"):
        weights, _ = learn("fp32", 0, common.BATCH, args.steps, x, y)
        # Distributed: each rank looks at its own batches
        mine = range(args.batches)[data.shard(args.batches, comm.rank,
                                              comm.size)]
        seen = [forward(weights, common.batch(x, k)) for k in mine]
        ranges = [calibrate(comm, [h[k] for h in seen]) for k in range(2)]
        # Distributed: and tests some of the images
        test = data.shard(len(x_test), comm.rank, comm.size)
        plain = right(forward(weights, x_test[test])[-1], y_test[test])
        common.report_bits(comm, args, "fp32", plain, y_test, tried, {})
        for bits in args.bits:
            for per in ("tensor", "channel"):
                logits, about = in_few_bits(weights, x_test[test], ranges,
                                            per, bits)
                about["ranges"] = ranges
                common.report_bits(comm, args, f"{bits} bits, {per}",
                                   right(logits, y_test[test]), y_test,
                                   tried, about)
    if args.part in ("all", "fp16"):
        for mean_over in args.mean_over:
            for how in HOW:
                found = []
                for seed in range(args.seeds)[comm.rank::comm.size]:
                    weights, about = learn(how, seed, mean_over, args.steps,
                                           x, y)
                    about["accuracy"] = right(
                        forward(weights, x_test)[-1], y_test) / len(y_test)
                    found.append(about)
                # Distributed: what each rank found with its seeds
                seeds = records.gather({"found": found})
                common.report_learning(comm, args, how, mean_over, seeds,
                                       tried)


if __name__ == "__main__":
    main(common.settings(__doc__.splitlines()[0]))
