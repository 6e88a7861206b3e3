"""The untouched labs are texts that come with the package: in step, whole, never imported."""

import pkgutil
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import scaleout
from scaleout.course.cutting import numbers

ROOT = Path(__file__).resolve().parents[3]
TOPICS = {path.parent.name for path in (ROOT / "labs").glob("*/runme.py")}


def test_every_lab_has_its_starter_and_nothing_else_lies_there() -> None:
    there = {path.name for path in (ROOT / "src/scaleout/course/starters").iterdir()}
    others = {
        f"{path.parent.name}-{path.name}"
        for path in (ROOT / "labs").glob("*/*.py")
        if path.name != "runme.py" and numbers(path.read_text())
    }
    assert TOPICS and there == {f"{topic}.py" for topic in TOPICS} | others


def test_starters_are_no_modules() -> None:
    modules = {module.name for module in pkgutil.walk_packages(scaleout.__path__, "scaleout.")}
    assert "scaleout.course.lab" in modules
    assert not [name for name in modules if "starters" in name]


def test_an_installed_wheel_has_the_starters(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    left_out = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=left_out)
    build = "from setuptools import build_meta; build_meta.build_wheel('out')"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((tmp_path / "out").glob("*.whl"))) as wheel:
        inside = set(wheel.namelist())
    assert {f"scaleout/course/starters/{topic}.py" for topic in TOPICS} <= inside
    assert "scaleout/course/dumps/sitecustomize.py" in inside
