"""What was measured, as one page: the comparisons, sweeps and seeds in a folder of results, with
what speaks against them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from .. import __version__
from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results, show
from . import gather, page, rules
from .findings import Findings
from .private import anonymous

PAGE = "report.html"


def report(
    folder: Path | str | Sequence[Path | str] | None = None,
    *,
    again: Path | str | None = None,
    out: Path | str | None = None,
    check: bool = False,
    accuracy: str = "accuracy",
    notes: Path | str | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Write the report of a folder or of several, or draw the one that a page holds anew.

    Parameters
    ----------
    folder : Path or str, or a sequence of them, optional
        Where `compare` and `sweep` left their results: a path, or a name below results/. Several
        are told in their order, and the last one holds the claim, by whatever it is judged.
    again : Path or str, optional
        A report's page, in place of a folder.
    out : Path or str, optional
        The page, or Markdown where its name ends in .md; FOLDER/report.html, of several folders
        results/report.html, or the page itself, if you name none.
    check : bool
        Say what the report must still hold; with `again`, write nothing unless `out` is given.
    accuracy : str
        The metric of the records that says how good a training is. Less of it is better where its
        name says so, such as val_loss or error.
    notes : Path or str, optional
        Your own words in a file, in Markdown: they are put on the page, and kept in its records.
    say : callable
        Takes each line.

    Returns
    -------
    int
        1 when a check refuses the report, else 0.

    Raises
    ------
    ScaleoutError
        Neither or both of `folder` and `again` are given, there is no such folder or nothing to
        report in it, the page is no report, or the notes cannot be read.
    """
    names = [folder] if isinstance(folder, (str, Path)) else list(folder or [])
    if bool(names) == (again is not None):
        raise ScaleoutError(
            "Name a folder of results or, after --again, a page:  scaleout report results"
        )
    words = page.own_words(Path(notes)) if notes else ""
    if again is not None:
        made, line = page.read(Path(again))
        broken = _broken(made, line)
        changed = {"drawn": gather.drawn(), **({"notes": anonymous(words)} if words else {})}
        made = rules.judge(msgspec.structs.replace(made.evidence, **changed))
    else:
        made = rules.judge(gather.gather(names, accuracy, say=say, notes=words))
        broken = _broken(made, "")
    if out or words or again is None or not check:
        there = gather.folder(names[0]) if len(names) == 1 else results()
        target = Path(out or again or there / PAGE)
        write = page.markdown if target.suffix == ".md" else page.draw
        target.write_text(write(made), encoding="utf-8")
        say(f"Written: {show(target)}")
    if check:
        for one in broken:
            say(f"Refused. {one}")
        for one in made.remarks:
            say(f"Remark. {one}")
        if made.points:
            given = ", ".join(f"{one.name} {int(one.given)}" for one in made.points)
            say(f"Points by the check: {given}. The page says where to look for the other five.")
        gain = "" if made.claim else " It claims no gain."
        say(f"{len(broken)} to mend." if broken else f"It holds: every rule is kept.{gain}")
    return 1 if check and broken else 0


def _broken(made: Findings, line: str) -> list[str]:
    """Say which rules a report breaks, and that its page shows a line that its records do not give."""
    if not line:
        return [*made.refusals]
    wrote = made.evidence.scaleout
    why = (
        f"Figures follow from the runs: the page shows what its records do not give ({line})."
        if (wrote, made.evidence.drawn or gather.drawn()) == (__version__, gather.drawn())
        else f"The page is drawn by another version, scaleout {wrote}."
    )
    return [f"{why} Draw it anew:  scaleout report --again PAGE", *made.refusals]


def is_report(path: Path) -> bool:
    """Tell whether a file is the page of a report, be it damaged or not."""
    try:
        return page.BEGIN in jsonlines.text(path)
    except (OSError, ValueError):
        return False


def class_page(handed_in: Mapping[str, Path]) -> str:
    """Put the reports of a class on one page: who reached what, by which step."""
    rows = []
    for name, path in handed_in.items():
        try:
            made, line = page.read(path)
        except ScaleoutError as error:
            print(f"{name}: {error}")
            continue
        rows.append([name, *page.row(made), "; ".join(_broken(made, line)) or "holds"])
    return page.class_table(rows)
