"""Set up the workshop's environment, then run a command in it. Make calls this for every target.

    python3 tools/setup_env.py [--this-python] [COMMAND ...]

The environment is .venv beside the Makefile, or the active conda environment when this Python lives
in it. Four stages: python, packages (requirements/workshop.lock), horovod (compiled here), scaleout (this
tree, editable). Each leaves a stamp, the hash of all that went into it, and runs again only when
that hash changes: a finished environment costs milliseconds, an interrupted set-up goes on where it
stopped.

uv puts the packages in place, in a third of pip's time; pip does where uv cannot. A site's pip.conf
and PIP_* variables count for both (index, proxy, certificates). Standard library only, and nothing
newer than Python 3.6, so that an old python3 gets a sentence to act on."""

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("python", "packages", "horovod", "scaleout")
# Measured: .venv takes 2.4 GiB, Horovod 0.4 GiB more while it compiles; the rest is air.
NEEDED_GIB = {"python": 0.1, "packages": 2.9, "horovod": 0.5, "scaleout": 0.0}
LIMIT_S = 7200.0  # for one stage
COMPILE_GIB = 1.7  # memory that the largest of Horovod's files takes to compile (measured: 1.6)
# What pip calls a setting, and the variable in which uv looks for it.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
}
HOROVOD_BUILD = {
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}
# GCC 13 and later no longer include these two on the side; Horovod 0.28.1 counts on them.
HOROVOD_CXXFLAGS = "-include stdexcept -include string"
# Left alone, its build makes a second Gloo that only PyTorch would use, and all of it for a debugger.
HOROVOD_CMAKE = """#!/bin/sh
if [ "$1" = --build ]; then
    shift 2
    exec cmake --build . --target tensorflow "$@"
fi
exec cmake "$@" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG" \\
    -DCMAKE_PROJECT_INCLUDE="$(dirname "$0")/joined.cmake"
"""
# Most of the time goes into the same headers, file after file: the sources are joined into as many files
# as are compiled at once. Two stay alone: one whose names clash, and one that takes as long as a joined
# file. XLA's operations are left out: they are for GPUs (docs/horovod.md).
HOROVOD_JOINED = """
function(join target)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cc$")
    list(LENGTH sources count)
    math(EXPR batch "(${count} + @JOBS@ - 1) / @JOBS@")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    list(FILTER sources INCLUDE REGEX "/(allreduce_local|mpi_ops)[.]cc$")
    set_source_files_properties(
        ${sources} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(join_sources)
    join(tensorflow)
    if(TARGET compatible17_gloo)
        join(compatible17_gloo)
    endif()
    set_source_files_properties(
        "${CMAKE_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc"
        TARGET_DIRECTORY tensorflow PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL join_sources)
"""
HOROVOD_WORKS = "import horovod.tensorflow as hvd; assert hvd.mpi_built() and hvd.gloo_built()"
COMPILER_HELP = """Type one of these, then run make again:
  sudo apt install g++ make                           (Debian, Ubuntu)
  sudo dnf install gcc-c++ make                       (Fedora, Rocky)
  conda install -c conda-forge gxx_linux-64=13 make   (in an active conda environment)"""

# A package that was being written when the set-up was killed can look installed to the next one. The
# files in its RECORD tell. What conda installed is conda's own affair.
DROP_HALF_WRITTEN = """
import importlib.metadata, os, pathlib, shutil, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
for leftover in site.glob("~*"):
    shutil.rmtree(leftover, ignore_errors=True)
def whole(f):
    path = f.locate()
    return f.suffix == ".pyc" or (os.path.isfile(path) and f.size in (None, os.path.getsize(path)))
for info in site.glob("*.dist-info"):
    installer = info / "INSTALLER"
    if installer.exists() and installer.read_text().strip() not in ("", "pip", "uv"):
        continue
    files = importlib.metadata.Distribution.at(info).files
    if not files or not all(map(whole, files)):
        print("half-written, to be installed anew:", info.name)
        shutil.rmtree(info)
"""

# What pip and the compiler write when something outside goes wrong, and what to say then.
CAUSES = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full ({free:.1f} GiB free in {prefix}). Free some space (pip's own cache: pip cache purge)",
    ),
    (
        r"Temporary failure in name resolution|Failed to resolve|Name or service not known|Network is unreachable"
        r"|NewConnectionError|ConnectTimeout|Read timed out|Connection (?:refused|reset|aborted|broken)"
        r"|RemoteDisconnected|IncompleteRead|ProxyError|SSLError|ProtocolError|\(from versions: none\)",
        "no network, or pip's index is out of reach. Check the connection (and the proxy, and PIP_INDEX_URL)",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "a package that pip got is not the one in requirements/workshop.lock. Look at the index that pip uses",
    ),
    (
        r"No matching distribution found for (\S+)",
        "pip's index does not offer {found}. Choose one that does (PIP_INDEX_URL or pip.conf)",
    ),
    (
        r"Killed signal terminated program|virtual memory exhausted",
        "the compiler ran out of memory. Free some",
    ),
    (r"(?:: (?:fatal )?error:|CMake Error|^ERROR:|^\w+Error\b).{0,160}", "{found}. Mend that"),
    (r"", "it ended without saying why. See the log"),
)


class Stop(Exception):
    """The set-up cannot go on: the text says why, and what to type."""


def say(text: str, end: str = "\n") -> None:
    """Speak on stderr: stdout belongs to the command."""
    sys.stderr.write(text + end)
    sys.stderr.flush()


def choose_prefix(environ: dict, own: str) -> Path:
    """The active conda environment when this Python (prefix `own`) is its own, else .venv. Never
    conda's base."""
    conda = Path(environ.get("CONDA_PREFIX") or "/nowhere")
    base = environ.get("CONDA_DEFAULT_ENV") == "base" or (conda / "condabin").is_dir()
    ours = (conda / "conda-meta").is_dir() and os.path.realpath(str(conda)) == os.path.realpath(own)
    return conda if ours and not base else ROOT / ".venv"


def check_machine(system: str, machine: str, libc: tuple) -> None:
    """Stop where the pinned wheels do not run."""
    if (system, machine) != ("Linux", "x86_64"):
        raise Stop(
            f"The workshop needs Linux on x86-64 and this is {system} on {machine}: "
            "use such a machine, WSL or a container."
        )
    if libc[0] != "glibc" or [int(part) for part in libc[1].split(".")[:2]] < [2, 28]:
        raise Stop(
            f"The workshop needs glibc 2.28 or newer and this system has {' '.join(libc).strip() or 'another libc'}: "
            "use a newer Linux, or a container (Debian 12 works)."
        )


def check_python(version: tuple) -> None:
    """Stop unless TensorFlow 2.18 and scikit-learn 1.9 both exist for this Python."""
    if version[:2] in ((3, 11), (3, 12)):
        return

    def runs(name: str) -> bool:  # pyenv has shims on PATH for Pythons that it will not start
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return bool(shutil.which(name)) and subprocess.call([name, "-c", ""], **quiet) == 0

    found = next((name for name in ("python3.12", "python3.11") if runs(name)), "")
    advice = "type" if found else "install one (apt, dnf, conda or pyenv have it), then type"
    raise Stop(
        f"The workshop needs Python 3.11 or 3.12 and this is {version[0]}.{version[1]}: "
        f"{advice}  make lab PYTHON={found or 'python3.12'}"
    )


def check_venv_module() -> None:
    """Stop when this Python cannot make environments: Debian packs that part separately."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise Stop(
            "This Python cannot make environments, its venv module is missing: "
            f"type  sudo apt install {name}  (Debian, Ubuntu), then run make again."
        ) from None


def check_compiler(environ: dict) -> str:
    """The C++ compiler for Horovod, proved on a small program; Stop when there is none that
    works."""
    names = [environ["CXX"]] if environ.get("CXX") else ["c++", "g++", "clang++"]
    path = environ.get("PATH", "")
    compiler = next((name for name in names if shutil.which(name.split()[0], path=path)), "")
    if not compiler or not shutil.which("make", path=path):
        missing = "make" if compiler else f"a C++ compiler ({', '.join(names)})"
        raise Stop(f"Horovod is compiled here, and {missing} is missing. {COMPILER_HELP}")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            compiler.split()
            + ["-std=c++17", "-x", "c++", "-", "-o", os.path.join(folder, "a.out")],
            input=b"#include <string_view>\nint main() { return std::string_view().size(); }\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            timeout=120,
        )
    if done.returncode:
        reason = (done.stdout.decode(errors="replace").strip().splitlines() or ["no message"])[0]
        raise Stop(
            f"Horovod is compiled here, and {compiler} fails on a line of C++17 ({reason}). {COMPILER_HELP}"
        )
    return compiler


def check_path(prefix: Path) -> None:
    """Stop where Horovod's build would trip: it splits its lists of paths at such characters."""
    if re.search(r"[\s:;,'\"$&()]", str(prefix)):
        raise Stop(
            f"Horovod does not compile in a folder like '{prefix}': move the workshop to a path without spaces, "
            "colons, quotes and brackets, then run make again."
        )


def check_disk(folder: Path, needed_gib: float, free_gib: float) -> None:
    """Stop before a full disk does."""
    if free_gib < needed_gib:
        raise Stop(
            f"The set-up needs {needed_gib:.1f} GiB and {folder} has {free_gib:.1f} GiB free: free some, or make .venv "
            "a link to an empty folder on a larger disk, then run make again."
        )


def explain(log: str, prefix: Path) -> str:
    """Why a command failed and what to do, from what it wrote."""
    matches = ((re.search(pattern, log, re.M), words) for pattern, words in CAUSES)
    match, words = next(pair for pair in matches if pair[0])
    found = (match.group(1) if match.re.groups else match.group()).strip(" :.")
    return words.format(found=found, free=free_gib(prefix), prefix=prefix)


def free_gib(folder: Path) -> float:
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(str(folder)).free / 2**30


def compile_jobs() -> int:
    """Files to compile at once: one a core that this process may use, as far as memory goes."""
    limits = [
        int(re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text()).group(1)) * 2**10
    ]
    cgroup = Path("/sys/fs/cgroup/memory.max")
    if cgroup.exists() and cgroup.read_text().strip().isdigit():
        limits.append(int(cgroup.read_text()))
    return int(max(1, min(len(os.sched_getaffinity(0)), 8, min(limits) / 2**30 // COMPILE_GIB)))


def how_to_compile(folder: Path, environ: dict) -> dict:
    """The variables that Horovod's build reads; the cmake that it calls is written into `folder`."""
    jobs = compile_jobs()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "joined.cmake").write_text(HOROVOD_JOINED.replace("@JOBS@", str(jobs)))
    (folder / "cmake").write_text(HOROVOD_CMAKE)
    (folder / "cmake").chmod(0o755)
    compiler = check_compiler(environ)
    return {
        "HOROVOD_CMAKE": str(folder / "cmake"),
        "CXX": compiler,
        "MPICH_CXX": compiler,
        "CXXFLAGS": f"{environ.get('CXXFLAGS', '')} {HOROVOD_CXXFLAGS}".strip(),
        "MAKEFLAGS": f"-j{jobs}",
    }


def pip_settings(listed: str) -> dict:
    """What `pip config list` shows, as {name: its values}."""
    settings = {}
    for section in ("global", "install", ":env:"):  # from the weakest to the strongest
        for name, value in re.findall(rf"^{section}\.([\w-]+)='(.*)'$", listed, re.M):
            settings[name] = value.replace("\\n", " ").split()
    return settings


def uv_settings(listed: str) -> dict:
    """The same as uv's variables: a site's index, proxy and certificates."""
    # Both as pip does.
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "1"}
    for name, values in pip_settings(listed).items():
        if name in UV_NAMES:
            settings[UV_NAMES[name]] = ("," if name == "find-links" else " ").join(values)
    return settings


def read_lock(text: str) -> dict:
    """A lock file as {name: its lines}; a package stands there twice where Pythons differ."""
    blocks = {}
    for block in re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.M).strip()):
        name = block.split("==")[0]
        blocks[name] = blocks.get(name, "") + block + "\n"
    return blocks


class Setup:
    """The environment at `prefix`, its stamps, and the four stages that make it."""

    def __init__(self, prefix: Path, environ: dict) -> None:
        self.prefix = prefix
        self.conda = prefix != ROOT / ".venv"
        self.python_path = str(prefix / "bin" / "python")
        self.state = prefix / ".scaleout"
        self.log = ROOT / ".setup" / "setup.log"
        self.unfinished = ROOT / ".setup" / "unfinished"  # stands while .venv itself is being made
        self.lock_handle = -1
        self.locked = read_lock((ROOT / "requirements/workshop.lock").read_text())
        # The environment is whole by itself, and nothing of make's belongs in it: Horovod compiles
        # on one core when it finds MAKEFLAGS.
        drop = ("PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
        self.environ = {name: value for name, value in environ.items() if name not in drop}
        self.environ["PATH"] = f"{prefix / 'bin'}:{environ.get('PATH', os.defpath)}"
        self.environ["PYTHONNOUSERSITE"] = "1"
        if not self.conda:
            self.environ["VIRTUAL_ENV"] = str(prefix)

    def version(self) -> tuple:
        """(3, 11), say, of the environment's Python; () when there is none."""
        if self.conda:
            return tuple(sys.version_info[:2])
        config = self.prefix / "pyvenv.cfg"
        if not os.access(self.python_path, os.X_OK) or not config.exists():
            return ()
        found = re.search(r"^version\w* *= *(\d+)\.(\d+)", config.read_text(), re.M)
        return (int(found.group(1)), int(found.group(2))) if found else ()

    def inputs(self, stage: str) -> str:
        """The hash of all that a stage's result depends on."""
        parts = [str(self.prefix), str(self.version())]
        if stage == "packages":
            parts += [lines for name, lines in sorted(self.locked.items()) if name != "horovod"]
        if stage == "horovod":
            parts += [self.locked[name] for name in ("horovod", "mpich", "tensorflow-cpu")]
            parts += [str(sorted(HOROVOD_BUILD.items())), HOROVOD_CXXFLAGS]
            parts += [HOROVOD_CMAKE, HOROVOD_JOINED]
        if stage == "scaleout":
            parts += [str(ROOT), (ROOT / "pyproject.toml").read_text()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def due(self) -> list:
        """The stages whose stamp is missing or out of date; every one when there is no Python to
        build on."""

        def fresh(stage: str) -> bool:
            stamp = self.state / stage
            return stamp.exists() and stamp.read_text() == self.inputs(stage)

        if not self.version() or not fresh("python"):
            return list(STAGES)
        return [stage for stage in STAGES if not fresh(stage)]

    def bring_up_to_date(self) -> None:
        """Run the stages that are due; one set-up at a time in this tree."""
        self.log.parent.mkdir(exist_ok=True)
        self.lock_handle = take_lock(self.log.parent / "lock")
        due = self.due()
        if not due:
            return
        began = time.monotonic()
        check_machine(platform.system(), platform.machine(), platform.libc_ver())
        if not self.version() or self.conda:
            check_python(tuple(sys.version_info))
        if not self.version():
            check_venv_module()
        if "horovod" in due:
            check_path(self.prefix)
            check_compiler(self.environ)
        new = [stage for stage in due if not (self.state / stage).exists()]
        check_disk(self.prefix, max(sum(map(NEEDED_GIB.get, new)), 0.5), free_gib(self.prefix))
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        self.log.write_text(f"{now}, Python {platform.python_version()}, {self.prefix}\n")
        say(f"Setting up {self.prefix if self.conda else '.venv'}:")
        for stage in due:
            stamp = self.state / stage
            if stamp.exists():
                stamp.unlink()
            getattr(self, stage)()
            self.state.mkdir(exist_ok=True)
            stamp.write_text(self.inputs(stage))
        say(f"Ready in {time.monotonic() - began:.0f} s.")

    def python(self) -> None:
        """An environment with pip: taken as found when it is one, made from nothing when its making
        was cut."""
        if self.version() and not self.unfinished.exists():
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            if subprocess.call([self.python_path, "-m", "pip", "--version"], **quiet) == 0:
                return
        self.unfinished.touch()
        # When a virtual environment's Python runs this (.venv's own, even), the one it was made
        # from makes the new.
        base = getattr(sys, "_base_executable", sys.executable)
        make = [base, "-m", "venv", "--clear", str(self.prefix)]
        self.run(f"python {platform.python_version()}", [make], {})
        self.unfinished.unlink()

    def packages(self) -> None:
        """All of requirements/workshop.lock but Horovod: wheels only, each checked by its hash."""
        names = [name for name in self.locked if name not in ("horovod", "uv")]
        title, wanted = f"{len(names)} packages", self.requirements(names)
        checked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r"]
        uv = [str(self.prefix / "bin" / "uv"), "pip", "install", "--python", self.python_path]
        drop = [self.python_path, "-c", DROP_HALF_WRITTEN]
        # Kept until all packages are there, on their own disk: nothing is fetched twice, or copied.
        cache = self.state / "uv"
        listed = [self.python_path, "-m", "pip", "config", "list"]
        said = subprocess.run(listed, stdout=subprocess.PIPE, env=self.environ).stdout
        variables = dict(uv_settings(said.decode(errors="replace")), UV_CACHE_DIR=str(cache))
        get_uv = self.pip(*checked, self.requirements(["uv"]))
        by_uv = [*uv, "--compile-bytecode", *checked, wanted]
        try:
            self.run(title, [drop, get_uv, by_uv], variables)
        except Stop as why:
            say(f"not by uv: {why}")
            self.run(f"{title}, by pip", [drop, self.pip(*checked, wanted)], {})
        shutil.rmtree(str(cache), ignore_errors=True)

    def horovod(self) -> None:
        """Horovod, compiled against this TensorFlow and this MPI: never a wheel that was built
        elsewhere."""
        build = self.pip("--no-deps", "--require-hashes", "--no-build-isolation", "--no-cache-dir")
        build += ["--force-reinstall", "--verbose", "--no-binary", "horovod"]
        build += ["-r", self.requirements(["horovod"])]
        variables = dict(how_to_compile(self.state, self.environ), **HOROVOD_BUILD)
        proof = [self.python_path, "-c", HOROVOD_WORKS]
        self.run("horovod, compiled (about a minute on 2 cores)", [build, proof], variables)

    def scaleout(self) -> None:
        """Install this tree's own package, editable."""
        command = self.pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        self.run("scaleout", [command], {"PIP_REQUIRE_HASHES": "0"})

    def pip(self, *args: str) -> list:
        return [self.python_path, "-m", "pip", "install", *args]

    def requirements(self, names: list) -> str:
        """The path of a requirements file with these packages of the lock."""
        path = self.state / f"{names[0]}.txt"
        path.write_text("".join(self.locked[name] for name in names))
        return str(path)

    def run(self, title: str, commands: list, variables: dict) -> None:
        """Run commands one after another, their output in the log, one line on the screen; Stop
        when one fails."""
        began = time.monotonic()
        # On the disk that was checked: /tmp may be small, or not let programs run.
        scratch = self.state / "tmp"
        shutil.rmtree(str(scratch), ignore_errors=True)
        scratch.mkdir(parents=True)
        environ = dict(self.environ, TMPDIR=str(scratch), **variables)
        # A person's own pip settings count, but not those that would put packages elsewhere or ask
        # questions.
        environ.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_NO_INPUT="1")
        environ.update(PIP_ROOT_USER_ACTION="ignore", PIP_DISABLE_PIP_VERSION_CHECK="1")
        live = sys.stderr.isatty()

        def clock(end: str = "") -> None:
            """Count the seconds on a terminal; in a file they are written once."""
            if live or end:
                start = f"\r  {title:<44}" if live else ""
                say(f"{start}{time.monotonic() - began:5.0f} s", end=end)

        say(f"  {title:<44}", end="")
        try:
            for command in commands:
                with self.log.open("ab+") as log:
                    log.write(f"\n$ {' '.join(command)}\n".encode())
                    log.flush()
                    start = log.tell()
                    child = subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=environ,
                        cwd=str(ROOT),
                        start_new_session=True,  # so that pip, cmake and the compilers end together
                        pass_fds=[self.lock_handle],  # the lock stands while any of them lives
                    )
                    try:
                        while child.poll() is None:
                            clock()
                            if time.monotonic() - began > LIMIT_S:
                                raise Stop(
                                    f"\nNo end of {title} after {LIMIT_S / 3600:.0f} hours: run make again."
                                )
                            with contextlib.suppress(subprocess.TimeoutExpired):
                                child.wait(timeout=0.5)
                    finally:
                        end_group(child)
                    if child.returncode:
                        log.seek(start)
                        reason = explain(log.read().decode(errors="replace"), self.prefix)
                        raise Stop(
                            f"\nStopped at {title}: {reason}, then run make again: it goes on from here.\n"
                            f"All that was written meanwhile is in {self.log.relative_to(ROOT)}"
                        )
        finally:
            shutil.rmtree(str(scratch), ignore_errors=True)
        clock("\n")


def end_group(child: subprocess.Popen) -> None:
    """Leave nothing of a command behind, however the wait for it ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(timeout=10)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def take_lock(path: Path) -> int:
    """Hold this tree's one lock; another set-up that has it ends, as each of its stages does."""
    handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("Another make is setting up here: waiting for it to end.")
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(argv: list, environ: dict) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--this-python",
        action="store_true",
        help="stop when .venv holds another Python than this one",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, help="what to run in the environment; default: nothing"
    )
    args = parser.parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    own = tuple(sys.version_info[:2])
    try:
        setup = Setup(choose_prefix(environ, sys.prefix), environ)
        if args.this_python and setup.version() not in ((), own):
            there = "Python {}.{}".format(*setup.version())
            raise Stop(
                f".venv holds {there} and you asked for {own[0]}.{own[1]}: type  make clean  first."
            )
        if setup.due():
            setup.bring_up_to_date()
        if args.command:
            os.execvpe(args.command[0], args.command, setup.environ)
    except Stop as stop:
        say(str(stop))
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted. Run make again: it goes on from here.")
        return 130
    except OSError as error:
        where = error.filename or setup.prefix
        say(
            f"\nStopped: {where}: {error.strerror}. Mend that, then run make again: it goes on from here."
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
