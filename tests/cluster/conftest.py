"""A Slurm of the tests' own."""

from collections.abc import Iterator

import mini_slurm
import pytest


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mini_slurm.Slurm]:
    """Four nodes on this machine; nothing of them is left in the end."""
    folder = tmp_path_factory.mktemp("slurm")
    with mini_slurm.Slurm(folder) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", running.env["SLURM_CONF"])
        patch.setenv("SCALEOUT_QUICK", "1")
        yield running
    assert not running.processes(), "the cluster left something behind"
