"""A small workshop in which every file is bad in its own way, and the answer of a command there, in
this one process."""

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from scaleout import cli
from scaleout.course.masters import generate
from scaleout.jobs import local

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


RECORD = {
    "schema": 1, "run_id": "r", "utc": "2026-01-01T00:00:00+00:00", "lab": "00_tiny", "variant": "",
    "ranks": 1, "nodes": 1, "threads_per_rank": 1, "batch_per_rank": None, "batch_global": None,
    "warmup_steps": 0, "step_s": [0.1, 0.1], "rate": 5.0, "rate_unit": "x/s", "metrics": {},
    "seed": 0, "host": "h", "cpu": "c", "cores": 2, "mpi": None, "versions": {}, "commit": None,
    "dirty": None,
}  # fmt: skip
GOOD = "nodes,rate\n1,100\n2,190\n4,360\n8,650\n"
TABLES: dict[str, bytes | str] = {
    "good": GOOD,
    "empty": "",
    "blank": "\n\n\n",
    "head": "nodes,rate\n",
    "nohead": "1,100\n2,190\n4,360\n8,650\n",
    "onecolumn": "nodes\n1\n2\n",
    "few": "nodes,rate\n1,100\n2,190\n",
    "same": "nodes,rate\n1,100\n1,101\n1,99\n1,100\n",
    "short": GOOD + "16\n",
    "words": GOOD + "sixteen,many\n",
    "zero": GOOD + "0,100\n",
    "minus": GOOD + "-4,100\n",
    "norate": GOOD + "16,0\n",
    "minusrate": GOOD + "16,-5\n",
    "nan": GOOD + "16,nan\n",
    "inf": GOOD + "16,inf\n",
    "tiny": GOOD + "16,1e-320\n",
    "small": GOOD + "16,1e-101\n",
    "big": GOOD + "16,1e200\n",
    "huge": GOOD + "1e300,100\n",
    "many": GOOD + "1e8,100\n",
    "digits": GOOD + "9" * 400 + ",5\n",
    "digits5000": GOOD + "9" * 5000 + ",5\n",
    "squared": GOOD + "²,5\n",
    "arabic": GOOD + "\u0661\u0666,5\n",
    "field": GOOD + "x" * 200_000 + ",5\n",
    "nul": GOOD + "16,\0\n",
    "quote": GOOD + '"16,5\n',
    "quotes": GOOD + '16,"5" "6"\n',
    "semicolons": GOOD.replace(",", ";"),
    "tabs": GOOD.replace(",", "\t"),
    "utf16": GOOD.encode("utf-16"),
    "latin": GOOD.encode() + b"16,\xe9\n",
    "binary": bytes(range(256)) * 40,
    "commas": "," * 50_000 + "\n",
    "wild": "nodes,rate\n1,100\n2,3\n4,9000\n8,2\n16,70000\n",
    "twice": "nodes,nodes\n1,2\n",
    "cr": GOOD.replace("\n", "\r") + "x,y\r",
    "quoted": 'nodes,rate\n"1\n2",5\n',
}
SITES: dict[str, bytes | str] = {
    "slurm": 'scheduler = "slurm"\npartition = "class"\n',
    "good": "",
    "bom": "\ufeffmpirun = 5\n",
    "key": 'mpirum = "x"\n',
    "toml": "mpirun = \n",
    "twice": 'mpirun = "a"\nmpirun = "b"\n',
    "type": "mpirun = 5\n",
    "blank": 'mpirun = " "\n',
    "list": 'mpirun = ["a"]\n',
    "options": 'options = "-x"\n',
    "deepoptions": "options = [[1]]\n",
    "dictoptions": "options = [{a=1}]\n",
    "env": 'env = "A=1"\n',
    "envname": '[env]\n"A;touch x" = "1"\n',
    "envempty": '[env]\n"" = "1"\n',
    "envline": '[env]\n"A\\nB" = "1"\n',
    "envnul": '[env]\nA = "a\\u0000b"\n',
    "envtable": "[env.A]\nb = 1\n",
    "envlist": "[env]\nA = [1]\n",
    "cores": "cores = -1\n",
    "cores2": 'cores = "2"\n',
    "corestrue": "cores = true\n",
    "coresfloat": "cores = 1.5\n",
    "coresmany": "cores = 1" + 32 * "0" + "\n",
    "coresdigits": "cores = 1" + 5000 * "0" + "\n",
    "launcher": 'launcher = "prun"\n',
    "launcherlist": 'launcher = ["hydra"]\n',
    "bind": 'bind = "socket"\n',
    "hosts": 'hosts = "a"\n',
    "hostsoption": 'hosts = ["-V"]\n',
    "hostscomma": 'hosts = ["a,b"]\n',
    "hostsspace": 'hosts = ["a b"]\n',
    "hostsempty": 'hosts = [""]\n',
    "hoststwice": 'hosts = ["a", "a"]\n',
    "hostsnumber": "hosts = [1]\n",
    "hostsat": 'hosts = ["@"]\n',
    "sshalone": 'ssh = "ssh"\n',
    "sshtype": 'ssh = 1\nhosts = ["a"]\n',
    "scheduler": 'scheduler = "pbs"\n',
    "start": 'scheduler = "slurm"\nstart = "prun"\n',
    "startalone": 'start = "srun"\n',
    "srun": 'scheduler = "slurm"\nsrun = "--mpi=pmi2"\n',
    "partition": 'scheduler = "slurm"\npartition = "a b"\n',
    "partitionline": 'scheduler = "slurm"\npartition = "a\\n#SBATCH --x"\n',
    "partitionend": 'scheduler = "slurm"\npartition = "a\\n"\n',
    "account": 'scheduler = "slurm"\naccount = "$(id)"\n',
    "reservation": 'scheduler = "slurm"\nreservation = ";"\n',
    "minutes": 'scheduler = "slurm"\nminutes = 0\n',
    "minuteswords": 'scheduler = "slurm"\nminutes = "ten"\n',
    "minutesmany": 'scheduler = "slurm"\nminutes = 1' + 32 * "0" + "\n",
    "sbatch": 'scheduler = "slurm"\nsbatch = "--x"\n',
    "sbatchempty": 'scheduler = "slurm"\nsbatch = [""]\n',
    "sbatchline": 'scheduler = "slurm"\nsbatch = ["--x\\nrm y"]\n',
    "modules": 'scheduler = "slurm"\nmodules = ["a;b"]\n',
    "modulesline": 'scheduler = "slurm"\nmodules = ["a\\nb"]\n',
    "prelude": 'scheduler = "slurm"\nprelude = [1]\n',
    "scratch": 'scheduler = "slurm"\nscratch = "here"\n',
    "scratchunset": 'scheduler = "slurm"\nscratch = "$NO_SUCH_VARIABLE"\n',
    "scratchline": 'scheduler = "slurm"\nscratch = "/a\\nb"\n',
    "both": 'scheduler = "slurm"\nhosts = ["a"]\n',
    "openmpislurm": 'scheduler = "slurm"\nlauncher = "openmpi"\n',
    "latin": b'mpirun = "\xe9"\n',
    "nul": b"mpirun = \0\n",
    "binary": bytes(range(256)),
    "deep": "a = " + "[" * 5000 + "\n",
    "deepdots": ".".join("a" * 3000) + " = 1\n",
    "digits": "cores = " + "9" * 5000 + "\n",
    "date": "cores = 2026-01-01\n",
    "gone": 'mpirun = "/no/such/mpirun"\n',
    "folder": 'mpirun = "/"\n',
    "nameless": 'mpirun = "nosuchmpirun"\n',
    "huge": "# " + "x" * 20_000_000,
}
FILES: dict[str, bytes | str] = {
    **{f"csv/{name}.csv": text for name, text in TABLES.items()},
    **{f"sites/{name}.toml": text for name, text in SITES.items()},
    "train.py": "print(1)\n",
    "a b.py": "print(1)\n",
    "..py": "print(1)\n",
    "...py": "print(1)\n",
    ".py": "print(1)\n",
    "-x.py": "print(1)\n",
    "train.sh": "true\n",
    "folder.py/x": "",
    "nobody/x": "",
    "notpython": "x",
    "class.zip": "x",
    "person/00_tiny/run/records.jsonl": json.dumps(RECORD) + "\n",
    "bad/00_tiny/run/records.jsonl": "[" * 100_000 + "\n",
    "bad/00_tiny/checks.jsonl": '{"todo": {}, "state": 3}\n',
    "outside/00_tiny/run/records.jsonl": json.dumps({**RECORD, "lab": "../../../x"}) + "\n",
    "deep/00_tiny/run/records.jsonl": json.dumps({**RECORD, "ranks": "2"}) + "\n",
    "piped/00_tiny/run/keep": "",
    "labs/01_broken/runme.py": "",
    "labs/01_broken/checks.py": "def broken(:\n",
    "labs/02_raises/runme.py": "",
    "labs/02_raises/checks.py": "import no_such_module\n",
    "labs/03_gone/runme.py": "",
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
    os.mkfifo(folder / "fifo.csv")
    os.mkfifo(folder / "fifo.toml")
    os.mkfifo(folder / "fifo.py")
    os.mkfifo(folder / "piped/00_tiny/run/records.jsonl")
    (folder / "loop.toml").symlink_to("loop.toml")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "devnull.csv").symlink_to("/dev/zero")
    (folder / "empty").mkdir()
    (folder / "notebooks").mkdir()
    (folder / "solutions/00_tiny").mkdir(parents=True)
    (folder / "solutions/00_tiny/runme.py").write_text(MASTER)
    (folder / "solutions/00_tiny/checks.py").write_text(CHECKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SCALEOUT_RESULTS", str(folder.parent / "results"))
        patch.delenv("SCALEOUT_RECORDS", raising=False)
        patch.setattr(local, "stream", started)
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
