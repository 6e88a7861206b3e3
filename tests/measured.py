"""Folders of results as `scaleout compare` and `scaleout sweep` leave them, made up."""

import json
import shlex
from pathlib import Path
from typing import Any

CPU = ["A processor", 2]
Entry = dict[str, Any]


def job(
    folder: Path, wall_s: float, said: str = "", record: Entry | None = None, command: str = ""
) -> None:
    folder.mkdir(parents=True)
    about = {"id": folder.name, "ranks": 1, "threads": 2, "status": 0, "wall_s": wall_s}
    about |= {"command": command} if command else {}
    (folder / "run.json").write_text(json.dumps(about))
    (folder / "output.txt").write_text(f"[0] {said}\n")
    if record:
        (folder / "records.jsonl").write_text(json.dumps(record) + "\n")


def utc(number: int) -> str:
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"


def compared(top: Path, name: str, commands: dict[str, list[str]], rates: list[float]) -> Path:
    """A comparison as `scaleout compare` leaves it: five rounds, the baseline twice in each."""
    place = top / "compare" / name
    place.mkdir(parents=True)
    about = {
        "schema": 1,
        "job": name,
        "variants": {n: {"script": words, "env": {}} for n, words in commands.items()},
        "metric": "images/s: ([0-9.]+)",
        "lower": False,
        "machine": CPU,
    }
    typed = ["scaleout", "compare", "-n", "1", "-t", "2", "--metric", str(about["metric"])]
    between = [word for words in commands.values() for word in ("::", *words)]
    about["typed"] = [*typed, "--", *between[1:]]
    (place / "compare.json").write_text(json.dumps(about))
    lines = []
    order = [(n, a) for n in commands for a in ((0, 1) if n == next(iter(commands)) else (0,))]
    start = 1000 * len(list(top.glob("compare/*")))
    for round_ in range(5):
        for (variant, again), rate in zip(order, [rates[0], *rates], strict=True):
            value = round(rate * (1 + 0.01 * ((round_ + 2 * again) % 3)), 3)
            run_id = f"{name}-{len(lines)}"
            row = {"round": round_, "place": len(lines), "variant": variant, "again": again}
            row |= {"value": value, "unit": "", "run_id": run_id, "utc": utc(start + len(lines))}
            lines.append(json.dumps(row))
            ran = shlex.join(["mpirun", "-n", "1", "-bind-to", "core:2", *commands[variant]])
            job(place / "jobs" / run_id, 1000 / value, f"images/s: {value}", command=ran)
    (place / "runs.jsonl").write_text("\n".join(lines) + "\n")
    return place


def record(lab: str, variant: str, seed: int, dice: float, when: str, ranks: int = 1) -> Entry:
    """A record as a lab writes it, with an accuracy."""
    return {
        **{"schema": 1, "run_id": "", "utc": when, "lab": lab, "variant": variant, "ranks": ranks},
        **{"nodes": 1, "threads_per_rank": 2, "batch_per_rank": 8, "batch_global": 8},
        **{"warmup_steps": 0, "step_s": [0.1], "rate": None, "rate_unit": "", "seed": seed},
        **{"metrics": {"dice": dice}, "host": "login-7", "cpu": CPU[0], "cores": CPU[1]},
        **{"mpi": None, "versions": {"numpy": "2"}, "commit": "a" * 40, "dirty": None},
    }


SLOW = "def batches():\n    one slice after another\n\n\ndef evaluate():\n    slice by slice\n"
FAST = SLOW.replace("one slice after another", "all of a volume\n    # Alice's: /home/alice/x")
WHOLE = FAST.replace("slice by slice", "in batches")
Way = tuple[str, str, int]  # a script, its text, and its ranks
FIRST, INPUT = ("labs/runme.py", SLOW, 1), ("steps/1-input.py", FAST, 1)
EVALUATE, RANKS = ("steps/2-evaluate.py", WHOLE, 1), ("steps/1-input.py", FAST, 2)


def step(top: Path, name: str, ways: dict[str, Way], rates: list[float], **more: object) -> Path:
    """A comparison of scripts as a notebook's `compare(lab.run, ...)` leaves it, each round with a
    seed of its own, and a record of it."""
    place = compared(top, name, {way: ["?"] for way in ways}, rates)
    about = json.loads((place / "compare.json").read_text())
    about["variants"] = {
        variant: {"script": f"/home/alice/{file}", "ranks": ranks, "threads": 2 // ranks}
        for variant, (file, _, ranks) in ways.items()
    }
    about["scripts"] = {variant: file for variant, (file, _, _) in ways.items()}
    about["texts"] = {file: text for file, text, _ in ways.values()}
    about["typed"] = []  # it was no command line
    (place / "compare.json").write_text(json.dumps({**about, "job": "12_x", **more}))
    for row in map(json.loads, (place / "runs.jsonl").read_text().splitlines()):
        file, _, ranks = ways[row["variant"]]
        folder = place / "jobs" / row["run_id"]
        kept = json.loads((folder / "run.json").read_text())
        kept["command"] = f"mpirun -n {ranks} /home/alice/bin/python -m mpi4py {file}"
        (folder / "run.json").write_text(json.dumps(kept))
        dice = 0.8 + 0.01 * (row["round"] % 3) + 0.001 * (row["place"] % 4)
        told = record("12_x", "", row["round"] + 1, dice, row["utc"], ranks)
        (folder / "records.jsonl").write_text(json.dumps(told) + "\n")
    return place


STORY = ["1-input", "2-evaluate", "3-ranks", "4-proof"]


def story(top: Path) -> Path:
    """Three steps, of which one did not help, and the claim, which is no larger than the first step."""
    guess = {"guess": 1.3, "guessed": "2025-12-31T23:00:00+00:00"}
    step(top, STORY[0], {"first": FIRST, "input": INPUT}, [100, 150], **guess)
    step(top, STORY[1], {"input": INPUT, "evaluate": EVALUATE}, [150, 151])
    step(top, STORY[2], {"input": INPUT, "two ranks": RANKS}, [150, 180])
    step(top, STORY[3], {"first": FIRST, "mine": RANKS}, [10, 14])
    return top


def seeds(top: Path, name: str, words: list[str], figures: list[float]) -> None:
    """The accuracy of one command, as a sweep over its seeds leaves it."""
    place = top / "sweep" / name
    place.mkdir(parents=True)
    metric = {"what": "accuracy: ([0-9.]+)", "lower": False, "reduce": ""}
    about = {"command": [*words, "--seed", "{SEED}"], "metric": metric, "machine": CPU}
    grid = {"SEED": ["1", "2", "3", "4", "5"]}
    typed = ["scaleout", "sweep", "--env", "SEED=1..5", "--metric", "accuracy: ([0-9.]+)", "--"]
    about["typed"] = [*typed, *words, "--seed", "{SEED}"]
    (place / "sweep.json").write_text(json.dumps({**about, "grid": grid}))
    start = 9000 + 100 * len(list(top.glob("sweep/*")))
    rows = [
        {
            **{"role": "point", "ranks": 1, "threads": 2, "env": {"SEED": str(n)}, "repeat": 0},
            **{"status": "ok", "reason": "", "rate": figure, "unit": "", "doubt": ""},
            **{"values": {"0": [figure]}, "wall_s": 3.0, "run_id": f"{name}-{n}"},
            **{"command": "mpirun", "utc": utc(start + n), "cpu": CPU[0], "cores": CPU[1]},
        }
        for n, figure in enumerate(figures, 1)
    ]
    (place / "points.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


BASE = ["/home/alice/venv/bin/python", "train.py"]
BATCH, FUSED = [*BASE, "--batch", "256"], [*BASE, "--batch", "256", "--fused"]


def honest(top: Path) -> Path:
    """Two steps and the whole, and the accuracy of the baseline and the best with five seeds."""
    compared(top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    compared(top, "b", {"--batch 256": BATCH, "--batch 256 --fused": FUSED}, [150, 151])
    compared(top, "c", {"train.py": BASE, "--batch 256 --fused": FUSED}, [100, 152])
    seeds(top, "base", BASE, [98.1, 98.3, 98.0, 98.2, 98.4])
    seeds(top, "best", FUSED, [98.0, 98.4, 98.1, 98.1, 98.3])
    return top
