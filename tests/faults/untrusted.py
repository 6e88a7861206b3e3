"""A small workshop in which every file is bad in its own way, and the answer of a command there, in
this one process."""

import contextlib
import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from scaleout import cli
from scaleout.course.masters import generate
from scaleout.launch import local

__all__ = ["FILES", "answer", "at_work", "tree"]

MASTER = """import sys
# TODO 1: a number.
# BEGIN SOLUTION
number = 1
# END SOLUTION
"""
CHECKS = """from scaleout import todo
@todo(1, hints=["one"])
def one(job):
    \"\"\"It is one.\"\"\"
    job()
"""

GOOD = "nodes,rate\n1,100\n2,190\n4,360\n8,650\n"
TABLES: dict[str, bytes | str] = {
    "good": GOOD,
    "empty": "",
    "few": "nodes,rate\n1,100\n2,190\n",
    "words": GOOD + "sixteen,many\n",
    "nan": GOOD + "16,nan\n",
    "twice": "nodes,rate,rate\n1,2,3\n",
    "semicolons": "nodes;rate\n1;2,5\n",
    "binary": bytes(range(256)) * 40,
}
SITES: dict[str, bytes | str] = {
    "slurm": 'scheduler = "slurm"\npartition = "class"\n',
    "good": "",
    "key": 'mpirum = "x"\n',
    "toml": "mpirun = \n",
    "type": "mpirun = 5\n",
    "options": 'options = "-x"\n',
    "env": 'env = "A=1"\n',
    "cores": "cores = -1\n",
    "launcher": 'launcher = "prun"\n',
    "bind": 'bind = "socket"\n',
    "hostsoption": 'hosts = ["-V"]\n',
    "hoststwice": 'hosts = ["a", "a"]\n',
    "sshalone": 'ssh = "ssh"\n',
    "scheduler": 'scheduler = "pbs"\n',
    "alone": 'partition = "short"\n',
    "start": 'scheduler = "slurm"\nstart = "prun"\n',
    "partitionline": 'scheduler = "slurm"\npartition = "a\\n#SBATCH --x"\n',
    "minutes": 'scheduler = "slurm"\nminutes = 0\n',
    "sbatchline": 'scheduler = "slurm"\nsbatch = ["--x\\nrm y"]\n',
    "array": 'scheduler = "slurm"\nsbatch = ["--array=0-1"]\n',
    "modules": 'scheduler = "slurm"\nmodules = ["a;b"]\n',
    "scratch": 'scheduler = "slurm"\nscratch = "here"\n',
    "scratchunset": 'scheduler = "slurm"\nscratch = "$NO_SUCH_VARIABLE"\n',
    "both": 'scheduler = "slurm"\nhosts = ["a"]\n',
    "openmpislurm": 'scheduler = "slurm"\nlauncher = "openmpi"\n',
}
FILES: dict[str, bytes | str] = {
    **{f"csv/{name}.csv": text for name, text in TABLES.items()},
    **{f"sites/{name}.toml": text for name, text in SITES.items()},
    "train.py": "print(1)\n",
    "-x.py": "print(1)\n",
    "train.sh": "true\n",
    "train.ipynb": "{}",
    "bad/00_tiny/run/records.jsonl": "[" * 100_000 + "\n",
    "bad/00_tiny/checks.jsonl": '{"todo": {}, "state": 3}\n',
    "labs/01_broken/runme.py": "",
    "labs/01_broken/checks.py": "def broken(:\n",
    "labs/03_gone/runme.py": "",
    "labs/05_empty/runme.py": "",
    "labs/05_empty/checks.py": "",
    "labs/16_nohints/runme.py": "",
    "labs/16_nohints/checks.py": CHECKS.replace('"one"', ""),
}


@contextlib.contextmanager
def at_work(folder: Path) -> Iterator[Path]:
    """Makes the workshop in a new folder, and works there; whoever starts a job fails."""

    def started(*words: object, **more: object) -> NoReturn:
        raise AssertionError("a job was started")

    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.mkfifo(folder / "fifo.toml")
    (folder / "empty").mkdir()
    (folder / "notebooks").mkdir()
    (folder / "solutions/00_tiny").mkdir(parents=True)
    (folder / "solutions/00_tiny/runme.py").write_text(MASTER)
    (folder / "solutions/00_tiny/checks.py").write_text(CHECKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SCALEOUT_RESULTS", str(folder.parent / "results"))
        patch.delenv("SCALEOUT_RECORDS", raising=False)
        patch.setattr(local, "_stream", started)
        generate()
        yield folder


def answer(words: list[str]) -> tuple[int, str, str]:
    """Exit status, standard output and error of a command, run in this process."""
    out, errors = io.StringIO(), io.StringIO()
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = cli.main(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        for number, handler in signals.items():
            signal.signal(number, handler)
    return status, out.getvalue(), errors.getvalue()


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and time."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            about = os.lstat(os.path.join(where, name))
            size = about.st_size if name in files else 0
            changed = about.st_mtime_ns if name in files else 0
            found[os.path.relpath(os.path.join(where, name), folder)] = (size, changed)
    return found
