"""PyTorch, which `make torch` puts into .side/torch; and what is said and kept where it takes part."""

from typing import TYPE_CHECKING, Any

from ..comparisons.references import line
from ..paths import results, show, side

if TYPE_CHECKING:
    import pandas as pd


MISSING = "PyTorch is not here: type  make torch  in a terminal (270 MB, Python 3.11)."


def python() -> str | None:
    """The path of PyTorch's Python, for lab.run(python=...); None when it is not here."""
    folder = side("torch")
    return show(folder / "bin" / "python") if folder else None


def missing() -> str:
    """Why what a reference machine measured takes the place of PyTorch."""
    return "The short form leaves PyTorch out." if python() else MISSING


def note(name: str, frame: "pd.DataFrame", places: list[dict[str, Any]]) -> None:
    """Keeps records in results/frameworks/, each with its place, as a file of references has them.

    tools/keep_reference.py makes such a file of them.
    """
    where = {place["run_id"]: {"name": name, **place} for place in places}
    lines = [line(row, where[row.run_id], row["metrics"]) for _, row in frame.iterrows()]
    file = results("frameworks") / f"{name.replace(' ', '-').replace(',', '')}.jsonl"
    file.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
