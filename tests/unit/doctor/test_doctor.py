"""Every check of the doctor can fail: broken facts in, the right sentence and the right fix out."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows import EPYC, XEON, keep, measured

from scaleout import cli, machine
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.elsewhere import Headline
from scaleout.doctor import checks, examine
from scaleout.doctor import report as doctor
from scaleout.doctor.checks import Check, Pair

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


def job(**changes: Any) -> Pair:
    return Pair(0, VERBOSE, "", (report(0, **changes), report(1, **changes)))


def assert_bad(check: Check, status: str, seen: str, fix: str) -> None:
    assert check.status == status, check
    assert seen in check.seen, check
    assert fix in check.fix, check
    assert "\n" not in check.seen + check.fix


def test_a_healthy_job_passes_everything(facts: machine.Machine) -> None:
    found = [
        checks.two_processes(job(), facts, WANTED, {}),
        checks.imports(job(), WANTED),
        checks.one_libmpi(job(), {}),
        checks.horovod(job(), "2.18.1", "2.18.1"),
        checks.onednn(job(), {}),
        checks.mpirun(facts, "==4.3.2"),
        *checks.packages(WANTED, FOUND, "3.11.7"),
    ]
    assert [check.name for check in found if check.status != "ok"] == []
    assert found[0].seen == "ranks 0 and 1 of 2 in mpi4py, daal4py and horovod"
    assert found[4].seen == "on by default on this CPU: 3.5.0, Intel AVX-512 with Intel DL Boost"


# The machine


def test_cores_and_processor(facts: machine.Machine) -> None:
    core = facts.layout[0]
    one = replace(facts, usable_cores=1, layout=(core,) * 4, hardware_threads=4, cgroup_cpus=None)
    container = checks.cores(replace(one, cores=4, cgroup_cpus=1.5))
    assert_bad(container, "warn", "limit 1.5 CPUs", "docker run --cpus")
    assert_bad(checks.cores(replace(one, cores=1)), "warn", "1 of 4 allowed", "taskset -cp 0-3 $$")
    alone = replace(one, cores=1, layout=(core,), hardware_threads=1)
    assert_bad(checks.cores(alone), "warn", "nothing gets faster", "a machine with 2 cores")
    assert "unknown" in checks.cores(replace(facts, layout_source="unknown")).seen
    assert_bad(checks.processor(replace(facts, isa=("sse4_2",))), "fail", "no AVX", "newer CPU")
    assert "nothing newer" in checks.processor(replace(facts, isa=("sse4_2", "avx"))).seen


def test_others_memory_and_disk(facts: machine.Machine) -> None:
    eight = replace(facts, usable_cores=8)
    assert checks.others(2.0, eight).status == "ok"
    assert_bad(checks.others(2.1, eight), "warn", "2.1 processes at work", "a node of your own")
    assert checks.memory(16.0, None, 12.0).status == "ok"
    assert_bad(checks.memory(16.0, None, 4.0), "warn", "4.0 of 16.0 GiB", "top")
    assert_bad(checks.memory(16.0, 2.0, 12.0), "fail", "cgroup limit 2.0", "docker run --memory")
    assert_bad(checks.memory(None, None, None), "warn", "unknown", "free -h")
    assert checks.shared_memory(1024.0).status == "ok"
    assert_bad(checks.shared_memory(3.0), "warn", "3 MiB free", "--shm-size")
    assert_bad(checks.shared_memory(None), "warn", "no /dev/shm", "--shm-size")
    assert_bad(checks.results("results", 1.0), "warn", "1.0 GiB free", "du -sh")
    assert_bad(checks.results("results", 0.1), "fail", "0.1 GiB free", "du -sh")


@pytest.mark.parametrize(
    ("kept", "waited", "stolen", "held", "seen", "fix"),
    [
        (0.97, 0.02, 0, 0, "2 cores at work: the slowest runs at 97 % of the speed of one", ""),
        (0.50, 0.49, 0, 0, "for 49 % of the time others had its core", "`top` shows them"),
        (
            0.60,
            0.40,
            0.30,
            0,
            "for 30 % of the time the host ran other virtual machines",
            "nothing",
        ),
        (0.55, 0.45, 0.02, 0.4, "for 40 % of the time a control group's limit", "--cpus="),
        (0.62, 0.01, 0, 0, "it had its core all the time, so they share one, or a clock", "lscpu"),
        (0.80, 0.15, 0.05, 0, "for 10 % of the time others had its core", "top"),
    ],
)
def test_what_slows_the_cores_is_named_with_its_share(
    kept: float, waited: float, stolen: float, held: float, seen: str, fix: str
) -> None:
    found = checks.pace(machine.Pace(2, kept, waited, stolen, held))
    assert_bad(found, "warn" if fix else "ok", seen, fix)


def test_the_pace_of_this_machine_is_measured() -> None:
    found = machine.pace()
    assert 0 < found.kept <= 1 and 0 <= found.waited < 1 and found.cores >= 1


def test_results_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    assert examine._results().status == "ok" and not (tmp_path / "results").exists()
    # A folder that takes no files, even from root.
    monkeypatch.setenv("SCALEOUT_RESULTS", "/proc/self/fd")
    cannot = "nothing can be written to /proc/self/fd"
    assert_bad(examine._results(), "fail", cannot, "export SCALEOUT_RESULTS=")
    # A disk without room takes a new file, but not its bytes; so does a limit on files' size.
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        check = examine._results()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_bad(check, "fail", "nothing can be written", "export SCALEOUT_RESULTS=")


# The environment and the shell


def version_of(name: str, version: str | None) -> Check:
    found = {key: value for key, value in {**FOUND, name: version}.items() if value}
    return next(check for check in checks.packages(WANTED, found, "3.11.7") if check.name == name)


@pytest.mark.parametrize(
    ("name", "version", "status", "seen", "fix"),
    [
        ("mpi4py", None, "fail", "not installed", "-m pip install mpi4py==4.1.2"),
        ("horovod", None, "fail", "not installed", "make clean && make lab"),
        ("tensorflow-cpu", "2.19.0", "fail", "2.19.0, but the workshop needs ==2.18.1", "pip"),
        ("ipyparallel", "9.3.0", "warn", "the workshop needs ==9.2.0", "pip"),
        ("ipykernel", "7.0.1", "fail", "7.0 breaks ipyparallel", "pip"),
        ("jupyter-server", "2.20.0", "fail", "security holes", "pip"),
    ],
)
def test_another_version(name: str, version: str | None, status: str, seen: str, fix: str) -> None:
    assert_bad(version_of(name, version), status, seen, fix)


def test_another_python() -> None:
    first = next(checks.packages(WANTED, FOUND, "3.10.4"))
    seen = "3.10.4, but the workshop needs >=3.11,<3.13"
    assert_bad(first, "fail", seen, "make lab PYTHON=python3.11")


def test_the_tool_alone_misses_nothing_of_the_course() -> None:
    wanted = {name: WANTED[name] for name in ("python", "mpich", "mpi4py")}
    names = [check.name for check in checks.packages(wanted, FOUND, "3.11.7")]
    assert names == ["python", "mpi4py", "mpich"]
    lean = job(daal4py={"error": "x"}, tensorflow={"error": "x"}, horovod={"error": "x"})
    assert checks.imports(lean, wanted).seen == "mpi4py load in one process"


def test_a_kernel_of_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Jupyter finds it, and as it is judged."""
    none = checks.kernel({}, "", {})
    assert_bad(none, "fail", "no kernel named python3", "ipykernel install --sys-prefix")
    assert examine._kernel(os.environ).status == "ok"
    other = tmp_path / "bin" / "python"  # answers as another environment's Python would
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho /opt/other\n")
    other.chmod(0o755)
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    spec = {"argv": [str(other)], "display_name": "x", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert_bad(examine._kernel(os.environ), "fail", "/opt/other", "unset JUPYTER_PATH")
    assert_bad(examine._kernel({}), "fail", "/opt/other", "JUPYTER_PREFER_ENV_PATH=1")
    other.write_text("#!/bin/sh\nexit 1\n")
    assert_bad(examine._kernel(os.environ), "fail", "does not run", "unset JUPYTER_PATH")
    (folder / "kernel.json").write_text("{ nonsense")
    assert examine._kernel(os.environ).status == "fail"


def test_variables_of_threads_and_schedulers() -> None:
    quiet = {"PATH": "/bin", "KMP_INIT_AT_FORK": "FALSE", "OMPI_COMM_WORLD_RANK": "0"}
    assert checks.thread_variables(quiet).status == "ok"
    loud = {"OMP_NUM_THREADS": "8", "KMP_AFFINITY": "compact", "TF_ENABLE_ONEDNN_OPTS": "0"}
    fix = "unset " + " ".join(sorted(loud))
    assert_bad(checks.thread_variables(quiet | loud), "warn", "OMP_NUM_THREADS=8", fix)
    assert checks.scheduler({"PATH": "/bin"}).seen.startswith("no variables")
    shell = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    assert (
        "PMI_RANK" in checks.scheduler(shell).seen and "and 1 more" in checks.scheduler(shell).seen
    )


def test_pytorch() -> None:
    good = {"version": "2.9.0", "gloo": True, "libmpi": [LIBMPI]}
    assert checks.pytorch(good, {}).seen == "2.9.0 in .side/torch, Gloo built, one MPI"
    again = "rm -r .side/torch && make torch"
    assert_bad(checks.pytorch({"error": "no torch"}, {}), "warn", "no torch", again)
    assert_bad(checks.pytorch(good | {"gloo": False}, {}), "warn", "without Gloo", again)
    two = good | {"libmpi": [LIBMPI, "/usr/lib/libmpi.so.40"]}
    assert_bad(checks.pytorch(two, {}), "warn", "not one MPI but: ", again)
    assert checks.pytorch(two, {"LD_PRELOAD": "x"}).fix == "unset LD_PRELOAD"


# MPI


def test_mpirun(facts: machine.Machine, tmp_path: Path) -> None:
    gone = replace(facts, mpirun=str(tmp_path / "mpirun"), mpi="unknown")
    fix = "pip install --force-reinstall mpich==4.3.2"
    assert_bad(checks.mpirun(gone, "==4.3.2"), "fail", "there is no ", fix)
    (tmp_path / "mpirun").write_text("")
    assert_bad(checks.mpirun(gone, "==4.3.2"), "fail", "does not run", fix)
    foreign = checks.mpirun(replace(gone, mpi="Open MPI"), "==4.3.2")
    assert_bad(foreign, "warn", "(Open MPI), not this environment's", "mpich==4.3.2")
    other = checks.mpirun_on_path(facts, "/usr/bin/mpirun", "mpirun (Open MPI) 4.1.4")
    path = f"export PATH={Path(facts.mpirun).parent}:$PATH"
    assert_bad(other, "warn", "/usr/bin/mpirun (Open MPI 4.1.4)", path)
    assert checks.mpirun_on_path(facts, facts.mpirun, "").status == "ok"
    assert checks.mpirun_on_path(facts, None, "").status == "ok"


def test_a_world_of_one(facts: machine.Machine) -> None:
    alone = report(0, 1, horovod=None, stage="horovod")
    found = checks.two_processes(Pair(0, "", "", (alone, alone)), facts, WANTED, {})
    fix = "pip install --force-reinstall --no-deps mpich==4.3.2"
    assert_bad(found, "fail", "every process is rank 0 of 1: ", fix)
    assert "tells them nothing of each other" in found.seen
    foreign = report(0, 1, libmpi=["/usr/lib/libmpi.so.40"])
    lonely = Pair(0, "", "", (foreign, foreign))
    seen = "rank 0 of 1: they load /usr/lib/libmpi.so.40"
    found = checks.two_processes(lonely, facts, WANTED, {})
    assert_bad(found, "fail", seen, "--no-deps mpi4py==4.1.2")
    shell = {"LD_LIBRARY_PATH": "/usr/lib", "LD_PRELOAD": ""}
    assert checks.two_processes(lonely, facts, WANTED, shell).fix == "unset LD_LIBRARY_PATH"


def test_one_of_the_three_sees_another_world(facts: machine.Machine) -> None:
    alone = {"world": [0, 1], "built": {"mpi": False, "gloo": True}, "sum": 1.0}
    check = checks.two_processes(job(horovod=alone), facts, WANTED, {})
    assert_bad(check, "fail", "horovod says rank 0 of 1 and rank 0 of 1; expected", "make lab")
    assert_bad(checks.horovod(job(horovod=alone), "", ""), "fail", "without MPI", "make lab")


def test_a_job_that_ran_out_of_time_or_did_not_start(facts: machine.Machine) -> None:
    stuck = report(0, horovod=None, libmpi=None, stage="horovod")
    late = Pair(None, "", "", (stuck, stuck))
    check = checks.two_processes(late, facts, WANTED, {})
    assert_bad(check, "fail", "they stood at: horovod, horovod", "mpirun -n 2")
    assert_bad(checks.imports(late, WANTED), "fail", "horovod: did not come back", "make lab")
    check = checks.two_processes(Pair(None), facts, WANTED, {})
    assert_bad(check, "fail", "before Python ran", "mpirun -n 2")
    dead = Pair(255, "", "\nmpirun: cannot resolve the host name\n")
    check = checks.two_processes(dead, facts, WANTED, {})
    assert_bad(check, "fail", "status 255: mpirun: cannot resolve", "mpirun -n 2")
    first = "mend `two processes` first"
    assert_bad(checks.imports(dead, WANTED), "fail", "not tried", first)
    assert_bad(checks.one_libmpi(dead, {}), "fail", "not seen", first)
    assert_bad(checks.horovod(dead, "", ""), "fail", "not tried", first)
    assert_bad(checks.onednn(dead, {}), "fail", "did not load", "mend `imports` first")


@pytest.mark.parametrize(
    ("part", "fix"), [("daal4py", "scikit-learn-intelex==2026.2.0"), ("horovod", "make clean")]
)
def test_a_part_that_does_not_import(part: str, fix: str) -> None:
    broken = job(**{part: {"error": "ImportError: undefined symbol:\n  _ZN10tensorflow4nope"}})
    seen = f"{part}: ImportError: undefined symbol: _ZN10"
    assert_bad(checks.imports(broken, WANTED), "fail", seen, fix)


def test_two_libraries_in_one_process() -> None:
    two = job(libmpi=[LIBMPI, "/usr/lib/libmpi.so.40"])
    assert_bad(checks.one_libmpi(two, {}), "fail", "2 MPI libraries: ", "make lab")
    shell = {"LD_PRELOAD": "/usr/lib/libmpi.so.40"}
    assert checks.one_libmpi(two, shell).fix == "unset LD_PRELOAD"
    other = checks.one_libmpi(job(libmpi=["/opt/libmpi.so.12"]), {})
    assert_bad(other, "warn", "not this environment's", "make")


def test_horovod_that_does_not_work() -> None:
    other = checks.horovod(job(), "2.17.0", "2.18.1")
    seen = "built for TensorFlow 2.17.0, but 2.18.1 is installed"
    assert_bad(other, "fail", seen, "make clean && make lab")
    wrong = {"world": [0, 2], "built": {"mpi": True, "gloo": False}, "sum": 1.0}
    check = checks.horovod(job(horovod=wrong), "", "")
    assert_bad(check, "fail", "gives 1", "mend `two processes` first")
    lost = job(tensorflow={"error": "ImportError: no"}, horovod={"error": "ImportError: no"})
    assert checks.horovod(lost, "", "").fix == "mend `imports` first"


def test_onednn_off() -> None:
    silent = replace(job(), output="onednn_verbose,info,oneDNN v3.5.0\n")
    assert "off by default on this CPU" in checks.onednn(silent, {}).seen
    off = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert "because TF_ENABLE_ONEDNN_OPTS=0" in checks.onednn(silent, off).seen


# What rows of the lessons prove

ISA = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16")
HERE = "on a processor like this (EPYC 7B13, AVX2, 2 cores, 28 November 2026)"
FILE = "labs/08_precision/elsewhere.jsonl"


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop without rows, and the folder of a lesson in it."""
    for folder in ("labs/08_precision", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "labs/08_precision"


def products(
    step: str, bf16: float, int8: float, machine: Any = EPYC, wrong: float = 0.0
) -> list[Headline]:
    facts = {"int8": {"wrong_sums": wrong}}
    return measured(f"product-{step}", {"bf16": bf16, "int8": int8}, machine, facts=facts)


def networks(step: str, bf16: float, int8: float, machine: Any = EPYC) -> list[Headline]:
    return measured(f"network-{step}", {"bf16": bf16, "int8": int8}, machine)


def trapped(
    facts: machine.Machine, limit: str = "", isa: tuple[str, ...] = (*ISA, "amx_tile")
) -> dict[str, str]:
    environ: Mapping[str, str] = {"ONEDNN_MAX_CPU_ISA": limit} if limit else {}
    found = examine._traps(replace(facts, isa=isa), environ)
    assert all(check.status == "ok" and not check.fix for check in found), "no fault of a machine"
    return {check.name: check.seen for check in found}


def test_the_doctor_names_a_trap_with_its_source(
    lesson: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(
        lesson,
        networks("AVX2", 0.11, 1.6),
        products("AVX2", 0.09, 1.9, wrong=0.123),
        networks("AVX512_CORE_AMX", 3.9, 2.5, XEON),
        products("AVX512_CORE_AMX", 7.1, 9.0, XEON),
    )
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # of any machine of the course
    monkeypatch.setattr(examine, "pair", lambda *_: nullcontext(job))
    cli.main(["doctor", "--json"])
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert found["bf16"]["seen"] == (
        f"never bf16 here: {HERE} a network ran at 0.11 times its speed in fp32 (with AMX: 3.9), "
        f"and a product of matrices at 0.09 times (with AMX: 7.1). Source: {FILE}"
    )
    assert found["int8"]["seen"] == (f"int8 gives wrong sums: 12 % of them {HERE}. Source: {FILE}")
    assert {found[name]["status"] for name in ("bf16", "int8")} == {"ok"}


def test_a_processor_is_like_another_with_the_same_instructions_that_count(
    facts: machine.Machine, lesson: Path
) -> None:
    keep(
        lesson,
        networks("AVX2", 0.11, 1.6),
        networks("AVX512_CORE", 0.5, 1.6),
        networks("AVX512_CORE_VNNI", 0.6, 1.6),
        networks("AVX512_CORE_BF16", 1.9, 0.7),
    )
    assert "at 0.11 times" in trapped(facts, "AVX2")["bf16"]
    assert "at 0.11 times" in trapped(facts, isa=("avx2",))["bf16"]
    assert "at 0.11 times" in trapped(facts, "avx2_vnni")["bf16"]
    assert "at 0.5 times" in trapped(facts, "AVX512_CORE")["bf16"]
    assert "at 0.6 times" in trapped(facts, isa=ISA[:3])["bf16"]
    assert list(trapped(facts, "AVX512_CORE_FP16")) == ["int8"]
    assert list(trapped(facts, isa=ISA)) == list(trapped(facts, "NO_SUCH", ISA)) == ["int8"]
    for none in ("AVX512_CORE_AMX", ""):  # of AMX are no rows
        assert not trapped(facts, none)
    for none in ("AVX", "SSE41"):  # nor of less than AVX2, whatever else the processor has
        assert not trapped(facts, none, ("avx2",))
    assert not trapped(facts, isa=("avx",))


def test_a_trap_is_one_on_every_processor_like_this(facts: machine.Machine, lesson: Path) -> None:
    slow = networks("AVX2", 0.11, 0.5)
    keep(lesson, slow, networks("AVX2", 0.3, 1.0, XEON))
    found = trapped(facts, "AVX2")
    assert list(found) == ["bf16"]
    assert found["bf16"].startswith(
        "never bf16 here: on 2 processors like this (EPYC 7B13, AVX2, 2 cores, 28 November 2026; "
        "Xeon Platinum 8488C, AMX, 2 cores, held to AVX2, 28 November 2026) "
        "a network ran at 0.11 to 0.3 times its speed in fp32. Source: "
    )
    keep(lesson, slow, products("AVX2", 1.0, 1.4, wrong=0.0002))
    found = trapped(facts, "AVX2")
    assert found["bf16"].startswith("no bf16 in networks here: on a processor like this (")
    assert "; int8 gives wrong sums: less than 0.1 % of them on a" in found["int8"]


def test_where_there_are_no_rows_or_no_workshop_there_are_no_traps(
    facts: machine.Machine, lesson: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not trapped(facts, "AVX2")
    path = keep(lesson, networks("AVX2", 1.5, 2.0), measured("pi", {"2 ranks": 0.5}))
    path.write_text("{}\n[]\n" + path.read_text())  # damaged lines
    assert not trapped(facts, "AVX2")

    def nowhere() -> Path:
        raise ScaleoutError("No workshop here")

    monkeypatch.setattr(examine.paths, "home", nowhere)
    assert not trapped(facts, "AVX2")


# The probe, its job, and the table


FINDINGS = [
    Check("one", "ok", "well"),
    Check("the second", "warn", "so so, " * 12 + "really", "unset A"),
    Check("three", "fail", "broken", "make lab   (then wait)"),
]


@pytest.mark.parametrize(("found", "status"), [(FINDINGS, 1), (FINDINGS[:2], 0)])
def test_the_exit_status_the_json_and_the_frame(
    found: list[Check],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda facts: found)
    assert cli.main(["doctor"]) == status
    assert capsys.readouterr().out.endswith(f"{len(found)} checks: {status} failed, 1 warning.\n")
    assert cli.main(["doctor", "--json"]) == status
    said = json.loads(capsys.readouterr().out)
    assert said["machine"]["usable_cores"] >= 1
    assert [check["name"] for check in said["checks"]] == [check.name for check in found]
    frame = doctor.frame()
    assert list(frame.columns) == ["check", "status", "seen", "fix"] and len(frame) == len(found)


def test_a_side_environment_needs_none_of_our_packages_to_be_asked() -> None:
    """PyTorch's has only what a lab imports."""
    load = "import sys; sys.modules['msgspec'] = None; import scaleout.doctor.probe"
    assert subprocess.run([sys.executable, "-c", load], check=False).returncode == 0
