"""What the words of a command stand for: a site, a rank's command, variables, numbers of nodes."""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ScaleoutError
from .words import plain

if TYPE_CHECKING:
    from .jobs.site import Site


def site(args: argparse.Namespace) -> "Site | None":
    """The site of --site, with the machines of --hosts."""
    from dataclasses import replace

    from .jobs.site import Site

    found = Site.read(args.site) if args.site else None
    if args.hosts is None:
        return found
    named = hosts(args.hosts)
    if found and found.scheduler:
        raise ScaleoutError(
            "--hosts and a site with a scheduler exclude each other: Slurm chooses the nodes."
        )
    return replace(found or Site(), hosts=named)


def command(args: argparse.Namespace, rest: list[str]) -> tuple[str, list[str]]:
    """The name of a lab's or a script's runs, and the command of one rank."""
    from .course.lab import lab
    from .jobs.environment import interpreter
    from .paths import show

    if args.lab.endswith(".py") or "/" in args.lab:
        name, script = script_name(Path(args.lab)), args.lab
    else:
        found = lab(args.lab, solution=args.solution)
        name, script = found.name, show(found.script)
    return name, [interpreter(getattr(args, "python", "python")), "-m", "mpi4py", script, *rest]


def variables(words: Iterable[str]) -> dict[str, str]:
    """What --env NAME=VALUE asks for; ScaleoutError when a word is no such pair."""
    chosen = {}
    for text in words:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ScaleoutError(
                f"--env takes NAME=VALUE, such as --env TF_ENABLE_ONEDNN_OPTS=0, not {text!r}."
            )
        chosen[name] = value
    return chosen


def hosts(words: str) -> tuple[str, ...]:
    """The machines of --hosts A,B; ScaleoutError when one is empty, named twice, or an option."""
    named = tuple(host.strip() for host in words.split(","))
    wrong = any(not host or host.startswith("-") for host in named)
    if wrong or len(set(named)) < len(named):
        raise ScaleoutError(
            f"--hosts takes names with commas between them, each once: a,b and not {words!r}."
        )
    return named


def nodes(words: str, work: float) -> list[int]:
    """The numbers of --predict N,N."""
    named = [word.strip() for word in words.split(",")] if words else []
    whole = all(word.isdecimal() and word.isascii() and len(word) < 10 for word in named)
    if not whole or not all(map(int, named)):
        raise ScaleoutError(
            "--predict takes numbers of nodes with commas between them, such as 64,128."
        )
    if not 0 < work < math.inf:
        raise ScaleoutError("--work takes a number above 0, such as 1000000.")
    return [int(word) for word in named]


def script_name(path: Path) -> str:
    """The name of a script's runs; ScaleoutError when the path is no Python script."""
    shown = plain(str(path), 400)
    if path.is_dir():
        raise ScaleoutError(
            f"{shown} is a folder: type the script's path, or a lab's name such as 00_welcome."
        )
    if not path.is_file():
        raise ScaleoutError(
            f"There is no script {shown}: check the path, or type a lab's name such as 00_welcome."
        )
    if path.suffix != ".py" or not path.stem.strip("."):
        raise ScaleoutError(
            f"{shown} is no Python script: scaleout run takes a lab's name or a file that ends in .py"
        )
    return path.stem
