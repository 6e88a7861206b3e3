"""What 10_input is asked for, what it notes, and what it says of bad input.

There is nothing to fill in here.
"""

import argparse
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from crops import crops

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import ScaleoutError, records
from scaleout.flags import Parser, one_or_more, refuse, zero_or_more

STEPS = ["parallel", "batch", "cache", "prefetch"]
OTHERS = ["one-batch", "help", "background"]


def milliseconds(text: str) -> float:
    """The value of --step-ms, which may be 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10_000:
        raise argparse.ArgumentTypeError(f"it takes 0 to 10,000, not {text}")
    return value


def steps_of(text: str) -> list:
    """The steps of a pipeline, such as parallel+batch."""
    use = [] if text == "naive" else text.split("+")
    for step in use:
        if step not in STEPS + OTHERS:
            raise argparse.ArgumentTypeError(
                f"it takes naive, or some of {', '.join(STEPS + OTHERS)} with "
                f"a + between them, not {text}")
    return use


def arguments(about: str) -> argparse.Namespace:
    """What was typed behind the name of runme.py."""
    parser = Parser(about)
    parser.add_argument("--use", nargs="*", choices=STEPS + OTHERS,
                        default=STEPS,
                        help="steps of the pipeline (all four); one-batch: "
                        "the first batch again and again; help: what "
                        "TensorFlow adds by itself; background: its threads "
                        "do not interrupt the step")
    parser.add_argument("--step-ms", type=milliseconds,
                        help="a device's step of so many ms, during which "
                        "these cores are free (the small network)")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=64,
                        help="images in a step of a rank (64)")
    parser.add_argument("--workers", type=zero_or_more, default=2,
                        help="images that a rank reads at a time, and threads "
                        "for that; 0 leaves it to TensorFlow (2)")
    parser.add_argument("--steps", type=zero_or_more, default=0,
                        help="steps (0: two epochs)")
    parser.add_argument("--folder",
                        help="images of your own, 128 x 128 pixels, called "
                        "NUMBER-LABEL.jpg (crops of two photographs)")
    parser.add_argument("--skip-broken", action="store_true",
                        help="leave out files that are no picture, and count "
                        "them")
    parser.add_argument("--checkpoint",
                        help="a folder: go on from where the last job with it "
                        "stopped (from the start)")
    args = parser.parse_args()
    args.seed = 0
    args.epochs = 2
    if args.skip_broken and args.checkpoint:
        refuse("--checkpoint needs to know how many images were used, and "
               "--skip-broken leaves some out: take one of them.")
    return args


def examples(args: argparse.Namespace, ranks: int) -> tuple:
    """The paths of all images, and their labels."""
    folder = args.folder
    if folder is None:
        try:
            # Distributed: one rank writes them, the others wait until it has
            folder = crops()
        except ScaleoutError as error:
            refuse(str(error))
    paths = sorted(map(str, Path(folder).glob("*.jpg")))
    if not paths:
        refuse(f"There is no image in {folder}: it takes files that are "
               "called NUMBER-LABEL.jpg.")
    if len(paths) < ranks:
        refuse(f"{ranks} ranks are more than the {len(paths)} images in "
               f"{folder}: take fewer ranks.")
    labels = []
    for path in paths:
        label = Path(path).stem.rpartition("-")[2]
        if label not in list("01234567"):
            refuse(f"{path} has no label from 0 to 7 at the end of its name.")
        labels.append(int(label))
    return paths, np.array(labels)  # (n,)


def place(args: argparse.Namespace, ranks: int, variables: list) -> tuple:
    """Epoch and step to go on from; the weights go on from there, too."""
    here = tf.Variable([0, 0, ranks, args.batch_per_rank], dtype=tf.int64)
    if args.checkpoint:
        took = records.take_checkpoint(args.checkpoint, [here, *variables])
        epoch, at, before, batch = here.numpy().tolist()
        if took and (before, batch) != (ranks, args.batch_per_rank):
            refuse(f"The checkpoint is of {before} ranks with {batch} images "
                   "in a step: in the middle of an epoch it goes on with as "
                   "many.")
        return epoch, at
    return 0, 0


class Notes:
    """What this rank saw, and how long it waited."""

    def __init__(self, args: argparse.Namespace, count: int,
                 steps_an_epoch: int, at: int) -> None:
        self.args = args
        self.count = count
        # The first epoch is a warm-up: it fills the cache.
        rest = steps_an_epoch - at
        self.warm_up = rest if args.steps > rest else min(1, args.steps - 1)
        self.times = []
        self.sizes = []
        self.order = []
        self.seen = {}

    def saw(self, epoch: int, numbers: tf.Tensor) -> None:
        """The images of a step."""
        some = numbers.numpy()
        self.order.append(hashlib.sha256(some.tobytes()).hexdigest()[:8])
        self.seen.setdefault(epoch, []).extend(some.tolist())

    def step(self, start: float, got: float, done: float, end: float) -> None:
        """Seconds: waits for its images, computes, waits for other ranks."""
        self.times.append([got - start, done - got, end - done])
        self.sizes.append(sum(map(len, self.seen.values())))

    def report(self, training: object, epoch: int, at: int) -> None:
        """One line and one record for the job."""
        # Distributed: all ranks of the job
        comm = MPI.COMM_WORLD
        args = self.args
        # Distributed: one rank writes
        if args.checkpoint and comm.rank == 0:
            here = [epoch, at, comm.size, args.batch_per_rank]
            records.keep_checkpoint(args.checkpoint,
                                    [here, *training.variables],
                                    epoch * 100_000 + at)
        times = np.array(self.times)[self.warm_up :]  # (steps, 3)
        before = self.sizes[self.warm_up - 1] if self.warm_up else 0
        step_s = np.empty(len(times))  # (steps,)
        # Distributed: the slowest rank counts
        comm.Allreduce(times.sum(axis=1), step_s, op=MPI.MAX)
        # Distributed: what all ranks have seen after the warm-up
        images = comm.allreduce(self.sizes[-1] - before)
        # Distributed: what each rank noted
        ranks = records.gather({
            "waited": float(times[:, 0].sum() / times.sum()),
            "computed": float(times[:, 1].sum() / times.sum()),
            "compute_s": float(np.median(times[:, 1])),
            "order": self.order,
            "seen": list(self.seen.values()) if self.count < 100 else [],
            "images": [len(each) for each in self.seen.values()],
        })
        # Distributed: one report, not one from each rank
        if comm.rank != 0:
            return
        first_epoch = sum(each["images"][0] for each in ranks)
        broken = self.count - first_epoch if args.skip_broken else 0
        rate = images / step_s.sum()
        last = training.right[-20:]
        waited = [each["waited"] for each in ranks]
        records.write(
            lab="10_input",
            variant=" + ".join(args.use) or "naive",
            ranks=comm.size,
            batch_per_rank=args.batch_per_rank,
            warmup_steps=self.warm_up,
            step_s=step_s,
            rate=rate,
            rate_unit="images/s",
            seed=args.seed,
            metrics={
                "use": args.use,
                "step_ms": args.step_ms,
                "workers": args.workers,
                "images": self.count,
                "waited": waited,
                "computed": [each["computed"] for each in ranks],
                "broken": broken,
                "right": float(np.mean(last)) if last else None,
                "ranks": ranks,
            },
        )
        shares = ", ".join(f"{share:.0%}" for share in waited)
        print(f"{rate:,.0f} images/s; each rank's wait for images: {shares} "
              "of a step", flush=True)
        if args.skip_broken:
            print(f"{broken} of {self.count} files were left out.", flush=True)
        if last:
            print(f"right in the last batches: {np.mean(last):.0%}")


def broken_file(args: argparse.Namespace, error: Exception,
                read_image: Callable) -> str:
    """One sentence with the name of a file that cannot be used."""
    for path in sorted(map(str, Path(args.folder or crops()).iterdir())):
        try:
            read_image(tf.constant(path))
        except (tf.errors.OpError, ValueError):
            return (f"{path} is broken, or no JPEG picture of 128 x 128 "
                    "pixels: write it again, or leave it out by "
                    "--skip-broken.")
    raise error
