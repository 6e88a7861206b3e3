"""An allreduce on a machine that is not there: a real MPI program, run by SimGrid's SMPI on a
simulated fat tree.

SMPI simulates each message on the links of the machine and counts simulated seconds (Degomme et
al., "Simulating MPI applications: the SMPI approach", IEEE TPDS 28 (8), 2017). The arithmetic is
left out, as in the formula."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ScaleoutError
from ..settings import quick
from .messages import AlphaBeta, fit_alpha_beta

LIMIT_S = 120.0
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void send(float *x, int n, int to) { MPI_Send(x, n, MPI_BYTE, to, 0, MPI_COMM_WORLD); }

static void take(float *x, int n, int from) {
    MPI_Recv(x, n, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks, bytes = atoi(argv[1]), n = bytes / sizeof(float);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* All simulated ranks share one piece of memory: the numbers do not matter, the messages do. */
    float *mine = SMPI_SHARED_MALLOC(bytes), *sum = SMPI_SHARED_MALLOC(bytes);
    for (int size = 4; size <= bytes && rank < 2; size *= 4) {
        double start = MPI_Wtime();
        if (rank == 0) {
            send(mine, size, 1);
            take(sum, size, 1);
            printf("message %d %.9f\\n", size, (MPI_Wtime() - start) / 2);
        } else {
            take(sum, size, 0);
            send(mine, size, 0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), slowest;
    MPI_Allreduce(mine, sum, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("allreduce %d %.9f\\n", ranks, slowest);
    SMPI_SHARED_FREE(mine);
    SMPI_SHARED_FREE(sum);
    MPI_Finalize();
    return 0;
}
"""
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="tree" prefix="node" suffix="" radical="0-{last}" speed="100Gf" bw="{gbytes}GBps" lat="1us"
           topology="FAT_TREE" topo_parameters="2;{side},{side};1,{side};1,1"/>
</platform>
"""
# SimGrid's own corrections were measured on a cluster with Gigabit Ethernet; this machine has
# another network.
PLAIN = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "smpi/simulate-computation:no",
    # Else 1,024 ranks ask for more maps than Linux gives.
    "smpi/shared-malloc-blocksize:67108864",
)


@dataclass(frozen=True)
class Simulated:
    """A simulated allreduce in a ring."""

    ranks: int
    bytes: int
    seconds: float
    messages: tuple[tuple[int, float], ...] = ()

    def fit(self) -> AlphaBeta:
        """Alpha and beta of the simulated network, measured there as 03 measures them here."""
        return fit_alpha_beta(*zip(*self.messages, strict=True))


# What `simulate(ranks)` gave in 2026 with SimGrid 3.32, for machines without it: 100 MB, 32 x 32
# nodes, 100 Gb/s.
RECORDED = {128: Simulated(128, 10**8, 0.018102), 1024: Simulated(1024, 10**8, 0.028197)}


def smpi_missing() -> str:
    """What to type where SimGrid is not installed, or ""."""
    gone = [name for name in ("smpicc", "smpirun") if shutil.which(name) is None]
    return f"no {', '.join(gone)} here: apt-get install simgrid libsimgrid-dev" if gone else ""


def simulable() -> list[int]:
    """The numbers of ranks that are simulated while you wait: none where SimGrid is missing, and
    with SCALEOUT_QUICK=1 two instead of four."""
    if smpi_missing():
        return []
    return [2, 8] if quick() else [2, 8, 32, 128]


def simulate(
    ranks: int, mb: int = 100, gbits: float = 100.0, side: int = 32, limit_s: float = LIMIT_S
) -> Simulated:
    """A ring allreduce on a fat tree. 128 ranks take about 10 s of your time."""
    if why := smpi_missing():
        raise ScaleoutError(f"There is {why}")
    if not (2 <= ranks <= side * side and mb >= 1 and gbits > 0):
        raise ScaleoutError(
            f"A simulation takes 2 to {side * side} ranks, and bytes and links above 0."
        )
    with tempfile.TemporaryDirectory(prefix="scaleout-smpi-") as name:
        folder = Path(name)
        (folder / "allreduce.c").write_text(PROGRAM)
        (folder / "tree.xml").write_text(
            PLATFORM.format(last=side * side - 1, gbytes=gbits / 8, side=side)
        )
        (folder / "hosts").write_text("".join(f"node{node}\n" for node in range(side * side)))
        _do(folder, limit_s, "smpicc", "-O2", "allreduce.c", "-o", "allreduce")
        settings = [f"--cfg={setting}" for setting in ("smpi/allreduce:lr", *PLAIN)]
        where = ["-np", str(ranks), "-platform", "tree.xml", "-hostfile", "hosts"]
        said = _do(
            folder,
            limit_s,
            "smpirun",
            *where,
            *settings,
            "--log=root.thres:error",
            "./allreduce",
            f"{mb}000000",
        )
    found = re.search(r"^allreduce \d+ ([\d.]+)$", said, re.M)
    if not found:
        raise ScaleoutError(
            f"SimGrid said nothing of an allreduce: {said.strip()[-300:] or 'no word'}"
        )
    messages = tuple(
        (int(n), float(s)) for n, s in re.findall(r"^message (\d+) ([\d.]+)$", said, re.M)
    )
    return Simulated(ranks, mb * 10**6, float(found[1]), messages)


def _do(folder: Path, limit_s: float, *command: str) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise ScaleoutError(
            f"The simulation did not end within {limit_s:g} s: take fewer ranks."
        ) from None
    if done.returncode:
        raise ScaleoutError(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-300:]}")
    return done.stdout
