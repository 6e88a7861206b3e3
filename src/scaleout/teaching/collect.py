"""What a whole class measured, in one picture a topic.

What attendees hand in is read without trust: a line that is no record of the workshop is counted,
said and left out."""

import csv
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results
from ..base.settings import STACKS
from ..base.words import plain
from ..comparisons import elsewhere
from ..course.history import last_states
from ..course.masters import TOPIC
from ..kit.fields import wrong
from ..reports import PAGE, class_page, is_report
from . import calibration, guesses, headlines, survey

if TYPE_CHECKING:
    import pandas as pd


TEXTS = ["lab", "variant", "rate_unit", "cpu"]
FIELDS = [*TEXTS, "ranks", "threads_per_rank", "cores", "rate"]
STATES = ("passed", "not yet", "not started", "not judged")
DEEP = 3  # folders in which a platform for teaching may wrap what was handed in
ARCHIVES = (".zip", ".tgz", ".tar", ".gz", ".xz", ".bz2", ".7z", ".rar")
GROUPS = 4  # kinds of job drawn for a topic: those that most attendees have run


@dataclass
class Attendee:
    """What one results folder holds."""

    name: str
    records: "pd.DataFrame" = field(repr=False)
    checks: dict[tuple[str, int], str]
    left_out: list[str]
    report: Path | None = None
    answers: dict[tuple[int, str], str] = field(default_factory=dict)
    compared: list[headlines.Found] = field(default_factory=list)
    guessed: guesses.Guesses = field(default_factory=dict)
    answered: list[calibration.Guess] = field(default_factory=list)


def gather(folders: Iterable[Path], names: bool = False) -> list[Attendee]:
    """Read the results folders of a class, and say where there are none."""
    found: dict[Path, Path] = {}  # each once, in order, with the entry of the class that it is in
    for folder in folders:
        if not folder.is_dir():
            raise ScaleoutError(
                f"There is no folder {plain(str(folder))}: give the results folders, or one that "
                "holds them all."
            )
        for entry in [folder] if _holds_results(folder) else sorted(folder.iterdir()):
            inside = _handed_in(entry, DEEP) or _guesses_alone(entry)
            found |= {one.resolve(): entry.absolute() for one in inside}
            if not inside and not entry.name.startswith("."):
                print(_nothing(entry))
    if not found:
        raise ScaleoutError(
            "No results there: each attendee's folder holds results/NN_topic/RUN/records.jsonl, or "
            "a report's page."
        )
    known = headlines.known()
    called = _told_apart(found) if names else [f"{n:02}" for n in range(1, len(found) + 1)]
    return [
        _attendee(name, place, _beside_is_own(place, found), known)
        for name, place in zip(called, found, strict=True)
    ]


def _beside_is_own(place: Path, found: Mapping[Path, Path]) -> bool:
    """Tell whether what lies beside a results folder is its person's, and nobody else's."""
    if place.name == "results":
        return True
    alone = [other.parent for other in found if other.is_dir()].count(place.parent) == 1
    return alone and place != found[place].resolve()


def _told_apart(found: Mapping[Path, Path]) -> list[str]:
    """Name each place by its own folder, and by more of its path where two have one name."""
    top = os.path.commonpath([entry.parent for entry in found.values()])
    ways = [
        [_own_name(place) for place in found],
        [f"{entry.name}/{_own_name(place)}" for place, entry in found.items()],
        [os.path.relpath(place, top).removesuffix("/results") for place in found],
    ]
    names = []
    for each in zip(*ways, strict=True):
        alone = [name for way, name in zip(ways, each, strict=True) if way.count(name) == 1]
        names.append(plain([*alone, each[-1]][0]))
    return [
        name if names.count(name) == 1 else f"{name} ({names[: at + 1].count(name)})"
        for at, name in enumerate(names)
    ]


def _handed_in(place: Path, deep: int) -> list[Path]:
    """List the results folders and the reports' pages in a place, so many folders deeper at most."""
    if _holds_results(place):
        return [place / "results" if _holds_results(place, "results/") else place]
    if not place.is_dir():
        return [place] if place.suffix == ".html" and is_report(place) else []
    try:
        inside = sorted(place.iterdir()) if deep else []
    except OSError:  # a folder that may not be read
        inside = []
    return [found for entry in inside for found in _handed_in(entry, deep - 1)]


def _guesses_alone(entry: Path) -> list[Path]:
    """List the folders in which somebody has handed in guesses, and nothing else."""
    try:
        return [
            path.parent
            for deep in range(DEEP)
            for path in sorted(entry.glob("*/" * deep + guesses.FILE))
        ]
    except OSError:  # a folder that may not be read
        return []


def _nothing(entry: Path) -> str:
    """Say that somebody's entry holds no results, and what may be the matter."""
    inside = [path for deep in range(1, DEEP + 1) for path in entry.glob("/".join("*" * deep))]
    named = [path for path in (entry, *inside) if path.name.lower().endswith(ARCHIVES)]
    files = [path for path in named if path.is_file()]
    if files:
        return (
            f"{plain(entry.name)}: left out, {plain(files[0].name)} is an archive: unpack it first."
        )
    return (
        f"{plain(entry.name)}: left out, it holds no results/NN_topic/RUN/records.jsonl, also not "
        f"{DEEP} folders deeper."
    )


def _own_name(place: Path) -> str:
    """Return the name of the folder that a person has handed in, or of the page."""
    if not place.is_dir():
        return place.stem
    return next((at.name for at in (place, *place.parents) if at.name != "results"), place.name)


def _holds_results(folder: Path, inside: str = "") -> bool:
    """Tell whether a folder holds results, itself or (only there, if asked) in `results/`."""
    patterns = (
        *("[0-9][0-9]_*/checks.jsonl", "[0-9][0-9]_*/*/records.jsonl"),
        *(PAGE, calibration.FILE),
    )
    try:
        return folder.is_dir() and any(
            next(folder.glob(where + pattern), None)
            for where in ([inside] if inside else ["", "results/"])
            for pattern in patterns
        )
    except OSError:  # a folder that may not be read
        return False


def _attendee(
    name: str, place: Path, beside: bool, known: Mapping[str, headlines.Known]
) -> Attendee:
    """Read what one folder holds of runs and checks, or a page alone.

    `beside`: a survey.md or guesses.txt beside the folder is this person's too. The small jobs of
    checks are nobody's measurement.
    """
    import pandas as pd

    checks: dict[tuple[str, int], str] = {}
    rows: list[dict[str, Any]] = []
    left_out = []
    folder, report = (place, place / PAGE) if place.is_dir() else (None, place)
    for topic in (
        sorted(path for path in folder.iterdir() if _is_topic(path.name)) if folder else []
    ):
        for todo, state in last_states(topic / "checks.jsonl"):
            if state in STATES and 0 < todo < 100:
                checks[topic.name, todo] = state
        for run in sorted(topic.glob("*/records.jsonl")):
            env = jsonlines.table(run.with_name("run.json")).get("env")
            if isinstance(env, dict) and STACKS in env:
                continue
            lines, damaged = jsonlines.read(run, _wrong_record)
            rows += [{name: line[name] for name in FIELDS} for line in lines]
            if damaged:
                left_out.append(plain(str(run.relative_to(place)), 200) + plain(damaged, 200))
    for row in rows:
        row |= {name: plain(row[name]) for name in TEXTS}
    kept = report if report.is_file() else None
    answers = survey.read(folder, beside) if folder else {}
    compared, not_whole = headlines.read(folder, known) if folder else ([], [])
    records = pd.DataFrame(rows, columns=FIELDS)
    guessed, no_guesses = guesses.read(folder, beside) if folder else ({}, [])
    answered, damaged = calibration.read(folder / calibration.FILE) if folder else ([], "")
    left_out += [*not_whole, *no_guesses]
    left_out += [calibration.FILE + plain(damaged, 200)] * bool(damaged)
    return Attendee(name, records, checks, left_out, kept, answers, compared, guessed, answered)


def _is_topic(name: str) -> bool:
    return re.fullmatch(TOPIC, name) is not None and len(name) <= 40


def _wrong_record(line: dict[str, Any]) -> str:
    return wrong(line) or ("" if _is_topic(line["lab"]) else "it is of no topic")


def collect(folders: Iterable[Path], names: bool = False) -> Path:
    """Draw what a class measured, and return the folder.

    It holds a picture for each topic, table.csv, a page of its reports, one of its answers in the
    survey, one of its guesses in the preview, and one of the guesses that most were wrong about; of
    the lessons' headline comparisons a picture each, and headlines.jsonl.
    """
    class_ = gather(folders, names)
    for attendee in class_:
        for what in attendee.left_out:
            print(f"{attendee.name}: {what}")
        if attendee.records.empty and not (
            attendee.report or attendee.guessed or attendee.answered
        ):
            print(f"{attendee.name}: 0 runs, as no record in that folder counts.")
    class_folder = results("class")
    # Pictures of half a class would look like those of a whole one: they are put in place at the end.
    with tempfile.TemporaryDirectory(prefix=".part-", dir=class_folder) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        _draw(class_, made)
        _headlines(class_, made)
        if handed_in := {a.name: a.report for a in class_ if a.report}:
            (made / "reports.html").write_text(class_page(handed_in), encoding="utf-8")
        if answers := [a.answers for a in class_ if a.answers]:
            (made / survey.PAGE).write_text(survey.counted(answers), encoding="utf-8")
        if guessed := [a.guessed for a in class_ if a.guessed]:
            (made / guesses.PAGE).write_text(guesses.counted(guessed), encoding="utf-8")
        if answered := [a.answered for a in class_ if a.answered]:
            (made / calibration.PAGE).write_text(calibration.wrong(answered), encoding="utf-8")
        return made.rename(class_folder / f"{datetime.now():%Y%m%dT%H%M%S.%f}")


def _draw(class_: Sequence[Attendee], out: Path) -> None:
    """Write a picture for each topic, and the table."""
    import pandas as pd

    from .classroom import class_picture

    topics = sorted(
        {t for a in class_ for t in a.records.lab} | {t for a in class_ for t, _ in a.checks}
    )
    rows = pd.concat([a.records.assign(attendee=a.name) for a in class_], ignore_index=True)
    rows = rows[rows.rate.notna()]
    for topic in topics:
        states = {
            a.name: {todo: s for (t, todo), s in a.checks.items() if t == topic} for a in class_
        }
        drawn = _drawable(_best(rows[rows.lab == topic]))
        class_picture(drawn, states).savefig(out / f"{topic}.png")
    with open(out / "table.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        columns = ["attendee", "cpu", "cores", "runs"]
        table.writerow([*columns, *(f"{topic}: checks passed" for topic in topics)])
        for a in class_:
            passed = Counter(topic for (topic, _), state in a.checks.items() if state == "passed")
            about = a.records.iloc[-1] if len(a.records) else {"cpu": "", "cores": ""}
            cells = [a.name, about["cpu"], about["cores"], len(a.records)]
            table.writerow([*map(_cell, cells), *(passed[t] for t in topics)])


def _headlines(class_: Sequence[Attendee], out: Path) -> None:
    """Write the rows of the headline comparisons, and a picture each, where there are any."""
    from .classroom import machines_picture

    by_name: dict[str, dict[str, headlines.Found]] = {}
    for a in class_:
        for one in a.compared:
            by_name.setdefault(one.name, {})[a.name] = one
    lines = [
        elsewhere.line(row)
        for own in by_name.values()
        for attendee, one in own.items()
        for row in one.rows(attendee)
    ]
    if lines:
        (out / headlines.FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, own in by_name.items():
        found = {f"{who}: {one.machine.name}": one.comparison for who, one in own.items()}
        machines_picture(found).savefig(out / f"headline-{name}.png")


def _cell(value: object) -> object:
    """Protect a text that begins like a formula: a spreadsheet shows it as text."""
    return (
        f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
    )


def _drawable(best: "pd.DataFrame") -> "pd.DataFrame":
    """Escape the signs that matplotlib takes for mathematics."""
    texts = ("job", "rate_unit", "cpu", "attendee")
    escaped = {name: best[name].str.replace("$", r"\$", regex=False) for name in texts if len(best)}
    return best.assign(**escaped)


def _best(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Choose each attendee's best rate for the kinds of job that most of them have run.

    A kind is a variant, ranks and threads.
    """
    kinds = ["variant", "ranks", "threads_per_rank", "rate_unit"]
    if rows.empty:
        return rows.assign(job=[])
    common = (
        rows.groupby(kinds, dropna=False)
        .attendee.nunique()
        .sort_values(ascending=False, kind="stable")
    )
    unit = common.index[0][3]
    chosen = [kind for kind in common.index if kind[3] == unit][:GROUPS]
    best = rows.groupby([*kinds, "attendee", "cpu", "cores"], dropna=False).rate.max().reset_index()
    best = best[[tuple(row) in chosen for row in best[kinds].itertuples(index=False)]]
    sides = best.ranks.astype(str) + " x " + best.threads_per_rank.astype(str)
    return best.assign(job=(best.variant + "\n" + sides).str.strip())
