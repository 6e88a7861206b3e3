"""A Slurm of four nodes on this one machine, from Debian's packages. Needs root; leaves nothing
behind.

    python tests/cluster/slurm.py FOLDER    # starts it, prints what to export, and ends it at
    Ctrl-C

All its files, its key and its sockets are in one folder; nothing of the system's own Slurm or munge
is touched."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

NODES = 4
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol")
START_S = 60.0
CONF = """
ClusterName=scaleout
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_min_interval=200000,bf_interval=2
ReturnToService=2
KillWait=2
MinJobAge=300
MaxJobCount=60
OverTimeLimit=0
SlurmdTimeout=60
InactiveLimit=0
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 State=UNKNOWN
PartitionName=class Nodes=node[1-{nodes}] Default=YES MaxTime=20 State=UP
"""


def missing() -> str:
    """Why there can be no such Slurm here, or ""."""
    gone = [name for name in NEEDED if not _which(name)]
    if gone:
        return f"no {', '.join(gone)} here: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "a Slurm of one's own needs root"


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


class Slurm:
    """The cluster, in a folder; use it with `with`. env: what a client needs to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Slurm":
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
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        first = _free_ports(NODES + 1)
        conf = CONF.format(
            host=socket.gethostname(),
            folder=self.folder,
            nodes=NODES,
            port=first,
            first=first + 1,
            last=first + NODES,
        )
        (self.folder / "slurm.conf").write_text(conf)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = [f"--{name}={self.folder / file}" for name, file in MUNGE.items()]
        self._daemon("munged", "--foreground", "--force", *munge)
        self._wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._daemon("slurmctld", "-D", "-f", self.env["SLURM_CONF"])
        for node in range(1, NODES + 1):
            self._daemon("slurmd", "-D", "-f", self.env["SLURM_CONF"], "-N", f"node{node}")
        self._wait(lambda: self.states() == {"idle"}, "slurmctld")

    def _daemon(self, name: str, *words: str) -> None:
        with open(self.folder / "daemons.log", "ab") as log:
            command = [_which(name) or name, *words]
            environment = {**os.environ, **self.env}
            self.daemons.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
                )
            )

    def _wait(self, ready, what: str) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + START_S
        while not ready():
            if time.monotonic() > end:
                logs = "\n".join(
                    f"{p.name}: {p.read_text()[-800:]}" for p in sorted(self.folder.glob("*.log"))
                )
                raise RuntimeError(f"{what} did not start within {START_S:g} s\n{logs}")
            time.sleep(0.1)

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints, both streams; "" when it cannot reach the
        controller."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout + done.stderr

    def states(self) -> set[str]:
        """The states of the four nodes."""
        return set(self.ask("sinfo", "--noheader", "--Node", "--format=%T").split())

    def jobs(self) -> list[str]:
        """The ids of the jobs that wait or run."""
        return self.ask("squeue", "--noheader", "--format=%i").split()

    def stop(self) -> None:
        """Ends every job and daemon."""
        if len(self.daemons) > 1:
            self.ask("scancel", "--full", "--user=root")
            end = time.monotonic() + 5
            while self.jobs() and time.monotonic() < end:
                time.sleep(0.1)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for daemon in reversed(self.daemons):
                if daemon.poll() is None:
                    daemon.send_signal(number)
            end = time.monotonic() + 5
            while any(daemon.poll() is None for daemon in self.daemons) and time.monotonic() < end:
                time.sleep(0.05)
        for pid in self.processes():  # a slurmstepd whose job would not end
            os.kill(pid, signal.SIGKILL)
        self.daemons = []

    def processes(self) -> list[int]:
        """The ids of live processes that know this cluster's configuration: daemons, steps, and
        their jobs."""
        found, mark = [], f"SLURM_CONF={self.env['SLURM_CONF']}".encode()
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                carries = mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if carries and pid != os.getpid():
                found.append(pid)
        return found


MUNGE = {
    "key-file": "munge.key",
    "socket": "munge.socket",
    "pid-file": "munged.pid",
    "log-file": "munged.log",
    "seed-file": "munged.seed",
}


def _free_ports(count: int) -> int:
    """The first of so many free ports in a row."""
    for first in range(21000, 29000, count + 3):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


if __name__ == "__main__":
    if why := missing():
        sys.exit(why)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    with Slurm(Path(sys.argv[1])) as cluster:
        print(f"export SLURM_CONF={cluster.env['SLURM_CONF']}", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("ended", flush=True)
