"""What one process of a small MPI job sees. The doctor starts two: `mpirun -n 2 python -m
scaleout.doctor.probe FOLDER`.

Each part is tried on its own, and the report in FOLDER is written anew before and after each: a
process that hangs or crashes has said how far it came."""

import faulthandler
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from ..base import jsonlines


def mpi_libraries(maps: str) -> list[str]:
    """Find the MPI libraries in the text of a `/proc/PID/maps`.

    They are the files that hold an MPI's own code.
    """
    paths = {fields[5] for line in maps.splitlines() if len(fields := line.split(maxsplit=5)) == 6}
    return sorted(
        {
            os.path.realpath(p)
            for p in paths
            if re.match(r"libmpi(ch|_abi)?\.so", os.path.basename(p))
        }
    )


def mpi4py() -> dict[str, Any]:
    from mpi4py import MPI

    version = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
    return {"world": [MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size], "mpi_version": version}


def daal4py() -> dict[str, Any]:
    import daal4py

    daal4py.daalinit()
    return {"world": [daal4py.my_procid(), daal4py.num_procs()]}


def tensorflow() -> dict[str, Any]:
    import tensorflow as tf

    # One convolution, so that ONEDNN_VERBOSE tells whether oneDNN computed it, and with which
    # instructions.
    tf.nn.conv2d(
        tf.ones((1, 8, 8, 8)), tf.ones((3, 3, 8, 8)), strides=1, padding="SAME"
    )  # (1, 8, 8, 8)
    return {"version": tf.__version__}


def horovod() -> dict[str, Any]:
    import horovod.tensorflow as hvd
    import tensorflow as tf

    hvd.init()
    total = hvd.allreduce(
        tf.constant([hvd.rank() + 1.0]), op=hvd.Sum
    )  # (1,): 1 + 2 = 3 on two ranks
    built = {"mpi": bool(hvd.mpi_built()), "gloo": bool(hvd.gloo_built())}
    return {"world": [hvd.rank(), hvd.size()], "built": built, "sum": float(total[0])}


def main(folder: str, limit_s: float) -> None:
    """Write FOLDER/PID.json: {part: what it says, or {"error": text}}, "stage" and "libmpi"."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    report: dict[str, Any] = {}

    def write(stage: str) -> None:
        path = Path(folder, f"{os.getpid()}.json")
        jsonlines.write(path, json.dumps({**report, "stage": stage}))

    for part in (mpi4py, daal4py, tensorflow, horovod):
        name = part.__name__
        write(name)
        try:
            report[name] = part()
        except Exception as error:  # whatever it is, it is the finding
            report[name] = {"error": f"{type(error).__name__}: {error}"}
    report["libmpi"] = mpi_libraries(Path("/proc/self/maps").read_text())
    write("done")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
