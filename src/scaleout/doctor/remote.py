"""What each host says of itself over ssh: versions, MPI, and whether it reaches this one."""

import json
import os
import platform
import shlex
import subprocess
import sys
from typing import Any

from .. import machine
from ..launch import hosts
from ..site import Site

HOST_LIMIT_S = 25.0  # for a host's whole answer, Python's start on a cold disk included
ON_EVERY_HOST = ("mpi4py", "mpich", "horovod", "tensorflow-cpu", "scikit-learn-intelex", "scaleout")
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
    from scaleout.doctor import remote
    said |= {"versions": remote.on_every_host(), "mpirun": remote.mpirun()}
except Exception as error:
    said["broken"] = f"{type(error).__name__}: {error}"
print("\\nscaleout:" + json.dumps(said), flush=True)
"""


def on_every_host() -> dict[str, str]:
    """Give {package: version} of what must be the same on every host."""
    return {"python": platform.python_version()} | machine.versions(ON_EVERY_HOST)


def mpirun() -> str:
    """Name flavour and version of this environment's MPI, such as MPICH 4.3.2."""
    facts = machine.facts()
    return f"{facts.mpi} {facts.mpi_version}"


def ask(site: Site, host: str, home: str, port: int, mark: str) -> dict[str, Any]:
    """Ask a host about itself."""
    words = [sys.executable, "-", home, str(port), mark, os.getcwd()]
    try:
        done = subprocess.run(
            [*hosts.command(site, host), shlex.join(words)],
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
