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
from pathlib import Path

from scaleout import Comparison, compare, data, machine
from scaleout.base import jsonlines
from scaleout.base.errors import ScaleoutError
from scaleout.base.paths import results, results_path, show

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
        was kept. ranks and env: as that had them, unless you say so. The last
        step takes its own place when runme.py has changed since. Any other
        step that was taken is shown as it was measured.
        """
        self._refuse(name)
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
                found = _measured(name) or self._compare(name, pair, guess)
                self._say(found, name, before)
                print("It is shown as it was measured. To measure runme.py as "
                      f"it is now, give the step a new name: {name} again.")
                return found
            print(f"The script that {name} had is {show(_aside(script))}.")
            # Out of the story until it is measured: this may be interrupted.
            del self.steps[name]
            self._keep()
        script.write_text(self._text(name, before), encoding="utf-8")
        found = self._compare(name, pair, guess)
        # In the short form one round shows nothing, and the story goes on.
        kept = found.verdict(name) == "faster" or data.quick()
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

    def _compare(self, name: str, pair: dict, guess: float) -> Comparison:
        """Measure a step in rounds."""
        return compare(self.lab.run, pair, rounds=ROUNDS, least=ROUNDS,
                       guess=guess, name=f"step-{_short(name)}", **SHORT)

    def _say(self, found: Comparison, name: str, before: str) -> None:
        """Print what was found, and whether the step is kept."""
        what = "kept" if self.steps[name]["kept"] else (
            f"not kept. ladder.back() makes runme.py that of {before} again")
        print(f"{found.sentence(name)[:-1]}: {what}.")

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


def _short(name: str) -> str:
    """A name as a file may have it."""
    return re.sub(r"\W+", "-", name)


def _measured(name: str) -> Comparison | None:
    """Read what was measured of a step; None where that is gone."""
    try:
        return Comparison.read(results_path("compare", f"step-{_short(name)}"))
    except ScaleoutError:
        return None


def _aside(script: Path) -> Path:
    """Copy a step's script to where no step has its own."""
    folder = script.parent / "aside"
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir())) + 1
    return Path(shutil.copy(script, folder / f"{script.stem}-{number}.py"))
