"""The network and the images that runme.py and memory.py train with.

There is nothing to fill in here.
"""

import argparse
from importlib.util import find_spec

import numpy as np

from scaleout.kit.flags import refuse


def is_there(framework: str) -> None:
    """Says in one sentence where PyTorch is missing."""
    if framework == "torch" and find_spec("torch") is None:
        refuse("PyTorch is not in this Python: type  make torch, then run "
               "this with  --python .side/torch/bin/python")


def trainer(args: argparse.Namespace, seed: int):
    """The network and its steps, of the framework that was asked for."""
    is_there(args.framework)
    if args.framework == "torch":
        from networks_torch import Trainer
    else:
        from networks_tf import Trainer
    return Trainer(args.network, args.side, args.dtype, seed)


def made_up(args: argparse.Namespace, count: int, seed: int) -> tuple:
    """Images (count, side, side, channels) and their labels (count,)."""
    rng = np.random.default_rng(seed)
    shape = (args.side, args.side, 3)
    if args.network == "cnn":
        shape = (28, 28, 1)
    images = rng.random((count, *shape), np.float32)
    return images, rng.integers(0, 10, count)
