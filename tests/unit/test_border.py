"""The border: who may import what, so that the lesson stays in the labs and the plumbing in the
package."""

import ast
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import scaleout

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(scaleout.__file__).parent
MODULES = sorted(module.name for module in pkgutil.walk_packages(scaleout.__path__, "scaleout."))
NEVER = {
    "tensorflow",
    "horovod",
    "daal4py",
    "mpi4py",
}  # loaded by a lab, at the moment that the lab chooses
FOR_LABS = {"data", "flags", "records"}
FOR_CHECKS = {"ScaleoutError", "data", "machine", "onednn", "todo"}

IMPORT_ALL = "import sys, importlib\nfor name in sys.argv[1:]: importlib.import_module(name)\n"
RUN = "import sys\nfrom scaleout import cli\nassert cli.main(['run', sys.argv[1]]) == 0\n"
TELL = "import json; print(json.dumps(sorted(sys.modules)))"


def _loaded(code: str, *arguments: str, path: Path = PACKAGE.parent) -> set[str]:
    """The top-level modules that a fresh process has loaded after this code; path: where the
    package lies."""
    command = [sys.executable, "-c", code + TELL, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_importing_the_whole_package_loads_no_framework() -> None:
    loaded = _loaded(IMPORT_ALL, "scaleout", *MODULES)
    assert "scaleout" in loaded and not NEVER & loaded


@pytest.mark.mpi
def test_launching_a_job_loads_neither_a_framework_nor_anything_slow(script, results: Path) -> None:
    loaded = _loaded(RUN, str(script("print('ran')")))
    assert (
        "scaleout" in loaded
        and not (NEVER | {"numpy", "pandas", "matplotlib", "sklearn", "IPython"}) & loaded
    )


def _from_package(text: str) -> Iterator[str]:
    """What a text takes from the package: `data` for `from scaleout import data` and `import
    scaleout.kit.data`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scaleout":
            room = (node.module or "").partition(".")[2].removeprefix("kit.")
            yield from [room] if room else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name == "scaleout")
            yield from (
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.startswith("scaleout.")
            )


def _code(book: Path) -> str:
    """A notebook's code; lines for IPython are left out."""
    cells = json.loads(book.read_text())["cells"]
    lines = "\n".join(
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"
    ).splitlines()
    return "\n".join("pass" if re.match(r"[%!]", line) else line for line in lines)


def _files(pattern: str) -> list:
    """Of solutions/: what lies in labs/ and notebooks/ is made from it."""
    found = sorted((ROOT / "solutions").glob(pattern))
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in found]


@pytest.mark.parametrize("path", _files("*/runme.py"))
def test_a_lab_takes_only_data_records_and_flags(path: Path) -> None:
    assert set(_from_package(path.read_text())) <= FOR_LABS


@pytest.mark.parametrize("path", _files("*/checks.py"))
def test_checks_take_only_their_own_tool(path: Path) -> None:
    text = path.read_text()
    assert set(_from_package(text)) <= FOR_CHECKS
    assert not re.search(r"runme\.py|getsource", text), (
        "a check looks at what the job did, not at its text"
    )


@pytest.mark.parametrize("path", _files("*.ipynb"))
def test_a_notebook_takes_only_what_is_made_for_it(path: Path) -> None:
    assert set(_from_package(_code(path))) <= set(scaleout.__all__)
