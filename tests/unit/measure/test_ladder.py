"""The ladder of instruction sets, from made-up jobs with known answers."""

import math

import pandas as pd
import pytest

from scaleout import ladder
from scaleout.errors import ScaleoutError

GAIN = {
    "AVX2": {"GEMM fp32": 1.0, "GEMM int8": 2.0},
    "AVX512_CORE_VNNI": {"GEMM fp32": 1.5, "GEMM int8": 9.0},
}


def _job(step: str, round_: int, lacks: str = "") -> pd.DataFrame:
    """What a job on one step records; each round is a little slower than the one before."""
    rows = []
    for at, (name, gain) in enumerate(GAIN[step].items()):
        rate = 100 * gain * (1 - 0.01 * round_)
        rows.append(
            {
                "variant": name,
                "rate_unit": "GFLOP/s",
                "metrics.step": step,
                "metrics.rates": [] if name == lacks else [rate, rate * (1 + 0.001 * (at + 1))],
            }
        )
    return pd.DataFrame(rows)


def _climbed(rounds: int = 4, lacks: str = "") -> ladder.Ladder:
    jobs = [_job(step, r, lacks if step == "AVX2" else "") for r in range(rounds) for step in GAIN]
    return ladder.Ladder(jobs)


@pytest.mark.parametrize(
    ("isa", "found"),
    [
        ((), []),
        (("sse4_2", "avx2"), ["AVX2"]),
        (("avx2", "avx512f"), ["AVX2", "AVX512_CORE"]),
        (("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"), list(ladder.STEPS)),
    ],
)
def test_a_processor_has_the_steps_that_its_flags_say(isa, found) -> None:
    assert ladder.steps(isa) == found


def test_the_table_has_every_step_and_nothing_where_it_lacks() -> None:
    table = _climbed().table
    assert list(table.index) == list(ladder.STEPS)
    assert table.loc["AVX512_CORE_AMX"].isna().all()
    assert table.loc["AVX512_CORE_VNNI", "GEMM int8"] == pytest.approx(900, rel=0.05)


def test_the_number_and_the_processor_come_apart() -> None:
    climbed = _climbed()
    number = climbed.numbers("AVX512_CORE_VNNI", "GEMM")
    assert (number.baseline, number.variants) == ("fp32", ["int8"])
    assert number.verdict("int8") == "faster"
    assert number.ratio("int8").middle == pytest.approx(6, rel=0.02)
    processor = climbed.steps("GEMM int8")
    assert processor.baseline == "AVX2"
    assert processor.ratio("AVX512_CORE_VNNI").middle == pytest.approx(4.5, rel=0.02)


def test_what_onednn_cannot_do_is_left_out() -> None:
    climbed = _climbed(lacks="GEMM int8")
    assert math.isnan(climbed.table.loc["AVX2", "GEMM int8"])
    with pytest.raises(ScaleoutError, match="whole round"):
        climbed.numbers("AVX2", "GEMM")


def test_a_job_is_run_on_each_step_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        def __init__(self, step: str) -> None:
            self.records = _job(step, 0)

    asked = []

    def job(**how):
        asked.append(how["env"]["ONEDNN_MAX_CPU_ISA"])
        assert how["script"] == "ladder.py" and how["env"]["OTHER"] == "1"
        return Done(asked[-1])

    monkeypatch.setattr(ladder, "steps", lambda isa=None: list(GAIN))
    monkeypatch.delenv("SCALEOUT_QUICK", raising=False)
    ladder.climb(job, rounds=3, env={"OTHER": "1"})
    assert asked == list(GAIN) * 3
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    asked.clear()
    ladder.climb(job, rounds=3, env={"OTHER": "1"})
    assert asked == list(GAIN)


def test_a_processor_without_a_step_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "steps", lambda isa=None: [])
    with pytest.raises(ScaleoutError, match="lacks AVX2"):
        ladder.climb(lambda **how: None)
    with pytest.raises(ScaleoutError, match="at least one round"):
        ladder.Ladder([])
