"""A report as one HTML page that needs nothing else, and as Markdown; its records are in the page."""

import html
import json
import math
import re
import shlex
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import show
from ..base.words import count, markdown_table, percent, rounded
from ..comparisons import comparison
from ..jobs.environment import exports, thread_variables
from ..plots.look import DARK, GREY, INK, PALE
from . import findings, rules
from .evidence import SCHEMA, Entry
from .findings import Accuracy, Claim, Step

# h2, p, list, table (its columns, then its rows), code, chart, fold (a title, then code), notes
Block = tuple[str, Any]
BEGIN, END = '<script type="application/json" id="records">', "</script>"


def blocks(report: Entry) -> list[Block]:
    """Arrange the whole report in order: a heading, sentences, tables, code."""
    found = findings.steps(report)
    said = findings.claim(found)
    tested = findings.accuracy(report, found)
    broken = rules.refusals(report)
    held: list[Block] = [("h2", "What it still lacks"), ("list", broken)]
    return [
        ("p", _claimed(found, said)),
        *([("p", _accurate(tested))] if tested else []),
        *(held if broken else []),
        *([("h2", "In our own words"), ("notes", report["notes"])] if report.get("notes") else []),
        ("h2", "The machine and its limits"),
        ("table", [["what", "here"], *report["machine"]["about"]]),
        ("h2", "The baseline, twice"),
        ("p", "In each round the baseline ran twice. Two identical variants could differ by as much as "
         "the noise says, and no smaller gain is called one."),
        ("table", [["comparison", "baseline", "first", "again", "ratio", "95 % interval", "noise"],
                   *map(_twice, found)]),
        ("h2", "The steps"),
        ("chart", found),
        ("table", _steps(report, found)),
        *_diffs(report, found),
        ("h2", "What did not help"),
        *_no_help(found),
        ("h2", "Accuracy"),
        *_accuracy(report, tested),
        ("h2", "What it cost"),
        *_cost(report, found, said),
        ("h2", "The best command"),
        *_command(report, found, said),
        ("h2", "How it was measured"),
        *_how(report, found),
    ]  # fmt: skip


def _claimed(found: Sequence[Step], said: Claim) -> str:
    if said is None:
        baseline = findings.judged(found).found.baseline
        return f"Nothing that was tried is shown to be faster than the baseline, {baseline}."
    ratio = said[0].found.ratio(said[1])
    return (
        f"{said[1]} is {ratio.middle:.2f} times as fast as {said[0].found.baseline} "
        f"({ratio.low:.2f} to {ratio.high:.2f} at 95 %, {count(ratio.rounds, 'round')})."
    )


def _accurate(tested: Accuracy) -> str:
    gap = f"{tested.difference:+.2g} ({tested.low:+.2g} to {tested.high:+.2g})"
    over = f"Accuracy over {count(len(tested.seeds), 'seed')}, {tested.best}"
    if not tested.told:
        return f"{over} minus {tested.baseline}: {gap}; no command tells which is the baseline's."
    low, high = (-tested.high, -tested.low) if tested.lower else (tested.low, tested.high)
    end = f"no difference is shown, and it could be {abs(low):.2g} worse."
    if low == high == 0:
        end = "with each seed both gave the same figure, to the digits that were printed."
    if low > 0 or high < 0:
        end = "it is better." if low > 0 else "it is worse."
    return f"{over} against {tested.baseline}: {gap}: {end}"


def _twice(step: Step) -> list[str]:
    one = step.found
    first, again = one.table["median"].iloc[:2]
    return [
        str(step.number),
        one.baseline,
        f"{rounded(first)} {one.unit}".strip(),
        f"{rounded(again)} {one.unit}".strip(),
        f"{one.found.null.middle:.2f}",
        _interval(one.found.null),
        percent(one.noise) if math.isfinite(one.noise) else "unknown",
    ]


def _interval(ratio: Any) -> str:
    known = math.isfinite(ratio.high) and math.isfinite(ratio.low) and ratio.rounds >= 3
    return f"{ratio.low:.2f} to {ratio.high:.2f}" if known else "too few rounds"


def _steps(report: Entry, found: Sequence[Step]) -> list[list[str]]:
    """List each variant with its ratio, the guess where somebody wrote one down, and its cost."""
    guessed = any("guess" in step.entry for step in found)
    head = ["comparison", "variant", "median", "times as fast", *(["guess"] if guessed else [])]
    rows = [[*head, "interval", "rounds", "verdict", "core-seconds of a job"]]
    for step in found:
        one, before = step.found, _core_seconds(report, step, step.found.baseline)
        for name in one.variants:
            ratio, last = one.ratio(name), name == one.variants[-1]
            guess = f"{step.entry['guess']:.2f}" if "guess" in step.entry and last else ""
            median = f"{rounded(one.table['median'][name])} {one.unit}".strip()
            row = [
                str(step.number),
                name,
                median,
                f"{ratio.middle:.2f}",
                *([guess] if guessed else []),
            ]
            after = _core_seconds(report, step, name)
            told = [_interval(ratio), str(ratio.rounds), one.verdict(name), f"{before} → {after}"]
            rows.append([*row, *told])
    return rows


def _core_seconds(report: Entry, step: Step, name: str) -> str:
    took = findings.seconds(step, name) * findings.cores(report, step.setting(name))
    return rounded(took) if math.isfinite(took) else "unknown"


def _diffs(report: Entry, found: Sequence[Step]) -> list[Block]:
    """Show what each variant changes in the script of its baseline, folded."""
    said: list[Block] = []
    for step in found:
        for name in step.found.variants:
            lines = findings.diff(report, step.baseline, step.setting(name))
            more, less = findings.size(lines)
            about = f"{count(more, 'line')} added to the script, {less} removed"
            if lines:
                said.append(
                    ("fold", [f"Comparison {step.number}, {name}: {about}", "\n".join(lines)])
                )
    return said


def _no_help(found: Sequence[Step]) -> list[Block]:
    said = [
        f"Comparison {step.number}: {step.found.sentence(name)}"
        for step in found
        for name in step.found.variants
        if step.found.verdict(name) != "faster"
    ]
    return [("list", said)] if said else [("p", "All that was tried helped.")]


def _accuracy(report: Entry, tested: Accuracy | None) -> list[Block]:
    test = report["accuracy"]
    if not test:
        return [("p", "It was not measured.")]
    rows = []
    for name, label in findings.labels(test).items():
        own = findings.by_seed(test, name)
        figures = [f"{own[seed]:.4g}" if seed in own else "missing" for seed in test["seeds"]]
        rows.append([label, *figures, f"{statistics.fmean(own.values()):.4g}" if own else ""])
    about = f"The figure is {test['metric']}; {'less' if test['lower'] else 'more'} is better."
    if tested:
        about += (
            f" The interval of the difference is Student's t of {len(tested.seeds)} differences, seed "
            "by seed, at 95 %."
        )
    head = ["variant", *(f"seed {seed}" for seed in test["seeds"]), "mean"]
    return [("p", about), ("table", [head, *rows])]


def _cost(report: Entry, found: Sequence[Step], said: Claim) -> list[Block]:
    step = said[0] if said else findings.judged(found)
    rows = []
    for name in dict.fromkeys([step.found.baseline, said[1] if said else step.found.baseline]):
        took, held = findings.seconds(step, name), findings.cores(report, step.setting(name))
        known = math.isfinite(took)
        cells = [rounded(took), str(held), rounded(took * held)] if known else ["unknown"] * 3
        rows.append([name, *cells])
    jobs, spent = findings.core_seconds(report)
    all_ = f"This report rests on {count(jobs, 'job')}, which held {rounded(spent)} core-seconds."
    return [("table", [["a job of", "seconds", "cores", "core-seconds"], *rows]), ("p", all_)]


def _command(report: Entry, found: Sequence[Step], said: Claim) -> list[Block]:
    step = said[0] if said else findings.judged(found)
    setting = step.setting(said[1] if said else step.found.baseline)
    ranks, threads = setting["ranks"], setting["threads"]
    variables = {**thread_variables(threads), **setting["env"]}
    lines = [
        "#!/bin/sh",
        f"#SBATCH --nodes=1 --ntasks={ranks} --cpus-per-task={threads}",
        *exports(variables),
        f"mpirun -n {ranks} -bind-to core:{threads} {shlex.join(setting['words'])}",
    ]
    about = "Start it with sh, in the folder of your script, or hand it to Slurm with sbatch."
    return [("p", about), ("code", "\n".join(lines))]


def _how(report: Entry, found: Sequence[Step]) -> list[Block]:
    said: list[Block] = []
    for step in found:
        days = sorted({str(row["utc"])[:10] for row in step.entry["rows"]})
        day = " to ".join(dict.fromkeys([days[0], days[-1]]))
        better = "less" if step.found.lower else "more"
        about = (
            f"Comparison {step.number}, {day}, judged by {step.found.metric} ({better} is better)."
        )
        said += [("p", " ".join([about, *step.found.notes])), ("code", step.entry["line"])]
    versions = ", ".join(f"{name} {text}" for name, text in report["versions"].items())
    closing = (
        "A ratio is the mean of the rounds' own ratios. Its interval is Student's t of their "
        "logarithms at 95 %, wider for several variants, so that all hold at once (Bonferroni). "
        f"{f'Versions: {versions}. ' if versions else ''}Written by scaleout {report['scaleout']}. "
        "The records of all runs are in this page:  scaleout report --again PAGE --check  draws it "
        "anew from them, and says whether it holds. No check finds out that somebody made up the records "
        "of all runs and drew the page from them."
    )
    return [*said, ("p", closing)]


def chart(found: Sequence[Step]) -> str:
    """Draw every variant as a row: its ratio with the interval, over the noise."""
    rows = [(step, name) for step in found for name in step.found.variants]
    ratios = [step.found.ratio(name) for step, name in rows]
    low = 0.98 * min(0.9, *(max(ratio.low, ratio.middle / 2) for ratio in ratios))
    high = 1.02 * max(1.1, *(min(ratio.high, 2 * ratio.middle) for ratio in ratios))

    def x(value: float) -> float:
        return 270 + 470 * (min(max(value, low), high) - low) / (high - low)

    bottom = 22 + 34 * len(rows)
    bands, parts = [], []
    for place, (step, name) in enumerate(rows):
        y, ratio, noise = 22 + 34 * place, step.found.ratio(name), step.found.noise
        label = f"{step.number}: {name}"
        label = label if len(label) < 37 else f"{label[:35]}…"
        sure = step.found.verdict(name) in ("faster", "slower")
        if math.isfinite(noise):
            left, right = x(1 / (1 + noise)), x(1 + noise)
            bands.append(f'<rect x="{left:.1f}" y="{y - 15}" width="{right - left:.1f}" height="30" '
                         f'fill="{PALE}"/>')  # fmt: skip
        parts.append(f'<text x="0" y="{y + 5}">{html.escape(label)}</text>')
        if ratio.rounds >= 3:
            parts.append(f'<path d="M{x(ratio.low):.1f} {y}H{x(ratio.high):.1f}" stroke="{DARK}" '
                         'stroke-width="3"/>')  # fmt: skip
        parts.append(f'<circle cx="{x(ratio.middle):.1f}" cy="{y}" r="6" stroke="{DARK}" '
                     f'stroke-width="2" fill="{DARK if sure else "#fff"}"/>')  # fmt: skip
        parts.append(f'<text x="{x(ratio.middle):.1f}" y="{y - 9}" text-anchor="middle" '
                     f'class="value">{ratio.middle:.2f}</text>')  # fmt: skip
    step_ = next(
        s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 50) if (high - low) / s < 8 or s == 50
    )
    ticks = [n * step_ for n in range(math.ceil(low / step_), math.floor(high / step_) + 1)]
    for tick in ticks:
        parts.append(
            f'<text x="{x(tick):.1f}" y="{bottom + 12}" text-anchor="middle">{tick:g}</text>'
        )
    bands.append(f'<path d="M{x(1):.1f} 4V{bottom - 6}" stroke="{GREY}" stroke-dasharray="5 4"/>')
    about = "times as fast (filled: faster or slower; band: the noise)"
    parts.append(f'<text x="505" y="{bottom + 34}" text-anchor="middle">{about}</text>')
    words = " ".join(
        f"Comparison {step.number}, {name}: {ratio.middle:.2f} ({_interval(ratio)})."
        for (step, name), ratio in zip(rows, ratios, strict=True)
    )
    return (
        f'<svg viewBox="0 0 760 {bottom + 44}" role="img" fill="{INK}" font-size="14" '
        f'aria-label="{html.escape(words)}">{"".join(bands + parts)}</svg>'
    )


def draw(report: Entry) -> str:
    """Draw the page: nothing but its records decides what it shows."""
    records = json.dumps(report).replace("<", "\\u003c")
    return _page("What was measured", blocks(report), f"{BEGIN}{records}{END}")


def _page(title: str, what: Sequence[Block], records: str = "") -> str:
    body = "\n".join(_html(*block) for block in [("h1", title), *what])
    return f"{HEAD.replace('TITLE', title)}<main>\n{body}\n</main>\n{records}\n</body>\n</html>\n"


def row(report: Entry) -> list[str]:
    """Describe one report for the table of a class.

    The cells are the machine, what was reached, by which steps, and how accurate it is.
    """
    found = findings.steps(report)
    said = findings.claim(found)
    tested = findings.accuracy(report, found)
    helped = [
        f"{name} {step.found.ratio(name).middle:.2f}"
        for step in found
        for name in step.found.variants
        if step.found.verdict(name) == "faster"
    ]
    about = report["machine"]
    return [
        f"{about['cpu']}, {count(about['cores'], 'core')}",
        _claimed(found, said),
        "; ".join(helped) or "none",
        _accurate(tested) if tested else "not measured",
    ]


def class_table(rows: Sequence[Sequence[str]]) -> str:
    """Put the reports of a class on one page."""
    head = ["attendee", "machine", "reached", "steps that helped", "accuracy", "check"]
    about = f"{count(len(rows), 'report')}. Each line is computed from the records in the report."
    return _page("What a class reached", [("p", about), ("table", [head, *rows])])


def _html(kind: str, what: Any) -> str:
    if kind == "chart":
        return f'<div tabindex="0">{chart(what)}</div>'
    if kind == "list":
        return f"<ul>{''.join(f'<li>{html.escape(one)}</li>' for one in what)}</ul>"
    if kind == "notes":
        return _own_words(what)
    if kind == "fold":
        title, code = map(html.escape, what)
        return f"<details><summary>{title}</summary><pre>{code}</pre></details>"
    if kind == "code":
        # A browser would break  --batch  after its first dash.
        options = re.sub(r"(?<!\S)-\S+", r"<span>\g<0></span>", html.escape(what))
        return f"<pre>{options}</pre>"
    if kind != "table":
        return f"<{kind}>{html.escape(what)}</{kind}>"
    head, *rows = [[html.escape(cell) for cell in row] for row in what]
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div tabindex="0">{table}</div>'  # it scrolls on a phone, also by keys


def _own_words(text: str) -> str:
    """Draw an attendee's Markdown: no HTML, link or image of theirs comes through."""
    from markdown_it import MarkdownIt  # only here: few reports have notes

    known = ["emphasis", "backticks", "escape", "newline", "list", "heading", "code", "fence"]
    tokens = (reader := MarkdownIt("zero").enable(known)).parse(text)
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = "h3"  # below the page's own
    return str(reader.renderer.render(tokens, reader.options, {})).strip()


def markdown(report: Entry) -> str:
    """Write the same report for a note or a merge request, without the picture and the records."""
    return "# What was measured\n\n" + "\n\n".join(
        text for kind, what in blocks(report) if (text := _markdown(kind, what))
    ) + "\n"  # fmt: skip


def _markdown(kind: str, what: Any) -> str:
    if kind == "chart":
        return ""
    if kind == "list":
        return "\n".join(f"- {_safe(one)}" for one in what)
    if kind == "notes":
        return html.escape(str(what), quote=False).strip()
    if kind == "fold":
        return f"{_safe(what[0])}:\n\n{_markdown('code', what[1])}"
    if kind == "code":
        return "\n".join(f"    {line}" for line in what.splitlines())
    if kind == "table":
        head, *rows = [[_safe(cell) for cell in row] for row in what]
        return markdown_table(head, rows)
    return f"{'## ' if kind == 'h2' else ''}{_safe(what)}"


def _safe(text: str) -> str:
    """Escape words so that Markdown and HTML take them as they are."""
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", " ".join(html.escape(text, quote=False).split()))


def read(path: Path) -> tuple[str, Entry]:
    """Read a page and the records in it; ScaleoutError where it is no report."""
    try:
        text = jsonlines.text(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ScaleoutError(f"{show(path)} cannot be read ({why}).") from None
    try:
        report = json.loads(text.partition(BEGIN)[2].partition(END)[0])
        rows = [row for one in report["comparisons"] for row in one["rows"]]
        if report["schema"] != SCHEMA or any(map(comparison.wrong, rows)):
            raise ValueError
        draw(report)  # which takes whatever it needs
    except (ScaleoutError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError):  # fmt: skip
        raise ScaleoutError(
            f"{show(path)} is no report, or its records are damaged: write it anew with  "
            "scaleout report FOLDER"
        ) from None
    return text, report


def own_words(path: Path) -> str:
    """Read an attendee's notes; ScaleoutError where they cannot be read."""
    try:
        return jsonlines.text(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ScaleoutError(
            f"{show(path)} cannot be read ({why}): name your notes, in Markdown."
        ) from None


def forged(text: str, report: Entry) -> str:
    """Find the first line of a page that its records do not give; "" for an honest one."""
    own = draw(report)
    if text.strip() == own.strip():
        return ""
    pairs = zip(text.splitlines(), own.splitlines(), strict=False)
    line = next((shown for shown, drawn in pairs if shown != drawn), "")
    return re.sub(r"<[^>]*>", " ", line).strip()[:80] or "its last lines"


HEAD = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>TITLE</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }}
h1 {{ font-size: 1.6rem; margin-bottom: .4rem }}
h1 + p {{ font-size: 1.25rem; font-weight: 600; border-left: .3rem solid {DARK}; padding-left: .8rem }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .4rem; break-after: avoid }}
h3 {{ font-size: 1rem; margin: 1rem 0 .4rem; break-after: avoid }}
summary {{ cursor: pointer; margin: .3rem 0 }}
table {{ border-collapse: collapse; margin: .6rem 0; font-size: .9rem }}
th, td {{ border-bottom: 1px solid #bbb; padding: .25rem .6rem .25rem 0; text-align: left;
         vertical-align: top }}
td {{ min-width: 5.4em; overflow-wrap: anywhere }}
th {{ border-bottom: 2px solid {DARK} }}
div {{ overflow-x: auto }}
li {{ overflow-wrap: anywhere; margin: .2rem 0 }}
pre {{ background: #f6f6f4; padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere }}
pre span {{ display: inline-block }}
svg {{ width: 100%; min-width: 32rem; height: auto; font-family: inherit; margin: .6rem 0 }}
.value {{ font-size: 12px; paint-order: stroke; stroke: #fff; stroke-width: 4px }}
@media print {{
  body {{ font-size: 10.5pt; margin: 0; max-width: none; padding: 0 }}
  div {{ overflow: visible }}
  svg {{ min-width: 0 }}
  table {{ font-size: .82rem }}
  tr, svg, pre, li {{ break-inside: avoid }}
  p:has(+ pre) {{ break-after: avoid }}
  thead {{ display: table-header-group }}
  * {{ print-color-adjust: exact }}
}}
</style>
</head>
<body>
"""
