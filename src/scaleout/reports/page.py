"""A report as one HTML page that needs nothing else, and as Markdown; its records are in the page."""

import html
import math
import re
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import count, markdown_table, percent, rounded, secret
from ..jobs.environment import exports, thread_variables
from ..measuring.metric import Metric
from ..plots.look import DARK
from . import findings, rules
from .chart import chart, interval
from .evidence import SCHEMA, Evidence, Measured
from .findings import Accuracy, Findings, Step

BEGIN, END = '<script type="application/json" id="records">', "</script>"
TITLE = "What was measured"


@dataclass(frozen=True)
class Block:
    """A piece of a page: HTML and Markdown are made of the same."""

    kind: Literal["h2", "p", "list", "table", "code", "chart", "fold", "notes"]
    text: str = ""
    items: Sequence[str] = ()  # of a list
    rows: Sequence[Sequence[str]] = ()  # of a table, its head first
    code: str = field(default="", repr=False)  # of a fold


class _Version(msgspec.Struct):
    schema: int


def blocks(report: Findings) -> Iterator[Block]:
    """Arrange the whole report in order: a heading, sentences, tables, code."""
    yield Block("p", _claimed(report))
    for sentence in _beneath(report):
        yield Block("p", sentence)
    if report.accuracy:
        yield Block("p", _accurate(report.accuracy))
    if report.refusals:
        yield Block("h2", "What it still lacks")
        yield Block("list", items=report.refusals)
    if report.remarks:
        yield Block("h2", "What a reader would ask")
        yield Block("list", items=report.remarks)
    if report.points:
        yield Block("h2", "Its points")
        yield Block("p", POINTS)
        yield Block("table", rows=[["row", "by the check", "as", "by eye"], *_points(report)])
    if report.evidence.notes:
        yield Block("h2", "In our own words")
        yield Block("notes", report.evidence.notes)
    yield Block("h2", "The machine and its limits")
    yield Block("table", rows=[["what", "here"], *report.evidence.machine.about])
    yield Block("h2", "The baseline, twice")
    yield Block(
        "p",
        "In each round the baseline ran twice. Two identical variants could differ by as much as "
        "the noise says, and no smaller gain is called one.",
    )
    yield Block("table", rows=[TWICE, *map(_twice, report.steps)])
    yield Block("h2", "The steps")
    yield Block("chart", chart(report.steps))
    yield Block("table", rows=_steps(report))
    yield Block(
        "p",
        "Medians and core-seconds are of single jobs, their start included in the core-seconds. A ratio "
        "is of the rounds, so that two medians need not divide to it.",
    )
    yield Block("table", rows=_changes(report))
    yield from _diffs(report)
    yield from _profile(report)
    yield Block("h2", "What did not help")
    yield _no_help(report)
    yield Block("p", " ".join([*findings.attempts(report), *_others(report)]))
    yield Block("h2", "Accuracy")
    yield from _accuracy(report)
    yield Block("h2", "What it cost")
    yield from _cost(report)
    yield Block("h2", "The best command")
    yield from _command(report)
    yield Block("h2", "How it was measured")
    yield from _how(report)
    yield from _texts(report)


def _claimed(report: Findings) -> str:
    step = report.judged.step
    if report.claim is None:
        none = f"Nothing that was tried is shown to be faster than the baseline, {step.comparison.baseline}."
        others = [
            f"In comparison {one.step.number}, {one.name} is faster than {one.step.comparison.baseline}, "
            "which is not the baseline of this page."
            for one in findings.elsewhere(report)
        ]
        return " ".join([none, *others])
    ratio = report.claim.ratio
    return (
        f"{report.claim.name} is {ratio.middle:.2f} times as fast as {step.comparison.baseline} "
        f"({ratio.low:.2f} to {ratio.high:.2f} at 95 %, {count(ratio.rounds, 'round')})."
    )


def _beneath(report: Findings) -> Iterator[str]:
    """Say what the claim's number alone would hide."""
    best, clock = report.claim, report.clock
    if best is None:
        return
    first = best.step.comparison.baseline
    if clock:
        outside = ""
        if clock.outside:
            before, after = map(rounded, clock.outside)
            outside = (
                f": start, imports and all else that the script does not time are {before} s in a job of "
                f"{first}, and {after} s in one of {best.name}"
            )
        yield (
            f"Two clocks: {best.step.comparison.metric}, which the script takes itself, "
            f"{best.ratio.middle:.2f}; whole jobs, timed from outside, {clock.ratio.middle:.2f} "
            f"({interval(clock.ratio)}){outside}."
        )
    if work := findings.work_differs(best.step, best.name):
        yield f"The work is not the same: {work}."
    held = [best.step.cost(name)[1] for name in (first, best.name)]
    if held[0] < held[1]:
        yield f"It holds {count(held[1], 'core')}, and {first} {held[0]}."


POINTS = (
    "Each row is worth two points: one by the check, and one by whoever reads the page and answers "
    "the question. The check sees slips, and edits of one place; it does not see what the question asks."
)


def _points(report: Findings) -> Iterator[list[str]]:
    return ([one.name, str(int(one.given)), one.why, one.look] for one in report.points)


def _accurate(tested: Accuracy) -> str:
    gap = f"{tested.difference:+.2g} ({tested.low:+.2g} to {tested.high:+.2g})"
    metric = tested.metric.isidentifier() and tested.metric != "accuracy"
    gap += f" of {tested.metric}" * metric
    over = f"Accuracy over {count(len(tested.seeds), 'seed')}, {tested.best}"
    if not tested.known:
        return f"{over} minus {tested.baseline}: {gap}; no command tells which is the baseline's."
    low, high = (-tested.high, -tested.low) if tested.lower else (tested.low, tested.high)
    end = f"no difference is shown, and it could be {abs(low):.2g} worse."
    if low == high == 0:
        end = "with each seed both gave the same figure, to the digits that were printed."
    if low > 0 or high < 0:
        end = "it is better." if low > 0 else "it is worse."
    return f"{over} against {tested.baseline}: {gap}: {end}"


TWICE = ["comparison", "baseline", "once", "again", "ratio", "95 % interval", "noise"]


def _twice(step: Step) -> list[str]:
    one = step.comparison
    first, again = one.table["median"].iloc[:2]
    return [
        str(step.number),
        one.baseline,
        f"{rounded(first)} {one.unit}".strip(),
        f"{rounded(again)} {one.unit}".strip(),
        f"{one.found.null.middle:.2f}",
        interval(one.found.null),
        percent(one.noise) if math.isfinite(one.noise) else "unknown",
    ]


def _steps(report: Findings) -> list[list[str]]:
    """List each variant with its ratio, the guess where somebody wrote one down, and its cost."""
    guessed = ["guess"] * any(step.measured.guess is not None for step in report.steps)
    head = ["comparison", "variant", "median", "times as fast", *guessed]
    head += ["interval", "rounds", "verdict", "core-seconds of a job"]
    return [
        head,
        *(_step(s, name, bool(guessed)) for s in report.steps for name in s.comparison.variants),
    ]


def _step(step: Step, name: str, guessed: bool) -> list[str]:
    one, ratio, guess = step.comparison, step.comparison.ratio(name), step.measured.guess
    of_last = ""
    if guess is not None and name == one.variants[-1]:
        of_last = f"{guess:.2f}{', too late' * step.measured.late}"
    before, after = (math.prod(step.cost(which)) for which in (one.baseline, name))
    return [
        str(step.number),
        name,
        f"{rounded(one.table['median'][name])} {one.unit}".strip(),
        f"{ratio.middle:.2f}",
        *([of_last] if guessed else []),
        interval(ratio),
        str(ratio.rounds),
        one.verdict(name),
        f"{_known(before)} → {_known(after)}",
    ]


def _known(value: float) -> str:
    return rounded(value) if math.isfinite(value) else "unknown"


def _changes(report: Findings) -> list[list[str]]:
    """List what each variant changes, by value, and what the notes say of it."""
    notes, rows = report.evidence.notes, []
    for step in report.steps:
        for name in step.comparison.variants:
            before, after = step.baseline, step.setting(name)
            one, other = findings.settings_of(before), findings.settings_of(after)
            told = [
                what if what.startswith("the file ")
                else ": ".join(filter(None, [what, findings.touched(report.evidence.texts, before, after)]))
                if what == "the script"
                else f"{what}: {one.get(what, 'not there')} → {other.get(what, 'not there')}"
                for what in findings.changes(before, after)
            ]  # fmt: skip
            held = f"{after.ranks} x {after.threads}"
            why = findings.reason(notes, name)
            rows.append([str(step.number), name, step.comparison.baseline, held,
                         "; ".join(told) or "nothing", why])  # fmt: skip
    head = [
        "comparison",
        "variant",
        "against",
        "ranks x threads",
        "what it changes",
        "why, by its authors",
    ]
    keep = len(head) if any(row[-1] for row in rows) else len(head) - 1
    return [row[:keep] for row in [head, *rows]]


def _profile(report: Findings) -> Iterator[Block]:
    """Show where the time of the claim's jobs went, on each rank, where their records tell it."""
    step = report.judged.step
    columns = [
        (f"{name}, rank {rank}", spent)
        for name in dict.fromkeys([step.comparison.baseline, report.shown])
        for rank, spent in enumerate(step.setting(name).profile)
    ]
    if not columns:
        return
    parts = dict.fromkeys(part for _, spent in columns for part in spent)
    rows = [
        [
            part,
            *(f"{rounded(spent.get(part, 0.0))} s ({_share(part, spent)})" for _, spent in columns),
        ]
        for part in parts
    ]
    yield Block("h2", "Where the time went")
    yield Block("p", "By the scripts' own records, in the median of all runs.")
    yield Block("table", rows=[["part", *(name for name, _ in columns)], *rows])


def _share(part: str, spent: Mapping[str, float]) -> str:
    whole = sum(spent.values())
    return percent(spent.get(part, 0.0) / whole) if whole else "0 %"


def _diffs(report: Findings) -> Iterator[Block]:
    """Show what each variant changes in the script of its baseline, folded, and each text once."""
    shown: set[str] = set()
    for step in report.steps:
        for name in step.comparison.variants:
            if (text := step.setting(name).text) in shown:
                continue
            shown |= {text} - {""}
            lines = findings.diff(report.evidence, step.baseline, step.setting(name))
            signs = [line[:1] for line in lines[2:]]  # the first two name the files
            more = count(signs.count("+"), "line")
            about = f"{more} added to the script, {signs.count('-')} removed"
            if lines:
                title = f"Comparison {step.number}, {name}: {about}"
                yield Block("fold", title, code="\n".join(lines))


def _no_help(report: Findings) -> Block:
    items = [
        f"Comparison {one.step.number}: {one.step.comparison.sentence(one.name)} {_why(one)}".strip()
        for one in findings.unhelpful(report)
    ]
    return Block("list", items=items) if items else Block("p", "All that was tried helped.")


def _why(one: findings.Unhelpful) -> str:
    if one.taken_back:
        return f"It was taken back: {f'{one.name} {one.reason}' if one.reason else 'the notes do not say why'}"
    return one.reason


def _accuracy(report: Findings) -> Iterator[Block]:
    test, tested = report.evidence.accuracy, report.accuracy
    if test is None:
        yield Block("p", "It was not measured.")
        return
    head = ["variant", *(f"seed {seed}" for seed in test.seeds), "mean"]
    rows = [
        [
            report.labels[name],
            *(f"{by_seed[seed]:.4g}" if seed in by_seed else "missing" for seed in test.seeds),
            f"{statistics.fmean(by_seed.values()):.4g}" if by_seed else "",
        ]
        for name, by_seed in report.figures.items()
    ]
    about = f"The figure is {test.metric}; {'less' if test.lower else 'more'} is better."
    if tested:
        about += (
            f" The interval of the difference is Student's t of {len(tested.seeds)} differences, seed "
            "by seed, at 95 %."
        )
    yield Block("p", about)
    yield Block("table", rows=[head, *rows])
    if report.beside and tested:
        names = [tested.baseline, tested.best]
        more = [
            [one.name, f"{one.before:.3g}", f"{one.after:.3g}",
             f"{one.difference:+.2g} ({one.low:+.2g} to {one.high:+.2g})"]
            for one in report.beside
        ]  # fmt: skip
        yield Block("p", "Further figures of the same test, in the mean of the same seeds:")
        yield Block("table", rows=[["figure", *names, "difference"], *more])
    ends = (tested.base, tested.other) if tested else ()
    for row in test.rows:
        if row.worst and tested and row.variant in ends and str(row.seed) == tested.seeds[0]:
            cases = ", ".join(f"{name} {value:.3g}" for name, value in row.worst.items())
            yield Block(
                "p", f"The worst of seed {row.seed}, {report.labels[row.variant]}: {cases}."
            )


def _others(report: Findings) -> list[str]:
    """Say how many comparisons the folder holds in all."""
    more, shown = report.evidence.others, len(report.steps)
    whole = count(shown + len(report.evidence.left) + more, "comparison")
    return [f"Its folder holds {whole}{f', {more} of them of other programs' * bool(more)}."]


def _cost(report: Findings) -> Iterator[Block]:
    step = report.judged.step
    costs = {name: step.cost(name) for name in (step.comparison.baseline, report.shown)}
    rows = [
        [name, _known(took), str(held) if math.isfinite(took) else "unknown", _known(took * held)]
        for name, (took, held) in costs.items()
    ]
    yield Block("table", rows=[["a job of", "seconds", "cores", "core-seconds"], *rows])
    held = f"which held {rounded(report.core_seconds)} core-seconds"
    yield Block("p", f"This report rests on {count(report.jobs, 'job')}, {held}.")


def _command(report: Findings) -> Iterator[Block]:
    """Show the line that ran, with the variables that it had."""
    step, name = report.judged.step, report.shown
    setting = step.setting(name)
    unset = (
        step.measured.swept and name == step.comparison.baseline
    )  # a sweep's default sets nothing
    variables = {**({} if unset else thread_variables(setting.threads)), **setting.env}
    line = setting.command or f"mpirun -n {setting.ranks} {shlex.join(setting.words)}"
    # Numbers of CPUs are those of one machine, and of one hour.
    line = re.sub(r"-bind-to '?user:\S+", f"-bind-to core:{setting.threads}", line)
    hidden = [f'export {key}="${{{key}:?}}"' for key in variables if secret(key)]
    public = {key: value for key, value in variables.items() if not secret(key)}
    about = "Start it with sh, in the folder of your script."
    if setting.modules:
        about = f"Start it with sh, in a folder that also holds {', '.join(setting.modules)}."
    if (nodes := setting.placed.get("nodes", "1")) != "1":
        about += f" It ran on {nodes} nodes."
    yield Block("p", about)
    yield Block("code", "\n".join(["#!/bin/sh", *exports(public), *hidden, line]))


def _how(report: Findings) -> Iterator[Block]:
    for step in report.steps:
        days = sorted({row.utc[:10] for row in step.measured.rows})
        day = " to ".join(dict.fromkeys([days[0], days[-1]]))
        better = "less" if step.comparison.lower else "more"
        about = f"Comparison {step.number}, {day}, judged by {step.comparison.metric} ({better} is better)."
        if step.measured.work:
            what, _, lengths = step.measured.work.partition("=")
            about += (
                f" These are the seconds that {what} of {lengths.replace(',', ' and ')} differ by."
            )
        yield Block("p", " ".join([about, *step.comparison.notes]))
        yield Block("code", _again(step.measured))
    installed = report.evidence.versions
    versions = ", ".join(f"{name} {text}" for name, text in installed.items())
    wider = ""
    if report.tried > 1:
        wider = f", wider as this page tries {report.tried} variants, so that all hold at once (Bonferroni)"
    yield Block(
        "p",
        "A ratio is the mean of the rounds' own ratios. Its interval is Student's t of their "
        f"logarithms at 95 %{wider}. "
        f"{f'Versions: {versions}. ' if versions else ''}Written by scaleout {report.evidence.scaleout}. "
        "The records of all runs are in this page:  scaleout report --again PAGE --check  draws it "
        "anew from them, and says whether it holds. No check finds out that somebody made up the records "
        "of all runs and drew the page from them.",
    )


def _again(one: Measured) -> str:
    """Write what measures a comparison again: the line that was typed, or the same call in Python."""
    if one.typed or one.swept:
        return one.line
    ways = {
        name: {
            "script": setting.words, "ranks": setting.ranks, "threads": setting.threads,
            **{key: int(value) if value.isdecimal() else value
               for key, value in setting.placed.items()},
            **({"env": setting.env} if setting.env else {}),
        }
        for name, setting in one.variants.items()
    }  # fmt: skip
    asked: dict[str, object] = {"metric": one.metric}
    asked |= {"lower": True} if one.lower and not Metric(one.metric).lower else {}
    given = {
        "reduce": one.reduce,
        "rounds": one.rounds,
        "least": one.least,
        "work": one.work,
        "guess": one.guess,
    }
    asked |= {name: value for name, value in {**given, "name": one.name}.items() if value}
    each = "".join(f"    {name!r}: {way!r},\n" for name, way in ways.items())
    more = ", ".join(f"{name}={value!r}" for name, value in asked.items())
    return f"from scaleout import compare, run\n\ncompare(run, {{\n{each}}}, {more})"


def _texts(report: Findings) -> Iterator[Block]:
    """Show the whole texts of the scripts, and of what they import, folded."""
    found: dict[str, dict[str, None]] = {}  # the names of each text
    for step in report.steps:
        for setting in step.measured.variants.values():
            for name, key in {setting.script: setting.text, **setting.modules}.items():
                if name and key in report.evidence.texts:
                    found.setdefault(key, {})[name] = None
    if not found:
        return
    yield Block("h2", "The scripts, as they were measured")
    yield Block("p", "In a folder that holds these, each line above can be typed.")
    for key, names in found.items():
        yield Block("fold", " and ".join(names), code=report.evidence.texts[key])


def draw(report: Findings) -> str:
    """Draw the page: nothing but its records decides what it shows."""
    records = msgspec.json.encode(report.evidence).decode().replace("<", "\\u003c")
    return _page(TITLE, list(blocks(report)), f"{BEGIN}{records}{END}")


def _page(title: str, what: Sequence[Block], records: str = "") -> str:
    made = Environment(
        loader=PackageLoader("scaleout.reports", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"unbroken": _unbroken, "own_words": _own_words}
    return made.get_template("page.html").render(
        title=title, blocks=what, records=records, dark=DARK
    )


def row(report: Findings) -> list[str]:
    """Describe one report for the table of a class.

    The cells are the machine, what was reached, by which steps, and how accurate it is.
    """
    helped = [
        f"{name} {step.comparison.ratio(name).middle:.2f}"
        for step in report.steps
        for name in step.comparison.variants
        if step.comparison.verdict(name) == "faster"
    ]
    about = report.evidence.machine
    return [
        f"{about.cpu}, {count(about.cores, 'core')}",
        _claimed(report),
        "; ".join(helped) or "none",
        _accurate(report.accuracy) if report.accuracy else "not measured",
    ]


def class_table(rows: Sequence[Sequence[str]]) -> str:
    """Put the reports of a class on one page."""
    head = ["attendee", "machine", "reached", "steps that helped", "accuracy", "check"]
    about = f"{count(len(rows), 'report')}. Each line is computed from the records in the report."
    return _page("What a class reached", [Block("p", about), Block("table", rows=[head, *rows])])


def _unbroken(code: str) -> str:
    """Keep a browser from breaking  --batch  after its first dash."""
    return re.sub(r"(?<!\S)-\S+", r"<span>\g<0></span>", html.escape(code))


def _own_words(text: str) -> str:
    """Draw an attendee's Markdown: no HTML, link or image of theirs comes through."""
    from markdown_it import MarkdownIt  # only here: few reports have notes

    known = ["emphasis", "backticks", "escape", "newline", "list", "heading", "code", "fence"]
    tokens = (reader := MarkdownIt("zero").enable(known)).parse(text)
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = "h3"  # below the page's own
    return str(reader.renderer.render(tokens, reader.options, {})).strip()


def markdown(report: Findings) -> str:
    """Write the same report for a note or a merge request, without the picture and the records."""
    parts = [f"# {TITLE}", *filter(None, map(_markdown, blocks(report)))]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    if block.kind == "chart":
        return ""
    if block.kind == "list":
        return "\n".join(f"- {_safe(one)}" for one in block.items)
    if block.kind == "notes":
        return html.escape(block.text, quote=False).strip()
    if block.kind == "fold":
        return f"{_safe(block.text)}:\n\n{_indented(block.code)}"
    if block.kind == "code":
        return _indented(block.text)
    if block.kind == "table":
        head, *rows = [[_safe(cell) for cell in row] for row in block.rows]
        return markdown_table(head, rows)
    return f"{'## ' if block.kind == 'h2' else ''}{_safe(block.text)}"


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def _safe(text: str) -> str:
    """Escape words so that Markdown and HTML take them as they are."""
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", " ".join(html.escape(text, quote=False).split()))


def read(path: Path) -> tuple[Findings, str]:
    """Read a page's records, and find the first line that they do not give; "" for an honest one.

    ScaleoutError where it is no report.
    """
    text = _text(path, "name the page of a report")
    records = text.partition(BEGIN)[2].partition(END)[0].encode()
    anew = "write it anew with  scaleout report FOLDER"
    try:
        schema = msgspec.json.decode(records, type=_Version).schema
        report = (
            rules.judge(msgspec.json.decode(records, type=Evidence)) if schema == SCHEMA else None
        )
        drawn = draw(report) if report else ""  # which takes whatever it needs
    except (msgspec.MsgspecError, ScaleoutError, ArithmeticError, LookupError, RecursionError,
            ValueError):  # fmt: skip
        raise ScaleoutError(
            f"{show(path)} is no report, or its records are damaged: {anew}"
        ) from None
    if report is None:
        raise ScaleoutError(f"{show(path)} is a page of another form: {anew}")
    return report, _forged(text, drawn)


def own_words(path: Path) -> str:
    """Read an attendee's notes; ScaleoutError where they cannot be read."""
    return _text(path, "name your notes, in Markdown")


def _text(path: Path, next_: str) -> str:
    try:
        return jsonlines.text(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ScaleoutError(f"{show(path)} cannot be read ({why}): {next_}.") from None


def _forged(text: str, drawn: str) -> str:
    if text.strip() == drawn.strip():
        return ""
    pairs = zip(text.splitlines(), drawn.splitlines(), strict=False)
    line = next((one for one, other in pairs if one != other), "")
    return re.sub(r"<[^>]*>", " ", line).strip()[:80] or "its last lines"
