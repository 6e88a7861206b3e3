r"""The pipeline of runme.py by Grain: images/s of the input alone.

    scaleout run solutions/10_input/grain_loader.py -n 1 \
        --python .side/torch/bin/python

Grain is a library for input alone; it comes with `make torch`. On any number
of ranks; it takes about 20 seconds. The order follows from the seed, and
`iter(batches).get_state()` says where to go on. There is nothing to fill in.
"""

import logging
import os
import time
from pathlib import Path

# Grain says that it found no jax: it can do without.
logging.getLogger("absl").setLevel("ERROR")
import grain
import numpy as np
from PIL import Image

from scaleout import data, records


# The pipeline begins here ...
def read_image(path: Path) -> tuple[np.ndarray, int]:
    """A file to an image (128, 128, 3) and its label."""
    return np.asarray(Image.open(path)), int(path.stem[-1])


def augment(example: tuple, draw: np.random.Generator) -> tuple:
    """Cuts out, mirrors and brightens."""
    whole, label = example
    top, left, mirrored, bright = draw.random(4)
    picked = (1.5 * np.arange(64)).astype(int)
    columns = picked[::-1] if mirrored < 0.5 else picked
    cut = whole[int(32 * top) + picked][:, int(32 * left) + columns]
    return cut.astype(np.float32) / 255 * (0.8 + 0.4 * bright), label


def pipeline(rank: int, ranks: int) -> grain.IterDataset:
    """Two epochs, each in another order; two threads read, two ahead."""
    paths = grain.MapDataset.source(sorted(data.crops().iterdir()))
    # Distributed: the images of this rank
    images = paths[rank::ranks].seed(0).shuffle().repeat(2).map(read_image)
    images = images.random_map(augment)
    read = grain.ReadOptions(num_threads=2, prefetch_buffer_size=128)
    return images.to_iter_dataset(read).batch(64)
# ... and ends here.


if __name__ == "__main__":
    # Distributed: which copy of the program this is, of how many
    me = int(os.environ.get("RANK", "0"))
    everybody = int(os.environ.get("WORLD_SIZE", "1"))
    batches = pipeline(me, everybody)
    seen = [len(labels) for _, labels in batches]  # a warm-up
    start = time.perf_counter()
    seen = [len(labels) for _, labels in batches]
    rate = sum(seen) / (time.perf_counter() - start)
    print(f"rank {me}, Grain: {rate:,.0f} images/s in {len(seen)} batches",
          flush=True)
    # Distributed: one record, not one from each rank
    if me == 0:
        records.write(lab="10_input", variant="grain", rate=rate,
                      ranks=everybody, rate_unit="images/s of a rank",
                      metrics={"images": sum(seen), "batches": len(seen)})
