"""The lock is whole, and what is imported is declared: by the tool alone, or with the course."""

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements/workshop.lock").read_text()
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]
BRINGS = importlib.metadata.packages_distributions()
# Rooms that `pip install scaleout` must be able to run without the course.
TOOL = ("cli", "jobs", "sweeps", "comparisons", "scaling", "doctor", "reports", "machine", "plots")
# What they import for the course alone, when they are asked to.
FOR_THE_COURSE = {"engines.py", "doctor/probe.py"}
# For another Python, which its test asks for and skips without.
ELSEWHERE = {"torch_steps.py": {"common"}}


def names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


BASE = names(PROJECT["project"]["dependencies"])
EVERYTHING = BASE | names([line for part in (*EXTRAS.values(), *GROUPS.values()) for line in part])


def locked(lock: str) -> dict[str, set[str]]:
    """{name: versions} of a lock; more than one version where Pythons differ."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock, re.M):
        pins.setdefault(name, set()).add(version)
    return pins


def test_the_lock_fits_what_is_asked_for_and_all_that_its_packages_need() -> None:
    pins = locked(LOCK)
    lines = [line for part in (*EXTRAS.values(), *GROUPS.values()) for line in part]
    queue = [Requirement(line) for line in [*PROJECT["project"]["dependencies"], *lines]]
    seen = {"scaleout"}
    while queue:
        need = queue.pop()
        name = canonicalize_name(need.name)
        if name != "scaleout":
            fits = [v for v in pins.get(name, ()) if need.specifier.contains(v, prereleases=True)]
            assert fits, f"the lock has no {need}"
        if name not in seen:
            seen.add(name)
            # Horovod's own metadata asks for what it is built with.
            lines = importlib.metadata.requires(name) or [] if name != "horovod" else []
            needs = [Requirement(line) for line in lines]
            queue += [n for n in needs if not n.marker or n.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize("lock", sorted(path.name for path in (ROOT / "requirements").iterdir()))
def test_every_package_of_a_lock_has_its_hash_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    for entry in re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.M)):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", entry, re.M), entry[:40]
    assert not re.search("://|-url|find-links", re.sub(r"^#.*\n", "", text, flags=re.M))


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports anywhere, its neighbours with a dot left out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
    return found - sys.stdlib_module_names - {"scaleout"}


def undeclared(path: Path, declared: set[str]) -> Iterator[str]:
    """What a file imports and none of these packages brings; what lies beside it is its own."""
    folders = (*path.parents[:2], ROOT / "tools")
    own = {beside.stem for folder in folders for beside in folder.iterdir()}
    own |= ELSEWHERE.get(path.name, set())
    for module in sorted(imported(path) - own):
        if not declared & {canonicalize_name(name) for name in BRINGS.get(module, [module])}:
            yield f"{path.relative_to(ROOT)} imports {module}"


@pytest.mark.parametrize("room", ["src", "tools", "tests", "solutions"])
def test_every_import_is_declared(room: str) -> None:
    beside = set(locked((ROOT / "requirements/torch.lock").read_text()))  # make torch
    rooms = {path.stem for path in (ROOT / "tests").iterdir()}  # pytest's pythonpath
    declared = EVERYTHING | (rooms if room == "tests" else set())
    declared |= beside if room == "solutions" else set()
    found = [
        missing
        for path in sorted((ROOT / room).rglob("*.py"))
        for missing in undeclared(path, declared)
    ]
    assert found == []


def test_the_tool_needs_nothing_of_the_course() -> None:
    package = ROOT / "src/scaleout"
    files = [
        path
        for room in TOOL
        for path in [*package.glob(f"{room}*.py"), *package.rglob(f"{room}/*.py")]
    ]
    search = BASE | names(EXTRAS["search"])
    found = [
        missing
        for path in files
        if str(path.relative_to(package)) not in FOR_THE_COURSE
        for missing in undeclared(path, search if path.parent.name == "sweeps" else BASE)
    ]
    assert files and found == []
