"""Try what comes next, before it stops a class: which notebook would each newer upstream stop?

    make canary

The newest TensorFlow, without Horovod and on Python 3.13 (where that is not here, on the newest that
is, and the table says so), the newest scikit-learn-intelex, MPICH 5, and two successors of nbval:
each in an environment of its own in .side/canary. Labs run in their short form on two ranks, 11's
parameter server on four; a notebook is stopped where a script of its topic does not run to its end.
About 700 MB to download, and 10 to 16 minutes. docs/frameworks.md has the table of such a run."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from setup_env import ROOT, Stop, say
from side_env import SIDE, one_at_a_time, pip

MAKER = "make canary"
FOLDER = SIDE / "canary"
SCALEOUT = str(Path(sys.executable).with_name("scaleout"))
TOOL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
DATA = ["scikit-learn", "pillow", "h5py", "lmdb"]
QUICK = os.environ | {"SCALEOUT_QUICK": "1", "SCALEOUT_RESULTS": str(FOLDER / "results")}
# Scripts that need the upstream; by_mpi.py is 05 without Horovod.
TENSORFLOW = ["01_onednn/runme.py", "02_threads/training.py", "05_horovod/side/by_mpi.py"]
TENSORFLOW += ["08_precision/trained.py", "10_input/runme.py", "11_parallelism/more/server.py"]
DAAL4PY = ["04_kmeans/runme.py", "04_kmeans/modes.py", "04_kmeans/linear.py"]
MPI = [f"{topic}/runme.py" for topic in ("00_welcome", "03_spmd", "04_kmeans", "05_horovod")]
MPI += [f"11_parallelism/{name}.py" for name in ("runme", "more/alltoall", "more/server")]
MPI += ["12_capstone/runme.py"]
RANKS = {"11_parallelism/more/server.py": 4}  # all others: 2
PYTHONS = ("python3.13", "python3.12")  # that the newest TensorFlow is tried on, the newest first
CHANGED = {"cell_type": "code", "source": "print('after')", "metadata": {}, "execution_count": 1}
CHANGED |= {"outputs": [{"output_type": "stream", "name": "stdout", "text": "before\n"}]}


def environment(name: str, python: str, *packages: str) -> Path:
    """A new environment with these packages, which also finds our own source; its Python."""
    folder = FOLDER / name
    own = folder / "bin" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    pip(MAKER, folder, [python, "-m", "venv", str(folder)])
    pip(MAKER, folder, [str(own), "-m", "pip", "install", "--only-binary", ":all:", *packages])
    site = next(folder.glob("lib/python3*/site-packages"))
    site.joinpath("ours.pth").write_text(f"{ROOT / 'src'}\n")
    return own


def starts(name: str) -> bool:
    """pyenv has shims on PATH for Pythons that it will not start."""
    command = [name, "-c", "import ensurepip, venv"]
    return bool(shutil.which(name)) and subprocess.run(command, capture_output=True).returncode == 0


def newest() -> tuple[str, str]:
    """The newest Python that is here, and what to say of it; "" of the one that was wanted."""
    found = next((name for name in PYTHONS if starts(name)), sys.executable)
    return found, "" if found == PYTHONS[0] else f", as no {PYTHONS[0]} starts here"


def version(python: Path, package: str) -> str:
    ask = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    return subprocess.check_output([str(python), "-c", ask, package], text=True).strip()


def stopped(scripts: Iterable[str], *words: str) -> str:
    """The topics whose scripts do not run to their end, each with what was said last."""
    found: dict[str, str] = {}
    for script in scripts:
        ranks = str(RANKS.get(script, 2))
        command = [SCALEOUT, "run", f"solutions/{script}", "-n", ranks, "-t", "1", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=QUICK, cwd=ROOT)
        lines = (done.stdout + done.stderr).splitlines()
        said = [line for line in lines if re.search(r"^(\[\d\] )?\w*(Error|Exception)\b", line)]
        if done.returncode:
            found.setdefault(script[:2], (said or lines or ["it said nothing"])[-1][:120])
    return "; ".join(f"{topic}: {why}" for topic, why in found.items()) or "none"


def tensorflow() -> tuple[str, str]:
    python, fallen_back = newest()
    own = environment("tensorflow", python, "tensorflow-cpu", "keras", *DATA, *TOOL)
    on = subprocess.check_output([str(own), "-V"], text=True).strip()
    ours = ROOT / "solutions"
    with_horovod = (path for path in ours.rglob("*.py") if "import horovod" in path.read_text())
    lost = {path.relative_to(ours).parts[0][:2] for path in with_horovod}
    others = stopped(TENSORFLOW, "--python", str(own))
    seen = f"{version(own, 'tensorflow-cpu')}, Keras {version(own, 'keras')}, {on}{fallen_back}"
    return seen, f"{', '.join(sorted(lost))}, which import Horovod; of the others {others}"


def intelex() -> tuple[str, str]:
    own = environment("intelex", sys.executable, "--pre", "scikit-learn-intelex", *DATA, *TOOL)
    return version(own, "scikit-learn-intelex"), stopped(DAAL4PY, "--python", str(own))


def mpich() -> tuple[str, str]:
    """Its mpirun and library, below the workshop's own Horovod, mpi4py and daal4py."""
    own = environment("mpich", sys.executable, "--pre", "mpich>=5.0.0a1")
    folder = own.parents[1]
    library = folder / "lib" / "libmpi.so.12"
    site = FOLDER / "mpich.toml"
    site.write_text(f'mpirun = "{folder}/bin/mpirun"\n[env]\nLD_PRELOAD = "{library}"\n')
    there = library.exists()
    said = stopped(MPI, "--site", str(site)) if there else "all: it has no libmpi.so.12"
    return version(own, "mpich"), said


def runner(package: str, *words: str) -> tuple[str, str]:
    """Whether it runs 00 whole, and whether it sees a cell that says something else than before."""
    own = environment(package, sys.executable, package, "ipykernel")
    kernel = own.parents[1] / "share/jupyter/kernels/python3/kernel.json"
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_text(json.dumps({"argv": argv, "display_name": "ours", "language": "python"}))
    changed = FOLDER / "changed.ipynb"
    spec = {"kernelspec": {"name": "python3", "display_name": "ours"}}
    book = {"cells": [CHANGED], "metadata": spec, "nbformat": 4, "nbformat_minor": 4}
    changed.write_text(json.dumps(book))

    def passes(book: Path) -> bool:
        command = [str(own), "-m", "pytest", "-q", "-c", os.devnull, *words, str(book)]
        done = subprocess.run(command, capture_output=True, env=QUICK, cwd=book.parent)
        return done.returncode == 0

    runs = "none" if passes(ROOT / "solutions/00_welcome.ipynb") else "00"
    sees = "passes over a changed output" if passes(changed) else "sees a changed output"
    return version(own, package), f"{runs}; it {sees}"


TRIALS: dict[str, Callable[[], tuple[str, str]]] = {
    "TensorFlow": tensorflow,
    "scikit-learn-intelex": intelex,
    "MPICH": mpich,
    "nbmake for nbval": lambda: runner("nbmake", "--nbmake"),
    "pytest-notebook for nbval": lambda: runner("pytest-notebook", "--nb-test-files"),
}


def bring() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    say(f"{datetime.now(UTC):%d %B %Y}\n\n| tried | version | it stops |\n|---|---|---|")
    for name, trial in TRIALS.items():
        try:
            seen, said = trial()
        except Stop as why:
            seen, said = "none", f"it cannot be had: {why}"
        say(f"| {name} | {seen} | {said} |")
    return 0


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
