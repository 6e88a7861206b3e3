"""What `scaleout doctor --site` looks at: each host before a job goes there, or the Slurm that takes it."""

import json
import os
import platform
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import NamedTemporaryFile
from typing import Any

from . import diagnosis, machine
from .diagnosis import Check
from .errors import ScaleoutError
from .paths import results
from .site import Site

__all__ = ["checks", "judge", "silent"]

HOST_LIMIT_S = 25.0  # for a host's whole answer, Python's start on a cold disk included
CLOCK_S = 2.0
PACKAGES = ("mpi4py", "mpich", "horovod", "tensorflow-cpu", "scikit-learn-intelex", "scaleout")
# Runs on the host, given to Python on its standard input. The first line of what it prints may be the login's.
ASK = """
import json, os, socket, sys, time
said = {"time": time.time(), "prefix": sys.prefix, "host": socket.gethostname()}
home, port, seen = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def reach(address):
    try:
        socket.create_connection((address, port), 4).close()
        return ""
    except OSError as error:
        return str(error)
own = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
said |= {"back": reach(home), "address": own, "address_back": reach(own) if own else "no address"}
said |= {"shared": os.path.exists(seen), "load": os.getloadavg()[0], "folder": os.path.isdir(sys.argv[4])}
try:
    from scaleout import hosts, machine
    said |= {"cores": machine.usable_cores(), "versions": hosts._versions(), "mpirun": hosts._mpirun()}
except Exception as error:
    said["broken"] = f"{type(error).__name__}: {error}"
print("\\nscaleout:" + json.dumps(said), flush=True)
"""


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | machine.versions(PACKAGES)


def _mpirun() -> str:
    facts = machine.facts()
    return f"{facts.mpi} {facts.mpi_version}"


def _ssh(site: Site, host: str) -> list[str]:
    return [site.ssh or "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", host]


def silent(site: Site) -> list[str]:
    """The hosts that do not answer within 10 s."""

    def answers(host: str) -> bool:
        try:
            return subprocess.run([*_ssh(site, host), "true"], capture_output=True, timeout=10).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    with ThreadPoolExecutor(len(site.hosts) or 1) as pool:
        return [host for host, there in zip(site.hosts, pool.map(answers, site.hosts), strict=True) if not there]


def _ask(site: Site, host: str, home: str, port: int, mark: str) -> dict[str, Any]:
    """What a host says about itself; {"error": ...} when it says nothing."""
    words = [sys.executable, "-", home, str(port), mark, os.getcwd()]
    began = time.time()
    try:
        done = subprocess.run(
            [*_ssh(site, host), shlex.join(words)], input=ASK, capture_output=True, text=True, timeout=HOST_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"error": f"did not answer within {HOST_LIMIT_S:g} s"}
    except OSError as error:
        return {"error": f"{site.ssh or 'ssh'} cannot be started: {error.strerror}"}
    for line in done.stdout.splitlines():
        if line.startswith("scaleout:"):
            return json.loads(line.removeprefix("scaleout:")) | {"began": began, "ended": time.time()}
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return {"error": last, "reached": done.returncode != 255}  # 255 is ssh's own


def judge(host: str, said: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[Check]:
    """The checks of one host. said: its answer.  ours: versions, mpirun, prefix and home of this machine."""
    name = f"host {host}"
    if "error" in said and not said.get("reached"):
        fix = f"ssh-copy-id {host}   (and try  ssh {host} true)"
        yield Check(name, "fail", f"cannot be reached without a password: {said['error']}", fix)
        return
    if "error" in said or "broken" in said:
        seen = f"has no environment in {diagnosis.short(ours['prefix'])}: {said.get('error') or said['broken']}"
        yield Check(name, "fail", seen, f"share that folder with {host}, or run  make lab  there in the same place")
        return
    differ = [
        f"{key} {said['versions'].get(key, 'missing')} (here {value})"
        for key, value in ours["versions"].items()
        if said["versions"].get(key) != value
    ]
    status = "fail" if differ else "ok"
    seen = f"not the environment that is here: {', '.join(differ)}" if differ else "the same environment"
    yield Check(name, status, seen, "git pull && make lab   (on that host)" if differ else "")
    if said["mpirun"] != ours["mpirun"]:
        seen = f"its mpirun is {said['mpirun']}, ours is {ours['mpirun']}"
        yield Check(f"{name}: MPI", "fail", seen, f"make clean && make lab   (on {host})")
    else:
        yield Check(f"{name}: MPI", "ok", said["mpirun"])
    if said["back"] and not said["address_back"]:
        seen = f"cannot reach us by the name {ours['home']} ({said['back']}), but by {said['address']}"
        yield Check(f"{name}: way back", "fail", seen, f'options = ["-localhost", "{said["address"]}"]   (site file)')
    elif said["back"]:
        seen = f"cannot reach us at {ours['home']}: {said['back']}"
        yield Check(f"{name}: way back", "fail", seen, "open the firewall between the hosts for all ports above 1024")
    else:
        yield Check(f"{name}: way back", "ok", f"reaches us at {ours['home']}")
    off = max(said["time"] - said["ended"], said["began"] - said["time"], 0.0)  # by at least so much
    seen = f"{'is off by' if off > CLOCK_S else 'agrees within'} {max(off, said['ended'] - said['began']):.1f} s"
    clock = ("warn", "timedatectl set-ntp true   (as root, on that host)") if off > CLOCK_S else ("ok", "")
    yield Check(f"{name}: clock", clock[0], seen, clock[1])
    if not (said["folder"] and said["shared"]):
        what = "this folder" if not said["folder"] else "our results folder"
        fix = "share it between the hosts, or  export SCALEOUT_RESULTS=A_SHARED_FOLDER"
        yield Check(f"{name}: files", "fail", f"does not see {what}", fix)
    else:
        yield Check(f"{name}: files", "ok", "sees this folder and our results")
    free = said["cores"] - said["load"]
    seen = f"about {max(0, round(free))} of {said['cores']} free (load {said['load']:.1f})"
    busy = free < 0.5 * said["cores"]
    yield Check(
        f"{name}: cores", "warn" if busy else "ok", seen, "wait, or take another host: see  uptime" if busy else ""
    )


def _hosts(site: Site) -> list[Check]:
    at = [site.options[i + 1] for i, word in enumerate(site.options[:-1]) if word == "-localhost"]
    home = at[0] if at else socket.gethostname()
    ours = {"versions": _versions(), "mpirun": _mpirun(), "prefix": sys.prefix, "home": home}
    with socket.create_server(("", 0)) as back, NamedTemporaryFile(dir=results(), prefix=".doctor-") as mark:
        port = back.getsockname()[1]
        with ThreadPoolExecutor(len(site.hosts)) as pool:
            said = list(pool.map(lambda host: _ask(site, host, home, port, mark.name), site.hosts))
    return [check for host, answer in zip(site.hosts, said, strict=True) for check in judge(host, answer, ours)]


def _slurm(site: Site) -> Iterator[Check]:
    """What Slurm says to the smallest job of this site, which it is asked about but not given."""
    from . import submit

    if not submit.there_is("sbatch"):
        yield Check("Slurm", "fail", "there is no sbatch here", "log in to the cluster, and ask there")
        return
    ping = submit.ask("scontrol", "ping")
    if "UP" not in ping.stdout:
        seen = f"its controller does not answer: {(ping.stdout + ping.stderr).strip() or 'no word'}"
        yield Check("Slurm", "fail", seen, "ask the cluster's people; `sinfo` shows when it is back")
        return
    yield Check("Slurm", "ok", ping.stdout.strip())
    asked = {"partition": site.partition, "account": site.account, "reservation": site.reservation}
    words = [f"--{key}={value}" for key, value in asked.items() if value]
    where = ["--partition", site.partition] if site.partition else []
    listed = submit.ask("sinfo", "--noheader", "--format=%P %D %T %l", *where).stdout.split("\n")
    shown = "; ".join("{}: {} {}, up to {}".format(*line.split()) for line in listed if len(line.split()) == 4)
    tried = submit.ask("sbatch", "--test-only", f"--time={site.minutes}", *words, *site.sbatch, "--wrap=true")
    why = re.sub(r"(sbatch: error: |allocation failure: )", "", tried.stderr).strip().splitlines()
    if tried.returncode:
        said = why[-1] if why else "no word"
        yield Check(
            "Slurm takes it", "fail", f"{said} ({shown})", "correct partition, account or minutes in the site file"
        )
    else:
        yield Check("Slurm takes it", "ok", shown)


def checks(site: Site) -> list[Check]:
    """Asks every host of the site, all at once, or its Slurm; at most half a minute."""
    if site.scheduler:
        return list(_slurm(site))
    if not site.hosts:
        return [Check("site", "ok", "this machine alone")]
    try:
        return _hosts(site)
    except ScaleoutError as error:
        return [Check("site", "fail", str(error).partition(": type ")[0], "mend `results` first")]
