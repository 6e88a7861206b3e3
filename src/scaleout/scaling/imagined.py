"""Steps that were measured on one node, as they would be on many."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .step import NETWORKS, Step

if TYPE_CHECKING:
    import pandas as pd


def imagined(
    records: "pd.DataFrame", names: Iterable[str], links: Iterable[str]
) -> dict[str, list[Step]]:
    """Each network's step with each link between the nodes, for `plots.efficiency_of_networks`.

    Half of a step's time can hide messages.
    """
    own = records[records["metrics.framework"] == "tensorflow"].set_index("metrics.network")
    between = [NETWORKS[link] for link in links]
    return {
        name: [
            Step(
                compute_s=float(own.loc[name, "step_median_s"]),
                gradient_bytes=4.0 * float(own.loc[name, "metrics.parameters"]),
                network=link,
                overlap=0.5,
            )
            for link in between
        ]
        for name in names
        if name in own.index
    }
