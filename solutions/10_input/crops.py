"""Crops of two photographs as JPEG files, and the same crops as TFRecord,
LMDB and HDF5: written once, the same wherever they are written, whole or not
at all."""

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scaleout import ScaleoutError, data
from scaleout.locks import held
from scaleout.settings import data_folder

FORMS = ("files", "tfrecord", "lmdb", "hdf5")
PICTURES = ("china.jpg", "flower.jpg")
SIDE = 128  # pixels
QUALITY = 90
SHARDS = 8
WHOLE, QUICK = 3000, 600
WAIT_S = 600.0
INDEX = "index.json"


def crops(
    form: str = "files", count: int = 0, folder: Path | str | None = None
) -> Path:
    """Find the crops, and write them first where they are not there yet.

    All ranks may call it at once: one of them writes, and the others wait.
    Interrupted, it goes on where it stopped. A crop's number and label are in
    its name, such as 00017-5.jpg: the label says which picture (0 to 3, 4 to
    7) and which quarter of it.
    """
    if form not in FORMS:
        raise ScaleoutError(
            f"Crops come as {', '.join(FORMS)}, not as {form!r}."
        )
    count = count or (QUICK if data.quick() else WHOLE)
    place = Path(folder) if folder else _place(count)
    if _is_whole(place, form):
        return _of(place, form)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with held(place / "write.lock", WAIT_S) as mine:
            if not mine:
                raise ScaleoutError(
                    f"Another process has been writing to {place} for 10 "
                    "minutes."
                )
            if not _is_whole(place, "files"):
                _write_files(place, count)
            if not _is_whole(place, form):
                {
                    "tfrecord": _write_tfrecord,
                    "lmdb": _write_lmdb,
                    "hdf5": _write_hdf5,
                }[form](place)
    except OSError as error:
        raise _cannot_write(place, error) from None
    except Exception as error:
        # LMDB has errors of its own for what the system said.
        if "No space left" in str(error) or "MDB_MAP_FULL" in str(error):
            full = OSError(errno.ENOSPC, "No space left on device")
            raise _cannot_write(place, full) from None
        raise
    return _of(place, form)


def digest(folder: Path | str) -> str:
    """One SHA-256 over all files of a folder, in the order of their names."""
    whole = hashlib.sha256()
    for path in sorted(Path(folder).iterdir()):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def _place(count: int) -> Path:
    """Choose SCALEOUT_DATA where the crops are there, or can be written; else
    this user's cache."""
    name = f"crops-{count}"
    given = data_folder()
    if given and (
        (given / name / INDEX).is_file() or os.access(given, os.W_OK)
    ):
        return given / name
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return own / "scaleout" / name


def _of(place: Path, form: str) -> Path:
    return place / {"hdf5": "crops.h5", "lmdb": "crops.lmdb"}.get(form, form)


def _is_whole(place: Path, form: str) -> bool:
    """Whether all is written: the index comes when all files are there, and
    the other forms get their names then."""
    return (
        (place / INDEX).is_file()
        if form == "files"
        else _of(place, form).exists()
    )


def _encoded(count: int) -> Iterator[tuple[str, bytes]]:
    """Yield the crops, each with its name: picture and quarter in turns, the
    place drawn from a seed."""
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_sample_image

    pictures = [
        load_sample_image(name) for name in PICTURES
    ]  # (427, 640, 3) each
    draw = np.random.default_rng(10)
    for number in range(count):
        label = number % 8
        picture = pictures[label // 4]
        height, width = picture.shape[0] // 2, picture.shape[1] // 2
        top = label % 4 // 2 * height + int(draw.integers(height - SIDE))
        left = label % 2 * width + int(draw.integers(width - SIDE))
        packed = io.BytesIO()
        crop = Image.fromarray(picture[top : top + SIDE, left : left + SIDE])
        crop.save(packed, "JPEG", quality=QUALITY)
        yield f"{number:05d}-{label}.jpg", packed.getvalue()


def _write_files(place: Path, count: int) -> None:
    """Compare what is there already, and do not trust it: a machine may have
    stopped in between."""
    files = place / "files"
    files.mkdir(exist_ok=True)
    known = {}
    for name, packed in _encoded(count):
        path = files / name
        if not path.is_file() or path.read_bytes() != packed:
            _put(path, packed, place / "file.part")
        known[name] = hashlib.sha256(packed).hexdigest()
    for path in files.iterdir():
        if path.name not in known:
            path.unlink()
    _put(place / INDEX, json.dumps(known).encode(), place / "file.part")


def _put(path: Path, content: bytes, part: Path) -> None:
    part.write_bytes(content)
    part.rename(path)


def _rows(place: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number, label and bytes of each crop."""
    for path in sorted((place / "files").iterdir()):
        number, label = path.stem.split("-")
        yield int(number), int(label), path.read_bytes()


@contextlib.contextmanager
def _part(place: Path, form: str) -> Iterator[Path]:
    """A path to write to, which gets its name when all is written."""
    target = _of(place, form)
    part = place / f"{target.name}.part"
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    yield part
    part.rename(target)


def _write_tfrecord(place: Path) -> None:
    import tensorflow as tf

    def ints(value: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    with _part(place, "tfrecord") as part, contextlib.ExitStack() as opened:
        part.mkdir()
        names = [
            part / f"part-{k}-of-{SHARDS}.tfrecord" for k in range(SHARDS)
        ]
        try:
            writers = [
                opened.enter_context(tf.io.TFRecordWriter(os.fspath(name)))
                for name in names
            ]
            for number, label, packed in _rows(place):
                image = tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[packed])
                )
                feature = {
                    "number": ints(number),
                    "label": ints(label),
                    "image": image,
                }
                example = tf.train.Example(
                    features=tf.train.Features(feature=feature)
                )
                # In turns, so that each shard has crops of every label.
                writers[number // 8 % SHARDS].write(
                    example.SerializeToString()
                )
        except tf.errors.ResourceExhaustedError:
            raise OSError(errno.ENOSPC, "No space left on device") from None


def _write_lmdb(place: Path) -> None:
    import lmdb

    size = sum(path.stat().st_size for path in (place / "files").iterdir())
    with _part(place, "lmdb") as part:
        room = 4 * size + 2**22  # pages are filled in part
        with (
            lmdb.open(os.fspath(part), map_size=room) as store,
            store.begin(write=True) as put,
        ):
            for number, label, packed in _rows(place):
                put.put(f"{number:05d}".encode(), bytes([label]) + packed)


def _write_hdf5(place: Path) -> None:
    import h5py
    import numpy as np

    rows = list(_rows(place))
    with _part(place, "hdf5") as part, h5py.File(part, "w") as file:
        images = file.create_dataset(
            "images", (len(rows),), h5py.vlen_dtype(np.uint8)
        )
        file["labels"] = np.array([label for _, label, _ in rows], np.int64)
        for number, _, packed in rows:
            images[number] = np.frombuffer(packed, np.uint8)


def _cannot_write(place: Path, error: OSError) -> ScaleoutError:
    return ScaleoutError(
        f"{place} cannot be written ({error.strerror or error}): make room, "
        "and type the same again, which goes on where it stopped; or type  "
        "export SCALEOUT_DATA=ANOTHER_FOLDER"
    )
