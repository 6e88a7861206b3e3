"""Real jobs: what comes out of them, what they are given, and what is kept."""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import run_script

from scaleout import lab, machine
from scaleout.jobs.job import JobFailed, Run
from scaleout.site import Site

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

CORES = machine.usable_cores()
Write = Callable[..., Path]


# Writes its lines in pieces, the first half of them before it has seen a file, the rest after.
TORN = """
    import os, random, sys, time
    from mpi4py import MPI

    seen = sys.argv[1]
    rank = MPI.COMM_WORLD.rank
    rng = random.Random(rank)
    text = "".join(f"{rank}:{i}:" + "abcdefghij" * rng.randrange(20) + ";\\n" for i in range(300)).encode()
    half = len(text) // 2
    MPI.COMM_WORLD.barrier()
    stream = 1 + rank % 2
    while text:
        if len(text) < half:
            while not os.path.exists(seen):
                time.sleep(0.005)
        cut = rng.randrange(1, 120)
        os.write(stream, text[:cut])
        text = text[cut:]
        if rng.random() < 0.05:
            time.sleep(0.001)
"""


def test_lines_written_in_pieces_by_four_ranks_come_out_whole(
    script: Write, results: Path, tmp_path: Path
) -> None:
    """No rank writes its second half before a line of each is here, so their lines are mixed; odd
    ranks write to standard error."""
    echoed: list[str] = []
    seen = tmp_path / "seen"

    def echo(line: str) -> None:
        echoed.append(line)
        if not seen.exists() and {f"[{rank}]" for rank in range(4)} <= {e[:3] for e in echoed}:
            seen.touch()

    job = run_script(script(TORN), seen, ranks=4, echo=echo)
    assert len(job.lines) == 1200
    for rank in range(4):
        texts = [text for r, text in job.lines if r == rank]
        assert [text.split(":")[:2] for text in texts] == [[str(rank), str(i)] for i in range(300)]
        assert all(re.fullmatch(r"\d:\d+:(abcdefghij)*;", text) for text in texts)
    ranks = [rank for rank, _ in job.lines]
    assert ranks != sorted(ranks), "nothing was interleaved: this test shows nothing"
    assert [line for line in echoed if re.match(r"\[\d\] ", line)] == job.output.splitlines()
    assert (job.folder / "output.txt").read_text() == job.output + "\n"


def test_a_long_line_garbage_and_a_last_line_without_an_end_come_through(
    script: Write, results: Path
) -> None:
    text = """
        import os, random, sys
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        out = sys.stdout.buffer
        out.write(str(rank).encode() * 1_000_000 + b"\\n")
        out.write(random.Random(rank).randbytes(300_000).replace(b"\\n", b"") + b"\\x1e1\\x1f\\n")
        out.write(b"\\r 10%\\r 100%\\r\\n\\n")
        out.write(b"no end from %d" % rank)
    """
    job = run_script(script(text), ranks=2)
    for rank in (0, 1):
        long, garbage, progress, empty, last = (text for r, text in job.lines if r == rank)
        assert long == str(rank) * 1_000_000
        assert len(garbage) > 100_000 and garbage.endswith("\x1e1\x1f")
        assert progress == "\r 10%\r 100%" and empty == "" and last == f"no end from {rank}"


def test_lines_are_shown_as_they_come(script: Write, results: Path) -> None:
    text = """
        import os, sys, time
        print("first")
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
    """
    seen = results.parent / "seen"
    assert (
        run_script(
            script(text),
            seen,
            echo=lambda line: seen.touch() if "first" in line else None,
            timeout=20,
        ).status
        == 0
    )


TELL = """
    import json, os
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    told = comm.gather({"environment": dict(os.environ), "cores": sorted(os.sched_getaffinity(0))})
    if comm.rank == 0:
        print(json.dumps(told))
"""


def _told(job: Run) -> list[dict]:
    return json.loads(job.lines[0][1])


def test_a_rank_is_given_its_environment(
    script: Write, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "SLURM_JOB_ID",
        "SLURM_NTASKS",
        "PMI_RANK",
        "PMIX_RANK",
        "HYDRA_HOST_FILE",
        "OMPI_COMM_WORLD_SIZE",
    ):
        monkeypatch.setenv(name, "77")
    monkeypatch.setenv("OMP_NUM_THREADS", "99")
    monkeypatch.setenv("MINE", "kept")
    site = Site(env={"FROM_SITE": "1", "BOTH": "site"})
    env = {"BOTH": "call", "NUMBER": 5}
    job = run_script(script(TELL), ranks=2, threads=3, env=env, site=site)
    told = _told(job)
    assert len(told) == 2
    for rank, found in enumerate(rank["environment"] for rank in told):
        wanted = dict.fromkeys(
            ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "3"
        )
        wanted |= {
            "PYTHONUNBUFFERED": "1",
            "MINE": "kept",
            "FROM_SITE": "1",
            "BOTH": "call",
            "NUMBER": "5",
        }
        wanted |= {"SCALEOUT_RUN_ID": job.id, "SCALEOUT_RECORDS": str(job.folder / "records.jsonl")}
        wanted |= {"SCALEOUT_CORES": str(CORES), "SCALEOUT_NODES": "1"}
        assert {name: found.get(name) for name in wanted} == wanted
        assert found["PATH"].startswith(str(Path(sys.prefix) / "bin") + os.pathsep)
        assert "77" not in [
            found.get(name)
            for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "PMIX_RANK", "HYDRA_HOST_FILE")
        ]
        assert "OMPI_COMM_WORLD_SIZE" not in found
        assert found["PMI_RANK"] == str(rank)  # this job's own


@pytest.mark.skipif(CORES < 2, reason="one core cannot be shared out")
def test_each_rank_has_cores_of_its_own(script: Write, results: Path) -> None:
    first, second = (
        set(rank["cores"]) for rank in _told(run_script(script(TELL), ranks=2, threads=1))
    )
    assert first and second and not first & second
    assert first | second <= os.sched_getaffinity(0)
    (both,) = _told(run_script(script(TELL), ranks=1, threads=2))
    assert len(both["cores"]) >= 2


def test_a_bound_rank_may_start_further_ranks(script: Write, results: Path) -> None:
    text = """
        import sys
        from mpi4py import MPI
        parent = MPI.Comm.Get_parent()
        if parent == MPI.COMM_NULL:
            children = MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=2)
            print("sum", children.reduce(None, root=MPI.ROOT))
            children.Disconnect()
        else:
            parent.reduce(parent.rank + 1)
            parent.Disconnect()
        """
    job = run_script(script(text), ranks=1, threads=1)
    assert (0, "sum 3") in job.lines


@pytest.mark.skipif(CORES < 2, reason="there is no core to leave out")
def test_ranks_stay_on_the_cores_that_the_launcher_may_use(script: Write, results: Path) -> None:
    allowed = os.sched_getaffinity(0)
    last = {max(allowed)}
    try:
        os.sched_setaffinity(0, last)
        (found,) = _told(run_script(script(TELL), ranks=1, threads=1))
    finally:
        os.sched_setaffinity(0, allowed)
    assert set(found["cores"]) == last


def test_more_threads_than_cores_are_not_bound_and_a_warning_names_them(
    script: Write, results: Path
) -> None:
    said: list[str] = []
    job = run_script(script(TELL), ranks=2, threads=CORES, echo=said.append)
    assert said[1].startswith(f"Oversubscribed: 2 ranks x {CORES} threads share {CORES} core")
    assert "-bind-to" not in job.command
    assert [set(rank["cores"]) for rank in _told(job)] == [os.sched_getaffinity(0)] * 2
    said.clear()
    run_script(script(TELL), ranks=1, threads=CORES, echo=said.append)
    assert not [line for line in said if "Oversubscribed" in line]


def test_the_command_shown_is_a_plain_one_that_works(
    script: Write, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    job = run_script(
        script("import sys; print(sys.argv[1:])"), "a b", "$HOME", ranks=2, echo=said.append
    )
    assert said[0] == f"$ {job.command}"
    assert "prepend" not in job.command and job.id not in job.command
    monkeypatch.setenv("PATH", str(Path(sys.prefix) / "bin"), prepend=os.pathsep)
    plain = subprocess.run(
        shlex.split(job.command),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert plain.returncode == 0 and plain.stdout.count("['a b', '$HOME']") == 2


def test_everything_about_a_job_is_kept(script: Write, results: Path) -> None:
    text = """
        from mpi4py import MPI
        from scaleout import records
        if MPI.COMM_WORLD.rank == 0:
            for variant in "ab":
                records.write(lab="train", variant=variant, ranks=MPI.COMM_WORLD.size, step_s=[0.5], metrics={"x": 1})
    """
    job = run_script(script(text), ranks=2, env={"A": "b"})
    assert job.folder == results / "train" / job.id
    assert sorted(path.name for path in job.folder.iterdir()) == [
        "output.txt",
        "records.jsonl",
        "run.json",
    ]
    about = json.loads((job.folder / "run.json").read_text())
    assert about == {
        "id": job.id,
        "name": "train",
        "command": job.command,
        "ranks": 2,
        "threads": 1,
        "env": {"A": "b"},
        "status": 0,
        "wall_s": round(job.wall_s, 3),
    }
    frame = job.records
    assert frame["variant"].tolist() == ["a", "b"] and set(frame["run_id"]) == {job.id}
    assert all(re.match(r"MPICH Version:\s+\d+\.\d+", name) for name in frame["mpi"])
    assert frame["metrics.x"].tolist() == [1, 1] and frame["threads_per_rank"].tolist() == [1, 1]
    assert "ended well" in repr(job)


def test_a_job_that_fails_is_an_error_with_its_status_and_its_run(
    script: Write, results: Path
) -> None:
    status = 42
    with pytest.raises(JobFailed, match=f"exit status {status}, after") as caught:
        run_script(script(f"import sys; print('before'); sys.exit({status})"))
    assert caught.value.status == caught.value.run.status == status
    assert caught.value.run.lines[0] == (0, "before")
    assert json.loads((caught.value.run.folder / "run.json").read_text())["status"] == status


def test_a_lab_runs_with_its_arguments_as_flags(
    workshop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workshop / "labs/00_tiny/runme.py").write_text("import sys; print(sys.argv[1:])\n")
    job = lab("tiny").run(threads=1, colors=16, cycle_time=2.5, verbose=True, quiet=False)
    wanted = "[0] ['--colors', '16', '--cycle-time', '2.5', '--verbose']"
    assert job.output == wanted and capsys.readouterr().out.splitlines()[-1] == wanted
    lab("tiny").run(threads=1, echo=False)
    assert capsys.readouterr().out == ""


def test_five_ranks_on_two_hosts_are_told_of_both(
    script: Write, tmp_path: Path, results: Path
) -> None:
    ssh = tmp_path / "ssh"  # both hosts are this machine
    ssh.write_text('#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    here = ("-localhost", "127.0.0.1")
    site = Site(hosts=("me@node1", "node2"), ssh=str(ssh), options=here, bind="none")
    names = ("GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    path = script(f"import os; print(*(os.environ[name] for name in {names}))")
    job = run_script(path, ranks=5, site=site, env={"GLOO_SOCKET_IFNAME": "lo"})
    assert sorted(job.lines) == [
        (0, "0 2 0 3 node1"),
        (1, "0 2 1 3 node1"),
        (2, "0 2 2 3 node1"),
        (3, "1 2 0 2 node1"),
        (4, "1 2 1 2 node1"),
    ]


def test_two_runs_at_once_do_not_mix(script: Write, results: Path, no_process_left) -> None:
    text = """
        import os, sys, time
        from mpi4py import MPI
        from scaleout import records
        name = sys.argv[1]
        for i in range(100):
            print(name, i)
            time.sleep(0.005)
        if MPI.COMM_WORLD.rank == 0:
            records.write(lab=name)
    """
    path = script(text)
    jobs: dict[str, Run] = {}

    def start(name: str) -> None:
        jobs[name] = run_script(path, name, ranks=2)

    threads = [threading.Thread(target=start, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert jobs["one"].id != jobs["two"].id and jobs["one"].folder != jobs["two"].folder
    for name, job in jobs.items():
        assert sorted(job.lines) == sorted(
            (rank, f"{name} {i}") for rank in (0, 1) for i in range(100)
        )
        assert job.records["lab"].tolist() == [name]
        no_process_left(job.id)
