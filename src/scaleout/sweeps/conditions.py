"""Where an axis counts: only at points with another axis' value, if somebody said so, and OpenMP's
variables only where the Python of a point has an OpenMP that reads them."""

import ctypes.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from .. import machine
from ..errors import ScaleoutError
from ..paths import show
from .points import Choices, Value, filled

Only = Mapping[str, tuple[str, str]]  # {axis: (other axis, its value)}
Settle = Callable[[Mapping[str, Value]], dict[str, Value]]

INTEL, GNU = ("libiomp5", "libomp."), ("libgomp",)
READERS = {"KMP_": INTEL, "GOMP_": GNU, "OMP_": (*INTEL, *GNU)}
ALSO_OTHERS = ("OMP_NUM_THREADS",)  # which OpenBLAS reads, too
TOO_LARGE = ("/usr", "/usr/local")  # not a folder of one Python
IF = " if "


def condition(text: str) -> tuple[str, tuple[str, str] | None]:
    """What --env takes, without its condition; and that: NAME=V,V if OTHER=VALUE."""
    values, word, said = text.rpartition(IF)
    if not word:
        return text, None
    name, equals, value = said.strip().partition("=")
    if not (name and equals):
        raise ScaleoutError(
            f"A condition names one value of another axis, as in  {values}{IF}ranks=2  (not {said!r})."
        )
    return values, (name, value)


def check(only: Only, choices: Choices) -> None:
    """Refuses a condition that no point fulfils."""
    for axis, (other, value) in only.items():
        if axis not in choices or other not in choices or other == axis or other in only:
            axes = [name for name in choices if name != axis and name not in only]
            raise ScaleoutError(
                f"{axis} cannot depend on {other}: it takes another axis without a condition of "
                f"its own ({', '.join(axes) or 'there is none'})."
            )
        if value not in [_typed(one) for one in choices[other]]:
            values = ", ".join(_typed(one) or "unset" for one in choices[other])
            raise ScaleoutError(
                f"No point has {other}={value}, so that {axis} would never count: {other} takes "
                f"{values}."
            )


def settle(words: Sequence[str], only: Only, here: bool) -> Settle:
    """What takes the axes' values of a point away that do not count there."""

    def settled(named: Mapping[str, Value]) -> dict[str, Value]:
        env = {name: None if value is None else str(value) for name, value in named.items()}
        program = filled(words[:1], env)
        known = here and program and "omp" not in (env.get("LD_PRELOAD") or "")
        unread = [name for name in env if known and read_by(name, program[0]) == ()]
        found = {**named, **dict.fromkeys(unread)}
        away = [name for name in only if _typed(found[only[name][0]]) != only[name][1]]
        found.update(dict.fromkeys(away))
        return found

    return settled


def told(
    choices: Choices, places: Sequence[Sequence[Value]], words: Sequence[str], here: bool
) -> list[str]:
    """What a person should know of axes that count nowhere, or not everywhere."""
    said = []
    if here and Path(words[0]).name == "numactl" and machine.facts().numa_nodes < 2:
        said.append("This machine has one memory for all cores: numactl can change nothing here.")
    for at, (name, values) in enumerate(choices.items()):
        counts = sum(place[at] is not None for place in places)
        if not counts:
            said.append(f"Nothing reads {name} in this Python, so it is not searched.")
        elif counts < len(places) and None not in values:
            said.append(f"{name} counts in {counts} of {len(places)} points.")
        readers = read_by(name, words[0]) if here else None
        if counts and readers and all(".libs" in path for path in readers):
            owners = sorted({path.partition(".libs")[0].rpartition("/")[2] for path in readers})
            said.append(
                f"Of the packages in this Python only {' and '.join(owners)} brings an OpenMP, "
                f"which reads {name}: leave {name} out where your program does not use that."
            )
    return said


@cache
def read_by(name: str, program: str) -> tuple[str, ...] | None:
    """The libraries of a Python that read a variable; none where there is no such library, and None
    where that cannot be known.
    """
    wanted = next((files for family, files in READERS.items() if name.startswith(family)), None)
    path = os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ.get("PATH", os.defpath)])
    found = shutil.which(program, path=path)
    if wanted is None or name in ALSO_OTHERS or not found or "python" not in Path(found).name:
        return None
    prefix = Path(found).absolute().parent.parent
    config = prefix / "pyvenv.cfg"
    shared = config.is_file() and "system-site-packages = true" in config.read_text().lower()
    elsewhere = any(
        os.environ.get(word) for word in ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH")
    )
    if shared or elsewhere or str(prefix) in TOO_LARGE:
        return None
    files = sorted(
        show(Path(folder, file))
        for folder, _, names in os.walk(prefix / "lib")
        for file in names
        if file.startswith(wanted) and ".so" in file
    )
    system = any(ctypes.util.find_library(file[3:].rstrip(".")) for file in wanted)
    return None if system and not files else tuple(files)


def _typed(value: Value) -> str:
    return "" if value is None else str(value)
