"""What was measured, as one page: the comparisons, sweeps and seeds in a folder of results, with
what speaks against them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from .. import __version__, jsonlines
from ..errors import ScaleoutError
from ..paths import show
from . import evidence, findings, page, rules

PAGE = "report.html"


def report(
    folder: Path | str | None = None,
    *,
    again: Path | str | None = None,
    out: Path | str | None = None,
    check: bool = False,
    accuracy: str = "accuracy",
    say: Callable[[str], None] = print,
) -> int:
    """Write the report of a folder, or draw the one that a page holds anew.

    Parameters
    ----------
    folder : Path or str, optional
        Where `compare` and `sweep` left their results.
    again : Path or str, optional
        A report's page, in place of a folder.
    out : Path or str, optional
        The page, or Markdown where its name ends in .md; FOLDER/report.html, or the page itself,
        if you name none.
    check : bool
        Say what the report must still hold; with `again`, write nothing unless `out` is given.
    accuracy : str
        The metric of the records that says how good a training is.
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
        report in it, or the page is no report.
    """
    if (folder is None) == (again is None):
        raise ScaleoutError(
            "Name a folder of results or, after --again, a page:  scaleout report results"
        )
    source = Path(again or folder or "")
    if again:
        text, found = page.read(source)
    elif source.is_dir():
        text, found = "", evidence.gather(source, accuracy, say=say)
    else:
        raise ScaleoutError(
            f"There is no folder {show(source)}: name the one that compare and sweep have "
            "written to, such as  scaleout report results"
        )
    broken = _broken(text, found)
    if out or not (again and check):
        target = Path(out or (source if again else source / PAGE))
        markdown = target.suffix == ".md"
        target.write_text(page.markdown(found) if markdown else page.draw(found), encoding="utf-8")
        say(f"Written: {show(target)}")
    if check:
        for one in broken:
            say(f"Refused. {one}")
        gain = "" if findings.claim(findings.steps(found)) else " It claims no gain."
        say(f"{len(broken)} to mend." if broken else f"It holds: every rule is kept.{gain}")
    return 1 if check and broken else 0


def _broken(text: str, found: evidence.Entry) -> list[str]:
    """Say which rules a report breaks, and what its page shows that its records do not give."""
    broken = rules.refusals(found)
    if text and (line := page.forged(text, found)):
        wrote = found["scaleout"]
        why = (
            f"Figures follow from the runs: the page shows what its records do not give ({line})."
            if wrote == __version__
            else f"The page is drawn by another version, scaleout {wrote}."
        )
        broken.insert(0, f"{why} Draw it anew:  scaleout report --again PAGE")
    return broken


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
            text, found = page.read(path)
        except ScaleoutError as error:
            print(f"{name}: {error}")
            continue
        rows.append([name, *page.row(found), "; ".join(_broken(text, found)) or "holds"])
    return page.class_table(rows)
