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

import mini_slurm as slurm
import pytest
from helpers import COMMAND, heed_signals, until
from torch_scripts import TELLS, TORCH, TORCHRUN, said, told, with_torch

from scaleout import lab
from scaleout.base.errors import ScaleoutError
from scaleout.doctor.examine import examine_site
from scaleout.jobs.job import JobFailed, JobTimeout, Run
from scaleout.launch import run as launch
from scaleout.launch import slurm_commands
from scaleout.site import Site

ROOT = Path(__file__).resolve().parents[2]
SITE = Site(
    scheduler="slurm", bind="none", minutes=5
)  # all four nodes share the cores of this machine
LABS = {
    "03_spmd": {"sizes": [4, 1024], "repeats": 2, "warmup": 1},
    "04_kmeans": {"colours": 4},
    "05_horovod": {"epochs": 1},
    "12_capstone": {"epochs": 1, "patients": 8},
}
WAITS = "import time\nprint('began', flush=True)\ntime.sleep(200)\n"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.mpi,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def overtime(
    cluster: slurm.Slurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["subprocess.Popen[str]"]:
    """A job of a minute at most that wants 200 s; it waits for its end while the other tests
    run."""
    folder = tmp_path_factory.mktemp("overtime")
    (folder / "waits.py").write_text(WAITS)
    (folder / "site.toml").write_text('scheduler = "slurm"\nminutes = 1\nbind = "none"\n')
    command = [COMMAND, "submit", "./waits.py", "--site", "site.toml"]
    environment = {**os.environ, "SCALEOUT_RESULTS": str(folder / "results")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as job:  # type: ignore[call-overload]
        assert "submitted: 1 rank on 1 node, 1 minute at most" in job.stdout.readline()
        yield job
        job.send_signal(signal.SIGINT)


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[slurm.Slurm]:
    """A Slurm of its own for a test that fills its queue, drains its nodes or makes a job wait."""
    with slurm.Slurm(tmp_path / "slurm") as running:
        monkeypatch.setenv("SLURM_CONF", running.env["SLURM_CONF"])
        yield running


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


def _submit(what: Path | list[str], site: Site = SITE, **how: object) -> Run:
    """Submits a script, or a command; 200 s at most."""
    command = ["python", "-m", "mpi4py", str(what)] if isinstance(what, Path) else what
    usual = {"name": "train", "threads": 1, "timeout": 200, "echo": None}
    return launch.run(command, site=site, **{**usual, **how})


@pytest.mark.parametrize(
    ("name", "start"),
    [
        # In make test both ways of starting with the shortest lab, and Horovod with one of them.
        pytest.param(
            name,
            start,
            marks=[pytest.mark.choice]
            * (name != "03_spmd" and (name, start) != ("05_horovod", "srun")),
        )
        for name in LABS
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
    run = _submit(path, ranks=4, nodes=2)
    said = {rank: text.split()[0] for rank, text in run.lines if rank is not None}
    assert sorted(said) == [0, 1, 2, 3] and said[0] == said[1] != said[2] == said[3]
    assert all(text.endswith(" x" * 40) for rank, text in run.lines if rank is not None)


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_ranks_are_told_what_torchrun_would_tell(start: str, script: Callable[..., Path]) -> None:
    run = _submit(script(TELLS), replace(SITE, start=start), ranks=4, nodes=2)
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
    command = [str(TORCH / "bin" / "python"), str(script(TORCHRUN))]
    run = _submit(command, replace(SITE, start=start), ranks=2, nodes=2)
    assert [text[:12] for text in said(run)] == ["0 of 2: True", "1 of 2: True"]


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_a_failed_job_says_who_failed_first(start: str, script: Callable[..., Path]) -> None:
    path = script(
        "from mpi4py import MPI\nif MPI.COMM_WORLD.rank: raise ValueError('mine')\nMPI.COMM_WORLD.Barrier()"
    )
    with pytest.raises(JobFailed, match="first on rank 1") as caught:
        _submit(path, replace(SITE, start=start), ranks=2, nodes=2)
    assert "ValueError: mine" in str(caught.value) and caught.value.status != 0


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_copies_that_never_talk_are_named(start: str, script: Callable[..., Path]) -> None:
    said: list[str] = []
    site = replace(SITE, start=start)
    command = ["python", str(script("import time; time.sleep(0.5); print('rate 10', flush=True)"))]
    run = _submit(command, site, ranks=2, nodes=2, echo=said.append)
    assert run.talked is False and "never talked to each other" in said[-1]
    unseen = "PMI calls", "MASTER_PORT", "whether a rank talks"
    assert not any(text in line for text in unseen for line in [run.output, *said])
    by_mpi = script("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()")
    assert _submit(by_mpi, site, ranks=2, nodes=2).talked is True


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


@pytest.mark.parametrize("start", ["mpirun", "srun"])
def test_ranks_that_meet_as_torchs_do_are_not_called_copies(
    start: str, script: Callable[..., Path]
) -> None:
    command = ["python", str(script(BY_TCP))]
    assert _submit(command, replace(SITE, start=start), ranks=2, nodes=2).talked is not False


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


RECORDS = """
import sys
from scaleout import records
print(sys.argv[1:])
records.write(lab="x")
"""


@pytest.mark.parametrize("how", ["mpirun", "srun", "scratch"])
def test_a_job_runs_in_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    desk = tmp_path / 'a b %j 50% "q" it\'s'
    desk.mkdir()
    (desk / "my train.py").write_text(RECORDS)
    monkeypatch.chdir(desk)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(desk / "res ults"))
    scratch = tmp_path / "scr atch %x"
    site = replace(SITE, scratch=str(scratch)) if how == "scratch" else replace(SITE, start=how)
    words = ["two\nlines", "50%", "$HOME", "it's"]
    run = _submit(["python", "-m", "mpi4py", "my train.py", *words], site, name="my train")
    assert run.lines == [(0, str(words))] and len(run.records) == 1
    assert run.folder.parent == desk / "res ults" / "my train"
    assert how != "scratch" or not list(scratch.iterdir())


def test_drained_nodes_are_told_while_the_job_waits(
    another: slurm.Slurm, script: Callable[..., Path]
) -> None:
    another.ask("scontrol", "update", "NodeName=node[2-4]", "State=DRAIN", "Reason=test")
    said: list[str] = []
    with pytest.raises(
        JobTimeout, match="still in the queue: nodes that it needs are down, drained"
    ):
        _submit(["true"], ranks=4, nodes=4, timeout=12, echo=said.append)
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
        _submit(["python", str(script(WAITS))], timeout=60, echo=said.append)
    other.join()


@contextlib.contextmanager
def _begun(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """`scaleout submit` of a script that has said that it began."""
    site = path.with_name("site.toml")
    site.write_text('scheduler = "slurm"\nbind = "none"\n')
    words = [COMMAND, "submit", str(path), "--site", str(site)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, preexec_fn=heed_signals, **pipes) as job:  # type: ignore[call-overload]
        assert any("began" in line for line in job.stdout)
        yield job


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "terminal closed"]
)
def test_an_interrupt_cancels_the_job(number: int, script: Callable[..., Path]) -> None:
    with _begun(script(WAITS)) as job:
        job.send_signal(number)
        _, errors = job.communicate(timeout=60)
    assert job.returncode == 130 and re.search(r"job \d+ has been cancelled", errors), errors


def test_a_second_ctrl_c_is_answered_and_the_job_goes_all_the_same(
    cluster: slurm.Slurm, script: Callable[..., Path]
) -> None:
    deaf = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WAITS}"
    with _begun(script(deaf)) as job:
        job.send_signal(signal.SIGINT)
        until(lambda: "COMPLETING" in cluster.ask("squeue", "--noheader", "--format=%T"))
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=60)
    assert job.returncode == 130 and "Traceback" not in said
    assert said.startswith("scaleout: Interrupted: job ") and len(said.splitlines()) == 1


@pytest.mark.parametrize("how", [{"site": replace(SITE, minutes=600)}, {"ranks": 9, "nodes": 9}])
def test_what_can_never_start_is_not_waited_for(how: dict, cluster: slurm.Slurm) -> None:
    with pytest.raises(
        JobFailed, match="would wait for ever: .*(more time|fewer nodes, ranks or minutes)"
    ):
        _submit(["true"], timeout=30, **how)


def test_what_slurm_refuses_is_said_in_a_sentence(cluster: slurm.Slurm) -> None:
    with pytest.raises(
        ScaleoutError, match="Slurm refused the job: [Ii]nvalid partition.*Correct the site file"
    ):
        _submit(["true"], replace(SITE, partition="nowhere"))


INSIDE = """
    import os
    from scaleout.launch import run as launch

    run = launch.run(["sh", "-c", "echo at $SLURMD_NODENAME"], name="inside", ranks=4, threads=1, echo=None)
    print(sorted(text for _, text in run.lines if text.startswith("at")))
    alone = launch.Site()
    print(launch.run(["hostname"], name="inside", ranks=2, threads=1, site=alone, echo=None).command)
"""


def test_inside_an_allocation_jobs_use_its_nodes(
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
    job, alone = done.stdout.splitlines()
    nodes = re.findall(r"at (node\d)", job)
    assert len(nodes) == 4 and nodes[0] == nodes[1] != nodes[2] == nodes[3]
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
    assert "2 ranks, from step 0" in output and "stopped after step 2000" in output
    assert not list(SCALING.glob("train-*")) and not list(SCALING.glob("kept-*"))


def _ended(number: str) -> bool:
    """Whether the job is through. One that was put back waits two minutes: no longer than needed.
    Asked until it starts, as Slurm sets the time anew when the last of the job's nodes is free; and
    not within a second of its end, when a node still takes its credential for a revoked one."""
    state = slurm_commands.state(number).get("JobState")
    if state == "PENDING":
        time.sleep(2)
        slurm_commands.ask("scontrol", "update", f"jobid={number}", "starttime=now")
    return state == "COMPLETED"


def test_a_warned_job_goes_back_into_the_queue_and_goes_on(
    another: slurm.Slurm, tmp_path: Path
) -> None:
    folder = tmp_path / "labs" / "07_scaling"
    folder.mkdir(parents=True)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    shutil.copy(SCALING / "train.py", folder)
    shutil.copy(SCALING / "again.sh", folder)
    number = slurm_commands.ask(
        "sbatch", "--parsable", f"--chdir={folder}", str(folder / "again.sh")
    ).stdout.strip()
    output = folder / f"again-{number}.txt"
    try:
        until(lambda: output.exists() and "saved: step 100\n" in output.read_text(), 60)
        slurm_commands.ask("scancel", "--batch", "--signal=USR1", number)
        until(
            lambda: slurm_commands.state(number).get("Restarts") == "1",
            what=f"that the job waits again, which said\n{output.read_text()}\n,",
        )
        stopped = int(re.findall(r"stopped after step (\d+)", output.read_text())[-1])
        until(lambda: _ended(number), 200)
        assert stopped < 2000 and f"from step {stopped}\n" in output.read_text()
        assert "stopped after step 2000" in output.read_text()
    finally:
        slurm_commands.ask("scancel", number)


def test_a_full_queue_is_told_at_once(
    another: slurm.Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_commands, "ASK_LIMIT_S", 4.0)
    with contextlib.suppress(subprocess.TimeoutExpired):  # with no room left, sbatch waits for some
        for _ in range(70):
            subprocess.run(
                ["sbatch", "--hold", "--job-name=fill", "--wrap=true"],
                capture_output=True,
                timeout=3,
            )
    with pytest.raises(ScaleoutError, match="The queue is full"):
        _submit(["true"])
