"""How fast does oneDNN multiply matrices here? A roof for its networks.

    mpirun -n 1 python -m mpi4py labs/01_onednn/roof.py

Twenty products of matrices in fp32, from small squares to the shapes of
ResNet-50's layers, by the library that also computes its convolutions. Each
is warm: the same matrices, multiplied again and again. You will see GFLOP/s
after about 15 seconds.
"""

import os
import time

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"

import tensorflow as tf

from scaleout import data, records

# (rows, inner, columns) of a product (rows, inner) @ (inner, columns)
SQUARES = [(n, n, n) for n in (256, 384, 512, 768, 1024, 1536, 2048, 2560)]
# Pixels of a step x weights of a layer, as a convolution multiplies them.
LAYERS = [
    (3136, 64, 256), (3136, 256, 64), (3136, 576, 64), (3136, 256, 128),
    (3136, 512, 128), (3136, 1152, 128), (3136, 128, 512), (3136, 512, 256),
    (3136, 1024, 256), (3136, 2304, 256), (784, 2048, 512), (784, 4608, 512),
]
REPEATS = 5


def rates(rows: int, inner: int, columns: int) -> list[float]:
    """GFLOP/s of a product, several times."""
    a = tf.random.uniform((rows, inner))
    b = tf.random.uniform((inner, columns))
    multiply = tf.function(lambda: tf.reduce_max(a @ b))
    # A multiplication and an addition for each of these.
    gflop = 2 * rows * inner * columns / 1e9
    multiply().numpy()
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        calls = 0
        # Small products are too short to be timed alone.
        while calls == 0 or time.perf_counter() - start < 0.05:
            multiply().numpy()
            calls += 1
        found.append(calls * gflop / (time.perf_counter() - start))
    return found


if __name__ == "__main__":
    shapes = [*SQUARES, *LAYERS]
    for shape in shapes[:3] if data.quick() else shapes:
        own = rates(*shape)
        name = " x ".join(map(str, shape))
        records.write(lab="01_onednn", variant=name, rate=max(own),
                      rate_unit="GFLOP/s", metrics={"rates": own})
        print(f"{name}: {min(own):.0f} to {max(own):.0f} GFLOP/s")
