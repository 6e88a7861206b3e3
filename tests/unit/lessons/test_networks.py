"""What 09_networks says of records that its ways would leave."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import lesson

from scaleout.comparisons.intervals import Ratio

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


def _job(beside: float, together: float) -> pd.Series:
    """The record of a job of runme.py, whose copies took 1 s a step, ten times."""
    near = [1.0, 1.001] * 5
    steps = {"metrics.copies_s": 1.0, "metrics.beside_s": beside, "step_s": together}
    return pd.Series({name: [each * s for each in near] for name, s in steps.items()})


@pytest.mark.parametrize(
    ("beside", "together", "said"),
    [
        (2.0, 2.5, "The thread costs more than the exchange."),
        (1.1, 2.0, "The exchange costs more than the thread."),
        (1.0, 1.0, "No loss is shown."),
    ],
)
def test_what_costs_more_is_said(beside: float, together: float, said: str) -> None:
    one = frameworks.in_rounds(_job(beside, together))
    assert one.rounds == 5 and one.ratio("together").middle == pytest.approx(1 / together, rel=0.01)
    assert frameworks.where_lost(one) == said
    shown = frameworks.kept({"1 ms": one}).loc["1 ms"]
    assert shown["copies beside the thread / copies"].startswith(f"{1 / beside:.2f}")


def test_a_noisy_exchange_leaves_what_the_thread_takes() -> None:
    verdicts = {"together": "unclear", frameworks.BESIDE: "slower"}
    noisy = SimpleNamespace(
        ratio=lambda name: Ratio(0.6, 0.57, 0.63, 5),
        between=lambda name, other: Ratio(1.2, 0.8, 1.8, 5),
        verdict=verdicts.get,
    )
    assert frameworks.where_lost(noisy).startswith("The thread alone leaves 0.60 of it.")
    verdicts[frameworks.BESIDE] = "unclear"
    assert frameworks.where_lost(noisy) == "No loss is shown."


def test_the_days_of_imagenet_are_those_of_the_last_row(capsys) -> None:
    frameworks.days(pd.DataFrame([_row("a", 96, 20.0, 8.0), _row("resnet50", 224, 10.0, 9.0)]))
    assert "resnet50 at 224 pixels, 10.0 images/s" in (said := capsys.readouterr().out)
    assert "133 days" in said


def test_a_slip_is_marked_where_it_shows(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    sound = {
        "steps of an epoch": 133, "times each image was seen": "1 to 1",
        "different orders": "2 of 2", "begin equal": True, "end equal": True,
        "accuracy of rank 0": "97.3%",
    }  # fmt: skip
    rows = {
        "none": sound,
        "set_epoch": sound | {"different orders": "1 of 2", "accuracy of rank 0": "97.9%"},
        "averaging": sound | {"end equal": False},
    }

    def slipped(ddp: object, *slips: str) -> pd.DataFrame:
        return pd.DataFrame(
            [rows[slip] for slip in slips or ["none"]], index=list(slips or ["none"])
        )

    monkeypatch.setattr(frameworks, "slipped", slipped)
    board = frameworks.Slips(None)
    board.tried("set_epoch")
    board.tried("averaging").tried()
    assert list(board.table.index) == ["none", "set_epoch", "averaging"]
    assert [name for _, row in board.table.iterrows() for name in frameworks.broken(row)] == [
        "different orders",
        "end equal",
    ]
    assert board._repr_html_().count("<b ") == 2 and repr(board).count("* ") == 2
    board.highest()
    assert "97.9 %, is that of set_epoch; without a slip it is 97.3 %" in capsys.readouterr().out


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


def test_a_checkpoint_is_moved_by_one_rounding_and_twins_are_judged_by_it(tmp_path: Path) -> None:
    weights = [np.float32([[1, 2], [3, 4]]), np.float32([0.5])]
    arrays = [np.int64(0), *weights, np.int64(0), np.float32(0.01), *map(np.zeros_like, weights)]
    begin = tmp_path / "begin.npz"
    np.savez(begin, *arrays)
    moved = frameworks.move(str(begin), str(tmp_path / "moved"), 0)
    assert 0 < frameworks.apart(moved, str(begin)) < 2e-7
    assert frameworks.apart(str(begin), str(begin)) == 0
    other = frameworks.move(str(begin), str(tmp_path / "other"), 1)
    assert frameworks.apart(moved, other) > 0
    rows = [
        {"steps": 1, "weights differ by": 5e-8, "05, moved, differs by": [6e-8, 9e-8]},
        {"steps": 1, "weights differ by": 1e-4},
        {"steps": 10, "weights differ by": 6e-3, "05, moved, differs by": [9e-8, 2e-7]},
        {"steps": 100, "weights differ by": 2e-2, "05, moved, differs by": [1e-2, 3e-2]},
    ]
    about = {"loss, Horovod": 0.1, "loss, DDP": 0.1, "learning rate of DDP": ""}

    def said() -> str:
        return frameworks.grown(frameworks._apart([{**row, **about} for row in rows]))

    assert "from its moved selves by 1e-02 to 3e-02. Rounding alone takes 05 as far." in said()
    assert said().endswith("After 10 steps only the twins had leapt.")
    rows[2]["05, moved, differs by"] = [2e-7, 2e-3]
    assert said().endswith("rows of one and two steps.")
    rows[0]["weights differ by"] = 9e-5
    assert said().endswith("at step 1 the twins are 1,000 times as far apart: look there.")
    rows[0]["weights differ by"] = 5e-8
    rows[3]["05, moved, differs by"] = [1e-7, 2e-7]
    assert said().endswith("at step 100 the twins are 100,000 times as far apart: look there.")
