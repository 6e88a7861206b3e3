"""Bring TensorFlow's OpenMP build, intel-tensorflow, to an environment of its own: .side/intel.

    make intel

02_threads compares it with the workshop's own TensorFlow; nothing else needs it. Versions and
hashes stand in requirements/intel.lock, about 370 MB to download. There are wheels of it for Python
3.11 at most."""

import sys
from pathlib import Path

from setup_env import ROOT, Stop, say
from side_env import SIDE, make_whole, one_at_a_time, pip, python311, said, two_ranks

MAKER = "make intel"
LOCK = ROOT / "requirements/intel.lock"
FOLDER = SIDE / "intel"
NEEDED_GIB = 2.2  # measured: 1.5 in place, 0.4 to download, and pip unpacks one wheel at a time
PROOF = """
from mpi4py import MPI
import tensorflow as tf
from scaleout import data, records
tf.nn.conv2d(tf.ones((1, 8, 8, 16)), tf.ones((3, 3, 16, 16)), 1, "SAME")
print("ranks", MPI.COMM_WORLD.allreduce(1), "TensorFlow", tf.__version__, flush=True)
"""


def prove() -> str:
    """Run a job of two ranks whose convolution OpenMP has to do; Stop when it does not work
    here."""
    python = [str(FOLDER / "bin" / "python"), "-c", PROOF]
    tell = {"ONEDNN_VERBOSE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    output = two_ranks("The OpenMP build", Path(sys.prefix) / "bin" / "mpirun", python, tell)
    if "runtime:OpenMP" not in output:
        raise Stop(
            "It is in place, but oneDNN does not report OpenMP in it: is another TensorFlow on PYTHONPATH?"
        )
    return said(output)


def bring() -> int:
    base = python311(MAKER, "The OpenMP build", "02_threads runs without it too.")

    def fill() -> str:
        say("intel-tensorflow, the OpenMP build: about 370 MB to download ...")
        pip(MAKER, FOLDER, [base, "-m", "venv", str(FOLDER)])
        install = [
            str(FOLDER / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--require-hashes",
        ]
        pip(MAKER, FOLDER, [*install, "--only-binary", ":all:", "-r", str(LOCK)])
        packages = next(FOLDER.glob("lib/python3*/site-packages"))
        packages.joinpath("scaleout.pth").write_text(
            f"{ROOT / 'src'}\n"
        )  # for a lab's data and records
        return prove()

    make_whole("The OpenMP build", FOLDER, LOCK.read_text(), NEEDED_GIB, fill)
    return 0


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
