"""Two hosts with addresses, ssh daemons and keys of their own, in network namespaces of this
machine. Needs root.

    with Hosts(folder) as hosts: ...    # hosts.names, hosts.ssh (a program to call in place of
    ssh), hosts.cut("...")

A host shares this machine's files and cores; its network is its own. Nothing is left behind.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

NEEDED = ("ip", "sshd", "ssh", "ssh-keygen")
# This process's own, so that two suites at once do not meet: the bridge .1, and the hosts .2 and .3.
NET = f"10.213.{1 + os.getpid() % 250}"
MINE = f"so{os.getpid() % 10**6}"  # names of interfaces have at most 15 letters
SSHD = """
Port 22
ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PidFile none
PermitRootLogin yes
StrictModes no
UsePAM no
MaxStartups 50
"""
SSH = """#!/bin/sh
exec ssh -i {folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$@"
"""


def missing() -> str:
    """Why there can be no such hosts here, or ""."""
    gone = [name for name in NEEDED if not _which(name)]
    if gone:
        return f"no {', '.join(gone)} here: apt-get install iproute2 openssh-server"
    if os.geteuid() != 0:
        return "network namespaces need root"
    tries = (["netns", "add", f"{MINE}-try"], ["link", "add", f"{MINE}-try", "type", "bridge"])
    said = [subprocess.run(["ip", *words], capture_output=True, text=True) for words in tries]
    for words in (["netns", "delete", f"{MINE}-try"], ["link", "delete", f"{MINE}-try"]):
        subprocess.run(["ip", *words], capture_output=True)
    failed = [tried.stderr.strip() for tried in said if tried.returncode]
    return f"no network namespaces or bridges here: {failed[0]}" if failed else ""


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=20)


class Hosts:
    """Two hosts; use it with `with`. names: their addresses.  ssh: the program that reaches them.
    home: our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = [f"{NET}.2", f"{NET}.3"]
        self.home = f"{NET}.1"
        self.ssh = str(folder / "ssh")
        self.daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Hosts":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        Path("/run/sshd").mkdir(exist_ok=True)  # Debian's sshd wants it
        _do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "key"))
        Path(self.ssh).write_text(SSH.format(folder=self.folder))
        Path(self.ssh).chmod(0o755)
        _do("ip", "link", "add", f"{MINE}-0", "type", "bridge")
        _do("ip", "address", "add", f"{self.home}/24", "dev", f"{MINE}-0")
        _do("ip", "link", "set", f"{MINE}-0", "up")
        for number, address in enumerate(self.names, 1):
            space, ours, theirs = f"{MINE}-{number}", f"{MINE}-v{number}", "eth0"
            _do("ip", "netns", "add", space)
            _do("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", space)
            _do("ip", "link", "set", ours, "master", f"{MINE}-0", "up")
            _do("ip", "-n", space, "address", "add", f"{address}/24", "dev", theirs)
            _do("ip", "-n", space, "link", "set", theirs, "up")
            _do("ip", "-n", space, "link", "set", "lo", "up")
            conf = self.folder / f"sshd{number}"
            conf.write_text(SSHD.format(address=address, folder=self.folder))
            command = [
                "ip",
                "netns",
                "exec",
                space,
                _which("sshd") or "sshd",
                "-D",
                "-f",
                str(conf),
            ]
            with open(self.folder / f"sshd{number}.log", "wb") as log:
                self.daemons.append(
                    subprocess.Popen([*command, "-e"], stdin=subprocess.DEVNULL, stderr=log)
                )
        end = time.monotonic() + 15
        for name in self.names:
            while subprocess.run(
                [self.ssh, name, "true"], capture_output=True, timeout=20
            ).returncode:
                if time.monotonic() > end:
                    raise RuntimeError(
                        f"{name} cannot be reached: {(self.folder / 'sshd1.log').read_text()}"
                    )
                time.sleep(0.1)

    def cut(self, name: str, down: bool = True) -> None:
        """Pulls the plug of this host's network, or puts it in again."""
        number = self.names.index(name) + 1
        _do("ip", "link", "set", f"{MINE}-v{number}", "down" if down else "up")

    def stop(self) -> None:
        """Ends the daemons and whatever runs on the hosts, and takes the network away."""
        for number in (1, 2):
            inside = subprocess.run(
                ["ip", "netns", "pids", f"{MINE}-{number}"], capture_output=True, text=True
            )
            for pid in map(int, inside.stdout.split()):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        self.daemons = []
        for number in (1, 2):
            subprocess.run(["ip", "netns", "delete", f"{MINE}-{number}"], capture_output=True)
            subprocess.run(["ip", "link", "delete", f"{MINE}-v{number}"], capture_output=True)
        subprocess.run(["ip", "link", "delete", f"{MINE}-0"], capture_output=True)
