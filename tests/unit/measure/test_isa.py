"""08's ladder of instruction sets, from made-up jobs with known answers."""

import math

import pandas as pd
import pytest
from helpers import lesson

from scaleout.errors import ScaleoutError

isa = lesson("08_precision", "isa")

GAIN = {
    "AVX2": {"GEMM fp32": 1.0, "GEMM int8": 2.0},
    "AVX512_CORE_VNNI": {"GEMM fp32": 1.5, "GEMM int8": 9.0},
}


def _job(rounds: int = 4, lacks: str = "") -> pd.DataFrame:
    """What a job records, two ranks on the lowest step; each round is a little slower than the one
    before."""
    rows = []
    for twin, step in ((0, "AVX2"), (1, "AVX2"), (0, "AVX512_CORE_VNNI")):
        for name, gain in GAIN[step].items():
            rates = [100 * gain * (1 - 0.01 * round_) for round_ in range(rounds)]
            rates = [] if (step, name) == ("AVX2", lacks) else rates
            again = [rate * 1.001 for rate in rates] if name.endswith("fp32") else []
            rows.append(
                {
                    "variant": name,
                    "rate_unit": "GFLOP/s",
                    "metrics.step": step,
                    "metrics.twin": twin,
                    "metrics.rates": [rate * (1 + 0.002 * twin) for rate in rates],
                    "metrics.again": again,
                }
            )
    return pd.DataFrame(rows)


def _climbed(lacks: str = ""):
    return isa.Ladder(_job(lacks=lacks))


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ((), []),
        (("sse4_2", "avx2"), ["AVX2"]),
        (("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"), list(isa.STEPS)),
    ],
)
def test_a_processor_has_the_steps_that_its_flags_say(flags, found) -> None:
    assert isa.steps(flags) == found


def test_the_table_has_every_step_and_nothing_where_it_lacks() -> None:
    table = _climbed().table
    assert list(table.index) == list(isa.STEPS)
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


def test_the_product_stands_beside_what_its_instructions_let_expect() -> None:
    counted = _climbed().counted()
    assert list(counted.index) == [
        ("AVX2", "fp32"),
        ("AVX2", "int8"),
        ("AVX512_CORE_VNNI", "fp32"),
        ("AVX512_CORE_VNNI", "int8"),
    ]
    assert list(counted.by_count) == [1, 2, 2, 8]
    fp32 = GAIN["AVX2"]["GEMM fp32"]
    gains = [GAIN[step][f"GEMM {number}"] / fp32 for step, number in counted.index]
    assert list(counted.measured) == pytest.approx(gains, rel=0.001)


def test_what_has_no_instruction_of_its_own_has_no_count() -> None:
    job = pd.concat([_job(), _job().assign(variant="GEMM bf16")])
    counted = isa.Ladder(job).counted()
    assert math.isnan(counted.by_count["AVX2", "bf16"])
    assert counted.measured["AVX2", "bf16"] > 0


def test_tflites_product_stands_below_beside_the_highest_instructions() -> None:
    jobs = [_job().assign(variant=f"GEMM {name}") for name in ("TFLite", "TFLite-1")]
    counted = isa.Ladder(pd.concat([_job(), *jobs])).counted()
    last = counted.loc["any"]
    assert list(last.index) == ["TFLite", "TFLite-1"]
    assert list(last.operations) == [128, 128]
    assert last.by_count["TFLite"] == 8 and math.isnan(last.by_count["TFLite-1"])
    rate = counted.giga_per_s["AVX2", "fp32"]
    assert list(last.measured) == pytest.approx(list(last.giga_per_s / rate))


def test_noise_is_that_of_equal_work_and_of_equal_processes() -> None:
    climbed = _climbed()
    # The same product twice in one process, and one step in two processes.
    for found, times in (
        (climbed.numbers("AVX2", "GEMM"), 1.001),
        (climbed.steps("GEMM fp32"), 1.002),
    ):
        runs = found.runs[found.runs.variant == found.baseline]
        first, second = (runs[runs.again == again].value.to_numpy() for again in (0, 1))
        assert len(first) == len(second) == 4
        assert second / first == pytest.approx(times)


def test_a_rank_is_asked_for_each_step_and_two_for_the_lowest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Done:
        records = _job()

    asked = []

    def run(**how):
        asked.append((how["ranks"], how["steps"], how["rounds"]))
        assert how["script"] == "ladder.py"
        return Done()

    three = ["AVX2", "AVX512_CORE", "AVX512_CORE_VNNI"]
    monkeypatch.setattr(isa, "steps", lambda: three)
    monkeypatch.delenv("SCALEOUT_QUICK", raising=False)
    isa.climb(run, rounds=5)
    monkeypatch.setenv("SCALEOUT_QUICK", "1")
    isa.climb(run, rounds=5)
    assert asked == [(4, ["AVX2", *three], 5), (3, ["AVX2", "AVX2", three[-1]], 1)]


def test_a_processor_without_a_step_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "steps", lambda: [])
    with pytest.raises(ScaleoutError, match="lacks AVX2"):
        isa.climb(lambda **how: None)
