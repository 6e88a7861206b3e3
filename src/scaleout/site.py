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
# What scaleout says to each program itself: its options, and what to do instead.
FOLLOWED = "scaleout reads a job's output from a file of its own, and keeps it in results/"
SIZE = "give it on the command line, with  -n RANKS -N NODES"
THREADS = "give it on the command line, with  -t THREADS"
NO_KEY = "take it out"
BINDING = 'scaleout binds the ranks, unless the site file has  bind = "none"'
OWN = {
    "sbatch": {
        "output o error e": f"{NO_KEY}, as {FOLLOWED}",
        "array a": "submit runs one job; for several write a loop of submits, or take  scaleout sweep",
        "comment": f"{NO_KEY}, as scaleout finds its jobs again by it",
        "time t": "use the key minutes, as in  minutes = 60",
        "partition p": 'use the key partition, as in  partition = "NAME"',
        "account A": 'use the key account, as in  account = "NAME"',
        "reservation": 'use the key reservation, as in  reservation = "NAME"',
        "nodes N ntasks n ntasks-per-node": SIZE,
        "cpus-per-task c": THREADS,
        "job-name J": f"{NO_KEY}, as a job is called by its script",
        "chdir D": "a job runs in the folder in which you type submit; the key scratch says where it writes",
        "wait W": f"{NO_KEY}, as submit waits for the job's end",
        "test-only": "type  scaleout submit ... --dry-run  or  scaleout doctor --site FILE",
        "wrap": f"{NO_KEY}, as submit says what runs; lines before it belong into the key prelude",
        "requeue": f"{NO_KEY}, as a job that begins anew would count what it did before twice",
        "clusters M": "type  export SLURM_CLUSTERS=NAME  before you submit",
    },
    "srun": {
        "output o error e": f"{NO_KEY}, as {FOLLOWED}",
        "ntasks n nodes N ntasks-per-node": SIZE,
        "cpus-per-task c": THREADS,
        "chdir D": "a job runs in the folder in which you type submit; the key scratch says where it writes",
        "cpu-bind": BINDING,
        "multi-prog": f"{NO_KEY}, as submit starts one program on all ranks",
        "pty": f"{NO_KEY}, as {FOLLOWED}",
    },
    "options": {
        "n np": "give the ranks on the command line, with  -n RANKS",
        "hosts host H f hostfile machinefile": 'use the key hosts, as in  hosts = ["node1", "node2"]',
        "bind-to": BINDING,
        "outfile-pattern errfile-pattern output-filename": f"{NO_KEY}, as {FOLLOWED}",
        "prepend-rank l tag-output": f"{NO_KEY}, as scaleout puts each rank before its lines",
    },
}
SHELL = {"module", "ml", "load", "purge", "use", "unload", "unuse", "swap", "source"}


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
        A host is no name of a machine, or is named twice; two values exclude each other; an option or a
        line of shell stands where it has no effect.
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
        if wrong := _contradiction(stated) or _pasted(stated):
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


def _pasted(table: Mapping[str, Any]) -> str:
    """Say which text of a list does not belong there, and where it does; "" when all do."""
    for text in table.get("modules", ()):
        if SHELL & {*text.split()}:
            return (
                f"modules: {text!r} is a shell line: give the names alone, such as "
                '["gcc/12"], and other lines in the key prelude.'
            )
    for text in table.get("prelude", ()):
        if found := re.search(r"^\s*#SBATCH\s+(.*)", text, flags=re.MULTILINE):
            return (
                f"prelude: Slurm would not read  {found[0].strip()}  there: put it into the key "
                f"sbatch, as in  sbatch = [{_quoted(found[1].strip())}]"
            )
    for key in ("sbatch", "srun", "options"):
        texts = [str(text) for text in table.get(key, ())]
        texts = texts if key == "sbatch" else words_of(texts)
        for at in range(len(texts)):
            if wrong := _wrong_option(key, texts, at, table.get("bind") != "none"):
                return f"{key}: {wrong}"
    return ""


def _wrong_option(key: str, texts: Sequence[str], at: int, binds: bool) -> str:
    """Say what is wrong with one text of a list of options, where scaleout binds ranks or not.

    One of sbatch's has all words of an option, as its line in a job script has.
    """
    text = texts[at]
    if key == "sbatch" and not text.strip().startswith("-"):
        before = f"{texts[at - 1]} " if at and texts[at - 1].startswith("-") else ""
        bare = re.sub(r"^#SBATCH\s*", "", text.strip())
        better = bare if bare != text.strip() else before + bare
        return f"{text!r} is no option: write it whole, in one text, as in  sbatch = [{_quoted(better)}]"
    for word in words_of([text]) if key == "sbatch" else [text]:
        for names, instead in OWN[key].items():
            ours = binds or instead is not BINDING
            if ours and _is_one_of(word, names.split(), getopt=key != "options"):
                return f"{word!r} is not for a site file: {instead}."
    hides = re.match(r"--exp(?:o|or|ort)?(?:=|$)(?!ALL\b)", text) if key == "srun" else None
    if hides and ("=" in text or not [*texts, ""][at + 1].startswith("ALL")):
        return f"{text!r} hides the job's variables from the ranks: begin with ALL, as in --export=ALL."
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


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'
