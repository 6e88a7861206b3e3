"""Crops of two photographs as JPEG files, and the same crops as TFRecord,
LMDB and HDF5: written once, the same wherever they are written."""

import fcntl
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scaleout import ScaleoutError, data

NAMES = {"files": "files", "tfrecord": "tfrecord", "lmdb": "crops.lmdb",
         "hdf5": "crops.h5"}
PICTURES = ("china.jpg", "flower.jpg")
SIDE = 128  # pixels
QUALITY = 90
SHARDS = 8
WHOLE = 3000
QUICK = 600


def crops(form: str = "files", count: int = 0,
          folder: Path | str | None = None) -> Path:
    """Find the crops, and write them first where they are not there yet.

    All ranks may call it at once: one of them writes, and the others wait. A
    crop's number and label are in its name, such as 00017-5.jpg: the label
    says which picture (0 to 3, 4 to 7) and which quarter of it.
    """
    count = count or (QUICK if data.quick() else WHOLE)
    place = Path(folder or home() / f"crops-{count}")
    if not (place / NAMES[form]).exists():
        try:
            place.mkdir(parents=True, exist_ok=True)
            with open(place / "write.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
                write("files", place, encoded(count))
                write(form, place, rows(place / "files"))
        except Exception as error:  # LMDB and TensorFlow have their own
            raise ScaleoutError(
                f"{place} cannot be written ({error}): make room and type the "
                "same again, or  export SCALEOUT_DATA=ANOTHER_FOLDER"
            ) from None
    return place / NAMES[form]


def home() -> Path:
    """Choose SCALEOUT_DATA where it can be written, else this user's cache."""
    given = os.environ.get("SCALEOUT_DATA")
    if given and os.access(given, os.W_OK):
        return Path(given)
    own = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own) / "scaleout"


def write(form: str, place: Path, each: Iterator) -> None:
    """Write one form, which gets its name when all of it is there."""
    target = place / NAMES[form]
    part = place / f"{target.name}.part"
    if target.exists():
        return
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)
    WRITE[form](part, each)
    part.rename(target)


def encoded(count: int) -> Iterator[tuple[int, int, bytes]]:
    """Number, label and bytes of each crop: picture and quarter in turns, the
    place drawn from a seed."""
    from PIL import Image
    from sklearn.datasets import load_sample_image

    pictures = [load_sample_image(name) for name in PICTURES]  # (427, 640, 3)
    draw = np.random.default_rng(10)
    for number in range(count):
        label = number % 8
        picture = pictures[label // 4]
        height, width = picture.shape[0] // 2, picture.shape[1] // 2
        top = label % 4 // 2 * height + int(draw.integers(height - SIDE))
        left = label % 2 * width + int(draw.integers(width - SIDE))
        packed = io.BytesIO()
        crop = Image.fromarray(picture[top:top + SIDE, left:left + SIDE])
        crop.save(packed, "JPEG", quality=QUALITY)
        yield number, label, packed.getvalue()


def rows(files: Path) -> Iterator[tuple[int, int, bytes]]:
    """The same, from the files."""
    for path in sorted(files.iterdir()):
        number, label = path.stem.split("-")
        yield int(number), int(label), path.read_bytes()


def write_files(part: Path, each: Iterator) -> None:
    part.mkdir()
    for number, label, packed in each:
        (part / f"{number:05d}-{label}.jpg").write_bytes(packed)


def write_tfrecord(part: Path, each: Iterator) -> None:
    import tensorflow as tf

    def feature(kind: str, value) -> tf.train.Feature:
        one = {"int64_list": tf.train.Int64List,
               "bytes_list": tf.train.BytesList}[kind](value=[value])
        return tf.train.Feature(**{kind: one})

    part.mkdir()
    shards = [tf.io.TFRecordWriter(f"{part}/part-{k}-of-{SHARDS}.tfrecord")
              for k in range(SHARDS)]
    for number, label, packed in each:
        example = tf.train.Example(features=tf.train.Features(feature={
            "number": feature("int64_list", number),
            "label": feature("int64_list", label),
            "image": feature("bytes_list", packed)}))
        # In turns, so that each shard has crops of every label.
        shards[number // 8 % SHARDS].write(example.SerializeToString())
    for shard in shards:
        shard.close()


def write_lmdb(part: Path, each: Iterator) -> None:
    import lmdb

    listed = list(each)
    room = 4 * sum(len(packed) for *_, packed in listed) + 2**22
    with (lmdb.open(os.fspath(part), map_size=room) as store,
          store.begin(write=True) as put):
        for number, label, packed in listed:
            put.put(b"%05d" % number, bytes([label]) + packed)


def write_hdf5(part: Path, each: Iterator) -> None:
    import h5py

    listed = list(each)
    with h5py.File(part, "w") as file:
        images = file.create_dataset("images", (len(listed),),
                                     h5py.vlen_dtype(np.uint8))
        file["labels"] = np.array([label for _, label, _ in listed], np.int64)
        for number, _, packed in listed:
            images[number] = np.frombuffer(packed, np.uint8)


WRITE = {"files": write_files, "tfrecord": write_tfrecord, "lmdb": write_lmdb,
         "hdf5": write_hdf5}
