"""The doctor for real: two processes that load everything, here and with something broken."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scaleout.base.paths import programs

pytestmark = pytest.mark.mpi
LIMIT_S = 240


def run_doctor(*, before: str = "", **environ: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """`scaleout doctor --json` in a process of its own; `before` is Python that breaks something
    first."""
    # A machine may have set these for all of its shells.
    own = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    program = (
        f"import sys\n{before}\nfrom scaleout import doctor\nsys.exit(doctor.main(as_json=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=own | environ,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return (
        done.returncode,
        {check["name"]: check for check in json.loads(done.stdout)["checks"]},
        done.stderr,
    )


def with_mpirun(path: Path) -> str:
    return (
        "from pathlib import Path\nimport scaleout.machine\n"
        "module = sys.modules['scaleout.machine.facts']  # its function has the same name\n"
        f"module.programs = lambda: Path({str(path.parent)!r})"
    )


def wrapper(folder: Path, text: str) -> Path:
    path = folder / "mpirun"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_this_environment_is_well() -> None:
    status, checks, _ = run_doctor()
    failed = {name: check["seen"] for name, check in checks.items() if check["status"] == "fail"}
    assert status == 0 and not failed
    assert checks["two processes"]["seen"] == "ranks 0 and 1 of 2 in mpi4py, daal4py and horovod"
    assert "sums over two ranks" in checks["horovod works"]["seen"]
    assert checks["one libmpi"]["seen"].endswith("lib/libmpi.so.12")
    assert checks["oneDNN"]["seen"].startswith(("on by default", "off by default"))
    assert all(check["fix"] for check in checks.values() if check["status"] != "ok")


@pytest.mark.choice
def test_an_mpirun_that_starts_every_process_alone(tmp_path: Path) -> None:
    """The classic: each process is started, none is told of the other."""
    mine = wrapper(
        tmp_path,
        f'#!/bin/sh\n[ "$1" = --version ] && exec {programs() / "mpirun"} --version\nshift 2\n"$@" &\n"$@" &\nwait\n',
    )
    status, checks, _ = run_doctor(before=with_mpirun(mine))
    assert status == 1
    world = checks["two processes"]
    assert world["status"] == "fail"
    assert world["seen"].startswith("every process is rank 0 of 1: ")
    assert "tells them nothing of each other" in world["seen"]
    assert "install --force-reinstall --no-deps 'mpich" in world["fix"]
    assert checks["mpirun"]["status"] == "warn"
    assert checks["horovod works"]["status"] == "fail"
    assert checks["imports"]["status"] == "ok"


def test_an_mpirun_that_is_missing(tmp_path: Path) -> None:
    status, checks, _ = run_doctor(before=with_mpirun(tmp_path / "mpirun"))
    assert status == 1
    assert "there is no" in checks["mpirun"]["seen"]
    assert "-m pip install --force-reinstall 'mpich" in checks["mpirun"]["fix"]
    assert checks["two processes"]["status"] == checks["imports"]["status"] == "fail"


@pytest.mark.choice
def test_a_broken_shell(tmp_path: Path) -> None:
    """Another environment's kernel, a thread variable and another mpirun: none hides the others."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    spec = {"argv": ["/usr/bin/false"], "display_name": "other", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    wrapper(tmp_path, "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
    status, checks, _ = run_doctor(
        JUPYTER_PATH=str(tmp_path),
        OMP_NUM_THREADS="7",
        TF_ENABLE_ONEDNN_OPTS="0",
        SLURM_JOB_ID="12",
        PMI_RANK="3",
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert status == 1
    assert checks["notebook kernel"]["fix"] == "unset JUPYTER_PATH"
    assert checks["thread variables"]["fix"] == "unset OMP_NUM_THREADS TF_ENABLE_ONEDNN_OPTS"
    assert checks["oneDNN"]["seen"].startswith("off because TF_ENABLE_ONEDNN_OPTS=0")
    assert (
        checks["mpirun on PATH"]["status"] == "warn"
        and "Open MPI 4.1.4" in checks["mpirun on PATH"]["seen"]
    )
    assert "PMI_RANK, SLURM_JOB_ID set" in checks["scheduler"]["seen"]
    assert checks["two processes"]["status"] == "ok"  # an inherited PMI_RANK does not reach the job
