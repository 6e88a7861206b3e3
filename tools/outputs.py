"""Tell what a notebook's stored outputs belong to: its cells, its lesson's scripts, what these use of
the package, and one run.

`record` is what tools/make_masters.py writes into `metadata.scaleout` after a run; the others compare
it with what is there today, and yield a sentence for each difference. Cells are counted from 1,
code cells only. Notebooks are the plain objects that json reads; nothing here is imported from
outside of Python itself, so that the lint runs anywhere."""

import ast
import contextlib
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Any

Book = dict[str, Any]
Place = tuple[str, str]  # a module of the package, and a name in it; "" for the module itself
KINDS, NAME = {".py", ".sh", ".c"}, r"\w+\.\w+"
PACKAGE = Path(__file__).resolve().parent.parent / "src/scaleout/kit"
KIT = {"data", "records", "checkpoints", "flags", "layers", "waiting"}  # what labs may import
CHANGED = "{} changed since the run"
USED = CHANGED.format("what it uses of scaleout/{}.py")
CHECKS, THEIRS = "checks.py", "instruments.py"  # what only the checks run is THEIRS
MOST_NOISE = 0.10  # by which two identical jobs may differ without a word
MEASURES = re.compile(r"\b(?:print|explain)\(|\.(?:plot|check)\(|\.figures\.")


def record(book: Book) -> dict[str, list[str]]:
    """The hashes of each code cell and of its outputs, in their order."""
    code = _code(book)
    return {
        "cells": [digest(_joined(cell["source"])) for cell in code],
        "outputs": [_outputs_digest(cell["outputs"]) for cell in code],
    }


def scripts(folder: Path) -> dict[str, str]:
    """The hash of each script below a lesson's folder, by its path in there; what editors and Jupyter
    leave beside them, such as runme-Copy1.py, is none of them, nor is what only the checks run."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in KINDS)
    files = [path for path in files if re.fullmatch(NAME, path.name) and path.name != THEIRS]
    names = {path.relative_to(folder): path for path in files}
    own = [name for name in names if not any(part.startswith(".") for part in name.parts)]
    return {name.as_posix(): script_digest(names[name]) for name in own}


def script_digest(path: Path) -> str:
    """The hash of a Python script's syntax tree without docstrings; of another file's bytes.

    Comments and line breaks are not in the tree. `ast.dump` would give each version of Python
    another hash. Of the checks, an output holds what they say when they are passed; that the
    solution passes them is tried by every run of the tests.
    """
    raw = path.read_bytes()
    if path.name == CHECKS:
        return digest(repr(_said(ast.parse(raw))))
    if path.suffix != ".py":
        return digest(raw)
    try:
        return digest(_tree(ast.parse(raw)))
    except SyntaxError:
        return digest(raw)


def _said(tree: ast.Module) -> list[str]:
    """What the checks of a module say when they are passed."""
    checks = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    return [(ast.get_docstring(node) or "").partition("\n")[0] for node in checks]


def code(folder: Path, names: Iterable[str]) -> str:
    """The hash of some of a lesson's scripts, of those beside them that they import, and of what all
    of these use of the modules that labs may import."""
    todo, reached = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name in reached or not (folder / name).is_file():
            continue
        reached.add(name)
        imported = []
        for node in ast.walk(ast.parse((folder / name).read_bytes())):
            if isinstance(node, ast.Import):
                imported += [f"{alias.name}.py" for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.append(f"{node.module}.py")
        beside = Path(name).parent  # such as side/, from which scripts import those above, too
        todo += [*imported, *((beside / other).as_posix() for other in imported)]
    hashes = {name: script_digest(folder / name) for name in sorted(reached)}
    return digest(repr((hashes, package(folder, names=sorted(reached)))))[:16]


def package(
    folder: Path, source: Path | None = None, names: Iterable[str] | None = None
) -> dict[str, str]:
    """The hash of what a lesson's scripts use of each module that labs may import, by its name.

    That is the definitions that a script names, and all that these name in turn, in the same module
    or in another of these modules. The rest of the package is not looked at.
    """
    paths = {module: (source or PACKAGE) / f"{module}.py" for module in sorted(KIT)}
    kit = {module: ast.parse(path.read_bytes()) for module, path in paths.items() if path.exists()}
    defined = {module: _defined(tree) for module, tree in kit.items()}
    known = {
        module: _imported(tree) | {name: (module, name) for name in defined[module]}
        for module, tree in kit.items()
    }
    todo: list[Place] = []
    for name in (name for name in names or scripts(folder) if name.endswith(".py")):
        with contextlib.suppress(SyntaxError):  # then its own hash is that of its bytes
            tree = ast.parse((folder / name).read_bytes())
            todo += _used(tree, _imported(tree))
    reached: dict[str, dict[str, str]] = defaultdict(dict)
    seen: set[Place] = set()
    while todo:
        place = module, name = todo.pop()
        if place in seen or module not in kit:
            continue
        seen.add(place)
        if nodes := defined[module].get(name):
            reached[module][name] = _tree(nodes)
            todo += [found for node in nodes for found in _used(node, known[module])]
        elif name in known[module]:  # it hands on what another module defines
            todo.append(known[module][name])
    return {module: digest(repr(sorted(reached[module].items()))) for module in sorted(reached)}


def stale(book: Book, folder: Path) -> Iterator[str]:
    """What has changed since the notebook was run, a sentence each."""
    then = _then(book)
    if not then:
        yield "nothing says which code its outputs come from"
        return
    pairs = _pairs(book)
    new = [number for number, at in enumerate(pairs, 1) if at is None]
    yield from (f"cell [{number}] is new or changed since the run" for number in new)
    if not new and len(then["cells"]) > len(pairs):
        yield "a cell that was run is gone"
    was, now = then["scripts"], scripts(folder)
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            yield CHANGED.format(f"{folder.name}/{name}")
    was, now = then.get("package", {}), package(folder)
    for module in sorted(was.keys() | now.keys()):
        if was.get(module) != now.get(module):
            yield USED.format(module)


def edited(book: Book) -> Iterator[str]:
    """Which outputs are not those that the run gave, a sentence each."""
    for number, (cell, at) in enumerate(zip(_code(book), _pairs(book), strict=True), 1):
        given = "" if at is None else _then(book)["outputs"][at]
        if given and cell["outputs"] and _outputs_digest(cell["outputs"]) != given:
            yield f"the output of cell [{number}] was edited after the run"


def missing(book: Book) -> Iterator[str]:
    """Which cells should have an output and store none, a sentence each."""
    for number, (cell, at) in enumerate(zip(_code(book), _pairs(book), strict=True), 1):
        had = at is not None and _then(book)["outputs"][at] != _outputs_digest([])
        if not cell["outputs"] and (had or measures(_joined(cell["source"]))):
            yield f"cell [{number}] shows what was measured, and stores no output"


def measures(source: str) -> bool:
    """Whether a cell prints, explains, draws or checks, or ends in an expression that is shown."""
    if MEASURES.search(source):
        return True
    if source.startswith("%%") or source.rstrip().endswith(";"):
        return False
    try:
        body = ast.parse(re.sub(r"^[%!].*$", "pass", source, flags=re.M)).body
    except SyntaxError:
        return False
    return bool(body) and isinstance(body[-1], ast.Expr)


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _code(book: Book) -> list[dict[str, Any]]:
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def _then(book: Book) -> dict[str, Any]:
    """What the last run recorded; empty where none has."""
    found = book["metadata"].get("scaleout", {})
    return found if "cells" in found else {}


def _pairs(book: Book) -> list[int | None]:
    """For each code cell its place in the last run; None where no such cell was run there."""
    now, then = record(book)["cells"], _then(book).get("cells", [])
    found: list[int | None] = [None] * len(now)
    for block in SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            found[block.b + step] = block.a + step
    return found


def _defined(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The functions, classes and assignments at the top of a module, by name."""
    found: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name].append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
            for name in {part.id for part in names if isinstance(part.ctx, ast.Store)}:
                found[name].append(node)
    return dict(found)


def _imported(tree: ast.Module) -> dict[str, Place]:
    """What a text imports of the modules that labs may import, by the name that it gives it."""
    found: dict[str, Place] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".")
        if not node.level and parts[0] != "scaleout":
            continue
        for alias in node.names:
            if parts[-1] in KIT:
                found[alias.asname or alias.name] = (parts[-1], alias.name)
            elif alias.name in KIT:
                found[alias.asname or alias.name] = (alias.name, "")
    return found


def _used(tree: ast.AST, known: dict[str, Place]) -> Iterator[Place]:
    """Which of the known names stand in a syntax tree; of a module, which of its names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in known:
            yield known[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, name = known.get(node.value.id, ("", ""))
            if module and not name:
                yield module, node.attr


def _joined(text: Any) -> Any:
    """A text that may be stored as the list of its lines."""
    lines = isinstance(text, list) and all(isinstance(line, str) for line in text)
    return "".join(text) if lines else text


def _outputs_digest(stored: list[dict[str, Any]]) -> str:
    plain = [
        {
            **{name: _joined(value) for name, value in output.items()},
            "data": {kind: _joined(value) for kind, value in output.get("data", {}).items()},
        }
        for output in stored
    ]
    return digest(json.dumps(plain, sort_keys=True))


def _tree(node: Any) -> str:
    """A syntax tree as text: no places, no empty fields, no docstrings."""
    if isinstance(node, list):
        return f"[{', '.join(map(_tree, _ordered(node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.ImportFrom):
        fields["module"] = _module(node)
    documented = isinstance(
        node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    )
    if documented and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = fields["body"][1:]
    if isinstance(node, ast.JoinedStr):  # Python 3.12 ends some of them in an empty text
        fields["values"] = [part for part in node.values if getattr(part, "value", None) != ""]
    parts = [f"{name}={_tree(value)}" for name, value in fields.items() if value not in (None, [])]
    return f"{type(node).__name__}({', '.join(parts)})"


def _module(node: ast.ImportFrom) -> str | None:
    """The module of an import, without its room: where ours lies is no part of what was measured."""
    return node.module and re.sub(r"^scaleout\.(?:kit|base)\.", "scaleout.", node.module)


def _ordered(nodes: list[Any]) -> list[Any]:
    """Imports of ours that stand together, in the order of their modules; all else as it stands."""
    found: list[Any] = []
    for ours, group in groupby(nodes, _is_ours):
        together = list(group)
        found += sorted(together, key=lambda node: str(_module(node))) if ours else together
    return found


def _is_ours(node: Any) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scaleout")
