"""TensorFlow, Keras and daal4py start sooner: each rank of a job waits for them before its first line.

Three things are done, and what a script gets of any of them is the same.

- **No garbage collector while they load.** Thousands of modules come in and nothing is thrown away, yet
  the collector looks through all of it again and again, and once more at the end of the process. It is
  put off while they load; what was loaded is then left out of its rounds (`gc.freeze`).
- **What few scripts use is loaded at its first use** (PEP 562). Keras 3 imports scikit-learn, matplotlib and
  pandas wherever they are installed, and TensorFlow the training loop of its former Keras, and its own names
  of 2019 a second and a third time; daal4py imports scikit-learn for models that others have trained. None
  of them has a switch.
- **Python's own distutils, where it has one.** TensorFlow asks distutils for one path, and setuptools would
  put a copy of its own in its place, which takes far longer to load.

The set-up puts this file and a line that imports it into .venv, where every Python of the workshop
reads it: it costs well below a millisecond. A conda environment is left as it is."""

import gc
import sys

LARGE = ("tensorflow", "keras", "torch", "daal4py", "pandas")
SELDOM = (
    "keras.wrappers",
    "keras._tf_keras.keras.wrappers",
    "keras.visualization",
    "keras._tf_keras.keras.visualization",
    "keras.src.visualization",
    "keras.src.trainers.data_adapters.array_slicing",  # and with it pandas
    "tensorflow.python.keras.engine.training_v1",  # and with it scipy.sparse
    "tensorflow._api.v2.compat.v1.compat.v1",
    "tensorflow._api.v2.compat.v1.compat.v2",
    "tensorflow._api.v2.compat.v2.compat.v1",
    "tensorflow._api.v2.compat.v2.compat.v2",
    "daal4py.mb",  # and with it scikit-learn and scipy.stats
    "daal4py.sklearn",
)


class Sooner:
    """Among the finders of sys.meta_path: finds the modules above, with a loader of our own."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "distutils" and WithoutCollector.loading:
            return _of_python_itself(name)
        if name not in LARGE and name not in SELDOM:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = (AtFirstUse if name in SELDOM else WithoutCollector)(spec.loader)
        return spec


def _of_python_itself(name):
    """The spec of Python's own package of that name; None where it has none (from 3.12)."""
    import sysconfig
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(name, [sysconfig.get_path("stdlib")])


class Loader:
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def load(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)


class WithoutCollector(Loader):
    """The collector rests while the module is loaded."""

    loading = False

    def exec_module(self, module):
        outermost, WithoutCollector.loading = not WithoutCollector.loading, True
        rests = not gc.isenabled()  # somebody's wish, or the module around this one
        gc.disable()
        try:
            self.load(module)
        finally:
            if not rests:
                gc.freeze()
                gc.enable()
            if outermost:
                WithoutCollector.loading = False
                _forget("distutils")


def _forget(package):
    """Who imports it next gets what setuptools or Python has for everybody."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


class AtFirstUse(Loader):
    """The module stays empty until it is asked for a name."""

    def exec_module(self, module):
        def first_use(name):
            # inspect, warnings and the like look for such names in every module
            if name.startswith("__") and name != "__all__":
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            vars(module).pop("__getattr__", None)
            self.load(module)
            return getattr(module, name)

        module.__getattr__ = first_use


sys.meta_path.insert(0, Sooner)
