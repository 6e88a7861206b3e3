"""A topic's own modules: figures.py and its neighbours, from the folder that the notebook uses."""

import os
from pathlib import Path

import pytest

from scaleout import lab
from scaleout.base.errors import ScaleoutError


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("labs/00_first", "labs/01_second", "solutions/00_first", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "runme.py").touch()
        (tmp_path / folder / "figures.py").write_text(f"WHERE = {folder!r}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_topics_have_figures_of_their_own(workshop: Path) -> None:
    first, second = lab("00_first").figures, lab("01_second").figures
    assert [first.WHERE, second.WHERE] == ["labs/00_first", "labs/01_second"]
    assert lab("00_first", solution=True).figures.WHERE == "solutions/00_first"
    assert lab("00_first").figures is first, "loaded once"


def test_a_changed_module_is_loaded_anew(workshop: Path) -> None:
    lab("00_first").module("figures")
    path = workshop / "labs/00_first/figures.py"
    path.write_text("WHERE = 'changed'\n")
    os.utime(path, ns=(1, 1))
    assert lab("00_first").figures.WHERE == "changed"


def test_a_missing_module_is_told_with_its_file(workshop: Path) -> None:
    with pytest.raises(ScaleoutError, match="no module 'kernels': there is no labs/00_first/kern"):
        lab("00_first").module("kernels")
