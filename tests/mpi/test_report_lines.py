"""Each line that a report's page prints can be typed, and measures the same."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from helpers import COMMAND

from scaleout.measuring.asked import Comparing
from scaleout.reports import page
from scaleout.reports.evidence import Measured

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).resolve().parents[2] / "docs/capstone-report.html"
AT_ONCE = """
import os

from mpi4py import MPI

from scaleout import records

if MPI.COMM_WORLD.allreduce(1) and MPI.COMM_WORLD.rank == 0:
    records.write(lab="12_capstone", ranks=MPI.COMM_WORLD.size, rate=100.0, rate_unit="images/s",
                  metrics={"train_s": 1.0, "dice": 0.8})
    print("typed", MPI.COMM_WORLD.size, os.environ["OMP_NUM_THREADS"])
"""


def printed(path: Path) -> list[str]:
    """The lines and pieces of code that a page shows for typing."""
    shown = re.sub("<details>.*?</details>", "", path.read_text(encoding="utf-8"), flags=re.S)
    codes = re.findall("<pre>(.*?)</pre>", shown.partition("</main>")[0], re.S)
    return [html.unescape(re.sub("<[^>]*>", "", code)) for code in codes]


def asked(one: Measured | Comparing) -> list[object]:
    """What decides what a comparison measures, whichever way it was asked."""
    if isinstance(one, Measured):
        ways = {n: [s.words, s.ranks, s.threads, s.env] for n, s in one.variants.items()}
    else:
        each = {name: one.way(name) for name in one.variants}
        ways = {n: [w.script, w.ranks or 1, w.threads, w.env or {}] for n, w in each.items()}
    return [ways, one.metric, one.lower, one.reduce, one.guess]


def test_each_line_of_the_solutions_page_can_be_typed(tmp_path: Path) -> None:
    """In a folder that holds its scripts; a training ends there at once."""
    found, line = page.read(PAGE)
    assert line == "", "the page is not what its records give: draw it anew"
    for step in found.steps:
        for setting in step.measured.variants.values():
            (tmp_path / setting.script).write_text(AT_ONCE)
            for module in setting.modules:
                (tmp_path / module).write_text("")
    results = tmp_path / "results"
    env = {**os.environ, "SCALEOUT_RESULTS": str(results), "SCALEOUT_QUICK": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    best, *again = printed(PAGE)
    ran = subprocess.run(["sh", "-c", best], cwd=tmp_path, env=env, capture_output=True, text=True)
    ranks, threads = found.judged.setting.ranks, found.judged.setting.threads
    assert ran.returncode == 0 and f"typed {ranks} {threads}" in ran.stdout, ran.stderr
    assert len(again) == len(found.steps)
    for step, code in zip(found.steps, again, strict=True):
        known = {path.parent for path in results.rglob("compare.json")}
        typed = ["sh", "-c", code] if code.startswith("scaleout ") else [sys.executable, "-c", code]
        ran = subprocess.run(typed, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert ran.returncode == 0, f"{code}\n{ran.stderr}"
        (place,) = {path.parent for path in results.rglob("compare.json")} - known
        told = msgspec.convert(json.loads((place / "compare.json").read_text()), Comparing)
        assert asked(told) == asked(step.measured), code
    checked = subprocess.run(
        [COMMAND, "report", "--again", str(PAGE), "--check"], capture_output=True, text=True
    )
    assert checked.returncode == bool(found.refusals), checked.stderr
