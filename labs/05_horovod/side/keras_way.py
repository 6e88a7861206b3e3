"""The same training with model.fit, as Horovod's Keras examples write it.

    mpirun -n 2 python -m mpi4py labs/05_horovod/side/keras_way.py

With Keras 2 this was a whole distributed training. You will see what becomes
of it with Keras 3, without the callback that broadcasts and with it. It takes
15 seconds.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import horovod.keras as hvd
import keras

from scaleout import data, records


def fit(callbacks: list) -> dict[str, str]:
    """Trains for one epoch; returns fingerprints of the weights."""
    x, y, _, _ = data.digits()
    # Distributed: each rank has images of its own
    x = x[:1500][hvd.rank()::hvd.size()]  # (1500 / ranks, 28, 28, 1)
    y = y[:1500][hvd.rank()::hvd.size()]  # (1500 / ranks,)

    keras.utils.set_random_seed(0)  # so that the ranks begin equal
    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ])
    start = records.digest(v.value for v in model.variables)
    # Distributed: the rate of all images of a step
    optimizer = keras.optimizers.SGD(0.01 * hvd.size(), momentum=0.9)
    # Distributed: this was to average the gradients
    optimizer = hvd.DistributedOptimizer(optimizer)
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(x, y, batch_size=64, epochs=1, verbose=0, callbacks=callbacks)
    return {"start": start,
            "end": records.digest(v.value for v in model.variables)}


def main() -> None:
    # Distributed: the ranks find each other
    hvd.init()
    # Distributed: all hear what each rank holds
    shares = records.gather(fit([]))
    try:
        # Distributed: this was to give all ranks the weights of rank 0
        fit([hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
        said = "nothing: it works"
    except AttributeError as error:
        said = f"{type(error).__name__}: {error}"
    # Distributed: one record, not one from each rank
    if hvd.rank() == 0:
        print(f"With the callback: {said}", flush=True)
        records.write(lab="05_horovod", variant="keras", ranks=hvd.size(),
                      metrics={"shares": shares, "said": said})


if __name__ == "__main__":
    main()
