"""Each law costs nothing on one node, more on more of them, and comes back from its own table."""

import numpy as np
import pytest

from scaleout import scaling
from scaleout.scaling.laws import candidates

COUNTS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])


def _of(name: str) -> np.ndarray:
    law = next(law for law in scaling.LAWS if law.name == name)
    return law.slowdown(COUNTS, candidates(), 16.0)


@pytest.mark.parametrize("name", [law.name for law in scaling.LAWS])
def test_no_law_is_faster_among_many_than_alone(name: str) -> None:
    found = _of(name)
    assert found.shape == (len(candidates()), len(COUNTS)) and np.isfinite(found).all()
    assert (found >= 1 - 1e-12).all()
    if name != "sizes that do not divide":  # there, 4 may fit better than 3
        assert (np.diff(found, axis=1) >= -1e-9).all()


@pytest.mark.parametrize("name", [law.name for law in scaling.LAWS if law.name != "saturation"])
def test_one_node_alone_loses_nothing(name: str) -> None:
    assert _of(name)[:, 0] == pytest.approx(1.0)


def test_a_full_server_gives_no_more() -> None:
    rate = COUNTS / _of("saturation")
    full = rate[:, -1] < 0.3 * COUNTS[-1] / 8
    assert full.any() and (rate[full, -1] / rate[full, -2] < 1.25).all()


def test_every_law_keeps_candidates_from_perfect_to_collapsed() -> None:
    for law in scaling.LAWS:
        efficiency = 1 / law.slowdown(COUNTS, candidates(), 16.0)[:, 4]
        assert efficiency.max() > 0.9, law.name
        assert efficiency.min() < 0.6, law.name
