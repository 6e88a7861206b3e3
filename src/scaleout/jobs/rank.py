"""What a rank is told in torch's words: RANK, WORLD_SIZE and so on, so that a script written for
torchrun runs unedited under mpirun and srun. Also that process: `python rank.py COMMAND ...` becomes
the command in its own place.

The standard library alone: it starts once for each rank, and must do so in milliseconds."""

import os
import sys
from collections.abc import Mapping

# What comes before the command of a rank.
COMMAND = (sys.executable, "-I", "-S", os.path.abspath(__file__))
# What may come first of it: each rank's logical CPUs, 0+4,1+5, where the ranks are to bind themselves.
BIND = "--bind"
# And each rank's own standard error, 7,9, as open files: the launcher may end before it has handed
# on what a rank said last.
ERRORS = "--errors"
# And how many ranks every node has but the last, which has fewer: a rank sees those of its own alone.
PER_NODE = "--per-node"
# And that the first and the last rank are to be watched: whether they ever talk, see talking.py.
WATCH = "--watch"
WATCHER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from scaleout.jobs.talking import watch; "
    "watch(int(sys.argv[2]), sys.argv[3])"
)
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


def torch_variables(environ: Mapping[str, str], per_node: int = 0) -> dict[str, str]:
    """Return the variables that torch's own launcher would set for this rank.

    There are none without a launcher, and none of nodes where they have unlike numbers of ranks and
    nobody says how many they are on each but the last.
    """
    found = {}
    for name, theirs in NAMES.items():
        said = [environ[their] for their in theirs if environ.get(their)]
        found.update({name: said[0]} if said else {})
    if not {"RANK", "WORLD_SIZE"} <= found.keys():
        return {}
    found |= _groups(found, environ, per_node)
    found.setdefault("LOCAL_RANK", found["RANK"])
    meeting = environ.get("MASTER_ADDR", HOME)
    alone = found["LOCAL_WORLD_SIZE"] == found["WORLD_SIZE"]
    if "GLOO_SOCKET_IFNAME" not in environ:
        found["GLOO_SOCKET_IFNAME"] = "lo" if alone else _interface(meeting)
    return {name: text for name, text in found.items() if text}


def _groups(found: Mapping[str, str], environ: Mapping[str, str], per_node: int) -> dict[str, str]:
    """Return what torchrun says of nodes, which it calls groups, of roles, and of itself.

    There is one role, and nothing is started again.
    """
    rank, size = int(found["RANK"]), int(found["WORLD_SIZE"])
    if "LOCAL_WORLD_SIZE" in found:  # Hydra and Open MPI fill one node after the other
        local = int(found["LOCAL_WORLD_SIZE"])
        on_each = per_node or local
        node, nodes = rank // on_each, -(-size // on_each)
        known = per_node > 0 or size % local == 0
    else:
        each = _tasks(environ) or [size]
        node, nodes = int(environ.get("SLURM_NODEID", "0")), len(each)
        local = each[node] if node < nodes else size
        known = True
    groups = {"GROUP_RANK": str(node), "GROUP_WORLD_SIZE": str(nodes)} if known else {}
    return {
        "LOCAL_WORLD_SIZE": str(local),
        **groups,
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(size),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": environ.get("SCALEOUT_RUN_ID", "none"),
    }


def _tasks(environ: Mapping[str, str]) -> list[int]:
    """Read how many tasks srun has started on each node: SLURM_STEP_TASKS_PER_NODE, such as 2(x3),1."""
    each: list[int] = []
    for part in environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        tasks, _, times = part.partition("(x")
        each += [int(tasks)] * int(times.rstrip(")") or 1) if tasks else []
    return each


def _interface(meeting: str) -> str:
    """Find the network interface by which the other ranks reach this one.

    It is that on the way to where they meet: the machine's own name may stand for an address that
    nobody else can reach.
    """
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
    """Return the IPv4 address of an interface, "" where it has none."""
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
    """List the interfaces through which this node reaches whatever it does not know."""
    try:
        with open("/proc/net/route", encoding="ascii") as file:
            lines = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []
    return [line[0] for line in lines if len(line) > 1 and line[1] == "00000000"]


def _watch(port: str) -> None:
    """Start what watches this process, and is no child of what it becomes."""
    own = os.getpid()
    if child := os.fork():
        os.waitpid(child, 0)
        return
    if not os.fork():
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        words = [sys.executable, "-I", "-S", "-c", WATCHER, package, str(own), port]
        os.execv(sys.executable, words)
    os._exit(0)


def _become(command: list[str]) -> int:
    """Turn into the command; return an exit status when there is none of that name."""
    import signal

    per_node = 0
    if command[:1] == [PER_NODE]:
        per_node, command = int(command[1]), command[2:]
    environment = {**os.environ, **torch_variables(os.environ, per_node)}
    rank = int(environment.get("RANK", "0"))
    if command[:1] == [BIND]:
        cpus = command[1].split(",")
        os.sched_setaffinity(0, map(int, cpus[rank % len(cpus)].split("+")))
        command = command[2:]
    if command[:1] == [ERRORS]:
        files = [int(file) for file in command[1].split(",")]
        os.dup2(files[rank], 2)
        for file in files:
            os.close(file)
        command = command[2:]
    if command[:1] == [WATCH]:
        if rank in (0, int(environment.get("WORLD_SIZE", "1")) - 1):
            _watch(environment.get("MASTER_PORT", ""))
        command = command[1:]
    if rank:  # which mpirun lets wait for ever
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and its heirs would
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"{command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return NOT_FOUND


if __name__ == "__main__":
    sys.exit(_become(sys.argv[1:]))
