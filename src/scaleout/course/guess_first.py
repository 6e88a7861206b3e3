"""A guess comes first: run by hand for the first time, a cell whose guess is None asks for it.

"Run All" sends its cells at one moment. Nobody reads between them, so they run as they are."""

import ast
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from . import came

TOGETHER_S = 1.0  # cells that a front end sends closer together than this are sent by "Run All"
ASKS = """\
Your guess comes first: put it in the place of None in

    {line}

and run this cell again. (Run again as it is, it shows what comes without a guess.)"""


class GuessFirst:
    """Puts a question in the place of a cell without a guess, once; IPython calls it for each cell.

    request: the message of the front end that asked for this cell.
    """

    def __init__(self, request: Callable[[], dict[str, Any]]) -> None:
        self.request = request
        self.asked = set[str]()
        self.sent = request()["header"]["date"]

    def visit(self, cell: ast.Module) -> ast.Module:
        """Return the cell, or what asks for its guess."""
        request = self.request()
        sent, before = request["header"]["date"], self.sent
        self.sent = sent
        new = {
            name.id
            for line in cell.body
            if isinstance(line, ast.Assign)
            and isinstance(line.value, ast.Constant)
            and line.value.value is None
            for name in line.targets
            if isinstance(name, ast.Name) and name.id.startswith("guess_")
        } - self.asked
        if not new or (sent - before).total_seconds() < TOGETHER_S:
            return cell
        self.asked |= new
        lines = re.findall(r"^guess_\w+ = None.*$", request["content"]["code"], re.MULTILINE)
        said = ASKS.format(line="\n    ".join(lines))
        return ast.parse(f"print({said!r})")


def begin() -> None:
    """Ask for guesses from now on, in a notebook that a Jupyter server has opened for somebody."""
    if "JPY_SESSION_NAME" not in os.environ or "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    shell = get_ipython()
    kernel = getattr(shell, "kernel", None)
    if kernel and not any(isinstance(one, GuessFirst) for one in shell.ast_transformers):
        shell.ast_transformers.append(GuessFirst(kernel.get_parent))
        came.begin(shell)
