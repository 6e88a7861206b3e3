"""Prints what Horovod's synthetic benchmark prints, at a rate that follows from its settings; it
computes nothing.

Its ranks start MPI, as those of a training job do, and say nothing to each other.
Words after it: pause=SECONDS, count=FILE (a line a job), and fail=, hang= or mute=RANKSxTHREADS.
"""

import os
import sys
import time

from mpi4py import MPI

rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
threads = int(os.environ.get("OMP_NUM_THREADS", 2))
inter = os.environ.get("TF_NUM_INTEROP_THREADS", "unset")
how = dict(word.split("=") for word in sys.argv[1:])
here = f"{ranks}x{threads}"
if rank == 0 and "count" in how:
    with open(how["count"], "a") as file:
        file.write(f"{ranks} {os.environ.get('OMP_NUM_THREADS', 'unset')} {inter}\n")
time.sleep(float(how.get("pause", 0)))
if here == how.get("fail"):
    raise MemoryError("no room for so many")
if here == how.get("hang"):
    print("hanging", flush=True)
    time.sleep(600)
rate = (
    10
    * min(threads, 2) ** 0.7
    * {"0": 1.0, "1": 1.2}.get(inter, 0.9)
    / max(1, ranks * threads / 2) ** 1.3
)
print(f"rank {rank} alone: {rate + rank:.2f} images", flush=True)
if rank == 0 and here != how.get("mute"):
    print(f"Model: ResNet50\nNumber of CPUs: {ranks}\nRunning benchmark...")
    for at, part in enumerate((0.2, 0.99, 1.01, 1.0)):
        print(f"Iter #{at}: {rate * part:.3f} img/sec per CPU")
    print(f"Img/sec per CPU: {rate:.3f} +-0.4")
    print(f"Total img/sec on {ranks} CPU(s): {rate * ranks:.3f} +-0.8", flush=True)
