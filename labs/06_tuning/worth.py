"""Does the GAN earn its place? The lab with it and without it, in one job.

    mpirun -n 2 python -m mpi4py labs/06_tuning/worth.py --seeds 3

For each seed, which also says which images have a label, the classifier learns
twice: together with the GAN, and from the labelled images alone. You will see
both accuracies on the test images. Each seed takes 20 seconds. There is
nothing to fill in here.
"""

import argparse

import runme  # before TensorFlow, so that its settings hold
from bookkeeping import arguments

from scaleout import data
from scaleout.flags import Parser, one_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=one_or_more, default=3,
                        help="how many, 0 being the first (3)")
    parser.add_argument("--labels", type=one_or_more, default=20,
                        help="training images whose label is known (20)")
    steps = 12 if data.quick() else 240
    parser.add_argument("--steps", type=one_or_more, default=steps,
                        help=f"steps of one rank, which more share ({steps})")
    args = parser.parse_args()
    if data.quick():
        args.seeds = 1
    return args


def main(args: argparse.Namespace) -> None:
    words = [
        f"--labels={args.labels}",
        f"--steps={args.steps}",
        "--evaluate-every=25",
    ]
    for seed in range(args.seeds):
        for alone in ([], ["--supervised"]):
            # Distributed: both are whole jobs of the lab, with all its ranks
            runme.main(arguments("", [*words, f"--seed={seed}", *alone]))


if __name__ == "__main__":
    main(settings())
