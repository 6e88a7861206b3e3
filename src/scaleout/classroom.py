"""The class: a copy to give out, without the answers; and what a whole class measured, in one picture a topic."""

import csv
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from . import exercises, history
from .errors import ScaleoutError
from .paths import home, results, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Attendee", "collect", "gather", "release"]

ARCHIVES = {".zip": "zip", ".tar": "tar", ".tar.gz": "gztar", ".tgz": "gztar"}
NOT_GIVEN = ("solutions", "labs", "notebooks", "tests", ".ci", "CONTRIBUTING.md", ".gitignore")
GROUPS = 4  # kinds of job drawn for a topic: those that most attendees have run


def release(target: Path, answers: Sequence[str] = ()) -> list[str]:
    """Writes the attendees' copy to a new folder, or to an archive (.zip, .tar, .tar.gz): labs and notebooks as new,
    no solutions but those of the topics in `answers` ("04", "04_kmeans"). Returns the topics whose answers are in it.

    It is made from what git tracks, so nothing of the instructor's own comes along. ScaleoutError when the target
    exists or there is no checkout.
    """
    kind = next((kind for end, kind in ARCHIVES.items() if target.name.endswith(end)), None)
    if target.exists():
        raise ScaleoutError(f"{show(target)} exists already: remove it, or give the copy another name.")
    root = home()
    masters = {path.stem for path in (root / "solutions").glob("[0-9][0-9]_*.ipynb")}
    chosen = sorted({_named(answer, masters) for answer in answers})
    with tempfile.TemporaryDirectory(prefix="scaleout-release-") as scratch:
        copy = Path(scratch) / "scaleout-workshop"
        for name in _tracked(root):
            first, *inside = Path(name).parts
            if first not in NOT_GIVEN or (first == "solutions" and inside[0].removesuffix(".ipynb") in chosen):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        for path, text in exercises.generated():
            new = copy / path.relative_to(root)
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(text, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind is None:
            shutil.move(copy, target)
        else:
            made = shutil.make_archive(str(Path(scratch) / "made"), kind, scratch, copy.name)
            shutil.move(made, target)
    return chosen


def _named(answer: str, topics: set[str]) -> str:
    found = [topic for topic in topics if answer in (topic, topic[:2], topic[3:])]
    if not found:
        raise ScaleoutError(f"There is no topic {answer!r}: there are {', '.join(sorted(topics))}.")
    return found[0]


def _tracked(root: Path) -> list[str]:
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        raise ScaleoutError(f"{show(root)} is no git checkout: make the copy from one.") from None
    return [name for name in listed.stdout.decode().split("\0") if name and (root / name).is_file()]


@dataclass
class Attendee:
    """One results folder. checks: the last state of each (topic, TODO)."""

    name: str
    records: "pd.DataFrame" = field(repr=False)
    checks: dict[tuple[str, int], str]


def gather(folders: Iterable[Path], names: bool = False) -> list[Attendee]:
    """The results folders of a class, or folders that hold many of them; without names they are numbered."""
    from . import records

    found = []
    for folder in folders:
        if not folder.is_dir():
            raise ScaleoutError(f"There is no folder {folder}: give the results folders, or one that holds them all.")
        each = [folder] if _holds_results(folder) else [f for f in sorted(folder.iterdir()) if _holds_results(f)]
        found += [f / "results" if (f / "results").is_dir() else f for f in each]
    if not found:
        raise ScaleoutError("No results there: each attendee's folder holds results/NN_topic/RUN/records.jsonl.")
    class_ = []
    for number, folder in enumerate(found, 1):
        own = folder.parent.name if folder.name == "results" else folder.name
        frame = records.read(*sorted(folder.glob("*/*/records.jsonl")))
        checks = {(f.parent.name, todo): s for f in folder.glob("*/checks.jsonl") for todo, s in history.last_states(f)}
        class_.append(Attendee(own if names else f"{number:02}", frame.drop(columns=["host"]), checks))
    return class_


def _holds_results(folder: Path) -> bool:
    return any(next(folder.glob(f"{inside}[0-9][0-9]_*"), None) for inside in ("", "results/"))


def collect(folders: Iterable[Path], names: bool = False) -> Path:
    """Draws what a class measured: a picture for each topic, and table.csv. Returns their new folder in results/."""
    import pandas as pd

    from . import plots

    class_ = gather(folders, names)
    out = results() / "class" / f"{datetime.now():%Y%m%dT%H%M%S.%f}"
    out.mkdir(parents=True)
    topics = sorted({t for a in class_ for t in a.records.get("lab", [])} | {t for a in class_ for t, _ in a.checks})
    rows = pd.concat([a.records.assign(attendee=a.name) for a in class_], ignore_index=True)
    rows = rows[rows.rate.notna()]
    for topic in topics:
        states = {a.name: {todo: s for (t, todo), s in a.checks.items() if t == topic} for a in class_}
        plots.class_picture(_best(rows[rows.lab == topic]), states).savefig(out / f"{topic}.png")
    with open(out / "table.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["attendee", "cpu", "cores", "runs", *(f"{topic}: checks passed" for topic in topics)])
        for a in class_:
            passed = Counter(topic for (topic, _), state in a.checks.items() if state == "passed")
            about = a.records.iloc[-1] if len(a.records) else {"cpu": "", "cores": ""}
            table.writerow([a.name, about["cpu"], about["cores"], len(a.records), *(passed[t] for t in topics)])
    return out


def _best(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Each attendee's best rate for the kinds of job (variant, ranks, threads) that most of them have run."""
    kinds = ["variant", "ranks", "threads_per_rank", "rate_unit"]
    if rows.empty:
        return rows.assign(job=[])
    common = rows.groupby(kinds, dropna=False).attendee.nunique().sort_values(ascending=False, kind="stable")
    unit = common.index[0][3]
    chosen = [kind for kind in common.index if kind[3] == unit][:GROUPS]
    best = rows.groupby([*kinds, "attendee", "cpu", "cores"], dropna=False).rate.max().reset_index()
    best = best[[tuple(row) in chosen for row in best[kinds].itertuples(index=False)]]
    sides = best.ranks.astype(str) + " x " + best.threads_per_rank.astype(str)
    return best.assign(job=(best.variant + "\n" + sides).str.strip())
