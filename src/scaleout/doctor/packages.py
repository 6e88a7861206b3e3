"""What the doctor concludes about the environment's packages, compiler and notebook kernel."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .checks import REBUILD, Check, _pip, short

# The versions below which a package is known to be broken here; of the others only the pin speaks.
BROKEN = {
    "ipykernel": ("<7.1", "7.0 breaks ipyparallel"),
    "jupyter-server": ("<2.21.1", "older ones have known security holes"),
}
# One stack, built against each other: another version is a failure. The notebook's may differ with
# a warning.
STACK = ("tensorflow-cpu", "horovod", "mpich", "mpi4py", "scikit-learn-intelex")
PACKAGES = (*STACK, "ipyparallel", "ipykernel", "jupyter-server")


def versions(wanted: Mapping[str, str], found: Mapping[str, str], python: str) -> Iterator[Check]:
    """Python and each of PACKAGES against its pin."""
    from packaging.specifiers import SpecifierSet

    def fits(version: str, specifier: str) -> bool:
        return SpecifierSet(specifier).contains(version, prereleases=True)

    if fits(python, wanted.get("python", "")):
        yield Check("python", "ok", f"{python}, {short(sys.prefix)}")
    else:
        seen = f"{python}, but the workshop needs {wanted['python']}"
        yield Check("python", "fail", seen, f"{REBUILD} PYTHON=python3.11")
    for name in (name for name in PACKAGES if name in wanted):
        pin, version = wanted[name], found.get(name)
        broken, why = BROKEN.get(name, ("", ""))
        fix = REBUILD if name == "horovod" else _pip(name + (pin or broken.replace("<", ">=")))
        if version is None:
            yield Check(name, "fail", "is not installed", fix)
        elif broken and fits(version, broken):
            yield Check(name, "fail", f"{version}: {why}", fix)
        elif not fits(version, pin):
            seen = f"{version}, but pyproject.toml pins {pin}"
            yield Check(name, "fail" if name in STACK else "warn", seen, fix)
        else:
            yield Check(name, "ok", version)


def bytecode(package: str, folder: str, compiled: bool) -> Check:
    """Whether Python finds a package compiled; else each process compiles it in memory."""
    if compiled:
        return Check("bytecode", "ok", f"{package} is compiled")
    seen = f"{package} is not compiled to bytecode: every process of every job starts seconds later"
    return Check(
        "bytecode", "warn", seen, f"{short(sys.executable)} -m compileall -q -j 0 {short(folder)}"
    )


def compiler(path: str | None, version: str) -> Check:
    """The C++ compiler: needed to build Horovod, not to use it."""
    if path and version:
        return Check("compiler", "ok", f"{path} {version}")
    fix = "apt-get install g++   (with conda: conda install -c conda-forge gxx=13)"
    return Check("compiler", "warn", "no C++ compiler: Horovod could not be built anew", fix)


def kernel(spec: Mapping[str, Any], prefix: str, environ: Mapping[str, str]) -> Check:
    """The `python3` kernel."""
    name = "notebook kernel"
    install = f"{short(sys.executable)} -m ipykernel install --sys-prefix"
    if not spec:
        return Check(name, "fail", "Jupyter finds no kernel named python3", install)
    if prefix and os.path.realpath(prefix) == os.path.realpath(sys.prefix):
        return Check(name, "ok", f"python3 is this environment, {short(spec['folder'])}")
    whose = prefix or f"{spec['argv'][0]}, which does not run"
    seen = f"python3 is another environment's: {whose} (from {spec['folder']})"
    for variable in ("JUPYTER_PATH", "JUPYTER_DATA_DIR"):
        folders = [folder for folder in environ.get(variable, "").split(os.pathsep) if folder]
        if any(Path(spec["folder"]).is_relative_to(folder) for folder in folders):
            return Check(name, "fail", seen, f"unset {variable}")
    return Check(name, "fail", seen, f"{install} && export JUPYTER_PREFER_ENV_PATH=1")
