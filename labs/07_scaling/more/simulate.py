"""Does the ring's formula hold on 128 ranks? An allreduce, simulated.

    python labs/07_scaling/more/simulate.py 2 8 32 128

SMPI, a part of SimGrid, runs smpi.c on the machine that platform.xml
describes: 1,024 nodes with 100 Gb/s. It simulates each message on the links,
and counts simulated seconds; the arithmetic is left out, as in the formula.
You will see the time of an allreduce of 100 MB, and how far from it the
formula lies. 128 ranks take about ten seconds of yours, 1,024 some minutes.

SimGrid comes with  apt-get install simgrid libsimgrid-dev.  In 2026, SimGrid
3.32 gave 18.1 ms on 128 ranks and 28.2 ms on 1,024.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scaleout import scaling

HERE = Path(__file__).resolve().parent
NODES = 1024
BYTES = 100_000_000
# SimGrid's own corrections were measured on a cluster with Gigabit Ethernet.
# The machine of platform.xml has another network.
SETTINGS = [
    "smpi/allreduce:lr",  # a ring
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "smpi/simulate-computation:no",
    # Else 1,024 ranks ask for more maps than Linux gives.
    "smpi/shared-malloc-blocksize:67108864",
]


def simulate(ranks: int, folder: str) -> tuple:
    """The seconds of an allreduce, and the messages that came before it."""
    hosts = Path(folder, "hosts")
    hosts.write_text("".join(f"node{node}\n" for node in range(NODES)))
    program = Path(folder, "smpi")
    subprocess.run(["smpicc", "-O2", HERE / "smpi.c", "-o", program],
                   check=True, capture_output=True)
    flags = [f"--cfg={setting}" for setting in SETTINGS]
    done = subprocess.run(
        ["smpirun", "-np", str(ranks), "-platform", HERE / "platform.xml",
         "-hostfile", hosts, *flags, "--log=root.thres:error",
         program, str(BYTES)],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    messages = re.findall(r"^message (\d+) ([\d.]+)$", done, re.MULTILINE)
    (seconds,) = re.findall(r"^allreduce \d+ ([\d.]+)$", done, re.MULTILINE)
    return float(seconds), [(int(n), float(s)) for n, s in messages]


def main(counts: list[int]) -> None:
    """A line for each number of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        for ranks in counts:
            seconds, messages = simulate(ranks, folder)
            # Alpha and beta of the simulated network, as 03 measures them.
            link = scaling.fit_alpha_beta(*zip(*messages, strict=True))
            formula = scaling.ring_allreduce_s(BYTES, ranks, link.alpha_s,
                                               link.beta_s)
            print(f"{ranks:5} ranks: {1e3 * seconds:.1f} ms simulated, "
                  f"{1e3 * formula:.1f} ms by the formula "
                  f"({formula / seconds - 1:+.0%})", flush=True)


if __name__ == "__main__":
    if shutil.which("smpicc") is None:
        sys.exit("SimGrid is not here: apt-get install simgrid libsimgrid-dev")
    asked = [int(text) for text in sys.argv[1:]] or [2, 8, 32]
    if not all(2 <= ranks <= NODES for ranks in asked):
        sys.exit(f"Numbers of ranks go from 2 to {NODES}.")
    main(asked)
