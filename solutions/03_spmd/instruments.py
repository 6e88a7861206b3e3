"""What the checks look at: the blocks, and who gives what to whom in the ring.

    mpirun -n 3 python -m mpi4py solutions/03_spmd/instruments.py

It takes a second. You will see a line for each length of the array, after the
first trip of runme.py's ring and after both: of which blocks each rank has the
sum, and how many bytes it gave to whom. There is nothing to fill in here.
"""

import re
from collections.abc import Iterator

import numpy as np
import runme
from counting import Counting

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more

STALE = 2.0**20  # what lies in `spare` before anything comes
CUTS = [(7, 3), (8, 3), (1, 3), (7, 2), (1, 1), (11, 4)]  # n, ranks
COLLECTIVE = re.compile(
    r"i?(allreduce|allgatherv?|alltoall[vw]?|reduce(_scatter(_block)?)?|"
    r"gatherv?|scatterv?|bcast|scan|exscan)", re.IGNORECASE)


class Watching(Counting):
    """Counting, and it notes who is given how much, and each collective."""

    def begin(self, x: np.ndarray) -> None:
        """Nothing has been noted yet; x is what the ring works on."""
        self.x = x
        self.gives = []  # bytes, to which rank, and from where in x
        self.collectives = []
        self.place = None

    def count(self, what: object) -> None:
        super().count(what)
        array = what[0] if isinstance(what, list | tuple) else what
        if isinstance(array, np.ndarray):
            inside = np.may_share_memory(array, self.x)
            self.place = (array.ctypes.data - self.x.ctypes.data
                          if inside else None)


def watched(name: str):
    """One of the ways to send, and to whom is noted."""
    way = getattr(Counting, name)

    def send(self, *places, **names):
        before = self.sent
        found = way(self, *places, **names)
        dest = names["dest"] if "dest" in names else places[1]
        self.gives.append([self.sent - before, int(dest), self.place])
        return found

    return send


def collective(name: str):
    """One of the library's own collectives, and it is noted."""
    way = getattr(Counting, name)

    def call(self, *places, **names):
        self.collectives.append(name)
        return way(self, *places, **names)

    return call


for name in ("Send", "Ssend", "Isend", "Issend", "Isendrecv", "Sendrecv",
             "Sendrecv_replace", "send", "isend", "sendrecv"):
    setattr(Watching, name, watched(name))
for name in filter(COLLECTIVE.fullmatch, dir(Counting)):
    setattr(Watching, name, collective(name))


def cuts(n: int, ranks: int) -> dict:
    """The blocks of n elements: where each begins and ends, and its step."""
    found = runme.blocks(n, ranks)
    blocks = list(found) if isinstance(found, list | tuple) else []
    return {"n": n, "ranks": ranks, "kind": type(found).__name__,
            "blocks": [cut(block, n) for block in blocks]}


def cut(block: object, n: int) -> list[int] | str:
    """The begin, end and step of a slice; what else it is, in words."""
    if not isinstance(block, slice):
        return type(block).__name__
    try:
        return list(block.indices(n))
    except TypeError:
        return str(block)


def trips(comm: Watching, n: int) -> Iterator[dict]:
    """What one rank has, and has given, after one trip and after both."""
    rng = np.random.default_rng(comm.rank)
    # Whole numbers: their sum is exact, in whatever order they are added.
    x = rng.integers(-99, 100, n).astype(np.float32)  # (n,)
    # Distributed: what everybody begins with
    own = MPI.COMM_WORLD.allgather(x)
    after_one = x.copy()  # (n,)
    once = Watching(comm)
    once.begin(after_one)
    runme.ring(once, after_one, np.full_like(x, STALE), trips=1)
    block = runme.blocks(n, comm.size)
    yield noted(once, after_one, own, block) | {
        "unchanged": np.array_equal(x, after_one),
        "stale": bool((np.abs(after_one) > STALE / 2).any()),
    }

    # Rank r - 1 has block r whole now, and everybody is to get it from there.
    whole = np.zeros_like(x)  # (n,)
    for rank, part in enumerate(block):
        # Distributed: one rank's block, as it is after the first trip
        whole[part] = MPI.COMM_WORLD.bcast(after_one[part],
                                           root=(rank - 1) % comm.size)
    after_both = x.copy()  # (n,)
    both = Watching(comm)
    both.begin(after_both)
    runme.ring(both, after_both, np.full_like(x, STALE))
    # Block `rank` is the first that comes on the second trip.
    added = after_one + whole  # (n,)
    first = block[comm.rank]
    yield noted(both, after_both, own, block) | {
        "unchanged": np.array_equal(after_one, after_both),
        "passed_on": [np.array_equal(whole[part], after_both[part])
                      for part in block],
        "added": np.array_equal(added[first], after_both[first]),
    }


def noted(comm: Watching, x: np.ndarray, own: list[np.ndarray],
          block: list[slice]) -> dict:
    """Whose numbers the blocks of x hold, and what was sent for it."""
    total = np.sum(own, axis=0)  # (n,)
    holds = []
    for part in block:
        whose = [rank for rank, each in enumerate(own)
                 if np.array_equal(each[part], x[part])]
        is_sum = np.array_equal(total[part], x[part])
        holds.append("sum" if is_sum else whose[0] if whose else "other")
    return {"holds": holds, "gives": comm.gives,
            "collectives": comm.collectives}


def write(variant: str, **metrics: object) -> None:
    """Rank 0 writes a record, and nobody goes on before it is kept."""
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        records.write(lab="03_spmd", variant=variant, ranks=comm.size,
                      metrics=metrics)
    comm.Barrier()


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--sizes", type=one_or_more, nargs="+",
                        default=[7, 8], help="lengths of the array (7 8)")
    sizes = parser.parse_args().sizes
    comm = Watching(MPI.COMM_WORLD)
    write("blocks", cuts=[cuts(n, ranks) for n, ranks in CUTS])
    # The first trips of all lengths come before the second of any: what
    # stands in TODO 3 plays no part in them.
    under_way = [trips(comm, n) for n in sizes]
    for after in ("first trip", "both trips"):
        for n, trip in zip(sizes, under_way, strict=True):
            # Distributed: what each rank has noted
            found = MPI.COMM_WORLD.allgather(next(trip))
            write(after, n=n, found=found)
            if comm.rank == 0:
                for rank, each in enumerate(found):
                    print(f"{n:9,} elements, {after}: rank {rank} holds "
                          f"{each['holds']}, gave {each['gives']}",
                          flush=True)


if __name__ == "__main__":
    main()
