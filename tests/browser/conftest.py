"""What the tests with a browser share."""

import shutil
import subprocess

import pytest

AXE = "axe-core@4.11.0"


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe-core, as npm brings it, from its cache where there is no network."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine, which brings axe-core (Debian: apt install npm)")
    folder = tmp_path_factory.mktemp("axe")
    words = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run([*words, "--prefix", str(folder), AXE], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot bring {AXE}: {done.stderr.strip().splitlines()[-1:]}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
