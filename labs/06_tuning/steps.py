"""One job made faster step by step: what is shown to be faster is kept.

    tuning = sg.module("steps").Tuning(sg.run, ranks=2, threads=2, bind="none")
    tuning.step("binding", {"bound": {"bind": "core"}})
    tuning.kept    # the settings now
    tuning.gain    # times as fast, if the gains of the steps multiply
"""

from itertools import product

from scaleout import Comparison, ScaleoutError, compare, data, mpis, sweep

FIRST = "first written"


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

    def step(self, name: str, variants) -> Comparison:
        """Compare changes with what is kept so far, and keep the fastest of
        those that are shown to be faster.

        The same name again measures that step anew, from what is kept now.
        """
        settings = {self._before: self.kept, **self._on_top(variants)}
        for variant in variants:
            if settings[variant] == self.kept:
                raise ScaleoutError(f"{variant!r} changes nothing: it is "
                                    "what is kept already.")
        # The MPI library is one for all of them.
        asked = {variant: {key: value for key, value in how.items()
                           if key != "site"}
                 for variant, how in settings.items()}
        done = self._job(script="../05_horovod/side/tune.py", lab="06_tuning",
                         ranks=processes(settings), threads=1, bind="none",
                         site=self.kept.get("site"), echo=False,
                         variants=asked, rounds=self._rounds)
        found = Comparison(done.records["metrics.runs"].iloc[0],
                           metric="images/s, all time counted")
        return self._keep(name, settings, found)

    def whole_jobs(self, name: str, variants) -> Comparison:
        """As `step`, where each run is a whole job of its own: for what is
        fixed when mpirun starts it, such as the ranks and the MPI library.

        The job as first written runs too, as the last of them.
        """
        settings = self._on_top(variants)
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
        return self._keep(name, settings, found)

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

    def rival(self, grid, others) -> dict[str, dict]:
        """The fastest point of a sweep; none if it is kept already or among
        the others."""
        known = [(how.get("ranks"), how.get("threads"))
                 for how in (self.kept, *others.values())]
        frame = grid.frame.dropna(subset="rate").sort_values("rate")
        for _, point in frame.tail(1).iterrows():
            pair = int(point.ranks), int(point.threads)
            if pair not in known:
                return {f"{pair[0]} x {pair[1]}": at(*pair)}
        return {}

    def libraries(self) -> dict[str, dict]:
        """Other MPI libraries that are here and that Horovod can use: those
        with MPICH's binary interface."""
        return {name: {"site": site} for name, site in mpis.sites().items()
                if name != "MPICH" and site.launcher != "openmpi"}

    def _on_top(self, variants) -> dict[str, dict]:
        """Each change on top of what is kept."""
        return {variant: {**self.kept, **change}
                for variant, change in variants.items()}

    def _keep(self, name: str, settings, found: Comparison) -> Comparison:
        """Keep the fastest variant, if one is shown to be faster."""
        if found.best != found.baseline:
            self.kept = settings[found.best]
            self._before = found.best
        self.steps[name] = found
        return found

    @property
    def gain(self) -> float:
        """How many times as fast the kept steps are together, if their gains
        multiply."""
        product = 1.0
        for found in self.steps.values():
            if found.best != found.baseline:
                product *= found.ratio(found.best).middle
        return product


def at(ranks: int, threads: int) -> dict:
    """A change to so many ranks and threads; inter as intra."""
    return {"ranks": ranks, "threads": threads, "inter": 0}


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
