"""When the set-up cannot go on, a sentence says what to type, and the next run goes on from
there."""

import fcntl
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import ROOT, until

SPEC = importlib.util.spec_from_file_location("setup_env", ROOT / "tools/setup_env.py")
setup_env = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(setup_env)

# Stands where pip would, and uv, which it brings: writes down how it was called, installs the one
# package that the set-up looks at, and fails or sleeps when a file says so.
PIP = """
import json, os, pathlib, shutil, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit()
here = pathlib.Path(__file__).resolve().parent
if sys.argv[1:] == ["config", "list"]:
    sys.exit(print((here / "config").read_text() if (here / "config").exists() else ""))
names = ("MAKEFLAGS", "CXXFLAGS", "HOROVOD_CMAKE", "HOROVOD_WITH_GLOO")
names += ("PIP_USER", "PYTHONPATH", "TMPDIR", "UV_DEFAULT_INDEX", "UV_CACHE_DIR")
wanted = pathlib.Path(sys.argv[-1]).read_text() if "-r" in sys.argv else ""
call = {"args": sys.argv[1:], "wanted": wanted, "environ": {n: os.environ.get(n) for n in names}}
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(call) + "\\n")
if (here / "sleep").exists():
    time.sleep(float((here / "sleep").read_text()))
if (here / "fail").exists() and (here / "fail").read_text() in wanted + sys.argv[1]:
    sys.exit("Retrying after connection broken by 'NewConnectionError: Failed to establish a new connection'")
if wanted.startswith("uv"):
    program = pathlib.Path(sys.prefix, "bin/uv")
    program.write_text(f"#!/bin/sh\\nexec '{sys.executable}' '{__file__}' by-uv \\"$@\\"\\n")
    program.chmod(0o755)
if wanted.startswith("horovod"):
    (here.parent / "horovod").mkdir(exist_ok=True)
    (here.parent / "horovod/tensorflow.py").write_text("mpi_built = gloo_built = lambda: True")
"""
PACKAGES = ("absl-py", "six", "mpich", "tensorflow-cpu", "uv", "horovod")


@pytest.fixture
def tree(tmp_path: Path) -> SimpleNamespace:
    """A workshop's folder with the set-up, a short lock, and an environment whose pip is ours."""
    root = tmp_path / "tree"
    (root / "tools").mkdir(parents=True)
    text = (ROOT / "tools/setup_env.py").read_text()
    (root / "tools/setup_env.py").write_text(text.replace('"packages": 2.9', '"packages": 0.0'))
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "requirements").mkdir()
    (root / "requirements/workshop.lock").write_text(
        "".join(f"{name}==1 --hash=sha256:{'0' * 64}\n" for name in PACKAGES)
    )
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("c++", "make"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True, timeout=300
    )
    site = next((root / ".venv/lib").glob("python*/site-packages"))
    (site / "pip").mkdir()
    (site / "pip/__main__.py").write_text(PIP)
    names = {k: v for k, v in os.environ.items() if not k.startswith(("CONDA", "CXX", "PIP_"))}
    environ = names | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "MAKEFLAGS": " -- PYTHON=x",
        "PYTHONPATH": "/elsewhere",
    }
    environ |= {"PIP_CONFIG_FILE": os.devnull}
    return SimpleNamespace(root=root, site=site, tools=tools, environ=environ)


@pytest.fixture
def start(tree: SimpleNamespace) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts the set-up, as make does; ends what a test leaves running."""
    running = []

    def popen(*args: str, **environ: str) -> subprocess.Popen:
        command = [sys.executable, str(tree.root / "tools/setup_env.py"), *args]
        how = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "env": tree.environ | environ,
        }
        running.append(subprocess.Popen(command, **how))
        return running[-1]

    yield popen
    for process in running:
        process.kill()
        process.wait(60)


@pytest.fixture
def setup(start: Callable[..., subprocess.Popen]) -> Callable[..., SimpleNamespace]:
    """Runs the set-up to its end."""

    def run(*args: str, **environ: str) -> SimpleNamespace:
        process = start(*args, **environ)
        out, err = process.communicate(timeout=300)
        return SimpleNamespace(status=process.returncode, out=out, err=err)

    return run


def calls(tree: SimpleNamespace) -> list[dict]:
    """What our pip was asked to install, the oldest first."""
    file = tree.site / "pip/calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# From nothing to done


def test_four_stages_then_the_command(tree, setup):
    done = setup("python", "-c", "import sys; print(sys.prefix)", PIP_USER="1")
    assert (done.status, done.out.strip()) == (0, str(tree.root / ".venv"))
    assert re.findall(r"^  (\w+).* \d+ s$", done.err, re.M) == ["4", "horovod", "scaleout"], (
        done.err
    )
    uv, packages, horovod, own = calls(tree)
    assert uv["wanted"].startswith("uv==1 ") and packages["args"][0] == "by-uv"
    for call, count in ((uv, 1), (packages, 4)):
        assert {"--require-hashes", "--no-deps", ":all:"} <= set(call["args"])
        assert call["wanted"].count("==") == count
    assert not Path(packages["environ"]["UV_CACHE_DIR"]).exists()
    assert {"--require-hashes", "--no-deps", "--no-build-isolation", "--no-cache-dir"} <= set(
        horovod["args"]
    )
    assert horovod["wanted"].startswith("horovod==1 --hash=sha256:")
    assert re.fullmatch(r"-j\d", horovod["environ"]["MAKEFLAGS"]), (
        "make's own flags would compile on one core"
    )
    assert horovod["environ"]["HOROVOD_WITH_GLOO"] == "1"
    assert "-include stdexcept" in horovod["environ"]["CXXFLAGS"]
    cmake = Path(horovod["environ"]["HOROVOD_CMAKE"])
    assert os.access(cmake, os.X_OK) and "joined.cmake" in cmake.read_text()
    jobs = horovod["environ"]["MAKEFLAGS"].removeprefix("-j")
    assert f'- 1) / {jobs}"' in cmake.with_name("joined.cmake").read_text(), (
        "the sources are joined into as many files as are compiled at once"
    )
    assert {horovod["environ"]["PIP_USER"], horovod["environ"]["PYTHONPATH"]} == {"0", None}
    assert Path(horovod["environ"]["TMPDIR"]).is_relative_to(tree.root)
    assert own["args"][-2:] == ["--editable", str(tree.root)]


def test_without_uv_pip_does_all(tree, setup):
    """Also where uv comes but does not work."""
    (tree.site / "pip/config").write_text("global.index-url='https://127.0.0.1:9/simple'\n")
    (tree.site / "pip/fail").write_text("by-uv")
    assert setup().status == 0
    _, by_uv, by_pip, *_ = calls(tree)
    assert by_uv["environ"]["UV_DEFAULT_INDEX"] == "https://127.0.0.1:9/simple"
    assert by_pip["args"][0] == "install" and by_pip["wanted"] == by_uv["wanted"]


def test_an_index_without_uv_is_enough(tree, setup):
    (tree.site / "pip/fail").write_text("uv==1")
    done = setup()
    assert done.status == 0 and "not by uv" in done.err
    assert "uv==1" not in calls(tree)[1]["wanted"]


def test_uv_is_told_what_pip_knows():
    listed = (
        "global.index-url='https://127.0.0.1/a'\nglobal.cert='/etc/ca.pem'\n"
        "install.find-links='/w1\\n/w2'\n:env:.index-url='https://127.0.0.1/b'\n"
    )
    found = setup_env.uv_settings(listed)
    assert found["UV_DEFAULT_INDEX"] == "https://127.0.0.1/b", "a variable beats a file"
    assert (found["SSL_CERT_FILE"], found["UV_FIND_LINKS"]) == ("/etc/ca.pem", "/w1,/w2")


def test_a_second_run_does_nothing(tree, setup):
    setup()
    again = setup("python", "-c", "print('hello')")
    assert (again.status, again.out, again.err) == (0, "hello\n", "")
    assert len(calls(tree)) == 4


@pytest.mark.parametrize(
    ("package", "again"), [("six", ["packages"]), ("tensorflow-cpu", ["packages", "horovod"])]
)
def test_a_new_version_redoes_what_depends_on_it(tree, setup, package, again):
    setup()
    lock = tree.root / "requirements/workshop.lock"
    lock.write_text(lock.read_text().replace(f"{package}==1", f"{package}==2"))
    done = setup()
    assert re.findall(r"^  (?:\d )?(\w+)", done.err, re.M) == again, done.err


# Cut off half-way


def test_no_network_half_way(tree, setup):
    (tree.site / "pip/fail").write_text("mpich")
    cut = setup("python", "-c", "print('not yet')")
    assert (cut.status, cut.out) == (1, "")
    assert re.search("no network.* run make again: it goes on from here", cut.err), cut.err
    assert "NewConnectionError" in (tree.root / re.search(r"\S+\.log", cut.err)[0]).read_text()
    assert "Traceback" not in cut.err
    (tree.site / "pip/fail").unlink()
    assert setup("python", "-c", "").status == 0
    assert sum("horovod" in call["wanted"] for call in calls(tree)) == 1


def test_interrupted(tree, start, setup):
    (tree.site / "pip/sleep").write_text("60")
    process = start("python", "-c", "")
    until(lambda: calls(tree))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Interrupted. Run make again: it goes on from here." in err
    assert "Traceback" not in err
    with (tree.root / ".setup/lock").open(
        "r+"
    ) as lock:  # the lock is free: no pip that held it is left
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (tree.site / "pip/sleep").unlink()
    assert setup().status == 0


def test_killed_outright(tree, start, setup):
    """Its pip lives on for a while: the next set-up waits for that one's end, then goes on."""
    (tree.site / "pip/sleep").write_text("2")
    process = start()
    until(lambda: calls(tree))
    process.kill()
    process.wait(60)
    (tree.site / "pip/sleep").unlink()
    done = setup()
    assert done.status == 0
    assert done.err.startswith("Another make is setting up here: waiting for it to end.\n"), (
        done.err
    )


def test_a_package_cut_off_half_way_is_installed_anew(tree, setup):
    def package(name: str, installer: str, record: str) -> Path:
        info = tree.site / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        if installer:
            (info / "INSTALLER").write_text(installer)
        if record:
            (info / "RECORD").write_text(record)
        return info

    (tree.site / "whole.py").write_text("x = 1\n")
    whole = package("whole", "pip", "whole.py,sha256=abc,6\nwhole-1.dist-info/METADATA,,\n")
    short = package("short", "pip", "whole.py,sha256=abc,600\n")
    gone = package("gone", "pip", "gone.py,sha256=abc,6\n")
    unrecorded = package("unrecorded", "", "")
    conda = package("conda", "conda", "")
    assert setup().status == 0
    assert [info.exists() for info in (whole, conda)] == [True, True]
    assert [info.exists() for info in (short, gone, unrecorded)] == [False, False, False]


def test_an_environment_cut_off_while_it_was_made(tree, setup):
    unfinished = tree.root / ".setup/unfinished"
    unfinished.parent.mkdir()
    unfinished.touch()
    (tree.root / ".venv/leftover").touch()
    # Now pip is the real one, and no index is there to be reached.
    done = setup(PIP_INDEX_URL="https://127.0.0.1:9/simple", PIP_RETRIES="0", PIP_TIMEOUT="2")
    assert (tree.root / ".venv/bin/pip").exists()
    assert not (tree.root / ".venv/leftover").exists()
    assert not unfinished.exists()
    assert done.status == 1
    assert re.search("no network.* run make again: it goes on from here", done.err), done.err


# Not possible here


def test_wrong_python(tmp_path, monkeypatch):
    setup_env.check_python((3, 11, 0))
    setup_env.check_python((3, 12, 9))
    monkeypatch.setenv("PATH", str(tmp_path))
    for minor in (10, 13):
        with pytest.raises(
            setup_env.Stop,
            match=rf"3.11 or 3.12 and this is 3.{minor}: install .*PYTHON=python3.12",
        ):
            setup_env.check_python((3, minor, 0))


def test_another_python_than_the_environment_has(tree, setup):
    config = tree.root / ".venv/pyvenv.cfg"
    own = sys.version_info[1]
    other = 12 if own == 11 else 11
    config.write_text(re.sub(r"version = 3\.\d+", f"version = 3.{other}", config.read_text()))
    done = setup("--this-python", "python", "-c", "print('wrong')")
    assert (done.status, done.out) == (1, "")
    assert (
        f".venv holds Python 3.{other} and you asked for 3.{own}: type  make clean  first."
        in done.err
    )


@pytest.mark.parametrize(
    ("system", "machine", "libc", "words"),
    [
        ("Darwin", "arm64", ("", ""), "needs Linux on x86-64 and this is Darwin on arm64: use"),
        ("Linux", "x86_64", ("glibc", "2.17"), "this system has glibc 2.17: use"),
    ],
)
def test_wrong_machine(system, machine, libc, words):
    setup_env.check_machine("Linux", "x86_64", ("glibc", "2.28"))
    with pytest.raises(setup_env.Stop, match=words):
        setup_env.check_machine(system, machine, libc)


@pytest.mark.parametrize("module", ["ensurepip", "venv"])
def test_python_without_its_venv_module(monkeypatch, module):
    setup_env.check_venv_module()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(setup_env.Stop, match=r"type  sudo apt install python3\.\d+-venv"):
        setup_env.check_venv_module()


def test_no_compiler(tree, setup, tmp_path):
    (tmp_path / "empty").mkdir()
    done = setup("python", "-c", "print('not yet')", PATH=str(tmp_path / "empty"))
    assert (done.status, done.out, calls(tree)) == (1, "", [])
    assert "a C++ compiler (c++, g++, clang++) is missing" in done.err
    for words in ("apt install g++", "dnf install gcc-c++", "conda install"):
        assert words in done.err, done.err


def test_a_compiler_that_fails(tree):
    assert setup_env.check_compiler({"PATH": str(tree.tools)}) == "c++"
    (tree.tools / "old-g++").write_text("#!/bin/sh\necho unrecognized option -std=c++17\nexit 1\n")
    (tree.tools / "old-g++").chmod(0o755)
    with pytest.raises(
        setup_env.Stop, match=r"old-g\+\+ fails on a line of C\+\+17 \(unrecognized option"
    ):
        setup_env.check_compiler({"PATH": str(tree.tools), "CXX": "old-g++"})


def test_too_little_disk(tree, setup):
    script = tree.root / "tools/setup_env.py"
    script.write_text(script.read_text().replace('"horovod": 0.5', '"horovod": 1e9'))
    done = setup()
    assert (done.status, calls(tree)) == (1, [])
    assert re.search(r"needs 1000000000.\d GiB and \S+ has [\d.]+ GiB free: free some", done.err), (
        done.err
    )


def test_a_folder_that_horovod_cannot_be_compiled_in():
    setup_env.check_path(Path("/home/ann-lee/scale_out.2/.venv"))
    with pytest.raises(setup_env.Stop, match="move the workshop to a path without spaces"):
        setup_env.check_path(Path("/home/ann lee/scaleout/.venv"))


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: No matching distribution found for six==9", "does not offer six==9"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE.",
            "not the one in requirements/workshop.lock",
        ),
        ("c++: fatal error: Killed signal terminated program cc1plus", "ran out of memory"),
        (
            "x.cc:3:1: error: no member 'string'\nerror: subprocess-exited-with-error",
            "no member 'string'",
        ),
        ("", "without saying why"),
    ],
)
def test_the_cause_is_said(log, words, tmp_path):
    assert words in setup_env.explain(log, tmp_path)


def test_which_environment(tmp_path):
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    own, active = ROOT / ".venv", {"CONDA_PREFIX": str(conda), "CONDA_DEFAULT_ENV": "scaleout"}
    assert setup_env.choose_prefix({}, str(conda)) == own
    assert setup_env.choose_prefix(active, str(conda)) == conda
    assert setup_env.choose_prefix(active, "/usr") == own, (
        "another Python than conda's was asked for"
    )
    assert setup_env.choose_prefix(active | {"CONDA_DEFAULT_ENV": "base"}, str(conda)) == own
    (conda / "condabin").mkdir()
    assert setup_env.choose_prefix(active, str(conda)) == own, "conda's base is left alone"
