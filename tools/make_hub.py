"""Bring JupyterHub and a proxy for it to an environment of its own, .side/hub, which has the workshop's
packages and programs too.

    make hub

docs/hub.md says how a class uses it. Versions and hashes stand in requirements/hub.lock: what JupyterHub
needs beside requirements/workshop.lock. Its Python must be one that everybody on this machine may run."""

import os
import sys
import sysconfig
from pathlib import Path

from setup_env import ROOT, Stop
from side_env import SIDE, make_whole, one_at_a_time, pip, said, two_ranks

MAKER = "make hub"
LOCK = ROOT / "requirements/hub.lock"
FOLDER = SIDE / "hub"
OURS = Path(sys.prefix)
NEEDED_GIB = 0.2
PROOF = """
import jupyterhub, jupyterlab, tensorflow
from mpi4py import MPI
print("ranks", MPI.COMM_WORLD.allreduce(1), "JupyterHub", jupyterhub.__version__, flush=True)
"""


def open_to_all(file: Path) -> bool:
    """Whether every user of this machine can reach and read it."""
    there = file.resolve()
    way = all(folder.stat().st_mode & 0o001 for folder in there.parents)
    return way and there.stat().st_mode & 0o005 == 0o005


def python_for_all() -> str:
    """This Python, or another of the same version; Stop when all of them are closed to others."""
    name = "python{}.{}".format(*sys.version_info)
    folders = [*os.get_exec_path(), "/usr/local/bin", "/usr/bin"]
    known = [Path(sys._base_executable), *(Path(folder) / name for folder in folders)]  # type: ignore[attr-defined]
    for python in known:
        if python.exists() and open_to_all(python):
            return str(python.resolve())
    raise Stop(
        f"People on a hub must be able to run its Python, and {known[0]} is closed to them: install {name} from "
        f"your system's packages, then type  {MAKER}  again."
    )


def take_in_ours() -> None:
    """The workshop's packages, programs and Jupyter's files, as if they had been installed here."""
    packages = next(FOLDER.glob("lib/python3*/site-packages"))
    packages.joinpath("workshop.pth").write_text(
        f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n"
    )
    links = [OURS / "etc" / "jupyter", OURS / "share" / "jupyter"]
    links += [file for file in OURS.glob("lib/*") if not file.name.startswith("python")]
    for program in OURS.glob("bin/*"):
        own = FOLDER / "bin" / program.name
        first, _, rest = program.read_bytes().partition(b"\n")
        if own.exists():  # the environment's own, such as python
            continue
        if first.startswith(b"#!") and b"python" in first:
            own.write_bytes(f"#!{FOLDER / 'bin' / 'python'}\n".encode() + rest)
            own.chmod(0o755)
        else:
            links.append(program)
    for file in links:
        own = FOLDER / file.relative_to(OURS)
        own.parent.mkdir(exist_ok=True)
        own.symlink_to(file)


def bring() -> int:
    base = python_for_all()

    def fill() -> str:
        pip(MAKER, FOLDER, [base, "-m", "venv", "--without-pip", str(FOLDER)])
        python = str(FOLDER / "bin" / "python")
        install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"]
        checked = ["--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
        pip(MAKER, FOLDER, [*install, *checked])
        take_in_ours()
        mpirun = FOLDER / "bin" / "mpirun"
        return said(two_ranks("JupyterHub", mpirun, [python, "-c", PROOF], {}))

    make_whole("JupyterHub", FOLDER, LOCK.read_text(), NEEDED_GIB, fill)
    return 0


if __name__ == "__main__":
    sys.exit(one_at_a_time(MAKER, bring))
