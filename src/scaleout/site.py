"""A site: one small TOML file that says how a machine launches jobs."""

from dataclasses import dataclass, field, fields
from pathlib import Path

from .errors import ScaleoutError

__all__ = ["Site"]

WANTED = {
    "mpirun": (str, 'a name or a path, such as "mpirun"'),
    "options": (list, 'a list, such as ["-hosts", "a,b"]'),
    "env": (dict, "a table: a line  [env]  and variables below it"),
    "cores": (int, "a number, 0 or more"),
    "launcher": (str, '"hydra" (MPICH, Intel MPI) or "openmpi"'),
}
LAUNCHERS = ("hydra", "openmpi")


@dataclass(frozen=True)
class Site:
    """How jobs start here. The default is the laptop: this environment's own mpirun, on this machine.

    mpirun: its name or path.  options: more arguments for it.  env: variables for every job.
    cores: cores to fill, where the machine cannot be asked (0: ask it).  launcher: whose options mpirun understands,
    "hydra" or "openmpi"; Open MPI's does not say which rank printed a line.
    """

    mpirun: str = "mpirun"
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cores: int = 0
    launcher: str = "hydra"

    @classmethod
    def read(cls, path: Path) -> "Site":
        """The site in a file; ScaleoutError names the file and the key that is wrong."""
        import tomllib

        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise ScaleoutError(f"The site file {path} cannot be read: {why}.") from None
        known = [f.name for f in fields(cls)]
        for key, value in table.items():
            if key not in known:
                raise ScaleoutError(f"{path}: there is no key {key!r}; a site has {', '.join(known)}.")
            wanted, words = WANTED[key]
            known_launcher = key != "launcher" or value in LAUNCHERS
            if type(value) is not wanted or value == "" or wanted is int and value < 0 or not known_launcher:
                raise ScaleoutError(f"{path}: {key} must be {words}, not {value!r}.")
        table["options"] = tuple(map(str, table.get("options", ())))
        table["env"] = {k: str(v) for k, v in table.get("env", {}).items()}
        return cls(**table)
