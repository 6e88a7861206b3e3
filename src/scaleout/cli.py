"""The `scaleout` command. Each subcommand imports what it needs when it runs, so that all start at
once."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from . import cli_arguments, cli_values
from .errors import ScaleoutError
from .words import sentence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: the job's own, 1 for a check that fails, 2 for bad
    input."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A job may print what this terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
    rest: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    about = "Make a training fast on one machine, then run it on many."
    args = cli_arguments.parser(about).parse_args(words)
    try:
        return COMMANDS[args.command](args, rest)
    except ScaleoutError as error:
        print(f"scaleout: {sentence(str(error))}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt as stop:
        said = f"Interrupted: {args.command} did not come to its end; the same line begins again."
        print(f"scaleout: {str(stop) or said}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a full disk, a folder that is not ours, or one that is gone
        where = f": {error.filename}" if error.filename else ""
        print(f"scaleout: {sentence(f'{error.strerror or error}{where}')}", file=sys.stderr)
        return 2


def _doctor(args: argparse.Namespace, rest: list[str]) -> int:
    from . import doctor
    from .jobs.site import Site

    return doctor.main(args.json, Site.read(args.site) if args.site else None)


def _run(args: argparse.Namespace, rest: list[str]) -> int:
    from .jobs import run as launch

    how = {
        "ranks": args.ranks,
        "threads": args.threads,
        "env": cli_values.variables(args.env),
        "site": cli_values.site(args),
        "nodes": args.nodes,
        "bind": args.bind,
        "timeout": args.timeout,
    }
    name, command = cli_values.command(args, rest)
    launch.run(command, name=name, echo=_say, **how)
    return 0


def _submit(args: argparse.Namespace, rest: list[str]) -> int:
    import signal

    from .jobs.site import Site
    from .jobs.slurm import dry_run, submit

    for number in (signal.SIGTERM, signal.SIGHUP):  # a terminal that is closed cancels the job too
        signal.signal(number, signal.default_int_handler)
    site = Site.read(args.site)
    if not site.scheduler:
        raise ScaleoutError(
            f'{args.site} has no scheduler = "slurm": use  scaleout run --site {args.site}  there.'
        )
    name, command = cli_values.command(args, rest)
    how = {
        "name": name,
        "ranks": args.ranks,
        "nodes": args.nodes,
        "threads": args.threads,
        "env": cli_values.variables(args.env),
        "site": site,
    }
    if args.dry_run:
        _say(dry_run(command, **how))
    else:
        submit(command, timeout=args.timeout, echo=_say, **how)
    return 0


def _sweep(args: argparse.Namespace, rest: list[str]) -> int:
    from . import sweeps

    return sweeps.main(args, rest)


def _compare(args: argparse.Namespace, rest: list[str]) -> int:
    from .comparisons.commands import main
    from .sweeps.rates import Metric

    named = args.metric.replace(".", "_").isidentifier()
    return main(args, rest, args.metric if named else Metric(args.metric))


def _scaling(args: argparse.Namespace, rest: list[str]) -> int:
    from .scaling import main

    nodes = cli_values.nodes(args.predict, args.work)
    return main(args.table, nodes, args.work, args.json, _say, args.target)


class _Say:
    """Prints a line, or what a job has said at once, and holds nothing back."""

    def __call__(self, text: str) -> None:
        print(text, flush=True)

    def all(self, text: str) -> None:
        """Whole lines, as they are."""
        print(text, end="", flush=True)


_say = _Say()


def _say_meanwhile(text: str) -> None:
    """What is true only for now: beside the output, and in a terminal overwritten by what comes."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _check(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import checks, watch
    from .course.lab import lab

    found, tell = lab(args.lab, solution=args.solution), _say_meanwhile
    if args.watch:
        return 0 if watch.watch(found, args.todo, _say, tell) else 1
    states = []
    for result in checks.check(found, args.todo, tell):
        _say(str(result))
        states.append(result.state)
    return 0 if all(state == "passed" for state in states) else 1


def _hint(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import checks
    from .course.lab import lab

    _say(checks.hint(lab(args.lab, solution=False), args.todo))
    return 0


def _reset(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import masters

    _say(masters.reset(args.lab))
    return 0


def _exercises(args: argparse.Namespace, rest: list[str]) -> int:
    from .course.masters import generate

    differ = generate(only_check=args.check)
    for path in differ:
        _say(("differs from its master: " if args.check else "written: ") + path)
    return 1 if args.check and differ else 0


def _data(args: argparse.Namespace, rest: list[str]) -> int:
    from . import data

    _say(f"MNIST is in {data.fetch(args.name)}")
    return 0


def _release(args: argparse.Namespace, rest: list[str]) -> int:
    from .course.release import release

    answers = release(args.target, [answer for answer in args.answers.split(",") if answer])
    _say(f"{args.target}: the workshop with the solutions of {', '.join(answers) or 'no topic'}.")
    return 0


def _collect(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import classroom
    from .paths import show

    folder = classroom.collect(args.folders, args.names)
    _say(f"The pictures and the table: {show(folder)}")
    return 0


def _tour(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import tour

    return tour.main(args.quick)


COMMANDS = {
    "check": _check,
    "collect": _collect,
    "compare": _compare,
    "data": _data,
    "doctor": _doctor,
    "exercises": _exercises,
    "hint": _hint,
    "release": _release,
    "reset": _reset,
    "run": _run,
    "scaling": _scaling,
    "submit": _submit,
    "sweep": _sweep,
    "tour": _tour,
}
