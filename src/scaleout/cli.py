"""The `scaleout` command: its words, and each verb as one call. A verb imports what it needs when it
runs, so that all start at once."""

import argparse
import errno
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .base.errors import FULL, WHEN_FULL, ScaleoutError
from .base.paths import give_libraries_a_folder
from .base.words import plain, sentence

if TYPE_CHECKING:
    from .comparisons.comparison import Comparison
    from .jobs.job import Job
    from .scaling import Measured, RateFit
    from .site import Site

Verb = Callable[[argparse.Namespace, list[str]], int]
LAB = "a topic such as 04_kmeans, or a script's path"
THREADS = "threads of each rank (usable cores / ranks)"
SITE = "how this machine launches jobs, see sites/"
MINUTES, GATE = 10.0, 0.05  # of a gate, and of one to be tried
KEPT = (".jsonl", ".md", ".png", ".sbatch", ".sh")  # of a sweep's folder, what a person opens


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status.

    That is the job's own, 1 for a check that fails, 2 for bad input.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A job may print what this terminal cannot show.
            stream.reconfigure(errors="backslashreplace")
    rest: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    args = parser().parse_args(words)
    args.typed = ["scaleout", *words, *(["--", *rest] if rest else [])]
    give_libraries_a_folder()
    try:
        status: int = args.call(args, rest)
        return status
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
        room = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            room = ": make room, or type  export SCALEOUT_RESULTS=FOLDER  to keep results elsewhere"
        elif error.errno in FULL:
            room = f": {WHEN_FULL}"
        said = sentence(f"{error.strerror or error}{where}{room}")
        print(f"scaleout: {said}", file=sys.stderr)
        return 2


def _doctor(args: argparse.Namespace, rest: list[str]) -> int:
    from . import doctor
    from .site import Site

    return doctor.main(args.json, Site.read(args.site) if args.site else None)


def _run(args: argparse.Namespace, rest: list[str]) -> int:
    from .jobs.ignored import undone
    from .launch.run import start

    job = _job(args, rest, site=_site(args), bind=args.bind, stdin=True)
    if said := undone([args.threads] if args.threads else [], job.env):
        _say(said)
    start(job, _say)
    return 0


def _submit(args: argparse.Namespace, rest: list[str]) -> int:
    from .launch.run import start
    from .launch.slurm import dry_run
    from .site import Site

    site = Site.read(args.site)
    if not site.scheduler:
        raise ScaleoutError(
            f'{args.site} has no scheduler = "slurm": use  scaleout run --site {args.site}  there.'
        )
    job = _job(args, rest, site=site, queued=True)
    if args.dry_run:
        _say(dry_run(job))
    else:
        start(job, _say)
    return 0


def _sweep(args: argparse.Namespace, rest: list[str]) -> int:
    from .base.paths import show
    from .sweeps import points, sweep

    say = _beside(args.json)
    result = sweep(
        rest,
        ranks=points.typed_counts("-n", args.ranks),
        threads=points.typed_counts("-t", args.threads),
        env=points.typed_variables(args.env),
        metric=args.metric,
        reduce=args.reduce,
        lower=args.lower,
        repeat=args.repeat,
        search=args.search,
        timeout=args.timeout,
        name=args.name,
        site=_site(args),
        echo=say,
        typed=args.typed,
        prepare=args.prepare,
    )
    say(f"\n{result}")
    if not math.isnan(result.drift):
        say(f"The default drifted by {100 * result.drift:+.1f} % from the first to the last time.")
    assert result.folder is not None
    kept = sorted(path.name for path in result.folder.iterdir() if path.suffix in KEPT)
    say(f"{show(result.folder)}/ holds {', '.join(kept)}")
    if args.json:
        from .measuring import document
        from .sweeps.document import document as of_sweep

        document.write(of_sweep(result, args.metric, args.typed), args.json)
    return 0 if result.best is not None else 1


def _compare(args: argparse.Namespace, rest: list[str]) -> int:
    from .comparisons import refs
    from .comparisons.variants import of_itself, of_refs, variants

    if args.calibrate:
        return _calibrated(args, of_itself(rest, args.env))
    gate = _gate(args)
    if not args.refs:
        return _compared(args, variants(rest, args.env), gate)
    say = _beside(args.json)
    names = refs.parse(args.refs)
    if changed := refs.dirty():
        say(changed)
    with refs.worktrees(names) as found:
        return _compared(args, of_refs(found, rest, args.env), gate)


def _compared(
    args: argparse.Namespace, asked: dict[str, dict[str, Any]], gate: float | None
) -> int:
    """Compare the variants, and return the status of the gate; 2 where a job of a gate fails."""
    from .base.paths import show
    from .comparisons.gate import judge
    from .jobs.job import JobError

    say = _beside(args.json)
    try:
        minutes = None if gate is None else args.minutes or MINUTES
        result = _measured(args, asked, rounds=args.rounds or 7, gate=gate, minutes=minutes)
    except JobError as error:
        error.status = error.status if gate is None else 2
        raise
    say(f"\n{result}")
    judged = None if gate is None else judge(result, gate)
    if judged:
        say(f"\n{judged}")
    written = result.write(str(judged) if judged else "")
    say(f"{show(written[0].parent)}/ holds runs.jsonl, {', '.join(p.name for p in written)}")
    if args.json:
        from .comparisons.document import document as of_comparison
        from .measuring import document

        document.write(of_comparison(result, args.typed, judged), args.json)
    return judged.status if judged else 0


def _calibrated(args: argparse.Namespace, asked: dict[str, dict[str, Any]]) -> int:
    """Measure one command against itself, and say what a gate makes of that."""
    from .comparisons.calibrate import calibrate
    from .comparisons.gate import MOST_ROUNDS

    if args.refs or args.json:
        raise ScaleoutError(
            "--calibrate takes one command, and prints a table: leave the rest out."
        )
    share = _gate(args) if args.gate is not None else GATE
    most = {"rounds": MOST_ROUNDS, "least": MOST_ROUNDS}
    result = _measured(args, asked, **most, minutes=args.minutes or MINUTES)
    _say(f"\n{calibrate(result, share or GATE)}")
    return 0


def _measured(
    args: argparse.Namespace, asked: dict[str, dict[str, Any]], **how: Any
) -> "Comparison":
    """Compare variants as the words of a command line say."""
    from .comparisons.compare import compare
    from .launch import run as launch

    ready = ["sh", "-c", args.prepare] if args.prepare else []
    for one in asked.values():
        inside = one.pop("inside", [])
        one |= {"prepare": [*inside, *ready]} if ready else {}
    about: dict[str, Any] = {"least": args.least, "guess": args.guess, "typed": args.typed}
    return compare(
        launch.run,
        asked,
        metric=args.metric,
        lower=args.lower,
        reduce=args.reduce,
        name=args.name,
        work=args.work,
        echo=_beside(args.json),
        ranks=args.ranks,
        threads=args.threads,
        timeout=args.timeout,
        site=_site(args),
        **(about | how),
    )


def _gate(args: argparse.Namespace) -> float | None:
    """Read the share of --gate PERCENT; None where there is none."""
    if args.gate is None:
        if args.minutes is not None:
            raise ScaleoutError("--minutes is for --gate: add one, such as  --gate 5")
        return None
    if args.rounds is not None:
        raise ScaleoutError(
            "--gate goes on until it can tell: leave --rounds out (--minutes ends it)."
        )
    if not 0 < args.gate < 100 or not (args.minutes is None or 0 < args.minutes < math.inf):
        raise ScaleoutError(
            "--gate takes a percentage, and --minutes a time, such as  --gate 5 --minutes 10"
        )
    return float(args.gate) / 100


def _beside(json_: str) -> Callable[[str], None]:
    """Return what prints lines: on standard error where standard output is for a document alone."""
    return _complain if json_ == "-" else _say


def _scaling(args: argparse.Namespace, rest: list[str]) -> int:
    from .scaling import fit_rates, read_measured

    asked = _nodes(args.predict)
    table = read_measured(args.table)
    fit = fit_rates(table.nodes, table.rates, table.count)
    rows = [_predicted(table, fit, nodes) for nodes in asked or [int(2 * fit.nodes[-1])]]
    (_print_json if args.json else _print_lines)(table, fit, rows)
    return 1 if any("refused" in row for row in rows) else 0


def _predicted(table: "Measured", fit: "RateFit", nodes: int) -> dict[str, Any]:
    """Predict a number of nodes as a row, or say why that cannot be."""
    try:
        found = fit.predict(nodes)
    except ScaleoutError as error:
        return {"nodes": nodes, "refused": str(error)}
    row: dict[str, Any] = {"nodes": nodes, "rate": found.rate, "low": found.low}
    row |= {"high": found.high, "efficiency": found.efficiency, "low_law": found.low_law}
    if table.what != "rate":
        row["seconds"] = table.seconds(nodes, found.rate)
    return row


def _print_json(table: "Measured", fit: "RateFit", rows: Sequence[dict[str, Any]]) -> None:
    laws = {name: round(share, 3) for name, share in fit.weights.items()}
    about = {"count": table.count, "measured": table.what, "points": fit.points}
    about |= {"one": fit.one if fit.near else None, "scatter": fit.scatter, "laws": laws}
    about |= {"faster": fit.faster, "remark": table.remark}
    _say(json.dumps({**about, "predictions": rows}, indent=1))


def _print_lines(table: "Measured", fit: "RateFit", rows: Sequence[dict[str, Any]]) -> None:
    """Print the fit, a row for each number of nodes, and below them why any were refused."""
    counts = ", ".join(f"{n:g}" for n in fit.nodes)
    # Where no law comes near the table, each has its own rate of one alone, far from it.
    alone = f" one alone {_short(fit.one)}/s;" if fit.near else ""
    _say(f"{fit.points} points on {counts} {table.count};{alone} scatter {100 * fit.scatter:.1f} %")
    if fit.near and not fit.faster:  # which no law can say
        order = sorted(fit.weights, key=lambda name: -fit.weights[name])
        weights = ", ".join(f"{name} {100 * fit.weights[name]:.0f} %" for name in order)
        _say(f"What holds it back, by how often each law fits best: {weights}")
    last = f" {'seconds':>10}" * (table.what != "rate")
    _say(f"{table.count:>8} {'rate':>10} {'95 % interval':>22} {'efficiency':>11}{last}")
    for row in rows:
        if "refused" in row:
            _say(f"{row['nodes']:>8} {'-':>10} {'no prediction':>22}")
            continue
        interval = f"{_short(row['low'])} to {_short(row['high'])}"
        last = f" {row['seconds']:>10.4g}" if "seconds" in row else ""
        _say(f"{row['nodes']:>8} {_short(row['rate']):>10} {interval:>22} {row['efficiency']:>11.2f}"
             f"{last}   low if: {row['low_law']}")  # fmt: skip
    if table.remark:
        _say(table.remark)
    refused = dict.fromkeys(row["refused"] for row in rows if "refused" in row)
    for why in refused:
        _say(why)
    if fit.faster and not refused:
        _say(f"{fit.faster}, so predictions may be too low.")


def _short(rate: float) -> str:
    """Write a rate with the digits that a table has room for."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def _report(args: argparse.Namespace, rest: list[str]) -> int:
    from .reports import report

    about = {"again": args.again, "out": args.out, "check": args.check, "say": _say}
    return report(args.names, accuracy=args.accuracy, notes=args.notes, **about)


def _say(text: str) -> None:
    """Print a line, and hold nothing back."""
    print(text, flush=True)


def _complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say_meanwhile(text: str) -> None:
    """Say what is true only for now, beside the output.

    In a terminal, what comes next overwrites it.
    """
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def _check(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import checks
    from .course.lab import lab

    states = []
    found = lab(args.lab, solution=args.solution)
    for result in checks.check(found, args.todo or None, _say_meanwhile):
        _say(str(result))
        states.append(result.state)
    return 0 if all(state == "passed" for state in states) else 1


def _hint(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import checks
    from .course.lab import lab

    _say(checks.hint(lab(args.lab, solution=False), args.todo))
    return 0


def _pieces(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import pieces
    from .course.lab import lab

    own = lab(args.lab, solution=False)
    if args.faded:
        _say(pieces.fade(own, args.todo))
        return 0
    if not args.order:
        _say(pieces.shown(own, args.todo))
        return 0
    pieces.put(own, args.todo, args.order)
    args.todo, args.solution = [args.todo], False
    if status := _check(args, rest):
        return status
    _say(f"Once more, with blanks:  scaleout pieces {own.name} {args.todo[0]} --faded")
    return 0


def _guesses(args: argparse.Namespace, rest: list[str]) -> int:
    from .base.paths import results, show
    from .teaching import calibration

    guesses = calibration.own()
    _say(calibration.in_words(guesses))
    if any(one.factor for one in guesses):
        from .teaching.classroom import guesses_picture

        picture = results() / calibration.PICTURE
        guesses_picture(guesses).savefig(picture)
        _say(f"The picture: {show(picture)}")
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
    from .kit import data

    _say(f"MNIST is in {data.fetch()}")
    return 0


def _release(args: argparse.Namespace, rest: list[str]) -> int:
    from .teaching import release

    answers = [answer for answer in args.answers.split(",") if answer]
    if not args.target and not args.git:
        raise ScaleoutError("Where to? Type  scaleout release class.zip  or  --git class")
    if args.target:
        chosen = ", ".join(release.release(args.target, answers)) or "no topic"
        _say(f"{args.target}: the workshop with the solutions of {chosen}.")
    if args.git:
        commit = release.to_branch(args.git, answers)
        _say(f"{args.git}: {commit or 'nothing new'}. To publish it:  git push origin {args.git}")
        link = release.link(args.git, args.hub or release.HUB)
        _say(f"The link for attendees (capitals: fill in)\n  {link}")
    return 0


def _collect(args: argparse.Namespace, rest: list[str]) -> int:
    from .base.paths import show
    from .teaching import collect

    folder = collect.collect(args.folders, args.names)
    _say(f"The pictures and the table: {show(folder)}")
    return 0


def _tour(args: argparse.Namespace, rest: list[str]) -> int:
    from .course import tour

    return tour.main(args.quick)


# What a word stands for


def _site(args: argparse.Namespace) -> "Site | None":
    """Read the site of --site, with the machines of --hosts where a verb has that."""
    from dataclasses import replace

    from .site import Site

    found = Site.read(args.site) if args.site else None
    if getattr(args, "hosts", None) is None:
        return found
    named = tuple(host.strip() for host in args.hosts.split(","))
    if found and found.scheduler:
        raise ScaleoutError(
            "--hosts and a site with a scheduler exclude each other: Slurm chooses the nodes."
        )
    return replace(found or Site(), hosts=named)


def _job(args: argparse.Namespace, rest: list[str], **how: Any) -> "Job":
    """Make the job of a lab or a script."""
    from .jobs.job import Job

    name, command = _rank_command(args, rest)
    size: dict[str, Any] = {"ranks": args.ranks, "threads": args.threads, "nodes": args.nodes}
    env = _variables(args.env)
    return Job.asked(command, name=name, env=env, timeout=args.timeout, **size, **how)


def _rank_command(args: argparse.Namespace, rest: list[str]) -> tuple[str, list[str]]:
    """Return the name of a lab's or a script's runs, and the command of one rank."""
    from .jobs.environment import interpreter

    if args.module:
        if not all(part.isidentifier() for part in args.lab.split(".")):
            raise ScaleoutError(f"-m takes a module, such as pkg.train, not {plain(args.lab)}.")
        return args.lab, [interpreter(args.python), "-m", "mpi4py", "-m", args.lab, *rest]
    _refuse_other_files(args.lab)
    if args.lab.endswith(".py") or "/" in args.lab:
        name, script = _script_name(Path(args.lab)), args.lab
    else:
        from .base.paths import show
        from .course.lab import lab

        found = lab(args.lab, solution=args.solution)
        name, script = found.name, show(found.script)
    return name, [interpreter(args.python), "-m", "mpi4py", script, *rest]


def _refuse_other_files(name: str) -> None:
    """Say what to type for what exists and is no Python script."""
    path = Path(name)
    words = {
        ".sh": f"{name} is a shell script, and each rank would run all of it: give the Python script "
        f"that it starts, or type  mpirun -n 2 sh {name}",
        ".ipynb": f"{name} is a notebook: open it with  make lab  or give a script, such as train.py.",
    }
    if path.is_file() and path.suffix in words:
        raise ScaleoutError(words[path.suffix])
    if path.is_dir() and (name in (".", "..") or "/" in name):  # a lab's name alone is the lab
        raise ScaleoutError(
            f"{name} is a folder: give a script in it, such as {path / 'train.py'}."
        )
    if "." in name and Path(*name.split(".")).with_suffix(".py").is_file():
        raise ScaleoutError(f"{name} is a module: type  scaleout run -m {name}")


def _variables(words: Iterable[str]) -> dict[str, str]:
    """Read what --env NAME=VALUE asks for; ScaleoutError when a word is no such pair."""
    chosen = {}
    for text in words:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ScaleoutError(
                f"--env takes NAME=VALUE, such as --env TF_ENABLE_ONEDNN_OPTS=0, not {text!r}."
            )
        chosen[name] = value
    return chosen


def _nodes(words: str) -> list[int]:
    """Read the numbers of --predict N,N."""
    try:
        return [int(word) for word in words.split(",")] if words else []
    except ValueError:
        raise ScaleoutError(
            "--predict takes numbers of nodes with commas between them, such as 64,128."
        ) from None


def _script_name(path: Path) -> str:
    """Return the name of a script's runs; ScaleoutError when the path is no Python script."""
    shown = plain(str(path), 400)
    if not path.is_file():
        raise ScaleoutError(
            f"There is no script {shown}: check the path, or type a lab's name such as 00_welcome."
        )
    if path.suffix != ".py" or not path.stem.strip("."):
        raise ScaleoutError(
            f"{shown} is no Python script: scaleout run takes a lab's name or a file that ends in .py"
        )
    return path.stem


# The words of each verb


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one sentence in place of the usage."""
        if message.startswith("unrecognized arguments"):
            message += ", put the script's own after --"
        self.exit(2, f"{sentence(f'{self.prog}: {message}')}; type  {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line; the name of the subcommand is `command`."""
    about = "Make a training fast on one machine, then run it on many."
    top = _Parser(prog="scaleout", description=about)
    top.add_argument("--version", action="version", version=f"scaleout {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for add in (
        *(_doctor_words, _run_words, _submit_words, _sweep_words, _compare_words, _scaling_words),
        *(_report_words, _course_words, _class_words),
    ):
        add(commands)
    return top


def _verb(commands: Any, name: str, about: str, call: Verb) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    made.set_defaults(call=call)
    return made


def _doctor_words(commands: Any) -> None:
    doctor = _verb(
        commands, "doctor", "what this machine has, what is missing, and what to type", _doctor
    )
    add = doctor.add_argument
    add("--site", type=Path, metavar="FILE", help="check this site's hosts, or its Slurm, too")
    add("--json", action="store_true", help="the same for a program to read")


def _job_words(command: argparse.ArgumentParser) -> None:
    """Add what every job takes."""
    add = command.add_argument
    add("lab", metavar="LAB", help=LAB)
    add("-m", dest="module", action="store_true", help="LAB is a module, as behind python -m")
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    about = "an environment variable for the job; repeat for more"
    add("--env", action="append", default=[], metavar="K=V", help=about)
    about = "the Python of another environment"
    add("--python", default="python", metavar="PATH", help=about)
    add("--solution", action="store_true", help="run the solution's runme.py in place of yours")


def _run_words(commands: Any) -> None:
    about = (
        "run a lab, or any script, on several ranks: scaleout run 00_welcome -n 2 -- --repeats 9"
    )
    run = _verb(commands, "run", about, _run)
    _job_words(run)
    add = run.add_argument
    add("-t", "--threads", type=int, help=THREADS)
    add("--site", type=Path, metavar="FILE", help=SITE)
    about = "seconds before the job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    about = "none: the system places the ranks (core: each rank gets cores of its own)"
    add("--bind", choices=["core", "none"], help=about)
    add("--hosts", metavar="A,B", help="machines to start the job on, over ssh (this one)")
    add("-N", "--nodes", type=int, help="how many of the hosts or nodes to use (all)")


def _submit_words(commands: Any) -> None:
    about = "run a job through Slurm: scaleout submit 04_kmeans --site sites/slurm.toml -n 4 -N 2"
    submit = _verb(commands, "submit", about, _submit)
    _job_words(submit)
    add = submit.add_argument
    about = "the cluster's file, see sites/"
    add("--site", type=Path, metavar="FILE", required=True, help=about)
    add("-N", "--nodes", type=int, default=1, help="nodes to divide the ranks over (1)")
    about = "threads of each rank (cores in the site file / ranks on a node)"
    add("-t", "--threads", type=int, help=about)
    about = "seconds to wait and run before the job is cancelled (3600)"
    add("--timeout", type=float, default=3600, metavar="S", help=about)
    add("--dry-run", action="store_true", help="only show the job script")


def _sweep_words(commands: Any) -> None:
    about = (
        "find the settings that make a command fast: scaleout sweep -n 1,2 -t 1,2 -- python my.py"
    )
    add = _verb(commands, "sweep", about, _sweep).add_argument
    add("-n", "--ranks", metavar="N,N", help="MPI ranks to try, such as 1,2,4 (1)")
    about = "threads of each rank to try (usable cores / ranks)"
    add("-t", "--threads", metavar="N,N", help=about)
    about = (
        "values of a variable to try, also 1..10 or 1..64*2; an empty one leaves it unset; "
        "'K=V;V' where values hold commas; 'K=V,V if OTHER=V' tries it only there; {K} in the "
        "command is filled in"
    )
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    _measuring_words(add, "sweep")
    add("--repeat", type=int, default=1, metavar="R", help="jobs for each point (1)")
    about = "try at most N points, chosen by the results so far, and repeat the better half (all)"
    add("--search", type=int, metavar="N", help=about)


def _measuring_words(add: Callable[..., Any], verb: str) -> None:
    """Add what a job is judged by, how long it may take, and where all is kept."""
    about = (
        "wall_s, a field of the record, or a pattern with the figure in parentheses: "
        "'img/s: ([0-9.]+)' (the record's rate, or the one line like 9 images/s)"
    )
    add("--metric", default="rate", metavar="WHAT", help=about)
    about = "the figure is a time: less is better"
    add("--lower", action="store_const", const=True, help=about)
    about = "what the figures of all ranks make: sum, mean or max (sum; of times max)"
    add("--reduce", default="", metavar="HOW", help=about)
    about = "seconds before a job is ended (600)"
    add("--timeout", type=float, default=600, metavar="S", help=about)
    add("--name", default="", help=f"folder in results/{verb}/ (made from what is measured)")
    about = "a shell's line to run before each job, such as 'rm -rf checkpoints'"
    add("--prepare", default="", metavar="COMMAND", help=about)
    about = "write what was found for a program to read, see docs/compare.md; - is standard output"
    add("--json", default="", metavar="FILE", help=about)
    add("--site", type=Path, metavar="FILE", help=SITE)


def _compare_words(commands: Any) -> None:
    about = (
        "say which command is faster, by how much, and how sure that is: scaleout compare -- A :: B"
    )
    add = _verb(commands, "compare", about, _compare).add_argument
    add("-n", "--ranks", type=int, default=1, help="MPI ranks (1)")
    add("-t", "--threads", type=int, help=THREADS)
    about = "compare the values of a variable, also 1..4; an empty one leaves it unset; one value: for all variants"
    add("--env", action="append", default=[], metavar="K=V,V", help=about)
    about = "at most so many rounds, 3 or more; fewer if more would change nothing (7)"
    add("--rounds", type=int, metavar="R", help=about)
    about = "no fewer rounds than so many, however clear it is before (3)"
    add("--least", type=int, default=3, metavar="R", help=about)
    about = "how many times as fast you expect it to be: kept before the first run, for a report"
    add("--guess", type=float, metavar="G", help=about)
    about = (
        "go on until each is shown to be no more than P %% slower (exit 0), or more (1), or the minutes "
        "are over (3)"
    )
    add("--gate", type=float, metavar="P", help=about)
    about = f"for --gate and --calibrate ({MINUTES:g})"
    add("--minutes", type=float, metavar="M", help=about)
    about = "measure one command against itself, and say how often a gate would be wrong and what it finds"
    add("--calibrate", action="store_true", help=about)
    about = "the command at each of these commits of git, the first is the baseline"
    add("--refs", default="", metavar="MAIN,HEAD", help=about)
    about = "judge by what the job of B takes more than that of A, with {NAME} in the commands"
    add("--work", default="", metavar="NAME=A,B", help=about)
    _measuring_words(add, "compare")


def _scaling_words(commands: Any) -> None:
    about = "predict more nodes from a table of nodes and rates: scaleout scaling T.csv --predict 64,128"
    add = _verb(commands, "scaling", about, _scaling).add_argument
    about = "a table whose first line names the columns: nodes, and rate or seconds"
    add("table", type=Path, metavar="TABLE.csv", help=about)
    add("--predict", default="", metavar="N,N", help="nodes to predict (twice the most measured)")
    add("--json", action="store_true", help="the same for a program to read")


def _report_words(commands: Any) -> None:
    about = "write what was measured as one page, and check it: scaleout report results --check"
    add = _verb(commands, "report", about, _report).add_argument
    about = "what compare and sweep left: a folder, or several in the order of your story, the claim last"
    add("names", nargs="*", metavar="NAME", help=about)
    about = (
        "the page, or Markdown where its name ends in .md (FOLDER/report.html, results/report.html)"
    )
    add("-o", dest="out", type=Path, metavar="FILE", help=about)
    about = "say what must still be measured, each with what to type; exit with 1 if there is any"
    add("--check", action="store_true", help=about)
    about = "take the records in a report's page, in place of a folder"
    add("--again", type=Path, metavar="PAGE", help=about)
    about = "the metric of the records that says how good a training is (accuracy)"
    add("--accuracy", default="accuracy", metavar="NAME", help=about)
    about = "your own words, in Markdown, for a section of the page"
    add("--notes", type=Path, metavar="FILE", help=about)


def _course_words(commands: Any) -> None:
    """Add the verbs that an attendee types."""
    check = _verb(
        commands, "check", "check what you filled into a lab's runme.py", _check
    ).add_argument
    check("lab", metavar="LAB")
    check("todo", nargs="*", type=int, metavar="TODO", help="numbers of TODOs (all)")
    check("--solution", action="store_true", help=argparse.SUPPRESS)

    hint = _verb(commands, "hint", "show the next hint for a TODO", _hint).add_argument
    hint("lab", metavar="LAB")
    hint("todo", type=int, metavar="TODO")

    about = "show the lines of a TODO among likely mistakes, to be put in order"
    pieces = _verb(commands, "pieces", about, _pieces).add_argument
    pieces("lab", metavar="LAB")
    pieces("todo", type=int, metavar="TODO")
    about = "numbers of the pieces that fill it, in their order: they are put there, and checked"
    pieces("order", nargs="*", type=int, metavar="PIECE", help=about)
    pieces("--faded", action="store_true", help="put the right lines there, each with a blank")

    _verb(commands, "guesses", "say how far off your guesses were, and draw them", _guesses)

    reset = _verb(
        commands, "reset", "give back the untouched runme.py; yours is kept beside it", _reset
    )
    reset.add_argument("lab", metavar="LAB")

    about = "download a data set: scaleout data fetch mnist"
    data = _verb(commands, "data", about, _data).add_argument
    data("fetch", choices=["fetch"])
    data("name", choices=["mnist"])

    about = "a short version of every topic; leaves one page with pictures in results/"
    tour = _verb(commands, "tour", about, _tour)
    tour.add_argument(
        "--quick", action="store_true", help="an even shorter version, for rehearsals"
    )


def _class_words(commands: Any) -> None:
    """Add the verbs that an instructor or an author types."""
    exercises = _verb(
        commands, "exercises", "write labs/ and notebooks/ from solutions/", _exercises
    )
    about = "write nothing; exit with 1 if they differ"
    exercises.add_argument("--check", action="store_true", help=about)

    about = "make the attendees' copy, without the solutions: scaleout release class.zip"
    release = _verb(commands, "release", about, _release).add_argument
    about = "a new folder, or an archive: .zip, .tar, .tar.gz"
    release("target", type=Path, nargs="?", help=about)
    about = "append it to this branch, and print the link that brings it to a JupyterHub"
    release("--git", metavar="BRANCH", help=about)
    release("--hub", metavar="URL", help="the hub that the link leads to")
    about = "topics whose solutions it has, such as 00,01 (none)"
    release("--answers", default="", metavar="NN,NN", help=about)

    about = "gather what a class measured: a picture for each topic and each headline, and a table"
    collect = _verb(commands, "collect", about, _collect).add_argument
    about = "results folders, or a folder that holds them all"
    collect("folders", nargs="+", type=Path, help=about)
    about = "call attendees by their folder's name (by a number)"
    collect("--names", action="store_true", help=about)
