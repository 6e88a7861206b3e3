"""A rank that watches one process of TensorFlow's, for server.py.

There is nothing to fill in here. Rank 0 says what to do in words: "bytes",
"kill", "end".
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Distributed: this import also starts MPI
from mpi4py import MPI

TASK = Path(__file__).with_name("task.py")


def watch(comm: MPI.Comm, job: str, index: int, cluster: dict,
          pause_us: int) -> None:
    """Every rank but 0: starts its TensorFlow, and does what rank 0 says."""
    folder = tempfile.TemporaryDirectory()
    # A worker's own note, which its gradients read.
    Path(folder.name, "pause_us").write_text(str(pause_us))
    threads = {"TF_NUM_INTEROP_THREADS": "4", "TF_GRPC_REUSE_PORT": "1"}
    log = Path(folder.name, "log")
    process = subprocess.Popen(
        [sys.executable, TASK, job, str(index), json.dumps(cluster)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=log.open("w"), cwd=folder.name, env={**os.environ, **threads})
    with folder, process:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{job} {index} has not started:\n"
                               + log.read_text()[-2000:])
        port = cluster[job][index].split(":")[1]
        print(f"{job} {index} serves at port {port}", flush=True)
        # Distributed: rank 0 goes on when all are ready
        comm.send("ready", 0)
        order = ""
        counted = None
        while order != "end":
            # A rank that waits in recv takes a core, and here each is needed.
            while not comm.Iprobe(0):
                time.sleep(0.005)
            # Distributed: what to do next
            order = comm.recv(source=0)
            if order in ("bytes", "kill") and process.poll() is None:
                process.stdin.write("bytes\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    raise RuntimeError(f"{job} {index} has ended:\n"
                                       + log.read_text()[-2000:])
                counted = json.loads(answer)
            if order == "kill":
                process.kill()
                process.wait()
            if order == "bytes":
                # Distributed: what its sockets have counted, in a killed
                # process until then
                comm.send(counted, 0)


def tell(comm: MPI.Comm, order: str, ranks: list) -> list:
    """Rank 0 tells these ranks what to do, and collects their answers."""
    for rank in ranks:
        # Distributed: to the rank that watches a process
        comm.send(order, rank)
    # Distributed: only this order has an answer
    return [comm.recv(source=r) for r in ranks if order == "bytes"]
