"""What the checks look at: what runme.py decides, on machines made up.

    mpirun -n 3 python -m mpi4py labs/02_threads/instruments.py

It asks runme.py to decide on threads and cores, here for three ranks, as if
the machine had so and so many cores with two CPUs each. Nothing is trained,
and nobody is pinned: what would be pinned is written down. You will see one
line for each machine, after 1 second. There is nothing to fill in here.
"""

import ctypes
import operator
import os
import sys

import runme

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import machine, records
from scaleout.kit.flags import Parser

# What it is called, the cores of the machine, and what is typed. Those with
# --pin come last: where pinning fails, the others have been written down.
CASES = [
    ("share 7", 7, []),
    ("share 12", 12, []),
    ("share 1", 1, []),
    ("set", 12, ["--intra", "3", "--inter", "5"]),
    ("by itself", 12, ["--intra", "3"]),
    ("left", 12, ["--intra", "3", "--inter", "5", "--leave"]),
    *[(f"{intra} on {cores}", cores, ["--intra", str(intra)])
      for intra, cores in ((3, 6), (2, 5), (3, 7), (5, 7), (3, 4))],
    ("free", 12, ["--intra", "2"]),
    ("pin 2 of 7", 7, ["--intra", "2", "--pin"]),
    ("pin 2 of 6", 6, ["--intra", "2", "--pin"]),
    ("pin 1 of 9", 9, ["--intra", "1", "--pin"]),
    ("pin 4 of 9", 9, ["--intra", "4", "--pin"]),
]
NAMES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
SHELL = dict.fromkeys(NAMES, "1")
FIRST = 100  # the number of the first CPU: no rank, and no core, has it


def made_up(many: int) -> list[list[int]]:
    """So many cores, each as the list of its two CPUs."""
    return [[FIRST + core, FIRST + many + core] for core in range(many)]


def decided(cores: list[list[int]], words: list[str]) -> dict:
    """What runme.py decides about this machine, and what it asks for."""
    cpus = sum(cores, [])
    asked = []
    kept = {}

    def pin(process: int, mask: object) -> None:
        """Writes down the CPUs that somebody wants to run on."""
        if process not in (0, os.getpid()):
            raise ProcessLookupError(f"process {process} is not this rank")
        asked.append(sorted(operator.index(cpu) for cpu in mask))

    def keep(books: records.Books, **what: object) -> dict:
        """Stands in for the writing of the record."""
        kept.update(what)
        return {}

    environment = os.environ
    real = (os.sched_setaffinity, os.sched_getaffinity, records.Books.write,
            runme.cores_of_the_job, dict(environment))
    os.sched_setaffinity = pin
    os.sched_getaffinity = lambda _: set(asked[-1] if asked else cpus)
    records.Books.write = keep
    runme.cores_of_the_job = lambda *_: [list(core) for core in cores]
    environment.update(SHELL)
    sys.argv[1:] = ["--steps", "0", *words]
    try:
        runme.main(runme.settings())
        in_c = ctypes.CDLL(None).getenv
        in_c.restype = ctypes.c_char_p
        found = {
            "threads": kept["threads"],
            "oversubscribed": kept["oversubscribed"],
            "asked": asked,
            "environ": {name: environment.get(name) for name in NAMES},
            "libraries": {name: (in_c(name.encode()) or b"").decode()
                          for name in NAMES},
            "replaced": os.environ is not environment,
        }
    finally:
        vars(os)["environ"] = environment
        (os.sched_setaffinity, os.sched_getaffinity, records.Books.write,
         runme.cores_of_the_job, before) = real
        environment.clear()
        environment.update(before)
    return found


def main() -> None:
    Parser(__doc__).parse_args()
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    counted = {"all": os.cpu_count(), "usable": machine.usable_cores()}
    for name, many, words in CASES:
        cores = made_up(many)
        found = records.gather(decided(cores, words))
        # Distributed: one report, not one from each rank
        if comm.rank == 0:
            records.write(lab="02_threads", variant=name, ranks=comm.size,
                          metrics={"found": found, "cores": cores,
                                   "counted": counted})
            print(f"{name}: {found}", flush=True)


if __name__ == "__main__":
    main()
