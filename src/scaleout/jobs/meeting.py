"""Where the ranks of a job meet when they talk in torch's way: MASTER_ADDR and MASTER_PORT, a port
that is free on rank 0's node."""

import contextlib
import socket
import zlib
from collections.abc import Iterator

from .rank import HOME

FREE_PORT = 'import socket; print(socket.create_server(("", 0)).getsockname()[1])'
FROM, PORTS = 20_000, 10_000  # below the ports that Linux gives out by itself


@contextlib.contextmanager
def variables(run_id: str, address: str = "") -> Iterator[dict[str, str]]:
    """Choose MASTER_ADDR and MASTER_PORT for one job.

    On this machine no other job gets that port meanwhile; on another one it is a port that few
    other jobs would take.
    """
    with socket.socket() as held:
        # Bound, but not listening: who sets this too, as torch does, may listen there.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("" if address else HOME, 0))
        port = FROM + zlib.crc32(run_id.encode()) % PORTS if address else held.getsockname()[1]
        yield {"MASTER_ADDR": address or HOME, "MASTER_PORT": str(port)}
