"""Keras loads scikit-learn and matplotlib when somebody uses what needs them, not at its own start.

Keras 3 imports both wherever they are installed, for keras.wrappers and keras.visualization: a quarter
of the seconds that each rank of a TensorFlow job needs before its first line. Keras has no switch for
that, and a package that is hidden is missing to a script that wants it. So the two imports are put off
(PEP 562): the first name that anybody asks one of these modules for loads it, whole.

The set-up puts this file and a line that imports it into .venv, where every Python of the workshop
reads it: it costs well below a millisecond. A conda environment is left as it is."""

import sys

WRAPPERS = ("keras.wrappers", "keras._tf_keras.keras.wrappers")
PYPLOT = "matplotlib.pyplot"
GALLERY = "keras.src.visualization.plot_image_gallery"


class Later:
    """Among the finders of sys.meta_path: finds the modules that are put off."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in WRAPPERS and not (name == PYPLOT and _is_loading(GALLERY)):
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = AtFirstUse(spec.loader)
        return spec


class AtFirstUse:
    """A loader whose module stays empty until it is asked for a name."""

    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        def first_use(name):
            # inspect, warnings and the like look for such names in every module
            if name.startswith("__") and name != "__all__":
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            vars(module).pop("__getattr__", None)
            module.__spec__.loader = module.__loader__ = self.loader
            self.loader.exec_module(module)
            return getattr(module, name)

        module.__getattr__ = first_use


def _is_loading(name):
    return name in sys.modules and getattr(sys.modules[name].__spec__, "_initializing", False)


sys.meta_path.insert(0, Later)
