"""`make cluster`: jobs can be submitted at once, and it leaves nothing, also when its shell is killed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mini_slurm
import psutil
import pytest
from helpers import COMMAND, until

TOOL = Path(mini_slurm.__file__)
SCRIPT = "print('ran', flush=True)\n"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
with_slurm = pytest.mark.skipif(bool(mini_slurm.missing()), reason=mini_slurm.missing())


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """The tool in a workshop of its own, so that nobody's cluster is disturbed."""
    (tmp_path / "tools").mkdir()
    return Path(shutil.copy(TOOL, tmp_path / "tools"))


@with_slurm
def test_a_job_runs_and_a_killed_shell_leaves_nothing(tool: Path, results: Path) -> None:
    home = tool.parents[1]
    conf = home / ".setup/cluster/slurm.conf"
    (home / "site.toml").write_text(f'scheduler = "slurm"\nslurm_conf = "{conf}"\nbind = "none"\n')
    (home / "train.py").write_text(SCRIPT)
    words = f"{sys.executable} {tool} on && echo is on && sleep 100"
    pipes = {"stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(["bash", "-c", words], start_new_session=True, **pipes) as shell:  # type: ignore[call-overload]
        try:
            assert any("is on" in line for line in shell.stdout)
            cluster = mini_slurm.Slurm(conf.parent)
            assert len(cluster.processes()) >= 4  # munged, slurmctld and two slurmd
            submit = [COMMAND, "submit", "./train.py", "--site", "site.toml", "-n", "2", "-N", "2"]
            done = subprocess.run(submit, cwd=home, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and done.stdout.count("ran\n") == 2, done
        finally:
            shell.send_signal(signal.SIGKILL)
    until(lambda: not conf.parent.exists(), 30)
    assert not cluster.processes()
    done = subprocess.run(submit, cwd=home, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "type  make cluster" in done.stderr


@with_slurm
def test_off_ends_a_cluster_whose_own_process_was_killed(tool: Path) -> None:
    # A session whose first process has gone, as in a container: nobody's end can end the cluster.
    said = tool.with_name("said")
    said.touch()
    words = f"(sleep 0.5; exec {sys.executable} {tool} on > {said}) & exit"
    subprocess.run(["setsid", "bash", "-c", words], check=True, timeout=30)
    until(lambda: "It stays on until you type" in said.read_text(), 90)
    folder = tool.parents[1] / ".setup/cluster"
    spool = re.search(r"^SlurmdSpoolDir=(.+)/%n$", (folder / "slurm.conf").read_text(), re.M)[1]
    cluster = mini_slurm.Slurm(folder)
    cluster.ask("sbatch", "--output=/dev/null", "--wrap=sleep 300")
    until(lambda: any(psutil.Process(pid).name() == "sleep" for pid in cluster.processes()))
    psutil.Process(int((folder / "ready").read_text())).kill()
    until(lambda: not cluster.processes(), 30)  # before anybody types off
    subprocess.run([sys.executable, tool, "off"], check=True, timeout=60)
    assert not folder.exists() and not Path(spool).exists()


@with_slurm
def test_a_shell_that_ended_and_was_not_collected_ends_it_too(tool: Path) -> None:
    # As in a container whose first process collects nobody.
    folder = tool.parents[1] / ".setup/cluster"
    words = f"{sys.executable} {tool} on && sleep 100"
    with subprocess.Popen(["bash", "-c", words], start_new_session=True) as shell:
        until((folder / "ready").exists)
        shell.send_signal(signal.SIGKILL)
        until(lambda: psutil.Process(shell.pid).status() == psutil.STATUS_ZOMBIE)
        until(lambda: not folder.exists(), 30)


@pytest.fixture
def cluster(tool: Path) -> Iterator[mini_slurm.Slurm]:
    """A cluster that is on."""
    subprocess.run([sys.executable, tool, "on"], check=True, timeout=90)
    running = mini_slurm.Slurm(tool.parents[1] / ".setup/cluster")
    yield running
    subprocess.run([sys.executable, tool, "off"], check=True, timeout=60)
    assert not running.processes()


@with_slurm
def test_a_second_start_starts_nothing(tool: Path, cluster: mini_slurm.Slurm) -> None:
    before = cluster.processes()
    again = [sys.executable, tool, "on"]
    done = subprocess.run(again, capture_output=True, text=True, timeout=60, check=True)
    assert "It is on already" in done.stdout and "export SLURM_CONF=" in done.stdout
    assert cluster.processes() == before


@with_slurm
def test_two_starts_at_once_are_one(tool: Path) -> None:
    on = [sys.executable, tool, "on"]
    starts = [subprocess.Popen(on, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        said = [start.communicate(timeout=90)[0] for start in starts]
        assert [start.returncode for start in starts] == [0, 0]
        assert sorted("It is on already" in one for one in said) == [False, True]
        running = mini_slurm.Slurm(tool.parents[1] / ".setup/cluster").processes()
        names = sorted(psutil.Process(pid).name() for pid in running)
        assert names == ["munged", "slurmctld", "slurmd", "slurmd"]
    finally:
        subprocess.run([sys.executable, tool, "off"], check=True, timeout=60)


@with_slurm
def test_a_job_that_puts_itself_back_runs_again(cluster: mini_slurm.Slurm, tmp_path: Path) -> None:
    """As 07's again.sh does: `scontrol requeue` with its own number."""
    script, told = tmp_path / "again.sh", tmp_path / "told.txt"
    script.write_text(
        "#!/bin/bash\necho ${SLURM_RESTART_COUNT:-0}\n"
        '[ "$SLURM_RESTART_COUNT" ] || { scontrol requeue $SLURM_JOB_ID; sleep 60; }\n'
    )
    asked = ["sbatch", "--parsable", "--requeue", "--open-mode=append", f"--output={told}"]
    job = cluster.ask(*asked, str(script)).strip()
    until(lambda: "BeginTime" in cluster.ask("squeue", "--noheader", "--format=%r"))
    cluster.ask("scontrol", "update", f"jobid={job}", "StartTime=now")
    until(lambda: "COMPLETED" in cluster.ask("scontrol", "show", "job", job))
    assert "Restarts=1 " in cluster.ask("scontrol", "show", "job", job)
    assert [line for line in told.read_text().splitlines() if line.isdigit()] == ["0", "1"]


@with_slurm
@pytest.mark.skipif(os.geteuid() != 0, reason="takes the network away, which only root may do")
def test_it_needs_no_network(tool: Path) -> None:
    conf = tool.parents[1] / ".setup/cluster/slurm.conf"
    words = (
        f"ip link set lo up && {sys.executable} {tool} on && SLURM_CONF={conf} srun -N2 echo ran"
    )
    try:
        alone = ["unshare", "--net", "sh", "-c", words]
        done = subprocess.run(alone, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and done.stdout.count("ran\n") == 2, done
    finally:
        subprocess.run([sys.executable, tool, "off"], check=True, timeout=60)


@with_slurm
def test_a_daemon_that_fails_is_shown(tool: Path) -> None:
    munged = tool.with_name("munged")
    munged.write_text("#!/bin/sh\necho no key for you; exit 1\n")
    munged.chmod(0o755)
    path = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, tool, "on"], env=path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "no key for you" in done.stderr
    assert not (tool.parents[1] / ".setup/cluster").exists()


def test_without_slurm_it_says_what_to_type(tool: Path) -> None:
    done = subprocess.run(
        [sys.executable, tool, "on"],
        env={"PATH": str(tool.parent)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1 and "type  sudo apt-get install slurm-wlm munge" in done.stderr
    assert not (tool.parents[1] / ".setup").exists()
