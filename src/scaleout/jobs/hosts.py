"""Hosts over ssh: which answer, and what each says about itself."""

import json
import os
import platform
import shlex
import subprocess
import sys
from typing import Any

from .. import machine
from .site import Site

HOST_LIMIT_S = 25.0  # for a host's whole answer, Python's start on a cold disk included
PACKAGES = ("mpi4py", "mpich", "horovod", "tensorflow-cpu", "scikit-learn-intelex", "scaleout")
# Runs on the host, given to Python on its standard input. The first line of what it prints may be
# the login's.
ASK = """
import json, os, socket, sys
said = {}
home, port, seen = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def reach(address):
    try:
        socket.create_connection((address, port), 4).close()
        return ""
    except OSError as error:
        return str(error)
own = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
said |= {"back": reach(home), "address": own, "address_back": reach(own) if own else "no address"}
said |= {"shared": os.path.exists(seen), "folder": os.path.isdir(sys.argv[4])}
try:
    from scaleout.jobs import hosts
    said |= {"versions": hosts.versions(), "mpirun": hosts.mpirun()}
except Exception as error:
    said["broken"] = f"{type(error).__name__}: {error}"
print("\\nscaleout:" + json.dumps(said), flush=True)
"""


def versions() -> dict[str, str]:
    """{package: version} of what must be the same on every host."""
    return {"python": platform.python_version()} | machine.versions(PACKAGES)


def mpirun() -> str:
    """Flavour and version of this environment's MPI, such as MPICH 4.3.2."""
    facts = machine.facts()
    return f"{facts.mpi} {facts.mpi_version}"


def _ssh(site: Site, host: str) -> list[str]:
    return [site.ssh or "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", host]


def launching(site: Site, nodes: int) -> list[str]:
    """What tells mpirun on which machines to start, and how."""
    if not site.hosts:
        return []
    by = ["-launcher-exec", site.ssh] if site.ssh else []
    return ["-hosts", ",".join(site.hosts[:nodes]), "-launcher", "ssh", *by]


def first(site: Site, nodes: int) -> str:
    """The machine that rank 0 runs on; "" for a job on this one alone."""
    if site.hosts:
        return site.hosts[0]
    if nodes == 1 or not site.scheduler:
        return ""
    # Only here: every job imports this module, and should start at once.
    from . import slurm_commands

    here = platform.node()
    if slurm_commands.there_is("scontrol"):
        nodelist = os.environ["SLURM_JOB_NODELIST"]
        done = slurm_commands.ask("scontrol", "show", "hostnames", nodelist)
        return (done.stdout.split() or [here])[0]
    return here


def silent(site: Site) -> list[str]:
    """The hosts that do not answer within 10 s."""

    from concurrent.futures import ThreadPoolExecutor

    def answers(host: str) -> bool:
        try:
            return (
                subprocess.run(
                    [*_ssh(site, host), "true"], capture_output=True, timeout=10
                ).returncode
                == 0
            )
        except (OSError, subprocess.TimeoutExpired):
            return False

    with ThreadPoolExecutor(len(site.hosts) or 1) as pool:
        return [
            host
            for host, there in zip(site.hosts, pool.map(answers, site.hosts), strict=True)
            if not there
        ]


def ask(site: Site, host: str, home: str, port: int, mark: str) -> dict[str, Any]:
    """What a host says about itself."""
    words = [sys.executable, "-", home, str(port), mark, os.getcwd()]
    try:
        done = subprocess.run(
            [*_ssh(site, host), shlex.join(words)],
            input=ASK,
            capture_output=True,
            text=True,
            timeout=HOST_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"did not answer within {HOST_LIMIT_S:g} s"}
    except OSError as error:
        return {"error": f"{site.ssh or 'ssh'} cannot be started: {error.strerror}"}
    for line in done.stdout.splitlines():
        if line.startswith("scaleout:"):
            answer: dict[str, Any] = json.loads(line.removeprefix("scaleout:"))
            return answer
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return {"error": last, "reached": done.returncode != 255}  # 255 is ssh's own
