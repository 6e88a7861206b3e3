"""Runs a notebook by nbclient alone, for the day when nbval and pytest no longer go together: every
cell must run, and those tagged nbval-check-output must print the same as they did.

    python tests/notebooks/without_nbval.py BOOK        (make test ARGS=--nbclient)
"""

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal

LIMIT_S = 600  # of a cell that never ends
COMPARED = "nbval-check-output"


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell has printed and not wiped away, and what its last line returned, as text."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            texts.append(output.text)
        elif output.output_type == "execute_result":
            texts.append(output.data.get("text/plain", ""))
    return re.sub(r"^.*\r(?=[^\n])", "", "".join(texts), flags=re.M)


def run(path: Path) -> list[str]:
    """Run all cells of a notebook; returns what was wrong, a text each."""
    book = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(book, timeout=LIMIT_S, resources=where)
    wrong = []
    with client.setup_kernel():
        for number, cell in enumerate(book.cells):
            if cell.cell_type != "code":
                continue
            before = printed(cell)
            try:
                client.execute_cell(cell, number)
            except CellControlSignal as error:
                wrong.append(f"cell {number}: {error}")
                if isinstance(error, TimeoutError):
                    break
                continue
            after = printed(cell)
            if COMPARED in cell.metadata.get("tags", []) and after != before:
                wrong.append(f"cell {number} said\n{before}\nand now says\n{after}")
    return wrong


if __name__ == "__main__":
    found = run(Path(sys.argv[1]).resolve())
    print(*found, f"{len(found)} failed" if found else "all cells passed", sep="\n")
    sys.exit(1 if found else 0)
