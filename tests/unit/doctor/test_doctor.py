"""Every check of the doctor can fail: broken facts in, the right sentence and the right fix out."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaleout import machine
from scaleout.doctor import checks, examine, launcher, mpi, packages, pair, probe
from scaleout.doctor import report as doctor
from scaleout.doctor.checks import Check, thread_variables
from scaleout.doctor.mpi import Job
from scaleout.doctor.packages import PACKAGES
from scaleout.jobs import reaper

LIBMPI = os.path.join(os.path.realpath(sys.prefix), "lib", "libmpi.so.12")
VERBOSE = """onednn_verbose,info,oneDNN v3.5.0 (commit N/A)
onednn_verbose,info,cpu,isa:Intel AVX-512 with Intel DL Boost
onednn_verbose,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core,forward_training,,,,mb1_ic8oc8,0.1
"""
WANTED = {
    "python": ">=3.11,<3.13",
    "tensorflow-cpu": "==2.18.1",
    "horovod": "==0.28.1",
    "mpich": "==4.3.2",
    "mpi4py": "==4.1.2",
    "scikit-learn-intelex": "==2026.2.0",
    "ipyparallel": "==9.2.0",
    "ipykernel": "==7.4.0",
    "jupyter-server": "==2.21.1",
}
FOUND = {name: pin.removeprefix("==") for name, pin in WANTED.items() if name != "python"}


@pytest.fixture
def facts() -> machine.Machine:
    return machine.facts()


def report(rank: int = 0, size: int = 2, **changes: Any) -> dict[str, Any]:
    """What a healthy process writes; `changes` replace parts, None takes one away."""
    whole = {
        "mpi4py": {"world": [rank, size], "mpi_version": "MPICH Version: 4.3.2"},
        "daal4py": {"world": [rank, size]},
        "tensorflow": {"version": "2.18.1"},
        "horovod": {"world": [rank, size], "built": {"mpi": True, "gloo": True}, "sum": 3.0},
        "libmpi": [LIBMPI],
        "stage": "done",
    }
    return {name: part for name, part in (whole | changes).items() if part is not None}


def job(**changes: Any) -> Job:
    return Job(0, VERBOSE, "", (report(0, **changes), report(1, **changes)))


def assert_bad(check: Check, status: str, seen: str, fix: str) -> None:
    assert check.status == status, check
    assert seen in check.seen, check
    assert fix in check.fix, check
    assert "\n" not in check.seen + check.fix


def test_a_healthy_job_passes_everything(facts: machine.Machine) -> None:
    found = [
        mpi.two_processes(job(), facts, WANTED, {}),
        mpi.imports(job(), WANTED),
        mpi.one_libmpi(job(), {}),
        mpi.horovod(job(), "2.18.1", "2.18.1"),
        mpi.onednn(job(), {}),
        launcher.mpirun(facts, "==4.3.2"),
        *packages.versions(WANTED, FOUND, "3.11.7"),
    ]
    assert [check.name for check in found if check.status != "ok"] == []
    assert found[0].seen == "ranks 0 and 1 of 2 in mpi4py, daal4py and horovod"
    assert found[4].seen == "on by default on this CPU: 3.5.0, Intel AVX-512 with Intel DL Boost"


# The machine


def test_one_usable_core_is_told_with_its_reason(facts: machine.Machine) -> None:
    core = facts.layout[0]
    many = replace(facts, usable_cores=1, layout=(core,) * 4, hardware_threads=4, cgroup_cpus=None)
    assert_bad(
        checks.cores(replace(many, cores=4, cgroup_cpus=1.5)),
        "warn",
        "limit 1.5 CPUs",
        "docker run --cpus",
    )
    assert_bad(checks.cores(replace(many, cores=1)), "warn", "1 of 4 allowed", "taskset -cp 0-3 $$")
    alone = replace(many, cores=1, layout=(core,), hardware_threads=1)
    assert_bad(checks.cores(alone), "warn", "nothing gets faster", "a machine with 2 cores")


def test_unknown_layout_is_said(facts: machine.Machine) -> None:
    assert "unknown" in checks.cores(replace(facts, layout_source="unknown")).seen


def test_a_processor_too_old(facts: machine.Machine) -> None:
    assert_bad(checks.processor(replace(facts, isa=("sse4_2",))), "fail", "no AVX", "newer CPU")
    assert "nothing newer" in checks.processor(replace(facts, isa=("sse4_2", "avx"))).seen


def test_bf16(facts: machine.Machine) -> None:
    assert "emulated" in checks.bf16(replace(facts, isa=("avx", "avx2", "avx512f"))).seen
    assert "native" in checks.bf16(replace(facts, isa=("amx_bf16",))).seen


def test_memory() -> None:
    assert checks.memory(16.0, None, 12.0).status == "ok"
    assert_bad(checks.memory(16.0, None, 4.0), "warn", "4.0 of 16.0 GiB", "top")
    assert_bad(checks.memory(16.0, 2.0, 12.0), "fail", "cgroup limit 2.0", "docker run --memory")
    assert_bad(checks.memory(None, None, None), "warn", "unknown", "free -h")


def test_shared_memory() -> None:
    assert checks.shared_memory(1024.0).status == "ok"
    assert_bad(checks.shared_memory(3.0), "warn", "3 MiB free", "--shm-size")
    assert_bad(checks.shared_memory(None), "warn", "no /dev/shm", "--shm-size")


def test_results_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    assert examine._results().status == "ok"
    (tmp_path / "a file").write_text("in the way")
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "a file"))
    assert_bad(examine._results(), "fail", "a file", "export SCALEOUT_RESULTS=")
    monkeypatch.setenv(
        "SCALEOUT_RESULTS", "/proc/self/fd"
    )  # a folder that takes no files, even from root
    assert_bad(
        examine._results(),
        "fail",
        "nothing can be written to /proc/self/fd",
        "export SCALEOUT_RESULTS=",
    )
    # A disk without room takes a new file, but not its bytes; a limit on the size of files does the
    # same.
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        check = examine._results()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_bad(check, "fail", "nothing can be written", "export SCALEOUT_RESULTS=")


def test_a_disk_that_fills_up() -> None:
    assert_bad(checks.results("results", 1.0), "warn", "1.0 GiB free", "du -sh")
    assert_bad(checks.results("results", 0.1), "fail", "0.1 GiB free", "du -sh")


def test_user() -> None:
    assert "root" in checks.user(0).seen
    assert "1000" in checks.user(1000).seen


# The environment


def version_of(name: str, version: str | None) -> Check:
    found = {**FOUND, name: version}
    if version is None:
        del found[name]
    return next(check for check in packages.versions(WANTED, found, "3.11.7") if check.name == name)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package(name: str) -> None:
    fix = "make clean && make lab" if name == "horovod" else f"-m pip install {name}{WANTED[name]}"
    assert_bad(version_of(name, None), "fail", "not installed", fix)


@pytest.mark.parametrize(
    ("name", "version", "status", "seen"),
    [
        ("tensorflow-cpu", "2.19.0", "fail", "2.19.0, but pyproject.toml pins ==2.18.1"),
        ("horovod", "0.27.0", "fail", "pins ==0.28.1"),
        ("ipyparallel", "9.3.0", "warn", "pins ==9.2.0"),
        ("ipykernel", "7.0.1", "fail", "7.0 breaks ipyparallel"),
        ("ipykernel", "7.5.0", "warn", "pins ==7.4.0"),
        ("jupyter-server", "2.20.0", "fail", "security holes"),
    ],
)
def test_another_version(name: str, version: str, status: str, seen: str) -> None:
    assert_bad(version_of(name, version), status, seen, "")
    assert version_of(name, version).fix


def test_another_python() -> None:
    first = next(packages.versions(WANTED, FOUND, "3.10.4"))
    assert_bad(
        first, "fail", "3.10.4, but the workshop needs >=3.11,<3.13", "make lab PYTHON=python3.11"
    )


def test_pins_are_those_of_pyproject(tmp_path: Path) -> None:
    wanted = examine._pins(Path(__file__).parents[3] / "pyproject.toml")
    assert set(PACKAGES) <= set(wanted)
    assert all(wanted[name] for name in ("python", *PACKAGES))
    other = tmp_path / "pyproject.toml"
    other.write_text(
        '[project]\nrequires-python = ">=3.9"\ndependencies = ["Jupyter_Server[x]>=1"]\n'
    )
    assert examine._pins(other) == {"python": ">=3.9", "jupyter-server": ">=1"}


def test_conda_mpich_is_known_by_its_mpirun(
    facts: machine.Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_package(name: str) -> str:
        raise examine.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(examine.importlib.metadata, "version", no_package)
    assert examine._versions(replace(facts, mpi="MPICH", mpi_version="4.2.0")) == {"mpich": "4.2.0"}
    assert examine._versions(replace(facts, mpi="Open MPI")) == {}


def test_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    assert_bad(examine._bytecode("fresh"), "warn", "fresh is not compiled", "-m compileall -q -j 0")
    assert (
        str(tmp_path) in examine._bytecode("fresh").fix
        or "fresh" not in examine._bytecode("fresh").fix
    )
    subprocess.run([sys.executable, "-m", "compileall", "-q", tmp_path], check=True, timeout=60,
                   env={k: v for k, v in os.environ.items() if k != "PYTHONPYCACHEPREFIX"})  # fmt: skip
    assert examine._bytecode("fresh").status == "ok"


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_bad(examine._compiler({}), "warn", "no C++ compiler", "apt-get install g++")
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\necho 13.2.0\n")
    mine.chmod(0o755)
    assert examine._compiler({"CXX": f"{mine} -O2"}).seen == f"{mine} 13.2.0"


def test_a_kernel_of_another_environment(tmp_path: Path) -> None:
    spec = {"argv": ["/elsewhere/bin/python"], "folder": "/elsewhere/kernels/python3"}
    assert_bad(
        packages.kernel({}, "", {}),
        "fail",
        "no kernel named python3",
        "ipykernel install --sys-prefix",
    )
    assert_bad(
        packages.kernel(spec, "", {}), "fail", "does not run", "ipykernel install --sys-prefix"
    )
    assert_bad(
        packages.kernel(spec, "/elsewhere", {}), "fail", "/elsewhere", "JUPYTER_PREFER_ENV_PATH=1"
    )
    shell = {"JUPYTER_PATH": f"{tmp_path}:/elsewhere"}
    assert_bad(packages.kernel(spec, "/elsewhere", shell), "fail", "another", "unset JUPYTER_PATH")
    assert packages.kernel(spec, sys.prefix, {}).status == "ok"


def test_a_foreign_kernel_as_jupyter_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examine._kernel(os.environ).status == "ok"
    other = tmp_path / "bin" / "python"  # answers as another environment's Python would
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho /opt/other\n")
    other.chmod(0o755)
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(
        json.dumps({"argv": [str(other)], "display_name": "x", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert_bad(examine._kernel(os.environ), "fail", "/opt/other", "unset JUPYTER_PATH")
    (folder / "kernel.json").write_text("{ nonsense")
    assert examine._kernel(os.environ).status == "fail"


# The shell


def test_thread_variables() -> None:
    quiet = {
        "PATH": "/bin",
        "KMP_INIT_AT_FORK": "FALSE",
        "KMP_DUPLICATE_LIB_OK": "True",
        "OMPI_COMM_WORLD_RANK": "0",
    }
    assert thread_variables(quiet).status == "ok"
    loud = {
        "OMP_NUM_THREADS": "8",
        "KMP_AFFINITY": "compact",
        "MKL_NUM_THREADS": "4",
        "TF_NUM_INTRAOP_THREADS": "2",
        "TF_ENABLE_ONEDNN_OPTS": "0",
    }
    check = thread_variables(quiet | loud)
    assert_bad(check, "warn", "OMP_NUM_THREADS=8", "unset " + " ".join(sorted(loud)))


def test_scheduler_variables_are_named() -> None:
    assert checks.scheduler({"PATH": "/bin"}).seen.startswith("no variables")
    shell = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    check = checks.scheduler(shell)
    assert check.status == "ok"
    assert "and 1 more" in check.seen and "PMI_RANK" in check.seen


# MPI


def test_mpirun(facts: machine.Machine, tmp_path: Path) -> None:
    gone = replace(facts, mpirun=str(tmp_path / "bin" / "mpirun"), mpi="unknown")
    assert_bad(
        launcher.mpirun(gone, "==4.3.2"),
        "fail",
        "there is no ",
        "pip install --force-reinstall mpich==4.3.2",
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").write_text("")
    assert_bad(
        launcher.mpirun(gone, "==4.3.2"),
        "fail",
        "does not run",
        "pip install --force-reinstall mpich==4.3.2",
    )
    linked = replace(gone, mpi="Open MPI")
    assert_bad(
        launcher.mpirun(linked, "==4.3.2"),
        "warn",
        "(Open MPI), not this environment's",
        "mpich==4.3.2",
    )


def test_another_mpirun_on_path(facts: machine.Machine) -> None:
    check = launcher.mpirun_on_path(facts, "/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4")
    assert_bad(
        check,
        "warn",
        "/usr/bin/mpirun (Open MPI 4.1.4)",
        f"export PATH={Path(facts.mpirun).parent}:$PATH",
    )
    assert launcher.mpirun_on_path(facts, facts.mpirun, "").status == "ok"
    assert launcher.mpirun_on_path(facts, None, "").status == "ok"


def test_a_world_of_one(facts: machine.Machine) -> None:
    alone = report(0, 1, horovod=None, stage="horovod")
    lonely = Job(0, "", "", (alone, alone))
    fix = "pip install --force-reinstall --no-deps mpich==4.3.2"
    assert_bad(
        mpi.two_processes(lonely, facts, WANTED, {}), "fail", "every process is rank 0 of 1: ", fix
    )
    assert "tells them nothing of each other" in mpi.two_processes(lonely, facts, WANTED, {}).seen


def test_a_world_of_one_by_another_library(facts: machine.Machine) -> None:
    alone = report(0, 1, libmpi=["/usr/lib/libmpi.so.40"])
    lonely = Job(0, "", "", (alone, alone))
    check = mpi.two_processes(lonely, facts, WANTED, {})
    assert_bad(
        check, "fail", "rank 0 of 1: they load /usr/lib/libmpi.so.40", "--no-deps mpi4py==4.1.2"
    )
    check = mpi.two_processes(
        lonely, facts, WANTED, {"LD_LIBRARY_PATH": "/usr/lib", "LD_PRELOAD": ""}
    )
    assert check.fix == "unset LD_LIBRARY_PATH"


def test_one_of_the_three_sees_another_world(facts: machine.Machine) -> None:
    alone = {"world": [0, 1], "built": {"mpi": False, "gloo": True}, "sum": 1.0}
    check = mpi.two_processes(job(horovod=alone), facts, WANTED, {})
    assert_bad(check, "fail", "horovod says rank 0 of 1 and rank 0 of 1; expected", "make lab")
    assert_bad(mpi.horovod(job(horovod=alone), "", ""), "fail", "without MPI", "make lab")


def test_a_job_that_ran_out_of_time(facts: machine.Machine) -> None:
    stuck = report(0, horovod=None, libmpi=None, stage="horovod")
    late = Job(None, "", "", (stuck, stuck))
    check = mpi.two_processes(late, facts, WANTED, {})
    assert_bad(check, "fail", "they stood at: horovod, horovod", "mpirun -n 2")
    assert_bad(
        mpi.two_processes(Job(None), facts, WANTED, {}), "fail", "before Python ran", "mpirun -n 2"
    )
    assert_bad(mpi.imports(late, WANTED), "fail", "horovod: did not come back", "make lab")


def test_a_job_that_did_not_start(facts: machine.Machine) -> None:
    dead = Job(255, "", "\nmpirun: cannot resolve the host name\n")
    check = mpi.two_processes(dead, facts, WANTED, {})
    assert_bad(check, "fail", "status 255: mpirun: cannot resolve", "mpirun -n 2")
    assert_bad(mpi.imports(dead, WANTED), "fail", "not tried", "mend `two processes` first")
    assert_bad(mpi.one_libmpi(dead, {}), "fail", "not seen", "mend `two processes` first")
    assert_bad(mpi.horovod(dead, "", ""), "fail", "not tried", "mend `two processes` first")
    assert_bad(mpi.onednn(dead, {}), "fail", "TensorFlow did not load", "mend `imports` first")


@pytest.mark.parametrize(
    ("part", "fix"),
    [
        ("mpi4py", "mpi4py==4.1.2"),
        ("daal4py", "scikit-learn-intelex==2026.2.0"),
        ("tensorflow", "tensorflow-cpu==2.18.1"),
        ("horovod", "make clean && make lab"),
    ],
)
def test_a_part_that_does_not_import(part: str, fix: str) -> None:
    broken = job(**{part: {"error": "ImportError: undefined symbol:\n  _ZN10tensorflow4nope"}})
    assert_bad(
        mpi.imports(broken, WANTED), "fail", f"{part}: ImportError: undefined symbol: _ZN10", fix
    )


def test_two_libraries_in_one_process(facts: machine.Machine) -> None:
    two = job(libmpi=[LIBMPI, "/usr/lib/libmpi.so.40"])
    assert_bad(mpi.one_libmpi(two, {}), "fail", "2 MPI libraries: ", "make lab")
    assert mpi.one_libmpi(two, {"LD_PRELOAD": "/usr/lib/libmpi.so.40"}).fix == "unset LD_PRELOAD"
    assert_bad(
        mpi.one_libmpi(job(libmpi=["/opt/libmpi.so.12"]), {}),
        "warn",
        "not this environment's",
        "make",
    )


def test_horovod_for_another_tensorflow() -> None:
    check = mpi.horovod(job(), "2.17.0", "2.18.1")
    assert_bad(
        check,
        "fail",
        "built for TensorFlow 2.17.0, but 2.18.1 is installed",
        "make clean && make lab",
    )


def test_horovod_that_does_not_sum() -> None:
    wrong = {"world": [0, 2], "built": {"mpi": True, "gloo": False}, "sum": 1.0}
    assert_bad(
        mpi.horovod(job(horovod=wrong), "", ""), "fail", "gives 1", "mend `two processes` first"
    )
    lost = job(tensorflow={"error": "ImportError: no"}, horovod={"error": "ImportError: no"})
    assert mpi.horovod(lost, "", "").fix == "mend `imports` first"


def test_onednn_off() -> None:
    silent = replace(job(), output="onednn_verbose,info,oneDNN v3.5.0\n")
    assert "off by default on this CPU" in mpi.onednn(silent, {}).seen
    assert (
        "because TF_ENABLE_ONEDNN_OPTS=0" in mpi.onednn(silent, {"TF_ENABLE_ONEDNN_OPTS": "0"}).seen
    )


# The probe and the table


def test_mpi_libraries_in_a_process_map() -> None:
    row = "7f00-7f01 r-xp 00000000 08:01 123   {}\n"
    paths = (
        LIBMPI,
        "/opt/my libs/libmpich.so.12",
        "/x/libmpicxx.so.12",
        "/x/MPI.mpich.so",
        "/x/libopen-pal.so",
    )
    maps = "".join(map(row.format, paths)) + "7f00-7f01 rw-p 00000000 00:00 0\n"
    assert probe.mpi_libraries(maps) == sorted([LIBMPI, "/opt/my libs/libmpich.so.12"])


@pytest.fixture
def quick_probe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts other parts into the probe, so that a test need not load TensorFlow."""

    def put(**parts: Callable[[], dict[str, Any]]) -> None:
        for name in ("mpi4py", "daal4py", "tensorflow", "horovod"):
            part = parts.get(name, dict)
            if part is dict:
                part = lambda: {}  # noqa: E731
            part.__name__ = name
            monkeypatch.setattr(probe, name, part)
        monkeypatch.setattr(probe.faulthandler, "dump_traceback_later", lambda *_, **__: None)

    return put


def test_the_probe_goes_on_after_a_part_that_fails(
    tmp_path: Path, quick_probe: Callable[..., None]
) -> None:
    def broken() -> dict[str, Any]:
        raise ImportError("libmpi.so.12: cannot open shared object file")

    quick_probe(daal4py=broken)
    probe.main(str(tmp_path), 60)
    (path,) = tmp_path.iterdir()
    said = json.loads(path.read_text())
    assert said["stage"] == "done"
    assert said["daal4py"] == {"error": "ImportError: libmpi.so.12: cannot open shared object file"}
    assert said["horovod"] == {}


def test_the_probe_has_said_how_far_it_came(
    tmp_path: Path, quick_probe: Callable[..., None]
) -> None:
    def crash() -> dict[str, Any]:
        raise KeyboardInterrupt  # stands for a crash: nothing after it runs

    quick_probe(horovod=crash)
    with pytest.raises(KeyboardInterrupt):
        probe.main(str(tmp_path), 60)
    assert json.loads(next(tmp_path.iterdir()).read_text())["stage"] == "horovod"


def mpirun_that(folder: Path, does: str) -> str:
    """A program in mpirun's place."""
    path = folder / "mpirun"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return str(path)


def test_a_job_that_hangs_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "GRACE_S", 0.3)
    program = mpirun_that(tmp_path, "trap '' INT TERM; setsid sleep 300 & sleep 300; sleep 300")
    start = time.monotonic()
    with pair.pair(program, limit_s=1.0) as wait:
        said = wait()
        mine = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_of_doctor(pid)
        ]
        assert len(mine) >= 2, "the job must be alive while we look, or this test shows nothing"
    assert said.status is None and said.reports == ()
    assert not any(map(_is_of_doctor, mine))
    assert time.monotonic() - start < 15


def _is_of_doctor(pid: int) -> bool:
    return any(pid in reaper.processes(run_id) for run_id in _doctor_run_ids(pid))


def _doctor_run_ids(pid: int) -> list[str]:
    try:
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
    start = f"SCALEOUT_RUN_ID=doctor-{os.getpid()}-".encode()
    return [line.partition(b"=")[2].decode() for line in lines if line.startswith(start)]


def test_an_interrupt_ends_the_job(tmp_path: Path) -> None:
    program = mpirun_that(tmp_path, "exec sleep 300")
    with pytest.raises(KeyboardInterrupt), pair.pair(program, limit_s=60.0):
        raise KeyboardInterrupt
    left = [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _doctor_run_ids(pid)
    ]
    assert left == []


def test_the_job_inherits_no_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "5")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with pair.pair(mpirun_that(tmp_path, "env"), limit_s=20.0) as wait:
        said = wait().output
    assert "ONEDNN_VERBOSE=1" in said
    assert "PMI_RANK" not in said and "SLURM" not in said


def test_no_command_is_waited_for_longer_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "ASK_LIMIT_S", 0.5)
    start = time.monotonic()
    assert (
        examine._ask(["sleep", "60"])
        == examine._ask(["false"])
        == examine._ask(["/no/such/program"])
        == ""
    )
    assert time.monotonic() - start < 5


FINDINGS = [
    Check("one", "ok", "well"),
    Check("the second", "warn", "so so, " * 12 + "really", "unset A"),
    Check("three", "fail", "broken", "make lab   (then wait)"),
]


def test_the_table() -> None:
    lines = list(doctor._table(FINDINGS, width=60, colour=False))
    assert lines[0] == "ok    one         well"
    assert lines[1].startswith("warn  the second  so so,")
    assert all(len(line) <= 60 for line in lines)
    assert lines[-2:] == [
        "FAIL  three       broken",
        "                  fix: make lab   (then wait)",
    ]
    assert "\033[31mFAIL" in "\n".join(doctor._table(FINDINGS, width=60, colour=True))


@pytest.mark.parametrize(("found", "status"), [(FINDINGS, 1), (FINDINGS[:2], 0)])
def test_the_exit_status_and_the_json(
    found: list[Check],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda facts: found)
    assert doctor.main(as_json=False) == status
    assert capsys.readouterr().out.endswith(f"{len(found)} checks: {status} failed, 1 warning.\n")
    assert doctor.main(as_json=True) == status
    said = json.loads(capsys.readouterr().out)
    assert said["machine"]["usable_cores"] >= 1
    assert [check["name"] for check in said["checks"]] == [check.name for check in found]


def test_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda facts: FINDINGS)
    frame = doctor.frame()
    assert list(frame.columns) == ["check", "status", "seen", "fix"]
    assert list(frame.status) == ["ok", "warn", "fail"]


def test_the_doctor_loads_none_of_the_patients() -> None:
    program = (
        "import sys; from scaleout.doctor import checks, launcher, mpi, packages, pair, probe, report; "
        "print([m for m in ('tensorflow', 'horovod', 'mpi4py', 'daal4py', 'pandas', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
