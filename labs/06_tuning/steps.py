"""One job made faster step by step: what is shown to be faster is kept; of
changes that are not told apart, the simplest.

    tuning = sg.module("steps").Tuning(sg.run, ranks=2, threads=2, bind="none")
    tuning.step("binding", {"bound": {"bind": "core"}})
    tuning.kept        # the settings now
    tuning.promised    # times as fast, if the gains of the steps multiply
"""

import math
from itertools import product

from scaleout import (
    Comparison,
    ScaleoutError,
    compare,
    data,
    machine,
    mpis,
    sweep,
)
from scaleout.base.words import rounded
from scaleout.comparisons.intervals import Ratio, verdict

FIRST = "first written"
ONCE_MORE = "once more"


class Tuning:
    """A job's settings, improved one step at a time, each step in rounds
    against what is kept so far."""

    def __init__(self, job, rounds=None, **first) -> None:
        self._job = job  # the lab's run; 05's tune.py compares settings
        self._rounds = rounds  # of each step; without it tune.py decides
        self._before = FIRST
        self.first = dict(first)
        if data.quick():
            # A rehearsal: one rank is half of the processes.
            self.first["ranks"] = 1
        self.kept = self.first
        self.steps: dict[str, Comparison] = {}
        self.choices: dict[str, str] = {}  # what each step kept
        self.measured: Ratio | None = None  # beside first written
        self._changes: dict[str, dict] = {}
        self._rates: dict[str, list[str]] = {}

    def step(self, name: str, variants, rounds=None) -> Comparison:
        """Compare changes, the simplest first, with what is kept so far, and
        keep the simplest of those that are shown to be faster and not told
        apart from the fastest. A change that is there already is left out.

        The same name again measures that step anew, from what is kept now.
        """
        settings = {self._before: self.kept}
        for variant, how in self._on_top(variants).items():
            if how == self.kept:
                raise ScaleoutError(f"{variant!r} changes nothing: it is "
                                    "what is kept already.")
            if how not in settings.values():
                settings[variant] = how
        # The MPI library is one for all of them.
        asked = {variant: {key: value for key, value in how.items()
                           if key != "site"}
                 for variant, how in settings.items()}
        done = self._job(script="../05_horovod/side/tune.py", lab="06_tuning",
                         ranks=processes(settings), threads=1, bind="none",
                         site=self.kept.get("site"), echo=False,
                         variants=asked, rounds=rounds or self._rounds)
        found = Comparison(done.records["metrics.runs"].iloc[0],
                           metric="images/s, all time counted")
        self._changes[name] = {variant: variants[variant]
                               for variant in found.variants}
        return self._keep(name, settings, found)

    def once_more(self, rounds: int = 10) -> Comparison | None:
        """Try again what was unclear, on top of what is kept now: of each
        step the change that looked best. None where nothing was."""
        changes: dict[str, dict] = {}
        for name, found in self.steps.items():
            open_ = {variant: how for variant, how in
                     self._changes.get(name, {}).items()
                     if found.verdict(variant) == "unclear"
                     and {**self.kept, **how} != self.kept}
            if open_ and name != ONCE_MORE:
                best = max(open_, key=lambda one: found.ratio(one).middle)
                changes[best] = open_[best]
        return self.step(ONCE_MORE, changes, rounds) if changes else None

    def whole_jobs(self, name: str, variants) -> Comparison:
        """As `step`, where each run is a whole job of its own: for what is
        fixed when mpirun starts it, such as the ranks and the MPI library.

        The job as first written runs too, as the last of them.
        """
        settings = self._on_top(variants)
        before = self._before
        yours = without_cycle(self.kept)
        jobs = {"yours": yours}
        for variant, how in settings.items():
            # In a rehearsal one rank is what is kept.
            if without_cycle(how) != yours:
                jobs[variant] = without_cycle(how)
        jobs[FIRST] = as_job(self.first)
        settings = {"yours": self.kept, **settings, FIRST: self.first}
        found = compare(self._job, jobs, rounds=self._rounds or 5,
                        metric="images_per_s", steps=120)
        self._keep(name, settings, found, before)
        if before != FIRST:
            self._note(FIRST, name, found, FIRST)
        kept = self.choices[name]
        if kept == found.baseline:
            ratio = found.ratio(FIRST)
            self.measured = Ratio(1 / ratio.middle, 1 / ratio.high,
                                  1 / ratio.low if ratio.low else math.inf,
                                  ratio.rounds)
        else:
            self.measured = found.between(kept, FIRST)
        return found

    @property
    def pair(self) -> tuple[int, int]:
        """The numbers of threads that are kept: inter and intra."""
        intra = int(self.kept["threads"])
        return int(self.kept.get("inter", 0)) or intra, intra

    def pairs(self, numbers) -> dict[str, dict]:
        """A variant for each pair of inter and intra that is not kept."""
        if data.quick():
            # A rehearsal: each pair has processes of its own.
            numbers = numbers[:1]
        return {f"{inter} x {intra}": {"inter": inter, "threads": intra}
                for inter, intra in product(sorted(set(numbers)), repeat=2)
                if (inter, intra) != self.pair}

    def sweep(self, script, ranks, threads):
        """Run the whole job once at each number of ranks and threads, with as
        many operations at a time as threads, and all else as kept."""
        how = self.kept
        words = ["python", "-m", "mpi4py", str(script), "--steps=80"]
        for name in ("evaluation", "evaluate_every"):
            words.append(f"--{name.replace('_', '-')}={how[name]}")
        env = {"HOROVOD_CYCLE_TIME": [how["cycle_ms"]]}
        if data.quick():
            ranks = ranks[:1]
        if how.get("bf16"):
            words.append("--bf16")
        return sweep(words, ranks=ranks, threads=threads, env=env,
                     metric="images_per_s", site=how.get("site"), echo=None)

    def rivals(self, grid, others) -> dict[str, dict]:
        """The best cell of each number of ranks of a sweep, bound as there,
        and as many ranks as are kept, bound, with a share of the cores each;
        without what is kept already or among the others."""
        known = [self._place(how)
                 for how in (self.kept, *self._on_top(others).values())]
        frame = grid.frame.dropna(subset="rate").sort_values("rate")
        best = frame.groupby("ranks").tail(1).sort_values("ranks")
        ranks = int(self.kept["ranks"])
        share = max(1, machine.usable_cores() // ranks)
        pairs = [(int(one.ranks), int(one.threads))
                 for one in best.itertuples()]
        found = {}
        for pair in [*pairs, (ranks, share)]:
            change = at(*pair)
            place = self._place({**self.kept, **change})
            if place not in known:
                known.append(place)
                bound = ", bound" * (place[2] == "core")
                found[f"{pair[0]} x {pair[1]}{bound}"] = change
        return found

    @staticmethod
    def _place(how) -> tuple:
        """Ranks, threads, and whether they are bound; one rank need not."""
        ranks, threads = int(how["ranks"]), int(how["threads"])
        return ranks, threads, how.get("bind") if ranks > 1 else "none"

    def libraries(self) -> dict[str, dict]:
        """Other MPI libraries that are here and that Horovod can use: those
        with MPICH's binary interface."""
        return {name: {"site": site} for name, site in mpis.sites().items()
                if name != "MPICH" and site.launcher != "openmpi"}

    def _on_top(self, variants) -> dict[str, dict]:
        """Each change on top of what is kept."""
        return {variant: {**self.kept, **change}
                for variant, change in variants.items()}

    def _keep(self, name, settings, found, before="") -> Comparison:
        """Keep what the step has shown, and note how fast it was."""
        self._note(before or found.baseline, name, found, found.baseline)
        chosen = simplest(found)
        if chosen != found.baseline:
            self.kept = settings[chosen]
            self._before = chosen
            self._note(chosen, name, found, chosen)
        self.steps[name], self.choices[name] = found, chosen
        return found

    def _note(self, label, name, found, row) -> None:
        """Note the rate of some settings in a step."""
        rate = rounded(found.table["median"][row])
        self._rates.setdefault(label, []).append(f"{rate} ({name})")

    def said(self, name: str) -> str:
        """What a step kept, and why."""
        if name not in self.steps:
            return "Nothing was unclear, so nothing is tried again."
        found, kept = self.steps[name], self.choices[name]
        if kept == found.baseline:
            tried = [one for one in found.variants if one != FIRST]
            if not tried:
                return "Nothing is kept: nothing else was tried."
            near = max(tried, key=lambda one: found.ratio(one).middle)
            return ("Nothing is kept: no change is shown to be faster. The "
                    f"nearest is {found.sentence(near)}")
        said = (f"{kept} is kept: {found.ratio(kept).middle:.2f} times as "
                f"fast as {found.baseline}.")
        alike = [one for one in found.variants if one != kept
                 and found.verdict(one) == "faster"
                 and beside(found, one, kept) not in ("faster", "slower")]
        if alike:
            are = "is" if len(alike) == 1 else "are"
            said += (f" {' and '.join(alike)} {are} not told apart from it, "
                     "and it is the simplest.")
        return said

    def cycle_of_yours(self, whole: Comparison) -> str:
        """Say whether the lab's own file set the cycle that was kept."""
        jobs = whole.records
        jobs = jobs[jobs["variant"] == "yours"]["metrics.settings"]
        ran = {float(job.get("HOROVOD_CYCLE_TIME", 1)) for job in jobs}
        kept = float(self.kept["cycle_ms"])
        if ran == {kept}:
            return f"Yours ran with the cycle that was kept, {kept:g} ms."
        own = " and ".join(f"{cycle:g}" for cycle in sorted(ran))
        return (f"Yours ran with a cycle of {own} ms, but {kept:g} ms was "
                "kept: correct your third gap, and compare again.")

    def same_settings(self) -> str:
        """The images/s of the same settings, wherever they ran."""
        return "\n".join(f"{label}: {', '.join(rates)} images/s."
                         for label, rates in self._rates.items()
                         if len(rates) > 1)

    @property
    def promised(self) -> Ratio:
        """How many times as fast the kept steps are together, if their gains
        multiply."""
        kept = [found.ratio(self.choices[name])
                for name, found in self.steps.items()
                if self.choices[name] != found.baseline]
        middle = math.prod(ratio.middle for ratio in kept)
        half = math.hypot(*(math.log(one.high / one.middle) for one in kept))
        rounds = min((ratio.rounds for ratio in kept), default=0)
        return Ratio(middle, middle * math.exp(-half),
                     middle * math.exp(half), rounds)


def simplest(found: Comparison) -> str:
    """The first of the variants that are faster than the baseline and not
    told apart from the fastest; else the baseline."""
    best = found.best
    return next((name for name in found.variants
                 if found.verdict(name) == "faster" and (
                     name == best or beside(found, name, best) != "slower")),
                found.baseline)


def beside(found: Comparison, variant: str, other: str) -> str:
    """The verdict on one variant beside another."""
    return verdict(found.between(variant, other), found.noise)


def at(ranks: int, threads: int) -> dict:
    """A change to so many ranks and threads, inter as intra; several ranks
    are bound where each thread has a core."""
    bound = ranks > 1 and ranks * threads <= machine.usable_cores()
    return {"ranks": ranks, "threads": threads, "inter": 0,
            "bind": "core" if bound else "none"}


def as_job(how) -> dict:
    """Settings as the lab's run takes them."""
    env = {"HOROVOD_CYCLE_TIME": how["cycle_ms"]}
    if how.get("inter"):
        env["TF_NUM_INTEROP_THREADS"] = how["inter"]
    rest = {name: value for name, value in how.items()
            if name not in ("cycle_ms", "inter")}
    return {**rest, "env": env}


def without_cycle(how) -> dict:
    """The same without Horovod's cycle: it stands in the lab's own file."""
    job = as_job(how)
    del job["env"]["HOROVOD_CYCLE_TIME"]
    return job


def processes(settings) -> int:
    """Count the ranks that a job of tune.py needs: so many for each pair of
    numbers of threads, as these are fixed when a rank starts."""
    most: dict[tuple, int] = {}
    for how in settings.values():
        threads = int(how["threads"])
        pair = threads, int(how.get("inter", 0)) or threads
        most[pair] = max(most.get(pair, 0), int(how["ranks"]))
    return sum(most.values())
