"""An epoch of first.py, of runme.py, or of what lies between, as 05's tune.py
measures it: all time counts, also input, evaluation and checkpoints."""

import tempfile
from time import perf_counter

import first
import horovod.tensorflow as hvd
import keras
import numpy as np
import runme
import tensorflow as tf
from bookkeeping import LOSSES, arguments, slices_for
from phantoms import ready
from unet import network

from scaleout import records


class Training:
    """The slices, and for each way to normalise a network with its step."""

    def __init__(self, batch: int, ranks: int) -> None:
        self.batch = batch
        self.args = arguments("", ["--patients=48"])
        self.slices = slices_for(self.args)
        patient = self.slices.patient
        part = np.array(runme.PARTS)[runme.parts_of(patient)]  # (n,)
        self.train = np.flatnonzero(part == "train")
        self.judge = np.flatnonzero(part == "validation")
        self.x = ready(self.slices.images)
        self.y = self.slices.labels.astype(np.float32)
        self.steps = {}
        self.folder = tempfile.TemporaryDirectory(prefix="capstone-")

    def step(self, norm: str, bf16: bool):
        """A network with its training step, its evaluation, and what a
        checkpoint of it holds."""
        options = {"auto_mixed_precision_onednn_bfloat16": bf16}
        tf.config.optimizer.set_experimental_options(options)
        if (norm, bf16) not in self.steps:
            keras.utils.set_random_seed(0)
            model = network(fused=norm == "fused")
            optimizer = keras.optimizers.Adam(self.args.lr)
            optimizer.build(model.trainable_variables)
            weights = LOSSES[self.args.loss]
            self.steps[norm, bf16] = (
                model,
                runme.training_step(model, optimizer, weights),
                runme.evaluation_of(model),
                [v.value for v in model.variables + optimizer.variables],
            )
        return self.steps[norm, bf16]

    def run(self, how: dict, steps: int) -> float:
        """Seconds of a step, over a whole epoch; `steps` does not count."""
        model, train_step, evaluate, state = self.step(
            how["norm"], how["bf16"]
        )
        # Distributed: of those who train now
        rank, ranks = hvd.rank(), hvd.size()
        started = perf_counter()
        order = np.random.default_rng(0).permutation(self.train)
        order = np.resize(order, -(-len(order) // ranks) * ranks)
        every = self.batch * ranks
        for at in range(0, len(order), every):
            mine = order[at:at + every][rank::ranks]
            if how["input"] == "line by line":
                given = first.batch_of(self.slices, mine)
            else:
                given = self.x[mine], self.y[mine]
            float(train_step(*given))
        if how["evaluation"] == "slice by slice":
            if rank == 0:
                first.counts_of(model, self.slices, self.judge)
            # Distributed: the others wait for rank 0
            hvd.allreduce(tf.constant(0.0), name="evaluated")
        else:
            runme.average_norms(model)
            runme.counts_of(evaluate, self.x[self.judge], self.y[self.judge])
        if rank == 0 or how["checkpoint"] == "every rank":
            place = f"{self.folder.name}/rank-{rank}"
            records.keep_checkpoint(place, state, 1)
        return (perf_counter() - started) * every / len(order)
