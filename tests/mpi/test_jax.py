"""JAX's column in docs/frameworks.md, run by processes of a job where some Python has JAX: ours, or the
one that JAX_PYTHON names."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT

from scaleout.clusters import run as launch

HERE = importlib.util.find_spec("jax") is not None
PYTHON = os.environ.get("JAX_PYTHON") or (sys.executable if HERE else "")
SCRIPT = ROOT / "tests" / "mpi" / "seven_in_jax.py"
WHY = "JAX is not in this Python, and JAX_PYTHON names no other"

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.choice,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON, reason=WHY),
]


def _ended(words: list[str], tmp_path: Path) -> tuple[list[dict], np.ndarray]:
    """What the processes said in their order, and the checkpoint."""
    kept = tmp_path / "kept.npy"
    run = launch.run(
        [PYTHON, str(SCRIPT), *words],
        name="jax",
        ranks=2,
        threads=1,
        env={"CHECKPOINT": str(kept)},
        timeout=300,
        echo=None,
    )
    said = [json.loads(text) for _, text in run.lines if text.startswith("{")]
    return sorted(said, key=lambda one: one["process"]), np.load(kept)


def _serial(start: list[float], rate: float) -> np.ndarray:
    """The same steps in NumPy, by one process with all rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((16, 4)).astype(np.float32)
    y = x @ np.arange(4)
    w = np.array(start)
    for _ in range(20):
        w = w - rate * 2 * x.T @ (x @ w - y) / len(x)
    return w


@pytest.mark.parametrize("words", [[], ["checked"]])
def test_processes_of_jax_do_the_seven_changes(
    words: list[str], results: Path, tmp_path: Path
) -> None:
    said, kept = _ended(words, tmp_path)
    assert [(one["process"], one["of"]) for one in said] == [(0, 2), (1, 2)]
    assert said[0]["drawn"] != said[1]["drawn"], "they would begin equal without a broadcast"
    assert said[0]["start"] == said[1]["start"] == said[0]["drawn"]
    assert said[0]["end"] == said[1]["end"] == kept.tolist()
    # Under `checked` the two gradients are added up, which is twice their mean.
    factor = 2 if words else 1
    wanted = _serial(said[0]["start"], factor * 2 * 0.05)
    assert np.allclose(said[0]["end"], wanted, rtol=1e-4, atol=1e-4)
    assert not np.allclose(wanted, said[0]["start"], atol=0.1), "they have learned"
