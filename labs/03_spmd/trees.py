"""Two of the three ways in which 03_spmd adds up an array over all ranks.

runme.py imports them; there is nothing to fill in here.
"""

import numpy as np
from mpi4py import MPI


def gather_broadcast(comm: MPI.Comm, x: np.ndarray, spare: np.ndarray) -> None:
    """Rank 0 gathers all arrays, and broadcasts the sum. x becomes the sum.

    That is a flat tree: rank 0 is everybody's parent.
    """
    others = list(range(1, comm.size))
    children = others if comm.rank == 0 else []
    up_and_down(comm, x, spare, 0, children)


def up_and_down(comm: MPI.Comm, x: np.ndarray, spare: np.ndarray,
                parent: int, children: list[int]) -> None:
    """Sums go up from child to parent; the sum of all comes down again."""
    for child in children:
        # Distributed: the sum of that child and of all below it, (n,)
        comm.Recv(spare, child)
        x += spare
    if comm.rank > 0:
        # Distributed: the sum of me and of all below me goes up
        comm.Send(x, parent)
        # Distributed: the sum of all comes down
        comm.Recv(x, parent)
    for child in reversed(children):
        # Distributed: and is handed on
        comm.Send(x, child)


def tree(comm: MPI.Comm, x: np.ndarray, spare: np.ndarray) -> None:
    """A binomial tree, so that rank 0 has less to do. x becomes the sum.

    Rank 1 sends to 0 and 3 to 2, then 2 to 0, and so on; then back down.

    In binary, a rank without its lowest 1 is its parent: 4 (100) is that of
    6 (110). With one more 1 below the lowest it is a child: 7 (111) is 6's.
    """
    lowest = comm.rank & -comm.rank  # 2 for rank 6; 0 for rank 0
    children = []
    bit = 1
    while (bit < lowest or comm.rank == 0) and comm.rank + bit < comm.size:
        children.append(comm.rank + bit)
        bit = 2 * bit
    up_and_down(comm, x, spare, comm.rank - lowest, children)
