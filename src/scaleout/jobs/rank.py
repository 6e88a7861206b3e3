"""What a rank is told in torch's words: RANK, WORLD_SIZE and so on, so that a script written for
torchrun runs unedited under mpirun and srun. Also that process: `python rank.py COMMAND ...` becomes
the command in its own place.

The standard library alone: it starts once for each rank, and must do so in milliseconds."""

import contextlib
import os
import sys
from collections.abc import Mapping

# What comes before the command of a rank.
COMMAND = (sys.executable, "-I", "-S", os.path.abspath(__file__))
# The first word of a command whose ranks Hydra has all started on this machine.
ALONE = "--alone"
# What the launchers say: Hydra (MPICH, Intel MPI), Open MPI, srun.
NAMES = {
    "RANK": ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    "LOCAL_RANK": ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
    "LOCAL_WORLD_SIZE": ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"),
}
HOME = "127.0.0.1"
SIOCGIFADDR = 0x8915  # asks an interface for its address
NOT_FOUND = 127  # the exit status of what cannot be started, as a shell has it
ATTACH_FILTER = 26  # an option of a socket, see socket(7): which packets it takes


def told(environ: Mapping[str, str]) -> dict[str, str]:
    """What torch's own launcher would tell this rank."""
    found = {}
    for name, theirs in NAMES.items():
        said = [environ[their] for their in theirs if environ.get(their)]
        found.update({name: said[0]} if said else {})
    if not {"RANK", "WORLD_SIZE"} <= found.keys():
        return {}
    found.setdefault("LOCAL_RANK", found["RANK"])
    found.setdefault("LOCAL_WORLD_SIZE", _on_this_node(environ) or found["WORLD_SIZE"])
    meeting = environ.get("MASTER_ADDR", HOME)
    alone = found["LOCAL_WORLD_SIZE"] == found["WORLD_SIZE"]
    if "GLOO_SOCKET_IFNAME" not in environ:
        found["GLOO_SOCKET_IFNAME"] = "lo" if alone else _interface(meeting)
    return {name: text for name, text in found.items() if text}


def _on_this_node(environ: Mapping[str, str]) -> str:
    """How many tasks srun has started on this node: the entry of SLURM_STEP_TASKS_PER_NODE, such as
    2(x3),1, that is this node's."""
    each: list[str] = []
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        tasks, _, times = part.partition("(x")
        each += [tasks] * int(times.rstrip(")") or 1)
    node = int(environ.get("SLURM_NODEID", "0"))
    return each[node] if node < len(each) else ""


def _interface(meeting: str) -> str:
    """The network interface by which the other ranks reach this one: that on the way to where they
    meet. The machine's own name may stand for an address that nobody else can reach."""
    import socket

    address = ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((meeting, 9))  # sends nothing
            address = way.getsockname()[0]
        except OSError:  # no such name, or no way to it: torch will say so
            pass
        found = {_address(way, name): name for _, name in socket.if_nameindex()}
    if address in found and not address.startswith("127."):
        return found[address]
    own = [name for it, name in found.items() if it and not it.startswith("127.")]
    return next((name for name in _by_default() if name in own), (own or ["lo"])[0])


def _address(any_socket: object, name: str) -> str:
    """The IPv4 address of an interface, "" where it has none."""
    import fcntl
    import socket
    import struct

    try:
        asked = struct.pack("256s", name.encode()[:15])
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, asked)  # type: ignore[attr-defined]
    except OSError:
        return ""
    return socket.inet_ntoa(answer[20:24])


def _by_default() -> list[str]:
    """The interfaces through which this node reaches whatever it does not know."""
    try:
        with open("/proc/net/route", encoding="ascii") as file:
            lines = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []
    return [line[0] for line in lines if len(line) > 1 and line[1] == "00000000"]


def _cut_off(environ: Mapping[str, str]) -> None:
    """Makes mpirun's port deaf, and closes what Hydra has left open in this rank.

    Hydra listens on all addresses, and whoever connects may start programs by it. Once its one
    proxy is connected, which it is before the first rank starts, nobody else has to reach it. And
    what a rank leaves behind must not hold connections of the launcher or of other ranks."""
    own = int(environ["PMI_FD"])
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != own:
            with contextlib.suppress(OSError):  # no socket, or a system without such filters
                _deafen(fd)
            os.closerange(fd, fd + 1)  # which does not mind what is closed already


def _deafen(fd: int) -> None:
    """Lets a socket that listens take nothing more, for all processes that share it."""
    import _socket  # without what socket needs besides, which takes longer than all of this
    import array
    import struct

    shared = _socket.socket(fileno=fd)
    try:
        if shared.getsockopt(_socket.SOL_SOCKET, _socket.SO_ACCEPTCONN):
            take_none = array.array("B", struct.pack("=HBBI", 6, 0, 0, 0))  # one line: return 0
            where, _ = take_none.buffer_info()
            shared.setsockopt(_socket.SOL_SOCKET, ATTACH_FILTER, struct.pack("HP", 1, where))
    finally:
        shared.detach()


def _become(command: list[str]) -> int:
    """Turns into the command; returns an exit status when there is none of that name."""
    import signal

    if command[:1] == [ALONE]:
        command = command[1:]
        if os.environ.get("PMI_FD", "").isdecimal():
            _cut_off(os.environ)
    environment = {**os.environ, **told(os.environ)}
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and its heirs would
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return NOT_FOUND


if __name__ == "__main__":
    sys.exit(_become(sys.argv[1:]))
