"""The first run of a prediction's cell asks for the guess and shows nothing measured; the second
goes on. Cells that "Run All" sends, and notebooks that no Jupyter server opened, are left alone."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import pytest
from helpers import ROOT
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from scaleout.course import guess_first

BOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CELL = "guess_much = None  # your guess, such as 3\nprint(6 * 7)"


class Hand:
    """A person who runs cells; pause: how many seconds after the one before."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self.code = ""
        self.shell = InteractiveShell()
        self.shell.ast_transformers.append(guess_first.GuessFirst(self.request))

    def request(self) -> dict[str, dict[str, object]]:
        return {"header": {"date": self.at}, "content": {"code": self.code}}

    def runs(self, code: str, pause: float = 5.0) -> tuple[bool, set[str]]:
        """Whether the cell ended well, and the names that it has made."""
        before = {*self.shell.user_ns}
        self.at += timedelta(seconds=pause)
        self.code = code
        done = self.shell.run_cell(code, store_history=False)
        return done.success, {*self.shell.user_ns} - before


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_the_first_run_asks_and_shows_nothing_and_the_second_goes_on(
    path: Path, hand: Hand, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [
        cell.source
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and "guess_" in cell.source
    ]
    asking = [source for source in cells if re.search(r"^guess_\w+ = None", source, re.MULTILINE)]
    assert asking
    for source in asking:
        ok, made = hand.runs(source)
        said = capsys.readouterr().out
        line = re.search(r"^guess_\w+ = None.*$", source, re.MULTILINE)
        assert ok and made == set() and line and line[0] in said
        assert said.startswith("Your guess comes first") and said.count("\n") < 7, said
        # The rest of the cell needs what the cells before it make, so that it fails here.
        ok, made = hand.runs(source)
        assert made or not ok
        assert "Your guess comes first" not in capsys.readouterr().out


def test_a_guess_and_run_all_are_left_alone(hand: Hand, capsys: pytest.CaptureFixture[str]) -> None:
    assert hand.runs(CELL, pause=0.01)[0]
    assert capsys.readouterr().out == "42\n"
    assert hand.runs(CELL.replace("None", "3"))[0]
    assert capsys.readouterr().out == "42\n"
    assert hand.runs(CELL)[0] and hand.runs("other = None\nprint(1)")[0]
    assert "42" not in (said := capsys.readouterr().out) and said.endswith("\n1\n")


@pytest.mark.parametrize("opened", [True, False])
def test_a_kernel_asks_where_a_server_opened_the_notebook(
    opened: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT / "notebooks")
    environment = {**os.environ, "SCALEOUT_RESULTS": str(tmp_path)}
    environment["JPY_SESSION_NAME"] = "notebooks/00_welcome.ipynb"
    if not opened:
        del environment["JPY_SESSION_NAME"]
    manager, client = start_new_kernel(env=environment)
    try:
        _said(client, "from scaleout import lab; own = lab('00')")
        texts = []
        for _ in range(2):
            _said(client, f"import time; time.sleep({guess_first.TOGETHER_S} + 0.1)")
            texts.append(_said(client, CELL))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert texts[1] == "42\n"
    assert ("such as 3" in texts[0], "42" in texts[0]) == (opened, not opened)


def _said(client: BlockingKernelClient, code: str) -> str:
    """What a cell prints."""
    texts: list[str] = []
    client.execute_interactive(
        code,
        output_hook=lambda message: texts.append(message["content"].get("text", "")),
        timeout=60,
    )
    return "".join(texts)
