"""The tool without the course: a wheel of this tree in an environment that has its dependencies and
nothing else, and a script that knows nothing of us."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import ROOT
from packaging.requirements import Requirement

pytestmark = [pytest.mark.mpi, pytest.mark.slow]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COURSE = ("tensorflow", "keras", "horovod", "daal4py", "sklearn", "jupyterlab", "IPython", "torch")
# What it takes is counted, not timed: the figures are the same on every machine.
FOREIGN = '''
"""Fit a line by gradient descent."""
import argparse

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
rng = np.random.default_rng(args.seed)
x = rng.standard_normal((200, 5))
y = x @ np.arange(5)
w, v, steps = np.zeros(5), np.zeros(5), 0
while np.mean((x @ w - y) ** 2) > 1e-3:
    v = args.momentum * v - 0.02 * x.T @ (x @ w - y) / len(x)
    w, steps = w + v, steps + 1
print(f"steps: {steps}")
print(f"accuracy: {100 - np.abs(w - np.arange(5)).max():.6f}")
'''
TABLE = "nodes,rate\n1,100\n2,198\n4,392\n8,770\n16,1500\n"


def _needed() -> set[str]:
    """The packages that the tool's own dependencies bring."""
    queue, found = [Requirement(line) for line in PROJECT["dependencies"]], set()
    while queue:
        need = queue.pop()
        if need.name not in found and (not need.marker or need.marker.evaluate({"extra": ""})):
            found.add(need.name)
            queue += map(Requirement, importlib.metadata.requires(need.name) or [])
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment. No network: the tool's dependencies come from our own, file by file, and
    pip, which installs the wheel, refuses it when one of them is missing."""
    folder = tmp_path_factory.mktemp("alone")
    env, source = folder / "env", folder / "source"
    ours = Path(sys.prefix)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True, timeout=300)
    for name in _needed():
        for file in importlib.metadata.files(name) or []:
            path = Path(os.path.normpath(str(file.locate())))
            if path.suffix != ".pyc" and path.is_relative_to(ours):
                copy = env / path.relative_to(ours)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy, follow_symlinks=False)
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "docs/errors.md"):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for words in (
        ["wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)],
        [
            "--python",
            str(env),
            "install",
            "--no-index",
            f"{folder}/scaleout-{PROJECT['version']}-py3-none-any.whl",
        ],
    ):
        done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return env


@pytest.fixture
def typed(alone: Path, tmp_path: Path) -> Callable[..., str]:
    """Types a command of the new environment in an empty folder; what it printed."""
    own = {
        k: v for k, v in os.environ.items() if not k.startswith(("SCALEOUT", "PYTHON", "VIRTUAL"))
    }
    own |= {"PATH": f"{alone / 'bin'}:/usr/bin:/bin", "SCALEOUT_LEASES": str(tmp_path / "leases")}
    (tmp_path / "fit.py").write_text(FOREIGN)
    (tmp_path / "table.csv").write_text(TABLE)

    def type_(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, env=own, cwd=tmp_path, timeout=300
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    return type_


def test_the_environment_has_nothing_of_the_course(typed: Callable[..., str]) -> None:
    look = f"import importlib.util as u; print([m for m in {COURSE} if u.find_spec(m)])"
    assert typed(f'python -c "{look}"') == "[]\n"
    assert typed("scaleout --version") == f"scaleout {PROJECT['version']}\n"


def test_it_runs_predicts_and_examines(typed: Callable[..., str]) -> None:
    run = typed("scaleout run fit.py -n 2 -t 1 -- --seed 3")
    assert re.search(r"^\$ mpirun -n 2 .*fit.py --seed 3$", run, re.M)
    assert {"[0] ", "[1] "} <= set(re.findall(r"^\[\d\] ", run, re.M))
    assert re.search(r"^ +32 +\d", typed("scaleout scaling table.csv --predict 32"), re.M)
    said = typed("scaleout doctor")
    assert "ranks 0 and 1 of 2 in mpi4py" in said and "tensorflow" not in said.lower()


def test_a_foreign_script_is_tuned_and_its_report_holds(
    typed: Callable[..., str], tmp_path: Path
) -> None:
    best = "python fit.py --momentum 0.9"
    swept = typed(
        "scaleout sweep -n 1 -t 1 --env MOMENTUM=0,0.5,0.9 --metric 'steps: ([0-9]+)' --lower "
        "-- python fit.py --momentum {MOMENTUM}"
    )
    assert re.search(r"MOMENTUM=0\.9", swept)
    compared = typed(
        "scaleout compare -t 1 --rounds 3 --metric 'steps: ([0-9]+)' --lower "
        f"-- python fit.py :: {best}"
    )
    assert f"{best[7:]}: faster" in compared or "faster" in compared
    for command in ("python fit.py", best):
        typed(
            "scaleout sweep -n 1 -t 1 --env SEED=1..5 --metric 'accuracy: ([0-9.]+)' "
            f"-- {command} --seed {{SEED}}"
        )
    assert "It holds: every rule is kept." in typed("scaleout report results --check")
    page = (tmp_path / "results/report.html").read_text()
    assert f"Written by scaleout {PROJECT['version']}." in page
