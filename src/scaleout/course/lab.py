"""A topic of the workshop: its scripts to run, its figures, its checks and hints."""

import copy
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from ..base.errors import ScaleoutError
from ..base.paths import home, read_text, results, results_path, show, topic
from ..comparisons import elsewhere
from ..jobs.environment import interpreter
from ..jobs.job import TIMEOUT_S, Job, Run
from ..launch.run import start
from ..site import Site
from . import checks, guess_first, marks, masters

if TYPE_CHECKING:
    from IPython.display import Code

    from ..comparisons.comparison import Other


class Lab:
    """The runme.py of a topic and the scripts beside it: the lab's, or the solution's.

    `lab` makes one, and says what it takes and refuses.

    Attributes
    ----------
    name : str
        The topic's full name.
    solution : bool
        Whether it is the solution.
    folder : Path
        Where its scripts are.
    script : Path
        What `run` starts: runme.py, unless `other` or `start` has made it.
    """

    def __init__(self, name: str, solution: bool | None = None) -> None:
        self.name = topic(name)
        answers = home() / "solutions"
        self.solution = (
            answers in [Path.cwd(), *Path.cwd().parents] if solution is None else solution
        )
        self.folder = home() / ("solutions" if self.solution else "labs") / self.name
        self.script = self.folder / "runme.py"
        if not self.script.is_file():
            raise ScaleoutError(
                f"{show(self.script)} is missing: type  scaleout reset {self.name}  for a fresh one."
            )

    def other(self, script: str) -> Self:
        """Return the topic with another of its scripts in the place of runme.py.

        Parameters
        ----------
        script : str
            Such as "ddp.py".

        Returns
        -------
        Lab
            A copy; this one stays as it is.
        """
        topic = copy.copy(self)
        topic.script = self.folder / script
        return topic

    @property
    def start(self) -> Self:
        """The lab as it was given out: `start.run()` runs it, whatever runme.py has become."""
        text = masters.untouched(self.name).get(self.script.name)
        if text is None:
            raise ScaleoutError(f"{self.name} has no untouched lab: fetch the workshop again.")
        untouched = copy.copy(self)
        untouched.script = results(self.name, "start") / self.script.name
        untouched.script.write_text(text, encoding="utf-8")
        return untouched

    def module(self, name: str) -> ModuleType:
        """Load a Python file of the topic's own folder as a module, anew once it has changed.

        Two topics may each have one of the same name. `figures` is short for `module("figures")`.

        Parameters
        ----------
        name : str
            Such as "kernels", for what the notebook computes with `kernels.py`.

        Returns
        -------
        module

        Raises
        ------
        ScaleoutError
            There is no such file.
        """
        path = self.folder / f"{name}.py"
        if not path.is_file():
            raise ScaleoutError(f"{self.name} has no module {name!r}: there is no {show(path)}.")
        known = f"{self.folder.parent.name}.{self.name}.{name}"  # such as labs.05_horovod.figures
        state = (path, path.stat().st_mtime_ns)
        loaded = sys.modules.get(known)
        if loaded is None or loaded.__dict__.get("_state") != state:
            spec: Any = importlib.util.spec_from_file_location(known, path)
            sys.modules[known] = loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            loaded.__dict__["_state"] = state
        return loaded

    @property
    def figures(self) -> ModuleType:
        """The figures that this topic alone draws: `figures.py` of its folder."""
        return self.module("figures")

    def run(
        self,
        ranks: int = 1,
        threads: int | None = None,
        env: Mapping[str, str | None] | None = None,
        site: "Site | Path | str | None" = None,
        nodes: int | None = None,
        bind: str | None = None,
        timeout: float = TIMEOUT_S,
        echo: "bool | Callable[[str], None]" = True,
        script: str | None = None,
        python: str | Path = "python",
        **args: Any,
    ) -> Run:
        """Run runme.py, or another script of the topic, on so many ranks.

        Parameters
        ----------
        ranks, threads, env, site, nodes, bind, timeout
            As of `scaleout.run`.
        echo : bool or callable
            True prints each line of output as it comes; a function takes it; False keeps quiet.
        script : str, optional
            Another script of the topic's folder, such as "modes.py".
        python : str or Path
            The path of another environment's Python.
        **args
            The script's flags: colors=16 is `--colors 16`, sizes=[1, 7] is `--sizes 1 7`, and True
            is the flag alone; False and None leave it out.

        Returns
        -------
        Run

        Raises
        ------
        JobFailed, JobTimeout, JobInterrupted
            In each case no process of the job is left.
        ScaleoutError
            There is no such script, Python cannot read it, or what was asked for is no job.
        """
        say = (lambda text: print(text, flush=True)) if echo is True else echo or None
        path = self.folder / script if script else self.script
        if not path.is_file():
            raise ScaleoutError(f"{self.name} has no script {script!r}: there is no {show(path)}.")
        command = [interpreter(python), "-m", "mpi4py", show(path), *_flags(args)]
        job = Job.asked(
            command,
            name=self.name,
            ranks=ranks,
            threads=threads,
            env={**self._beside(path), **(env or {})} if isinstance(env or {}, Mapping) else env,
            site=site,
            nodes=nodes,
            bind=bind,
            timeout=timeout,
        )
        return start(job, say)

    def _beside(self, path: Path) -> dict[str, str]:
        """Let an untouched lab, which lies elsewhere, import the scripts beside runme.py."""
        imported = re.findall(r"^(?:from|import) (\w+)", read_text(path), re.MULTILINE)
        if path.parent == self.folder or not any(
            (self.folder / f"{name}.py").is_file() for name in imported
        ):
            return {}
        paths = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(paths)}

    def elsewhere(self, *comparisons: str) -> "list[Other]":
        """Read what a headline comparison of this topic gave on other machines.

        Parameters
        ----------
        *comparisons : str
            Its name; of several, each machine's last one counts, as for steps of instructions that
            not all machines have.

        Returns
        -------
        list of Other
            For `Comparison(..., others=)`; empty where there are none.
        """
        return elsewhere.kept(self.folder / elsewhere.FILE, *comparisons)

    def job_script(
        self,
        ranks: int = 1,
        nodes: int = 1,
        threads: int = 1,
        site: "Site | Path | str" = "../sites/slurm.toml",
        **args: Any,
    ) -> None:
        """Print the job script that run(ranks=, nodes=, site=) would submit to this Slurm.

        Parameters
        ----------
        ranks, nodes : int
        threads : int
            Of each rank.
        site : Site, path or str
            A Slurm site, or its file.
        **args
            The flags of runme.py, as in `run`.

        Raises
        ------
        ScaleoutError
            The site file cannot be read, or what was asked for is no job.
        """
        from ..launch.slurm import dry_run

        site = site if isinstance(site, Site) else Site.read(site)
        command = ["python", "-m", "mpi4py", show(self.script), *_flags(args)]
        job = Job.asked(
            command,
            name=self.name,
            ranks=ranks,
            nodes=nodes,
            threads=threads,
            site=site,
            queued=True,
        )
        text = dry_run(job).replace(str(results_path()), "results")
        print(text.replace(str(home()), "WORKSHOP"))

    def quote(self, what: int | str) -> "Code":
        """Quote the lines of runme.py that a section is about.

        Parameters
        ----------
        what : int or str
            A number: that TODO. A text: the function, loop or statement that it stands in.

        Returns
        -------
        IPython.display.Code

        Raises
        ------
        ScaleoutError
            When runme.py has no such TODO or no such line.
        """
        from IPython.display import Code

        return Code(marks.quoted(read_text(self.script), what), language="python")

    def check(self, *numbers: int) -> None:
        """Run the checks on the lab's script and print what each found.

        Parameters
        ----------
        *numbers : int
            Of the TODOs; without any, all.

        Raises
        ------
        ScaleoutError
            There is no such TODO, or the lab's checks cannot be loaded.
        """
        for result in checks.check(self, numbers or None, checks.overwritten):
            print(result, flush=True)

    def hint(self, number: int) -> None:
        """Print the next hint for a TODO, one more each time.

        Parameters
        ----------
        number : int
            Of the TODO.

        Raises
        ------
        ScaleoutError
            There is no such TODO, or it has no hints.
        """
        print(checks.hint(self, number))

    def reset(self) -> None:
        """Put a fresh runme.py in the lab's folder; the old one is kept beside it.

        So it is with each other script of the topic that has TODOs.

        Raises
        ------
        ScaleoutError
            There is nothing to reset to.
        """
        print(masters.reset(self.name))


def lab(name: str, solution: bool | None = None) -> Lab:
    """Return the topic called `name`.

    Parameters
    ----------
    name : str
        Such as "04_kmeans", "04" or "kmeans".
    solution : bool, optional
        Whether its runme.py is the solution's; without it a notebook in `solutions/` gets the
        solution's, any other the lab's.

    Returns
    -------
    Lab

    Raises
    ------
    ScaleoutError
        There is no such topic, or its runme.py is missing.
    """
    guess_first.begin()
    return Lab(name, solution)


def _flags(args: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in args.items():
        if value is not False and value is not None:
            values = [] if value is True else value if isinstance(value, (list, tuple)) else [value]
            flags += ["--" + name.replace("_", "-"), *map(str, values)]
    return flags
