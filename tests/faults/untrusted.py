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
    "dup": GOOD + "nodes,rate\n",
    "three": "nodes,rate,rate\n1,1,2\n2,2,3\n4,4,5\n8,8,9\n",
    "seconds0": "nodes,seconds\n1,100\n2,50\n4,25\n8,0\n",
    "secondsbig": "nodes,seconds\n1,100\n2,50\n4,25\n8,1e300\n",
    "units": GOOD + "16,900 images/s\n",
    "comma": GOOD + "16,1,200\n",
    "percent": GOOD + "16,90%\n",
    "blankcell": GOOD + "16,\n",
    "spaces": GOOD + "16,   \n",
    "hex": GOOD + "0x10,900\n",
    "under": GOOD + "1_6,900\n",
    "complexn": GOOD + "16,9j\n",
    "float": GOOD + "16.5,900\n",
    "true": GOOD + "True,900\n",
    "bomtwice": "\ufeff\ufeff" + GOOD,
    "html": "<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "json": '[{"nodes": 1, "rate": 2}]\n',
    "rows": "nodes,rate\n" + "x,y\n" * 100_000,
    "longhead": ",".join(f"c{n}" for n in range(100_000)) + "\n1\n",
    "quotehead": '"nodes,rate\n1,100\n',
    "formula": GOOD + "=16,=900\n",
    "nbsp": GOOD + "16,\u00a0\n",
    "minuszero": GOOD + "16,-0.0\n",
    "surrogate": GOOD.encode() + b"16,\xed\xa0\x80\n",
    "overlong": GOOD.encode() + b"16,\xc0\xb0\n",
    "vt": GOOD + "16,\v\f\n",
    "ls": GOOD + "16,\u2028\n",
}
LINE = json.dumps(RECORD)


def _with(**wrong: object) -> str:
    return json.dumps({**RECORD, **wrong})


# What somebody has handed in as the one record of one run.
HANDED_IN: dict[str, bytes | str] = {
    "null": "null",
    "true": "true",
    "number": "5",
    "string": '"record"',
    "list": f"[{LINE}]",
    "empty": "{}",
    "half": LINE[:-9],
    "twoonaline": LINE + LINE,
    "comma": LINE + ",",
    "pretty": json.dumps(RECORD, indent=1),
    "single": LINE.replace('"', "'"),
    "utf16": LINE.encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(range(256)),
    "nul": LINE + "\0",
    "xml": "<record><lab>00_tiny</lab></record>",
    "csv": "lab,rate\n00_tiny,5\n",
    "brackets": "[" * 100_000,
    "braces": '{"a":' * 100_000,
    "lab_none": _with(lab=None),
    "lab_number": _with(lab=4),
    "lab_list": _with(lab=["00_tiny"]),
    "lab_object": _with(lab={"a": "00_tiny"}),
    "lab_empty": _with(lab=""),
    "lab_dots": _with(lab=".."),
    "lab_path": _with(lab="/etc/passwd"),
    "lab_out": _with(lab="00_../../x"),
    "lab_backslash": _with(lab="00_a\\..\\b"),
    "lab_nul": _with(lab="00_tiny\0"),
    "lab_line": _with(lab="00_tiny\n"),
    "lab_capitals": _with(lab="00_TINY"),
    "lab_wide": _with(lab="\uff10\uff10_tiny"),
    "lab_long": _with(lab="00_" + "x" * 5000),
    "lab_percent": _with(lab="00_%2e%2e"),
    "lab_home": _with(lab="~root"),
    "variant_none": _with(variant=None),
    "variant_list": _with(variant=["a"]),
    "variant_number": _with(variant=1),
    "unit_none": _with(rate_unit=None),
    "unit_object": _with(rate_unit={}),
    "cpu_none": _with(cpu=None),
    "cpu_number": _with(cpu=7),
    "ranks_none": _with(ranks=None),
    "ranks_zero": _with(ranks=0),
    "ranks_minus": _with(ranks=-1),
    "ranks_half": _with(ranks=1.5),
    "ranks_true": _with(ranks=True),
    "ranks_text": _with(ranks="1"),
    "ranks_huge": _with(ranks=10**30),
    "ranks_list": _with(ranks=[1]),
    "threads_zero": _with(threads_per_rank=0),
    "threads_text": _with(threads_per_rank="2"),
    "threads_float": _with(threads_per_rank=2.0),
    "cores_minus": _with(cores=-2),
    "cores_huge": _with(cores=10**400),
    "rate_text": _with(rate="5"),
    "rate_nan": _with(rate=float("nan")),
    "rate_inf": _with(rate=float("inf")),
    "rate_minus": _with(rate=-0.1),
    "rate_huge": _with(rate=1e300),
    "rate_true": _with(rate=True),
    "rate_list": _with(rate=[5.0]),
    "rate_digits": LINE.replace("5.0", "9" * 5000),
    "rate_exponent": LINE.replace("5.0", "1e999999999"),
    "missing_lab": json.dumps({k: v for k, v in RECORD.items() if k != "lab"}),
    "missing_ranks": json.dumps({k: v for k, v in RECORD.items() if k != "ranks"}),
}
# What somebody has handed in, and is drawn: nothing of it steers the picture, table or terminal.
DRAWN: dict[str, object] = {
    "formula": "=cmd|' /C calc'!A0",
    "mathtext": "$\\frac{1}{",
    "dollars": "$$$$",
    "markup": "<script>alert(1)</script>",
    "escape": "\x1b[2J\x1b]0;x\x07",
    "lines": "a\nb\r\nc",
    "turned": "\u202eabc",
    "half": "\ud800",
    "long": "x" * 100_000,
    "nul": "a\0b",
    "emoji": "\U0001f600" * 40,
    "combining": "a" + "\u0301" * 5000,
    "table": "a | b | c",
    "quote": '"; rm -rf x; "',
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
    **{f"handed/{name}/00_tiny/run/records.jsonl": text for name, text in HANDED_IN.items()},
    **{
        f"drawn/{name}/00_tiny/run/records.jsonl": _with(variant=text, cpu=text, rate_unit=text)
        for name, text in DRAWN.items()
    },
    **{
        f"checked/{number}/00_tiny/checks.jsonl": text
        for number, text in enumerate(
            (
                "null",
                "[]",
                "{",
                '{"todo": 1}',
                '{"state": "passed"}',
                '{"todo": 0, "state": "passed"}',
                '{"todo": 100, "state": "passed"}',
                '{"todo": 1.0, "state": "passed"}',
                '{"todo": true, "state": "passed"}',
                '{"todo": "1", "state": "passed"}',
                '{"todo": null, "state": "passed"}',
                '{"todo": 1, "state": "PASSED"}',
                '{"todo": 1, "state": null}',
                '{"todo": 1, "state": 1}',
                '{"todo": 1, "state": ["passed"]}',
                '{"todo": 1, "state": "passed\\n"}',
                '{"todo": 1' + "0" * 5000 + "}",
                '{"todo": 1e400, "state": "passed"}',
                "\ufeff\ufeff{}",
                "[" * 100_000,
            )
        )
    },
    "labs/01_broken/runme.py": "",
    "labs/01_broken/checks.py": "def broken(:\n",
    "labs/02_raises/runme.py": "",
    "labs/02_raises/checks.py": "import no_such_module\n",
    "labs/03_gone/runme.py": "",
    **{f"labs/{name}/runme.py": "" for name in ("06_pipe", "07_folder", "12_loop")},
    **{
        f"labs/{name}/{file}": text
        for name, checks in {
            "04_exits": "import sys\nsys.exit(3)\n",
            "05_empty": "",
            "08_null": "x = '\0'\n",
            "09_latin": b"# \xe9\n",
            "10_deep": "x = " + "[" * 10_000 + "\n",
            "11_interrupt": "raise KeyboardInterrupt\n",
            "13_twice": CHECKS + CHECKS.partition("todo\n")[2],
            "14_words": CHECKS.replace("(1,", "('one',"),
            "15_minus": CHECKS.replace("(1,", "(-1,"),
            "16_nohints": CHECKS.replace('"one"', ""),
            "17_numbers": CHECKS.replace('"one"', "1, 2"),
        }.items()
        for file, text in {"runme.py": "", "checks.py": checks}.items()
    },
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
    os.mkfifo(folder / "labs/06_pipe/checks.py")
    (folder / "labs/07_folder/checks.py").mkdir()
    (folder / "labs/12_loop/checks.py").symlink_to("checks.py")
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
