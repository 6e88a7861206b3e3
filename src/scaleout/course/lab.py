"""A topic of the workshop: its runme.py to run, its checks, its hints."""

from typing import TYPE_CHECKING

from . import checks, history, masters, quote
from .topic import Topic

if TYPE_CHECKING:
    import pandas as pd
    from IPython.display import Code


class Lab(Topic):
    """A topic of the workshop: its runme.py to run, its checks, its hints."""

    def quote(self, what: int | str) -> "Code":
        """The lines of runme.py that a section is about.

        Parameters
        ----------
        what : int or str
            A number: that TODO. A text: the function, loop or statement that it stands in.

        Raises
        ------
        ScaleoutError
            When runme.py has no such TODO or no such line.
        """
        return quote.show_code(masters.read_text(self.script), what)

    def check(self, *numbers: int) -> None:
        """Runs the checks on the lab's script and prints what each found.

        Parameters
        ----------
        *numbers : int
            Of the TODOs; without any, all.
        """
        for result in checks.check(self, numbers or None, checks.overwritten):
            print(result, flush=True)

    def hint(self, number: int) -> None:
        """Prints the next hint for a TODO, one more each time."""
        print(checks.hint(self, number))

    def runs(self, last: int = 5) -> "pd.DataFrame":
        """The last runs of this lab, and what changed from each to the next."""
        return history.runs(self.name, last)

    def reset(self) -> None:
        """Puts a fresh runme.py in the lab's folder; the old one is kept beside it."""
        print(masters.reset(self.name))


def lab(name: str, solution: bool | None = None) -> Lab:
    """The topic called `name`.

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
    return Lab(name, solution)
