"""Two processes of probe.py, started together as an MPI job and ended in every case."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..jobs import reaper
from ..jobs.environment import clean_environment
from .mpi import Job


@contextmanager
def pair(mpirun: str, limit_s: float) -> Iterator[Callable[[], Job]]:
    """Starts two processes of probe.py, none of which outlives the block."""
    run_id = f"doctor-{os.getpid()}-{time.monotonic_ns()}"
    more = {"SCALEOUT_RUN_ID": run_id, "ONEDNN_VERBOSE": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory(prefix="scaleout-doctor-") as name:
        folder = Path(name)
        guard = reaper.guard(run_id)  # ends the job should the doctor be killed
        with open(folder / "output", "wb") as output, open(folder / "errors", "wb") as errors:
            started = subprocess.Popen(
                [
                    mpirun,
                    "-n",
                    "2",
                    sys.executable,
                    "-m",
                    "scaleout.doctor.probe",
                    name,
                    str(limit_s),
                ],
                env=clean_environment(os.environ) | more,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches the doctor alone, who ends them in order
            )

        def wait() -> Job:
            try:
                status = started.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            output, errors = (
                (folder / stream).read_text(errors="replace") for stream in ("output", "errors")
            )
            return Job(
                status,
                output,
                errors,
                tuple(json.loads(path.read_text()) for path in folder.glob("*.json")),
            )

        try:
            yield wait
        finally:
            reaper.end(run_id, started.pid)
            # gone by now; but the wait below has no limit, so nothing may be left to chance
            started.kill()
            started.wait()
            guard.communicate(b"done")
