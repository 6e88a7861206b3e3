"""The first page of a profiler: which library has which threads, how busy.

    mpirun -n 2 python -m mpi4py labs/06_tuning/watch.py --steps 200

It runs runme.py, takes the same flags and looks at the threads meanwhile;
runme.py prints what it always prints. There is nothing to fill in here, and it
takes as long as runme.py does.

A thread belongs to the library that was at work when it appeared. CPUs are
counted over the second half of the job, as in the first it reads data and
builds graphs. For a script of your own that uses Horovod, change SCRIPT.
"""

import os
import runpy
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import psutil
import tensorflow as tf

# Distributed: this import also starts MPI
from mpi4py import MPI

from scaleout import records

SCRIPT = Path(__file__).with_name("runme.py")
PERIOD_S = 0.2

process = psutil.Process()
owner_of = {os.getpid(): "Python"}  # the library of each thread
horovods_init = hvd.init


def cpu_seconds(library: str) -> dict[int, float]:
    """CPU seconds of each thread so far; a new one is this library's."""
    seconds = {}
    for thread in process.threads():
        seconds[thread.id] = thread.user_time + thread.system_time
        owner_of.setdefault(thread.id, library)
    return seconds


def init(*given) -> None:
    """hvd.init, after TensorFlow's first op.

    With that op its threads are there, and no setting changes them any more.
    """
    cpu_seconds("other")  # whatever the imports have started
    tf.constant(0)
    cpu_seconds("Eigen")
    # Distributed: starts a thread of Horovod, which talks to the other ranks
    horovods_init(*given)
    cpu_seconds("Horovod")


def sample(seen: list, over: threading.Event) -> None:
    """Looks at all threads a few times a second, until it is over."""
    while not over.wait(PERIOD_S):
        if hvd.is_initialized():
            seen.append((perf_counter(), cpu_seconds("other")))


def main() -> None:
    seen = []
    over = threading.Event()
    watcher = threading.Thread(target=sample, args=(seen, over), daemon=True)
    watcher.start()
    hvd.init = init
    runpy.run_path(str(SCRIPT), run_name="__main__")
    over.set()
    watcher.join()

    from_s, before = seen[len(seen) // 2]
    to_s, after = seen[-1]
    threads = Counter()
    cpus = Counter()
    for thread, seconds in after.items():
        library = owner_of[thread]
        used_s = seconds - before.get(thread, 0)
        cpus[library] += used_s / (to_s - from_s)
        if thread != watcher.native_id:
            threads[library] += 1

    shares = records.gather({"threads": threads, "cpus": cpus})
    # Distributed: one record, not one from each rank
    if MPI.COMM_WORLD.rank == 0:
        cores = int(os.environ.get("SCALEOUT_CORES") or os.cpu_count())
        records.write(
            lab="06_tuning",
            variant="watch",
            ranks=len(shares),
            metrics={"shares": shares, "cores": list(range(cores))},
        )


if __name__ == "__main__":
    main()
