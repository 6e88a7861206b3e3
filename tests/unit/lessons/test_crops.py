"""The crops of 10_input: the same everywhere, whole or not at all, and what is said when they cannot
be written."""

import errno
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import lesson

from scaleout import ScaleoutError

crops = lesson("10_input", "crops")

COUNT = 24
# With the Pillow that requirements/workshop.lock pins.
DIGEST = "5e6e5e0210b7bcebd5a12eacbb1094b173639af0e29dc799dbe400b3a05effe8"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crops")
    for form in crops.NAMES:
        crops.crops(form, COUNT, folder)
    return folder


def _digest(folder: Path) -> str:
    """One SHA-256 over all files, in the order of their names."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def test_they_are_the_same_everywhere(written: Path) -> None:
    assert _digest(written / "files") == DIGEST


def test_every_form_holds_the_same_pictures(written: Path) -> None:
    import h5py
    import lmdb
    import tensorflow as tf

    wanted = {
        int(path.stem.split("-")[0]): (int(path.stem.split("-")[1]), path.read_bytes())
        for path in (written / "files").iterdir()
    }
    shards = sorted(map(str, (written / "tfrecord").iterdir()))
    assert len(shards) == crops.SHARDS
    found = {}
    for row in tf.data.TFRecordDataset(shards).as_numpy_iterator():
        feature = tf.train.Example.FromString(row).features.feature
        found[feature["number"].int64_list.value[0]] = (
            feature["label"].int64_list.value[0],
            feature["image"].bytes_list.value[0],
        )
    assert found == wanted
    with (
        lmdb.open(str(written / "crops.lmdb"), readonly=True, lock=False) as store,
        store.begin() as get,
    ):
        rows = {int(key): (value[0], value[1:]) for key, value in get.cursor()}
    assert rows == wanted
    with h5py.File(written / "crops.h5") as file:
        both = zip(file["labels"][:], file["images"][:], strict=True)
        assert {n: (int(a), b.tobytes()) for n, (a, b) in enumerate(both)} == wanted


def test_what_was_interrupted_is_written_anew_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = crops.encoded

    def stopped(count: int) -> Iterator[tuple[int, int, bytes]]:
        yield from list(encoded(count))[:10]
        raise KeyboardInterrupt

    monkeypatch.setattr(crops, "encoded", stopped)
    with pytest.raises(KeyboardInterrupt):
        crops.crops("files", COUNT, tmp_path)
    assert not (tmp_path / "files").exists() and (tmp_path / "files.part").exists()
    monkeypatch.undo()
    assert _digest(crops.crops("files", COUNT, tmp_path)) == DIGEST
    assert not (tmp_path / "files.part").exists()


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(crops.WRITE, "files", full)
    with pytest.raises(ScaleoutError, match="No space left on device.*make room") as told:
        crops.crops("files", 8, tmp_path)
    assert "\n" not in str(told.value)
    monkeypatch.undo()
    assert len(list(crops.crops("files", 8, tmp_path).iterdir())) == 8
