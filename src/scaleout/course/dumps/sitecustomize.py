"""Loaded by Python in each rank of a check's job: says where the rank stands when its limit is near
and when it crashes in native code, so that a check can name the line."""

import faulthandler
import importlib.machinery
import importlib.util
import os
import sys

faulthandler.enable()
if "CHECK_DUMP_S" in os.environ:
    # Once, and late: it looks at threads that go on working, which has ended jobs that were well.
    faulthandler.dump_traceback_later(float(os.environ["CHECK_DUMP_S"]))

# Whatever else would have been loaded under this name.
_elsewhere = [path for path in sys.path if path != os.path.dirname(__file__)]
_other = importlib.machinery.PathFinder.find_spec("sitecustomize", _elsewhere)
if _other and _other.loader:
    _other.loader.exec_module(importlib.util.module_from_spec(_other))
