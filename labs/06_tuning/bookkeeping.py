"""What 06_tuning can be asked for, and the memory and time that it notes.

runme.py imports this; there is nothing to fill in here.
"""

import argparse
import os
import resource
from time import sleep

import psutil

from scaleout import data
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

QUICK_STEPS = 12
QUICK_BATCH = 8
EVALUATIONS = ["predict", "predict_on_batch", "eager", "compiled", "shared"]
KNOBS = ("HOROVOD_", "KMP_", "OMP_", "TF_NUM_")


def arguments(
    docstring: str, words: list[str] | None = None
) -> argparse.Namespace:
    """The flags, as typed or as words."""
    parser = Parser(docstring)
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


def used_mib() -> float:
    """The memory that this process has now."""
    return psutil.Process().memory_info().rss / 2**20


def peak_mib() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say_out_of_memory(rank: int) -> None:
    """What a rank says last, and time for mpirun to pass it on."""
    print(f"Rank {rank} ran out of memory at {peak_mib():.0f} MiB: take a "
          "smaller --side or --batch-per-rank, or fewer ranks a node.",
          flush=True)
    sleep(0.5)


def steps_per_s(evaluations: list[tuple]) -> float:
    """Steps a second, all time counted, from the first evaluation to the
    last; where there is one alone, from the start of the job.

    evaluations: (seconds, steps) at each.
    """
    start_s, start = evaluations[0] if len(evaluations) > 1 else (0.0, 0)
    end_s, end = evaluations[-1]
    return (end - start) / (end_s - start_s)


def settings() -> dict[str, str]:
    """What the libraries were asked for."""
    return {name: value for name, value in os.environ.items()
            if name.startswith(KNOBS)}
