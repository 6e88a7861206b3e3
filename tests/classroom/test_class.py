"""A class on one machine: everybody runs 00 and 04 at once, and nobody's work meets another's.

    SCALEOUT_ATTENDEES=8 make test ARGS="-n 0 -s tests/classroom"

prints what an attendee needs. Without the variable the class stays away, to keep `make test` short.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import nbformat
import psutil
import pytest
from helpers import pss_mib

from scaleout import records
from scaleout.teaching.release import release

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.skipif(
        "SCALEOUT_ATTENDEES" not in os.environ, reason="a class takes minutes: SCALEOUT_ATTENDEES=2"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
ATTENDEES = int(os.environ.get("SCALEOUT_ATTENDEES", "0"))
LIMIT_S = 300 + 180 * ATTENDEES
BOOKS = ("00_welcome", "04_kmeans")
WHOSE = "%%px\nimport os\nprint('engine of', os.environ['SCALEOUT_RESULTS'])"
ATTEND = """
import sys, nbformat
from nbclient import NotebookClient
for book in sys.argv[1:]:
    notebook = nbformat.read(book, as_version=4)
    NotebookClient(notebook, timeout=None).execute()
    nbformat.write(notebook, book)
"""


class Watch(threading.Thread):
    """Looks every other second at the processes of each attendee, told apart by the results folder
    they are given.

    peak: MiB at most, by that folder.  together: MiB at most of all.  crossed: connections from
    one's to another's."""

    def __init__(self, folders: Iterable[Path]) -> None:
        super().__init__(daemon=True)
        self.marks = {f"SCALEOUT_RESULTS={folder}".encode() for folder in folders}
        self.peak: dict[str, float] = defaultdict(float)
        self.together, self.looks, self.talked = 0.0, 0, 0
        self.crossed: set[tuple[str, str]] = set()
        self.left: list[str] = []
        self.files: list[str] = []
        self.ended = threading.Event()

    def whose(self) -> dict[int, str]:
        """The attendee of each process that belongs to one."""
        found = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mine := self.marks & set(words):
                found[pid] = mine.pop().decode().rpartition("=")[2]
        return found

    def run(self) -> None:
        while not self.ended.wait(2.0):
            owner = self.whose()
            used: dict[str, float] = defaultdict(float)
            for pid, name in owner.items():
                used[name] += pss_mib(pid)
            self.peak |= {name: max(mib, self.peak[name]) for name, mib in used.items()}
            self.together = max(self.together, sum(used.values()))
            self._listen(owner)
            self.looks += 1

    def _listen(self, owner: dict[int, str]) -> None:
        """Who talks to whom on this machine. Both ends name a connection: several may leave from
        one port."""
        links = [
            link for link in psutil.net_connections("tcp4") if link.pid in owner and link.raddr
        ]
        ends = {(link.laddr, link.raddr): owner[link.pid] for link in links}
        pairs = {
            (mine, ends[there, here])
            for (here, there), mine in ends.items()
            if (there, here) in ends
        }
        self.talked += len(pairs)
        self.crossed |= {pair for pair in pairs if pair[0] != pair[1]}


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each attendee is given, in a folder of their own, with one cell more: it asks the
    engines whose they are."""
    top, found = tmp_path_factory.mktemp("class"), {}
    for number in range(1, ATTENDEES + 1):
        found[f"attendee {number}"] = desk = top / f"person-{number}"
        release(desk)
        assert not (desk / "solutions").exists()
        book = desk / "notebooks/04_kmeans.ipynb"
        notebook = nbformat.read(book, as_version=4)
        at = next(n for n, cell in enumerate(notebook.cells) if cell.source.startswith("%%px"))
        notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(WHOSE))
        nbformat.write(notebook, book)
    return found


@pytest.fixture(scope="module")
def watch(desks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """Everybody runs both notebooks, at the same time; when all have ended, what was seen
    meanwhile."""
    shared = tmp_path_factory.mktemp("tmp")  # /tmp is one for all
    before = set(os.listdir("/dev/shm"))
    watch = Watch(desk / "results" for desk in desks.values())
    watch.start()
    started, begin, took = {}, time.monotonic(), {}
    try:
        for name, desk in desks.items():
            environment = {k: v for k, v in os.environ.items() if k != "SCALEOUT_RECORDS"}
            environment |= {
                "SCALEOUT_RESULTS": str(desk / "results"),
                "SCALEOUT_QUICK": "1",
                "TMPDIR": str(shared),
            }
            environment |= {
                "JUPYTER_RUNTIME_DIR": str(desk / ".runtime"),
                "IPYTHONDIR": str(desk / ".ipython"),
            }
            command = [sys.executable, "-c", ATTEND, *(f"{book}.ipynb" for book in BOOKS)]
            with open(desk / "said.txt", "w") as said:
                how = {"cwd": desk / "notebooks", "env": environment, "stdin": subprocess.DEVNULL}
                started[name] = subprocess.Popen(
                    command, stdout=said, stderr=said, start_new_session=True, **how
                )
        for name, process in started.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(1.0, LIMIT_S - (time.monotonic() - begin)))
            took[name] = time.monotonic() - begin
    finally:
        for process in started.values():
            process.kill()
            process.wait()
        watch.ended.set()
        watch.join()
    each, whole = (
        f"{max(watch.peak.values(), default=0):.0f} MiB each at most",
        f"{watch.together:.0f} MiB together",
    )
    print(f"\n{ATTENDEES} at once: {max(took.values()):.0f} s, {each}, {whole}")
    if any(process.returncode for process in started.values()):
        for pid in watch.whose():  # what a failed test leaves is its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for name, process in started.items():
        assert process.returncode == 0, f"{name}: {(desks[name] / 'said.txt').read_text()[-3000:]}"
    end = time.monotonic() + 10
    while (left := watch.whose()) and time.monotonic() < end:
        time.sleep(0.2)
    watch.left = [f"{name}: {psutil.Process(pid).cmdline()}" for pid, name in left.items()]
    watch.files = sorted(os.listdir(shared)) + sorted(set(os.listdir("/dev/shm")) - before)
    return watch


@pytest.mark.timeout(LIMIT_S + 100)
def test_nothing_is_left_behind(watch: Watch) -> None:
    assert watch.left == [] and watch.files == []
    assert watch.looks > 10 and set(watch.peak.values()) - {0.0}, "the watch has seen nothing"


@pytest.mark.timeout(LIMIT_S + 100)
def test_nobody_talks_to_another(watch: Watch) -> None:
    assert watch.talked > 0, "no connection was seen at all"
    assert watch.crossed == set()


@pytest.mark.timeout(LIMIT_S + 100)
def test_engines_belong_to_their_notebook(watch: Watch, desks: dict[str, Path]) -> None:
    for desk in desks.values():
        cells = nbformat.read(desk / "notebooks/04_kmeans.ipynb", as_version=4).cells
        (asked,) = [cell for cell in cells if cell.source == WHOSE]
        said = sorted(out["data"]["text/plain"].strip() for out in asked.outputs)
        assert said == [f"[stdout:{rank}] engine of {desk / 'results'}" for rank in (0, 1)]


def _runs(desk: Path) -> dict[str, dict[str, object]]:
    """What each run of an attendee was and found: {id: {command, status, records}}."""
    found = {}
    for path in (desk / "results").glob("*/*/run.json"):
        about = json.loads(path.read_text())
        frame = records.read(path.with_name("records.jsonl"))
        assert set(frame.get("run_id", [])) <= {about["id"]} and about["id"] == path.parent.name, (
            path
        )
        found[about["id"]] = {
            **about,
            # Which cores are free depends on the others, and a check's folder has a name of its own.
            "command": re.sub(
                r" -bind-to \S+|scaleout-check-\w+", "", about["command"].replace(str(desk), "")
            ),
            "records": frame,
        }
    return found


@pytest.mark.timeout(LIMIT_S + 100)
def test_everybodys_results_are_their_own_and_the_same(
    watch: Watch, desks: dict[str, Path]
) -> None:
    class_ = {name: _runs(desk) for name, desk in desks.items()}
    ids = [run_id for runs in class_.values() for run_id in runs]
    assert len(set(ids)) == len(ids), "two runs with one id"
    first, *others = [
        sorted(runs.values(), key=lambda run: str(run["command"])) for runs in class_.values()
    ]
    assert len(first) > 20 and all(run["status"] == 0 for runs in (first, *others) for run in runs)
    for runs in others:
        assert [run["command"] for run in runs] == [run["command"] for run in first]
        for mine, theirs in zip(runs, first, strict=True):
            for name in {"metrics.pi", "metrics.inertia", "metrics.rows"} & set(theirs["records"]):
                assert list(mine["records"][name]) == pytest.approx(
                    list(theirs["records"][name]), rel=1e-6
                )
