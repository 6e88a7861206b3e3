"""Number formats against the types of NumPy and TensorFlow."""

import ml_dtypes
import numpy as np
import pytest
from helpers import lesson

from scaleout.errors import ScaleoutError

formats = lesson("01_onednn", "formats")
TYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("name", TYPES)
def test_rounding_agrees_with_the_types_of_numpy_and_tensorflow(name: str) -> None:
    upper = np.arange(2**16, dtype=np.uint32) << 16  # every sign and exponent
    lower = [
        *np.random.default_rng(0).integers(0, 2**16, 5),
        0x8000,
        0x7FFF,
        0x8001,
    ]  # among them the ties of bf16
    x = (upper | np.array(lower, np.uint32)[:, None]).ravel().view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(TYPES[name]).astype(np.float64)
        found = formats.round_to(x, name)
    np.testing.assert_array_equal(found, wanted)


def test_int8_stops_at_its_ends_and_holds_whole_steps() -> None:
    np.testing.assert_array_equal(
        formats.round_to([0.4, 0.5, 1.5, 200, -200], "int8", scale=1), [0, 0, 2, 127, -127]
    )
    x = np.random.default_rng(0).standard_normal(1000)
    steps = formats.round_to(x, "int8") / (np.abs(x).max() / 127)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    assert np.abs(steps).max() == pytest.approx(127)
    np.testing.assert_array_equal(formats.round_to(np.zeros(3), "int8"), np.zeros(3))


def test_unknown_format_is_one_sentence() -> None:
    with pytest.raises(ScaleoutError, match="no format 'fp8'; there are fp32, fp16, bf16, int8"):
        formats.round_to(1.0, "fp8")


def test_the_limits_of_the_formats() -> None:
    table = formats.formats()
    for name, dtype in TYPES.items():
        info, row = ml_dtypes.finfo(dtype), table.loc[name]
        assert (row.bits, row.exponent, row.mantissa) == (info.bits, info.nexp, info.nmant)
        limits = [info.max, info.smallest_normal, info.smallest_subnormal, info.eps]
        assert [row.largest, row.smallest_normal, row.smallest, row.epsilon] == [
            float(v) for v in limits
        ]
        assert formats.round_to(row.largest, name) == row.largest
        assert formats.round_to(row.smallest / 2, name) == 0  # a tie, and 0 is even
        assert formats.round_to(1 + row.epsilon, name) == 1 + row.epsilon
        assert formats.round_to(1 + row.epsilon / 2, name) == 1
    assert table.loc["int8", "largest"] == np.iinfo(np.int8).max


def test_a_sum_in_bf16_stops_growing_and_one_in_fp32_does_not() -> None:
    ones = np.ones(4096)
    assert formats.dot(ones, ones, "bf16", "fp32") == 4096
    assert formats.dot(ones, ones, "bf16", "bf16") == 256  # 256 + 1 is a tie, and 256 is even
    assert formats.dot(ones, ones, "fp16", "fp16") == 2048
    assert formats.dot(ones, ones, "int8") == pytest.approx(4096)
