"""How often is a gate wrong on this machine? Real commands, many pairs: equal ones, and one that does
10 % more work, half of them beside a load that comes and goes. Not collected by pytest: it takes half an
hour.

    python tests/prove_gate.py 100 mine.jsonl            measures, and goes on where it was broken off
    python tests/prove_gate.py 0 tests/data/gate.jsonl   only prints the table of docs/gate.md

Beside the gate stands the usual one on the same pairs: each command once, red from 10 % on.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARE, MINUTES, USUAL = 5, 3, 0.10
# A checksum, each step of which waits for the one before it: whoever else works on the core disturbs it
# little. Where runs differ more, the same certainty takes more minutes.
WORK = """
import hashlib, sys, time
blocks, start = int(sys.argv[1]), time.perf_counter()
total, block = hashlib.md5(), bytes(100_000)
for _ in range(blocks):
    total.update(block)
print(f"seconds: {time.perf_counter() - start:.6f}")
"""
BLOCKS = 500  # some 0.1 s
LOAD = """
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + random.expovariate(1 / 2)
    while time.monotonic() < end:
        pass
    time.sleep(random.expovariate(1 / 2))
"""
SAYS = {0: "passes", 1: "red", 3: "cannot tell"}


@contextmanager
def load(on: bool) -> Iterator[None]:
    """Keep half as many processes as there are cores busy, for half of the time."""
    busy = len(os.sched_getaffinity(0)) // 2 if on else 0
    started = [subprocess.Popen([sys.executable, "-c", LOAD]) for _ in range(busy)]
    try:
        yield
    finally:
        for one in started:
            one.send_signal(signal.SIGKILL)
            one.wait()


def pair(number: int, slower: float, beside_load: bool) -> dict[str, object]:
    """Measure one pair, and return what both gates say of it."""
    with tempfile.TemporaryDirectory() as folder, load(beside_load):
        Path(folder, "work.py").write_text(WORK)
        blocks = [str(BLOCKS), str(round(BLOCKS * (1 + slower)))]
        line = [Path(sys.executable).parent / "scaleout", "compare", "-t", "1", "--name", "pair"]
        line += ["--metric", "seconds: ([0-9.]+)", "--lower", "--json", "found.json"]
        line += ["--gate", str(SHARE), "--minutes", str(MINUTES), "--"]
        line += [
            "python",
            "work.py",
            blocks[0],
            "first",
            "::",
            "python",
            "work.py",
            blocks[1],
            "second",
        ]
        start = time.monotonic()
        done = subprocess.run(
            line,
            cwd=folder,
            env={**os.environ, "SCALEOUT_RESULTS": f"{folder}/results"},
            capture_output=True,
            text=True,
        )
        if done.returncode not in SAYS:
            raise SystemExit(done.stderr)
        found = json.loads(Path(folder, "found.json").read_text())
    first, other = found["baseline"]["values"][0], found["variants"][0]["values"][0]
    return {
        "number": number,
        "slower": slower,
        "load": beside_load,
        "gate": done.returncode,
        "usual": int(other > (1 + USUAL) * first),
        "rounds": found["rounds"],
        "noise": found["noise"],
        "minutes": (time.monotonic() - start) / 60,
        "machine": found["stamp"]["machine"],
        "utc": found["stamp"]["utc"],
    }


def table(rows: list[dict]) -> str:
    """Write the figures of docs/gate.md: where and when they were measured, and a table."""
    its, last = rows[0]["machine"], max(row["utc"] for row in rows)[:10]
    minutes = sum(row["minutes"] for row in rows)
    lines = [
        f"On {its['cpu']}, {its['cores']} cores, until {last}, in {minutes:.0f} minutes: a gate of {SHARE} % with",
        f"{MINUTES} minutes for each pair, and the usual one, which runs each command once and is red from",
        f"{100 * USUAL:g} % on.",
        "",
        "| pairs | red | passes | cannot tell | the usual gate: red | rounds, median |",
        "|---" * 6 + "|",
    ]
    for slower in (0.0, 0.1):
        for beside in (False, True):
            some = [row for row in rows if (row["slower"], row["load"]) == (slower, beside)]
            if not some:
                continue
            said = [row["gate"] for row in some]
            what = "10 % more work" if slower else "equal"
            name = f"{len(some)}, {what}, {'beside a load' if beside else 'alone'}"
            median = sorted(row["rounds"] for row in some)[len(some) // 2]
            cells = [name, said.count(1), said.count(0), said.count(3)]
            cells += [sum(row["usual"] for row in some), median]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    pairs, path = int(sys.argv[1]), Path(sys.argv[2])
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    wanted = [(n, slower, n % 2 == 1) for n in range(pairs) for slower in (0.0, 0.1)]
    random.Random(0).shuffle(wanted)  # what the machine does for an hour meets all alike
    known = {(row["number"], row["slower"]) for row in kept}
    for number, slower, beside in wanted:
        if (number, slower) not in known:
            kept.append(pair(number, slower, beside))
            with path.open("a") as file:
                file.write(json.dumps(kept[-1]) + "\n")
    print(table(kept))
