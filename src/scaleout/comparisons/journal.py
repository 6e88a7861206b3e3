"""The runs of a comparison, kept line by line, so that one that was interrupted goes on."""

import contextlib
import fcntl
import hashlib
import json
import math
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import jsonlines, machine, records
from ..errors import ScaleoutError
from ..paths import results, show

Row = dict[str, Any]
MOST_LETTERS = 60  # of a folder's name


class Kept:
    """The folder of one comparison: compare.json says what it is, runs.jsonl what was measured."""

    def __init__(self, name: str) -> None:
        self.folder = results("compare", name)
        self.path = self.folder / "runs.jsonl"
        self.rows: list[Row] = []

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder for this comparison alone; the system gives it back, whatever happens."""
        with open(self.folder / ".lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ScaleoutError(
                    f"The comparison in {show(self.folder)} is running already: "
                    "wait for it, or give this one another name."
                ) from None
            except OSError:  # a file system without locks
                pass
            yield

    def load(self, about: Mapping[str, Any], size: int) -> None:
        """Reads the whole rounds of the same comparison. What is of another one is put aside."""
        same = jsonlines.table(self.folder / "compare.json") == about
        found, left_out = jsonlines.read(self.path, _wrong)
        same = same and not left_out  # a lost run would put the others into wrong rounds
        self.rows = found[: len(found) // size * size] if same else []
        if not self.rows:
            return self.begin(about)
        if len(self.rows) < len(found):
            self._write(self.path, "".join(json.dumps(row) + "\n" for row in self.rows))

    def begin(self, about: Mapping[str, Any]) -> None:
        """An empty comparison; runs that are there already are kept beside it."""
        if self.path.exists():
            names = (self.folder / f"before-{number}.jsonl" for number in range(1, 10**6))
            self.path.rename(next(name for name in names if not name.exists()))
        self.rows = []
        self._write(self.folder / "compare.json", json.dumps(about, indent=1) + "\n")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        partial = path.with_name(path.name + ".part")
        partial.write_text(text, encoding="utf-8")
        partial.rename(path)

    def add(self, row: Row) -> None:
        """Keeps one run, on disk before the next begins."""
        records._append(self.path, json.dumps(row))
        self.rows.append(row)


def _wrong(row: Row) -> str:
    """What is wrong with a line of a runs.jsonl."""
    value, counts = row.get("value"), [row.get("round"), row.get("place")]
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return "a figure is missing"
    if not all(type(number) is int and number >= 0 for number in counts):
        return "its place is missing"
    texts = [row.get("variant"), *(row.get(name, "") for name in ("unit", "run_id", "utc"))]
    known = row.get("again") in (0, 1) and all(isinstance(text, str) for text in texts)
    return "" if known else "a word is missing"


def about_it(
    job: Any,
    variants: Mapping[str, Mapping[str, Any]],
    metric: Any,
    lower: bool,
    within: float,
) -> dict[str, Any]:
    """All that decides what a comparison measures, as JSON gives it back."""
    about = {
        "schema": 1,
        "job": _label(job),
        "text": _text(job, variants),
        "variants": {name: {k: repr(v) for k, v in how.items()} for name, how in variants.items()},
        "metric": _label(metric) if callable(metric) else str(metric),
        "lower": lower,
        "within": within,
        "machine": [machine.cpu_model(), machine.usable_cores()],
    }
    return dict(json.loads(json.dumps(about)))


def _label(job: Any) -> str:
    if not callable(job):
        return job if isinstance(job, str) else shlex.join(job)
    owner = getattr(job, "__self__", None)
    return str(getattr(owner, "name", "") or getattr(job, "__qualname__", type(job).__name__))


def _text(job: Any, variants: Mapping[str, Mapping[str, Any]]) -> str:
    """A digest of the scripts and the function that are run: edited, they are another comparison."""
    commands = [
        job if not callable(job) else "",
        *(how.get("script", "") for how in variants.values()),
    ]
    try:
        words = [w for c in commands for w in (shlex.split(c) if isinstance(c, str) else c)]
    except ValueError as error:
        raise ScaleoutError(
            f"{job!r} is no command ({error}): give it as a list of words."
        ) from None
    paths = [getattr(getattr(job, "__self__", None), "script", ""), *words]
    found = [
        Path(path).read_bytes()
        for path in paths
        if str(path).endswith((".py", ".sh")) and Path(path).is_file()
    ]
    code = getattr(job, "__code__", None)
    return hashlib.sha256(b"\0".join([*found, code.co_code if code else b""])).hexdigest()[:16]


def folder_name(name: str, about: Mapping[str, Any]) -> str:
    """The name of a comparison's folder."""
    if name:
        if not name.replace("-", "").replace("_", "").isalnum() or len(name) > MOST_LETTERS:
            raise ScaleoutError(
                f"A comparison's name has letters, digits, - and _, {MOST_LETTERS} at most, such as "
                f"oneDNN-2; not {name!r}."
            )
        return name
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in about["job"])[:40].strip("-")
    return f"{stem or 'job'}-{digest}"
