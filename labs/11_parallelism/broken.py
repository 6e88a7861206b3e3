"""An allreduce that goes wrong now and then, and says nothing.

    mpirun -n 3 python -m mpi4py labs/11_parallelism/broken.py

Start it on two ranks or more, here three; it takes about 2 seconds. You will
see, for each kind of fault, in how many of its trials your alarm went off, in
how many the plain sum of all numbers changed, and how often the alarm went off
when nothing was wrong.
"""

import argparse

import numpy as np
from measure import Watched

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import examples, layer, serial

from scaleout import records
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

FAULTS = ["one copy", "lost part", "changed places"]
BLOCKS = 8  # of which a fault hits one or two
WIDTH = 32  # of the network whose gradient is added up


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--trials", type=one_or_more, default=100,
                        help="with a fault, and as many without (100)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="of the faults (0)")
    args = parser.parse_args()
    if MPI.COMM_WORLD.Get_size() < 2:
        refuse("A sum over ranks goes wrong on two or more: mpirun -n 2")
    return args


def alarm(comm: MPI.Intracomm, mine: np.ndarray, total: np.ndarray) -> bool:
    """Whether an allreduce of everybody's `mine` to `total` went wrong.

    All ranks call it, and all get the same answer. It may cost some numbers,
    not another allreduce of the whole array.
    """
    # TODO 5: find something that must be true of `total`, whoever computed it
    # and however it was rounded, and that a few numbers can tell. Three faults
    # must show: a block on one rank that is not the sum; a block to which one
    # rank's part was never added; two blocks that changed places, on all
    # ranks. comm.allreduce(number) is in order.  (about 5 lines)
    return False


class Broken(MPI.Intracomm):
    """A communicator with an Allreduce that one can spoil."""

    fault = ""
    seed = 0

    def Allreduce(self, mine: np.ndarray, total: np.ndarray) -> None:
        # Distributed: as it should be
        super().Allreduce(mine, total)
        if not self.fault:
            return
        # The same choice on each rank
        rng = np.random.default_rng(self.seed)
        guilty = int(rng.integers(self.size))
        # Distributed: what one rank has put in
        lost = self.bcast(mine, guilty)  # (n,)
        blocks = np.array_split(np.arange(len(total)), BLOCKS)
        one, other = rng.choice(BLOCKS, 2, replace=False)
        a = blocks[one]
        b = blocks[other][: len(a)]
        if self.fault == "one copy" and self.rank == guilty:
            total[a] = mine[a]  # it never heard of the others
        if self.fault == "lost part":
            total[a] = total[a] - lost[a]  # on all ranks
        if self.fault == "changed places":
            a = a[: len(b)]
            before = total[a].copy()
            total[a] = total[b]
            total[b] = before


def gradient(comm: MPI.Intracomm, seed: int) -> np.ndarray:
    """What this rank brings: the gradient of some rows of its own."""
    weights = [layer(k, WIDTH, "float32") for k in range(4)]
    x, y = examples(32, WIDTH, "float32")  # (32, WIDTH)
    rng = np.random.default_rng([seed, comm.rank])
    rows = rng.integers(len(x), size=8)
    gradients = serial(weights, x[rows], y[rows])[1]
    return np.concatenate([g.ravel() for g in gradients])  # (4 WIDTH WIDTH,)


def main(args: argparse.Namespace) -> None:
    comm = Broken(MPI.COMM_WORLD)
    # Distributed: what the alarm may use; it counts the bytes that it gives
    told = Watched(MPI.COMM_WORLD)
    rung = {fault: 0 for fault in FAULTS}
    plain = {fault: 0 for fault in FAULTS}
    tried = {fault: 0 for fault in FAULTS}
    some_only = 0
    false_alarms = 0
    right = []  # plain sums of a total that is right
    size = 0.0
    for trial in range(args.trials):
        mine = gradient(comm, args.seed + trial)  # (n,)
        total = np.empty_like(mine)  # (n,)
        for fault in ("", FAULTS[trial % len(FAULTS)]):
            comm.fault = fault
            comm.seed = args.seed + trial
            # Distributed: right, or spoiled
            comm.Allreduce(mine, total)
            said = bool(alarm(told, mine, total))
            # Distributed: what each rank's alarm says
            heard = comm.allgather(said)
            # Distributed: each rank's plain sum of all numbers
            sums = comm.allgather(float(total.sum(dtype=np.float64)))
            if fault:
                tried[fault] += 1
                rung[fault] += any(heard)
                some_only += any(heard) and not all(heard)
                # More than rounding would change it
                changed = np.abs(np.subtract(sums, right))
                plain[fault] += bool(changed.max() > 1e-6 * size)
            else:
                false_alarms += any(heard)
                right = sums
                size = float(np.abs(total).sum(dtype=np.float64))
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        given = sum(told.given.values()) / (2 * args.trials)
        print(f"an alarm gives {given:,.0f} bytes, a sum {mine.nbytes:,}",
              flush=True)
        report(args, comm.size, rung, plain, tried, some_only, false_alarms,
               {"alarm_bytes": given, "sum_bytes": mine.nbytes})


def report(args: argparse.Namespace, ranks: int, rung: dict, plain: dict,
           tried: dict, some_only: int, false_alarms: int,
           numbers: dict) -> None:
    """A line for each kind of fault, and one record."""
    records.write(
        lab="11_parallelism",
        variant="broken",
        ranks=ranks,
        seed=args.seed,
        metrics={
            "rung": list(rung.values()),
            "plain": list(plain.values()),
            "tried": list(tried.values()),
            "faults": FAULTS,
            "some_only": some_only,
            "false_alarms": false_alarms,
            "trials": args.trials,
            **numbers,
        },
    )
    for fault in FAULTS:
        print(f"{fault:15} {rung[fault]:4} of {tried[fault]} seen; the plain "
              f"sum changed in {plain[fault]}", flush=True)
    print(f"clean sums:     {false_alarms:4} of {args.trials} gave an alarm",
          flush=True)


if __name__ == "__main__":
    main(settings())
