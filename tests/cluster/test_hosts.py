"""Jobs over ssh on two hosts with addresses of their own, one of which is cut off in the middle."""

import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import hosts
from torch_scripts import TELLS, TORCH, TORCHRUN, said, told, with_torch

from scaleout import lab
from scaleout.doctor.examine import examine_site
from scaleout.jobs.job import JobError, JobFailed, Run
from scaleout.launch import local
from scaleout.launch import run as launch
from scaleout.site import Site

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.mpi,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("results"),
    pytest.mark.skipif(bool(hosts.missing()), reason=hosts.missing()),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hosts.Hosts]:
    with hosts.Hosts(tmp_path_factory.mktemp("hosts")) as running:
        yield running


@pytest.fixture
def site(two: hosts.Hosts, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(ROOT)
    return Site(hosts=tuple(two.names), ssh=two.ssh, options=("-localhost", two.home), bind="none")


def _run(site: Site, *command: object, **how: object) -> Run:
    usual = {"name": "train", "ranks": 2, "threads": 1, "timeout": 100, "echo": None}
    return launch.run(list(map(str, command)), site=site, **{**usual, **how})


def test_a_lab_runs_on_two_hosts(site: Site) -> None:
    run = lab("04_kmeans", solution=True).run(ranks=2, threads=1, site=site, echo=False)
    assert run.records.nodes.tolist() == [2] and run.records.ranks.tolist() == [2]
    for words in (f"-hosts {','.join(site.hosts)}", "-ppn 1", "-launcher ssh"):
        assert f" {words} " in run.command


def test_07_measures_the_wire_between_two_hosts(site: Site) -> None:
    sent = Path("/sys/class/net", f"{hosts.MINE}-v1", "statistics", "rx_bytes")
    before = int(sent.read_text())
    # Without these MPICH sees that both hosts share a kernel, and takes its memory.
    tcp = {"MPIR_CVAR_NOLOCAL": 1, "UCX_TLS": "tcp"}
    run = lab("07_scaling", solution=True).run(
        script="wire.py", ranks=2, nodes=2, threads=1, site=site, bytes=[4096], compute=[0.001],
        env=tcp, echo=False,
    )  # fmt: skip
    metrics = run.records["metrics"].iloc[0]
    assert run.records.nodes.tolist() == [2]
    assert 0 < metrics["messages_s"][0] < metrics["messages_s"][-1]
    assert int(sent.read_text()) - before > metrics["sizes"][-1]


def test_from_the_command_line(site: Site, tmp_path: Path, scaleout, script) -> None:
    (tmp_path / "site.toml").write_text(
        f'ssh = "{site.ssh}"\nhosts = ["x"]\noptions = {list(site.options)}\n'
    )
    path = script("import os; print(os.environ['SSH_CONNECTION'].split()[2])")
    words = ["run", path, "--site", tmp_path / "site.toml"]
    done = scaleout(*words, "-n", 2, "-t", 1, "--hosts", ",".join(site.hosts))
    assert done.returncode == 0, done.stderr
    # a host's login shell may say something too
    said = [line for line in done.stdout.splitlines() if line.startswith(("[0] ", "[1] "))]
    assert sorted(said) == [f"[{rank}] {host}" for rank, host in enumerate(site.hosts)]
    done = scaleout(*words, "-n", 1, "-N", 2, "--hosts", "a,b")
    assert done.returncode == 2 and "2 nodes asked for" in done.stderr


def test_ranks_on_two_hosts_are_told_what_torchrun_would_tell(site: Site, script) -> None:
    found = told(_run(site, "python", script(TELLS), ranks=4))
    assert sorted(found) == [0, 1, 2, 3]
    for rank, one in found.items():
        assert (one["RANK"], one["LOCAL_RANK"]) == (str(rank), str(rank % 2))
        assert (one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) == ("4", "2")
        assert one["MASTER_ADDR"] == site.hosts[0] and one["GLOO_SOCKET_IFNAME"] == "eth0"
    (port,) = {one["MASTER_PORT"] for one in found.values()}
    listens = f"import socket; socket.create_server(('', {port})); print('free')"
    words = [site.ssh, site.hosts[0], shlex.join([sys.executable, "-c", listens])]
    assert subprocess.run(words, capture_output=True, text=True).stdout == "free\n"


def test_copies_that_never_talk_are_named(site: Site, script) -> None:
    said: list[str] = []
    job = _run(
        site, "python", script("import time; time.sleep(0.5); print('rate 10')"), echo=said.append
    )
    assert job.talked is False and "never talked to each other" in said[-1]
    by_mpi = script("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()")
    assert _run(site, "python", by_mpi).talked is True


@with_torch
def test_a_script_for_torchrun_runs_unedited_on_two_hosts(site: Site, script) -> None:
    run = _run(site, TORCH / "bin" / "python", script(TORCHRUN), timeout=200)
    assert [text[:12] for text in said(run)] == ["0 of 2: True", "1 of 2: True"]


def test_the_doctor_looks_at_each_host(site: Site) -> None:
    found = examine_site(site)
    assert {check.status for check in found} == {"ok"}, found
    names = {check.name.partition(": ")[2] for check in found}
    assert names == {"", "MPI", "way back", "files"} and len(found) == 8


def test_the_doctor_names_the_way_back_that_is_missing(site: Site, two: hosts.Hosts) -> None:
    lost = Site(hosts=site.hosts[:1], ssh=site.ssh)  # our own name means the host itself there
    back = next(check for check in examine_site(lost) if check.name.endswith("way back"))
    assert back.status == "fail" and f'options = ["-localhost", "{two.home}"]' in back.fix


def test_the_doctor_names_a_host_that_is_cut_off(site: Site, two: hosts.Hosts) -> None:
    two.cut(site.hosts[1])
    try:
        found = examine_site(site)
    finally:
        two.cut(site.hosts[1], down=False)
    wrong = [check for check in found if check.status == "fail"]
    assert [check.name for check in wrong] == [
        f"host {site.hosts[1]}"
    ] and "cannot be reached" in wrong[0].seen


def test_a_host_cut_off_in_the_middle_ends_the_job_in_time(
    site: Site, two: hosts.Hosts, script, no_process_left, run_id
) -> None:
    path = script(
        """
        import time
        from mpi4py import MPI
        print("began", flush=True)
        for _ in range(600):
            MPI.COMM_WORLD.Barrier()
            time.sleep(0.1)
        """
    )
    began = threading.Event()

    def cut() -> None:
        if began.wait(60):
            two.cut(site.hosts[1])

    other = threading.Thread(target=cut)
    other.start()
    start, limit_s = time.monotonic(), 12
    try:
        with pytest.raises(JobError) as caught:
            _run(
                site,
                *("python", "-m", "mpi4py", path),
                timeout=limit_s,
                echo=lambda text: began.set() if "began" in text else None,
            )
    finally:
        other.join()
        two.cut(site.hosts[1], down=False)
    assert began.is_set() and time.monotonic() - start < limit_s + 60
    assert f"{site.hosts[1]} did not answer in the end" in str(caught.value)
    no_process_left(run_id(), within_s=60)


def test_ranks_on_other_hosts_carry_a_limit_of_their_own(
    site: Site, script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no signal arrives they end by themselves: here the limit is made shorter than the
    job's."""
    monkeypatch.setattr(local, "BEYOND_S", -58.0)
    with pytest.raises(JobFailed):
        _run(site, "sleep", 60, timeout=60)
