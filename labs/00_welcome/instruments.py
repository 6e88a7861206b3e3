"""What the checks look at: the number of each rank, and the pi it makes of it.

    mpirun -n 3 python -m mpi4py labs/00_welcome/instruments.py

It takes a second. In place of the area of its strips, a rank of runme.py finds
a number of its own: 2.5 on rank 0, 5 on rank 1, 10 on rank 2. You will see
which strips each rank was asked for, and what came out as pi. There is nothing
to fill in here.
"""

import runme

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records

OWN = 2.5  # the number of rank 0; each rank after it has twice as much


def main() -> None:
    # Distributed: all ranks of the job, whoever they believe to be
    comm = MPI.COMM_WORLD
    own = OWN * 2**comm.rank
    asked = []

    def area(first: int, last: int, strips: int) -> float:
        """Stands in for runme.area, and notes each call."""
        asked.append([first, last])
        return own

    runme.area = area
    pi = runme.main(runme.settings())
    # Distributed: what each rank was asked for, and made of it
    found = comm.allgather({"own": own, "asked": asked, "pi": pi})
    if comm.rank == 0:
        records.write(lab="00_welcome", variant="watched", ranks=comm.size,
                      metrics={"found": found})
        for rank, each in enumerate(found):
            print(f"rank {rank} was asked for {each['asked']}: it found "
                  f"{own * 2**rank}, and pi is {each['pi']}", flush=True)


if __name__ == "__main__":
    main()
