"""The rate of 01 that 02 begins with: which records it comes from, and what is said without any."""

from pathlib import Path

import pandas as pd
import pytest
from helpers import lesson

from scaleout import records

bar = lesson("02_threads", "bar")
RUN = pd.DataFrame([{"rate": 900.0}])


def measured(folder: Path, rate: float, variant: str, steps: int, batch: int = 64) -> None:
    place = folder / "01_onednn" / f"{variant} {rate:.0f}"
    place.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCALEOUT_RECORDS", str(place / "records.jsonl"))
        records.write(
            lab="01_onednn", variant=variant, batch_per_rank=batch, threads_per_rank=2,
            step_s=[0.1] * steps, rate=rate, rate_unit="images/s", metrics={"network": "cnn"},
        )  # fmt: skip


def test_the_median_of_the_longest_runs_of_the_same_job_stands_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    assert "01 has not measured this job" in bar.beside(RUN)
    for rate in (100.0, 200.0, 300.0):
        measured(tmp_path, rate, "cnn onednn keras", steps=9)
    measured(tmp_path, 7.0, "cnn onednn keras", steps=3)
    measured(tmp_path, 8.0, "cnn onednn keras", steps=9, batch=16)
    measured(tmp_path, 9.0, "cnn default keras", steps=9)
    said = bar.beside(RUN)
    assert said == "In 01: 200 images/s, the median of 3 runs. Here, in one run: 900 images/s."
