"""What a page leaves out: the names of people, hosts and folders, and secrets."""

import re
import shlex
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import UNSET

from ..base.words import VEIL, secret, veiled_words

PART = r"""(?:\\.|\$\{\w+\}|[^\s/:,;=<>|&)}\]`"'\\])+"""  # of a path, behind its /
NAMES = re.compile(  # of folders, hosts and people
    r"\w+://\S+|[\w.+%-]+@[\w.-]+"
    rf"|(?<![\w.~/)}}\]])(?:~[\w.-]*|\.\.)?(?:/+{PART})+/*"  # behind any sign but an operand
    rf"|(?<=[)}}\]])(?:/+{PART}){{2,}}/*"  # (a)/home/b, and no (a)/b
    rf"|(?<![^\s=,'\"(])(?P<flag>-[A-Za-z]+)(?:/+{PART}){{2,}}/*"  # -I/home/b
    r"|(?<![^\s=:,;<>|&({'\"])~[A-Za-z_][\w.-]*"
)
DIVIDED = re.compile(r"(?:^|[^\w.-])[\w.]*[\w)\]][ \t]+$")  # what stands before the / of a / b
FILE = re.compile(  # a name that tells nobody's; alice.smith is a person's
    r"python[\d.]*|(?:mpirun|mpiexec|srun)(?:\.\w+)?"
    r"|.+\.(?:(?:py|sh|bash|sbatch|slurm|ipynb|cc|cpp|cu|hpp|f90|jl|exe|bin|sif|img|whl"
    r"|jsonl?|toml|ya?ml|cfg|ini|conf|xml|txt|log|out|md|html|csv|tsv|dat|db|parquet|npy|npz|h5|hdf5"
    r"|keras|pb|pt|pth|onnx|pkl|tfrecord|nc|zarr|nii|dcm|png|jpe?g|svg|pdf|gz|tgz|tar|xz|zst|zip)"
    r"|so[\d.]*)"
)
NAMED = re.compile(r"""(?<![\w.-])([A-Z_][A-Z0-9_]*)=('[^']*'|"[^"]*"|[^\s'"]+)""")
HOSTS = {"-hosts", "-host", "--host", "-machinefile", "-hostfile", "--hostfile"}  # of mpirun
SHORTEST = 4  # letters of a secret that is looked for wherever it may stand
WRITTEN = ("texts", "notes")  # by people: NAME=value in it is a line of a program
Kind = TypeVar("Kind", bound=msgspec.Struct)


def anonymous(text: str) -> str:
    """Take the names of hosts and people out of a text, and of a path all but a file's name.

    A division such as a /b stays.
    """
    text = text.encode(errors="replace").decode()
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "HOST", text)

    def last(match: re.Match[str]) -> str:
        path, flag = match[0], match["flag"] or ""
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if re.fullmatch(r"//?\w+", path) and (before.endswith("<") or DIVIDED.search(before)):
            return path  # </b>, a /b, or a //b
        name = Path(path).name
        known = FILE.fullmatch(name) and "@" not in path and "://" not in path
        return flag + (name if known else "ELSEWHERE")

    return NAMES.sub(last, text)


class Veil:
    """What takes secrets, people, hosts and folders out of a value; all else is kept."""

    def __init__(self, value: msgspec.Struct) -> None:
        hidden = {text for text in _secrets(value) if len(text) >= SHORTEST and text.strip("*")}
        longest_first = sorted({*hidden, *map(shlex.quote, hidden)}, key=len, reverse=True)
        self._hidden = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def unlike(self, names: Iterable[str]) -> dict[str, str]:
        """Return {name: what it is called}, with a number behind it where two would be alike."""
        called: dict[str, str] = {}
        for name in names:
            short = self._text(_veiled(name))
            taken = short in called.values()
            called[name] = f"{short} ({len(called) + 1})" if taken else short
        return called

    def shown(self, value: Kind) -> Kind:
        """Return the same value without what is private."""
        return msgspec.convert(self._part(value), type(value))

    def _part(self, value: object, field: str = "") -> object:
        if isinstance(value, msgspec.Struct):
            parts = ((name, getattr(value, name)) for name in value.__struct_fields__)
            return {name: self._part(part, name) for name, part in parts if part is not UNSET}
        if isinstance(value, dict):
            return {
                self._part(name, field): VEIL
                if isinstance(part, str) and secret(name)
                else self._part(part, field)
                for name, part in value.items()
            }
        if isinstance(value, (list, tuple)):
            words = veiled_words(value) if field == "typed" else value
            return [self._part(word, field) for word in words]
        if not isinstance(value, str):
            return value
        if field == "metric":  # a pattern, in which a / is none of a path
            return self._hidden.sub(VEIL, value)
        if field == "command":
            return self._command(value)
        return self._text(value if field in WRITTEN else _veiled(value))

    def _text(self, text: str) -> str:
        return anonymous(self._hidden.sub(VEIL, text))

    def _command(self, line: str) -> str:
        """Take out of mpirun's line what is private, word by word."""
        words = shlex.split(line)
        pairs = zip(["", *words], words, strict=False)
        return shlex.join(
            "HOSTS" if before in HOSTS else self._text(_veiled(word)) for before, word in pairs
        )


def _veiled(text: str) -> str:
    """Veil NAME=value by its name."""
    return NAMED.sub(lambda one: f"{one[1]}={VEIL}" if secret(one[1]) else one[0], text)


def _secrets(value: object, field: str = "") -> Iterator[str]:
    """Yield what variables hold that are secrets by their names."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in (*WRITTEN, "metric"):
                yield from _secrets(getattr(value, name))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _secrets(name)
            yield from _secrets(part, name)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _secrets(part, field)
    elif isinstance(value, str):
        if secret(field):
            yield value
        for name, text in NAMED.findall(value):
            if secret(name):
                yield text.strip("'\"")
