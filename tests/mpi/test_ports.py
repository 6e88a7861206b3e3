"""Which ports the ranks of a job on one machine open: none that another machine could reach."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import run_script

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(120)]

LISTENING = """
    import psutil
    from mpi4py import MPI
    MPI.COMM_WORLD.Barrier()
    def at(process):
        found = process.net_connections("inet")
        return {one.laddr for one in found if one.status == psutil.CONN_LISTEN}
    me = psutil.Process()
    # Hydra's own port stays open in what it starts.
    print("listens", *sorted(ip for ip, _ in at(me) - at(me.parent())), flush=True)
    MPI.COMM_WORLD.Barrier()
"""


def test_ranks_on_one_machine_listen_to_this_machine_alone(
    script: Callable[..., Path], results: Path
) -> None:
    run = run_script(script(LISTENING), ranks=2)
    found = [text.split()[1:] for _, text in run.lines if text.startswith("listens")]
    assert len(found) == 2 and all(set(ips) <= {"127.0.0.1", "::1"} for ips in found), found
