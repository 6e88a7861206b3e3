"""Build Horovod once more, on oneCCL and Intel MPI, beside the workshop's own: .side/ccl.

    make ccl

05_horovod puts it as one bar into its picture of transports; nothing else needs it. Versions and
hashes stand in requirements/ccl.lock, about 700 MB to download, 2.7 GB in place, and about a minute
to compile. TensorFlow and the rest stay the workshop's own. Intel's libraries come under Intel's own
licence (Intel Simplified Software License)."""

import os
import sys
from pathlib import Path

from setup_env import (
    HOROVOD_BUILD,
    ROOT,
    check_path,
    how_to_compile,
    read_lock,
    say,
)
from side_env import SIDE, make_whole, one_at_a_time, pip, said, two_ranks, wheels

from scaleout.launch import mpis

MAKER = "make ccl"
LOCK = ROOT / "requirements/ccl.lock"
FOLDER = SIDE / "ccl"
NEEDED_GIB = 3.5  # measured: 2.7 in place, 0.7 to download
PROOF = """
import horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
assert hvd.ccl_built() and float(hvd.allreduce(tf.ones(4), op=hvd.Sum)[0]) == 2, "no oneCCL in this Horovod"
print("ranks", hvd.size(), "Horovod on oneCCL", flush=True)
"""


def compile_horovod() -> None:
    """Horovod with oneCCL as its CPU operations, into FOLDER/python, which goes before the
    workshop's own."""
    wanted = FOLDER / "horovod.txt"
    wanted.write_text(read_lock((ROOT / "requirements/workshop.lock").read_text())["horovod"])
    build = {k: v for k, v in HOROVOD_BUILD.items() if "GLOO" not in k} | {
        "HOROVOD_WITHOUT_GLOO": "1"
    }
    build |= how_to_compile(FOLDER / "build", dict(os.environ))
    build |= {"I_MPI_ROOT": str(FOLDER), "CCL_ROOT": str(FOLDER), "CCL_CONFIGURATION": "."}
    build |= {"HOROVOD_CPU_OPERATIONS": "CCL", "PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}"}
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--require-hashes",
        "--no-build-isolation",
    ]
    command += [
        "--no-cache-dir",
        "--no-binary",
        "horovod",
        "--verbose",
        "--target",
        str(FOLDER / "python"),
    ]
    pip(MAKER, FOLDER, [*command, "-r", str(wanted)], build)


def bring() -> int:
    locked = LOCK.read_text()

    def fill() -> str:
        say("oneCCL and Intel MPI: about 700 MB to download ...")
        wheels(MAKER, FOLDER, locked)
        say("Horovod, compiled (about a minute on 2 cores) ...")
        compile_horovod()
        site = mpis.oneccl_site(FOLDER)
        mpirun = FOLDER / "bin" / Path(site.mpirun).name
        return said(two_ranks("oneCCL", mpirun, [sys.executable, "-c", PROOF], site.env))

    check_path(FOLDER)
    make_whole("Horovod's oneCCL build", FOLDER, locked, NEEDED_GIB, fill)
    return 0


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
