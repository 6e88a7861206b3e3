"""Where the ranks of a job meet when they talk in torch's way: MASTER_ADDR and MASTER_PORT, a port
that is free on rank 0's node."""

import contextlib
import socket
import subprocess
import zlib
from collections.abc import Iterator, Sequence

from .rank import HOME

FREE_PORT = 'import socket; print(socket.create_server(("", 0)).getsockname()[1])'
# What a node is asked. The first line of what it prints may be the login's.
ASK = "import socket; print('port', socket.create_server(('', 0)).getsockname()[1])"
ASK_LIMIT_S = 10.0
FROM, PORTS = 20_000, 10_000  # below the ports that Linux gives out by itself


@contextlib.contextmanager
def place(run_id: str, address: str = "", ask: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """MASTER_ADDR and MASTER_PORT of one job; on this machine no other job gets that port meanwhile."""
    with socket.socket() as held:
        # Bound, but not listening: who sets this too, as torch does, may listen there.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("" if address else HOME, 0))
        port = _asked(ask, run_id) if ask else held.getsockname()[1]
        yield {"MASTER_ADDR": address or HOME, "MASTER_PORT": str(port)}


def _asked(ask: Sequence[str], run_id: str) -> int:
    """A port that is free there; where nobody answers, one that few other jobs would take."""
    try:
        done = subprocess.run(
            [*ask, "-"], input=ASK, capture_output=True, text=True, timeout=ASK_LIMIT_S
        )
        said = [line.split() for line in done.stdout.splitlines()]
    except (OSError, subprocess.TimeoutExpired):
        said = []
    ports = [words[1] for words in said if words[:1] == ["port"] and len(words) == 2]
    return (
        int(ports[0])
        if ports and ports[0].isdecimal()
        else FROM + zlib.crc32(run_id.encode()) % PORTS
    )
