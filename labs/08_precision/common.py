"""What runme.py needs besides: flags, reports, and what the checks see.

There is nothing to fill in here.
"""

import argparse
from collections.abc import Callable

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, fp16, gradients, start

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

BATCH = 64  # images
LEARNING_RATE = 0.05
FIRST_SCALE = 2.0 ** 24  # of the loss; too large at first, which does no harm
HOW = ["fp32", "bf16", "fp16", "fp16 scaled"]


def settings(about: str) -> argparse.Namespace:
    """What was typed behind the name of runme.py."""
    parser = Parser(about)
    parser.add_argument("--part", choices=["all", "int8", "fp16"],
                        default="all", help="few bits, learning, or all (all)")
    parser.add_argument("--bits", type=one_or_more, nargs="+",
                        default=[8, 6, 5, 4, 3, 2],
                        help="of the whole numbers (8 6 5 4 3 2)")
    parser.add_argument("--batches", type=one_or_more, default=10,
                        help="batches to calibrate with, of 16 images (10)")
    parser.add_argument("--mean-over", type=one_or_more, nargs="+",
                        default=[64, 16_777_216],
                        help="what the loss is a mean over (64 16777216)")
    parser.add_argument("--steps", type=one_or_more,
                        default=60 if data.quick() else 300,
                        help="steps of a training (300)")
    parser.add_argument("--seeds", type=one_or_more,
                        default=1 if data.quick() else 3,
                        help="trainings of each kind (3)")
    args = parser.parse_args()
    ranks = MPI.COMM_WORLD.Get_size()
    if max(args.bits) > 8 or min(args.bits) < 2:
        refuse("--bits: int8 holds whole numbers of 2 to 8 bits.")
    if args.batches < ranks:
        refuse(f"--batches: {args.batches} are fewer than {ranks} ranks, and "
               "nobody calibrates with an empty set.")
    return args


def batch(x: np.ndarray, k: int) -> np.ndarray:
    """The k-th 16 of these images; behind the last comes the first again."""
    return x[np.arange(16 * k, 16 * k + 16) % len(x)]


def became_zero(found: list, exact: list) -> float:
    """Which share of the numbers that are not 0 in fp32 is 0 here."""
    there = sum(int((e != 0).sum()) for e in exact)
    lost = sum(int(((g == 0) & (e != 0)).sum())
               for g, e in zip(found, exact, strict=True))
    return lost / max(1, there)


def tried(comm: MPI.Intracomm, quantise: Callable, calibrate: Callable,
          multiply: Callable, scaled_gradients: Callable) -> dict:
    """What the four functions make of numbers whose answers are known."""
    x = np.array([-1, -0.4, 0, 0.006, 0.61, 2, 9, -9], np.float32)
    seen = {}
    for bits in (8, 4):
        scale, zero, q, back = quantise(x, -1.0, 2.0, bits)
        seen[f"quantise {bits}"] = {
            "scale": float(scale), "zero": float(zero), "q": listed(q),
            "back": listed(back),
            "types": [str(np.asarray(part).dtype) for part in (zero, q)]}
    columns = np.array([[1.0, -8.0], [0.5, 4.0]], np.float32)
    ends = np.array([[1.0, 8.0]], np.float32)  # a range for each column
    seen["per channel"] = listed(quantise(columns, -ends, ends, 8)[3])
    seen["ranges"] = [
        calibrate(comm, [np.array(part, np.float32) for part in parts])
        for parts in ([[0.5, 2], [0.7, 6], [1, 3]],
                      [[-3, -2], [-4, -1], [-2, -1]],
                      [[-1, 5], [-2, 3], [-1, 2]])]
    q_x = np.array([[127] * 784, [-128] * 784, [3] * 784], np.int8)
    q_w = np.full((784, 1), 127, np.int8)
    seen["sums"] = listed(multiply(q_x, np.int8(-128), q_w))
    q_w = np.array([[127]] * 783 + [[126]], np.int8)
    seen["odd sum"] = listed(multiply(q_x[:1], np.int8(-128), q_w))
    seen["small sum"] = listed(multiply(np.array([[1, 2]], np.int8),
                                        np.int8(1),
                                        np.array([[5], [7]], np.int8)))
    images, labels, _, _ = examples()
    of = (start(0), images[:BATCH], labels[:BATCH])
    exact = gradients(*of)[1]
    scales = {}
    for name, scale in (("good", 2.0 ** 10), ("large", 2.0 ** 40),
                        ("partly", partly_infinite(of))):
        _, found, after = scaled_gradients(*of, fp16, BATCH, scale)
        scales[name] = {
            "scale": scale,
            "after": float(after),
            "none": found is None,
            # How many times as large as in fp32, the middle weight of all.
            "times": None if found is None else times_as_large(found, exact)}
    seen["scales"] = scales
    fine = scaled_gradients(*of, fp16, 10 ** 7, 2.0 ** 17)[1]
    small = gradients(*of, mean_over=10 ** 7)[1]
    seen["lost"] = None if fine is None else became_zero(fine, small)
    return seen


def partly_infinite(batch: tuple) -> float:
    """A scale at which the first gradient is finite, and another is not."""
    for power in range(10, 40):
        found = gradients(*batch, fp16, BATCH, times=2.0 ** power)[1]
        finite = [bool(np.isfinite(g).all()) for g in found]
        if not all(finite):
            break
    return 2.0 ** power if finite[0] else 2.0 ** 40


def listed(x: np.ndarray) -> list:
    """As Python's own numbers."""
    return np.asarray(x).ravel().tolist()


def times_as_large(found: list, exact: list) -> float:
    """How many times as large as `exact`, the median over all numbers."""
    ratios = [(g[e != 0] / e[e != 0]).ravel()
              for g, e in zip(found, exact, strict=True)]
    return float(np.median(np.concatenate(ratios)))


def in_16_bits(inputs: list) -> tuple:
    """Which share of the sums does not fit into int16, and the largest."""
    beyond = 0
    count = 0
    largest = 0
    for q_x, zero, q_w in inputs:
        if q_x.dtype != np.int8:
            continue
        wide = q_x.astype(np.float64) - zero
        sums = np.abs(wide @ q_w.astype(np.float64))  # exact, and fast
        beyond += int((sums > 32767).sum())
        count += sums.size
        largest = max(largest, int(sums.max()))
    return beyond, count, largest


def report_bits(comm: MPI.Intracomm, args: argparse.Namespace, variant: str,
                mine: int, y_test: np.ndarray, seen: dict,
                about: dict) -> None:
    """One line and one record for a number of bits."""
    # Distributed: each rank has tested its own images
    right = comm.allreduce(mine)
    beyond, count, largest = in_16_bits(about.get("inputs", []))
    # Distributed: as above
    beyond = comm.allreduce(beyond)
    count = comm.allreduce(count)
    largest = comm.allreduce(largest, op=MPI.MAX)
    accuracy = right / len(y_test)
    # Distributed: one record of all ranks
    records.Books("08_precision", comm.rank, comm.size).write(
        variant=variant,
        seed=0,
        part="int8",
        accuracy=accuracy,
        images=len(y_test),
        ranges=about.get("ranges"),
        zeros=about.get("zeros"),
        off=about.get("off"),
        beyond_int16=beyond / max(1, count),
        largest_sum=largest,
        batches=args.batches,
        tried=seen,
    )
    # Distributed: one line, not one from each rank
    if comm.rank == 0:
        print(f"{variant:18} {accuracy:7.1%} right", flush=True)


def report_learning(comm: MPI.Intracomm, args: argparse.Namespace, how: str,
                    mean_over: int, gathered: list, seen: dict) -> None:
    """One line and one record for a way to learn."""
    seeds = [each for rank in gathered for each in rank["found"]]
    accuracy = [each["accuracy"] for each in seeds]
    lost = float(np.mean([np.mean(each["lost"] or [1.0]) for each in seeds]))
    # Distributed: one record of all ranks
    records.Books("08_precision", comm.rank, comm.size).write(
        variant=f"{how}, mean over {mean_over}",
        batch_per_rank=BATCH,
        part="fp16",
        how=how,
        mean_over=mean_over,
        accuracy=accuracy,
        losses=[each["losses"] for each in seeds],
        lost=lost,
        skipped=[each["skipped"] for each in seeds],
        scale=[each["scale"] for each in seeds],
        steps=args.steps,
        tried=seen,
    )
    # Distributed: one line, not one from each rank
    if comm.rank == 0:
        print(f"{how:12} mean over {mean_over:7}: {np.mean(accuracy):6.1%} "
              f"right, {lost:6.1%} of the gradients became 0", flush=True)
