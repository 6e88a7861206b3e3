"""Your steps, one after another: each is a copy of runme.py as it was then,
measured in rounds against the last one that was kept.

    ladder = cap.module("steps").Ladder(cap)
    ladder.step("evaluation", guess=1.5)  # runme.py as it is now, and a guess
    ladder.step("two ranks", guess=1.2, ranks=2)  # or another way to start it
    ladder.prove(guess=3)                 # whole trainings, with five seeds

The copies lie in results/12_capstone/steps.
"""

import json
import re
import shutil

from scaleout import compare, data, machine
from scaleout.base.errors import ScaleoutError
from scaleout.base.paths import results, show

ROUNDS = 5
SHORT = {"epochs": 2, "patients": 18}  # a job of a step
TEST = 100  # patients whose Dice says whether a training is harmed
FIRST = "first"  # the name of runme.py as it was before any step


class Ladder:
    """The steps that were taken, in their order."""

    def __init__(self, lab) -> None:
        self.lab = lab
        self.folder = results(lab.name, "steps")
        self.file = self.folder / "story.json"
        if self.file.is_file():
            self.steps = json.loads(self.file.read_text())
        else:
            shutil.copy(lab.script, self.folder / f"{FIRST}.py")
            self.steps = {FIRST: {"ranks": 1, "env": {}, "kept": True}}

    @property
    def kept(self) -> str:
        """The last step that was shown to be faster than those before it."""
        return [name for name, how in self.steps.items() if how["kept"]][-1]

    @property
    def story(self) -> list[str]:
        """The names of the comparisons, for the report; the proof is last."""
        taken = [name for name in self.steps if name != FIRST]
        return [*(f"step-{_short(name)}" for name in taken), "proof"]

    def step(self, name: str, guess: float, ranks: int = 0, env=None):
        """Measure runme.py as it is now. guess: how many times as fast as what
        was kept. ranks and env: as that had them, unless you say so. A step of
        a name that was there takes its place, and of all that came after it.
        """
        names = list(self.steps)
        if name in names[1:]:
            self.steps = {n: self.steps[n] for n in names[:names.index(name)]}
        before = self.kept
        old = self.steps[before]
        new = {"ranks": ranks or old["ranks"], "env": {**old["env"],
               **(env or {})}}
        script = self.folder / f"{_short(name)}.py"
        script.write_text(self._text(name, before), encoding="utf-8")
        pair = {before: self._how(before, old), name: self._how(name, new)}
        found = compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                        guess=guess, name=f"step-{_short(name)}", **SHORT)
        # In the short form one round shows nothing, and the story goes on.
        kept = found.verdict(name) == "faster" or data.quick()
        self.steps[name] = {**new, "kept": kept}
        self.file.write_text(json.dumps(self.steps), encoding="utf-8")
        what = "kept" if kept else (
            f"not kept. ladder.back() makes runme.py that of {before} again")
        print(f"{found.sentence(name)[:-1]}: {what}.")
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
        with the same five seeds. It takes ten to forty minutes."""
        if self.kept == FIRST:
            raise ScaleoutError(
                "No step was shown to be faster, so there is nothing to prove "
                "yet: take another one, where the profile is widest."
            )
        pair = {FIRST: self._how(FIRST, self.steps[FIRST]),
                "mine": self._how(self.kept, self.steps[self.kept])}
        return compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                       guess=guess, name="proof", metric="train_s", test=TEST)

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


def _short(name: str) -> str:
    """A name as a file may have it."""
    return re.sub(r"\W+", "-", name)
