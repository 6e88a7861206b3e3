"""What a comparison and a sweep were asked to measure: compare.json and sweep.json, and the command
line as it was typed."""

import msgspec

from .kind import Kind


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """What a variant asks of its job, as far as that is a command."""

    script: str | list[str] | None = None
    ranks: int | None = None
    threads: int | None = None
    nodes: int | None = None
    bind: str | None = None
    env: dict[str, str | int | float | bool | None] | None = None


class Comparing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a comparison measures."""

    schema: int = 1
    job: str = ""
    text: str = ""  # a digest of the scripts and the function that are run
    variants: dict[str, dict[str, object]] = {}
    metric: str = "rate"
    lower: bool = False
    reduce: str = ""
    work: str = ""  # NAME=A,B: what a job does, in two lengths of it
    machine: tuple[str, int] = ("", 0)  # the processor, and the cores that a job may fill
    scripts: dict[str, str] = {}  # the file that each variant runs
    modules: dict[str, dict[str, str]] = {}  # {variant: {name: file}}, what its script imports
    texts: dict[str, str] = {}  # of these files
    rounds: int = 0  # at most, as asked
    least: int = 0
    guess: float | None = None
    guessed: str = ""
    typed: list[str] = []  # a command line; [] for a call in Python
    limits: dict[str, float] = {}  # of the machine, as they were then: see `machine.speed_limits`
    kind: Kind | None = None  # of the machine; None in older files

    def way(self, variant: str) -> Way:
        """Return what a variant asks; what is no part of a command is left out."""
        known = Way.__struct_fields__
        given = {name: value for name, value in self.variants[variant].items() if name in known}
        try:
            return msgspec.convert(given, Way)
        except msgspec.ValidationError:
            return Way()


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a sweep are judged by."""

    what: str = "rate"
    lower: bool = False
    reduce: str = ""


class Sweeping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a sweep measures."""

    command: list[str] = []
    metric: Judged = Judged()
    scripts: dict[str, str] = {}
    machine: tuple[str, int] = ("", 0)
    site: dict[str, object] = {}
    grid: dict[str, list[str]] = {}
    only: dict[str, list[str]] = {}  # {axis: [other axis, its value]}
    typed: list[str] = []
    limits: dict[str, float] = {}
