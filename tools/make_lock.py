"""Choose all versions anew: write requirements/workshop.lock from pyproject.toml (make lock).

uv resolves for both Pythons at once, in a throwaway environment. It keeps the files that fit Linux
on x86-64; what is written here holds versions and hashes, and no address: whoever installs may use
an index of their own."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = "uv==0.13.9"
PLATFORM = "platform_machine == 'x86_64' and sys_platform == 'linux'"
HEADER = "# Written by: make lock. Every package for Python 3.11 and 3.12 on Linux x86-64, from pyproject.toml.\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", UV], check=True)
        shutil.copy(ROOT / "pyproject.toml", folder)
        uv = [python, "-m", "uv", "--quiet", "--project", folder]
        subprocess.run([*uv, "lock", "--python", sys.executable], check=True)
        export = [
            "export",
            "--frozen",
            "--all-extras",
            "--all-groups",
            "--no-emit-project",
            "--no-annotate",
            "--no-header",
        ]
        text = subprocess.run([*uv, *export], check=True, stdout=subprocess.PIPE, text=True).stdout
    # Everything here is for that platform: its marker on each line says nothing.
    text = re.sub(rf" ; {PLATFORM}| and {PLATFORM}", "", text)
    (ROOT / "requirements/workshop.lock").write_text(HEADER + text)
    print(f"requirements/workshop.lock: {text.count('==')} pins, {text.count('--hash=')} hashes")


if __name__ == "__main__":
    main()
