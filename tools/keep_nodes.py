"""Run 12's script for two nodes once, on a small Slurm of this machine, and keep its record.

    python tools/keep_nodes.py

It starts the Slurm itself (as `make cluster` does, from Debian's slurm-wlm and munge), takes a few minutes, and leaves
nothing of it. The record is kept beside the lesson: its notebook shows it to those who have no cluster."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import mini_slurm

from scaleout import Site, lab
from scaleout.base import jsonlines

KEPT = Path(__file__).resolve().parents[1] / "solutions/12_capstone/nodes.jsonl"
# Both nodes share the cores of this machine.
SITE = Site(scheduler="slurm", bind="none", minutes=15)
JOB = {"ranks": 2, "nodes": 2, "threads": 1, "test": 100}  # as the notebook's cell has it


def main() -> None:
    if why := mini_slurm.missing():
        sys.exit(why)
    folder = Path(tempfile.mkdtemp(prefix="nodes-"))
    try:
        with mini_slurm.Slurm(folder / "slurm", nodes=2) as running:
            os.environ["SLURM_CONF"] = running.env["SLURM_CONF"]
            run = lab("12", solution=True).run(site=SITE, timeout=1200, **JOB)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if len(run.records) != 1 or int(run.records.nodes.iloc[0]) != JOB["nodes"]:
        sys.exit(f"The job left no record of {JOB['nodes']} nodes: see {run.folder}.")
    record = json.loads((run.folder / "records.jsonl").read_text(encoding="utf-8"))
    jsonlines.write(KEPT, f"{json.dumps(record | {'host': ''})}\n")
    print(f"{KEPT.name} is kept.")


if __name__ == "__main__":
    main()
