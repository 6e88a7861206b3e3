"""Ranks that never talk to each other are copies of one job: a run says so, a sweep counts them for
nothing. Ranks that talk, by whichever library, are never called copies."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scaleout import Site, compare, sweeps
from scaleout.jobs.environment import program
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

SERIAL = """
    import time
    time.sleep(0.5)
    print("rate 10", flush=True)
"""
BY_MPI = """
    from mpi4py import MPI
    if MPI.COMM_WORLD.allreduce(1) and MPI.COMM_WORLD.rank == 0:
        print("rate 10", flush=True)
"""

# Ranks that choose their own port, as many do for torch; one line of output, and it comes late.
BY_OWN_PORT = """
    import os, socket, time
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    place = "127.0.0.1", 29500 + os.getppid() % 400
    if rank == 0:
        with socket.create_server(place) as server:
            for other in [server.accept()[0] for _ in range(ranks - 1)]:
                other.sendall(b"1")
            time.sleep(1.5)
        print("rate 10", flush=True)
    else:
        for _ in range(100):
            try:
                with socket.create_connection(place) as way:
                    way.recv(1)
                break
            except OSError:
                time.sleep(0.1)
"""
# The same at a file in place of a port, or with rank 1 as the one that waits for the others, or at a
# port that is closed again while the connection lasts.
BY_A_FILE = (
    BY_OWN_PORT.replace('"127.0.0.1", 29500 + os.getppid() % 400', 'f"/tmp/meets-{os.getppid()}"')
    .replace("create_server(place)", "socket(socket.AF_UNIX)")
    .replace("as server:", "as server:\n            server.bind(place), server.listen()")
    .replace("socket.create_connection(place)", "socket.socket(socket.AF_UNIX)")
    .replace("as way:", "as way:\n                    way.connect(place)")
    .replace('print("rate', 'os.unlink(place), print("rate')
)
BY_RANK_1 = BY_OWN_PORT.replace("if rank == 0", "if rank == 1")
BY_WHAT_STAYS = BY_OWN_PORT.replace(
    'other.sendall(b"1")\n', 'print("met", flush=True), server.close()\n'
).replace("time.sleep(1.5)", "time.sleep(1.5), other.sendall(b'1')")


# What torch's Gloo does, by a process that a rank has started.
BY_A_WORKER = """
    import os, socket, subprocess, sys, time
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if "worker" not in sys.argv:
        subprocess.run([sys.executable, __file__, "worker"], check=True)
        print("rate 10", flush=True)
    elif os.environ["RANK"] == "0":
        socket.create_server(place).accept()
    else:
        while True:
            try:
                socket.create_connection(place).recv(1)
                break
            except OSError:
                time.sleep(0.1)
"""
# MPI at the very end of a script that has long said its line.
LATE = "import time; print('rate 10', flush=True); time.sleep(0.7)" + BY_MPI.replace("\n    ", "\n")


@pytest.fixture(params=["counted", "watched"])
def run(
    script: Callable[..., Path], results: Path, request: pytest.FixtureRequest
) -> Callable[..., tuple[launch.Run, list[str]]]:
    """Runs the text of a script; returns the job and what was said.

    Our mpirun by its path is taken for another's, whose calls nobody counts.
    """
    by_path = Site(mpirun=program("mpirun"))
    site = by_path if request.param == "watched" else None

    def start(text: str, *words: object, ranks: int = 2) -> tuple[launch.Run, list[str]]:
        said: list[str] = []
        command = ["python", str(script(text)), *map(str, words)]
        job = launch.run(
            command, name="talk", ranks=ranks, threads=1, timeout=300, echo=said.append, site=site
        )
        assert "whether a rank talks" not in job.output and "PMI calls" not in job.output
        return job, said

    return start


def test_ranks_that_never_talk_are_named(run) -> None:
    job, said = run(SERIAL)
    assert job.talked is False
    assert [line for line in said if "never talked to each other" in line] == said[-1:]
    assert "2 copies of one job" in said[-1]


@pytest.mark.parametrize("text", [BY_MPI, BY_A_WORKER, LATE], ids=["mpi", "a worker", "late"])
def test_ranks_that_talk_are_not_called_copies(run, text: str) -> None:
    """Those of daal4py and of Horovod neither: see the tests of 04 and 05."""
    job, said = run(text)
    assert job.talked is True and not any("never talked" in line for line in said)


@pytest.mark.parametrize(
    "text",
    [BY_OWN_PORT, BY_A_FILE, BY_RANK_1, BY_WHAT_STAYS],
    ids=["port", "file", "rank 1", "what stays"],
)
def test_ranks_that_meet_at_a_place_of_their_own_are_not_called_copies(run, text: str) -> None:
    job, said = run(text)
    assert job.talked is True and not any("never talked" in line for line in said)


def test_a_single_rank_has_nobody_to_talk_to(run) -> None:
    job, said = run(SERIAL, ranks=1)
    assert job.talked is None and not any("never talked" in line for line in said)


def test_a_sweep_counts_copies_for_nothing(script, results: Path) -> None:
    said: list[str] = []
    result = sweeps.sweep(
        f"python {script(SERIAL)}",
        ranks=[1, 2],
        threads=1,
        metric="rate ([0-9]+)",
        echo=said.append,
    )
    alone, copies = result.frame.set_index("ranks").loc[[1, 2]].itertuples()
    assert (alone.status, alone.rate) == ("ok", 10)
    assert (copies.status, copies.rate) == ("copies", 10)  # of one copy: they are never added up
    assert result.best.ranks == 1
    assert sum("never talked to each other" in line for line in said) == 1
    assert "1 of 2 points is left out" in result.summary
    assert "mpirun -n 2" not in (result.folder / "best.sh").read_text()
    again = sweeps.read(result.folder)
    assert again.frame.equals(result.frame) and again.summary == result.summary


def test_a_comparison_names_copies_once(script, results: Path) -> None:
    said: list[str] = []
    usual = {"script": ["python", str(script(SERIAL))], "name": "x", "echo": None, "threads": 1}
    variants = {"one": {**usual, "ranks": 1}, "two": {**usual, "ranks": 2}}
    compare(launch.run, variants, rounds=3, metric="rate ([0-9]+)", echo=said.append)
    told = [line for line in said if "never talked to each other" in line]
    assert [line.partition(":")[0] for line in told] == ["two"]
