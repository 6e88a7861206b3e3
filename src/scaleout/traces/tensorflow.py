"""Read what each operation of a TensorFlow program took, from a profile that TensorFlow wrote.

In the program, around the steps that count:

    tf.profiler.experimental.start(folder)
    tf.profiler.experimental.stop()

With TF_NUM_INTEROP_THREADS=1 the operations run one after another, so their times add up.
"""

import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import rounded
from ..jobs.job import Run

if TYPE_CHECKING:
    import pandas as pd


OPERATION = re.compile(r"([^: ]+):(\w+)")  # its name in the graph, and what it does
LONGEST = 3  # operations that are named
CALLS = {"PartitionedCall", "StatefulPartitionedCall", "While", "If"}  # they hold other operations


def read(job: Run | Path | str) -> "pd.DataFrame":
    """Read the operations of a job that ran with a profiler.

    Parameters
    ----------
    job : Run, Path or str
        The run, whose record tells its number of steps; or the folder that the profiler wrote to,
        all of whose operations then count as one step.

    Returns
    -------
    pandas.DataFrame
        A row for each operation of the graph, the longest first: `name`, `op` (what it does),
        `library` ("oneDNN" or "Eigen"), and for each step `calls` and `time_ms`, milliseconds.
        `attrs["step_ms"]` is the median of the steps' times; 0 for a folder.

    Raises
    ------
    ScaleoutError
        There is no profile, it is not whole, it holds no operation, or TensorFlow is missing; or
        the run's record is missing, or tells of no step.

    Notes
    -----
    The newest profile in the folder is read, an XSpace (xplane.proto in TensorFlow's source). Calls,
    loops and branches are left out, as they hold other operations.
    """
    import pandas as pd

    folder = job.folder if isinstance(job, Run) else Path(job)
    calls: dict[tuple[str, str], list[float]] = defaultdict(list)
    for plane in _space(folder).planes:
        for line in plane.lines:
            for event in line.events:
                found = OPERATION.fullmatch(plane.event_metadata[event.metadata_id].name)
                if found and found[2] not in CALLS:
                    calls[found[1], found[2]].append(event.duration_ps / 1e9)
    if not calls:
        raise ScaleoutError(f"The profile in {show(folder)} holds no operation of TensorFlow.")
    steps = _steps(job) if isinstance(job, Run) else [0.0]
    rows = [
        (name, _original(op), _library(op), len(ms) / len(steps), sum(ms) / len(steps))
        for (name, op), ms in calls.items()
    ]
    frame = pd.DataFrame(rows, columns=["name", "op", "library", "calls", "time_ms"])
    frame = frame.sort_values("time_ms", ascending=False, ignore_index=True)
    frame.attrs = {"step_ms": 1000 * float(pd.Series(steps).median())}
    return frame


def _steps(run: Run) -> list[float]:
    """Read the times of a run's steps, which say by how many its operations are divided."""
    told = [steps for steps in run.records.step_s if steps]
    if not told:
        raise ScaleoutError(
            f"No record of {run.name} tells how many steps it took: write one with its step_s, or "
            "give read() the run's folder, and all operations count as one step."
        )
    return list(told[0])


def by_op(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Add up the operations that do the same.

    Parameters
    ----------
    frame : pandas.DataFrame
        As `read` returns it, or some rows of it.

    Returns
    -------
    pandas.DataFrame
        `op`, `library`, and for each step `calls`, `time_ms` (milliseconds) and `share` (of these
        rows' time, from 0 to 1), the longest first.
    """
    sums = frame.groupby(["op", "library"])[["calls", "time_ms"]].sum().reset_index()
    sums = sums.sort_values("time_ms", ascending=False, ignore_index=True)
    return sums.assign(share=sums.time_ms / sums.time_ms.sum())


def words(frame: "pd.DataFrame") -> str:
    """Describe a step in one sentence: what it takes, its three longest operations, the others of each
    library, and what lies between operations.

    Parameters
    ----------
    frame : pandas.DataFrame
        As `read` returns it for a run.

    Returns
    -------
    str

    Raises
    ------
    ScaleoutError
        It is of a folder, or its steps took no time.
    """
    sums, step_ms = by_op(frame), frame.attrs["step_ms"]
    if not step_ms:
        raise ScaleoutError(
            "This profile does not tell how long a step took: read it from a run whose record has "
            "the times of its steps, as in  words(read(run))"
        )
    told = [f"{row.op} {row.time_ms / step_ms:.0%}" for row in sums.head(LONGEST).itertuples()]
    parts = {f"other {name} operations": ms for name, ms in _others(sums).items()}
    parts["between operations"] = step_ms - float(sums.time_ms.sum())
    told += [f"{name} {ms / step_ms:.0%}" for name, ms in parts.items() if ms > 0]
    return f"{rounded(step_ms)} ms a step: {', '.join(told)}."


def _others(sums: "pd.DataFrame") -> dict[str, float]:
    """Add up what each library takes beyond the longest operations."""
    return dict(sums.iloc[LONGEST:].groupby("library").time_ms.sum().sort_values(ascending=False))


def _library(op: str) -> str:
    """Name the library that runs an operation."""
    return "oneDNN" if op.startswith("_Mkl") else "Eigen"


def _original(op: str) -> str:
    """Without what TensorFlow adds to a name when it changes who runs it, or puts a bias behind."""
    return re.sub("^_(Mkl(Native)?)?(Fused(?=Conv2D|MatMul))?|WithBias$", "", op)


def _space(folder: Path) -> Any:
    """Read the newest profile in a folder, as TensorFlow describes it."""
    files = sorted(folder.glob("plugins/profile/*/*.xplane.pb"))
    if not files:
        raise ScaleoutError(f"There is no profile in {show(folder)}: run the job with --profile.")
    space = _description().XSpace()
    try:
        space.ParseFromString(files[-1].read_bytes())
    except Exception as error:  # a DecodeError, of a package that is loaded only here
        raise ScaleoutError(f"{show(files[-1])} is no whole profile: {error}.") from None
    return space


def _description() -> Any:
    """Load the protocol buffers of a profile; that file alone, as TensorFlow takes seconds."""
    package = importlib.util.find_spec("tensorflow")
    if package is None or not package.submodule_search_locations:
        raise ScaleoutError("TensorFlow is missing, and with it the description of its profiles.")
    path = Path(package.submodule_search_locations[0], "tsl/profiler/protobuf/xplane_pb2.py")
    spec = importlib.util.spec_from_file_location("xplane_pb2", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
