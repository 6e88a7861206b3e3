"""The words of the `scaleout` command: each subcommand, its arguments, and what they mean."""

import argparse
from pathlib import Path
from typing import Any, NoReturn

from .words import sentence

LAB = "a topic such as 04_kmeans, or a script's path"
THREADS = "threads of each rank (usable cores / ranks)"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence in place of the usage."""
        if message.startswith("unrecognized arguments"):
            message += ", put the script's own after --"
        self.exit(2, f"{sentence(f'{self.prog}: {message}')}; type  {self.prog} --help\n")


def parser(about: str) -> argparse.ArgumentParser:
    """The parser of the whole command line; the name of the subcommand is `command`."""
    top = _Parser(prog="scaleout", description=about)
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for add in (_doctor, _run, _submit, _sweep, _compare, _scaling, _course, _class):
        add(commands)
    return top


def _command(commands: Any, name: str, about: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    return made


def _doctor(commands: Any) -> None:
    doctor = _command(
        commands, "doctor", "what this machine has, what is missing, and what to type"
    )
    add = doctor.add_argument
    add("--site", type=Path, metavar="FILE", help="check this site's hosts, or its Slurm, too")
    add("--json", action="store_true", help="the same for a program to read")


def _job(command: argparse.ArgumentParser) -> None:
    """What every job takes."""
    add = command.add_argument
    add("lab", metavar="LAB", help=LAB)
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    about = "an environment variable for the job; repeat for more"
    add("--env", action="append", default=[], metavar="K=V", help=about)
    add("--solution", action="store_true", help="run the solution's runme.py in place of yours")


def _run(commands: Any) -> None:
    about = (
        "run a lab, or any script, on several ranks: scaleout run 00_welcome -n 2 -- --repeats 9"
    )
    run = _command(commands, "run", about)
    _job(run)
    add = run.add_argument
    add("-t", "--threads", type=int, help=THREADS)
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")
    about = "seconds before the job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    about = "the Python of another environment"
    add("--python", default="python", metavar="PATH", help=about)
    about = "none: the system places the ranks (core: each rank gets cores of its own)"
    add("--bind", choices=["core", "none"], help=about)
    add("--hosts", metavar="A,B", help="machines to start the job on, over ssh (this one)")
    add("-N", "--nodes", type=int, help="how many of the hosts or nodes to use (all)")


def _submit(commands: Any) -> None:
    about = "run a job through Slurm: scaleout submit 04_kmeans --site sites/slurm.toml -n 4 -N 2"
    submit = _command(commands, "submit", about)
    _job(submit)
    add = submit.add_argument
    about = "the cluster's file, see sites/"
    add("--site", type=Path, metavar="FILE", required=True, help=about)
    add("-N", "--nodes", type=int, default=1, help="nodes to divide the ranks over (1)")
    about = "threads of each rank (cores in the site file / ranks on a node)"
    add("-t", "--threads", type=int, help=about)
    about = "seconds to wait and run before the job is cancelled (3600)"
    add("--timeout", type=float, default=3600, metavar="S", help=about)
    add("--dry-run", action="store_true", help="only show the job script")


def _sweep(commands: Any) -> None:
    about = (
        "find the settings that make a command fast: scaleout sweep -n 1,2 -t 1,2 -- python my.py"
    )
    add = _command(commands, "sweep", about).add_argument
    add("-n", "--ranks", metavar="N,N", help="MPI ranks to try, such as 1,2,4 (1)")
    about = "threads of each rank to try (usable cores / ranks)"
    add("-t", "--threads", metavar="N,N", help=about)
    about = (
        "values of a variable to try, also 1..10 or 1..64*2; an empty one leaves it unset; "
        "'K=V;V' where values hold commas; 'K=V,V if OTHER=V' tries it only there; {K} in the "
        "command is filled in"
    )
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "a pattern with the figure in parentheses: 'img/s: ([0-9.]+)' (its record, or its one line like 9 images/s)"
    add("--metric", default="", metavar="REGEX", help=about)
    about = "sum or mean of the figures of all ranks (sum)"
    add("--reduce", default="sum", metavar="HOW", help=about)
    about = "first figures of each rank to leave out as warm-up (0)"
    add("--skip", type=int, default=0, metavar="N", help=about)
    add("--lower", action="store_true", help="the figure is a time: less is better")
    add("--repeat", type=int, default=1, metavar="R", help="jobs for each point (1)")
    add("--seed", type=int, default=0, help="another number gives another order of the jobs (0)")
    about = "try at most N points, chosen by the results so far, and repeat the likely best (all)"
    add("--search", type=int, default=0, metavar="N", help=about)
    about = "measure what Intel recommends for TensorFlow, too, beside the default"
    add("--published", action="store_true", help=about)
    about = "seconds before a job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    about = "stop if the rest would take longer than so many minutes (60)"
    add("--max-minutes", type=float, default=60, metavar="M", help=about)
    add("--name", default="", help="folder in results/sweep/ (made from command and grid)")
    add("--retry", action="store_true", help="try failed points again")
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")


def _compare(commands: Any) -> None:
    about = (
        "say which command is faster, by how much, and how sure that is: scaleout compare -- A :: B"
    )
    add = _command(commands, "compare", about).add_argument
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    add("-t", "--threads", type=int, help=THREADS)
    about = "compare the values of a variable, also 1..4; an empty one leaves it unset; one value: for all variants"
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "at most so many rounds, 3 or more; fewer if more would change nothing (7)"
    add("--rounds", type=int, default=7, metavar="R", help=about)
    about = "wall_s, a field of the record, or a pattern: 'img/s: ([0-9.]+)' (the record's rate)"
    add("--metric", default="", metavar="WHAT", help=about)
    add("--lower", action="store_true", help="the figure is a time: less is better")
    about = "seconds before a job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    add("--name", default="", help="folder in results/compare/ (made from the commands)")
    add("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")


def _scaling(commands: Any) -> None:
    about = "predict more nodes from a table of nodes and rates: scaleout scaling T.csv --predict 64,128"
    add = _command(commands, "scaling", about).add_argument
    about = "a table whose first line names the columns: nodes, and rate or seconds"
    add("table", type=Path, metavar="TABLE.csv", help=about)
    add("--predict", default="", metavar="N,N", help="nodes to predict (twice the most measured)")
    about = "say what so many images, samples or tokens cost in node hours (1000000)"
    add("--work", type=float, default=1e6, metavar="W", help=about)
    about = "a rate: say how many nodes reach it, probably and almost surely"
    add("--target", type=float, metavar="RATE", help=about)
    add("--json", action="store_true", help="the same for a program to read")


def _course(commands: Any) -> None:
    """What an attendee types."""
    check = _command(commands, "check", "check what you filled into a lab's runme.py").add_argument
    check("lab", metavar="LAB")
    check("todo", nargs="?", type=int, metavar="TODO", help="number of one TODO (all)")
    check(
        "--watch", action="store_true", help="check again each time you save the file, until Ctrl-C"
    )
    check("--solution", action="store_true", help=argparse.SUPPRESS)

    hint = _command(commands, "hint", "show the next hint for a TODO").add_argument
    hint("lab", metavar="LAB")
    hint("todo", type=int, metavar="TODO")

    reset = _command(commands, "reset", "give back the untouched runme.py; yours is kept beside it")
    reset.add_argument("lab", metavar="LAB")

    about = "download a data set: scaleout data fetch mnist"
    data = _command(commands, "data", about).add_argument
    data("fetch", choices=["fetch"])
    data("name", choices=["mnist"])

    about = "a short version of every topic; leaves one page with pictures in results/"
    tour = _command(commands, "tour", about)
    tour.add_argument(
        "--quick", action="store_true", help="an even shorter version, for rehearsals"
    )


def _class(commands: Any) -> None:
    """What an instructor or an author types."""
    exercises = _command(commands, "exercises", "write labs/ and notebooks/ from solutions/")
    about = "write nothing; exit with 1 if they differ"
    exercises.add_argument("--check", action="store_true", help=about)

    about = "make the attendees' copy, without the solutions: scaleout release class.zip"
    release = _command(commands, "release", about).add_argument
    release("target", type=Path, help="a new folder, or an archive: .zip, .tar, .tar.gz")
    about = "topics whose solutions it has, such as 00,01 (none)"
    release("--answers", default="", metavar="NN,NN", help=about)

    about = "gather what a class measured: a picture for each topic, and a table"
    collect = _command(commands, "collect", about).add_argument
    about = "results folders, or a folder that holds them all"
    collect("folders", nargs="+", type=Path, help=about)
    about = "call attendees by their folder's name (by a number)"
    collect("--names", action="store_true", help=about)
