"""Keep what 12's network finds with each loss, and with CT or PET alone, over five seeds.

    python tools/keep_losses.py

25 whole trainings with our own edits of 12, of half a minute each on two cores. They are kept beside the
lesson; what they took is not, so others may use the machine meanwhile. Broken off, the same command goes on. After
a change of the lab, remove the file first."""

import itertools
import json
from pathlib import Path

from scaleout import lab, machine
from scaleout.base import jsonlines
from scaleout.base.paths import results

KEPT = Path(__file__).resolve().parents[1] / "solutions/12_capstone/losses.jsonl"
ARMS = {
    "dice": {},
    "cross-entropy": {"loss": "cross-entropy"},
    "tversky": {"loss": "tversky"},
    "CT alone": {"channels": "ct"},
    "PET alone": {"channels": "pet"},
}
SEEDS = range(1, 6)
OURS = ("evaluation", "gather", "fused")
TOLD = ("by_patient", "dice", "validation", "loss")  # of a record's metrics


def tuned() -> Path:
    """Write 12's training as our own edits leave it."""
    cap = lab("12", solution=True)
    text = cap.script.read_text(encoding="utf-8")
    for name in OURS:
        new = (cap.folder / "ours" / f"{name}.py").read_text(encoding="utf-8")
        text = cap.module("ours/edit").edited(text, new)
    script = results("12_capstone", "losses") / "tuned.py"
    script.write_text(text, encoding="utf-8")
    return script


def shortened(line: str, variant: str) -> str:
    """Leave out of a record what has to do with its speed, and the pictures."""
    record = json.loads(line)
    metrics = {name: record["metrics"][name] for name in TOLD}
    return json.dumps(record | {"variant": variant, "host": "", "step_s": [], "metrics": metrics})


def main() -> None:
    cap, script = lab("12", solution=True), tuned()
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.is_file() else []
    known = {(record["seed"], record["variant"]) for record in map(json.loads, lines)}
    for seed, variant in itertools.product(SEEDS, ARMS):
        if (seed, variant) in known:
            continue
        run = cap.run(
            script=str(script), threads=machine.usable_cores(), test=100, echo=False,
            env={"SCALEOUT_ROUND": str(seed), "TF_ENABLE_ONEDNN_OPTS": "1"}, **ARMS[variant],
        )  # fmt: skip
        (line,) = (run.folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
        lines.append(shortened(line, variant))
        jsonlines.write(KEPT, "".join(f"{line}\n" for line in lines))
        dice = run.records["metrics.dice"].iloc[0]
        print(f"seed {seed}, {variant}: Dice {dice:.3f}, {run.wall_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
