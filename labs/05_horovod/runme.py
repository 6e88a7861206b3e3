"""Handwritten digits, learned by several ranks at once: each has its own images, and Horovod averages the gradients.

    mpirun -n 2 -bind-to core python -m mpi4py labs/05_horovod/runme.py --epochs 12

You will see the accuracy after each epoch, on images that nobody trained on, then images/s. It takes 15 seconds.
"""

import argparse
import os
from time import perf_counter as now

stalled = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "10", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20"}
os.environ |= stalled | {"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ  # Distributed: who waits too long says so, then ends
import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

from scaleout import data, records

BASE_BATCH = 32  # images a step that --lr is meant for


def learning_rate(at: float, scale: float, args: argparse.Namespace) -> float:
    """After `at` epochs. gradual: from --lr up to `scale` times as much in a quarter of the epochs, then down to 0."""
    gradual = np.interp(at, [0, args.epochs / 4, args.epochs], [1, scale, 0])
    return args.lr * {"gradual": gradual, "constant": scale, "none": 1}[args.schedule]


def main(args: argparse.Namespace) -> float:
    # TODO 1: start Horovod, and ask it which rank this is, of how many.  (2 lines)
    rank, ranks = 0, 1
    from_all = hvd.allgather_object if hvd.is_initialized() else lambda mine: [mine]  # Distributed: one item from each
    keras.utils.set_random_seed(args.seed + rank)  # Distributed: each rank draws weights of its own, as if unseeded
    x, y, x_test, y_test = data.digits()  # (n, 28, 28, 1), (n,), and as much to test
    layers, relu = keras.layers, {"activation": "relu", "kernel_initializer": "he_normal"}
    picture = [layers.Conv2D(32, 5, padding="same", **relu), layers.MaxPooling2D()]  # (n, 14, 14, 32)
    picture += [layers.Conv2D(64, 5, padding="same", **relu), layers.MaxPooling2D(), layers.Flatten()]  # (n, 3136)
    model = keras.Sequential([keras.Input((28, 28, 1)), *picture, layers.Dense(128, **relu), layers.Dense(10)])
    optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
    optimizer.build(model.trainable_variables)
    compression = hvd.Compression.fp16 if args.fp16 else hvd.Compression.none  # Distributed: half the bytes, or all
    specs = [tf.TensorSpec([None, 28, 28, 1]), tf.TensorSpec([None], tf.int64), tf.TensorSpec([])]

    @tf.function(input_signature=specs, autograph=False)  # Distributed: AutoGraph would rewrite Horovod too, in 6 s
    def train_step(x, y, images):
        with tf.GradientTape() as tape:
            losses = keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True)  # (rows,)
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses), images)
        # TODO 2: average the gradients over all ranks, sent in this `compression`.  (1 line)
        pass
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        optimizer.apply(gradients, model.trainable_variables)
        return tf.linalg.global_norm(gradients)

    state = [epochs_done := tf.Variable(0, dtype=tf.int64), *(v.value for v in model.variables + optimizer.variables)]
    if args.checkpoint and rank == 0:  # Distributed: one rank reads, and hands on what it has read
        records.take_checkpoint(args.checkpoint, state)
    # TODO 3: give every rank the state of rank 0: epochs done, weights and momentum.  (1 line)
    pass
    batch, n, start = args.batch_per_rank, len(x), records.digest(state)
    # TODO 4: the steps in which all ranks together see all n images once, the last and shorter one too.  (1 line)
    steps = -(-n // batch)
    # TODO 5: the learning rate grows as the images of one step, those of all ranks, over BASE_BATCH.  (1 line)
    scale = batch / BASE_BATCH
    assert int(epochs_done) < args.epochs, f"{int(epochs_done)} epochs are done: ask for more with --epochs."
    step_s, accuracy, at_s, rates, wrote, begin = [], [], [], [], [], now()
    for epoch in range(int(epochs_done), args.epochs):
        order = np.random.default_rng([args.seed, epoch]).permutation(n)  # the same on every rank
        # TODO 6: the images of this rank, such that the ranks together have each one once.  (1 line)
        mine = order
        for step in range(steps):
            if len(step_s) == args.fail_at - 1 and rank == ranks - 1:
                raise ValueError(f"rank {rank} fails at step {args.fail_at}, as --fail-at asked")
            rates.append(learning_rate(epoch + step / steps, scale, args))
            optimizer.learning_rate.assign(rates[-1])
            started, rows = now(), mine[step * batch : (step + 1) * batch]  # (batch,), fewer in the last step
            norm = float(train_step(x[rows], y[rows], min(batch, n / ranks - step * batch)))  # its images, on average
            step_s.append(now() - started)
        guessed = model.predict(x_test[rank::ranks], 500, verbose=0).argmax(axis=1)  # Distributed: each tests its part
        accuracy.append(sum(from_all(int((guessed == y_test[rank::ranks]).sum()))) / len(x_test))
        at_s.append(now() - begin)
        epochs_done.assign(epoch + 1)
        if rank == 0:  # Distributed: one line, not one from each rank
            print(f"epoch {epoch + 1}: accuracy {accuracy[-1]:.2%} after {at_s[-1]:.1f} s", flush=True)
        # TODO 7: let one rank alone keep the checkpoints.  (1 line)
        keeps = True
        if args.checkpoint and keeps:
            wrote.append(records.keep_checkpoint(args.checkpoint, state, epoch + 1))
    share = {"start": start, "end": records.digest(state), "norm": norm, "steps": len(step_s), "wrote": wrote}
    shares = from_all(share | {"rows": mine, "step_s": step_s})
    if rank == 0:  # Distributed: one report, one record
        slowest_s = np.max([share.pop("step_s") for share in shares], axis=0).reshape(-1, steps)  # (epochs, steps)
        timed_s = slowest_s[:, : max(1, n // (batch * ranks))].ravel()  # without the last, shorter step of an epoch
        warm_up = min(5, len(timed_s) - 1)
        rate = batch * ranks / np.median(timed_s[warm_up:])
        seen = np.bincount(np.concatenate([share.pop("rows") for share in shares]), minlength=n)  # (n,): once each
        metrics = {"accuracy": accuracy, "at_s": at_s, "learning_rates": rates, "images": n, "shares": shares}
        records.write(lab="05_horovod", variant=args.schedule, ranks=ranks, batch_per_rank=batch, seed=args.seed,
                      warmup_steps=warm_up, step_s=timed_s[warm_up:], rate=rate, rate_unit="images/s",
                      metrics=metrics | {"seen": [seen.min(), seen.max()]})  # fmt: skip
        print(f"{ranks} rank(s): {rate:.0f} images/s, accuracy {accuracy[-1]:.2%}", flush=True)
    return accuracy[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2 if data.quick() else 12, help="how often each image is seen")
    parser.add_argument("--batch-per-rank", type=int, default=32, help="images a step on each rank (32)")
    parser.add_argument("--lr", type=float, default=0.01, help=f"learning rate at {BASE_BATCH} images a step (0.01)")
    parser.add_argument("--schedule", choices=["gradual", "constant", "none"], default="gradual", help="its scaling")
    parser.add_argument("--fp16", action="store_true", help="sends gradients in half precision")
    parser.add_argument("--checkpoint", help="folder to go on from and to keep checkpoints in")
    parser.add_argument("--fail-at", type=int, default=0, help="step at which the last rank fails (0: none)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of the order of the images")
    args = parser.parse_args()
    if min(args.epochs, args.batch_per_rank) < 1 or args.lr <= 0:
        parser.error("--epochs and --batch-per-rank take 1 or more, --lr more than 0")
    main(args)
