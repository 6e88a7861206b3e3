"""The first page of a profiler: runs runme.py and notes meanwhile which library has which threads, how busy they are.

    mpirun -n 2 python -m mpi4py solutions/06_tuning/watch.py --steps 200 --evaluation predict

Its flags are those of runme.py, which prints what it always prints; there is nothing to fill in here. A thread belongs
to the library that was at work when it appeared. CPUs are counted over the second half of the job: for the first, it
reads data and builds graphs. For a script of your own that uses Horovod, change SCRIPT.
"""

import os
import runpy
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter as now

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.tensorflow as hvd
import psutil
import tensorflow as tf
from mpi4py import MPI  # Distributed: this import also starts MPI

from scaleout import records

SCRIPT = Path(__file__).with_name("runme.py")
PERIOD_S = 0.2
process, born, begin = psutil.Process(), {os.getpid(): "Python"}, hvd.init


def cpu_seconds(library: str) -> dict[int, float]:
    """CPU seconds of each thread so far; a thread that was not there before belongs to this library."""
    threads = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
    born.update({thread: library for thread in threads if thread not in born})
    return threads


def init(*given) -> None:
    """hvd.init, after TensorFlow's first op: with that its threads are there, and no setting changes them."""
    cpu_seconds("other")  # whatever the imports have started
    tf.constant(0)
    cpu_seconds("Eigen")
    begin(*given)  # Distributed: starts a thread of Horovod, which talks to the other ranks
    cpu_seconds("Horovod")


def sample(seen: list[tuple[float, dict[int, float]]], over: threading.Event) -> None:
    """Looks at all threads a few times a second, until it is over."""
    while not over.wait(PERIOD_S):
        if hvd.is_initialized():
            seen.append((now(), cpu_seconds("other")))


def main() -> None:
    seen, over = [], threading.Event()
    watcher = threading.Thread(target=sample, args=(seen, over), daemon=True)
    watcher.start()
    hvd.init = init
    runpy.run_path(str(SCRIPT), run_name="__main__")
    over.set()
    watcher.join()
    (from_s, before), (to_s, after) = seen[len(seen) // 2], seen[-1]
    used = Counter()
    for thread, seconds in after.items():
        used[born[thread]] += (seconds - before.get(thread, 0)) / (to_s - from_s)
    found = {"threads": Counter(born[thread] for thread in after if thread != watcher.native_id), "cpus": used}
    on_rank = MPI.COMM_WORLD.gather(found, root=0)  # Distributed: rank 0 gets a list, the others None
    if on_rank:
        cores = list(range(int(os.environ.get("SCALEOUT_CORES") or os.cpu_count())))
        metrics = {"on_rank": on_rank, "cores": cores}
        records.write(lab="06_tuning", variant="watch", ranks=len(on_rank), metrics=metrics)


if __name__ == "__main__":
    main()
