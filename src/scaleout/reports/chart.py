"""The picture of a report: every variant as a row, its ratio with the interval, over the noise."""

import html
import math
from collections.abc import Sequence

from ..comparisons.intervals import ROUNDS, Ratio
from ..plots.look import DARK, GREY, INK, PALE
from .findings import Step

TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 50)  # how far apart
LETTERS = 36  # of a label


def chart(steps: Sequence[Step]) -> str:
    """Draw the ratios of all variants as SVG."""
    rows = [(step, name) for step in steps for name in step.comparison.variants]
    ratios = [step.comparison.ratio(name) for step, name in rows]
    low = 0.98 * min(0.9, *(max(ratio.low, ratio.middle / 2) for ratio in ratios))
    high = 1.02 * max(1.1, *(min(ratio.high, 2 * ratio.middle) for ratio in ratios))

    def x(value: float) -> float:
        return 270 + 470 * (min(max(value, low), high) - low) / (high - low)

    bottom = 22 + 34 * len(rows)
    bands, parts = [], []
    for place, (step, name) in enumerate(rows):
        y, ratio, noise = 22 + 34 * place, step.comparison.ratio(name), step.comparison.noise
        label = f"{step.number}: {name}"
        label = label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"
        sure = step.comparison.verdict(name) in ("faster", "slower")
        if math.isfinite(noise):
            left, right = x(1 / (1 + noise)), x(1 + noise)
            bands.append(f'<rect x="{left:.1f}" y="{y - 15}" width="{right - left:.1f}" height="30" '
                         f'fill="{PALE}"/>')  # fmt: skip
        parts.append(_text(0, y + 5, label, anchor=""))
        if ratio.rounds >= ROUNDS:
            parts.append(f'<path d="M{x(ratio.low):.1f} {y}H{x(ratio.high):.1f}" stroke="{DARK}" '
                         'stroke-width="3"/>')  # fmt: skip
        parts.append(f'<circle cx="{x(ratio.middle):.1f}" cy="{y}" r="6" stroke="{DARK}" '
                     f'stroke-width="2" fill="{DARK if sure else "#fff"}"/>')  # fmt: skip
        if step.measured.guess is not None and name == step.comparison.variants[-1]:
            parts.append(f'<path d="M{x(step.measured.guess):.1f} {y - 9}v18" stroke="{INK}" '
                         'stroke-width="2"/>')  # fmt: skip
        parts.append(_text(x(ratio.middle), y - 9, f"{ratio.middle:.2f}", more=' class="value"'))
    apart = next(s for s in TICKS if (high - low) / s < 8 or s == TICKS[-1])
    for number in range(math.ceil(low / apart), math.floor(high / apart) + 1):
        parts.append(_text(x(number * apart), bottom + 12, f"{number * apart:g}"))
    bands.append(f'<path d="M{x(1):.1f} 4V{bottom - 6}" stroke="{GREY}" stroke-dasharray="5 4"/>')
    parts.append(_text(505, bottom + 34, "times as fast as its baseline"))
    guessed = any(step.measured.guess is not None for step in steps)
    key = "filled: faster or slower; band: the noise" + "; upright line: the guess" * guessed
    parts.append(_text(505, bottom + 54, key))
    words = " ".join(
        f"Comparison {step.number}, {name}: {ratio.middle:.2f} ({interval(ratio)})."
        for (step, name), ratio in zip(rows, ratios, strict=True)
    )
    return (
        f'<svg viewBox="0 0 760 {bottom + 64}" role="img" fill="{INK}" font-size="14" '
        f'aria-label="{html.escape(words)}">{"".join(bands + parts)}</svg>'
    )


def _text(
    x: float, y: float, text: str, anchor: str = ' text-anchor="middle"', more: str = ""
) -> str:
    at = f'x="{x:.1f}" y="{y}"'
    return f"<text {at}{anchor}{more}>{html.escape(text)}</text>"


def interval(ratio: Ratio) -> str:
    """Write the interval of a ratio."""
    known = math.isfinite(ratio.high) and math.isfinite(ratio.low) and ratio.rounds >= ROUNDS
    digits = 3 if known and "1.00" in (f"{ratio.low:.2f}", f"{ratio.high:.2f}") else 2
    return f"{ratio.low:.{digits}f} to {ratio.high:.{digits}f}" if known else "too few rounds"
