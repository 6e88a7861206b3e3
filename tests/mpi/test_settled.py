"""A sweep that is not told what to judge by finds the rate that its command prints."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scaleout import sweeps

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

TRAINS = """
    import sys
    from mpi4py import MPI
    ranks = MPI.COMM_WORLD.size
    if MPI.COMM_WORLD.rank == 0:
        print("loss 0.1")
        for step in range(3):
            print(f"step {step}: {10 * ranks + step} images/s", flush=True)
"""


def test_a_sweep_says_what_it_took_and_goes_on_with_it(
    script: Callable[..., Path], results: Path
) -> None:
    said: list[str] = []
    command = f"python {script(TRAINS)}"
    how = {"threads": 1, "name": "mine", "echo": said.append}
    result = sweeps.sweep(command, ranks=[1, 2], **how)
    assert result.frame.rate.tolist() == [11, 21]
    assert sum(line.startswith("Judged by what this finds:  --metric '") for line in said) == 1
    said.clear()
    result = sweeps.sweep(command, ranks=[1, 2], repeat=2, **how)
    assert result.frame.repeats.tolist() == [2, 2]
    assert not any(line.startswith("Judged by") for line in said), "known from before"
