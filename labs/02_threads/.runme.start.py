"""How many threads should a rank have, and on which cores? Each rank trains a copy of a network, under your settings.

    mpirun -n 2 python -m mpi4py labs/02_threads/runme.py --intra 1 --inter 1 --pin

You will see images/s and how busy the cores were, after about 8 seconds; `--network resnet50` takes a minute.
The copies know nothing of each other, so that what you see comes from threads and cores alone: their rates add up.
With --steps 0 nothing is trained: it only says what it would do.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from mpi4py import MPI  # Distributed: this import also starts MPI
from training import train  # beside this file: the network, and what is seen while it trains

from scaleout import records


def cores_of(cpus: set[int]) -> list[list[int]]:
    """The cores among these CPUs, each as the list of its CPUs: two where the core is hyper-threaded."""
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        together = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(together.read_text() if together.exists() else str(cpu), []).append(cpu)
    return list(cores.values())


def main(args: argparse.Namespace) -> dict:
    comm = MPI.COMM_WORLD  # Distributed: everybody who takes part
    rank, ranks = comm.Get_rank(), comm.Get_size()  # Distributed: which copy am I, of how many
    mine = os.sched_getaffinity(0)  # the CPUs on which this rank may run
    cores = cores_of(set().union(*comm.allgather(mine)))  # Distributed: mpirun may have bound each rank to a part
    cores = cores[: int(os.environ.get("SCALEOUT_CORES", 0)) or None]  # a container may have fewer than it shows

    # TODO 1: the threads of a rank, such that all ranks together fill the cores; at least 1.  (1 line)
    share = len(cores)
    threads = args.intra or share
    if args.leave:  # then TensorFlow reads this variable itself, or takes all CPUs that it may run on
        threads = int(os.environ.get("TF_NUM_INTRAOP_THREADS", 0)) or len(mine)

    # TODO 2: with --pin, let this rank run on `threads` cores of its own, where there are so many.  (3 lines)
    pass

    settings = {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads, "TF_NUM_INTEROP_THREADS": args.inter}
    # TODO 3: unless --leave is given, put these settings into the environment; TensorFlow is not loaded yet.  (2 lines)
    pass

    # TODO 4: is this job oversubscribed: do more threads compute, on all ranks, than there are cores?  (1 line)
    oversubscribed = False

    found = train(args, comm) if args.steps else {"step_s": []}
    found |= {"may_run_on": sorted(os.sched_getaffinity(0))}
    all_ranks = comm.gather(found, root=0)  # Distributed: rank 0 gets a list, the others None
    if rank == 0:  # Distributed: one report, not one from each rank
        step_s = [each.pop("step_s") for each in all_ranks]  # (ranks, steps)
        rates = [args.batch_per_rank * args.steps / sum(seconds) for seconds in step_s if seconds]
        metrics = {"network": args.network, "threads": threads, "cores": cores, "oversubscribed": oversubscribed}
        seen = {name: text for name, text in os.environ.items() if name.startswith(("OMP_", "KMP_", "TF_NUM_"))}
        metrics |= {"images_per_s": rates, "on_rank": all_ranks, "settings": seen}
        metrics |= {"cpus_busy": sum(sum(each.get("cpus", {}).values()) for each in all_ranks)}
        records.write(lab="02_threads", variant=f"{args.network} {ranks}x{threads}", ranks=ranks, metrics=metrics,
                      threads_per_rank=threads, batch_per_rank=args.batch_per_rank, warmup_steps=args.warmup, seed=0,
                      step_s=np.max(step_s, axis=0), rate=sum(rates) or None, rate_unit="images/s")  # fmt: skip
        said = f"{sum(rates):.1f} images/s, {metrics['cpus_busy']:.2f} CPUs busy" if args.steps else "nothing trained"
        crowd = ", oversubscribed" if oversubscribed else ""
        print(f"{ranks} x {threads} threads on {len(cores)} cores: {said}{crowd}", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=["cnn", "resnet50"], default="cnn", help="what to train (cnn)")
    parser.add_argument("--intra", type=int, default=0, help="threads for one operation, OpenMP's too (a fair share)")
    parser.add_argument("--inter", type=int, default=0, help="operations at a time (TensorFlow decides)")
    parser.add_argument("--leave", action="store_true", help="set nothing: the environment and the libraries decide")
    parser.add_argument("--pin", action="store_true", help="bind each rank to cores of its own")
    parser.add_argument("--batch-per-rank", type=int, default=16, help="images a step on each rank (16)")
    parser.add_argument("--steps", type=int, default=50, help="steps that are timed (50)")
    parser.add_argument("--warmup", type=int, default=5, help="steps before those, 1 or more (5)")
    args = parser.parse_args()
    if min(args.batch_per_rank, args.warmup, args.steps + 1, args.intra + 1, args.inter + 1) < 1:
        parser.error("--batch-per-rank and --warmup take 1 or more; --steps, --intra and --inter 0 or more")
    main(args)
