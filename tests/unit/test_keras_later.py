"""Keras starts without scikit-learn and matplotlib, and both are there for whoever uses them."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SCRIPT = """
import inspect, sys
import keras

inspect.getmodule(inspect.currentframe())  # asks every module for its __file__
print([name for name in ("sklearn", "matplotlib.figure") if name in sys.modules])

estimator = keras.wrappers.SKLearnClassifier(keras.Sequential)
print("sklearn" in sys.modules, isinstance(estimator, sys.modules["sklearn.base"].BaseEstimator))

import matplotlib
matplotlib.use("agg")
from matplotlib.pyplot import *
import matplotlib.pyplot as plt
print(plt.figure().number, callable(subplots), plt.__spec__.loader is plt.__loader__)
print(callable(keras.visualization.plot_image_gallery), "__getattr__" in vars(plt))
"""


def test_they_are_loaded_at_their_first_use() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said == ["[]", "True True", "1 True True", "True False"], done.stdout
