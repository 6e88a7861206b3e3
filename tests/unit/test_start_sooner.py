"""TensorFlow, Keras and daal4py start sooner, and a script gets all that it would get without it."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SELDOM = """
import inspect, sys
import keras
import tensorflow as tf

inspect.getmodule(inspect.currentframe())  # asks every module for its __file__
unused = ["sklearn", "matplotlib.figure", "pandas", "scipy.sparse"]
unused += ["tensorflow._api.v2.compat.v1.compat.v1.nn"]
print([name for name in unused if name in sys.modules])

import pandas
network = keras.Sequential([keras.layers.Dense(1)])
network.compile("sgd", "mse")
table = pandas.DataFrame({"a": [1.0, 2.0]})  # which Keras splits as it splits arrays
print(sorted(network.fit(table, table.a, validation_split=0.5, verbose=0).history))
print(tf.compat.v1.compat.v1.nn.relu is tf.compat.v1.nn.relu)

estimator = keras.wrappers.SKLearnClassifier(keras.Sequential)
print("sklearn" in sys.modules, isinstance(estimator, sys.modules["sklearn.base"].BaseEstimator))

import matplotlib
matplotlib.use("agg")
from matplotlib.pyplot import *
import matplotlib.pyplot as plt
print(plt.figure().number, callable(subplots), plt.__spec__.loader is plt.__loader__)
print(callable(keras.visualization.plot_image_gallery), "__getattr__" in vars(plt))
"""

DAAL4PY = """
import sys
import numpy as np
import daal4py

daal4py.kmeans_init(2, method="plusPlusDense").compute(np.eye(3))
print([name for name in ("sklearn", "scipy.stats") if name in sys.modules])

import daal4py.sklearn.linear_model  # a folder below one that was not loaded yet
from sklearnex.cluster import KMeans
print(KMeans(2, n_init=1, random_state=0).fit(np.eye(3)).cluster_centers_.shape)
print(callable(daal4py.mb.convert_model), "ensemble" in daal4py.sklearn.__all__)
"""


COLLECTOR = """
import gc, sys

seen = []
class Watch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "tensorflow.python":
            seen.append(gc.isenabled())
sys.meta_path.insert(0, Watch)
if sys.argv[1:] == ["off"]:
    gc.disable()
before = gc.get_freeze_count()
import tensorflow
print(seen[0], gc.isenabled(), gc.get_freeze_count() - before > 100_000)
print(tensorflow.__spec__.loader is tensorflow.__loader__, type(tensorflow.__loader__).__name__)
"""


DISTUTILS = """
import sys
import tensorflow

print([name for name in sys.modules if name.partition(".")[0] in ("distutils", "setuptools")])
import setuptools  # takes its place, and complains where Python's own was there before
import distutils
print("setuptools" in distutils.__file__)
"""


def _said(script: str, *args: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_collector_rests_while_tensorflow_is_loaded() -> None:
    assert _said(COLLECTOR) == ["False True True", "True SourceFileLoader"]
    assert _said(COLLECTOR, "off")[0] == "False False False", "who puts it off keeps it so"


def test_what_few_use_is_loaded_at_its_first_use() -> None:
    assert _said(SELDOM) == [
        "[]",
        "['loss', 'val_loss']",
        "True",
        "True True",
        "1 True True",
        "True False",
    ]


def test_daal4py_loads_scikit_learn_for_what_uses_it() -> None:
    assert _said(DAAL4PY) == ["[]", "(2, 3)", "True True"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has no distutils of its own")
def test_setuptools_does_not_notice_that_tensorflow_had_pythons_own_distutils() -> None:
    assert _said("import warnings; warnings.simplefilter('error', UserWarning)" + DISTUTILS) == [
        "[]",
        "True",
    ]
