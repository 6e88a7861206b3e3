"""Messages that people meet, and the section of docs/errors.md that explains each."""

import re
import site
import sys
from pathlib import Path

PAGE = "docs/errors.md"
SHARED = "share/scaleout/errors.md"  # where pip puts the page, below the environment's folder
SHUT_DOWN, KILLED = "Horovod has been shut down", "A rank was killed (signal 9)"
ECHOES = (SHUT_DOWN, KILLED)  # what other ranks may say, or mpirun of them, because one has failed
# The heading of each section, and what its text looks like in a job's output. The first that fits
# is named.
MESSAGES = {
    "Intra op parallelism cannot be modified after initialization": r"(Intra|Inter) op parallelism cannot be modified",
    "libmpi.so.12: cannot open shared object file": r"libmpi\.so\.\d+: cannot open shared object",
    "'Variable' object has no attribute 'ref'": r"no attribute 'ref'|'experimental_run_tf_function'",
    "Distributed package doesn't have NCCL built in": r"Distributed package doesn't have NCCL built in|_cuda_setDevice|"
    r"Torch not compiled with CUDA enabled",
    "ModuleNotFoundError: No module named 'torch'": r"No module named 'torch'",
    "terminate called without an active exception": r"terminate called without an active exception",
    "No module named mpi4py": r"No module named '?mpi4py",
    "operator torchvision::nms does not exist": r"operator torchvision::\w+ does not exist|"
    r"No module named 'torchvision'",
    "urlopen error": r"urlopen error|URL fetch failure|Failed to resolve '",
    "Stalled tensor": r"tensors were submitted to be (reduced|allreduced|gathered|broadcast).* by subset of ranks",
    "not enough slots": r"not enough slots available",
    "NoSuchKernel": r"No such kernel named",
    "Null numeric table is not supported": r"Null numeric table is not supported",
    "ModuleNotFoundError: No module named 'scaleout'": r"No module named 'scaleout'",
    "'SymbolicTensor' object has no attribute 'assign'": r"'SymbolicTensor' object has no attribute 'assign'",
    "Address already in use": r"(?i:address already in use)|EADDRINUSE|Errno 98\b",
    "Assertion failed in file": r"Assertion failed in file .*\.[ch]\b",
    SHUT_DOWN: r"Horovod has been shut down",
    KILLED: r"\(signal 9\)",
}
# What the doctor says where it sees the cause of such a message before anybody meets it.
FINDINGS = {
    "Every process is rank 0 of 1": r"rank 0 of 1|worlds of one|\d MPI libraries: ",
    "NoSuchKernel": r"no kernel named|python3 is another environment's",
    "not enough slots": r"is .* \(Open MPI\), not this environment's",
    KILLED: r"wants .* GiB a rank",
}


def finding(seen: str) -> str | None:
    """Find the section that explains what the doctor has seen; None when there is none."""
    for heading, pattern in (*FINDINGS.items(), *MESSAGES.items()):
        if re.search(pattern, seen):
            return f"{page()}#{anchor(heading)}"
    return None


def section(reason: str, output: str = "") -> str | None:
    """Find the section that explains a failure; None when there is none."""
    for text in (reason, output):
        for heading, pattern in MESSAGES.items():
            if heading not in ECHOES and re.search(pattern, text):
                return f"{page()}#{anchor(heading)}"
    echo = next((echo for echo in ECHOES if re.search(MESSAGES[echo], reason)), None)
    return f"{page()}#{anchor(echo)}" if echo else None


def page() -> str:
    """Return the path of the page that explains the messages.

    It is the checkout's, or the one that pip brought.
    """
    checkout = Path(__file__).resolve().parents[3] / PAGE
    brought = (Path(folder or "") / SHARED for folder in (sys.prefix, site.USER_BASE))
    return next((str(path) for path in (checkout, *brought) if path.is_file()), PAGE)


def anchor(heading: str) -> str:
    """Make the name of a heading in a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
