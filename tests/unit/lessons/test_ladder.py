"""The ladder of 08: one's own product and those of other machines, as times fp32 on the lowest step."""

import numpy as np
import pandas as pd
from helpers import lesson

from scaleout import lab

TIMES = {"fp32": 100.0, "int8": 110.0}


def _record(number: str, twin: int) -> dict[str, object]:
    rates = [TIMES[number] * (1 + 0.001 * n) for n in range(5)]
    again = rates if number == "fp32" else []
    return {
        "variant": f"GEMM {number}",
        "rate_unit": "GFLOP/s",
        "metrics.step": "AVX2",
        "metrics.twin": twin,
        "metrics.rates": rates,
        "metrics.again": again,
        "metrics.wrong": 0.99996 if number == "int8" else None,
    }


def test_the_ladder_holds_ones_own_product_and_those_of_other_machines() -> None:
    isa = lesson("08_precision", "isa")
    job = pd.DataFrame([_record(number, twin) for twin in (0, 1) for number in TIMES])
    found = isa.ladders(isa.Ladder(job), lab("08", solution=True).elsewhere)
    own, *others = found.values()
    assert [(one.step, one.number, one.wrong) for one in own] == [
        ("AVX2", "fp32", None),
        ("AVX2", "int8", 0.99996),
    ]
    assert np.isclose(own[1].times[1], 1.1)
    for rungs in others:
        first = rungs[0]
        assert (first.step, first.number, first.times[1]) == ("AVX2", "fp32", 1.0)
        assert all(one.times[1] > 0 for one in rungs)
    assert {one.wrong for one in others[-1]} == {None}


def test_each_machine_is_told_what_its_instructions_promise() -> None:
    isa = lesson("08_precision", "isa")
    assert set(isa.reasons()) == {"faster", "slower", "same", "unclear"}
    for sentence in (*isa.reasons().values(), *isa.tiny().values()):
        assert sentence.format(ratio="1", low="1", high="1")
