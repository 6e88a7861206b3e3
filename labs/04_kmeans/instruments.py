"""What the checks look at: what each rank holds while runme.py goes on.

    mpirun -n 2 python -m mpi4py labs/04_kmeans/instruments.py --colours 8

It takes 3 seconds. After each step of runme.py, what the ranks hold is read:
their rows, then the start and the palette, the labels, and what rank 0 paints.
You will see a line for each step, for two seeds of the start. There is nothing
to fill in here.
"""

import inspect
import os
import sys
import time

import daal4py as d4p
import numpy as np
import runme

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records

LATE_S = 0.2  # rank 1 begins to hand on its labels so much later


def rows_held(held: dict) -> dict:
    """Which rows are this rank's."""
    mine = held["mine"]
    return {"kind": type(mine).__name__, "has_ends": hasattr(mine, "stop"),
            "rows": np.arange(held["n"])[mine].tolist()}


def palette_held(held: dict) -> dict:
    """Its start, and its palette."""
    return {"start": held["start"], "palette": held["palette"]}


def labels_held(held: dict) -> dict:
    """The labels of its rows, the inertia, and how many rows it labelled."""
    results = [getattr(what, "assignments", None) for what in held.values()]
    labelled = [len(some) for some in results if some is not None]
    return array_held(held["labels"]) | {"inertia": held["inertia"],
                                         "labelled": labelled}


def picture_held(held: dict) -> dict:
    """What rank 0 paints."""
    return array_held(held.get("all_labels"))


def array_held(what: object) -> dict:
    """An array or a list: its kind, its shape and its numbers."""
    found = {"kind": type(what).__name__, "shape": [], "values": []}
    try:
        array = np.asarray(what)
    except ValueError:
        return found | {"pieces": len(what)}
    if array.dtype.kind not in "iuf":
        return found | {"dtype": str(array.dtype)}
    return found | {"shape": list(array.shape), "dtype": str(array.dtype),
                    "values": array.ravel().tolist()}


# A step is read once fit() is beyond this line, the last one once it comes to
# it; none of them stands in a TODO.
LAST = "return palette, inertia, all_labels"
STEPS = {
    "rows = pixels[mine]": ("rows", rows_held),
    "palette = fitted.centroids": ("palette", palette_held),
    "all_labels = None": ("labels", labels_held),
    LAST: ("picture", picture_held),
}


def steps() -> list[tuple]:
    """The number of each such line, in order, with what is read there."""
    lines, first = inspect.getsourcelines(runme.fit)
    said = [line.partition("  #")[0].strip() for line in lines]
    return [(number - (line == LAST), *STEPS[line])
            for number, line in enumerate(said, first) if line in STEPS]


class Reader:
    """Follows fit() line by line, and reads its variables after each step."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.to_come = steps()

    def follow(self, frame, event, arg):
        """Python asks this for each function that is called."""
        return self.read if frame.f_code is runme.fit.__code__ else None

    def read(self, frame, event, arg):
        """Python calls this before each line of fit()."""
        if (event == "line" and self.to_come
                and frame.f_lineno > self.to_come[0][0]):
            _, step, read = self.to_come.pop(0)
            self.write(step, read, frame.f_locals)
        return self.read

    def write(self, step: str, read, held: dict) -> None:
        """Writes what all ranks hold; nobody goes on before it is kept."""
        # Distributed: all ranks of the job
        comm = MPI.COMM_WORLD
        found = comm.allgather(read(held))
        if comm.rank == 0:
            records.write(lab="04_kmeans", variant=step, ranks=comm.size,
                          seed=self.seed, metrics={"found": found})
            print(f"seed {self.seed}, {step}: read on {comm.size} rank(s)",
                  flush=True)
        comm.Barrier()
        if step == "labels" and comm.rank == 1:
            # Whoever takes what comes first does not find the ranks in order.
            time.sleep(LATE_S)


def main() -> None:
    args = runme.settings()
    for seed in (args.seed, args.seed + 1):
        args.seed = seed
        sys.settrace(Reader(seed).follow)
        runme.main(args)
        sys.settrace(None)


if __name__ == "__main__":
    d4p.daalinit(int(os.environ.get("OMP_NUM_THREADS", -1)))
    try:
        main()
    finally:
        d4p.daalfini()
