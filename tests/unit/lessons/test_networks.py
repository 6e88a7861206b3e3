"""The checks of 09_networks, on records that ranks of PyTorch would leave."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import lesson

checks = lesson("09_networks", "checks")

IMAGES, STEPS = 1500, 4


def _job(rank_0: list[np.ndarray]):
    """A job of two ranks, of which rank 0 had these images in each epoch."""
    firsts = [int(part[0]) for rows in rank_0 for part in np.array_split(rows, STEPS)]
    metrics = {
        "shares": [{}, {}],
        "seen": [checks.EPOCHS, checks.EPOCHS],
        "images": IMAGES,
        "firsts": firsts,
        "dealt": [rank_0[0][:5].tolist(), []],
    }
    run = SimpleNamespace(records=pd.DataFrame({"metrics": [metrics]}))
    return lambda **how: run


def test_a_rank_that_keeps_to_a_block_of_its_own_is_told_so() -> None:
    shuffle = np.random.default_rng(0)
    dealt = [shuffle.permutation(IMAGES)[::2] for _ in range(checks.EPOCHS)]
    checks.each_image_is_seen_once(_job(dealt))
    for block in (np.arange(IMAGES // 2), np.arange(IMAGES // 2, IMAGES)):
        kept = [shuffle.permutation(block) for _ in range(checks.EPOCHS)]
        with pytest.raises(AssertionError, match="Is it a block of its own"):
            checks.each_image_is_seen_once(_job(kept))
