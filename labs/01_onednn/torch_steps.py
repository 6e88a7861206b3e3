"""PyTorch's training step, once for each line that comes in.

turns.py starts this with the Python of `make torch`. It answers the first
line with the operations that an image takes, and each other one with the
loss. There is nothing to fill in here.
"""

import argparse
import sys
from pathlib import Path

# The networks of 09 in PyTorch.
sys.path.insert(0, str(Path(__file__).parents[1] / "09_networks"))

from common import made_up, trainer

from scaleout import data


def answer(network: str, batch: int, kind: str) -> None:
    """Answers until nothing more comes in."""
    options = kind.split("+")[1:]
    dtype = "bfloat16" if "bf16" in options else "float32"
    args = argparse.Namespace(network=network, framework="torch",
                              side=64 if data.quick() else 224, dtype=dtype)
    ours = trainer(args, seed=0)
    if "compiled" in options:
        ours.model.compile()
    x, y = ours.batch(*made_up(args, batch, 0))
    sys.stdin.readline()
    print(ours.flops_per_image, flush=True)
    for _ in sys.stdin:
        print(ours.step(x, y), flush=True)


answer(sys.argv[1], int(sys.argv[2]), sys.argv[3])
