"""What several tests need: waiting for a state, starting a lab's script, and a look at what a job
left."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from scaleout.jobs import run as launch
from scaleout.jobs.job import Run

ROOT = Path(__file__).resolve().parents[1]
COMMAND = str(Path(sys.executable).with_name("scaleout"))
# The same for a sweep, which would run each job once more beside the other lane's.
UNDISTURBED = [
    sys.executable,
    "-c",
    "import sys; from scaleout.cli import main; from scaleout.sweeps import loaded; "
    "loaded.OTHERS = loaded.STOLEN = 9.0; sys.exit(main())",
]
PATIENCE_S = 60.0  # for what comes within a second on a calm machine; a busy one is no failure


def until(happened: Callable[[], Any], within_s: float = PATIENCE_S, what: str = "it") -> Any:
    """Waits for a state, and returns what `happened` said of it; AssertionError when it does not
    come."""
    end = time.monotonic() + within_s
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.02)
    return found


def flags(given: dict[str, object]) -> list[str]:
    """{"batch_per_rank": 8} as a command line has it: --batch-per-rank=8."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]


def run_script(path: Path, *arguments: object, **options: Any) -> Run:
    """Runs a script as a job of one rank with one thread, quietly, for a minute at most."""
    command = ["python", "-m", "mpi4py", str(path), *map(str, arguments)]
    usual = {"name": path.stem, "threads": 1, "timeout": 60, "echo": None}
    return launch.run(command, **{**usual, **options})


def metrics(run: Run) -> dict[str, Any]:
    """The metrics of a run's one record."""
    assert len(run.records) == 1, run.output
    return run.records["metrics"].iloc[0]


def processes_with(name: str, value: str) -> dict[int, str]:
    """{id: command line} of the live processes whose environment holds this variable, or whose
    command line holds its value."""
    found: dict[int, str] = {}
    for _ in range(2):  # one that was born while we looked at others
        for process in psutil.process_iter():
            try:
                line = " ".join(process.cmdline())
                if value in line or process.environ().get(name) == value:
                    found[process.pid] = line
            except psutil.Error:  # ended meanwhile, or has ended and was not collected
                continue
    found.pop(psutil.Process().pid, None)
    return {pid: line for pid, line in found.items() if psutil.pid_exists(pid)}


def left_of(run_id: str) -> dict[int, str]:
    """The processes of a job and of its guard, which has the run id among its arguments.

    Found in a way of its own, because it judges scaleout's reaper."""
    return processes_with("SCALEOUT_RUN_ID", run_id)
