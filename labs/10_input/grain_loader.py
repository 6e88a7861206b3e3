r"""The pipeline of runme.py by Grain: images/s of the input alone.

    scaleout run labs/10_input/grain_loader.py -n 1 \
        --python .side/torch/bin/python

Grain is a library for input alone; it comes with `make torch`. On any number
of ranks; it takes about 20 seconds. The order follows from the seed, and
`iter(batches).get_state()` says where to go on. There is nothing to fill in.
"""

import logging
import time
from pathlib import Path

# Grain says that it found no jax: it can do without.
logging.getLogger("absl").setLevel("ERROR")
import grain
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
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
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    batches = pipeline(comm.rank, comm.size)
    seen = [len(labels) for _, labels in batches]  # a warm-up
    # Distributed: all ranks read at the same time
    comm.Barrier()
    start = time.perf_counter()
    seen = [len(labels) for _, labels in batches]
    mine_s = time.perf_counter() - start
    # Distributed: the images of all ranks
    images = comm.allreduce(sum(seen))
    # Distributed: the slowest rank counts
    rate = images / comm.allreduce(mine_s, op=MPI.MAX)
    # Distributed: what each rank has read
    ranks = records.gather({"images": sum(seen), "batches": len(seen)})
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        print(f"Grain: {rate:,.0f} images/s on {comm.size} "
              f"rank(s), {images:,} images", flush=True)
        records.write(lab="10_input", variant="grain", rate=rate,
                      ranks=comm.size, rate_unit="images/s",
                      metrics={"images": images, "of_ranks": ranks})
