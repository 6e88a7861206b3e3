r"""The pipeline of runme.py by PyTorch's DataLoader: images/s of input alone.

    scaleout run labs/10_input/more/torch_loader.py -n 1 \
        --python .side/torch/bin/python

After `make torch`, on any number of ranks; it takes about 20 seconds. Beside
it, compare_pipelines.py measures the same by TensorFlow, with
`--pipelines parallel+prefetch --step-ms 0`. There is nothing to fill in.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

# Distributed: this import also starts MPI
from mpi4py import MPI
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from scaleout import records

sys.path.append(str(Path(__file__).parents[1]))
import crops


# The pipeline begins here ...
class Crops(Dataset):
    """Images in files of their own, each augmented when it is asked for."""

    def __init__(self, rank: int, ranks: int) -> None:
        # Distributed: the images of this rank
        self.paths = sorted(crops.crops().iterdir())[rank::ranks]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        path = self.paths[number]
        top, left, mirrored, bright = torch.rand(4).tolist()
        whole = np.asarray(Image.open(path))  # (128, 128, 3)
        picked = (1.5 * np.arange(64)).astype(int)
        columns = picked[::-1] if mirrored < 0.5 else picked
        cut = whole[int(32 * top) + picked][:, int(32 * left) + columns]
        image = torch.from_numpy(cut).float() / 255 * (0.8 + 0.4 * bright)
        return image, int(path.stem[-1])


def loader(rank: int, ranks: int) -> DataLoader:
    """Two processes that read; two batches ahead each."""
    return DataLoader(Crops(rank, ranks), batch_size=64, shuffle=True,
                      num_workers=2, prefetch_factor=2,
                      persistent_workers=True)
# ... and ends here.


if __name__ == "__main__":
    # Distributed: all ranks of the job
    comm = MPI.COMM_WORLD
    batches = loader(comm.rank, comm.size)
    seen = [len(labels) for _, labels in batches]  # starts the processes
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
        print(f"PyTorch's DataLoader: {rate:,.0f} images/s on {comm.size} "
              f"rank(s), {images:,} images", flush=True)
        records.write(lab="10_input", variant="torch loader", rate=rate,
                      ranks=comm.size, rate_unit="images/s",
                      metrics={"images": images, "of_ranks": ranks})
