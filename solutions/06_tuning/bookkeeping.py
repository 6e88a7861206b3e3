"""What 06_tuning can be asked for, and what it notes while it trains: seconds, accuracy, memory, samples.

runme.py imports this; there is nothing to fill in here.
"""

import argparse
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter as now
from time import sleep
from typing import Any

import numpy as np
import psutil

from scaleout import data, records

EVALUATIONS = ["predict", "predict_on_batch", "compiled", "shared"]
KNOBS = ("HOROVOD_", "KMP_", "OMP_", "TF_NUM_")
LOSSES = ("labelled", "unlabelled", "matching", "real", "fake")


def arguments(what: str) -> argparse.Namespace:
    """The flags; what: the program in a sentence."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--labels", type=int, default=100, help="training images whose label is known (100)")
    parser.add_argument("--side", type=int, default=28, help="pixels of an image's side, a multiple of 4 (28)")
    parser.add_argument("--steps", type=int, default=60 if data.quick() else 2000, help="of one rank; more share them")
    parser.add_argument("--batch-per-rank", type=int, default=64, help="images without label a step on each rank (64)")
    parser.add_argument("--evaluate-every", type=int, default=0, help="steps of the job (0: once, at the end)")
    parser.add_argument("--evaluation", choices=EVALUATIONS, default="shared", help="how; all but shared: by rank 0")
    parser.add_argument("--supervised", action="store_true", help="learn from the labelled images alone")
    parser.add_argument("--bf16", action="store_true", help="let oneDNN compute in bfloat16")
    parser.add_argument("--target", type=float, default=0.9, help="accuracy whose time is noted (0.9)")
    parser.add_argument("--memory-mib", type=int, default=0, help="the most that a rank may use (0: what there is)")
    parser.add_argument("--checkpoint", help="folder to go on from and to keep checkpoints in")
    parser.add_argument("--seed", type=int, default=0, help="of the weights, of the noise and of the images")
    return parser.parse_args()


def refuse_unusable(args: argparse.Namespace, n: int, rank: int, ranks: int) -> None:
    """Ends this rank, with status 2, when the arguments do not suit n training images on so many ranks."""
    counts = min(args.steps, args.batch_per_rank, args.evaluate_every + 1, args.memory_mib + 1, args.seed + 1)
    wrong = {
        f"{ranks} ranks cannot share {n} image(s): start at most {n}.": n < ranks,
        f"--labels takes 10, one of each digit, to {n}, not {args.labels}.": not 10 <= args.labels <= n,
        f"--side takes a multiple of 4 from 28 on, such as 64, not {args.side}.": args.side % 4 or args.side < 28,
        "--steps and --batch-per-rank begin at 1; --evaluate-every, --memory-mib and --seed at 0.": counts < 1,
    }
    for sentence, applies in wrong.items():
        if applies:
            if rank == 0:
                print(sentence, file=sys.stderr, flush=True)
            sys.exit(2)


def peak_mib() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say_out_of_memory(rank: int) -> None:
    """Prints what a rank says last when it gets no more memory, and waits until mpirun has passed it on."""
    advice = "take a smaller --side or --batch-per-rank, or fewer ranks a node."
    print(f"Rank {rank} ran out of memory at {peak_mib():.0f} MiB: {advice}", flush=True)
    sleep(0.5)


class Notes:
    """What one rank notes: seconds spent on each thing, and accuracy and memory at each evaluation."""

    def __init__(self) -> None:
        self.begin, self.process = now(), psutil.Process()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.accuracy: list[float] = []
        self.at_s: list[float] = []
        self.at_step: list[int] = []
        self.rss_mib: list[float] = []
        self.samples: list[np.ndarray] = []

    @contextmanager
    def time(self, what: str) -> Iterator[None]:
        """Notes the seconds of what is done inside."""
        start = now()
        yield
        self.seconds[what].append(now() - start)

    def evaluated(self, accuracy: float) -> str:
        """Notes an evaluation; the line to print."""
        self.accuracy.append(accuracy)
        self.at_s.append(now() - self.begin)
        self.at_step.append(len(self.seconds["train"]))
        self.rss_mib.append(self.process.memory_info().rss / 2**20)
        return f"step {self.at_step[-1]}: accuracy {accuracy:.2%} after {self.at_s[-1]:.1f} s"

    def watch(self, limit_mib: int) -> None:
        """MemoryError when this rank has ever used more than limit_mib; 0 is no limit."""
        if 0 < limit_mib < peak_mib():
            raise MemoryError

    def share(self) -> dict[str, Any]:
        """What this rank adds to the record: seconds in all, memory over time, and each of its steps.

        The first of each is left out of the seconds where there are more: in it TensorFlow builds its graphs.
        """
        timed = {what: self.seconds[what] for what in ("input", "train", "evaluation", "wait")}
        spent = {f"{what}_s": sum(seconds[1:] or seconds) for what, seconds in timed.items()}
        rss_mib = list(zip(self.at_s, self.rss_mib, strict=True))
        return spent | {"rss_mib": rss_mib, "peak_mib": peak_mib(), "step_s": self.seconds["train"]}

    def write(self, args: argparse.Namespace, shares: list[dict[str, Any]], losses: np.ndarray, **more: Any) -> str:
        """Writes the record of the job, on rank 0; the line to print.

        shares: of all ranks.  losses: (5,), LOSSES of rank 0's last step.  more: what else goes into the metrics.
        """
        ranks, wall_s = len(shares), now() - self.begin
        slowest_s = np.max([share.pop("step_s") for share in shares], axis=0)  # (steps,)
        warm_up, images = min(5, len(slowest_s) - 1), args.batch_per_rank * ranks
        rate, last = images / np.median(slowest_s[warm_up:]), len(self.samples) - 1
        kept = sorted({0, last // 2, last}) if self.samples else []  # three of them, to keep records small
        reached = (at for at, accuracy in zip(self.at_s, self.accuracy, strict=True) if accuracy >= args.target)
        settings = {name: value for name, value in os.environ.items() if name.startswith(KNOBS)}
        metrics = {"images_per_s": images * len(slowest_s) / wall_s, "accuracy": self.accuracy, "at_s": self.at_s,
                   "at_step": self.at_step, "evaluation_s": self.seconds["evaluation"], "shares": shares,
                   "to_target_s": next(reached, None), "settings": settings, "side": args.side,
                   "samples": [self.samples[i] for i in kept], "samples_at_s": [self.at_s[i] for i in kept],
                   "samples_at_step": [self.at_step[i] for i in kept],
                   "losses": dict(zip(LOSSES, losses, strict=True))}  # fmt: skip
        records.write(lab="06_tuning", variant="supervised" if args.supervised else args.evaluation, ranks=ranks,
                      batch_per_rank=args.batch_per_rank, seed=args.seed, warmup_steps=warm_up,
                      step_s=slowest_s[warm_up:], rate=rate, rate_unit="images/s", metrics=metrics | more)  # fmt: skip
        return f"{ranks} rank(s): {rate:.0f} images/s, accuracy {self.accuracy[-1]:.2%}"
