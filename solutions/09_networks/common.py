"""The network and the images that runme.py and memory.py train with.

There is nothing to fill in here.
"""

import argparse
import importlib

import numpy as np

from scaleout.flags import refuse


def load(framework: str) -> None:
    """Imports the framework, or says in one sentence that it is not there."""
    if framework == "tensorflow":
        importlib.import_module("keras")
        return
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError:
        refuse("PyTorch is not in this Python: type  make torch, then run "
               "this with  --python .side/torch/bin/python")


def trainer(args: argparse.Namespace, seed: int):
    """The network and its steps, of the framework that was asked for."""
    load(args.framework)
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
