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


def test_who_names_a_network_keeps_it(script: Callable[..., Path], results: Path) -> None:
    text = "import os\nprint(os.environ.get('UCX_NET_DEVICES'), os.environ.get('UCX_TLS'))\n"
    assert run_script(script(text)).lines == [(0, "lo None")]
    run = run_script(script(text), env={"UCX_NET_DEVICES": "eth7"})
    assert run.lines == [(0, "eth7 None")]


def test_a_network_in_the_environment_is_kept(
    script: Callable[..., Path], results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UCX_TLS", "self,sm,tcp")
    text = "import os\nprint(os.environ.get('UCX_NET_DEVICES'), os.environ.get('UCX_TLS'))\n"
    assert run_script(script(text)).lines == [(0, "None self,sm,tcp")]
