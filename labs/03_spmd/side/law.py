"""alpha, beta and the allreduces that they should predict, of one job.

    mpirun -n 2 python -m mpi4py labs/03_spmd/side/law.py

Two ranks send messages to and fro, as pingpong.py does, and then add up
arrays, as runme.py does: so all is of the same two ranks, in the same state of
the machine. You will see the lines of both. It takes about 4 seconds.
"""

import argparse
import sys
from pathlib import Path

from scaleout import data
from scaleout.kit.flags import Parser, one_or_more, zero_or_more

sys.path.append(str(Path(__file__).parents[1]))
import pingpong
import runme


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--repeats", type=one_or_more,
                        default=5 if data.quick() else 40,
                        help="timed messages, and calls, of each size (40)")
    parser.add_argument("--warmup", type=zero_or_more,
                        default=2 if data.quick() else 15,
                        help="those before, not timed (15)")
    return parser.parse_args()


def main(args: argparse.Namespace) -> None:
    bytes_ = [4**k for k in range(13)]  # 1 byte to 16 MiB
    pingpong.main(argparse.Namespace(**vars(args), sizes=bytes_))
    floats = [n // 4 for n in bytes_[2:]]  # 16 bytes to 16 MiB
    runme.main(argparse.Namespace(**vars(args), sizes=floats,
                                  algorithm="all"))


if __name__ == "__main__":
    main(settings())
