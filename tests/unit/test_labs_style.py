"""How labs are written: 79 columns, one idea a line, a docstring whose command starts that very
file, one sentence for wrong input."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 79
MOST_FLAGS = 8


def _files(*, scripts: bool = False) -> list:
    """The Python files of labs and solutions. scripts: those that are started by themselves."""
    found = []
    for path in sorted([*ROOT.glob("solutions/*/*.py"), *ROOT.glob("labs/*/*.py")]):
        starts = 'if __name__ == "__main__":' in path.read_text()
        if starts or not scripts:
            found.append(pytest.param(path, id=str(path.relative_to(ROOT))))
    return found


def too_wide(text: str) -> list[int]:
    """The lines that do not fit beside a notebook."""
    return [at for at, line in enumerate(text.splitlines(), 1) if len(line) > WIDTH]


def squeezed(text: str) -> list[int]:
    """The lines that hold several assignments, or an assignment inside something else."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign):
            several = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            if several or len(node.targets) > 1:
                found.append(node.lineno)
        elif isinstance(node, ast.NamedExpr):
            found.append(node.lineno)
    statements = [n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)]
    return sorted({*found, *(at for at in statements if statements.count(at) > 1)})


def starts(docstring: str) -> list[str]:
    """The scripts that a docstring's commands start."""
    how = r"mpirun -n \d+ .*?python -m mpi4py|scaleout run"
    return re.findall(rf"^    (?:{how}) (\S+\.py)", docstring, re.MULTILINE)


def flags(text: str) -> list[ast.Call]:
    """The calls that add a flag."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [call for call in calls if getattr(call.func, "attr", "") == "add_argument"]


def test_there_are_files_to_look_at() -> None:
    assert len(_files()) > len(_files(scripts=True)) > 0


@pytest.mark.parametrize("path", _files())
def test_a_lab_stands_beside_its_notebook_unwrapped(path: Path) -> None:
    assert not too_wide(path.read_text())


@pytest.mark.parametrize("path", _files())
def test_a_line_holds_one_idea(path: Path) -> None:
    assert not squeezed(path.read_text())


@pytest.mark.parametrize("path", _files(scripts=True))
def test_the_docstring_starts_this_very_file(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()), clean=False)
    assert docstring and set(starts(docstring)) == {str(path.relative_to(ROOT))}
    assert re.search(r"seconds?\b|minutes?\b|takes\s+as long as", docstring), "how long it takes"


@pytest.mark.parametrize("path", _files(scripts=True))
def test_flags_are_few_and_say_what_they_take(path: Path) -> None:
    found = flags(path.read_text())
    assert len(found) <= MOST_FLAGS
    for call in found:
        assert "help" in [keyword.arg for keyword in call.keywords], ast.unparse(call)


@pytest.mark.parametrize("path", _files(scripts=True))
def test_wrong_input_is_no_assertion(path: Path) -> None:
    """An assert may hold what was computed, never what somebody has typed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assert):
            names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
            assert not names or names - {"args", "min", "max", "len"}, ast.unparse(node)


def test_a_type_of_flag_is_the_same_in_each_lab() -> None:
    """A lab imports the flags that stand beside it: copies, which must not drift."""
    written: dict[str, set[str]] = {}
    for path in ROOT.glob("solutions/*/flags.py"):
        text = path.read_text()
        uses_mpi = "import horovod" not in text
        for node in ast.parse(text).body:
            # Where Horovod leads the ranks out, they leave in another way.
            if isinstance(node, ast.FunctionDef) and (uses_mpi or node.name != "refuse"):
                written.setdefault(node.name, set()).add(ast.unparse(node))
    assert {"one_or_more", "zero_or_more", "refuse"} <= set(written)
    assert not [name for name, texts in written.items() if len(texts) > 1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1\nb = 2", []),
        ("a, b = f()", []),
        ("a, b = 1, 2", [1]),
        ("a = b = 1", [1]),
        ("a = 1; b = 2", [1]),
        ("if a: b = 2", [1]),
        ("\nc = [x for y in z if (x := y)]", [2]),
    ],
)
def test_a_squeezed_line_is_seen(text: str, found: list[int]) -> None:
    assert squeezed(text) == found


def test_a_wide_line_and_a_foreign_command_are_seen() -> None:
    assert too_wide("x" * 79 + "\n" + "x" * 80) == [2]
    assert starts("Hello.\n\n    mpirun -n 2 python -m mpi4py labs/a/b.py --c 1\n") == [
        "labs/a/b.py"
    ]
    assert starts("Hello.\n\n    scaleout run labs/a/c.py -n 2\n") == ["labs/a/c.py"]
    assert len(flags('p.add_argument("--x", help="y")\np.parse_args()')) == 1
