"""What a tour leaves: one picture of it all, and one page that needs nothing else."""

import base64
import html
import io
from dataclasses import asdict
from datetime import datetime
from textwrap import fill
from typing import TYPE_CHECKING

from .. import machine

if TYPE_CHECKING:
    from .tour import Stop


def montage(stops: "list[Stop]") -> bytes:
    """One picture of the whole tour: each topic's last figure under its sentence."""
    import matplotlib.pyplot as plt
    from PIL import Image

    shown = [stop for stop in stops if stop.figures]
    rows = max(1, (len(shown) + 1) // 2)
    figure, axes = plt.subplots(
        rows, min(2, max(1, len(shown))), figsize=(13, 4.2 * rows), squeeze=False
    )
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, stop in zip(axes.flat, shown, strict=False):
        axis.imshow(Image.open(io.BytesIO(stop.figures[-1])))
        axis.set_title(fill(f"{stop.topic}: {stop.headline}", 80), fontsize=10)
    figure.tight_layout()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, facecolor="white")
    plt.close(figure)
    return out.getvalue()


def page(stops: "list[Stop]") -> str:
    """The tour as one HTML page that needs nothing else: no network, no other file."""
    facts = asdict(machine.facts())
    named = (
        "cpu",
        "sockets",
        "usable_cores",
        "hardware_threads",
        "memory_gib",
        "mpi",
        "mpi_version",
    )
    about = "".join(
        f"<tr><th>{name.replace('_', ' ')}</th><td>{html.escape(str(facts[name]))}</td></tr>"
        for name in named
    )
    rows = "".join(
        f'<tr><td><a href="#{s.topic}">{s.topic}</a></td><td>{html.escape(s.headline)}</td>'
        f"<td>{s.wall_s:.0f} s</td></tr>"
        for s in stops
    )
    return PAGE.format(
        about=about,
        rows=rows,
        topics="".join(map(_section, stops)),
        day=f"{datetime.now():%Y-%m-%d}",
    )


def _section(stop: "Stop") -> str:
    figures = "".join(
        f'<img alt="{html.escape(stop.title)}, figure {n}: {html.escape(stop.headline)}" '
        f'src="data:image/png;base64,{base64.b64encode(figure).decode()}">'
        for n, figure in enumerate(stop.figures, 1)
    )
    head = (
        f'<h2 id="{stop.topic}">{html.escape(stop.title)}</h2><p>{html.escape(stop.headline)}</p>'
    )
    return head + figures + "".join(f"<div>{table}</div>" for table in stop.tables)


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>scaleout: the tour</title>
<meta name="viewport" content="width=device-width">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
        color: #222; background: #fff }}
img {{ max-width: 100%; display: block; margin: 1rem 0 }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
td, th {{ border-bottom: 1px solid #ccc; padding: .3rem .8rem; text-align: left; vertical-align: top }}
div {{ overflow-x: auto }}
</style>
<h1>The tour, {day}</h1>
<p>Every figure on this page was measured on the machine below.</p>
<table>{about}</table>
<table><tr><th>topic</th><th>what this machine showed</th><th>took</th></tr>{rows}</table>
{topics}
</html>
"""
