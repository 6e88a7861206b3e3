"""A Slurm of a few nodes on this one machine, from Debian's packages: to learn the queue with.

    python tools/mini_slurm.py on      # make cluster
    python tools/mini_slurm.py off     # make cluster-off

It shows how jobs are scheduled, not how fast they are: all its nodes are this machine. Its files
and its key are in one folder, and nothing of the system's own Slurm or munge is
touched. It runs as whoever starts it, and ends with the shell that it was started from.
"""

import contextlib
import getpass
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from scaleout.base.locks import held
from scaleout.jobs import supervise

HOME = Path(__file__).resolve().parents[1]
FOLDER = HOME / ".setup" / "cluster"
LOCK = FOLDER.with_name("cluster.lock")  # held while it is being started or ended
READY = "ready"  # a file in the folder, once jobs can be submitted
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "scontrol")
DAEMONS = ("munged", "slurmctld", "slurmd")
START_S = 60.0
MEMORY_MIB = 2000  # a core, as Slurm sees it
CONF = """
ClusterName=scaleout
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={sockets}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={sockets}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
# Where there is no network at all, the resolver gives IPv4 alone no address, not even this machine's.
CommunicationParameters=EnableIPv6
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory}
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
SchedulerParameters=sched_min_interval=200000,bf_interval=2
ReturnToService=2
KillWait=2
MinJobAge=300
MaxJobCount=60
OverTimeLimit=0
SlurmdTimeout=60
InactiveLimit=0
NodeName=DEFAULT CPUs={cores} RealMemory={real} State=UNKNOWN
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}]
PartitionName=class Nodes=node[1-{nodes}] Default=YES MaxTime=20 State=UP
"""
MUNGE = {
    "key-file": "munge.key",
    "pid-file": "munged.pid",
    "log-file": "munged.log",
    "seed-file": "munged.seed",
}


def missing() -> str:
    """Say why there can be no such Slurm here; "" where there can."""
    gone = [name for name in NEEDED if not _which(name)]
    if not gone:
        return ""
    return f"There is no {', '.join(gone)} here: type  sudo apt-get install slurm-wlm munge"


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


class Slurm:
    """The cluster, in a folder; use it with `with`. env: what a client needs to find it."""

    def __init__(self, folder: Path, nodes: int = 4, cores: int = 2) -> None:
        self.folder = folder.absolute()
        self.nodes, self.cores = nodes, cores
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons: list[subprocess.Popen[bytes]] = []
        # The path of a socket may have 107 characters at most, and that of the folder may be long.
        self.sockets = self.folder

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
        self.sockets = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.sockets.chmod(0o755)
        first = _free_ports(self.nodes + 1)
        conf = CONF.format(
            host=socket.gethostname(),
            user=getpass.getuser(),
            folder=self.folder,
            sockets=self.sockets,
            nodes=self.nodes,
            cores=self.cores,
            memory=MEMORY_MIB,
            real=MEMORY_MIB * self.cores,
            port=first,
            first=first + 1,
            last=first + self.nodes,
        )
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "completed.txt").touch()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = [f"--{name}={self.folder / file}" for name, file in MUNGE.items()]
        socket_of_munge = self.sockets / "munge.socket"
        munge.append(f"--socket={socket_of_munge}")
        self._daemon("munged", "--foreground", "--force", *munge)
        self._wait(socket_of_munge.exists, "munged")
        self._daemon("slurmctld", "-D", "-f", self.env["SLURM_CONF"])
        for node in range(1, self.nodes + 1):
            self._daemon("slurmd", "-D", "-f", self.env["SLURM_CONF"], "-N", f"node{node}")
        self._wait(lambda: self.states() == {"idle"}, "slurmctld")

    def _daemon(self, name: str, *words: str) -> None:
        with open(self.folder / "daemons.log", "ab") as log:
            # When we are killed, a supervisor ends its daemon, and the steps that a slurmd has left.
            command = supervise.command(_which(name) or name, *words)
            environment = {**os.environ, **self.env}
            self.daemons.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
                )
            )

    def _wait(self, ready, what: str) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + START_S
        while not ready():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                logs = "\n".join(
                    f"{p.name}: {p.read_text()[-800:]}" for p in sorted(self.folder.glob("*.log"))
                )
                raise RuntimeError(f"{what} did not start\n{logs}")
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
        """The states of the nodes."""
        return set(self.ask("sinfo", "--noheader", "--Node", "--format=%T").split())

    def jobs(self) -> list[str]:
        """The ids of the jobs that wait or run."""
        return self.ask("squeue", "--noheader", "--format=%i").split()

    def stop(self) -> None:
        """Ends every job and daemon."""
        if len(self.daemons) > 1:
            self.ask("scancel", "--full", f"--user={getpass.getuser()}")
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
        self.end_leftovers()  # a slurmstepd whose job would not end
        self.daemons = []
        if self.sockets != self.folder:
            shutil.rmtree(self.sockets, ignore_errors=True)

    def end_leftovers(self) -> None:
        """Kill what is left of an earlier run too, whose own supervisor is gone."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The ids of live processes of this cluster: daemons, steps, and their jobs."""
        return [p.pid for p in psutil.process_iter() if self._owns(p)]

    def _owns(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if process.name() in DAEMONS and str(self.folder) in " ".join(process.cmdline()):
                return True
            # A step shows its environment to root alone. Only in a Slurm of one's own is it one's own.
            if process.name() == "slurmstepd" and process.uids().real == os.getuid() != 0:
                return True
            env = process.environ()
            # A shell in which somebody exported SLURM_CONF hands it on as well.
            return "SLURM_JOB_ID" in env and env.get("SLURM_CONF") == self.env["SLURM_CONF"]
        return False


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


def _server() -> psutil.Process | None:
    """The process that keeps the cluster on, if there is one."""
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        server = psutil.Process(int((FOLDER / READY).read_text()))
        if __file__ in server.cmdline():
            return server
    return None


def _lives(process: psutil.Process) -> bool:
    """Tell whether it has not ended; one that has, and was not collected yet, is a zombie."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def on() -> str:
    """Start the cluster beside the shell, and say how to use it."""
    if not _server() and (why := missing()):
        sys.exit(why)
    LOCK.parent.mkdir(exist_ok=True)
    with held(LOCK, math.inf):
        return _on()


def _on() -> str:
    if _server():
        return "It is on already, until the shell ends that it was started from.\n" + HOW
    _off()
    FOLDER.mkdir()
    shell = os.getsid(0)
    # Started from outside the container, or already gone.
    if not psutil.pid_exists(shell) or not _lives(psutil.Process(shell)):
        shell = 0
    with open(FOLDER / "daemons.log", "ab") as log:
        serving = subprocess.Popen(
            [sys.executable, __file__, "serve", str(shell)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        while not (FOLDER / READY).exists():
            if serving.poll() is not None:
                told = (FOLDER / "daemons.log").read_text()[-2000:]
                _off()
                sys.exit(f"The cluster did not start:\n{told}")
            time.sleep(0.1)
    except KeyboardInterrupt:
        serving.terminate()
        raise
    ends = "It ends with this shell, or with" if shell else "It stays on until you type"
    return f"{ends}  make cluster-off.\n{HOW}"


def serve(shell: int) -> None:
    """Keep the cluster on until it is told to end, or the shell has gone; 0 is no shell."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt, psutil.NoSuchProcess):
        owner = psutil.Process(shell or os.getpid())
        with Slurm(FOLDER, nodes=2):
            (FOLDER / READY).write_text(str(os.getpid()))
            while _lives(owner):
                time.sleep(1)
    shutil.rmtree(FOLDER)  # what did not start leaves its log, for `on` to show


def off() -> str:
    """End the cluster, also one whose own process was killed."""
    if LOCK.parent.exists():
        with held(LOCK, math.inf):
            _off()
    return "The cluster is off; nothing of it is left."


def _off() -> None:
    if server := _server():
        server.terminate()
        with contextlib.suppress(psutil.Error):
            server.wait(30)
    Slurm(FOLDER).end_leftovers()
    with contextlib.suppress(OSError):
        conf = (FOLDER / "slurm.conf").read_text()
        for sockets in re.findall(r"^SlurmdSpoolDir=(.+)/%n$", conf, re.M):
            shutil.rmtree(sockets, ignore_errors=True)
    shutil.rmtree(FOLDER, ignore_errors=True)


HOW = f"""Two nodes of two cores, as Slurm sees them. Both are this machine: this shows how jobs are scheduled, not
how fast they run.

    export SLURM_CONF={FOLDER / "slurm.conf"}   # for sbatch, squeue, scancel, sacct and scontrol
    scaleout submit 03_spmd --site sites/mini.toml -n 2 -N 2

docs/queue.md has ten exercises."""

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["on"]:
            print(on())
        case ["off"]:
            print(off())
        case ["serve", shell]:
            serve(int(shell))
        case _:
            sys.exit(__doc__)
