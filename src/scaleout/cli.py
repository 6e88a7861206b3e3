"""The `scaleout` command. Each subcommand imports what it needs when it runs, so that all start at once."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .errors import ScaleoutError

if TYPE_CHECKING:
    from .site import Site

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: the job's own, 1 for a check that fails, 2 for bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a job may print what this terminal cannot show
    parser = _parser()
    rest: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    args = parser.parse_args(words)
    try:
        return args.act(args, rest)
    except ScaleoutError as error:
        print(f"scaleout: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt as stop:
        print(f"scaleout: {stop or 'stopped.'}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a full disk, a folder that is not ours, a current folder that is gone
        print(f"scaleout: {error.strerror}" + (f": {error.filename}" if error.filename else ""), file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence in place of the usage."""
        if message.startswith("unrecognized arguments"):
            message += ", put the script's own after --"
        self.exit(2, f"{self.prog}: {message}; type  {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="scaleout", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, act, about: str) -> argparse.ArgumentParser:  # type: ignore[no-untyped-def]
        made = commands.add_parser(name, help=about, description=about)
        made.set_defaults(act=act)
        return made

    doctor = command("doctor", _doctor, "facts about this machine, checks, and the fix for each")
    doctor.add_argument("--site", type=Path, metavar="FILE", help="look at its hosts, or its Slurm, too")
    doctor.add_argument("--json", action="store_true", help="the same for a program to read")

    run = command("run", _run, "run a lab, or any script, on so many ranks: scaleout run 00_welcome -n 2 -- --steps 9")
    run.add_argument("lab", metavar="LAB", help="a topic such as 04_kmeans, or a script's path")
    run.add_argument("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    run.add_argument("-t", "--threads", type=int, help="threads a rank (usable cores / ranks)")
    run.add_argument("--env", action="append", default=[], metavar="K=V", help="one more variable; repeat for more")
    run.add_argument("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")
    run.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds before the job is ended (600)")
    run.add_argument("--solution", action="store_true", help="run the solution's runme.py in place of yours")
    run.add_argument("--python", default="python", metavar="PATH", help="the Python of another environment")
    run.add_argument("--hosts", metavar="A,B", help="machines to start it on over ssh (this one)")
    run.add_argument("-N", "--nodes", type=int, help="how many of the hosts or nodes to use (all)")

    submit = command("submit", _submit, "a job for Slurm: scaleout submit 04_kmeans --site sites/slurm.toml -n 4 -N 2")
    submit.add_argument("lab", metavar="LAB", help="a topic such as 04_kmeans, or a script's path")
    submit.add_argument("--site", type=Path, metavar="FILE", required=True, help="the cluster's file, see sites/")
    submit.add_argument("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    submit.add_argument("-N", "--nodes", type=int, default=1, help="nodes to share them out over (1)")
    submit.add_argument("-t", "--threads", type=int, help="threads a rank (cores in the site file / ranks a node)")
    submit.add_argument("--env", action="append", default=[], metavar="K=V", help="one more variable; repeat for more")
    about = "seconds to wait and run before it is cancelled (3600)"
    submit.add_argument("--timeout", type=float, default=3600, metavar="S", help=about)
    submit.add_argument("--solution", action="store_true", help="run the solution's runme.py in place of yours")
    submit.add_argument("--dry-run", action="store_true", help="show the job script, submit nothing")

    sweep = command("sweep", _sweep, "which settings make a command fast: scaleout sweep -n 1,2 -t 1,2 -- python my.py")
    sweep.add_argument("-n", "--ranks", metavar="N,N", help="MPI ranks to try, such as 1,2,4 (1)")
    sweep.add_argument("-t", "--threads", metavar="N,N", help="threads a rank to try (usable cores / ranks)")
    about = "values of a variable to try; an empty one leaves it unset; 'K=V;V' where values hold commas"
    sweep.add_argument("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "a pattern with the figure in parentheses: 'img/s: ([0-9.]+)' (the record it writes)"
    sweep.add_argument("--metric", default="", metavar="REGEX", help=about)
    sweep.add_argument("--reduce", default="sum", metavar="HOW", help="sum or mean over the ranks that print it (sum)")
    sweep.add_argument("--skip", type=int, default=0, metavar="N", help="figures a rank to drop as warm-up (0)")
    sweep.add_argument("--lower", action="store_true", help="the figure is a time: less is better")
    sweep.add_argument("--repeat", type=int, default=1, metavar="R", help="jobs a point (1)")
    sweep.add_argument("--seed", type=int, default=0, help="of the order of the jobs (0)")
    sweep.add_argument("--search", type=int, default=0, metavar="N", help="at most N points, chosen as it goes (all)")
    sweep.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds before a job is ended (600)")
    about = "stop when the rest would take longer, minutes (60)"
    sweep.add_argument("--max-minutes", type=float, default=60, metavar="M", help=about)
    sweep.add_argument("--name", default="", help="its folder in results/sweep/ (made from command and grid)")
    sweep.add_argument("--retry", action="store_true", help="try points again that failed before")
    sweep.add_argument("--site", type=Path, metavar="FILE", help="how this machine launches jobs, see sites/")

    scaling = command("scaling", _scaling, "fit your table of nodes and rates: scaleout scaling T.csv --predict 64,128")
    scaling.add_argument("table", type=Path, metavar="TABLE.csv", help="its first line names the columns nodes, rate")
    scaling.add_argument("--predict", default="", metavar="N,N", help="nodes to predict (twice the most measured)")
    scaling.add_argument("--work", type=float, default=1e6, metavar="W", help="units to give the cost of (1000000)")
    scaling.add_argument("--json", action="store_true", help="the same for a program to read")

    check = command("check", _check, "run a lab's checks on your runme.py")
    check.add_argument("lab", metavar="LAB")
    check.add_argument("todo", nargs="?", type=int, metavar="TODO", help="one number; without it, all")
    check.add_argument("--solution", action="store_true", help=argparse.SUPPRESS)

    hint = command("hint", _hint, "the next hint for a TODO, one at a time")
    hint.add_argument("lab", metavar="LAB")
    hint.add_argument("todo", type=int, metavar="TODO")

    reset = command("reset", _reset, "a fresh runme.py; yours is kept beside it")
    reset.add_argument("lab", metavar="LAB")

    exercises = command("exercises", _exercises, "write labs/ and notebooks/ from solutions/")
    exercises.add_argument("--check", action="store_true", help="write nothing; exit 1 when they differ")

    data = command("data", _data, "bring a data set to this machine: scaleout data fetch mnist")
    data.add_argument("fetch", choices=["fetch"])
    data.add_argument("name", choices=["mnist"])

    release = command("release", _release, "the attendees' copy, without the solutions: scaleout release class.zip")
    release.add_argument("target", type=Path, help="a new folder, or an archive: .zip, .tar, .tar.gz")
    about = "topics whose solutions are given too, such as 00,01"
    release.add_argument("--answers", default="", metavar="NN,NN", help=about)

    collect = command("collect", _collect, "what a whole class measured: a picture a topic, and a table")
    collect.add_argument("folders", nargs="+", type=Path, help="results folders, or one that holds them all")
    collect.add_argument("--names", action="store_true", help="call attendees by their folder's name (by a number)")

    tour = command("tour", _tour, "every topic on this machine: a table, pictures, one page in results/")
    tour.add_argument("--quick", action="store_true", help="less of the same, for rehearsals")
    return parser


def _doctor(args: argparse.Namespace, rest: list[str]) -> int:
    from . import doctor
    from .site import Site

    return doctor.main(args.json, Site.read(args.site) if args.site else None)


def _run(args: argparse.Namespace, rest: list[str]) -> int:
    from . import launch

    how = {
        "ranks": args.ranks,
        "threads": args.threads,
        "env": dict(_pair(text) for text in args.env),
        "site": _site(args),
        "nodes": args.nodes,
        "timeout": args.timeout,
    }
    name, command = _command(args, rest)
    launch.run(command, name=name, echo=_say, **how)
    return 0


def _site(args: argparse.Namespace) -> "Site | None":
    """The site of --site, with the machines of --hosts."""
    from dataclasses import replace

    from .site import Site

    site = Site.read(args.site) if args.site else None
    if args.hosts is None:
        return site
    hosts = tuple(host.strip() for host in args.hosts.split(","))
    if not all(hosts) or len(set(hosts)) < len(hosts) or any(host.startswith("-") for host in hosts):
        raise ScaleoutError(f"--hosts takes names with commas between them, each once: a,b and not {args.hosts!r}.")
    if site and site.scheduler:
        raise ScaleoutError("--hosts and a site with a scheduler exclude each other: Slurm chooses the nodes.")
    return replace(site or Site(), hosts=hosts)


def _command(args: argparse.Namespace, rest: list[str]) -> tuple[str, list[str]]:
    """The name of a lab's or a script's runs, and the command of one rank."""
    from . import launch

    if args.lab.endswith(".py") or "/" in args.lab:
        name, script = _script(Path(args.lab)), args.lab
    else:
        found = launch.lab(args.lab, solution=args.solution)
        name, script = found.name, launch.show(found.script)
    return name, [launch.interpreter(getattr(args, "python", "python")), "-m", "mpi4py", script, *rest]


def _submit(args: argparse.Namespace, rest: list[str]) -> int:
    import signal

    from .site import Site
    from .submit import submit

    for number in (signal.SIGTERM, signal.SIGHUP):  # a terminal that is closed cancels the job too
        signal.signal(number, signal.default_int_handler)
    site = Site.read(args.site)
    if not site.scheduler:
        raise ScaleoutError(f'{args.site} has no scheduler = "slurm": use  scaleout run --site {args.site}  there.')
    how = {"ranks": args.ranks, "nodes": args.nodes, "threads": args.threads, "timeout": args.timeout}
    env = dict(_pair(text) for text in args.env)
    name, command = _command(args, rest)
    submit(command, name=name, env=env, site=site, echo=_say, dry_run=args.dry_run, **how)
    return 0


def _sweep(args: argparse.Namespace, rest: list[str]) -> int:
    from . import sweep

    return sweep.main(args, rest)


def _scaling(args: argparse.Namespace, rest: list[str]) -> int:
    from .scaling import main

    words = args.predict.split(",") if args.predict else []
    if not all(word.strip().isdigit() and int(word) for word in words) or not 0 < args.work < float("inf"):
        raise ScaleoutError(
            "--predict takes numbers of nodes with commas between them, such as 64,128; --work a number."
        )
    return main(args.table, [int(word) for word in words], args.work, args.json, _say)


def _script(path: Path) -> str:
    """The name of a script's runs; ScaleoutError when the path is no Python script."""
    if path.is_dir():
        raise ScaleoutError(f"{path} is a folder: type the script's path, or a lab's name such as 00_welcome.")
    if not path.is_file():
        raise ScaleoutError(f"There is no script {path}: check the path, or type a lab's name such as 00_welcome.")
    if path.suffix != ".py":
        raise ScaleoutError(f"{path} is no Python script: scaleout run takes a lab's name or a file that ends in .py")
    return path.stem


def _say(text: str) -> None:
    print(text, flush=True)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ScaleoutError(f"--env takes NAME=VALUE, such as --env TF_ENABLE_ONEDNN_OPTS=0, not {text!r}.")
    return name, value


def _check(args: argparse.Namespace, rest: list[str]) -> int:
    from . import exercises, launch

    states = []
    for result in exercises.check(launch.lab(args.lab, solution=args.solution), args.todo):
        _say(str(result))
        states.append(result.state)
    return 0 if all(state == "passed" for state in states) else 1


def _hint(args: argparse.Namespace, rest: list[str]) -> int:
    from . import exercises, launch

    _say(exercises.hint(launch.lab(args.lab, solution=False), args.todo))
    return 0


def _reset(args: argparse.Namespace, rest: list[str]) -> int:
    from . import exercises

    _say(exercises.reset(args.lab))
    return 0


def _exercises(args: argparse.Namespace, rest: list[str]) -> int:
    from . import exercises

    differ = exercises.generate(only_check=args.check)
    for path in differ:
        _say(("differs from its master: " if args.check else "written: ") + path)
    return 1 if args.check and differ else 0


def _data(args: argparse.Namespace, rest: list[str]) -> int:
    from . import data

    _say(f"MNIST is in {data.fetch(args.name)}")
    return 0


def _release(args: argparse.Namespace, rest: list[str]) -> int:
    from . import classroom

    answers = classroom.release(args.target, [answer for answer in args.answers.split(",") if answer])
    _say(f"{args.target}: the workshop with the solutions of {', '.join(answers) or 'no topic'}.")
    return 0


def _collect(args: argparse.Namespace, rest: list[str]) -> int:
    from . import classroom

    _say(f"The pictures and the table: {classroom.show(classroom.collect(args.folders, args.names))}")
    return 0


def _tour(args: argparse.Namespace, rest: list[str]) -> int:
    from . import tour

    return tour.main(args.quick)
