"""What several tests need: waiting for a state, starting a lab's script, and a look at what a job
left."""

import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from scaleout.comparisons.comparison import Comparison
from scaleout.course.lab import lab
from scaleout.jobs.job import Run
from scaleout.launch import run as launch

ROOT = Path(__file__).resolve().parents[1]
COMMAND = str(Path(sys.executable).with_name("scaleout"))
CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]  # of chromium
needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)"
)
PATIENCE_S = 60.0  # for what comes within a second on a calm machine; a busy one is no failure


def until(happened: Callable[[], Any], within_s: float = PATIENCE_S, what: str = "it") -> Any:
    """Waits for a state, and returns what `happened` said of it; AssertionError when it does not
    come."""
    end = time.monotonic() + within_s
    while not (found := happened()):
        assert time.monotonic() < end, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.02)
    return found


def heed_signals() -> None:
    """Under nohup, or behind a shell's `&`, what the tests start would ignore these too."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


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
    """The processes of a job and of its supervisor, which has the run id among its arguments.

    Found in a way of its own, because it judges scaleout's reaper."""
    return processes_with("SCALEOUT_RUN_ID", run_id)


def pss_mib(pid: int) -> float:
    """A process's memory, what it shares divided by those who share it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def lesson(topic: str, name: str = "figures") -> ModuleType:
    """A module of a topic's folder in solutions/, as its notebook has it."""
    return lab(topic, solution=True).module(name)


def compared(times: dict[str, float], rounds: int = 5) -> Comparison:
    """A comparison that nothing has disturbed: the first is the baseline, the others are so many
    times as fast."""
    order = [
        (name, again) for at, name in enumerate(times) for again in ((0, 1) if not at else (0,))
    ]
    return Comparison(
        [
            {"round": n, "place": place, "variant": name, "again": again, "run_id": f"{n}-{place}"}
            | {"value": 100 * times[name] * (1 + 0.001 * ((n + again) % 3)), "unit": "images/s"}
            for n in range(rounds)
            for place, (name, again) in enumerate(order)
        ]
    )


UNIT = re.compile(
    r"\(.+\)|/s\b|/|times|speed-up|efficiency|share|number|training step|of \d+ ranks"
)


def read_figure(figure: Any) -> str:
    """The words of a figure that has a title, words for who cannot see it, and a label with its
    unit at each axis of numbers."""
    words = " ".join(str(figure.get_label()).split())
    title = " ".join(figure.get_suptitle().split())
    assert title and words.startswith(title), "a title that the words begin with"
    assert len(words) > len(title) + 20, "the words say more than the title"
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [tick.get_text() for tick in axis.get_ticklabels() if tick.get_visible()]
            numbers = [
                text for text in ticks if re.fullmatch(r"[\d,.\N{MINUS SIGN}]+|\$.*\$", text)
            ]
            if axes.axison and numbers:
                assert UNIT.search(axis.get_label_text()), f"no unit: {axis.get_label_text()!r}"
    return words


def guesses_in(figure: Any) -> list[str]:
    """What a picture says of its reader's guess: in its legends, or beside a row."""
    legends = [axes.get_legend() for axes in figure.axes] + figure.legends
    texts = [text for legend in legends if legend for text in legend.get_texts()]
    texts += [tick for axes in figure.axes for tick in axes.get_yticklabels()]
    return [text.get_text() for text in texts if "your guess" in text.get_text()]
