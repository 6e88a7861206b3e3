"""docs/queue.md: its commands, typed from the page on a small cluster, show what the page shows."""

import os
import re
import subprocess
from pathlib import Path

import mini_slurm
import pytest
from helpers import ROOT

PAGE = (ROOT / "docs/queue.md").read_text()
EXERCISES = re.split(r"^\*\*(?=\d+\. )", PAGE, flags=re.M)[1:]
TYPED = r"((?:^    [^\n]+\n)+)"
SHOWN = r"\n<details><summary>What you see</summary>\n\n```text\n(.*?)```\n\n</details>\n"
# What the page may not lose: the state, the reason or the exit code that an exercise is about.
PROMISED = {
    1: ["COMPLETED", "node[1-2]"],
    2: ["PD 0:00 2 (Resources)", "PD 0:00 2 (Priority)", "PD 0:00 1 (Resources)"],
    3: ["(PartitionTimeLimit)", "JobState=CANCELLED"],
    4: ["PD 0:00 2 (Resources)", "1 node1", "1 node2"],
    5: ["DUE TO TIME LIMIT", "JobState=TIMEOUT"],
    6: ["saving, then leaving", "JobState=COMPLETED", "ExitCode=0:0"],
    7: ["exceeded memory limit", "JobState=FAILED", "ExitCode=0:9"],
    8: ["(BeginTime)", "start number 0", "start number 1", "Restarts=1"],
    9: ["(Dependency)", "\n8\n", "ExitCode=3:0", "(DependencyNeverSatisfied)"],
    10: ["drain node2", "look at the fan", "(Nodes required for job are DOWN, DRAINED"],
}
EMPTY = 'scancel --me; while [ -n "$(squeue --noheader)" ]; do sleep 0.2; done'

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(mini_slurm.missing()), reason=mini_slurm.missing()),
]


def _blocks(text: str) -> list[str]:
    """The commands of an exercise, block by block; what it shows may be indented too."""
    return re.findall(TYPED, re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)


def _type(exercises: list[str], folder: Path) -> str:
    """What one shell shows of these exercises, one after another, and before each its queue is
    emptied."""
    script = ""
    for number, text in enumerate(exercises, 1):
        script += EMPTY + "\n"
        for place, block in enumerate(_blocks(text)):
            script += f"echo === {number} {place}\n{re.sub(r'^    ', '', block, flags=re.M)}"
    with mini_slurm.Slurm(folder / "slurm", nodes=2) as cluster:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env={**os.environ, **cluster.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.stdout


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[str]]:
    """What each block of each exercise showed, {exercise: blocks}."""
    found: dict[int, list[str]] = {}
    for part in _type(EXERCISES, tmp_path_factory.mktemp("queue")).split("=== ")[1:]:
        place, _, text = part.partition("\n")
        found.setdefault(int(place.split()[0]), []).append(text)
    return found


def _like(shown: str) -> str:
    """A pattern for what a page shows: any word may stand for …, any lines for a line of it, and
    any time for a time."""
    lines = []
    for line in shown.splitlines():
        words = re.escape(" ".join(line.split())).replace("…", r"\S+").replace(r"\ ", " ")
        words = re.sub(r"\d+(\\-\d\d){2}T\d\d:\d\d:\d\d", r"\\S+", words)
        words = re.sub(r"(?<= )\d+:\d\d(?= )", r"\\d+:\\d\\d", words)
        lines.append(r"(.*\n)*" if line == "…" else words + r"\n")
    return "".join(lines)


@pytest.mark.parametrize("number", range(1, 11))
def test_an_exercise_shows_what_its_page_shows(number: int, said: dict[int, list[str]]) -> None:
    text = EXERCISES[number - 1]
    pairs = re.findall(TYPED + SHOWN, text, re.M | re.S)
    assert [typed for typed, _ in pairs] == _blocks(text) and len(pairs) == len(said[number])
    for (typed, shown), here in zip(pairs, said[number], strict=True):
        flat = "".join(" ".join(line.split()) + "\n" for line in here.splitlines())
        same = re.fullmatch(_like(shown), flat)
        assert same, f"{typed}\nthe page:\n{shown}\nhere:\n{here}"
    all_shown = re.sub(r" +", " ", "\n".join(shown for _, shown in pairs))
    assert [word for word in PROMISED[number] if word not in all_shown] == []
