"""A network of many small tensors, and who carries its gradients.

    mpirun -n 2 python -m mpi4py labs/05_horovod/side/exchange.py

Thin layers with batch normalisation have 104 gradients to average in each
step, and none of them holds more than 1,024 numbers. MPI carries them, or Gloo
with --by gloo, on one machine. HOROVOD_FUSION_THRESHOLD=0 keeps Horovod from
packing several into one message. You will see steps/s. It takes 15 seconds.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before the next lines
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # oneDNN, as in 01
import horovod.tensorflow as hvd
import keras
import tensorflow as tf
from horovod.runner.common.util.hosts import (
    get_host_assignments,
    parse_hosts,
)
from horovod.runner.http.http_server import RendezvousServer
from mpi4py import MPI

from scaleout import data, records
from scaleout.kit.flags import Parser, one_or_more, refuse

WIDTH = 32
BATCH = 32


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = Parser(__doc__)
    parser.add_argument("--by", choices=["mpi", "gloo"], default="mpi",
                        help="who carries the gradients (mpi)")
    layers = 2 if data.quick() else 34
    parser.add_argument("--layers", type=one_or_more, default=layers,
                        help=f"each with three small tensors ({layers})")
    steps = 8 if data.quick() else 200
    parser.add_argument("--steps", type=one_or_more, default=steps,
                        help=f"how many are timed, and 5 more ({steps})")
    return parser.parse_args()


def network(layers: int) -> keras.Model:
    """Rows, (n, 32), to one number each, (n, 1)."""
    found = [keras.Input((WIDTH,))]
    for _ in range(layers):
        found += [
            keras.layers.Dense(WIDTH, use_bias=False),  # (32, 32)
            keras.layers.BatchNormalization(),  # (32,) and (32,)
            keras.layers.ReLU(),
        ]
    return keras.Sequential([*found, keras.layers.Dense(1)])


def use_gloo(world: MPI.Comm) -> None:
    """Lets the ranks meet as `horovodrun --gloo` would: a server on rank 0
    tells each where the others are."""
    if not hvd.gloo_built():
        refuse("This Horovod was built without Gloo.")
    hosts = parse_hosts(f"localhost:{world.size}")
    plan = get_host_assignments(hosts, world.size)
    port = None
    if world.rank == 0:
        server = RendezvousServer()
        port = server.start()
        server.init(plan)
    # Distributed: all hear where rank 0 answers
    port = world.bcast(port)
    own = plan[world.rank]
    os.environ.update({
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": "lo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_HOSTNAME": own.hostname,
        "HOROVOD_RANK": str(own.rank),
        "HOROVOD_SIZE": str(own.size),
        "HOROVOD_LOCAL_RANK": str(own.local_rank),
        "HOROVOD_LOCAL_SIZE": str(own.local_size),
        "HOROVOD_CROSS_RANK": str(own.cross_rank),
        "HOROVOD_CROSS_SIZE": str(own.cross_size),
    })


def main(args: argparse.Namespace) -> None:
    if args.by == "gloo":
        use_gloo(MPI.COMM_WORLD)
    # Distributed: the ranks find each other
    hvd.init()
    rank = hvd.rank()

    keras.utils.set_random_seed(0)  # all ranks begin equal
    model = network(args.layers)
    optimizer = keras.optimizers.SGD(0.001)
    optimizer.build(model.trainable_variables)
    variables = [v.value for v in model.trainable_variables]
    # Distributed: each rank has rows of its own
    tf.random.set_seed(1 + rank)
    x = tf.random.normal([BATCH, WIDTH])  # (32, 32)
    y = tf.random.normal([BATCH, 1])  # (32, 1)

    @tf.function(autograph=False)
    def train_step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y)**2)
        # Distributed: gradient() gives the average over all ranks
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, variables)
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    books = records.Books("05_horovod", rank, hvd.size())
    for _ in range(books.warmup + args.steps):
        with books.step(work=1):
            norm = float(train_step())
    books.note(norm=norm)
    # Distributed: one record of all ranks; the slowest of them counts
    record = books.write(variant=args.by, rate_unit="steps/s",
                         tensors=len(variables))
    if rank == 0:
        print(f"{len(variables)} gradients, carried by {args.by}: "
              f"{record['rate']:.0f} steps/s", flush=True)


if __name__ == "__main__":
    main(settings())
