"""A folder that a person makes on a cluster, as docs/cluster.md says, has all that the course needs."""

import re
from pathlib import Path

import pytest

from scaleout.course import masters
from scaleout.teaching.release import release

ROOT = Path(__file__).resolve().parents[3]


def test_a_folder_made_as_the_page_says_has_untouched_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (given,) = re.findall(r"scaleout release (\S+) ", page)
    (source, names) = re.findall(r"cp -r (\S+)/\{(.*)\} \.", page)[0]
    assert source == given
    monkeypatch.chdir(ROOT)
    release(tmp_path / "class")
    own = tmp_path / "own"
    own.mkdir()
    for name in names.split(","):
        (tmp_path / "class" / name).rename(own / name)
    monkeypatch.chdir(own)
    for topic in sorted(path.name for path in (own / "labs").iterdir()):
        assert "runme.py" in masters.untouched(topic), topic
    (own / "labs/04_kmeans/runme.py").write_text("broken")
    assert (
        "as new" in masters.reset("04")
        and "TODO 1" in (own / "labs/04_kmeans/runme.py").read_text()
    )
