"""A file system with one server, made small. shared.py starts it.

The server does one thing at a time: to open a file takes so many
milliseconds, to read takes its bytes divided by a bandwidth. Whoever asks
meanwhile waits. Several data servers, over which each file is striped, are as
many times the bandwidth here. There is nothing to fill in.
"""

import os
import socket
import sys
import time
from multiprocessing.connection import Client, Connection, wait

SPIN_S = 2e-4  # the system wakes a sleeper a little late


def until(moment: float) -> None:
    """Waits, and is on time."""
    rest = moment - time.perf_counter() - SPIN_S
    if rest > 0:
        time.sleep(rest)
    while time.perf_counter() < moment:
        pass


def serve(place: str, readers: int) -> None:
    """Answers until all readers have gone, or whoever started it has."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(place)
    door.listen(readers)
    print("ready", flush=True)
    open_to = [sys.stdin]  # it ends with whoever started us
    while len(open_to) <= readers:
        if sys.stdin in wait([sys.stdin, door]):
            return
        reader, _ = door.accept()
        open_to.append(Connection(reader.detach()))
    open_s = 0.0
    bytes_per_s = 1.0
    opens = 0
    sent = 0
    free_at = 0.0  # when the server has done what it was asked
    while len(open_to) > 1:
        asking = wait(open_to, 0)
        if not asking:
            asking = wait(open_to)
            free_at = time.perf_counter()  # it had nothing to do
        for reader in asking:
            if reader is sys.stdin:
                return
            try:
                what, value = reader.recv()
            except (EOFError, ConnectionError):
                open_to.remove(reader)
                continue
            if what == "read":
                with open(value, "rb") as file:
                    found = file.read()
                opens += 1
                sent += len(found)
                free_at += open_s + len(found) / bytes_per_s
                until(free_at)
                reader.send_bytes(found)
                continue
            if what == "as fast as":
                open_s, bytes_per_s = value
            reader.send((opens, sent))


class SharedFiles:
    """A reader's way to the server."""

    def __init__(self, place: str) -> None:
        self.server = Client(place, "AF_UNIX")

    def read(self, path: str) -> bytes:
        """A whole file: an open, and its bytes."""
        self.server.send(("read", os.fspath(path)))
        return self.server.recv_bytes()

    def as_fast_as(self, open_s: float, bytes_per_s: float) -> None:
        """From now on."""
        self.server.send(("as fast as", (open_s, bytes_per_s)))
        self.server.recv()

    def served(self) -> tuple:
        """How many opens and bytes it was so far."""
        self.server.send(("served", None))
        return self.server.recv()
