"""Folders of results as `scaleout compare` and `scaleout sweep` leave them, made up."""

import json
from pathlib import Path
from typing import Any

CPU = ["A processor", 2]
Entry = dict[str, Any]


def job(folder: Path, wall_s: float, said: str = "", record: Entry | None = None) -> None:
    folder.mkdir(parents=True)
    about = {"id": folder.name, "ranks": 1, "threads": 2, "status": 0, "wall_s": wall_s}
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
            job(place / "jobs" / run_id, 1000 / value, f"images/s: {value}")
    (place / "runs.jsonl").write_text("\n".join(lines) + "\n")
    return place


def seeds(top: Path, name: str, words: list[str], figures: list[float]) -> None:
    """The accuracy of one command, as a sweep over its seeds leaves it."""
    place = top / "sweep" / name
    place.mkdir(parents=True)
    metric = {"what": "accuracy: ([0-9.]+)", "lower": False, "reduce": ""}
    about = {"command": [*words, "--seed", "{SEED}"], "metric": metric, "machine": CPU}
    grid = {"SEED": ["1", "2", "3", "4", "5"]}
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
