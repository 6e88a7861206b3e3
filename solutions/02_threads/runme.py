"""How many threads should a rank have, and on which cores?

    mpirun -n 2 python -m mpi4py solutions/02_threads/runme.py --intra 1 --pin

Each rank, here two, trains a copy of a small network under your settings. You
will see images per second and how busy the cores were, after about 8 seconds;
with --network resnet50 after a minute. The copies know nothing of each other,
so that what you see comes from threads and cores alone: their rates add up.

With --steps 0 nothing is trained: it says only what it would do.
"""

import argparse
import os
from pathlib import Path

# The kernels of oneDNN, on every processor; see 01.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# Distributed: this import also starts MPI
from mpi4py import MPI
from training import train

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, zero_or_more


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--network", choices=["cnn", "resnet50"],
                        default="cnn", help="what to train (cnn)")
    parser.add_argument("--intra", type=zero_or_more, default=0,
                        help="threads for one operation, OpenMP's too "
                        "(0: a fair share of the cores)")
    parser.add_argument("--inter", type=zero_or_more, default=0,
                        help="operations at a time (0: TensorFlow decides)")
    parser.add_argument("--leave", action="store_true",
                        help="set nothing: environment and libraries decide")
    parser.add_argument("--pin", action="store_true",
                        help="bind each rank to cores of its own")
    parser.add_argument("--batch-per-rank", type=one_or_more,
                        help="images in a step of each rank (64, or 16 of "
                        "resnet50)")
    parser.add_argument("--steps", type=zero_or_more, default=50,
                        help="steps that are timed (50)")
    parser.add_argument("--warmup", type=one_or_more, default=5,
                        help="steps before those, not timed (5)")
    args = parser.parse_args()
    if args.batch_per_rank is None:
        args.batch_per_rank = 16 if args.network == "resnet50" else 64
    if data.quick():
        args.steps = min(args.steps, 20)
    return args


def cores_of(cpus: set[int]) -> list[list[int]]:
    """The cores among these CPUs, each as the list of its CPUs.

    A core has two CPUs where it is hyper-threaded, else one.
    """
    cores = {}
    for cpu in sorted(cpus):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        siblings = topology / "thread_siblings_list"
        name = siblings.read_text() if siblings.exists() else str(cpu)
        cores.setdefault(name, []).append(cpu)
    return list(cores.values())


def cores_of_the_job(comm: MPI.Comm, mine: set[int]) -> list[list[int]]:
    """The cores that all ranks together may use; mine are this rank's CPUs."""
    # Distributed: mpirun may have bound each rank to a part of the CPUs
    everyones = comm.allgather(mine)
    cores = cores_of(set().union(*everyones))
    # A container may have fewer than it shows; the launcher knows.
    most = int(os.environ.get("SCALEOUT_CORES", len(cores)))
    return cores[:most]


def main(args: argparse.Namespace) -> None:
    # Distributed: everybody who takes part
    comm = MPI.COMM_WORLD
    # Distributed: which copy of the program this is
    rank = comm.Get_rank()
    # Distributed: how many copies there are
    ranks = comm.Get_size()
    # The CPUs that this rank may run on, and the job's cores: a list with a
    # list of CPUs for each core, such as [[0, 4], [1, 5], [2, 6], [3, 7]].
    mine = os.sched_getaffinity(0)
    cores = cores_of_the_job(comm, mine)

    # TODO 1: how many threads may a rank have, so that all ranks together fill
    # the job's cores, and each has 1 at least? len(cores) is how many cores
    # there are, `ranks` share them, and // divides without a remainder.
    # (1 line)
    # BEGIN SOLUTION
    share = max(1, len(cores) // ranks)
    # STARTER: share = len(cores)
    # END SOLUTION
    threads = args.intra or share
    if args.leave:
        # TensorFlow reads this itself, or takes all CPUs it may run on.
        shell = int(os.environ.get("TF_NUM_INTRAOP_THREADS", 0))
        threads = shell or len(mine)

    # TODO 2: if args.pin is set, and all ranks' threads fit the cores, let
    # this rank run on `threads` cores of its own: rank 0 on the first ones,
    # rank 1 on those behind them, and so on. os.sched_setaffinity(0, cpus) is
    # the call, and cpus is one list with the CPUs of all these cores, which
    # sum(lists, []) makes of several lists.  (3 lines)
    # BEGIN SOLUTION
    if args.pin and ranks * threads <= len(cores):
        # Distributed: no other rank has these
        own = cores[rank * threads : (rank + 1) * threads]
        os.sched_setaffinity(0, sum(own, []))
    # STARTER: pass
    # END SOLUTION

    variables = {
        "OMP_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        "TF_NUM_INTEROP_THREADS": args.inter,
    }
    # TODO 3: unless args.leave is set, put these variables into os.environ,
    # each number as text, str(value). TensorFlow is not loaded yet, so that it
    # will find them there.  (3 lines)
    # BEGIN SOLUTION
    if not args.leave:
        for name, value in variables.items():
            os.environ[name] = str(value)
    # STARTER: pass
    # END SOLUTION

    # TODO 4: True or False: is this job oversubscribed? It is when more
    # threads compute, on all ranks together, than the job has cores.  (1 line)
    # BEGIN SOLUTION
    oversubscribed = ranks * threads > len(cores)
    # STARTER: oversubscribed = False
    # END SOLUTION

    books = records.Books("02_threads", rank, ranks, warmup=args.warmup)
    images_per_s = 0.0
    cpus_busy = 0.0
    if args.steps > 0:
        images_per_s, cpus_busy = train(args, comm, books)
    books.note(may_run_on=sorted(os.sched_getaffinity(0)))
    # Distributed: the copies are independent, so their rates add up
    rate = comm.allreduce(images_per_s, op=MPI.SUM)
    cpus_busy = comm.allreduce(cpus_busy, op=MPI.SUM)
    seen = {}
    for name, text in os.environ.items():
        if name.startswith(("OMP_", "KMP_", "TF_NUM_")):
            seen[name] = text
    books.write(
        variant=f"{args.network} {ranks}x{threads}",
        threads_per_rank=threads,
        batch_per_rank=args.batch_per_rank,
        seed=0,
        rate=rate or None,
        rate_unit="images/s",
        network=args.network,
        threads=threads,
        cores=cores,
        oversubscribed=oversubscribed,
        settings=seen,
        cpus_busy=cpus_busy,
    )
    said = "nothing trained"
    if args.steps > 0:
        said = f"{rate:.1f} images/s, {cpus_busy:.2f} CPUs busy"
    crowd = ", oversubscribed" if oversubscribed else ""
    # Distributed: one report, not one from each rank
    if rank == 0:
        print(f"{ranks} x {threads} threads on {len(cores)} cores: "
              f"{said}{crowd}", flush=True)


if __name__ == "__main__":
    main(settings())
