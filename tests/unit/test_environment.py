"""pyproject.toml, requirements.lock and environment.yml say the same, the lock is whole, and what is
imported is declared."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
CONDA = (ROOT / "environment.yml").read_text()


def direct(project: str) -> dict[str, str]:
    """{name: version} of what pyproject.toml names, groups included."""
    table = tomllib.loads(project)
    lines = table["project"]["dependencies"] + [
        line for group in table["dependency-groups"].values() for line in group
    ]
    return dict(line.split("==") for line in lines)


def locked(lock: str) -> dict[str, set[str]]:
    """{name: versions} of the lock; more than one version where Pythons differ."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock, re.M):
        pins.setdefault(name, set()).add(version)
    return pins


def disagreements(project: str, lock: str, conda: str) -> list[str]:
    """What the three files contradict one another in; empty when all is well."""
    wanted, pins, environment = direct(project), locked(lock), yaml.safe_load(conda)["dependencies"]
    found = [
        f"{n}=={v} is not in requirements.lock" for n, v in wanted.items() if pins.get(n) != {v}
    ]

    wheels = dict(line.split("==") for line in environment[-1]["pip"])
    built_later = {"horovod": wanted["horovod"]}
    if f"horovod=={wanted['horovod']}" not in conda:
        found.append("environment.yml names another horovod")
    for name, version in sorted(wanted.items() ^ (wheels | built_later).items()):
        found.append(f"{name}=={version} is in one of pyproject.toml and environment.yml")
    metadata = {
        m["name"]: m["version"] for m in tomllib.loads(project)["tool"]["uv"]["dependency-metadata"]
    }
    if metadata != built_later:
        found.append("pyproject.toml gives the needs of another horovod")
    if not {"python=3.11", "gxx_linux-64=13", "make"} <= {
        line for line in environment if isinstance(line, str)
    }:
        found.append("environment.yml lacks a Python, a compiler or make that work")

    for entry in re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", lock)):
        if not re.search(r"--hash=sha256:[0-9a-f]{64}$", entry, re.M):
            found.append(f"no hash: {entry[:40]}")
    found += [
        f"an address in the lock: {line}"
        for line in lock.splitlines()
        if re.search("://|-url|find-links", line)
    ]
    return found


def test_the_three_files_agree():
    assert disagreements(PROJECT, LOCK, CONDA) == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("project", "numpy==2.0.2", "numpy==2.0.1"),
        ("project", '    "tqdm==4.70.1",\n', ""),
        ("project", '    "pytest==9.2.0",\n', '    "pytest==9.2.0",\n    "tox==4.0",\n'),
        ("project", 'name = "horovod"\nversion = "0.28.1"', 'name = "horovod"\nversion = "0.28.0"'),
        ("lock", "numpy==2.0.2", "numpy==2.1.0"),
        ("lock", "horovod==0.28.1", "horovodo==0.28.1"),
        ("lock", r"(mpich==4.3.2) \\\n.*\n", r"\1\n"),
        ("lock", "^", "--index-url https://example.org/simple\n"),
        ("conda", "mpi4py==4.1.2", "mpi4py==4.1.1"),
        ("conda", "      - ruff==.*\n", ""),
        ("conda", "horovod==0.28.1", "horovod==0.27"),
        ("conda", "gxx_linux-64=13", "gxx_linux-64=14"),
    ],
)
def test_a_change_in_one_file_is_noticed(file, old, new):
    files = {"project": PROJECT, "lock": LOCK, "conda": CONDA}
    changed = re.sub(old, new, files[file], count=1)
    assert changed != files[file]
    assert disagreements(**(files | {file: changed})) != []


def needs(lock: dict[str, set[str]], first: list[str]) -> list[str]:
    """What the installed packages that `first` leads to need and the lock does not hold."""
    missing, seen, queue = [], set(), list(first)
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in importlib.metadata.requires(name) or []:
            need = Requirement(line)
            if need.marker and not need.marker.evaluate({"extra": ""}):
                continue
            target = canonicalize_name(need.name)
            if not any(
                need.specifier.contains(version, prereleases=True)
                for version in lock.get(target, ())
            ):
                missing.append(f"{name} needs {line}")
            else:
                queue.append(target)
    return missing


def test_the_lock_holds_all_that_its_packages_need():
    names = [
        name for name in direct(PROJECT) if name != "horovod"
    ]  # its own metadata asks for what it is built with
    assert needs(locked(LOCK), names) == []


def test_a_package_missing_from_the_lock_is_noticed():
    pins = locked(LOCK)
    del pins["traitlets"]
    assert any("traitlets" in line for line in needs(pins, ["jupyterlab"]))


def imported(text: str) -> set[str]:
    """The top-level modules that a text imports anywhere, its own neighbours with a dot left out."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
    return found


# Scripts for an environment beside ours (make torch), whose lock declares what they import.
BESIDE = dict.fromkeys(
    (
        "torch_split.py",
        "torch_loader.py",
        "ddp.py",
        "fsdp.py",
        "networks_torch.py",
    ),
    (ROOT / "requirements-torch.lock").read_text(),
)
# For another Python, which its test asks for and skips without.
ELSEWHERE = {"seven_in_jax.py": {"jax"}}


def undeclared(files: Iterable[tuple[Path, str]], declared: Iterable[str]) -> list[str]:
    """What files import and no declared package brings; a script may import what lies beside it."""
    brings = importlib.metadata.packages_distributions()
    names = {canonicalize_name(name) for name in declared}
    found = []
    for path, text in files:
        rooms = [room.stem for room in (ROOT / "tests").iterdir()]  # pytest's pythonpath
        beside = [*path.parent.glob("*.py"), *path.parents[path.parent.name == "more"].glob("*.py")]
        own = {"scaleout", *rooms, *(file.stem for file in beside)}
        own |= set(locked(BESIDE[path.name])) if path.name in BESIDE else set()
        own |= ELSEWHERE.get(path.name, set())
        for module in sorted(imported(text) - own - sys.stdlib_module_names):
            if not names & {canonicalize_name(name) for name in brings.get(module, [])}:
                found.append(f"{path.relative_to(ROOT)} imports {module}")
    return found


FILES = [
    (path, path.read_text())
    for room in ("src", "tools", "tests", "solutions")
    for path in sorted((ROOT / room).rglob("*.py"))
    if path.parent.name != "starters"  # copies of solutions
]


def test_every_import_is_declared():
    assert len(FILES) > 100
    assert undeclared(FILES, direct(PROJECT)) == []


@pytest.mark.parametrize("name", ["scipy", "pyyaml", "pillow", "ml-dtypes", "pyzmq", "ipython"])
def test_an_import_that_nobody_declares_is_noticed(name):
    rest = [declared for declared in direct(PROJECT) if declared != name]
    assert undeclared(FILES, rest) != []


def test_an_import_inside_a_function_counts():
    text = (
        "import os\nfrom . import near\ndef f():\n    from zope.interface import x\n    import tox"
    )
    assert imported(text) == {"os", "zope", "tox"}
    assert undeclared([(ROOT / "tools/x.py", text)], direct(PROJECT)) == [
        "tools/x.py imports tox",
        "tools/x.py imports zope",
    ]
