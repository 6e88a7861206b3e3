"""A site: one small TOML file that says how a machine launches jobs."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .base import jsonlines
from .base.errors import ScaleoutError
from .base.words import number, plain

NAME = r"[\w.,:@+-]*"
HOST = (
    r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*"  # which ssh and mpirun take for a machine, not for an option
)
# Of each key: its type, what its text or each text of its list looks like, and how that is said.
WANTED: dict[str, tuple[type, str, str]] = {
    "mpirun": (str, r".*\S.*", 'a name or a path, such as "mpirun"'),
    "options": (list, "", 'a list, such as ["-iface", "ib0"]'),
    "env": (dict, "", "a table: a line  [env]  and variables below it"),
    "cores": (int, r"\d{1,6}", "a number, 0 or more"),
    "launcher": (str, "hydra|openmpi", '"hydra" (MPICH, Intel MPI) or "openmpi"'),
    "bind": (str, "core|none", '"core" or "none"'),
    "hosts": (list, ".*", 'a list of names, such as ["node1", "node2"]'),
    "ssh": (str, ".*", 'the path of a program that takes ssh\'s arguments, or ""'),
    "scheduler": (str, "slurm|", '"slurm", or "" where there is none'),
    "slurm_conf": (str, ".*", 'the path of a slurm.conf, or ""'),
    "start": (str, "mpirun|srun", '"mpirun" or "srun"'),
    "srun": (list, ".+", 'a list, such as ["--mpi=pmi2"]'),
    "partition": (str, NAME, 'a name that sinfo shows, or ""'),
    "account": (str, NAME, 'a name without spaces, or ""'),
    "reservation": (str, NAME, 'a name without spaces, or ""'),
    "minutes": (int, r"[1-9]\d{0,5}", "a number of minutes, 1 or more, a year at most"),
    "sbatch": (list, ".+", 'a list, such as ["--exclusive"]'),
    "modules": (list, r"[\w./+@%~=: -]+", 'a list, such as ["gcc/12"]'),
    "prelude": (list, r"[\s\S]+", "a list of shell lines"),
    "scratch": (str, r"([/~$].*)?", 'an absolute path, or ""'),
}
# The options, of each program, that would start a job otherwise than it is followed: elsewhere, with
# more ranks, more than once, or with its output in another file.
OWN = {
    "sbatch": "output o error e array a comment nodes N ntasks n ntasks-per-node cpus-per-task c "
    "wrap wait W requeue clusters M",
    "srun": "output o nodes N ntasks n ntasks-per-node",
    "options": "n np hosts host H f hostfile machinefile outfile-pattern errfile-pattern "
    "output-filename",
}


def _misfit(key: str, value: object) -> str:
    """Say what is wrong with the value of a key; "" where it fits."""
    kind, pattern, wanted = WANTED[key]
    if type(value) is not kind:  # True is no number
        return f"{key} must be {wanted}, not {value!r}."
    if not isinstance(value, list):
        parts = value.values() if isinstance(value, dict) else [value]
        fits = map(_scalar, parts) if not pattern else (re.fullmatch(pattern, str(value)),)
        return "" if all(fits) else f"{key} must be {wanted}, not {value!r}."
    for text in value:
        fit = isinstance(text, str) and re.fullmatch(pattern, text) if pattern else _scalar(text)
        if not fit:
            return f"{key} must be {wanted}; {text!r} cannot stand in it."
    return ""


def _scalar(value: object) -> bool:
    return isinstance(value, (str, int, float)) and "\0" not in str(value)


def allocated_nodes(environ: Mapping[str, str]) -> int:
    """Count the nodes of the Slurm allocation that these variables speak of; 0 outside of one."""
    inside = environ.get("SLURM_JOB_ID") and environ.get("SLURM_JOB_NODELIST")
    return number(environ.get("SLURM_JOB_NUM_NODES", "")) if inside else 0


@dataclass(frozen=True)
class Site:
    """How jobs start here. The default is the laptop: this environment's own mpirun, on this
    machine.

    Attributes
    ----------
    mpirun : str
        Its name or path.
    options : tuple of str
        More arguments for it, "-iface ib0" or "-iface" and "ib0".
    env : dict
        Variables for every job.
    cores : int
        To fill on each node, where the machine cannot be asked; 0 asks it.
    launcher : {"hydra", "openmpi"}
        Whose options mpirun understands: MPICH and Intel MPI have Hydra's. Open MPI's does not say
        which rank printed a line.
    bind : {"core", "none"}
        "core" gives each rank its own cores, "none" leaves that to others.
    hosts : tuple of str
        Machines to start on over ssh, such as node1 or me@node1. The 4 of node1:4 has no effect: -n
        says how many ranks there are.
    ssh : str
        A program to call in place of ssh, "" for ssh itself.
    scheduler : {"", "slurm"}
        "slurm" for a cluster. All that follows is for a cluster alone.
    slurm_conf : str
        The configuration that Slurm's commands read, where it is not the system's own. A relative
        path begins in the workshop.
    start : {"mpirun", "srun"}
        What starts the ranks in the job script.
    srun : tuple of str
        Arguments of srun.
    partition, account, reservation : str
        What is asked for, "" for the cluster's default.
    minutes : int
        The time limit that is asked for.
    sbatch : tuple of str
        Further options of sbatch.
    modules, prelude : tuple of str
        Modules to load, and shell lines to run, before the job.
    scratch : str
        A folder of the cluster's where the job writes, and what it wrote is brought home from.

    Raises
    ------
    ScaleoutError
        A host is no name of a machine, or is named twice; two values exclude each other; an option
        would start the job otherwise than it is followed.
    """

    mpirun: str = "mpirun"
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cores: int = 0
    launcher: str = "hydra"
    bind: str = "core"
    hosts: tuple[str, ...] = ()
    ssh: str = ""
    scheduler: str = ""
    slurm_conf: str = ""
    start: str = "mpirun"
    srun: tuple[str, ...] = ("--mpi=pmi2",)
    partition: str = ""
    account: str = ""
    reservation: str = ""
    minutes: int = 10
    sbatch: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    prelude: tuple[str, ...] = ()
    scratch: str = ""

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not re.fullmatch(HOST, host):
                raise ScaleoutError(
                    f"{host!r} is no name of a machine: name each by itself, such as node1."
                )
            if [*map(host_name, self.hosts)].count(host_name(host)) > 1:
                raise ScaleoutError(
                    f"{host} is there twice: name each machine once, and give -n as many ranks as "
                    "you want."
                )
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        stated = {f.name: given[f.name] for f in fields(self) if given[f.name] != f.default}
        if wrong := _contradiction(stated) or _not_for_a_site(stated):
            raise ScaleoutError(wrong)

    @classmethod
    def read(cls, path: Path | str) -> "Site":
        """Read the site in a file.

        Parameters
        ----------
        path : Path or str
            A TOML file.

        Returns
        -------
        Site

        Raises
        ------
        ScaleoutError
            The file cannot be read, or a key in it is wrong; it names both.
        """
        import tomllib

        try:
            table = tomllib.loads(jsonlines.text(Path(path)))
        except (OSError, ValueError, RecursionError) as error:  # TOML's own is a ValueError
            why = getattr(error, "strerror", None) or error
            shown = plain(str(path), 400)
            raise ScaleoutError(f"The site file {shown} cannot be read: {why}.") from None
        known = [f.name for f in fields(cls)]
        for key, value in table.items():
            if key not in known:
                raise ScaleoutError(
                    f"{path}: there is no key {key!r}; a site has {', '.join(known)}."
                )
            if wrong := _misfit(key, value):
                raise ScaleoutError(f"{path}: {wrong}")
        lists = {key: tuple(map(str, value)) for key, value in table.items() if type(value) is list}
        table["env"] = {k: str(v) for k, v in table.get("env", {}).items()}
        try:
            return cls(**{**table, **lists})
        except ScaleoutError as error:
            raise ScaleoutError(f"{path}: {error}") from None

    @classmethod
    def here(cls) -> "Site":
        """Return the site where none was named: this machine, or the Slurm allocation around us.

        An allocation of one node counts as this machine: the cores that it gives us are those that
        we are bound to.

        Returns
        -------
        Site
        """
        return cls(scheduler="slurm") if allocated_nodes(os.environ) > 1 else cls()

    def ours(self) -> bool:
        """Tell whether the launcher is this environment's own, which is MPICH's."""
        return self.mpirun == "mpirun" and self.launcher == "hydra"

    def nodes(self) -> int:
        """Count the nodes that there are to use from here.

        They are those of the allocation around us, the hosts named, or one.
        """
        inside = allocated_nodes(os.environ) if self.scheduler else 0
        return inside or len(self.hosts) or 1


def host_login(host: str) -> str:
    """Return what ssh is given for a host: me@node1 for me@node1:4."""
    name, _, ranks = host.rpartition(":")
    return name if ranks.isdecimal() and ":" not in name else host  # more of them: an IPv6 address


def host_name(host: str) -> str:
    """Return the name of a host alone: node1 for me@node1:4."""
    return host_login(host).rpartition("@")[2]


def _contradiction(table: Mapping[str, Any]) -> str:
    """Say which of the values that a site states exclude each other; "" when they agree."""
    cluster = (
        "slurm_conf",
        "start",
        "srun",
        "partition",
        "account",
        "reservation",
        "minutes",
        "sbatch",
    )
    more = ("modules", "prelude", "scratch")
    alone = [key for key in (*cluster, *more) if table.get(key) and not table.get("scheduler")]
    if alone:
        return f'{alone[0]} needs a scheduler: add a line  scheduler = "slurm"  or take {alone[0]} out.'
    if table.get("hosts") and table.get("scheduler"):
        return "hosts and scheduler exclude each other: Slurm chooses the nodes."
    if table.get("ssh") and not table.get("hosts"):
        return 'ssh needs hosts: add a line such as  hosts = ["node1", "node2"]'
    if table.get("launcher") == "openmpi" and (table.get("hosts") or table.get("scheduler")):
        return 'several nodes need launcher = "hydra"; Open MPI runs on one machine here.'
    return ""


def _not_for_a_site(table: Mapping[str, Any]) -> str:
    """Say which option would take a job away from scaleout; "" where none does."""
    for key, names in OWN.items():
        words = words_of(table.get(key, ()))
        for word in words:
            if _is_one_of(word, names.split(), getopt=key != "options"):
                return (
                    f"{key}: {word!r} is not for a site file, as scaleout itself says what starts, how "
                    "often (-n, -N, -t), on which machines (hosts, or Slurm), and where its output goes."
                )
        if key == "srun" and re.search(r"--exp(o|or|ort)?[= ](?!ALL\b)", " ".join(words)):
            return "srun: --export hides the job's variables from the ranks: begin with ALL, as in --export=ALL."
    return ""


def _is_one_of(word: str, names: Sequence[str], getopt: bool) -> bool:
    """Tell whether a word is an option of one of these names: --time=5, --tim 5, -t5.

    Slurm's programs take the beginning of a name for the whole, mpirun does not, and has long names
    behind one dash too.
    """
    if not getopt:
        return word.startswith("-") and word.lstrip("-").partition("=")[0] in names
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
        return len(name) > 2 and any(it.startswith(name) for it in names)
    return word.startswith("-") and word[1:2] in names


def words_of(texts: Sequence[str]) -> list[str]:
    """Split the options in a list into words, as a shell does.

    A text that begins with no dash is the value of the option before it, and one word.
    """
    return [
        word
        for text in texts
        for word in (_words(text) if text.lstrip().startswith("-") else [text])
    ]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # an odd number of quotes: Slurm says so
        return text.split()
