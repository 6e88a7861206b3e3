"""Real jobs through a real Slurm, of four nodes on this machine: how they run, and every way in
which they end."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cluster import slurm
from helpers import until
from torch_scripts import (
    FRAMEWORKS,
    TELLS,
    TORCH,
    TORCHRUN,
    said,
    told,
    train_on_two_nodes,
    with_torch,
)

from scaleout import lab, sweeps
from scaleout.doctor.examine import examine_site
from scaleout.errors import ScaleoutError
from scaleout.jobs import run as launch
from scaleout.jobs import slurm_commands
from scaleout.jobs.job import JobFailed, JobTimeout, Run
from scaleout.jobs.site import Site

ROOT = Path(__file__).resolve().parents[2]
SITE = Site(
    scheduler="slurm", bind="none", minutes=5
)  # all four nodes share the cores of this machine
LABS = {
    "03_spmd": {"sizes": [4, 1024], "repeats": 2, "warmup": 1},
    "04_kmeans": {"scale": 0.2, "colours": 4},
    "05_horovod": {},
}
WAITS = "import time\nprint('began', flush=True)\ntime.sleep(200)\n"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.mpi,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    folder = tmp_path_factory.mktemp("slurm")
    with slurm.Slurm(folder) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", running.env["SLURM_CONF"])
        patch.setenv("SCALEOUT_QUICK", "1")
        yield running
    assert not running.processes(), "the cluster left something behind"


@pytest.fixture(scope="module")
def overtime(
    cluster: slurm.Slurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["subprocess.Popen[str]"]:
    """A job of a minute at most that wants 200 s; it waits for its end while the other tests
    run."""
    folder = tmp_path_factory.mktemp("overtime")
    (folder / "waits.py").write_text(WAITS)
    (folder / "site.toml").write_text('scheduler = "slurm"\nminutes = 1\nbind = "none"\n')
    command = [
        str(Path(sys.executable).with_name("scaleout")),
        "submit",
        "./waits.py",
        "--site",
        "site.toml",
    ]
    environment = {**os.environ, "SCALEOUT_RESULTS": str(folder / "results")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as job:  # type: ignore[call-overload]
        assert "submitted: 1 rank on 1 node, 1 minute at most" in job.stdout.readline()
        yield job
        job.send_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def in_order(
    cluster: slurm.Slurm, overtime: object, results: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Each test starts on free nodes, in the workshop, and leaves no job of its own."""
    monkeypatch.chdir(ROOT)
    before = set(cluster.jobs())
    yield
    end = time.monotonic() + 60
    while (left := set(cluster.jobs()) - before) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, f"jobs left in the queue: {left}"


def _submit(path: Path, site: Site = SITE, **how: object) -> Run:
    run = launch.run(
        ["python", "-m", "mpi4py", str(path)],
        name=path.stem,
        site=site,
        echo=None,
        **{"timeout": 200, **how},
    )
    return run


@pytest.mark.parametrize(
    ("name", "start"),
    [
        # Both ways of starting with the shortest lab; the others with one in make test.
        pytest.param(name, start, marks=[pytest.mark.choice] * (start == "mpirun" and at > 0))
        for at, name in enumerate(LABS)
        for start in ("mpirun", "srun")
    ],
)
def test_a_lab_runs_on_two_nodes(name: str, start: str, capfd: pytest.CaptureFixture[str]) -> None:
    run = lab(name, solution=True).run(
        ranks=2, nodes=2, threads=1, site=replace(SITE, start=start), **LABS[name]
    )
    assert run.status == 0 and (run.records.ranks == 2).all() and (run.records.nodes == 2).all()
    assert any(rank == 0 for rank, _ in run.lines)
    assert re.search(r"Job \d+ (runs|ran) on node\[\d[-,]\d\]", capfd.readouterr().out)
    assert f"\n{start} " in (run.folder / "job.sh").read_text()


def test_each_rank_is_on_its_node_and_lines_stay_whole(script: Callable[..., Path]) -> None:
    path = script(
        """
        import os, sys
        from mpi4py import MPI
        sys.stdout.write(os.environ["SLURMD_NODENAME"]); sys.stdout.flush(); sys.stdout.write(" x" * 40 + "\\n")
        """
    )
    run = _submit(path, ranks=4, nodes=2, threads=1)
    said = {rank: text.split()[0] for rank, text in run.lines if rank is not None}
    assert sorted(said) == [0, 1, 2, 3] and said[0] == said[1] != said[2] == said[3]
    assert all(text.endswith(" x" * 40) for rank, text in run.lines if rank is not None)


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_ranks_are_told_what_torchrun_would_tell(start: str, script: Callable[..., Path]) -> None:
    run = _submit(script(TELLS), replace(SITE, start=start), ranks=4, nodes=2, threads=1)
    found = told(run)
    assert sorted(found) == [0, 1, 2, 3]
    for rank, one in found.items():
        assert (one["RANK"], one["LOCAL_RANK"]) == (str(rank), str(rank % 2))
        assert (one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) == ("4", "2")
        assert one["MASTER_ADDR"] == os.uname().nodename
        assert one["GLOO_SOCKET_IFNAME"] in os.listdir("/sys/class/net")
    (port,) = {one["MASTER_PORT"] for one in found.values()}
    assert 1024 < int(port) < 65536


@with_torch
@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_a_script_for_torchrun_runs_unedited(start: str, script: Callable[..., Path]) -> None:
    run = launch.run(
        [str(TORCH / "bin" / "python"), str(script(TORCHRUN))],
        name="torchrun",
        site=replace(SITE, start=start),
        ranks=2,
        nodes=2,
        threads=1,
        timeout=200,
        echo=None,
    )
    assert [text[:12] for text in said(run)] == ["0 of 2: True", "1 of 2: True"]


@pytest.mark.choice
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_small_network_of_09_trains_on_two_nodes(framework: str) -> None:
    train_on_two_nodes(framework, site=SITE, nodes=2)


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_a_failed_job_says_who_failed_first(start: str, script: Callable[..., Path]) -> None:
    path = script(
        "from mpi4py import MPI\nif MPI.COMM_WORLD.rank: raise ValueError('mine')\nMPI.COMM_WORLD.Barrier()"
    )
    with pytest.raises(JobFailed, match="first on rank 1") as caught:
        _submit(path, replace(SITE, start=start), ranks=2, nodes=2)
    assert "ValueError: mine" in str(caught.value) and caught.value.status != 0


def test_copies_that_never_talk_are_named(script: Callable[..., Path]) -> None:
    said: list[str] = []
    command = ["python", str(script("print('rate 10', flush=True)"))]
    run = launch.run(
        command, name="x", ranks=2, nodes=2, threads=1, site=SITE, timeout=100, echo=said.append
    )
    assert run.talked is False and "never talked to each other" in said[-1]
    assert "PMI calls" not in run.output and "MASTER_PORT" not in run.output
    by_mpi = script("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()")
    assert _submit(by_mpi, ranks=2, nodes=2, threads=1).talked is True


# What torch's Gloo does: rank 0 waits at MASTER_PORT, the others connect.
BY_TCP = """
    import os, socket, time
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["RANK"] == "0":
        other, _ = socket.create_server(("", where[1])).accept()
        other.sendall(b"hello")
    else:
        while True:
            try:
                other = socket.create_connection(where)
                break
            except OSError:
                time.sleep(0.05)
        print(other.recv(5), flush=True)
"""


def test_ranks_that_meet_as_torchs_do_are_not_called_copies(script: Callable[..., Path]) -> None:
    run = launch.run(
        ["python", str(script(BY_TCP))],
        name="x",
        ranks=2,
        nodes=2,
        threads=1,
        site=SITE,
        timeout=100,
        echo=None,
    )
    assert run.talked is True


def test_a_sweep_counts_copies_for_nothing(script: Callable[..., Path]) -> None:
    result = sweeps.sweep(
        f"python {script('print(10)')}",
        ranks=[1, 2],
        threads=1,
        metric="([0-9]+)",
        site=SITE,
        echo=None,
    )
    rows = result.frame.set_index("ranks")
    assert rows.status[1] == "ok" and rows.status[2] == "copies" and result.best.ranks == 1


def test_what_the_job_wrote_in_scratch_is_brought_home(
    script: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SCRATCH", str(tmp_path / "scratch"))
    path = script(
        """
        from scaleout import records
        assert "scratch" in str(records.folder())
        (records.folder() / "picture.png").touch()
        records.write(lab="x")
        """
    )
    run = _submit(path, replace(SITE, scratch="$MY_SCRATCH/deep"))
    assert len(run.records) == 1 and (run.folder / "picture.png").exists()
    assert not list((tmp_path / "scratch/deep").iterdir())


def test_drained_nodes_are_told_while_the_job_waits(
    cluster: slurm.Slurm, script: Callable[..., Path]
) -> None:
    cluster.ask("scontrol", "update", "NodeName=node[2-4]", "State=DRAIN", "Reason=test")
    said: list[str] = []
    try:
        with pytest.raises(
            JobTimeout, match="still in the queue: nodes that it needs are down, drained"
        ):
            launch.run(
                ["true"], name="x", ranks=4, nodes=4, site=SITE, timeout=12, echo=said.append
            )
    finally:
        cluster.ask("scontrol", "update", "NodeName=node[2-4]", "State=RESUME")
    assert any("waits: nodes that it needs are down, drained" in text for text in said)


def test_a_job_that_somebody_cancels_says_so(
    cluster: slurm.Slurm, script: Callable[..., Path]
) -> None:
    said: list[str] = []

    def cancel() -> None:
        until(lambda: any("began" in text for text in said))
        cluster.ask("scancel", "--name=train")

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(JobFailed, match=r"Job \d+ was cancelled"):
        launch.run(
            ["python", str(script(WAITS))], name="train", site=SITE, timeout=60, echo=said.append
        )
    other.join()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "terminal closed"]
)
def test_an_interrupt_cancels_the_job(
    number: int, cluster: slurm.Slurm, script: Callable[..., Path], tmp_path: Path
) -> None:
    site = tmp_path / "site.toml"
    site.write_text('scheduler = "slurm"\nbind = "none"\n')
    command = [
        str(Path(sys.executable).with_name("scaleout")),
        "submit",
        str(script(WAITS)),
        "--site",
        str(site),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as job:  # type: ignore[call-overload]
        for line in job.stdout:
            if "began" in line:
                break
        job.send_signal(number)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 130 and re.search(r"job \d+ has been cancelled", errors), errors


@pytest.mark.parametrize(
    "how", [{"site": replace(SITE, minutes=600)}, {"site": SITE, "ranks": 9, "nodes": 9}]
)
def test_what_can_never_start_is_not_waited_for(how: dict, cluster: slurm.Slurm) -> None:
    with pytest.raises(
        JobFailed, match="would wait for ever: .*(more time|fewer nodes, ranks or minutes)"
    ):
        launch.run(["true"], name="x", timeout=30, echo=None, **how)


def test_what_slurm_refuses_is_said_in_a_sentence(cluster: slurm.Slurm) -> None:
    with pytest.raises(
        ScaleoutError, match="Slurm refused the job: [Ii]nvalid partition.*Correct the site file"
    ):
        launch.run(
            ["true"], name="x", site=replace(SITE, partition="nowhere"), timeout=30, echo=None
        )


INSIDE = """
    import os
    from scaleout.jobs import run as launch
    from scaleout import Engines

    run = launch.run(["sh", "-c", "echo at $SLURMD_NODENAME"], name="inside", ranks=4, threads=1, echo=None)
    print(sorted(text for _, text in run.lines if text.startswith("at")))
    with Engines(4, threads=1) as client:

        def who():
            import os
            from mpi4py import MPI

            return MPI.COMM_WORLD.rank, os.environ["SLURMD_NODENAME"], MPI.COMM_WORLD.allreduce(1)

        print(client[:].apply_sync(who))
    alone = launch.Site()
    print(launch.run(["hostname"], name="inside", ranks=2, threads=1, site=alone, echo=None).command)
"""


def test_inside_an_allocation_jobs_and_engines_use_its_nodes(
    script: Callable[..., Path], cluster: slurm.Slurm
) -> None:
    step = [
        "srun",
        "-N2",
        "-n2",
        "-c2",
        "sh",
        "-c",
        f'[ "$SLURM_PROCID" = 1 ] || {sys.executable} {script(INSIDE)}',
    ]
    done = subprocess.run(step, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    job, engines, alone = done.stdout.splitlines()
    nodes = re.findall(r"at (node\d)", job)
    assert len(nodes) == 4 and nodes[0] == nodes[1] != nodes[2] == nodes[3]
    assert engines == str([(rank, nodes[rank], 4) for rank in range(4)])
    assert "-ppn" not in alone


def test_the_doctor_asks_slurm(cluster: slurm.Slurm) -> None:
    assert [check.status for check in examine_site(SITE)] == ["ok", "ok"]
    slow = examine_site(replace(SITE, partition="nowhere"))
    assert slow[1].status == "fail" and "nvalid partition" in slow[1].seen and slow[1].fix


def test_a_job_over_its_time_limit_says_so(overtime: "subprocess.Popen[str]") -> None:
    """Late: it takes Slurm between one and two minutes."""
    said, _ = overtime.communicate(timeout=300)
    assert overtime.returncode == 124, said
    assert (
        "reached its limit of 1 minutes and was ended by Slurm; set more minutes" in said
        and "began" in said
    )


SCALING = ROOT / "solutions" / "07_scaling"


def test_the_job_script_that_people_write_trains_on_two_nodes() -> None:
    checks = lab("07_scaling", solution=True).module("checks")
    state, output = checks.by_slurm(SCALING / "job.sh")
    assert state == "COMPLETED"
    assert "2 ranks, from step 0" in output and "stopped after step 200" in output
    assert not list(SCALING.glob("train-*")) and not list(SCALING.glob("kept-*"))


def _ended(number: str) -> bool:
    """Whether the job is through. One that was put back waits two minutes: no longer than needed.
    Asked until it starts, as Slurm sets the time anew when the last of the job's nodes is free."""
    state = slurm_commands.state(number).get("JobState")
    if state == "PENDING":
        slurm_commands.ask("scontrol", "update", f"jobid={number}", "starttime=now")
        time.sleep(1)
    return state == "COMPLETED"


def test_a_warned_job_goes_back_into_the_queue_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "labs" / "07_scaling"
    folder.mkdir(parents=True)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    for name in ("again.sh", "train.py"):
        shutil.copy(SCALING / name, folder)
    number = slurm_commands.ask(
        "sbatch", "--parsable", f"--chdir={folder}", str(folder / "again.sh")
    ).stdout.strip()
    output = folder / f"again-{number}.txt"
    try:
        until(lambda: output.exists() and "kept: step 20\n" in output.read_text(), 60)
        slurm_commands.ask("scancel", "--batch", "--signal=USR1", number)
        until(lambda: slurm_commands.state(number).get("Restarts") == "1", 60)
        stopped = int(re.findall(r"stopped after step (\d+)", output.read_text())[-1])
        until(lambda: _ended(number), 200)
        assert stopped < 200 and f"from step {stopped}\n" in output.read_text()
        assert "stopped after step 200" in output.read_text()
    finally:
        slurm_commands.ask("scancel", number)


def test_a_full_queue_is_told_at_once(
    cluster: slurm.Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of all: Slurm remembers ended jobs for minutes, and they count."""
    monkeypatch.setattr(slurm_commands, "ASK_LIMIT_S", 4.0)
    with contextlib.suppress(subprocess.TimeoutExpired):  # with no room left, sbatch waits for some
        for _ in range(70):
            subprocess.run(
                ["sbatch", "--hold", "--job-name=fill", "--wrap=true"],
                capture_output=True,
                timeout=3,
            )
    try:
        with pytest.raises(ScaleoutError, match="The queue is full"):
            launch.run(["true"], name="x", site=SITE, echo=None)
    finally:
        cluster.ask("scancel", "--name=fill")
