"""What is worth its time? Trainings of runme.py, all in one job.

    mpirun -n 2 -bind-to core python -m mpi4py labs/12_capstone/study.py

Each --variants is trained once with each seed, which also says who the
patients are, for as many --epochs as all others. You will see the Dice that
each has reached. A training takes seven seconds. There is nothing to fill in
here.
"""

import argparse
import os
import shlex

import runme
from bookkeeping import arguments

from scaleout import data
from scaleout.flags import Parser, one_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--variants", nargs="+", metavar="FLAGS",
                        default=["channels=ct", "channels=ct+pet"],
                        help="of runme.py, without the dashes, such as "
                        "'loss=dice attention'")
    parser.add_argument("--seeds", type=one_or_more, default=5,
                        help="how many, 0 being the first (5)")
    parser.add_argument("--epochs", type=one_or_more, default=8,
                        help="of each training (8)")
    parser.add_argument("--patients", type=one_or_more, default=64,
                        help="who are made up for each seed (64)")
    args = parser.parse_args()
    if data.quick():
        args.seeds = 1
        args.variants = args.variants[:2]
    return args


def main(args: argparse.Namespace) -> None:
    trainings = []  # a wrong flag ends the job before the first of them
    for seed in range(args.seeds):
        for variant in args.variants:
            words = [f"--{word}" for word in shlex.split(variant)]
            words += [f"--seed={seed}", f"--epochs={args.epochs}",
                      f"--patients={args.patients}", "--goal=1"]
            trainings.append(arguments("", words))
    for training in trainings:
        # Distributed: each is a whole job of the lab, with all its ranks
        runme.main(training)


if __name__ == "__main__":
    # Distributed: as runme.py has it
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "30")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60")
    main(settings())
