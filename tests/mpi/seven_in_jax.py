"""The seven changes of docs/frameworks.md in JAX: a line is fitted by several processes.

    scaleout run tests/mpi/seven_in_jax.py -n 2 --python PYTHON

PYTHON is one that has JAX and mpi4py; no `make` of ours brings it. You will see a line of JSON from
each process: the weights it drew, those it began with and those it ended with. With `checked` behind
the command, shard_map keeps its default check_vma=True, and the average is none: see change 5.
"""

import json
import os
import sys
from functools import partial

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import PartitionSpec

STEPS = 20
RATE = 0.05
rng = np.random.default_rng(0)
X = rng.standard_normal((16, 4)).astype(np.float32)  # (rows, inputs)
Y = X @ np.arange(4, dtype=np.float32)  # (rows,)


def loss(w, x, y):
    return ((x @ w - y) ** 2).mean()


def main() -> None:
    # 1 start: an address and a port that all know, as torchrun gives them
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
    # 2 who am I, of how many
    process, processes = jax.process_index(), jax.process_count()
    # 3 share out the rows
    mesh = jax.make_mesh((processes,), ("all",))
    mine = (X[process::processes], Y[process::processes])
    x, y = multihost_utils.host_local_array_to_global_array(mine, mesh, PartitionSpec("all"))
    # 4 scale the learning rate
    rate = RATE * processes
    # 6 begin equal
    drawn = np.random.default_rng(process).standard_normal(4).astype(np.float32)
    start = multihost_utils.broadcast_one_to_all(drawn)

    # 5 average the gradients. With check_vma=True, `grad` itself adds up what the processes found of
    # weights that all of them have: pmean would then be the mean of equal sums.
    @jax.jit
    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec("all"), PartitionSpec("all")),
        out_specs=PartitionSpec(),
        check_vma=sys.argv[1:] == ["checked"],
    )
    def step(w, x, y):
        gradient = jax.grad(loss)(w, x, y)
        return w - rate * jax.lax.pmean(gradient, "all")

    w = start
    for _ in range(STEPS):
        w = step(w, x, y)
    end = np.asarray(w.addressable_data(0))
    told = {"process": process, "of": processes, "jax": jax.__version__}
    told |= {"drawn": drawn.tolist(), "start": np.asarray(start).tolist(), "end": end.tolist()}
    print(json.dumps(told), flush=True)
    # 7 keep the checkpoint
    if process == 0 and "CHECKPOINT" in os.environ:
        np.save(os.environ["CHECKPOINT"], end)
    multihost_utils.sync_global_devices("kept")


if __name__ == "__main__":
    main()
