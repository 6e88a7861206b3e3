"""The lab's training as 05's tune.py measures it: all time counts, also that
of input, evaluation and waiting."""

from time import perf_counter

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf
from networks import networks, with_label
from runme import (
    BASE_BATCH,
    LEARNING_RATE,
    TEST_BATCH,
    my_batches,
    training_step,
    way_to_classify,
)

from scaleout import data


class Training:
    """Both networks of the lab, and its step and evaluation in each way."""

    def __init__(self, batch: int, ranks: int) -> None:
        self.batch = batch
        self.x, self.y, self.x_test, self.y_test = data.digits()
        self.known = with_label(self.y, 20, seed=0)
        keras.utils.set_random_seed(0)
        self.trunk, self.head, self.generator = networks(28)
        self.classifier = keras.Sequential([self.trunk, self.head])
        rate = LEARNING_RATE * batch * ranks / BASE_BATCH
        self.learns = keras.optimizers.Adam(rate, beta_1=0.5)
        self.learns.build(self.classifier.trainable_variables)
        self.makes = keras.optimizers.Adam(rate, beta_1=0.5)
        self.makes.build(self.generator.trainable_variables)
        self.steps = {}
        self.ways = {}

    def step(self, bf16: bool):
        """The lab's step."""
        options = {"auto_mixed_precision_onednn_bfloat16": bf16}
        tf.config.optimizer.set_experimental_options(options)
        if bf16 not in self.steps:
            self.steps[bf16] = training_step(
                self.trunk, self.head, self.generator, self.learns, self.makes
            )
        return self.steps[bf16]

    def classify(self, evaluation: str):
        """The lab's way to classify."""
        if evaluation not in self.ways:
            way = way_to_classify(self.classifier, evaluation, [])
            self.ways[evaluation] = way
        return self.ways[evaluation]

    def run(self, how: dict, steps: int) -> float:
        """Seconds of a step, from one evaluation to a later one."""
        # Distributed: of those who train now
        rank = hvd.rank()
        # Distributed: how many they are
        ranks = hvd.size()
        train_step = self.step(how["bf16"])
        classify = self.classify(how["evaluation"])
        firsts = range(0, len(self.x_test), TEST_BATCH)
        batches = [slice(first, first + TEST_BATCH) for first in firsts]
        mine = my_batches(batches, how["evaluation"], rank, ranks)
        every = how["evaluate_every"]
        if data.quick():
            every = -(-every // 5)
        # As many as asked for, and up to an evaluation.
        last = -(-steps // every) * every
        for step in range(-1, last + 1):
            draw = np.random.default_rng(step + 1)
            few = draw.choice(self.known, self.batch // 2 * ranks)[rank::ranks]
            more = draw.integers(len(self.x), size=self.batch * ranks)
            more = more[rank::ranks]
            given = [self.x[few], self.y[few], self.x[more]]
            float(train_step(*map(tf.constant, given))[0])
            if step % every == 0:
                right = 0
                for part in mine:
                    guessed = np.argmax(classify(self.x_test[part]), axis=1)
                    right += int((guessed == self.y_test[part]).sum())
                # Distributed: the counts of all ranks
                hvd.allreduce(tf.constant(right), op=hvd.Sum).numpy()
            if step == 0:
                started = perf_counter()
        return (perf_counter() - started) / last
