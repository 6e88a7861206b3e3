"""What the checks look at: the formula, the rows, and when a sum begins.

    mpirun -n 3 python -m mpi4py labs/07_scaling/instruments.py

Each rank, here of three, asks runme.py for its time and its rows, and takes
one step in which each gradient tells whose it is. You will see the rows of
each rank and what it called in the step. It takes 1 second. There is nothing
to fill in here.
"""

import operator
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from runme import my_rows, neighbours_s, ring_s, step

from scaleout import records
from scaleout.kit.flags import Parser

BATCH = 103  # rows
BYTES = 1_000_003
LAYERS = 3
WIDTH = 64


def tried(function: Callable, *asked: object) -> tuple[object, str]:
    """What a function of runme.py gives back, or how it failed, and where."""
    try:
        return function(*asked), ""
    except Exception as error:  # whatever somebody has written
        said = f"{type(error).__name__}: {error}"
        for frame in traceback.extract_tb(error.__traceback__)[::-1]:
            if Path(frame.filename).name == "runme.py":
                said += f", in line {frame.lineno}: {frame.line}."
                break
        return None, said


def plain(saw: object) -> object:
    """A number as it can be kept in a record; of anything else its text."""
    try:
        return operator.index(saw)
    except TypeError:
        pass
    return float(saw) if isinstance(saw, float) else repr(saw)


def formula(comm: MPI.Intracomm) -> dict:
    """The time by the formula, for this job's own alpha and beta."""
    alpha = neighbours_s(comm, 8)
    more_s = max(neighbours_s(comm, BYTES) - alpha, 1e-6)
    beta = more_s / BYTES
    saw, failed = tried(ring_s, BYTES, comm.size, alpha, beta)
    return {"alpha": alpha, "beta": beta, "saw": plain(saw), "failed": failed}


def rows(comm: MPI.Intracomm) -> dict:
    """The rows of this rank, for both modes."""
    found = {}
    for mode in ("strong", "weak"):
        mine, failed = tried(my_rows, mode, BATCH, comm.rank, comm.size)
        if not failed and not hasattr(mine, "start"):
            failed = f"{mine!r}, which is no slice"
        part = [plain(getattr(mine, name, None))
                for name in ("start", "stop", "step")]
        found[mode] = {"part": part, "failed": failed}
    return found


class Watched:
    """Stands in for the communicator, and notes what is called on it."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.events = []
        self.kept = []  # what was given to it lives on until the sums are here
        self.requests = []

    def __getattr__(self, name: str) -> object:
        found = getattr(self.comm, name)
        if not callable(found):
            return found

        def noted(*places: object, **names: object) -> object:
            """The call itself, written down."""
            self.events.append(name)
            self.kept.append((places, names))
            given = found(*places, **names)
            if isinstance(given, MPI.Request):
                self.requests.append(given)
            return given

        return noted


class Tagged(np.ndarray):
    """An `error` whose gradients say of which layer and which rank they are:
    1, 2, 3 on rank 0, 10, 20, 30 on rank 1, and so on."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str,
                        *inputs: np.ndarray, **names: object) -> np.ndarray:
        plainly = [np.asarray(each) for each in inputs]
        found = getattr(ufunc, method)(*plainly, **names)
        if ufunc is np.matmul:
            self.watched.events.append("compute")
            layer = self.watched.events.count("compute")
            found = found * np.float32(layer)
        return found


def one_step(comm: MPI.Intracomm) -> dict:
    """What the step of runme.py calls, and what its gradients hold then."""
    watched = Watched(comm)
    x = np.ones((1, WIDTH), np.float32)
    error = np.full((1, WIDTH), 10.0 ** comm.rank, np.float32).view(Tagged)
    error.watched = watched
    gradients, _, begun = step(watched, x, error, 1, LAYERS)
    # Sums that began and that the step has not waited for
    left = [each for each in watched.requests if each != MPI.REQUEST_NULL]
    MPI.Request.Waitall(left)
    return {
        "begun": begun,
        "left": len(left),
        "events": watched.events,
        "least": [float(np.min(gradient)) for gradient in gradients],
        "most": [float(np.max(gradient)) for gradient in gradients],
    }


def main() -> None:
    Parser(__doc__).parse_args()
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    # The step comes last: where it fails, the others have been written down.
    for variant, look in (("formula", formula), ("rows", rows),
                          ("step", one_step)):
        found = records.gather(look(comm))
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            records.write(lab="07_scaling", variant=variant, ranks=comm.size,
                          metrics={"found": found})
            for rank, each in enumerate(found):
                print(f"{variant}, rank {rank}: {each}", flush=True)


if __name__ == "__main__":
    main()
