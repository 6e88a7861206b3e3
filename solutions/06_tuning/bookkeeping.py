"""What 06_tuning can be asked for, and what it notes while it trains.

runme.py imports this; there is nothing to fill in here.
"""

import argparse
import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any

import numpy as np
import psutil

from scaleout import data, records
from scaleout.flags import Parser, one_or_more, refuse, zero_or_more

QUICK_STEPS = 12
QUICK_BATCH = 8
EVALUATIONS = ["predict", "predict_on_batch", "compiled", "shared"]
KNOBS = ("HOROVOD_", "KMP_", "OMP_", "TF_NUM_")
LOSSES = ("labelled", "unlabelled", "matching", "real", "fake")


def arguments(
    what: str, words: list[str] | None = None
) -> argparse.Namespace:
    """The flags, as typed or as words; what: the program in a sentence."""
    parser = Parser(what)
    steps = 2000
    parser.add_argument("--labels", type=zero_or_more, default=20,
                        help="training images whose label is known (20)")
    parser.add_argument("--steps", type=one_or_more, default=steps,
                        help=f"steps of one rank, which more share ({steps})")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=64,
                        help="images without label a step on each rank (64)")
    parser.add_argument("--evaluate-every", type=zero_or_more, default=0,
                        help="steps of the job (0: once, at the end)")
    parser.add_argument("--evaluation", choices=EVALUATIONS, default="shared",
                        help="how; all but shared: by rank 0 (shared)")
    parser.add_argument("--supervised", action="store_true",
                        help="learn from the labelled images alone")
    parser.add_argument("--checkpoint",
                        help="folder to go on from and to keep checkpoints in")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of weights, noise and images (0)")
    more = parser.add_argument_group("for the notebook's experiments")
    more.add_argument("--side", type=one_or_more, default=28,
                      help="pixels of an image's side, a multiple of 4 (28)")
    more.add_argument("--bf16", action="store_true",
                      help="let oneDNN compute in bfloat16")
    more.add_argument("--memory-mib", type=zero_or_more, default=0,
                      help="MiB that a rank may use (0: what there is)")
    args = parser.parse_args(words)
    if data.quick():
        args.steps = min(args.steps, QUICK_STEPS)
        args.batch_per_rank = min(args.batch_per_rank, QUICK_BATCH)
    return args


def refuse_unusable(args: argparse.Namespace, n: int, ranks: int) -> None:
    """Ends the job when n training images on so many ranks do not do."""
    if n < ranks:
        refuse(f"{ranks} ranks cannot share {n} image(s): start at most {n}.")
    if not 10 <= args.labels <= n:
        refuse(f"--labels takes 10, one of each digit, to {n}, "
               f"not {args.labels}.")
    if args.side % 4 or args.side < 28:
        refuse("--side takes a multiple of 4 from 28 on, such as 64, "
               f"not {args.side}.")


def peak_mib() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say_out_of_memory(rank: int) -> None:
    """What a rank says last, and time for mpirun to pass it on."""
    print(f"Rank {rank} ran out of memory at {peak_mib():.0f} MiB: take a "
          "smaller --side or --batch-per-rank, or fewer ranks a node.",
          flush=True)
    sleep(0.5)


class Notes:
    """What one rank notes: the seconds spent on each thing, and at each
    evaluation the accuracy and the memory."""

    def __init__(self) -> None:
        self.begin = perf_counter()
        self.process = psutil.Process()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.accuracy: list[float] = []
        self.at_s: list[float] = []
        self.at_step: list[int] = []
        self.rss_mib: list[float] = []
        self.samples: list[np.ndarray] = []

    @contextmanager
    def time(self, what: str) -> Iterator[None]:
        """Notes the seconds of what is done inside."""
        start = perf_counter()
        yield
        self.seconds[what].append(perf_counter() - start)

    def evaluated(self, accuracy: float) -> str:
        """Notes an evaluation; the line to print."""
        self.accuracy.append(accuracy)
        self.at_s.append(perf_counter() - self.begin)
        self.at_step.append(len(self.seconds["train"]))
        self.rss_mib.append(self.process.memory_info().rss / 2**20)
        return (f"step {self.at_step[-1]}: accuracy {accuracy:.2%} "
                f"after {self.at_s[-1]:.1f} s")

    def watch(self, limit_mib: int) -> None:
        """MemoryError when this rank ever used more; 0 is no limit."""
        if 0 < limit_mib < peak_mib():
            raise MemoryError

    def share(self) -> dict[str, Any]:
        """What this rank adds to the record: seconds, memory, its steps.

        The first of each is left out of the seconds where there are more: in
        it TensorFlow builds its graphs.
        """
        spent = {}
        for what in ("input", "train", "evaluation", "wait"):
            seconds = self.seconds[what]
            spent[f"{what}_s"] = sum(seconds[1:] or seconds)
        return {
            **spent,
            "rss_mib": list(zip(self.at_s, self.rss_mib, strict=True)),
            "peak_mib": peak_mib(),
            "step_s": self.seconds["train"],
        }

    def steps_per_s(self, wall_s: float) -> float:
        """Steps a second, all time counted, from the first evaluation to the
        last; where there is one alone, those of the whole job."""
        if len(self.at_s) < 2:
            return len(self.seconds["train"]) / wall_s
        steps = self.at_step[-1] - self.at_step[0]
        return steps / (self.at_s[-1] - self.at_s[0])

    def write(
        self,
        args: argparse.Namespace,
        shares: list[dict[str, Any]],
        losses: list[np.ndarray],
        **more: Any,
    ) -> str:
        """Writes the record of the job, on rank 0; the line to print.

        shares: of all ranks.  losses: LOSSES of rank 0's last step, of which
        the last two are logits, one for each image.
        more: what else goes into the metrics.
        """
        wall_s = perf_counter() - self.begin
        ranks = len(shares)
        step_s = [share.pop("step_s") for share in shares]
        slowest_s = np.max(step_s, axis=0)  # (steps,)
        warm_up = min(5, len(slowest_s) - 1)
        images = args.batch_per_rank * ranks
        rate = images / np.median(slowest_s[warm_up:])
        # Three of the samples, to keep records small.
        last = len(self.samples) - 1
        kept = sorted({0, last // 2, last}) if self.samples else []
        settings = {
            name: value for name, value in os.environ.items()
            if name.startswith(KNOBS)
        }
        records.write(
            lab="06_tuning",
            variant="supervised" if args.supervised else args.evaluation,
            ranks=ranks,
            batch_per_rank=args.batch_per_rank,
            seed=args.seed,
            warmup_steps=warm_up,
            step_s=slowest_s[warm_up:],
            rate=rate,
            rate_unit="images/s",
            metrics={
                "images_per_s": images * self.steps_per_s(wall_s),
                "accuracy": self.accuracy,
                "at_s": self.at_s,
                "at_step": self.at_step,
                "evaluation_s": self.seconds["evaluation"],
                "shares": shares,
                "settings": settings,
                "side": args.side,
                "samples": [self.samples[i] for i in kept],
                "samples_at_s": [self.at_s[i] for i in kept],
                "samples_at_step": [self.at_step[i] for i in kept],
                "losses": dict(zip(LOSSES, losses, strict=True)),
                **more,
            },
        )
        return (f"{ranks} rank(s): {rate:.0f} images/s, "
                f"accuracy {self.accuracy[-1]:.2%}")
