"""08's ladder of instruction sets, from made-up jobs with known answers."""

import pandas as pd
import pytest
from helpers import lesson

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
