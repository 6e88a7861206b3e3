"""A notebook, for what goes wrong in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.kernel import Notebook


@pytest.fixture
def notebook(tmp_path: Path, results: Path) -> Iterator[Notebook]:
    opened = Notebook(tmp_path)
    yield opened
    opened.client.stop_channels()
    if opened.manager.is_alive():
        opened.manager.shutdown_kernel(now=True)
