"""What the checks look at: a variable, and what one operation gives back.

    mpirun -n 1 python -m mpi4py labs/01_onednn/instruments.py

One rank, as here, asks runme.py to load TensorFlow for each kind of kernels,
and notes the variable at that moment, without loading it. With --normalise it
normalises a few numbers instead. You will see what it noted, after 1 second,
or 8 with --normalise. There is nothing to fill in here.
"""

import ctypes
import os
import sys

import numpy as np
import runme

from scaleout import records
from scaleout.kit.flags import Parser

NAME = "TF_ENABLE_ONEDNN_OPTS"
SHELLS = [None, "0", "1"]  # what the shell has set
SHAPE = (4, 5, 6, 3)
GAMMA = [1.5, 0.5, 2.0]
BETA = [0.25, -0.75, 1.0]
EPSILON = 0.3


class LoadedNow(Exception):
    """TensorFlow would be loaded at this moment."""


class Gate:
    """Stands before TensorFlow and Keras, and lets nobody load them."""

    def find_spec(self, name: str, *_: object) -> None:
        """Says when one of them is asked for."""
        if name.partition(".")[0] in ("tensorflow", "keras"):
            raise LoadedNow


def at_the_import(kernels: str, shell: str | None) -> dict:
    """The variable at the moment at which TensorFlow would read it."""
    environment = os.environ
    before = dict(environment)
    environment.pop(NAME, None)
    if shell is not None:
        environment[NAME] = shell
    sys.argv[1:] = ["--kernels", kernels]
    sys.meta_path.insert(0, gate := Gate())
    loaded = False
    try:
        runme.prepare(runme.settings(), 0)
    except LoadedNow:
        loaded = True
    finally:
        sys.meta_path.remove(gate)
        get = ctypes.CDLL(None).getenv
        get.restype = ctypes.c_char_p
        library = get(NAME.encode())
        found = {"kernels": kernels, "shell": shell, "loaded": loaded,
                 "python": os.environ.get(NAME),
                 "library": None if library is None else library.decode()}
        vars(os)["environ"] = environment
        environment.clear()
        environment.update(before)
    return found


def normalised() -> dict:
    """What runme.py's normalise gives back, and by which operations."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    x = (rng.random(SHAPE) * [1, 2, 3] + [0, 5, -1]).astype(np.float32)
    given = [x, np.float32(GAMMA), np.float32(BETA)]
    saw = runme.normalise(*map(tf.constant, given), EPSILON)
    if not isinstance(saw, list | tuple) or len(saw) != 3:
        return {"kind": type(saw).__name__}
    specs = [tf.TensorSpec(each.shape, tf.float32) for each in given]
    traced = tf.function(lambda *what: runme.normalise(*what, EPSILON))
    graph = traced.get_concrete_function(*specs).graph.as_graph_def()
    nodes = [*graph.node, *(node for each in graph.library.function
                            for node in each.node_def)]
    return {"kind": "three", "x": x.tolist(),
            "saw": [np.asarray(each).tolist() for each in saw],
            "operations": [node.op for node in nodes]}


def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--normalise", action="store_true",
                        help="normalise a few numbers")
    if parser.parse_args().normalise:
        found = normalised()
        print({name: found[name] for name in ("kind", "operations")
               if name in found}, flush=True)
    else:
        found = [at_the_import(kernels, shell)
                 for kernels in runme.KERNELS for shell in SHELLS]
        for each in found:
            print(each, flush=True)
    records.write(lab="01_onednn", variant="instruments",
                  metrics={"found": found})


if __name__ == "__main__":
    main()
