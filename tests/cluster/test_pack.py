"""`make pack`: what is in the one file, and that it works read-only, in the environment's place and
elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import make_pack
import pytest

TOOLS = [name for name in ("mksquashfs", "unsquashfs") if not shutil.which(name)]
with_tools = pytest.mark.skipif(
    bool(TOOLS), reason=f"needs {', '.join(TOOLS)}: apt-get install squashfs-tools"
)
# Where .venv was there is nothing, then the pack.
ALONE = """
ip link set lo up && mount -t tmpfs none "$1" && mkdir -p "$3"
for at in "$3" "$1"; do
    mount -o loop,ro "$2" "$at"
    PATH="$at/bin:$PATH" LD_LIBRARY_PATH="$at/lib" sh -ec "$4"
done"""
USED = """
scaleout --version && jupyter lab --version && mpirun -n 2 python -m mpi4py -c '
import horovod.tensorflow as hvd, daal4py, scaleout, sys
hvd.init()
print(hvd.size(), "ranks in", sys.prefix, flush=True)'
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A small .venv."""
    prefix = tmp_path / "a place" / ".venv"
    for name, text in {
        "bin/tool": f"#!{prefix}/bin/python3.11\nprint('a tool')\n",
        "bin/mpicc": "#!/bin/sh\nexit\n",
        "lib/one.py": "1\n",
        ".scaleout/packages": "a stamp",
        ".scaleout/uv/wheel": "a cache",
    }.items():
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(text)
        (prefix / name).chmod(0o755)
    (prefix / "bin/python").symlink_to(sys.executable)
    return prefix


@with_tools
def test_the_pack_holds_all_and_its_scripts_start_the_python_beside_them(
    environment: Path, tmp_path: Path
) -> None:
    target = tmp_path / "dist" / "venv.squashfs"
    make_pack.pack(environment, target, dict(os.environ))
    there = tmp_path / "there"
    subprocess.run(["unsquashfs", "-q", "-n", "-d", there, target], check=True)

    def files(folder: Path) -> set[str]:
        return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}

    assert files(there) == files(environment) - {".scaleout/uv/wheel"}
    assert list(target.parent.iterdir()) == [target]
    shutil.rmtree(environment)
    done = subprocess.run([there / "bin/tool"], capture_output=True, text=True, check=True)
    assert done.stdout == "a tool\n"
    assert (there / "bin/mpicc").read_text() == "#!/bin/sh\nexit\n"


def test_without_mksquashfs_it_says_what_to_type(environment: Path, tmp_path: Path) -> None:
    with pytest.raises(make_pack.Stop) as stop:
        make_pack.pack(environment, tmp_path / "dist/venv.squashfs", {"PATH": str(tmp_path)})
    assert "type  sudo apt-get install squashfs-tools" in str(stop.value)
    assert not (tmp_path / "dist").exists()


@pytest.mark.choice
@pytest.mark.slow
@with_tools
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts, which only root may do")
def test_the_environment_itself_works_in_its_place_and_elsewhere_offline(tmp_path: Path) -> None:
    prefix, target, there = Path(sys.prefix), tmp_path / "venv.squashfs", tmp_path / "there"
    make_pack.pack(prefix, target, dict(os.environ))
    # The mounts and the network are this command's alone, and end with it.
    command = ["unshare", "--mount", "--net", "sh", "-ec", ALONE, "sh", prefix, target, there, USED]
    environ = {**os.environ, "PYTHONPATH": str(make_pack.ROOT / "src")}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    for place in (there, prefix):
        assert done.stdout.count(f"2 ranks in {place}\n") == 2, done.stderr
