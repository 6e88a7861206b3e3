"""Bring PyTorch's build for CPUs alone to an environment of its own: .side/torch.

    make torch

A script written for torchrun then runs unedited under the workshop's mpirun:

    scaleout run train.py -n 2 --python .side/torch/bin/python

Versions and hashes stand in requirements/torch.lock, about 270 MB to download. The plain wheel of
torch would bring 3 GB of libraries for graphics cards; this one is the +cpu build, and its pin is
for Python 3.11."""

import sys
from pathlib import Path

from setup_env import ROOT, Stop, say
from side_env import SIDE, make_whole, one_at_a_time, pip, python311, said, two_ranks

MAKER = "make torch"
LOCK = ROOT / "requirements/torch.lock"
FOLDER = SIDE / "torch"
NEEDED_GIB = 1.6
NO_BUILD = (
    "pip does not know the +cpu build of torch here. Name PyTorch's own index of CPU wheels to it, whose address "
    "stands on pytorch.org under Get Started:  PIP_EXTRA_INDEX_URL=ADDRESS make torch"
)
PROOF = """
import torch, torch.distributed as dist
from mpi4py import MPI
from scaleout import data, records
dist.init_process_group("gloo")
ranks = torch.ones(1)
dist.all_reduce(ranks)
assert MPI.COMM_WORLD.allreduce(1) == int(ranks)
print("ranks", int(ranks), "PyTorch", torch.__version__, flush=True)
dist.destroy_process_group()
"""


def prove() -> str:
    """Run a job of two ranks that add up by Gloo and by MPI; Stop when it does not work here."""
    from scaleout.jobs import meeting, rank

    mpirun = Path(sys.prefix) / "bin" / "mpirun"
    python = [*rank.COMMAND, str(FOLDER / "bin" / "python"), "-c", PROOF]
    with meeting.variables(MAKER) as where:
        return said(two_ranks("PyTorch", mpirun, python, where))


def bring() -> int:
    base = python311(MAKER, "The pinned build of PyTorch", "The notebooks run without it too.")

    def fill() -> str:
        say("PyTorch for CPUs alone: about 270 MB to download ...")
        pip(MAKER, FOLDER, [base, "-m", "venv", str(FOLDER)])
        own = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--no-deps"]
        wanted = ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
        try:
            pip(MAKER, FOLDER, [*own, *wanted])
        except Stop:
            log = ROOT / ".setup" / "torch.log"
            if "No matching distribution found for torch" in log.read_text(errors="replace"):
                raise Stop(NO_BUILD) from None
            raise
        packages = next(FOLDER.glob("lib/python3*/site-packages"))
        # for a lab's data and records
        packages.joinpath("scaleout.pth").write_text(f"{ROOT / 'src'}\n")
        return prove()

    make_whole("PyTorch", FOLDER, LOCK.read_text(), NEEDED_GIB, fill)
    return 0


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
