"""Read Horovod's timeline (HOROVOD_TIMELINE=file): what rank 0 saw of each tensor, after a clean end
or after a crash.

The format is Chrome's trace events: a list of objects, one "process" a tensor. Horovod writes it as
it goes; a job that is ended leaves it cut off anywhere, and what is whole before the cut is read.
So it is before a damaged event, and before another job's timeline in the same file: without the
event that is lost, all later steps would be counted wrongly.
Times are those of rank 0, in seconds from the start of Horovod there; when a rank was ready is
known to one cycle (HOROVOD_CYCLE_TIME). Ranks are told apart only while they negotiate, which a
cached answer leaves out: set HOROVOD_CACHE_CAPACITY=0 to see them in every step."""

import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import count

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = re.compile(r"[\s,]*")  # two events


@dataclass(frozen=True)
class Timeline:
    """What one timeline holds; `read` makes it.

    Attributes
    ----------
    spans : pandas.DataFrame
        A row for each phase of a tensor: `tensor`, `phase` (such as "ALLREDUCE"), `count` (how
        often the tensor has had this phase before), `start_s`, `end_s`.
    ready : pandas.DataFrame
        A row each time that a rank was ready to send a tensor: `tensor`, `rank`, `count` (as
        above), `at_s`.
    unread : int
        How many events were not read: those from the place on where the file is cut off or damaged,
        or where another job's timeline begins.
    whole : bool
        Whether all was read, up to the "]" that Horovod writes at a job's clean end.
    """

    spans: "pd.DataFrame"
    ready: "pd.DataFrame"
    unread: int
    whole: bool

    def steps(self) -> "pd.DataFrame":
        """Split the time of each step into compute, waiting and communication.

        A rank computes until its last gradient is ready, waits until that is so on all ranks, and
        communicates until the last average is there, when the next step begins. What is sent while
        it still computes counts as compute, and so does all that it does between two steps. The
        first step is left out: its start is not known.

        Returns
        -------
        pandas.DataFrame
            A row for each step and rank: `step`, `rank`, and in seconds `start_s`, `compute_s`,
            `waiting_s`, `communication_s`. A step in which the ranks did not negotiate, or that a
            crash has cut, has no rows.
        """
        import pandas as pd

        columns = ["step", "rank", "start_s", "compute_s", "waiting_s", "communication_s"]
        done = self.spans[self.spans.phase == "ALLREDUCE"]
        often = Counter(done.tensor)
        most = max(often.values(), default=0)
        gradients = {
            tensor for tensor, count in often.items() if count >= most - 1
        }  # a crash may cut the last step
        ends = done[done.tensor.isin(gradients)].groupby("count").end_s.agg(["max", "size"])
        mine = (
            self.ready[self.ready.tensor.isin(gradients)]
            .groupby(["count", "rank"])
            .at_s.agg(["max", "size"])
        )
        rows = []
        for step in range(1, most):
            if (
                step not in ends.index
                or ends["size"][step] < len(gradients)
                or (step, 0) not in mine.index
            ):
                continue
            start, end, last = ends["max"][step - 1], ends["max"][step], mine.loc[step]["max"]
            for rank, at in last.items():
                rows.append([step, rank, start, at - start, last.max() - at, end - last.max()])
        return pd.DataFrame(rows, columns=columns)


def read(path: Path | str) -> Timeline:
    """Read the timeline in a file, up to its end or to where it is cut off or damaged.

    A warning says how many events were not read.

    Parameters
    ----------
    path : Path or str
        What HOROVOD_TIMELINE named.

    Returns
    -------
    Timeline

    Raises
    ------
    ScaleoutError
        There is no such file, or it holds no whole phase of a tensor.

    Notes
    -----
    The format is that of Chrome's trace events, as Horovod describes it under "Analyze
    Performance" in its documentation.
    """
    import pandas as pd

    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ScaleoutError(
            f"There is no timeline in {show(file)} ({error.strerror}). Horovod writes one from "
            "hvd.init() on, "
            "in a job with  HOROVOD_TIMELINE=THAT_FILE"
        ) from None
    names: dict[int, str] = {}
    begun: dict[int, list[tuple[str, float]]] = defaultdict(list)
    counts: Counter[tuple[int, str]] = Counter()
    spans, ready = [], []
    known = read_to = 0
    for event, end in _events(text):
        if event.get("name") == "process_name" and event.get("pid") in names:
            break  # tensors are named once: this is another job
        known, read_to = known + 1, end
        tensor, kind, name = event.get("pid", 0), event.get("ph"), event.get("name", "")
        at = event.get("ts", 0) / 1e6
        if kind == "M" and name == "process_name":
            names[tensor] = event.get("args", {}).get("name", "")
        elif kind == "B":
            begun[tensor].append((name, at))
        elif kind == "E" and begun[tensor]:
            phase, start = begun[tensor].pop()
            spans.append([names.get(tensor, ""), phase, counts[tensor, phase], start, at])
            counts[tensor, phase] += 1
        elif kind == "X" and name.isdigit() and begun[tensor]:
            ready.append(
                [names.get(tensor, ""), int(name), counts[tensor, begun[tensor][-1][0]], at]
            )
    if not spans:
        raise ScaleoutError(
            f"{show(file)} holds no phase of any tensor: it is no timeline, or the job ended too "
            "early."
        )
    rest = _next(text, read_to)
    closed = text[rest:].strip() == "]"
    unread = 0 if closed or not text[rest:] else max(1, text.count('"ph"', rest))
    if unread:
        warnings.warn(
            f"{show(file)} was read up to its event {known:,}: there it is cut off or damaged, or "
            f"another job's timeline begins. Not read: {count(unread, 'event')}.",
            stacklevel=2,
        )
    return Timeline(
        pd.DataFrame(spans, columns=["tensor", "phase", "count", "start_s", "end_s"]),
        pd.DataFrame(ready, columns=["tensor", "rank", "count", "at_s"]),
        unread,
        closed,
    )


def _events(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Decode the events in order, each with where it ends, up to the first text that is none."""
    decoder = json.JSONDecoder()
    end = text.find("[") + 1
    while True:
        try:
            event, end = decoder.raw_decode(text, _next(text, end))
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        yield event, end


def _next(text: str, end: int) -> int:
    """Find where the text goes on behind an event, a comma and blanks."""
    between = BETWEEN.match(text, end)
    assert between
    return between.end()
