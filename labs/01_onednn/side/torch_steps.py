"""PyTorch's training step, once for each line that comes in.

turns.py starts this with the Python of `make torch`, and gets the loss of
each step. There is nothing to fill in here.
"""

import argparse
import sys
from pathlib import Path

# The networks of 09 in PyTorch.
sys.path.insert(0, str(Path(__file__).parents[2] / "09_networks"))

import torch
from common import made_up, trainer

from scaleout import data


def answer(network: str, batch: int, kind: str) -> None:
    """Answers each line with the loss of a step."""
    options = kind.split("+")[1:]
    args = argparse.Namespace(network=network, framework="torch",
                              side=64 if data.quick() else 224,
                              dtype="float32")
    ours = trainer(args, seed=0)
    x, y = ours.batch(*made_up(args, batch, 0))
    # The lab of 09 has the channels of a pixel together, as in TensorFlow.
    if "channels_first" in options:
        ours.model.to(memory_format=torch.contiguous_format)
        x = x.contiguous()
    if "compiled" in options:
        ours.model.compile()
    for _ in sys.stdin:
        print(ours.step(x, y), flush=True)


answer(sys.argv[1], int(sys.argv[2]), sys.argv[3])
