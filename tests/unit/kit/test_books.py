"""records.Books: the books that a lab's ranks keep, and the one record that comes of them."""

import json
from pathlib import Path

import numpy as np
import pytest

from scaleout import records


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEOUT_RECORDS", str(tmp_path / "records.jsonl"))
    return tmp_path / "records.jsonl"


def _beside(monkeypatch: pytest.MonkeyPatch, **theirs: object) -> None:
    """Another rank, whose books say this; what it does not say is as in ours."""
    monkeypatch.setattr(records, "gather", lambda ours: [ours, {**ours, **theirs}])


def test_the_slowest_rank_counts_and_short_steps_and_warm_up_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _beside(monkeypatch, step_s=[9.0, 4.0, 2.0, 8.0], rows=np.arange(8, 16))
    books = records.Books("00_tiny", rank=0, ranks=2, warmup=1, rows=16)
    for rows in ([0, 1, 2], [3, 4, 5], [6, 7, 7], [0]):
        with books.step(rows=rows, rates=0.5):
            pass
    record = books.write(rate_unit="images/s", images=16)
    assert record["step_s"] == [4.0, 2.0] and record["warmup_steps"] == 1
    assert record["rate"] == 6 / 3.0 and record["rate_unit"] == "images/s"
    metrics = record["metrics"]
    assert metrics["seen"] == [1, 2] and metrics["rates"] == [0.5] * 4 and metrics["images"] == 16
    assert [share["steps"] for share in metrics["shares"]] == [4, 4]
    assert [list(rows) for rows in metrics["dealt"]] == [[0, 1, 2, 3, 4], [8, 9, 10, 11, 12]]


def test_weights_checkpoints_and_notes_are_each_ranks_share(tmp_path: Path, file: Path) -> None:
    weights = [np.zeros(3), np.ones(2)]
    books = records.Books("00_tiny", weights=weights)
    with books.time("input"):
        pass
    books.note(norm=1.5)
    assert 0 <= books.log(accuracy=0.5) <= books.log(accuracy=0.75)
    weights[0][:] = 2
    books.keep_checkpoint(tmp_path, 7)
    books.write()
    (line,) = file.read_text().splitlines()
    metrics = json.loads(line)["metrics"]
    assert metrics["accuracy"] == [0.5, 0.75] and len(metrics["at_s"]) == 2
    (share,) = metrics["shares"]
    assert share["start"] != share["end"] == records.digest(weights)
    assert share["norm"] == 1.5 and share["wrote"] == ["checkpoint-000007.npz"]
    assert share["input_s"] >= 0 and share["peak_mib"] > 1


def test_a_lab_may_give_its_own_rate_and_threads() -> None:
    books = records.Books("00_tiny", warmup=1)
    for _ in range(3):
        with books.step():
            pass
    record = books.write(rate=5.0, rate_unit="images/s", threads_per_rank=3)
    assert record["rate"] == 5.0 and record["rate_unit"] == "images/s"
    assert record["threads_per_rank"] == 3 and record["step_s"] == books.step_s[1:]


def test_other_ranks_write_nothing(file: Path) -> None:
    assert records.Books("00_tiny", rank=1, ranks=2).write() == {} and not file.exists()


def test_the_last_rank_fails_where_it_was_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_FAIL_AT", "2")
    for rank in (0, 1):
        books = records.Books("00_tiny", rank=rank, ranks=2)
        with books.step():
            pass
        if rank == 0:
            with books.step():
                pass
        else:
            with pytest.raises(RuntimeError, match="Rank 1 fails at step 2, as SCALEOUT_FAIL_AT"):
                books.step().__enter__()
