"""All slices of a batch at once: to move whole pixels takes no spline."""

PICTURES = []  # of all slices to train on, scaled once


def batches(slices, rows, draw):
    """The images and masks of each step of an epoch, in a random order; each
    slice is turned left to right half of the time, and shifted a little."""
    if not PICTURES:
        PICTURES.append(np.stack([scaled(slices, row) for row in rows]))
    order = draw.permutation(rows)
    flips = draw.random(len(rows)) < 0.5
    shifts = draw.integers(-SHIFT, SHIFT + 1, (len(rows), 2))
    height, width = slices.images.shape[1:3]
    down = np.clip(np.arange(height) - shifts[:, :1], 0, height - 1)
    right = np.clip(np.arange(width) - shifts[:, 1:], 0, width - 1)
    right = np.where(flips[:, None], width - 1 - right, right)
    for first in range(0, len(rows) - BATCH + 1, BATCH):
        # Distributed: each step is one batch, dealt to the ranks like cards
        mine = np.arange(first, first + BATCH)[hvd.rank()::hvd.size()]
        pixels = down[mine][:, :, None], right[mine][:, None]
        chosen = order[mine][:, None, None]
        places = np.searchsorted(rows, chosen)
        yield (PICTURES[0][places, *pixels],
               slices.masks[chosen, *pixels].astype(np.float32))
