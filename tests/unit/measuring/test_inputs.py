"""What a script imports and reads."""

import os
from pathlib import Path

import pytest

from scaleout.measuring import inputs


def test_what_a_script_imports_from_its_folder_is_found_in_turn(tmp_path: Path) -> None:
    files = {
        "train.py": "import numpy, unet\nfrom parts.loss import dice\nfrom scaleout import records\n",
        "unet.py": "def build():\n    import layers\n",
        "layers.py": "import train\n",
        "parts/__init__.py": "",
        "parts/loss.py": "from . import sums\nfrom .deep import far\n",
        "parts/sums.py": "",
        "parts/deep.py": "import (",
        "beside.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = inputs.modules(tmp_path / "train.py", [tmp_path])
    assert sorted(found) == sorted(files.keys() - {"train.py", "beside.py"})
    assert found["parts/loss.py"] == tmp_path / "parts/loss.py"
    assert inputs.modules(tmp_path / "train.sh", [tmp_path]) == {}


def test_one_s_own_modules_lie_beside_the_script_or_in_pythonpath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["there", "", "more"]))
    script = tmp_path / "t.py"
    assert inputs.folders_of(script, {}) == [tmp_path, Path("there"), Path("more")]
    assert inputs.folders_of(script, {"PYTHONPATH": "own"}) == [tmp_path, Path("own")]
    assert inputs.folders_of(script, {"PYTHONPATH": None}, [Path("lab")]) == [tmp_path, Path("lab")]


def test_files_of_a_command_are_told_by_their_bytes(tmp_path: Path) -> None:
    data, other = tmp_path / "x.npz", tmp_path / "y.npz"
    data.write_bytes(b"1")
    other.write_bytes(b"1")
    words = ["--data", data, f"--more={other}", "nosuch", "x" * 5000, "\0", 7, tmp_path]
    found = inputs.files(words)
    assert found == {str(data): data, str(other): other}
    one, two = inputs.digests(found).values()
    assert one == two and len(one) == 16
    os.utime(data, ns=(1, 1))
    data.write_bytes(b"22")
    assert inputs.digests(found)[str(data)] != one
    data.unlink()
    assert list(inputs.digests(found)) == [str(other)]
