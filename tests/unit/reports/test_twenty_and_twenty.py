"""Folders of results that are wrong, by intent or by mistake, and folders that are right.

Each wrong one is refused, with its sentence and what to type; each right one holds.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from measured import BASE, BATCH, CPU, FUSED, compared, honest, job, record, seeds, utc

from scaleout import cli

Names = list[str]  # what is reported
Metrics = Callable[[str, int], Mapping[str, Any]]


def dice(variant: str, round_: int) -> dict[str, Any]:
    """The figures of a test that nothing has harmed."""
    return {"dice": 0.8 + 0.01 * (round_ % 3) + 0.001 * (len(variant) % 2)}


@dataclass(frozen=True)
class How:
    """How a variant is started, and what of it the records tell."""

    script: str = "steps/first.py"
    text: str = "train()\n"
    words: tuple[str, ...] = ()  # behind the script
    ranks: int = 1
    threads: int = 2
    env: Mapping[str, str | None] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)  # {name: text}
    files: Mapping[str, str] = field(default_factory=dict)  # {name: digest}
    steps: int = 100
    batch: int = 16


FIRST = How()
INPUT = How("steps/input.py", "input()\ntrain()\n")
TWO = replace(INPUT, ranks=2, threads=1)
LAB = {"unet.py": "def build(): pass\n", "phantoms.py": "def cohort(): pass\n"}


@dataclass
class Folder:
    """results/, as compare and sweep leave it."""

    top: Path
    clock: int = 0

    def utc(self) -> str:
        self.clock += 1
        return utc(self.clock)

    def step(
        self,
        name: str,
        ways: Mapping[str, How],
        rates: list[float],
        metric: str = "rate",
        metrics: Metrics = dice,
        wall: Mapping[str, float] | None = None,
        rounds: int = 5,
        spread: float = 0.005,
        row: Mapping[str, Any] | None = None,
        **about: Any,
    ) -> str:
        """Five rounds of a comparison, by images/s or by train_s; a record of each job."""
        place, lower = self.top / "compare" / name, metric.endswith("_s")
        place.mkdir(parents=True, exist_ok=True)
        texts = {f"{how.script}{'' if not how.modules else '!'}": how.text for how in ways.values()}
        modules: dict[str, dict[str, str]] = {}
        for variant, how in ways.items():
            modules[variant] = {module: f"{variant}/{module}" for module in how.modules}
            texts |= {f"{variant}/{module}": text for module, text in how.modules.items()}
            texts[how.script] = how.text
        told = {
            "job": "12_x", "metric": metric, "lower": lower, "machine": CPU,
            "variants": {v: {"script": h.script, "ranks": h.ranks, "threads": h.threads,
                             "env": dict(h.env)} for v, h in ways.items()},
            "scripts": {v: h.script for v, h in ways.items()}, "texts": texts, "modules": modules,
            "guess": 1.3, "guessed": self.utc(), "rounds": 5, "least": 5,
        }  # fmt: skip
        (place / "compare.json").write_text(json.dumps({**told, **about}))
        self.clock += 60
        lines, base = [], next(iter(ways))
        for round_ in range(rounds):
            for again, variant in [(0, base), (1, base), *((0, v) for v in list(ways)[1:])]:
                how, n = ways[variant], len(lines)
                value = rates[list(ways).index(variant)]
                value = round(value * (1 + spread * ((round_ + 2 * again) % 3)), 4)
                run, ran = f"{name}-{n}", [how.script, *how.words]
                line = f"mpirun -n {how.ranks} /home/alice/bin/python -m mpi4py {' '.join(ran)}"
                files = {module: str(hash(text)) for module, text in how.modules.items()}
                one = {
                    "round": round_, "place": n, "variant": variant, "again": again, "value": value,
                    "run_id": run, "utc": self.utc(), "ranks": how.ranks, "threads": how.threads,
                    "env": dict(how.env), "command": line, "values": {"record": [value]},
                    "files": {**files, **how.files},
                }  # fmt: skip
                if row is None or row.get("variant", variant) == variant:
                    one |= row or {}
                lines.append(one)
                seconds = (wall or {}).get(variant, value + 1 if lower else 1000 / value)
                kept = record("12_x", "", round_ + 1, 0.0, one["utc"], how.ranks)
                kept |= {"metrics": {**metrics(variant, round_), metric: value}, "run_id": run}
                kept |= {"step_s": [0.01] * how.steps, "batch_global": how.batch}
                kept |= {"rate": value} if metric == "rate" else {}
                job(place / "jobs" / run, seconds, "", kept, line)
        (place / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
        return name

    def taken(self, *ways: How, **how: Any) -> str:
        """The first step: the input, 1.5 times as fast."""
        first, last = ways or (FIRST, INPUT)
        return self.step("1-input", {"first": first, "input": last}, [100, 150], **how)

    def proof(self, *ways: How, **how: Any) -> str:
        """The claim: 1.45 times as fast."""
        first, last = ways or (FIRST, INPUT)
        return self.step("9-proof", {"first": first, "mine": last}, [60, 41.4],
                         **{"metric": "train_s", **how})  # fmt: skip


def swept(folder: Folder, first: list[str], best: list[str], loss: bool = False) -> None:
    """The accuracy of both commands, with five seeds each."""
    figures = [0.31, 0.33, 0.30, 0.32, 0.34] if loss else [98.1, 98.3, 98.0, 98.2, 98.4]
    seeds(folder.top, "base", first, figures)
    seeds(folder.top, "best", best, [figure + 0.001 * (n % 2) for n, figure in enumerate(figures)])
    for place in (folder.top / "sweep").iterdir() if loss else ():
        text = (place / "sweep.json").read_text()
        (place / "sweep.json").write_text(text.replace("accuracy:", "loss:"))


def typed(top: Path, name: str, more: list[str], **about: Any) -> None:
    """Change what a comparison was asked on the command line."""
    path = top / "compare" / name / "compare.json"
    told = json.loads(path.read_text())
    told["typed"][2:2] = more
    path.write_text(json.dumps({**told, **about}))


def rows(top: Path, name: str, **change: Any) -> None:
    """Change all rows of a comparison."""
    path = top / "compare" / name / "runs.jsonl"
    each = [{**json.loads(line), **change} for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, each)) + "\n")


# Wrong: each says what is refused, and what to type.


def a_baseline_on_one_thread(at: Folder) -> Names:
    return [at.taken(), at.proof(replace(FIRST, threads=1), INPUT)]


def a_baseline_without_onednn(at: Folder) -> Names:
    off = replace(FIRST, env={"TF_ENABLE_ONEDNN_OPTS": "0"})
    return [at.taken(), at.proof(off, INPUT)]


def a_baseline_with_a_slow_option(at: Folder) -> Names:
    return [at.taken(), at.proof(replace(FIRST, words=("--every-slice",)), INPUT)]


def a_step_from_something_else(at: Folder) -> Names:
    ways = {"first": replace(FIRST, threads=1), "two ranks": replace(FIRST, ranks=2, threads=1)}
    return [at.taken(), at.step("2-ranks", ways, [60, 90]), at.proof()]


def a_step_that_drops_what_was_kept(at: Folder) -> Names:
    """--batch 256 was kept, and --fused is measured without it; the claim has both."""
    compared(at.top, "1", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    compared(at.top, "2", {"train.py": BASE, "--fused": [*BASE, "--fused"]}, [100, 130])
    compared(at.top, "3", {"train.py": BASE, "both": FUSED}, [100, 199])
    swept(at, BASE, FUSED)
    return ["base", "best", "1", "2", "3"]


def a_script_that_was_no_step(at: Folder) -> Names:
    return [at.taken(), at.proof(FIRST, replace(INPUT, text="input()\ntrain(6)\n"))]


def two_changes_in_a_step(at: Folder) -> Names:
    return [at.taken(FIRST, TWO), at.proof(FIRST, TWO)]


def an_edit_that_was_not_saved(at: Folder) -> Names:
    same = at.step(
        "2-same", {"input": INPUT, "evaluate": replace(INPUT, script="b.py")}, [150, 151]
    )
    return [at.taken(), same, at.proof()]


def less_work(at: Folder) -> Names:
    return [at.taken(), at.proof(FIRST, replace(INPUT, steps=80))]


def a_clock_of_its_own(at: Folder) -> Names:
    return [at.taken(), at.proof(wall={"first": 110.0, "mine": 110.0})]


def no_job_at_all(at: Folder) -> Names:
    return [at.taken(), at.proof(row={"run_id": ""})]


def a_loss_that_trebles(at: Folder) -> Names:
    def loss(variant: str, round_: int) -> dict[str, Any]:
        return {"loss": (0.9 if variant == "mine" else 0.3) + 0.01 * (round_ % 3)}

    return [at.taken(metrics=loss), at.proof(metrics=loss), "--accuracy", "loss"]


def easier_patients_in_the_proof(at: Folder) -> Names:
    easy = {**LAB, "phantoms.py": "def cohort(): easy\n"}
    steps, proof = ([replace(way, modules=of) for way in (FIRST, INPUT)] for of in (LAB, easy))
    return [at.taken(*steps), at.proof(*proof)]


def a_data_file_that_changed(at: Folder) -> Names:
    ways = [replace(way, files={"slices.npz": "aaaa"}) for way in (FIRST, INPUT)]
    name = at.proof(*ways)
    path = at.top / "compare" / name / "runs.jsonl"
    path.write_text(path.read_text().replace("aaaa", "bbbb", 3))
    return [at.taken(*ways), name]


def a_network_of_its_own(at: Folder) -> Names:
    """Text and settings are equal, but a file that both import differs: two changes in one."""
    narrow = replace(INPUT, ranks=2, threads=1, text=FIRST.text, script=FIRST.script,
                     modules={**LAB, "unet.py": "narrow\n"})  # fmt: skip
    return [at.taken(replace(FIRST, modules=LAB), narrow), at.proof(FIRST, narrow)]


def a_training_on_the_test(at: Folder) -> Names:
    def both(variant: str, round_: int) -> dict[str, Any]:
        seen = [*range(48), *([1003] if variant == "mine" else [])]
        return {**dice(variant, round_), "trained_on": seen, "tested_on": [*range(1000, 1100)]}

    return [at.taken(), at.proof(metrics=both)]


def an_accuracy_without_the_variable(at: Folder) -> Names:
    commands = {"train.py": BASE, "bf16": BATCH}
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    compared(at.top, "b", commands, [100, 190])
    typed(at.top, "b", [], variants={"train.py": {"script": BASE},
                                     "bf16": {"script": BATCH, "env": {"BF16": "1"}}})  # fmt: skip
    compared(at.top, "c", {"--batch 256": BATCH, "bf16": BATCH}, [150, 190])
    typed(at.top, "c", [], variants={"--batch 256": {"script": BATCH},
                                     "bf16": {"script": BATCH, "env": {"BF16": "1"}}})  # fmt: skip
    swept(at, BASE, BATCH)
    return [""]


def one_seed_for_all(at: Folder) -> Names:
    name = at.proof()
    for path in (at.top / "compare" / name).rglob("records.jsonl"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seed": 1}) + "\n")
    return [at.taken(), name]


def three_seeds(at: Folder) -> Names:
    return [at.taken(), at.proof(rounds=3)]


def a_harm_that_pleased_the_third_time(at: Folder) -> Names:
    """Its interval alone would just hold; of three such intervals one in seven does by chance."""

    def near(variant: str, round_: int) -> dict[str, Any]:
        return {"dice": 0.8 - (0.0081 + 0.0107 * (round_ % 3 - 1)) * (variant == "mine")
                + 0.01 * (round_ % 3)}  # fmt: skip

    steps = at.taken()
    at.proof(metrics=near)
    folder = at.top / "compare/9-proof"
    for number in (1, 2, 3, 4, 5, 6):
        for name, old in (("compare.json", ".json"), ("runs.jsonl", ".jsonl")):
            (folder / f"before-{number}{old}").write_bytes((folder / name).read_bytes())
    return [steps, "9-proof"]


def a_short_form(at: Folder) -> Names:
    return [at.taken(row={"quick": True}), at.proof()]


def another_machine(at: Folder) -> Names:
    return [at.taken(), at.proof(machine=["A large processor", 64])]


def another_installation(at: Folder) -> Names:
    names = [at.taken(row={"versions": {"tensorflow": "2.18.1"}})]
    return [*names, at.proof(row={"versions": {"tensorflow": "2.17.0"}})]


def a_number_by_hand(at: Folder) -> Names:
    name = at.proof()
    path = at.top / "compare" / name / "runs.jsonl"
    each = [json.loads(line) for line in path.read_text().splitlines()]
    each[2]["value"] /= 2
    path.write_text("\n".join(map(json.dumps, each)) + "\n")
    return [at.taken(), name]


def a_claim_of_copies(at: Folder) -> Names:
    two = replace(INPUT, ranks=2, threads=1)
    ranks = at.step("2-ranks", {"input": INPUT, "two ranks": two}, [150, 290])
    never = {"copies": "The 2 ranks never talked to each other.", "variant": "mine"}
    return [at.taken(), ranks, at.proof(FIRST, two, row=never)]


def one_round(at: Folder) -> Names:
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    path = at.top / "compare/a/runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    return [""]


def a_step_taken_back_in_silence(at: Folder) -> Names:
    return a_step_taken_back(at)[:-2]


def a_last_step_taken_back_in_silence(at: Folder) -> Names:
    fused = replace(INPUT, script="steps/fused.py", text="fused()\n")
    steps = at.taken()
    return [steps, at.step("2-fused", {"input": INPUT, "fused": fused}, [150, 170]), at.proof()]


def lost_runs(at: Folder) -> Names:
    return [at.taken(row={"values": {}, "run_id": "gone"}), at.proof()]


def a_round_that_did_not_please(at: Folder) -> Names:
    name = at.proof()
    path = at.top / "compare" / name / "runs.jsonl"
    each = [line for line in path.read_text().splitlines() if json.loads(line)["round"] != 2]
    path.write_text("\n".join(each) + "\n")
    return [at.taken(), name]


def a_figure_by_hand_in_all_of_its_row(at: Folder) -> Names:
    """The value, and what the ranks gave, too; the run's own record stays."""
    name = at.proof()
    path = at.top / "compare" / name / "runs.jsonl"
    each = [json.loads(line) for line in path.read_text().splitlines()]
    for one in each:
        if one["variant"] == "mine":
            one["value"] /= 2
            one["values"] = {"record": [one["value"]]}
    path.write_text("\n".join(map(json.dumps, each)) + "\n")
    return [at.taken(), name]


def a_run_of_another_script(at: Folder) -> Names:
    name = at.proof()
    path = at.top / "compare" / name / "runs.jsonl"
    path.write_text(path.read_text().replace("steps/input.py", "steps/other.py"))
    return [at.taken(), name]


def a_run_on_fewer_threads_than_said(at: Folder) -> Names:
    return [at.taken(), at.proof(row={"threads": 1, "variant": "first"})]


def a_folder_that_was_copied(at: Folder) -> Names:
    """The guess is corrected in the copy, and the result is told once more."""
    names = [at.taken(), at.proof()]
    shutil.copytree(at.top / "compare/1-input", at.top / "compare/0-input")
    return ["0-input", *names]


def a_test_of_easier_cases(at: Folder) -> Names:
    def easier(variant: str, round_: int) -> dict[str, Any]:
        first = 2000 if variant == "mine" else 1000
        return {**dice(variant, round_), "tested_on": [*range(first, first + 100)]}

    return [at.taken(), at.proof(metrics=easier)]


def edited(
    at: Folder, name: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> str:
    """Change the rows of a comparison by hand."""
    path = at.top / "compare" / name / "runs.jsonl"
    each = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("\n".join(map(json.dumps, each)) + "\n")
    return name


def foreign(at: Folder, first: list[str] = BASE, best: list[str] = BATCH) -> Names:
    """A foreign script and one step; the accuracy of both by sweeps."""
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    swept(at, first, best)
    return [""]


def resweep(at: Folder, which: str, **change: Any) -> None:
    """Change what sweeps were asked, their metric or their scripts."""
    for path in (at.top / "sweep").glob(f"{which}/sweep.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def by(what: str, lower: bool = False) -> dict[str, Any]:
    return {"what": f"{what}: ([0-9.]+)", "lower": lower, "reduce": ""}


def a_slow_run_taken_out(at: Folder) -> Names:
    """One row of a round, so that the round is no whole one, and counts nowhere."""
    name = at.taken(rounds=6)
    edited(at, name, lambda each: [r for r in each if (r["round"], r["variant"]) != (2, "input")])
    return [name, at.proof()]


def last_rounds_taken_out(at: Folder) -> Names:
    name = at.taken()
    return [edited(at, name, lambda each: [r for r in each if r["round"] < 3]), at.proof()]


def an_early_stop_in_two_of_five(at: Folder) -> Names:
    names = [at.taken(), at.proof()]
    for number in (2, 5):
        path = at.top / f"compare/9-proof/jobs/9-proof-{number}/records.jsonl"
        path.write_text(json.dumps({**json.loads(path.read_text()), "step_s": [0.01] * 60}) + "\n")
    return names


def another_figure_of_the_best(at: Folder) -> Names:
    names = foreign(at)
    resweep(at, "base", metric=by("val acc"))
    resweep(at, "best", metric=by("train acc"))
    return names


def an_accuracy_of_which_less_is_better(at: Folder) -> Names:
    """--lower, as it stood in the line of the comparison: a tenth is lost."""
    names = foreign(at)
    path = at.top / "sweep/best/points.jsonl"
    path.write_text(path.read_text().replace("98.", "88."))
    resweep(at, "*", metric=by("accuracy", lower=True))
    return names


def a_best_that_was_trained_for_longer(at: Folder) -> Names:
    return foreign(at, [*BASE, "--epochs", "1"], [*BATCH, "--epochs", "20"])


def an_accuracy_before_the_last_edit(at: Folder) -> Names:
    names = foreign(at)
    file = "train.py"
    typed(
        at.top, "a", [], scripts=dict.fromkeys(["train.py", "--batch 256"], file), texts={file: "x"}
    )
    resweep(at, "*", scripts={file: "0" * 64})
    return names


def a_training_that_diverged(at: Folder) -> Names:
    def nan(variant: str, round_: int) -> dict[str, Any]:
        return dice(variant, round_) if variant != "mine" else {"dice": float("nan")}

    return [at.taken(), at.proof(metrics=nan)]


def a_score_of_five_that_falls(at: Folder) -> Names:
    def score(variant: str, round_: int) -> dict[str, Any]:
        return {"score": (3.0 if variant == "mine" else 4.2) + 0.01 * (round_ % 3)}

    return [at.taken(metrics=score), at.proof(metrics=score), "--accuracy", "score"]


def a_time_of_which_more_is_better(at: Folder) -> Names:
    names = foreign(at)
    typed(at.top, "a", [], metric="seconds: ([0-9.]+)")
    edited(at, "a", lambda each: [{**one, "wall_s": one["value"] / 10} for one in each])
    for path in (at.top / "compare/a/jobs").glob("*/output.txt"):
        seconds = float(path.read_text().split()[-1])
        path.write_text(f"[0] seconds: {seconds}\n")
        path.with_name("run.json").write_text(json.dumps({"wall_s": seconds / 10}))
    return names


def a_sum_for_one_and_a_mean_for_the_other(at: Folder) -> Names:
    def reduced(one: dict[str, Any]) -> dict[str, Any]:
        mine = one["variant"] != "train.py"
        each, text = (
            one["value"] / (1 + mine),
            at.top / "compare/a/jobs" / one["run_id"] / "output.txt",
        )
        text.write_text("".join(f"[{rank}] images/s: {each}\n" for rank in (0, 1)))
        return {**one, "values": {"0": [each], "1": [each]}, "reduce": "sum" if mine else "mean"}

    names = foreign(at)
    edited(at, "a", lambda rows: [reduced(one) for one in rows])
    return names


def a_variable_that_the_line_does_not_tell(at: Folder) -> Names:
    names = foreign(at)
    off = {"env": {"TF_ENABLE_ONEDNN_OPTS": "0"}, "command": "mpirun python train.py", "threads": 2}
    edited(
        at, "a", lambda each: [{**r, **(off if r["variant"] == "train.py" else {})} for r in each]
    )
    return names


def rows_told_twice(at: Folder) -> Names:
    """Three rounds made five, with other names of the runs."""
    name = at.taken(rounds=3)
    more = {"round": 3, "place": 9}
    return [edited(at, name, lambda each: each + [
        {**r, "run_id": r["run_id"] + "x", **{k: r[k] + 3 ** (1 + (k == "place")) for k in more}}
        for r in each[:6]]), at.proof()]  # fmt: skip


def a_start_by_hand(at: Folder) -> Names:
    """The seconds of an empty job are large in the rows of one variant, so that the clocks agree."""
    wall = {"first": 110.0, "mine": 110.0}
    return [at.taken(), at.proof(wall=wall, row={"start_s": 40.0, "variant": "mine"})]


WRONG: list[tuple[Callable[[Folder], Names], str, str]] = [
    (a_baseline_on_one_thread, "The claim is that of its steps: first", "with the same ranks, threads"),
    (a_baseline_without_onednn, "another value of variable TF_ENABLE_ONEDNN_OPTS", "the baseline of"),
    (a_baseline_with_a_slow_option, "another value of --every-slice", "Measure the claim against"),
    (a_step_from_something_else, "Each step begins with what was kept: first (comparison 2) is not input",
     "Measure two ranks against what was kept"),
    (a_step_that_drops_what_was_kept, "Each step begins with what was kept: train.py (comparison 2) is not "
     "--batch 256 of comparison 1", "Measure --fused against what was kept"),
    (a_script_that_was_no_step, "A script of the claim is that of no step", "Measure it as a step, or claim"),
    (two_changes_in_a_step, "One change at a time: input (comparison 1)", "Measure first what"),
    (an_edit_that_was_not_saved, "Something must change: comparison 2", "Save the change in its file"),
    (less_work, "The same work for all: by their records a job of first did steps: 100", "judge them by"),
    (a_clock_of_its_own, "Two clocks must agree: by train_s mine is 1.45", "--metric wall_s"),
    (no_job_at_all, "Each run left something: no job was run", "scaleout.run(...)"),
    (a_loss_that_trebles, "The accuracy must be unharmed", "Take out the step"),
    (easier_patients_in_the_proof, "phantoms.py of first (comparison 2) is not that of first",
     "Measure both with the same file"),
    (a_data_file_that_changed, "slices.npz was not the same in all runs", "Put it back, and measure again"),
    (a_network_of_its_own, "changes ranks x threads and the script at once", "Measure first what"),
    (a_training_on_the_test, "of the test, such as 1003, could be trained on",
     "Make the test's cases after the last step"),
    (an_accuracy_without_the_variable, "the accuracy was measured without variable BF16", "-- COMMAND"),
    (one_seed_for_all, "Seeds differ: the 5 runs of first share seeds", "Give each run its own seed"),
    (three_seeds, "As many runs as stated: 3 seeds", "rounds=5, least=5"),
    (a_harm_that_pleased_the_third_time, "The accuracy must be unharmed", "Take out the step that harms"),
    (a_short_form, "The short form is no measurement", "unset SCALEOUT_QUICK"),
    (another_machine, "One report, one machine", "Measure it on the first machine"),
    (another_installation, "One report, one installation", "Measure it anew"),
    (a_number_by_hand, "Figures follow from the runs", "scaleout report FOLDER"),
    (a_claim_of_copies, "A claim is of one job: mine", "Let its ranks share the work"),
    (one_round, "One run is no measurement", "scaleout compare -n 1 -t 2"),
    (a_round_that_did_not_please, "All rounds count: of comparison 2 there are 4 rounds, and round 3",
     "measure all of it again"),
    (a_figure_by_hand_in_all_of_its_row, "gave another figure than", "scaleout report FOLDER"),
    (a_run_of_another_script, "started with another value of the script", "from its folder"),
    (a_run_on_fewer_threads_than_said, "with another value of ranks x threads", "from its folder"),
    (a_folder_that_was_copied, "Each run counts once: the run 1-input-0 stands in comparison 1 and in",
     "Leave one of them out"),
    (a_test_of_easier_cases, "The test is of the same cases: with seed 1", "the same ones from the seed"),
    (a_slow_run_taken_out, "of comparison 1 there are 5 rounds, and round 3", "measure all of it again"),
    (last_rounds_taken_out, "of comparison 1 there are 3 rounds, and round 4", "Bring its rows back"),
    (an_early_stop_in_two_of_five, "did steps: 100, and one of mine 84", "judge them by"),
    (another_figure_of_the_best, "the accuracy of train.py alone was", "Measure the other command"),
    (an_accuracy_of_which_less_is_better, "The accuracy must be unharmed", "Take out the step"),
    (a_best_that_was_trained_for_longer, "differ in --epochs too", "with the same seeds"),
    (an_accuracy_before_the_last_edit, "measured without the text of its script", "with the same seeds"),
    (a_training_that_diverged, "As many runs as stated: mine was to have 5 seeds", "lacks seed 1, 2"),
    (a_score_of_five_that_falls, "The accuracy must be unharmed", "and 0.421 is the most"),
    (a_time_of_which_more_is_better, "Two clocks must agree", "Add  --lower"),
    (a_sum_for_one_and_a_mean_for_the_other, "some are read by mean, and others by sum", "measure again"),
    (a_variable_that_the_line_does_not_tell, "another value of variable TF_ENABLE_ONEDNN_OPTS", "anew from"),
    (rows_told_twice, "stands behind 1-input-8, and ended before it", "measure all of it again"),
    (a_start_by_hand, "Two clocks must agree", "--work steps=40,80"),
    (a_step_taken_back_in_silence, "Each step begins with what was kept", "Or did you take bits back?"),
    (a_last_step_taken_back_in_silence, "is not what the last step that helped", "**fused** is taken"),
    (lost_runs, "Each run left something: of the run gone", "measure it again"),
]  # fmt: skip


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    return Folder(tmp_path / "results")


def checked(at: Folder, names: Names, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of the check, and what it says; drawn again from the page it says the same."""
    accuracy = [] if "--accuracy" in names or names == [""] else ["--accuracy", "dice"]
    asked = [str(at.top) if name == "" else name for name in names]
    out = ["-o", str(at.top / "page.html")]
    status = cli.main(["report", *asked, *accuracy, "--check", *out])
    said = capsys.readouterr().out
    assert cli.main(["report", "--again", out[1], "--check"]) == status
    assert capsys.readouterr().out.strip() == said.partition("\n")[2].strip()
    return status, said


@pytest.mark.parametrize(
    ("make", "sentence", "next_"), WRONG, ids=lambda one: getattr(one, "__name__", "")
)
def test_what_is_wrong_is_refused_with_what_to_type(
    at: Folder,
    make: Callable[[Folder], Names],
    sentence: str,
    next_: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, said = checked(at, make(at), capsys)
    refused = [line for line in said.splitlines() if line.startswith("Refused. ")]
    assert status == 1 and any(sentence in line and next_ in line for line in refused), said


# Right: each holds.


def a_story(at: Folder) -> Names:
    steps = at.taken()
    return [steps, at.step("2-ranks", {"input": INPUT, "two ranks": TWO}, [150, 151]), at.proof()]


def the_steps_of_12(at: Folder) -> Names:
    """Two ranks kept, oneDNN tried and not kept, bf16 last; the proof by its own clock."""
    first = replace(FIRST, modules=LAB, words=("--epochs", "2"))
    two = replace(first, ranks=2, threads=1)
    texts = {name: f"{name}()\n" for name in ("evaluation", "gather", "fused", "bf16")}
    each = {n: replace(two, script=f"steps/{n}.py", text=text) for n, text in texts.items()}
    onednn = replace(each["gather"], script="steps/oneDNN.py", env={"TF_ENABLE_ONEDNN_OPTS": "1"})
    whole = [replace(way, words=("--test", "100")) for way in (first, each["bf16"])]
    return [
        at.step("s-ranks", {"first": first, "two ranks": two}, [68, 75]),
        at.step("s-evaluation", {"two ranks": two, "evaluation": each["evaluation"]}, [75, 108]),
        at.step(
            "s-gather", {"evaluation": each["evaluation"], "gather": each["gather"]}, [108, 170]
        ),
        at.step("s-oneDNN", {"gather": each["gather"], "oneDNN": onednn}, [170, 171]),
        at.step("s-fused", {"gather": each["gather"], "fused": each["fused"]}, [170, 189]),
        at.step("s-bf16", {"fused": each["fused"], "bf16": each["bf16"]}, [189, 231]),
        at.proof(*whole, wall={"first": 70.0, "mine": 50.0}),
    ]


def a_step_taken_back(at: Folder) -> Names:
    """The second step is faster; the third begins with the first one again, and the notes say why."""
    bits = replace(INPUT, script="steps/bits.py", text="bits()\n")
    steps, fused = at.taken(), replace(INPUT, script="steps/fused.py", text="fused()\n")
    notes = at.top.parent / "notes.md"
    notes.write_text("- **input**: asks once.\n- **bits** may cost accuracy.\n")
    return [
        *(steps, at.step("2-bits", {"input": INPUT, "bits": bits}, [150, 180])),
        *(at.step("3-fused", {"input": INPUT, "fused": fused}, [150, 170]), at.proof(FIRST, fused)),
        *("--notes", str(notes)),
    ]


def the_steps_of_06(at: Folder) -> Names:
    """A step without a verdict is kept by hand, as its interval may still be a gain."""
    maybe = How("steps/maybe.py", "maybe()\n")
    steps = at.taken()
    name = at.step("2-maybe", {"input": INPUT, "maybe": maybe}, [150, 153], spread=0.05)
    return [steps, name, at.proof(FIRST, maybe)]


def an_example_of_keras(at: Folder) -> Names:
    honest(at.top)
    return [""]


def an_example_of_pytorch(at: Folder) -> Names:
    """In an environment of its own, its accuracy in percent, by the seconds of whole jobs."""
    one = ["vision/bin/python", "main.py", "--epochs", "1"]
    two = [*one, "--no-accel"]
    compared(at.top, "a", {"main.py": one, "--no-accel": two}, [100, 150])
    for path in (at.top / "compare/a").rglob("run.json"):
        told = json.loads(path.read_text())
        path.write_text(json.dumps({**told, "command": told["command"]}))
    swept(at, one, two)
    return [""]


def open_mpi_with_reduce(at: Folder) -> Names:
    """Its mpirun tells no rank apart: of what n ranks print the median, n times."""
    ways = [[*words, "--x"] for words in (BASE, BATCH)]
    compared(at.top, "a", {"train.py": ways[0], "--batch 256": ways[1]}, [100, 150])
    path = at.top / "compare/a/runs.jsonl"
    each = [json.loads(line) for line in path.read_text().splitlines()]
    for one in each:
        half = one["value"] / 2
        one |= {"values": {"?": [half, half]}, "reduce": "sum", "command": "mpirun --x"}
        one |= {"ranks": 2, "threads": 1}
        said = at.top / "compare/a/jobs" / one["run_id"] / "output.txt"
        said.write_text(f"images/s: {half}\n" * 2)
    path.write_text("\n".join(map(json.dumps, each)) + "\n")
    typed(at.top, "a", ["--reduce", "sum"], reduce="sum")
    swept(at, *ways)
    return [""]


def a_bar_that_writes_over_itself(at: Folder) -> Names:
    """As tqdm does: a line holds many figures, and the median counts."""
    place = compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    each = [json.loads(line) for line in (place / "runs.jsonl").read_text().splitlines()]
    for one in each:
        figures = [one["value"] * share for share in (0.5, 1.0, 1.1)]
        one["values"] = {"0": figures}
        said = "\r".join(f"images/s: {figure}" for figure in figures)
        (place / "jobs" / one["run_id"] / "output.txt").write_bytes(f"[0] {said}\n".encode())
    (place / "runs.jsonl").write_text("\n".join(map(json.dumps, each)) + "\n")
    swept(at, BASE, BATCH)
    return [""]


def nothing_claimed(at: Folder) -> Names:
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 100.2])
    return [""]


def nothing_claimed_by_a_story(at: Folder) -> Names:
    ways = {"first": FIRST, "input": INPUT}
    return [
        at.step("1-input", ways, [100, 100.1]),
        at.step("2-again", {"first": FIRST, "mine": INPUT}, [60, 60.1]),
    ]


def another_batch_and_the_same_images(at: Folder) -> Names:
    large = replace(INPUT, batch=32, steps=50)
    return [at.taken(FIRST, large), at.proof(FIRST, large)]


def a_variable(at: Folder) -> Names:
    on = replace(FIRST, env={"TF_ENABLE_ONEDNN_OPTS": "1"})
    return [at.taken(FIRST, on), at.proof(FIRST, on)]


def a_loss_that_stays(at: Folder) -> Names:
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    swept(at, BASE, BATCH, loss=True)
    return [""]


def a_loss_of_records(at: Folder) -> Names:
    def loss(variant: str, round_: int) -> dict[str, Any]:
        return {"val_loss": 0.3 + 0.01 * (round_ % 3) - 0.001 * len(variant)}

    return [at.taken(metrics=loss), at.proof(metrics=loss), "--accuracy", "val_loss"]


def a_module_is_the_step(at: Folder) -> Names:
    """The script stays; what it imports is the change."""
    ways = [replace(FIRST, script=f"{name}/train.py", modules={"model.py": name}) for name in "ab"]
    return [at.taken(*ways), at.proof(*ways)]


def short_steps_on_little_data(at: Folder) -> Names:
    """Steps of two epochs on a part, the proof of ten on all of it; both the same in each."""
    short, whole = (
        [
            replace(way, words=("--epochs", epochs, "--data", file), files={file: file})
            for way in (FIRST, INPUT)
        ]
        for epochs, file in (("2", "small.npz"), ("10", "all.npz"))
    )
    return [at.taken(*short), at.proof(*whole)]


def further_figures_of_the_test(at: Folder) -> Names:
    def told(variant: str, round_: int) -> dict[str, Any]:
        figures = {"Dice of the ill": 0.77 + 0.002 * round_, "false alarms": float(round_ % 2)}
        return {**dice(variant, round_), "beside": figures, "worst": {"patient 1031": 0.0},
                "trained_on": [*range(48)], "tested_on": [*range(1000, 1100)],
                "shares": [{"spent": {"input": 20.0, "step": 30.0}}]}  # fmt: skip

    return [at.taken(), at.proof(metrics=told)]


def measured_twice(at: Folder) -> Names:
    names = [at.taken(), at.proof()]
    folder = at.top / "compare/9-proof"
    for name in ("compare.json", "runs.jsonl"):
        old = "before-1" + Path(name).suffix
        (folder / old).write_bytes((folder / name).read_bytes())
    return names


def beside_other_programs(at: Folder) -> Names:
    compared(at.top, "other", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    return [at.taken(), at.proof()]


def rows_of_an_older_version(at: Folder) -> Names:
    """They tell no files, no command, no threads; the guess of the claim was not written down."""
    names = [at.taken(), at.proof(guess=None, guessed="", modules={}, least=0)]
    for name in names:
        rows(at.top, name, files={}, command="", threads=None, values={})
    return names


def whole_jobs_by_their_seconds(at: Folder) -> Names:
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    path = at.top / "compare/a/runs.jsonl"
    each = [json.loads(line) for line in path.read_text().splitlines()]
    for one in each:
        seconds = round(1000 / one["value"], 3)
        one |= {"value": seconds, "wall_s": seconds}
    path.write_text("\n".join(map(json.dumps, each)) + "\n")
    typed(at.top, "a", [], metric="wall_s", lower=True)
    swept(at, BASE, BATCH)
    return [""]


def three_rounds_and_sweeps(at: Folder) -> Names:
    compared(at.top, "a", {"train.py": BASE, "--batch 256": BATCH}, [100, 150])
    path = at.top / "compare/a/runs.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    swept(at, BASE, BATCH)
    return [""]


def two_ranks_in_all(at: Folder) -> Names:
    ways = [replace(way, ranks=2, threads=1) for way in (FIRST, INPUT)]
    return [at.taken(*ways), at.proof(*ways)]


def options_one_after_another(at: Folder) -> Names:
    """A foreign script: --batch 256, then --fused, then both against none."""
    ways = {"train.py": BASE, "--batch 256": BATCH, "both": FUSED}
    first, batch, both = ways.items()
    compared(at.top, "1", dict([first, batch]), [100, 150])
    compared(at.top, "2", dict([batch, both]), [150, 200])
    compared(at.top, "3", dict([first, both]), [100, 199])
    swept(at, BASE, FUSED)
    return ["base", "best", "1", "2", "3"]


def a_count_of_what_is_right(at: Folder) -> Names:
    def right(variant: str, round_: int) -> dict[str, Any]:
        return {"right": 1950 + round_ - 3 * (variant == "mine")}

    return [at.taken(metrics=right), at.proof(metrics=right), "--accuracy", "right"]


def two_figures_were_swept(at: Folder) -> Names:
    names = foreign(at)
    for name, words in (("base", BASE), ("best", BATCH)):
        seeds(at.top, f"loss-{name}", words, [0.31, 0.33, 0.30, 0.32, 0.34])
    resweep(at, "loss-*", metric=by("loss"))
    return names


def a_seed_in_the_name_of_a_file(at: Folder) -> Names:
    out = ["--out", "model-{SEED}.h5"]
    return foreign(at, [*BASE, *out], [*BATCH, *out])


def late_guess(at: Folder, again: bool = False) -> Names:
    """The claim's guess is younger than its runs; or it was measured before, under another name."""
    steps = at.taken()
    if again:
        at.step("8-before", {"first": FIRST, "mine": INPUT}, [60, 41.4], "train_s")
        return [steps, at.proof()]
    name = at.proof()
    path = at.top / "compare" / name / "compare.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "guessed": at.utc()}))
    return [steps, name]


@pytest.mark.parametrize("again", [False, True], ids=["late", "under another name"])
def test_a_late_guess_stays_late_and_costs_its_point(
    at: Folder, again: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = checked(at, late_guess(at, again), capsys)
    assert status == 0 and "Remark. Comparison 2 has no valid guess" in said, said
    assert "name=" not in said and "Points by the check: predicted 0" in said
    assert "1.30, too late" in (at.top / "page.html").read_text()
    assert ("the page leaves out: 8-before" in said.replace("this", "the")) is again


def test_a_guess_without_a_date_is_no_valid_one(
    at: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = checked(at, [at.taken(), at.proof(guessed="")], capsys)
    assert status == 0 and "Remark. Comparison 2 has no valid guess" in said, said


def test_the_points_are_those_of_the_rules_and_of_the_notes(
    at: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = at.top.parent / "notes.md"
    notes.write_text("Ours:\n\n- **input** scales once,\n  for all.\n- **two ranks**: they wait.\n")
    names = [*a_story(at), "--notes", str(notes)]
    status, said = checked(at, names, capsys)
    every = "predicted 1, shown 1, one change 1, unharmed 1, honest 1"
    assert status == 0 and f"Points by the check: {every}" in said, said
    shown = (at.top / "page.html").read_text()
    assert "<td>scales once, for all.</td>" in shown and "they wait.</li>" in shown
    names = [*a_story(Folder(at.top / "other")), "--notes", str(notes)]
    notes.write_text("We tried two ranks, too.")
    at = Folder(at.top / "other")
    status, said = checked(at, [str(at.top / "compare" / n) for n in names[:3]] + names[3:], capsys)
    assert status == 0 and "unharmed 1, honest 0" in said


def test_a_step_that_was_taken_back_stands_among_what_did_not_help(
    at: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = checked(at, a_step_taken_back(at), capsys)
    assert status == 0 and "honest 1" in said and "All that was tried helped" not in said, said
    shown = (at.top / "page.html").read_text()
    assert "It was taken back: bits may cost accuracy.</li>" in shown


RIGHT: list[Callable[[Folder], Names]] = [
    a_story, the_steps_of_12, a_step_taken_back, the_steps_of_06, an_example_of_keras, an_example_of_pytorch,
    open_mpi_with_reduce, nothing_claimed, nothing_claimed_by_a_story,
    another_batch_and_the_same_images, a_variable, a_loss_that_stays, a_loss_of_records,
    a_module_is_the_step, short_steps_on_little_data, further_figures_of_the_test, measured_twice,
    beside_other_programs, rows_of_an_older_version, whole_jobs_by_their_seconds,
    three_rounds_and_sweeps, two_ranks_in_all, options_one_after_another, a_count_of_what_is_right,
    two_figures_were_swept, a_seed_in_the_name_of_a_file,
]  # fmt: skip


@pytest.mark.parametrize("make", RIGHT)
def test_what_is_right_holds(
    at: Folder, make: Callable[[Folder], Names], capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = checked(at, make(at), capsys)
    assert status == 0 and "It holds: every rule is kept." in said, said
    nothing = make in (nothing_claimed, nothing_claimed_by_a_story)
    assert ("It claims no gain." in said) is nothing
