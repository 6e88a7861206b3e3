"""Wait until a machine is left alone, before something is measured on it."""

import os
import time

import psutil

from scaleout.base.errors import ScaleoutError
from scaleout.base.words import count

PATIENCE_S, LOOK_S = 600, 4
MOST_LOAD, MOST_BUSY = 0.25, 5  # jobs a CPU over a minute; per cent of all CPUs


def wait_until_quiet(within_s: float = PATIENCE_S) -> None:
    """Wait until others leave the machine alone; a ScaleoutError where they do not."""
    end, cpus = time.monotonic() + within_s, psutil.cpu_count() or 1
    while True:
        busy, load = psutil.cpu_percent(LOOK_S), os.getloadavg()[0]
        if busy <= MOST_BUSY and load <= MOST_LOAD * cpus:
            return
        if time.monotonic() > end:
            raise ScaleoutError(
                f"The machine is not quiet: others take {busy:.0f} % of its CPUs, and the load is "
                f"{load:.1f} on {count(cpus, 'CPU')}; run it again when they are done."
            )
