"""One job made faster step by step: what is shown to be faster is kept.

    tuning = sg.module("steps").Tuning(sg.run, ranks=2, threads=2, bind="none")
    tuning.step("binding", {"bound": {"bind": "core"}})
    tuning.kept    # the settings now
    tuning.gain    # times as fast, if the gains of the steps multiply
"""

from scaleout import Comparison, ScaleoutError, data


class Tuning:
    """A job's settings, improved one step at a time, each step in rounds
    against what is kept so far."""

    def __init__(self, job, rounds=None, **first) -> None:
        self._job = job  # the lab's run; 05's tune.py compares settings
        self._rounds = rounds  # of each step; without it tune.py decides
        self._before = "first written"
        self.kept = dict(first)
        if data.quick():
            # A rehearsal: one rank is half of the processes.
            self.kept["ranks"] = 1
        self.steps: dict[str, Comparison] = {}

    def step(self, name: str, variants) -> Comparison:
        """Compare changes with what is kept so far, and keep the fastest of
        those that are shown to be faster.

        The same name again measures that step anew, from what is kept now.
        """
        settings = {self._before: self.kept}
        for variant, change in variants.items():
            settings[variant] = {**self.kept, **change}
            if settings[variant] == self.kept:
                raise ScaleoutError(f"{variant!r} changes nothing: it is "
                                    "what is kept already.")
        done = self._job(script="../05_horovod/tune.py", lab="06_tuning",
                         ranks=processes(settings), threads=1, bind="none",
                         echo=False, variants=settings, rounds=self._rounds)
        found = Comparison(done.records["metrics.runs"].iloc[0],
                           metric="images/s, all time counted")
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


def processes(settings) -> int:
    """Count the ranks that a job of tune.py needs: so many for each number of
    threads, as that number is fixed when a rank starts."""
    most: dict[int, int] = {}
    for how in settings.values():
        threads = int(how["threads"])
        most[threads] = max(most.get(threads, 0), int(how["ranks"]))
    return sum(most.values())
