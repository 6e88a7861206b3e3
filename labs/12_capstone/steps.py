"""Your steps, one after another: each is a copy of runme.py as it was then,
measured in rounds against the last one that was kept.

    ladder = cap.module("steps").Ladder(cap)
    ladder.step("evaluation", guess=1.5)  # runme.py as it is now, and a guess
    ladder.step("two ranks", guess=1.2, ranks=2)  # or another way to start it
    ladder.prove(guess=3)                 # whole trainings, with five seeds

The copies lie in results/12_capstone/steps.
"""

import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from scaleout import Comparison, compare, data, machine
from scaleout.base import jsonlines
from scaleout.base.errors import ScaleoutError
from scaleout.base.paths import results, results_path, show
from scaleout.measuring.journal import read_rows
from scaleout.measuring.row import Compared

ROUNDS = 5
SHORT = {"epochs": 2, "patients": 18}  # a job of a step
# Of the proof, and of a step that may change the Dice. After six epochs false
# alarms come and go with the seed, so that five seeds would tell too little.
WHOLE = {"epochs": 12, "test": 100}
LARGE = {"epochs": 1, "patients": 18}  # with slices of 128 x 128
HARM = 0.02  # of the Dice: what may be lost, as the report has it
FIRST = "first"  # the name of runme.py as it was before any step
PROOF = "proof"
BF16 = {"avx512_bf16", "amx_bf16"}  # multiply bf16 themselves
# Where a processor has one of these, TensorFlow switches oneDNN on by itself.
ONEDNN = BF16 | {"avx_vnni", "avx512_vnni", "amx_tile", "amx_int8"}


def native() -> bool:
    """Whether this processor multiplies bf16 numbers itself."""
    return bool(BF16 & {*machine.facts().isa})


def onednn_on() -> bool:
    """Whether TensorFlow uses oneDNN here without being asked."""
    asked = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "")
    if asked:
        return asked.lower() in ("1", "true")
    return bool(ONEDNN & {*machine.facts().isa})


def goal() -> str:
    """How much faster the whole training should become on this machine."""
    isa = machine.facts().isa
    whole, half = (3, 2) if not onednn_on() else (2.5, 1.8)
    if "amx_bf16" in isa:
        whole, half = 4, 2.5
    return (f"{machine.best_isa(isa) or 'An old processor'}, oneDNN "
            f"{'on' if onednn_on() else 'off'} by default, bf16 "
            f"{'native' if native() else 'not native'}: the goal is {whole} "
            f"times as fast, or {half} times for one point.")


class Ladder:
    """The steps that were taken, in their order.

    env: variables of all jobs, such as the cycle that 05 found.
    """

    def __init__(self, lab, env=None) -> None:
        self.lab = lab
        self.folder = results(lab.name, "steps")
        self.file = self.folder / "story.json"
        if self.file.is_file():
            self.steps = json.loads(self.file.read_text())
            taken = ", ".join(self.taken) or "none"
            print(f"Going on from the steps that were taken: {taken}. "
                  f"Kept: {self.kept}.")
            return
        shutil.copy(lab.script, self.folder / f"{FIRST}.py")
        self.steps = {FIRST: {"ranks": 1, "env": env or {}, "kept": True}}
        self._keep()
        print(f"{show(lab.script)} as it is now is kept as {FIRST}.")

    @property
    def taken(self) -> list[str]:
        """The names of the steps, without the first version."""
        return [name for name in self.steps if name != FIRST]

    @property
    def kept(self) -> str:
        """The last step that was shown to be faster than those before it."""
        return [name for name, how in self.steps.items() if how["kept"]][-1]

    @property
    def ranks(self) -> int:
        """The ranks of what was kept."""
        return self.steps[self.kept]["ranks"]

    def other_ranks(self, name: str) -> int:
        """The ranks of this step, where it was taken; else 1 where several
        were kept, and 2 where one was."""
        if name in self.steps:
            return self.steps[name]["ranks"]
        return 1 if self.ranks > 1 else 2

    @property
    def story(self) -> list[str]:
        """The names of the comparisons, for the report; the proof is last."""
        return [*(f"step-{_short(name)}" for name in self.taken), PROOF]

    def step(self, name: str, guess: float, ranks: int = 0, env=None,
             dice: bool = False):
        """Measure runme.py as it is now. guess: how many times as fast as what
        was kept. ranks and env: as that had them, unless you say so. dice: a
        change that may cost quality trains as long as in the proof, with five
        seeds, and is kept only if its Dice is shown to be unharmed. The last
        step takes its own place when runme.py has changed since. Any other
        step that was taken is shown as it was measured.
        """
        self._refuse(name)
        if guess is None:
            raise ScaleoutError(
                f"Your guess comes first: how many times as fast will {name} "
                f"be? Such as  ladder.step({name!r}, guess=1.3)"
            )
        names = list(self.steps)
        at = names.index(name) if name in names else len(names)
        later = names[at + 1:]
        before = [n for n in names[:at] if self.steps[n]["kept"]][-1]
        old = self.steps[before]
        new = {"ranks": ranks or old["ranks"], "env": {**old["env"],
               **(env or {})}}
        pair = {before: self._how(before, old), name: self._how(name, new)}
        script = self.folder / f"{_short(name)}.py"
        if name in names:
            same = new.items() <= self.steps[name].items()
            if later and not same:
                raise ScaleoutError(
                    f"{name!r} was measured with other ranks or variables, "
                    f"and {later[0]!r} came after it: give this step a name "
                    f"of its own, such as {name + ' again'!r}."
                )
            if later or same and not self._edited(name, before):
                found = _measured(f"step-{_short(name)}") or self._compare(
                    name, pair, guess, dice)
                self._say(found, name, before)
                print("It is shown as it was measured. To measure runme.py as "
                      f"it is now, give the step a new name: {name} again.")
                return found
        text = self._text(name, before)
        first = self.folder / f"{_short(before)}.py"
        if (text, new) == (first.read_text(encoding="utf-8"),
                           {key: old[key] for key in new}):
            raise ScaleoutError(
                f"{show(self.lab.script)} is that of {before}, and starts as "
                "it: edit a function, save the file, and run this cell again."
            )
        if name in names:
            print(f"The script that {name} had is {show(_aside(script))}.")
            # Out of the story until it is measured: this may be interrupted.
            del self.steps[name]
            self._keep()
        script.write_text(text, encoding="utf-8")
        found = self._compare(name, pair, guess, dice)
        # In the short form one round shows nothing, and the story goes on.
        kept = found.verdict(name) == "faster" or data.quick()
        if kept and dice and self._harms(found, name, before):
            self.steps[name] = {**new, "kept": False, "harms": True}
        else:
            self.steps[name] = {**new, "kept": kept}
        self._keep()
        self._say(found, name, before)
        return found

    def back(self) -> None:
        """Make runme.py what it was in the last step that was kept."""
        aside = self.folder / f"before-{_short(self.kept)}-was-back.py"
        shutil.copy(self.lab.script, aside)
        shutil.copy(self.folder / f"{_short(self.kept)}.py", self.lab.script)
        print(f"{show(self.lab.script)} is that of {self.kept}. What it was "
              f"is {show(aside)}.")

    def prove(self, guess: float):
        """Train the first version and the last one that was kept, whole, each
        with the same five seeds. It takes half an hour to an hour."""
        if self.kept == FIRST:
            raise ScaleoutError(
                "No step was shown to be faster, so there is nothing to prove "
                "yet: take another one, where the profile is widest."
            )
        proved = self.folder / "proved.txt"
        of = proved.read_text() if proved.is_file() else ""
        if of == self.kept and (found := _measured(PROOF)):
            print(f"It is shown as it was measured, with {self.kept}. To "
                  f"measure it again, remove {show(proved)}.")
            return found
        pair = {FIRST: self._how(FIRST, self.steps[FIRST]),
                "mine": self._how(self.kept, self.steps[self.kept])}
        found = compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                        guess=guess, name=PROOF, metric="train_s", **WHOLE)
        proved.write_text(self.kept)
        return found

    def larger(self, guess: float):
        """Compare one rank with two, with what was kept, when a slice has four
        times as many pixels."""
        slices = self.lab.module("phantoms").cohort(LARGE["patients"])
        images, masks = (each.repeat(2, axis=1).repeat(2, axis=2)
                         for each in (slices.images, slices.masks))
        file = self.folder / "larger.npz"
        np.savez(file, images=images, masks=masks, patient=slices.patient,
                 part=slices.part)
        kept = self.steps[self.kept]
        ranks = {"one rank": 1, "two ranks": 2}
        pair = {name: self._how(self.kept, {**kept, "ranks": number})
                for name, number in ranks.items()}
        return compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                       guess=guess, name="larger", data=str(file),
                       epochs=LARGE["epochs"])

    def notes(self, worst: str = "") -> Path:
        """A file with a line for each step, to write your sentence behind;
        what stands in it already stays. worst: one on the worst patients."""
        file = self.folder / "notes.md"
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        why = self.lab.folder / "ours" / "why.toml"
        ours = tomllib.loads(why.read_text()) if why.is_file() else {}
        for name in self.taken:
            if f"**{name}**" not in text:
                told = ours.get(name, {})
                how = "kept" if self.steps[name]["kept"] else "left"
                found = _measured(f"step-{_short(name)}")
                if found and found.verdict(name) == "slower":
                    how = "slower"
                text += f"- **{name}** {told.get(how, '')}".rstrip() + "\n"
        if worst and worst not in text:
            text += f"- {worst}\n"
        file.write_text(text, encoding="utf-8")
        return file

    def _refuse(self, name: str) -> None:
        """Refuse a name whose file would be none, or that of another step."""
        if not re.search(r"[^\W_]", name):
            raise ScaleoutError(
                f"A step's name needs a letter or a digit, not {name!r}: "
                "type one that says what you changed, such as 'evaluation'."
            )
        # Some file systems take First.py and first.py for one file.
        taken = {_short(n).casefold(): n for n in self.steps}
        other = taken.get(_short(name).casefold(), name)
        if FIRST in (name, other):
            raise ScaleoutError(
                f"{name!r} is the name of runme.py as it was before any step: "
                f"give yours another one, such as {'my ' + name!r}."
            )
        if other != name:
            raise ScaleoutError(
                f"{name!r} would have the same file as your step {other!r}: "
                f"give it another name, such as {name + ' again'!r}."
            )

    def _edited(self, name: str, before: str) -> bool:
        """Tell whether runme.py is neither that of the step nor, after back(),
        that of the one before it."""
        texts = [(self.folder / f"{_short(n)}.py").read_text(encoding="utf-8")
                 for n in (name, before)]
        return self._text(name, before) not in texts

    def _compare(self, name: str, pair: dict, guess: float,
                 dice: bool) -> Comparison:
        """Measure a step in rounds."""
        return compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                       guess=guess, name=f"step-{_short(name)}",
                       **(WHOLE if dice else SHORT))

    def _harms(self, found: Comparison, name: str, before: str) -> bool:
        """Whether more of the Dice may be lost than the report allows."""
        gap = self.lab.figures.gap(found.records, before, name)
        return not data.quick() and not gap[1] >= -HARM

    def _say(self, found: Comparison, name: str, before: str) -> None:
        """Print what was found, the bound, and whether the step is kept."""
        step = self.steps[name]
        back = f"ladder.back() makes runme.py that of {before} again"
        what = "kept" if step["kept"] else f"not kept. {back}"
        if step.get("harms"):
            what = (f"not kept, as more than {HARM} of the Dice may be lost. "
                    f"{back}")
        print(f"{found.sentence(name)[:-1]}: {what}.")
        if step["ranks"] == self.steps[before]["ranks"]:
            print(bound(found, name))

    def _keep(self) -> None:
        """Write the story down."""
        jsonlines.write(self.file, json.dumps(self.steps))

    def _how(self, name: str, step: dict) -> dict:
        """What the lab's run is given for a step; ranks share the cores."""
        threads = max(1, machine.usable_cores() // step["ranks"])
        return {"script": str(self.folder / f"{_short(name)}.py"),
                "ranks": step["ranks"], "threads": threads,
                "env": step["env"]}

    def _text(self, name: str, before: str) -> str:
        """runme.py; or, of the solution, what was kept with our next edit."""
        edits = self.lab.folder / "ours"
        if not edits.is_dir():
            return self.lab.script.read_text(encoding="utf-8")
        old = (self.folder / f"{_short(before)}.py").read_text()
        new = edits / f"{_short(name)}.py"
        if not new.is_file():
            return old
        return self.lab.module("ours/edit").edited(old, new.read_text())


def spent(found: Comparison, variant: str) -> dict[str, float]:
    """The seconds of rank 0 in each part, the median of a variant's jobs,
    without the first step, which images/s leaves out as well; empty where no
    job has told them."""
    if not (found.runs.run_id != "").any():
        return {}
    records = found.records
    jobs = [job["shares"][0]["spent"] for job, name in
            zip(records.metrics, records.variant, strict=True)
            if name == variant and "shares" in job]
    parts = dict.fromkeys(part for job in jobs for part in job)
    return {part: float(np.median([job.get(part, 0) for job in jobs]))
            for part in parts if part != "first step"}


def bound(found: Comparison, name: str) -> str:
    """What a step could bring at most, by the profile of the jobs that it was
    compared with: without the part in which it has saved most."""
    old, new = spent(found, found.baseline), spent(found, name)
    if not (old and new):
        return "No profile of these jobs is there."
    part = max(old, key=lambda part: old[part] - new.get(part, 0))
    if old[part] <= new.get(part, 0):
        return f"No part takes less time than in {found.baseline}."
    share = old[part] / sum(old.values())
    most, ratio = 1 / (1 - share), found.ratio(name)
    said = (f"It has saved most in {part}, which had {100 * share:.0f} % of "
            f"the time of {found.baseline} in these jobs: at most "
            f"{most:.2f} times as fast.")
    if ratio.low > most:
        return (f"{said} More came than that: other parts have become faster "
                "as well, or the change does less work.")
    if ratio.high >= most:
        return (f"{said} The interval holds this bound: a share is measured, "
                "and has a noise, too.")
    return said


def clocks(proof: Comparison) -> str:
    """How many times as fast a training is, and the whole job around it."""
    rows, _ = read_rows(proof.folder / "runs.jsonl", Compared)
    start_s = rows[0].start_s
    jobs = Comparison([replace(row, value=row.wall_s - start_s)
                       for row in rows], lower=True, metric="wall_s")
    said = [f"{what}: {ratio.middle:.2f} times as fast "
            f"({ratio.low:.2f} to {ratio.high:.2f})"
            for what, ratio in (("the training, by its own clock",
                                 proof.ratio("mine")),
                                ("the whole job, timed from outside",
                                 jobs.ratio("mine")))]
    return "\n".join(said)


def _short(name: str) -> str:
    """A name as a file may have it."""
    return re.sub(r"\W+", "-", name)


def _measured(name: str) -> Comparison | None:
    """Read a comparison of this name; None where it is gone."""
    try:
        return Comparison.read(results_path("compare", name))
    except ScaleoutError:
        return None


def _aside(script: Path) -> Path:
    """Copy a step's script to where no step has its own."""
    folder = script.parent / "aside"
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir())) + 1
    return Path(shutil.copy(script, folder / f"{script.stem}-{number}.py"))
