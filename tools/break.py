"""Break the workshop in twenty ways, one at a time, and see whether a test says so.

    python tools/break.py [--list] [--quick] [NUMBER ...]

Each breakage is a believable slip: a text of one file gives way to another, in a copy of what git
tracks, and the tests that should see it run there. Before that all of them must be green on the
unbroken copy, as red means nothing otherwise; --quick leaves that out. The exit status is 1 where a
breakage was not seen, and 2 where nothing could be found out: a text does not stand just once in
its file any more, or a test is not green unbroken. It takes 5 to 7 minutes on 2 cores."""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 300.0  # for the tests of one breakage
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)
GREEN, RED = 0, 1  # pytest's exit status; with any other it has judged nothing
WHERE = "import scaleout; print(scaleout.__file__)"

# What is wrong then, the file, its text (-), what takes its place (+), the tests that should see it.
BREAKAGES = r"""
the rows that do not divide are on no rank
src/scaleout/kit/data.py
-    return slice(n * rank // ranks, n * (rank + 1) // ranks)
+    return slice(n // ranks * rank, n // ranks * (rank + 1))
tests/unit/kit/test_data.py::test_every_row_is_on_exactly_one_rank_and_sizes_differ_by_one_at_most

a download is kept whatever its SHA-256
src/scaleout/kit/fetching.py
-    if hashlib.sha256(content).hexdigest() != digest:
+    if not content:
tests/unit/kit/test_data.py::test_a_file_that_arrives_damaged_is_dropped_and_fetched_anew

a record behind a half-written line is lost with it
src/scaleout/base/jsonlines.py
-        file.write(f"{'' if whole else chr(10)}{line}\n".encode())
+        file.write(f"{line}\n".encode())
tests/unit/kit/test_records.py::test_a_half_written_line_does_not_swallow_the_next_record

a damaged line of records is an error, no warning
src/scaleout/kit/records.py
-        warnings.warn(f"{show(path)}{left_out}", stacklevel=3)
+        raise ValueError(f"{show(path)}{left_out}")
tests/unit/kit/test_records.py::test_what_is_no_line_costs_itself_alone

a checkpoint is written in its place
src/scaleout/kit/checkpoints.py
-    partial, whole = place / f"{_mine()}{os.getpid()}.npz", place /
+    partial = whole = place /
tests/unit/kit/test_checkpoints.py

two hold one lock
src/scaleout/base/locks.py
-fcntl.LOCK_EX | fcntl.LOCK_NB
+fcntl.LOCK_SH | fcntl.LOCK_NB
tests/unit/base/test_locks.py::test_a_second_holder_is_told_no

a process that a rank leaves behind lives on
src/scaleout/jobs/supervise.py
-        prctl(SUBREAPER, 1, 0, 0, 0)
+        prctl(SUBREAPER, 0, 0, 0, 0)
tests/faults/test_orphans.py::test_at_the_end_of_a_job

the command swallows the exit status of its job
src/scaleout/cli.py
-        return error.status
+        return 1
tests/unit/test_cli.py::test_run_prints_the_plain_command_and_ends_with_the_jobs_status

the interval of a ratio is too narrow
src/scaleout/comparisons/intervals.py
-    half = _t(freedom, alpha) * math.sqrt(own / rounds)
+    half = _t(freedom, alpha) * math.sqrt(own) / rounds
tests/unit/comparisons/test_compare_proof.py::test_the_interval_holds_the_truth_as_often_as_it_says

a sweep begins again from nothing
src/scaleout/sweeps/sweep.py
-if row.status in (OK, COPIES)}
+if row.status == COPIES}
tests/unit/sweeps/test_sweep.py::test_the_same_call_again_starts_nothing_and_more_repeats_add

a prediction forgets that a measurement scatters too
src/scaleout/scaling/fit.py
-        answers = self.log_rates(nodes) + self.errors
+        answers = self.log_rates(nodes)
tests/unit/scaling/test_fit.py::test_an_interval_holds_single_measurements_not_the_curve_alone

a TODO that nobody has touched passes
src/scaleout/course/verdict.py
-not self.touched(number):
-                return Verdict(number, "not started"
+not self.touched(number):
+                return Verdict(number, "passed"
tests/unit/course/test_exercises.py::test_a_check_says_not_started_then_not_yet_then_passed

waiting counts as communication
src/scaleout/traces/horovod.py
-last.max() - at, end - last.max()
+last.max() - at, end - at
tests/unit/traces/test_horovod.py::test_each_step_is_split_into_compute_waiting_and_communication

a report takes equal figures for those of several seeds
src/scaleout/reports/rules.py
-        if len(figures) < runs or runs > 1 == len(set(figures.values())):
+        if len(figures) < runs:
tests/unit/reports/test_report.py::test_a_forged_report_is_refused

hardware threads count as cores
src/scaleout/machine/topology.py
-            core = ("sysfs", *members)
+            core = ("sysfs", cpu)
tests/unit/machine/test_machine.py::test_hyper_threads_are_not_cores

03: the ring hands on sums that are not whole
solutions/03_spmd/runme.py
-        give = block[(rank + 1 - step) % ranks]
+        give = block[(rank - step) % ranks]
tests/mpi/test_spmd.py::test_every_way_is_mpis_allreduce_and_sends_what_the_formula_says[3]

04: each rank improves a palette of its own
solutions/04_kmeans/runme.py
-    lloyd = d4p.kmeans(k, iterations, "float", distributed=True)
+    lloyd = d4p.kmeans(k, iterations, "float")
tests/mpi/test_kmeans.py::test_any_number_of_ranks_finds_the_palette_of_one_process[3]

05: the gradients are not averaged
solutions/05_horovod/runme.py
-        tape = hvd.DistributedGradientTape(tape)
+        hvd.DistributedGradientTape(tape)
tests/mpi/test_horovod.py::test_two_ranks_are_one_rank_with_twice_the_batch

07: only the first layer's gradient is added up
solutions/07_scaling/runme.py
-        comm.Allreduce(MPI.IN_PLACE, gradients[layer])
+        comm.Allreduce(MPI.IN_PLACE, gradients[0])
tests/mpi/test_scaling.py::test_a_step_that_waits_has_the_same_sum

11: a rank takes its own rows for the whole batch
solutions/11_parallelism/runme.py
-    g = slope(h[-1], y[rows], len(x))
+    g = slope(h[-1], y[rows], len(x[rows]))
tests/mpi/test_parallelism.py::test_every_way_gives_what_one_rank_gives[runme.py-3]
"""


class Breakage(NamedTuple):
    """One slip, and the tests that should see it."""

    number: int
    what: str
    file: str
    old: str
    new: str
    tests: list[str]


def breakages() -> list[Breakage]:
    """Read the table."""
    found = []
    for number, lines in enumerate(map(str.splitlines, BREAKAGES.strip().split("\n\n")), 1):
        old, new = ("\n".join(t[1:] for t in lines if t[0] == sign) for sign in "-+")
        tests = [line for line in lines if line.startswith("tests/")]
        found.append(Breakage(number, *lines[:2], old, new, tests))
    return found


def misfits(chosen: list[Breakage]) -> list[str]:
    """Say which texts do not stand just once in their files, a sentence each."""
    found = []
    for one in chosen:
        path = ROOT / one.file
        times = path.read_text(encoding="utf-8").count(one.old) if path.is_file() else 0
        if times != 1:
            text = " ".join(one.old.split())
            found.append(f"{one.number}: {one.file} has {times} times  {text}  : mend the table.")
    return found


def copy_to(folder: Path) -> None:
    """Copy what git tracks, as it stands now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():  # else it has just been removed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run(copy: Path, words: list[str], limit_s: float = LIMIT_S) -> tuple[int | None, str]:
    """Run a command on the copy's package: its exit status, None where it came to no end, and what
    it said."""
    path = os.pathsep.join([str(copy / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    # Compiled, a text would pass for the one that took its place within the same second.
    env = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    env["SCALEOUT_RESULTS"] = str(copy / "results")
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            words, cwd=copy, env=env, stdout=said, stderr=said, start_new_session=True
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        return status, said.read()


def test(copy: Path, tests: list[str], limit_s: float = LIMIT_S) -> tuple[int | None, str]:
    """Run some tests on the copy."""
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    return run(copy, [*pytest, *tests], limit_s)


def strangers(copy: Path) -> str:
    """Say where scaleout comes from, unless it is the copy's, here and in a job of the command."""
    (copy / "where.py").write_text(f"{WHERE}\n")
    command = str(Path(sys.executable).with_name("scaleout"))
    for words in ([sys.executable, "where.py"], [command, "run", "where.py", "-t", "1"]):
        _, said = run(copy, words, 60)
        if str(copy / "src" / "scaleout" / "__init__.py") not in said:
            return f"Not the copy's package is imported, but:\n{said}"
    return ""


def seen(copy: Path, one: Breakage) -> int:
    """Break the copy, say which test fails first, and mend the copy."""
    path, start = copy / one.file, time.monotonic()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(one.old, one.new), encoding="utf-8")
    status, said = test(copy, one.tests)
    path.write_text(text, encoding="utf-8")
    first = FAILED.search(said)
    red = f"no end within {LIMIT_S:g} s" if status is None else first[1] if first else "?"
    verdict = "NOT SEEN" if status == GREEN else f"red: {red}"
    if status not in (GREEN, RED, None):
        verdict = f"not judged: {said.strip().splitlines()[-1]}"
    seconds = time.monotonic() - start
    print(f"{one.number:2}  {one.what}: {verdict}  ({seconds:.1f} s)", flush=True)
    return {GREEN: 1, RED: 0, None: 0}.get(status, 2)


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the workshop, and see which test says so.")
    parser.add_argument("numbers", nargs="*", type=int, help="these breakages alone")
    parser.add_argument("--list", action="store_true", help="list them")
    parser.add_argument("--quick", action="store_true", help="without the unbroken tests before")
    args = parser.parse_args()
    every = breakages()
    if unknown := set(args.numbers) - {one.number for one in every}:
        parser.error(f"there is no number {min(unknown)}: they go from 1 to {len(every)}")
    chosen = [one for one in every if one.number in args.numbers or not args.numbers]
    if args.list:
        print(*(f"{one.number:2}  {one.what} ({one.file})" for one in chosen), sep="\n")
    if wrong := misfits(chosen):
        print(*wrong, sep="\n")
    if wrong or args.list:
        return 2 if wrong else 0
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scaleout-break-") as folder:
        copy = Path(folder).resolve()
        copy_to(copy)
        if wrong := strangers(copy):
            print(wrong)
            return 2
        tests = sorted({name for one in chosen for name in one.tests})
        if not args.quick:
            status, said = test(copy, tests, 3 * LIMIT_S)
            if status != GREEN:
                print(f"Unbroken, not all tests are green:\n{said}")
                return 2
            print(f"Unbroken, all is green  ({time.monotonic() - start:.1f} s)", flush=True)
        found = [seen(copy, one) for one in chosen]
    print(f"{found.count(0)} of {len(found)} were seen  ({time.monotonic() - start:.1f} s)")
    return max(found, default=2)


if __name__ == "__main__":
    sys.exit(main())
