"""What a script is made of and reads: the modules that it imports from folders of one's own, and the
files that its command names."""

import ast
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

OURS = "scaleout"  # whose version each record tells
MOST_MODULES = 200


def modules(script: Path, folders: Sequence[Path]) -> dict[str, Path]:
    """Find the modules that a script imports from these folders, and what they import in turn.

    Parameters
    ----------
    script : Path
        A Python file; of any other nothing is found.
    folders : sequence of Path
        Where they are looked for, in this order. What is imported by a computed name is not seen.

    Returns
    -------
    dict of str to Path
        The file of each, by its path in its folder.
    """
    found: dict[str, Path] = {}
    left = [script] if script.suffix == ".py" else []
    while left and len(found) < MOST_MODULES:
        file = left.pop()
        for name, path in _imported(file, folders):
            if name not in found and path.resolve() != script.resolve():
                found[name] = path
                left.append(path)
    return dict(sorted(found.items()))


def folders_of(script: Path, env: Mapping[str, object], more: Iterable[Path] = ()) -> list[Path]:
    """List where Python looks for one's own modules: beside the script, then in PYTHONPATH."""
    given = env.get("PYTHONPATH", os.environ.get("PYTHONPATH")) or ""
    places = [script.parent, *more, *map(Path, filter(None, str(given).split(os.pathsep)))]
    return list(dict.fromkeys(places))


def files(words: Iterable[object]) -> dict[str, Path]:
    """Find the files that words of a command name, also behind a =, by their paths as typed."""
    texts = [str(word) for word in words]
    found = [part for text in texts for part in (text, text.partition("=")[2]) if part]
    return {path: Path(path) for path in found if _is_file(Path(path))}


def digests(found: Mapping[str, Path]) -> dict[str, str]:
    """Digest these files, {name: 16 hexadecimal digits}; one that cannot be read is left out."""
    each = {name: _digest(path) for name, path in found.items()}
    return {name: digest for name, digest in each.items() if digest}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a name, or with a zero in it
        return False


def _digest(path: Path) -> str:
    try:
        state = path.stat()
        return _of(path, state.st_size, state.st_mtime_ns)
    except OSError:
        return ""


@functools.lru_cache(maxsize=1000)
def _of(path: Path, size: int, changed: int) -> str:
    """Digest a file, again only when it has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _imported(file: Path, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the modules that a file imports from these folders."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        where = folders
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            names = [f"{start}{alias.name}" for alias in node.names]
            if node.level:
                where = [file.parents[min(node.level, len(file.parents)) - 1]]
        for name in names:
            if name.partition(".")[0] != OURS:
                yield from _parts(name.split("."), where, folders)


def _parts(
    parts: Sequence[str], where: Sequence[Path], folders: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    """Yield the file of a module, and those of the packages around it."""
    for top in where:
        paths = [top.joinpath(*parts[:number]) for number in range(1, len(parts) + 1)]
        both = [one for path in paths for one in (path / "__init__.py", path.with_suffix(".py"))]
        known = [path for path in both if _is_file(path)]
        for path in known:
            inside = next((folder for folder in folders if path.is_relative_to(folder)), top)
            yield path.relative_to(inside).as_posix(), path
        if known:
            return
