"""The words of the `scaleout` command: each subcommand, its arguments, and what they mean."""

import argparse
from pathlib import Path
from typing import Any, NoReturn

from .words import sentence

__all__ = ["parser"]

LAB = "a topic such as 04_kmeans, or a script's path"
THREADS = "threads a rank (usable cores / ranks)"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence in place of the usage."""
        if message.startswith("unrecognized arguments"):
            message += ", put the script's own after --"
        self.exit(2, f"{sentence(f'{self.prog}: {message}')}; type  {self.prog} --help\n")


def parser(about: str) -> argparse.ArgumentParser:
    """The parser of the whole command line; the name of the subcommand is `command`.

    Parameters
    ----------
    about : str
        What the command is, in a line.
    """
    top = _Parser(prog="scaleout", description=about)
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for add in (_doctor, _run, _submit, _sweep, _compare, _scaling, _course, _class):
        add(commands)
    return top


def _command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    return made


def _doctor(commands: Any) -> None:
    doctor = _command(commands, "doctor", "facts about this machine, checks, and the fix for each")
    add = doctor.add_argument
    add("--site", type=Path, metavar="FILE", help="look at its hosts, or its Slurm, too")
    add("--json", action="store_true", help="the same for a program to read")


def _job(command: argparse.ArgumentParser) -> None:
    """What every job takes."""
    add = command.add_argument
    add("lab", metavar="LAB", help=LAB)
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    about = "one more variable; repeat for more"
    add("--env", action="append", default=[], metavar="K=V", help=about)
    add("--solution", action="store_true", help="run the solution's runme.py in place of yours")


def _run(commands: Any) -> None:
    about = "run a lab, or any script, on so many ranks: scaleout run 00_welcome -n 2 -- --steps 9"
    run = _command(commands, "run", about)
    _job(run)
    add = run.add_argument
    add("-t", "--threads", type=int, help=THREADS)
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")
    about = "seconds before the job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    about = "the Python of another environment"
    add("--python", default="python", metavar="PATH", help=about)
    about = "none: ranks wander between cores (each gets its own)"
    add("--bind", choices=["core", "none"], help=about)
    add("--hosts", metavar="A,B", help="machines to start it on over ssh (this one)")
    add("-N", "--nodes", type=int, help="how many of the hosts or nodes to use (all)")


def _submit(commands: Any) -> None:
    about = "a job for Slurm: scaleout submit 04_kmeans --site sites/slurm.toml -n 4 -N 2"
    submit = _command(commands, "submit", about)
    _job(submit)
    add = submit.add_argument
    about = "the cluster's file, see sites/"
    add("--site", type=Path, metavar="FILE", required=True, help=about)
    add("-N", "--nodes", type=int, default=1, help="nodes to share them out over (1)")
    about = "threads a rank (cores in the site file / ranks a node)"
    add("-t", "--threads", type=int, help=about)
    about = "seconds to wait and run before it is cancelled (3600)"
    add("--timeout", type=float, default=3600, metavar="S", help=about)
    add("--dry-run", action="store_true", help="show the job script, submit nothing")


def _sweep(commands: Any) -> None:
    about = "which settings make a command fast: scaleout sweep -n 1,2 -t 1,2 -- python my.py"
    add = _command(commands, "sweep", about).add_argument
    add("-n", "--ranks", metavar="N,N", help="MPI ranks to try, such as 1,2,4 (1)")
    about = "threads a rank to try (usable cores / ranks)"
    add("-t", "--threads", metavar="N,N", help=about)
    about = (
        "values of a variable to try, also 1..10 or 1..64*2; an empty one leaves it unset; "
        "'K=V;V' where values hold commas"
    )
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "a pattern with the figure in parentheses: 'img/s: ([0-9.]+)' (its record, or its one line like 9 images/s)"
    add("--metric", default="", metavar="REGEX", help=about)
    about = "sum or mean over the ranks that print it (sum)"
    add("--reduce", default="sum", metavar="HOW", help=about)
    about = "figures a rank to drop as warm-up (0)"
    add("--skip", type=int, default=0, metavar="N", help=about)
    add("--lower", action="store_true", help="the figure is a time: less is better")
    add("--repeat", type=int, default=1, metavar="R", help="jobs a point (1)")
    add("--seed", type=int, default=0, help="of the order of the jobs (0)")
    about = "at most N points, chosen as it goes (all)"
    add("--search", type=int, default=0, metavar="N", help=about)
    about = "seconds before a job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    about = "stop when the rest would take longer, minutes (60)"
    add("--max-minutes", type=float, default=60, metavar="M", help=about)
    add("--name", default="", help="its folder in results/sweep/ (made from command and grid)")
    add("--retry", action="store_true", help="try points again that failed before")
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")


def _compare(commands: Any) -> None:
    about = "which command is faster, by how much, and how sure that is: scaleout compare -- A :: B"
    add = _command(commands, "compare", about).add_argument
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    add("-t", "--threads", type=int, help=THREADS)
    about = "one command with each value; an empty one leaves it unset; one value: for all variants"
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "rounds at most, 3 or more; fewer where the intervals are narrow enough (7)"
    add("--rounds", type=int, default=7, metavar="R", help=about)
    about = "wall_s, a field of the record, or a pattern: 'img/s: ([0-9.]+)' (the record's rate)"
    add("--metric", default="", metavar="WHAT", help=about)
    add("--lower", action="store_true", help="it is a time: less is better")
    about = "seconds before a job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    add("--name", default="", help="its folder in results/compare/ (made from the commands)")
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")


def _scaling(commands: Any) -> None:
    about = "fit your table of nodes and rates: scaleout scaling T.csv --predict 64,128"
    add = _command(commands, "scaling", about).add_argument
    about = "its first line names the columns nodes, and rate or seconds"
    add("table", type=Path, metavar="TABLE.csv", help=about)
    add("--predict", default="", metavar="N,N", help="nodes to predict (twice the most measured)")
    about = "units to give the cost of (1000000)"
    add("--work", type=float, default=1e6, metavar="W", help=about)
    about = "a rate: how many nodes reach it, likely and safely"
    add("--target", type=float, metavar="RATE", help=about)
    add("--json", action="store_true", help="the same for a program to read")


def _course(commands: Any) -> None:
    """What an attendee types."""
    check = _command(commands, "check", "run a lab's checks on your runme.py").add_argument
    check("lab", metavar="LAB")
    check("todo", nargs="?", type=int, metavar="TODO", help="one number; without it, all")
    check("--watch", action="store_true", help="again each time you save the file, until Ctrl-C")
    check("--solution", action="store_true", help=argparse.SUPPRESS)

    hint = _command(commands, "hint", "the next hint for a TODO, one at a time").add_argument
    hint("lab", metavar="LAB")
    hint("todo", type=int, metavar="TODO")

    reset = _command(commands, "reset", "a fresh runme.py; yours is kept beside it")
    reset.add_argument("lab", metavar="LAB")

    about = "bring a data set to this machine: scaleout data fetch mnist"
    data = _command(commands, "data", about).add_argument
    data("fetch", choices=["fetch"])
    data("name", choices=["mnist"])

    about = "every topic on this machine: a table, pictures, one page in results/"
    tour = _command(commands, "tour", about)
    tour.add_argument("--quick", action="store_true", help="less of the same, for rehearsals")


def _class(commands: Any) -> None:
    """What an instructor or an author types."""
    exercises = _command(commands, "exercises", "write labs/ and notebooks/ from solutions/")
    about = "write nothing; exit 1 when they differ"
    exercises.add_argument("--check", action="store_true", help=about)

    about = "the attendees' copy, without the solutions: scaleout release class.zip"
    release = _command(commands, "release", about).add_argument
    release("target", type=Path, help="a new folder, or an archive: .zip, .tar, .tar.gz")
    about = "topics whose solutions are given too, such as 00,01"
    release("--answers", default="", metavar="NN,NN", help=about)

    about = "what a whole class measured: a picture a topic, and a table"
    collect = _command(commands, "collect", about).add_argument
    about = "results folders, or one that holds them all"
    collect("folders", nargs="+", type=Path, help=about)
    about = "call attendees by their folder's name (by a number)"
    collect("--names", action="store_true", help=about)
