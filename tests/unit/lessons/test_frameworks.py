"""What 09_networks computes from its records, made up here with known answers."""

import pandas as pd
import pytest
from helpers import lesson

frameworks = lesson("09_networks", "frameworks")


def _records(rates: dict[str, float]) -> pd.DataFrame:
    work = {"shallow": 1e9, "deep": 3e9}
    return pd.DataFrame(
        {
            "metrics.network": name,
            "metrics.framework": framework,
            "metrics.flops_per_image": work[name],
            "metrics.flops_per_s": rate * work[name],
            "metrics.peak_mib": [300.0, 310.0],
            "metrics.parameters": 2_000_000,
            "rate": rate,
            "ranks": 1,
            "threads_per_rank": 2,
        }
        for framework in ("tensorflow", "torch")
        for name, rate in rates.items()
    )


@pytest.mark.parametrize("slower", [1.0, 1.25])
def test_the_efficiency_is_that_of_the_medians(slower: float) -> None:
    steps = [0.1, 0.11, 0.12, 0.1, 0.11]
    records = pd.DataFrame(
        [
            {
                "step_s": [slower * s for s in steps],
                "metrics.copies_s": steps,
                "metrics.efficiency": 1 / slower,
            }
        ]
    )
    middle, low, high = frameworks.efficiency(records)
    assert middle == pytest.approx(1 / slower) and low <= middle <= high


def test_a_network_of_the_same_step_and_fewer_parameters_scales_further() -> None:
    records = _records({"shallow": 30.0, "deep": 10.0})
    small = records["metrics.network"] == "shallow"
    records["step_median_s"] = 0.01
    records.loc[small, "metrics.parameters"] = 20_000
    links = ["1 Gb/s Ethernet", "100 Gb/s InfiniBand"]
    found = frameworks.on_many_nodes(records, ["shallow", "deep", "never measured"], links)
    assert list(found) == ["shallow", "deep"]
    assert [step.gradient_bytes for step in found["deep"]] == [8e6, 8e6]
    slow = {name: steps[0].efficiency(128) for name, steps in found.items()}
    assert slow["deep"] < slow["shallow"]
    assert found["deep"][0].efficiency(128) <= found["deep"][1].efficiency(128)
