"""What the checks look at: how the ranks begin, what each takes, how it steps.

    mpirun -n 2 python -m mpi4py labs/05_horovod/instruments.py

It takes 8 seconds. The ranks begin with unlike weights, whatever their seed.
First runme.py is gone through without computing, for several numbers of
images: so you will see how many steps each rank takes, with which images, and
who keeps the network. Then comes one real step, and you will see by how much
it moved the weights, beside the gradients that the ranks have alone. There is
nothing to fill in here.
"""

import argparse
import contextlib
import numbers
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# A rank that waits in vain says so, and then the job ends.
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "6")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "12")
import keras
import numpy as np
import runme
import tensorflow as tf
from mpi4py import MPI

from scaleout import records
from scaleout.kit.flags import one_or_more

COMM = MPI.COMM_WORLD
DIGITS, NETWORK = runme.data.digits, runme.network
NEAR = 0.01  # half precision on the way is no other gradient


class Enough(Exception):
    """One step tells all."""


class TensorFlow:
    """TensorFlow for main, but for how a step becomes a graph."""

    def __init__(self, compiled) -> None:
        self.compiled = compiled

    def function(self, step=None, **how):
        def made(step):
            return self.compiled(step, **how)

        return made(step) if step else made

    def __getattr__(self, name: str):
        return getattr(tf, name)


class Watch:
    """Goes along with one call of runme.main, on this rank."""

    def __init__(self, images: int, asks=False, trains=False) -> None:
        self.images, self.asks, self.trains = images, asks, trains
        self.begun = None
        self.models = []
        self.begin = []  # of each variable
        self.taken = [0]  # steps of each epoch
        self.dealt = []  # of each epoch, this rank's images
        self.kept = 0  # how often the network was kept
        self.until = 0  # 1: all was dealt; 2: main came to its end
        self.moved = None
        runme.data.digits, runme.network = self.digits, self.network
        runme.tf = TensorFlow(self.compiled)
        runme.accuracy_on = self.accuracy_on
        runme.records.Books = lambda *_, **__: self.books(sys._getframe(1))

    def digits(self):
        """A few of them. By now main knows its rank."""
        here = sys._getframe(1).f_locals
        if self.asks:  # before anything else can go wrong
            said = {name: told(here.get(name)) for name in ("rank", "ranks")}
            report("asked", {**said, "started": runme.hvd.is_initialized()})
        x, y, x_test, y_test = DIGITS()
        some = slice(self.images)
        return x[some], y[some], x_test[:10], y_test[:10]

    def network(self):
        """The lab's, but unlike on each rank."""
        model = NETWORK()
        noise = np.random.default_rng([7, COMM.rank, len(self.models)])
        for variable in model.trainable_variables:
            some = noise.normal(0, 0.01, variable.shape)
            variable.assign_add(some.astype(np.float32))
        self.models.append(model)
        self.begin = self.begin or self.fingerprints()
        return model

    def fingerprints(self) -> list:
        """Of each variable of the network, as it is now."""
        return [records.digest([v]) for v in self.variables()]

    def variables(self) -> list:
        """TensorFlow's own, of the network that main trains."""
        return [v.value for v in self.models[0].trainable_variables]

    def books(self, frame):
        """Main is about to begin, and has filled in how it will go on."""
        self.begun = {
            name: told(frame.f_locals.get(name)) for name in ("steps", "scale")
        }
        self.start = self.fingerprints()
        return Books(self)

    def compiled(self, train_step, **how):
        """The step: not at all, or one, with a look at the weights."""
        if not self.trains:
            return lambda *_: 0.0
        one_step = tf.function(train_step, **how)

        def looked_at(images, labels):
            before = flat(self.variables())
            own = self.own_gradients(images, labels)
            one_step(images, labels)
            self.moved = before - flat(self.variables()), own
            raise Enough

        return looked_at

    def own_gradients(self, images, labels):
        """What this rank alone would step by."""
        if not len(images):
            return 0 * flat(self.variables())
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        with tf.GradientTape() as tape:
            loss = loss_of(labels, self.models[0](images))
        return flat(tape.gradient(loss, self.variables()))

    def accuracy_on(self, *_):
        """An epoch ends. What this rank was dealt is all there."""
        here = sys._getframe(1).f_locals
        mine = here.get("mine")
        self.dealt.append(np.asarray(mine, dtype=float).ravel().tolist())
        self.taken.append(0)
        self.until = int(here.get("epoch") == here["args"].epochs - 1)
        return 0.0

    def found(self) -> dict:
        """What one goes through without computing."""
        return {**self.begun, "taken": self.taken[:-1], "dealt": self.dealt,
                "kept": self.kept, "until": self.until}


class Books:
    """Stand in for records.Books, and count."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    @contextlib.contextmanager
    def step(self, **_):
        self.watch.taken[-1] += 1
        yield

    def log(self, **_) -> float:
        return 0.0

    def note(self, **_) -> None:
        """There is nothing to note but by the watch."""

    def keep_checkpoint(self, *_) -> None:
        self.watch.kept += 1

    def write(self, **_) -> dict:
        self.watch.until = 2
        return {"rate": 0.0}


def told(value):
    """A number as it is, and in words what is none."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and np.isfinite(value):
        return float(value)
    return "a function" if callable(value) else repr(value)[:60]


def flat(arrays) -> np.ndarray:
    """Some arrays as one."""
    return np.concatenate([np.asarray(a).ravel() for a in arrays])


def report(variant: str, mine) -> list:
    """Write what all ranks have seen; each of them gets it."""
    found = COMM.allgather(mine)
    # Distributed: one record, not one from each rank
    if COMM.rank == 0:
        records.write(lab="05_horovod", variant=variant, ranks=COMM.size,
                      metrics={"found": found})
    return found


def gone_through(args: argparse.Namespace) -> bool:
    """Main without computing; whether each rank takes a step in it."""
    walks = []
    failed = None
    for images in args.images:
        watch = Watch(images, asks=not walks)
        try:
            runme.main(args)
        except Exception as error:
            if not watch.begun:
                raise
            failed = failed or error
        walks.append(watch)
    first = walks[0]
    names = [v.path for v in first.models[0].trainable_variables]
    report("gone through", {
        "names": names, "begin": first.begin, "start": first.start,
        "walks": [watch.found() for watch in walks]})
    if failed:
        raise failed
    return min(COMM.allgather(min(first.taken[:-1]))) > 0


def one_step(args: argparse.Namespace) -> dict:
    """By what the weights of this rank have moved."""
    called = []
    for name in ("DistributedGradientTape", "DistributedOptimizer"):
        setattr(runme.hvd, name, noted(getattr(runme.hvd, name), called))
    # Steps as long as the gradient, whatever TODO 5 says.
    runme.learning_rate = lambda *_: 1.0
    watch = Watch(args.images[0], trains=True)
    with contextlib.suppress(Enough):
        runme.main(args)
    moved, own = watch.moved
    # Distributed: all this takes no part in what Horovod does
    total = COMM.allreduce(own)
    first = COMM.bcast(own)
    ways = {
        "average": total / COMM.size,
        "sum": total,
        "own": own,
        "rank 0": first,
        "average again": total / COMM.size**2,
        "nothing": 0 * own,
    }
    cuts = np.cumsum([tf.size(v) for v in watch.variables()])[:-1]
    least = NEAR**2 * np.linalg.norm(own) + 1e-9
    like = {}
    for way, gradients in ways.items():
        pairs = zip(np.split(moved, cuts), np.split(gradients, cuts),
                    strict=True)
        like[way] = sum(
            bool(np.linalg.norm(a - b) < NEAR * np.linalg.norm(b) + least)
            for a, b in pairs
        )
    return {"like": like, "of": len(watch.variables()), "called": called,
            "length": float(np.linalg.norm(moved)),
            "average": float(np.linalg.norm(ways["average"]))}


def noted(function, called: list):
    """The function, which is noted when it is called."""
    def noting(*args, **how):
        called.append(function.__name__)
        return function(*args, **how)

    return noting


def main() -> None:
    parser = runme.parser(__doc__)
    parser.add_argument("--images", nargs="+", type=one_or_more,
                        default=[501, 420],
                        help="to train on, one after another (501 420)")
    args = parser.parse_args()
    found = None
    if gone_through(args):
        found = one_step(args)
    found = report("one step", found)
    # Distributed: one report, not one from each rank
    if COMM.rank == 0:
        for rank, each in enumerate(found):
            print(f"rank {rank}: {each}", flush=True)


if __name__ == "__main__":
    main()
