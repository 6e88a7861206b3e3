"""What 09_networks says of records that its ways would leave."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import lesson

frameworks = lesson("09_networks", "frameworks")


def _row(network: str, side: int, rate: float, together: float) -> dict:
    """The record of a network, in two rounds, of which copies had 10 images/s."""
    of_way = {"one process": rate, "copies": 10.0, "together": together}
    columns = [("one process", 0), ("one process", 1), ("copies", 0), ("together", 0)]
    runs = [
        {"round": k, "place": 4 * k + at, "variant": way, "again": again, "value": of_way[way]}
        for k in range(2)
        for at, (way, again) in enumerate(columns)
    ]
    return {
        "rate": rate,
        "metrics.network": network,
        "metrics.framework": "tensorflow",
        "metrics.side": side,
        "metrics.batch": 16,
        "metrics.flops_per_image": 2e9,
        "metrics.parameters": 25e6,
        "metrics.peak_mib": 900.4,
        "metrics.runs": runs,
    }


def test_the_table_says_what_the_ranks_keep_of_the_rate_of_copies(results: Path) -> None:
    rows = pd.DataFrame([_row("resnet50", 96, 20.0, 8.0), _row("resnet50", 224, 4.0, 9.0)])
    shown = frameworks.table(rows)
    assert list(shown["efficiency"].str[:4]) == ["0.80", "0.90"]
    assert list(shown["GFLOP/s"]) == [40, 8] and list(shown["MiB"]) == [900, 900]
    assert list(shown["pixels"]) == [96, 224]
    assert (results / "frameworks" / "table.csv").is_file()


def test_many_nodes_start_from_the_step_at_the_size_of_all_networks() -> None:
    rows = pd.DataFrame([_row("resnet50", 96, 20.0, 8.0), _row("resnet50", 224, 4.0, 9.0)])
    (step,) = frameworks.on_many_nodes(rows, ["resnet50"], ["10 Gb/s Ethernet"])["resnet50"]
    assert step.compute_s == pytest.approx(16 / 20.0)
    assert step.gradient_bytes == pytest.approx(4 * 25e6)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(frameworks.__file__.rpartition("/")[0])
    return lesson("09_networks", "memory")


def test_a_trial_in_a_fresh_process_counts_nothing_of_its_parent(memory, monkeypatch) -> None:
    """Linux hands a parent's peak on to its child: the second network of a job would seem larger."""
    monkeypatch.setattr(memory, "TRIAL", "import memory; print(memory.peak_mib())")
    held = np.ones(400 * 2**17)  # 400 MiB
    assert memory.in_fresh_process(Namespace(), 1, 0) < 300 < memory.peak_mib()
    assert held.nbytes / 2**20 == 400


def test_a_trial_that_dies_took_more_than_there_is(memory, monkeypatch) -> None:
    monkeypatch.setattr(memory, "TRIAL", "import os; os._exit(9)")
    assert memory.in_fresh_process(Namespace(), 1, 0) == float("inf")
