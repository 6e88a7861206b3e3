"""The crops of 10_input: the same everywhere, whole or not at all, and what is said when they cannot
be written."""

import errno
import json
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
    for form in crops.FORMS:
        crops.crops(form, COUNT, folder)
    return folder


def test_they_are_the_same_everywhere(written: Path) -> None:
    assert crops.digest(written / "files") == DIGEST


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


def test_interrupted_writing_goes_on_and_mends_what_was_cut(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, calls = crops._put, []

    def stop(path: Path, content: bytes, part: Path) -> None:
        calls.append(path)
        if len(calls) == 10:
            part.write_bytes(content[:100])
            raise KeyboardInterrupt
        put(path, content, part)

    monkeypatch.setattr(crops, "_put", stop)
    with pytest.raises(KeyboardInterrupt):
        crops.crops("files", COUNT, tmp_path)
    assert not (tmp_path / "index.json").exists()
    files = tmp_path / "files"
    assert len(list(files.iterdir())) == 9
    # As after a power cut: a name without its content, and a file from elsewhere.
    (files / "00003-3.jpg").write_bytes(b"")
    (files / "99999-0.jpg").write_bytes(b"x")
    written_again = []
    monkeypatch.setattr(
        crops, "_put", lambda path, *rest: (written_again.append(path.name), put(path, *rest))
    )
    assert crops.crops("files", COUNT, tmp_path) == files
    assert crops.digest(files) == DIGEST
    # Nine were there, one of them cut; the index is the last.
    assert len(written_again) == COUNT - 9 + 1 + 1 and "00003-3.jpg" in written_again


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(crops, "_put", full)
    with pytest.raises(ScaleoutError, match="No space left on device.*make room") as told:
        crops.crops("files", 8, tmp_path)
    assert "\n" not in str(told.value)
    monkeypatch.undo()
    assert json.loads((crops.crops("files", 8, tmp_path).parent / "index.json").read_text())
