"""mpirun's own port, open on all addresses: once a job of one machine runs, it takes nobody in, and
nothing of the launcher's is left open in a rank."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import run_script

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(120)]

# The process below scaleout is the parent of mpirun, and rank's parent is Hydra's proxy.
KNOCK = """
    import os, socket, sys
    import psutil
    held = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    held = [fd for fd in held if os.path.exists(f"/proc/self/fd/{fd}")]
    known = {0, 1, 2, int(os.environ["PMI_FD"])}
    print("holds", *(fd for fd in held if fd not in known), flush=True)
    mpirun = psutil.Process().parent().parent()
    listens = [one for one in mpirun.net_connections("inet") if one.status == psutil.CONN_LISTEN]
    for one in listens:
        try:
            socket.create_connection(("127.0.0.1", one.laddr.port), 0.5)
            print("knocks: let in", flush=True)
        except TimeoutError:
            print("knocks: nobody hears", flush=True)
    from mpi4py import MPI
    print("sum", MPI.COMM_WORLD.allreduce(1), flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_nobody_is_let_in(ranks: int, script: Callable[..., Path], results: Path) -> None:
    run = run_script(script(KNOCK), ranks=ranks)
    said = sorted(text for _, text in run.lines)
    assert said == sorted(["holds", "knocks: nobody hears", f"sum {ranks}"] * ranks)


SPAWN = """
    import sys
    from mpi4py import MPI
    child = "from mpi4py import MPI; MPI.Comm.Get_parent().Disconnect(); print('spawned')"
    MPI.COMM_SELF.Spawn(sys.executable, ["-c", child], 1).Disconnect()
    print("done", flush=True)
"""


@pytest.mark.choice  # without binding: with it, Hydra 4.3.2 refuses to start more
def test_ranks_can_still_start_more(script: Callable[..., Path], results: Path) -> None:
    assert "spawned" in run_script(script(SPAWN), bind="none", timeout=110).output
