"""A job in Slurm whose owner pressed Ctrl-C twice does not stay; and what the doctor says of a job that
is too long."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import slurm
from helpers import COMMAND, until

from scaleout.doctor.examine import examine_site
from scaleout.jobs.site import Site

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.mpi,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]
WAITS = "import time\nprint('began', flush=True)\ntime.sleep(300)\n"
DEAF = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WAITS}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    with (
        slurm.Slurm(tmp_path_factory.mktemp("slurm")) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SLURM_CONF", running.env["SLURM_CONF"])
        yield running


@pytest.fixture
def submitted(
    cluster: slurm.Slurm, results: Path, tmp_path: Path
) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Submits a script, and returns once it has said something."""
    begun: list[subprocess.Popen[str]] = []

    def submit(text: str) -> "subprocess.Popen[str]":
        (tmp_path / "waits.py").write_text(text)
        (tmp_path / "site.toml").write_text('scheduler = "slurm"\nminutes = 5\nbind = "none"\n')
        words = [COMMAND, "submit", "./waits.py", "--site", "site.toml"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, cwd=tmp_path, start_new_session=True, **pipes)  # type: ignore[call-overload]
        begun.append(process)
        until(lambda: any("began" in f.read_text() for f in results.glob("waits/*/output.txt")))
        assert len(cluster.jobs()) == 1
        return process

    yield submit
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)
    until(lambda: not cluster.jobs())


def test_a_second_ctrl_c_is_answered_and_the_job_goes_all_the_same(
    submitted: Callable[[str], "subprocess.Popen[str]"], cluster: slurm.Slurm
) -> None:
    process = submitted(DEAF)
    process.send_signal(signal.SIGINT)
    until(lambda: "COMPLETING" in cluster.ask("squeue", "--noheader", "--format=%T"))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    assert said.startswith("scaleout: Interrupted: job ") and len(said.splitlines()) == 1
    until(lambda: not cluster.jobs(), what="the end of the job")


def test_the_doctor_knows_how_long_a_job_may_be(
    cluster: slurm.Slurm, tmp_path: Path, scaleout
) -> None:
    path = tmp_path / "site.toml"
    path.write_text('scheduler = "slurm"\nminutes = 20\n')
    checks = {check.name: check for check in examine_site(Site.read(path))}
    assert checks["Slurm takes it"].status == "ok", checks["Slurm takes it"]
    path.write_text('scheduler = "slurm"\nminutes = 21\n')
    done = scaleout("doctor", "--json", "--site", path, timeout=300)
    (found,) = (
        check for check in json.loads(done.stdout)["checks"] if check["name"] == "Slurm takes it"
    )
    assert found["status"] == "fail", found
    assert "21 minutes are more than the partition allows" in found["seen"]
    assert "minutes = 20" in found["fix"]
