"""One training by two frameworks, from the same weights: 05's by Horovod, and by PyTorch's
DistributedDataParallel.
"""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import records, settings
from ..comparisons.references import REFERENCE, Scripts, named, whose
from ..errors import ScaleoutError
from ..paths import show
from .pytorch import MISSING, missing, note, python

if TYPE_CHECKING:
    import pandas as pd


# The weights of 05's network as Keras has them.
SHAPES = ((5, 5, 1, 32), (32,), (5, 5, 32, 64), (64,), (3136, 128), (128,), (128, 10), (10,))
BRIEF = {"ranks": 2, "threads": 1, "schedule": "constant", "echo": False}


def twins(horovod: Scripts, ddp: Scripts) -> "pd.DataFrame":
    """One epoch of 05 from the same weights by Horovod and by DistributedDataParallel.

    Both losses come from one piece of code: that of ddp.py, which is given Horovod's weights, too.
    With SCALEOUT_QUICK=1, and without PyTorch, it is what a reference machine found.
    """
    import pandas as pd

    interpreter = python()
    if settings.quick() or not interpreter:
        file = ddp.folder / REFERENCE
        kept = named(file, "twins")
        if kept.empty:
            raise ScaleoutError(f"{MISSING} The reference machine, {show(file)}, has no 'twins'.")
        whose(kept, missing())
        return pd.DataFrame(kept["metrics.twins"].iloc[0]).set_index("framework")
    with tempfile.TemporaryDirectory() as folder:
        start = records.keep_checkpoint(folder, _drawn(), 0)
        begin = str(Path(folder, start))
        brief = {**BRIEF, "epochs": 1}
        ours = horovod.run(checkpoint=folder, **brief).records
        end = str(Path(folder, "checkpoint-000001.npz"))
        theirs = ddp.run(weights=begin, python=interpreter, **brief).records
        judged = ddp.run(weights=end, python=interpreter, **brief).records
    rows = []
    for name, frame, loss in (
        ("Horovod", ours, judged["metrics.losses"].iloc[0][0]),
        ("DDP", theirs, theirs["metrics.losses"].iloc[0][-1]),
    ):
        shares = frame["metrics.shares"].iloc[0]
        equal = len({share["end"] for share in shares}) == 1
        rows.append({"framework": name, "loss": loss, "steps": shares[0]["steps"], "equal": equal})
    one = theirs.assign(metrics=[{"twins": rows}])
    note("twins", one, [{"run_id": one.run_id.iloc[0], "variant": "twins"}])
    return pd.DataFrame(rows).set_index("framework")


def _drawn() -> list[Any]:
    """A checkpoint of 05 before its first step: epochs, weights, and an optimizer at rest."""
    rng = np.random.default_rng(0)
    weights = [
        rng.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape)
        if len(shape) > 1
        else np.zeros(shape)
        for shape in SHAPES
    ]
    weights = [weight.astype(np.float32) for weight in weights]
    at_rest = [np.int64(0), np.float32(0.01), *(np.zeros_like(weight) for weight in weights)]
    return [np.int64(0), *weights, *at_rest]
