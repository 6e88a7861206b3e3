"""The screenshot of JupyterLab for the README, as `make pictures` takes it."""

import lint_text
import make_pictures
import psutil
import pytest
from helpers import CHROMIUM, ROOT, needs_a_browser

pytestmark = [pytest.mark.browser, needs_a_browser]


def test_the_desk_shows_the_first_notebook_and_its_lab_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    picture, shows = make_pictures.desk(str(CHROMIUM))
    assert picture[:4] == b"\x89PNG"
    for name in lint_text.DESK:
        every = lint_text.parts(ROOT / name)
        assert 3 <= len(shows[name]) < len(every) and shows[name] == every[: len(shows[name])]
    assert psutil.Process().children(recursive=True) == []
