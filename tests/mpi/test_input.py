"""10_input: each image on one rank, an order that can be taken up again, files that are broken, and
servers that are asked."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import lesson
from torch_scripts import TORCH, with_torch

from scaleout import lab
from scaleout.jobs.job import JobFailed, Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

crops = lesson("10_input", "crops").crops
LAB = Path(__file__).resolve().parents[2] / "solutions" / "10_input"

# All in one process, without a job: the ranks of many jobs, one after another.
MANY = """
import json
import numpy as np, tensorflow as tf
from runme import input_pipeline, my_images

ALL = ["parallel", "batch", "cache", "prefetch"]

def pipeline(mine, use, first=0, done=0, epochs=2):
    def read(number):
        return tf.reshape(number, [1, 1, 1])
    def change(images, numbers, epoch):
        return images
    return input_pipeline(mine, read, change, use, 4, 3, first, done, epochs)

def listed(rows):
    return [[int(e), n.numpy().tolist(), i.numpy().ravel().tolist()] for i, n, e in rows]

def stream(*args, **how):
    return listed(pipeline(*args, **how))

found = {"dealt": [], "whole": {}, "resumed": {}}
for count in (1, 5, 8, 41):
    for ranks in (1, 2, 3, 5, 8):
        if ranks <= count:
            dealt = [my_images(np.arange(count), r, ranks).tolist() for r in range(ranks)]
            found["dealt"].append([count, ranks, dealt])
mine = my_images(np.arange(21), 1, 2)  # 10 images: 4, 4 and 2
for name, use in (("cached", ALL), ("read", ["parallel", "prefetch"])):
    whole = stream(mine, use, epochs=3)
    found["whole"][name] = whole
    found["resumed"][name] = [
        [epoch, at, stream(mine, use, first=epoch, done=4 * at, epochs=3 - epoch)]
        for epoch, at in ((0, 1), (1, 0), (1, 2), (2, 1))
    ]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def many() -> dict:
    environment = {**os.environ, "PYTHONPATH": str(LAB)}
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAB.parents[1])
    monkeypatch.setenv("SCALEOUT_QUICK", "1")


def _run(**how: object) -> Run:
    return lab("10_input", solution=True).run(
        **{"threads": 1, "timeout": 120, "echo": False, **how}
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """129 images in batches of 64: two steps for one of two ranks, one for the other."""
    files = crops("files", 129, tmp_path / "images")
    monkeypatch.setenv("SCALEOUT_CROPS", str(files))
    return files


def test_each_image_is_on_one_rank_for_any_number_of_both(many: dict) -> None:
    assert len(many["dealt"]) > 10
    for count, ranks, dealt in many["dealt"]:
        assert sorted(sum(dealt, [])) == list(range(count))
        assert len(dealt) == ranks and max(map(len, dealt)) - min(map(len, dealt)) <= 1


@pytest.mark.parametrize("name", ["cached", "read"])
def test_an_epoch_has_each_image_once_and_a_short_last_batch(many: dict, name: str) -> None:
    orders = []
    for epoch in range(3):
        batches = [numbers for e, numbers, _ in many["whole"][name] if e == epoch]
        assert [len(batch) for batch in batches] == [4, 4, 2]
        orders.append(sum(batches, []))
        assert sorted(orders[-1]) == list(range(1, 21, 2))
    assert orders[0] != orders[1] != orders[2] != orders[0]
    for _, numbers, pixels in many["whole"][name]:
        assert numbers == pixels, "an image came with another's number"


@pytest.mark.parametrize("name", ["cached", "read"])
def test_it_goes_on_in_the_middle_of_an_epoch_with_what_is_missing(many: dict, name: str) -> None:
    whole = many["whole"][name]
    for epoch, at, rest in many["resumed"][name]:
        assert rest == whole[3 * epoch + at :], (epoch, at)


def test_the_order_is_the_same_with_a_cache_and_without(many: dict) -> None:
    assert many["whole"]["cached"] == many["whole"]["read"]


def test_ranks_with_unlike_numbers_of_batches_end_together(folder: Path) -> None:
    (row,) = _run(ranks=2, step_ms=0).records.to_dict("records")
    assert row["metrics.images"] == 129
    assert row["metrics.seen"] == [2, 2], "not each image once in each of two epochs"
    assert [each["steps"] for each in row["metrics.shares"]] == [4, 4]


@pytest.mark.choice
def test_a_job_in_two_parts_is_the_job_in_one(folder: Path, tmp_path: Path) -> None:
    how = {"ranks": 2}
    whole = _run(steps=6, **how).records.iloc[0]["metrics.shares"]
    kept = {"checkpoint": tmp_path / "kept", **how}
    first = _run(steps=3, **kept).records.iloc[0]["metrics.shares"]
    rest = _run(steps=3, **kept).records.iloc[0]["metrics.shares"]
    for a, b, all_ in zip(first, rest, whole, strict=True):
        assert a["order"] + b["order"] == all_["order"]
    with pytest.raises(JobFailed) as told:
        _run(steps=3, **{**kept, "ranks": 1})
    assert "goes on with as many" in told.value.run.output


def _refused(words: str, **how: object) -> str:
    """What a job says that ends in a sentence, and not in a traceback."""
    with pytest.raises(JobFailed) as told:
        _run(**{"ranks": 1, "step_ms": 0, **how})
    said = told.value.run.output
    assert re.search(words, said), said
    assert "Traceback" not in said
    return said


def test_a_file_that_was_cut_off_is_named(folder: Path) -> None:
    broken = folder / "00004-4.jpg"
    broken.write_bytes(broken.read_bytes()[:700])
    said = _refused(r"00004-4\.jpg is broken, or no JPEG picture")
    assert "12-4" not in said


@pytest.mark.choice
def test_what_cannot_be_trained_on_is_one_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in sorted(folder.iterdir())[1:]:
        path.unlink()
    _refused("2 ranks are more than the 1 images", ranks=2)
    (folder / "zebra.jpg").write_bytes(b"x")
    _refused("zebra.jpg has no label")
    _refused("it takes 0 or more, not -1", step_ms=-1)
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("empty", "nosuch"):
        monkeypatch.setenv("SCALEOUT_CROPS", str(tmp_path / name))
        _refused(f"There is no image in .*{name}")


@pytest.mark.choice
def test_two_ranks_read_each_format_together() -> None:
    rows = _run(ranks=2, script="formats.py").records
    assert len(rows) == 16 and (rows.ranks == 2).all()
    assert (rows["metrics.images"] == 600).all(), "some image on no rank, or on two"
    _refused("There are 8 shards: take 8 ranks at most", ranks=9, script="shared.py", step_ms=None)


def test_the_servers_are_asked_for_each_image_or_for_each_shard() -> None:
    yielding = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
    rows = _run(
        ranks=4, script="shared.py", delay_ms=1, mb_per_s=5, data_servers=4, env=yielding
    ).records
    files, shards = (crops(form, 600) for form in ("files", "tfrecord"))
    sizes = {
        form: sum(path.stat().st_size for path in folder.iterdir())
        for form, folder in (("files", files), ("shards", shards))
    }
    asked = {
        (row.variant, row.ranks): (row["metrics.opens"], row["metrics.bytes"])
        for _, row in rows.iterrows()
    }
    assert asked == {
        ("one file per image", 1): (600, sizes["files"]),
        ("one file per image", 2): (600, sizes["files"]),
        ("one file per image", 4): (600, sizes["files"]),
        ("from shards", 4): (8, sizes["shards"]),
        ("staged first", 4): (16, 2 * sizes["shards"]),  # one rank of each of two nodes
        ("staged", 4): (0, 0),
    }
    for _, row in rows.iterrows():
        opens_s, bytes_s = row["metrics.opens"] * 1e-3, row["metrics.bytes"] / 5e6
        wanted_s = opens_s + bytes_s if row.ranks == 1 else max(opens_s, bytes_s / 4)
        assert row["metrics.model_s"] == pytest.approx(wanted_s)
        assert min(row.step_s) > 0.99 * wanted_s, "a server was faster than it says it is"


@with_torch
@pytest.mark.choice
def test_torch_brings_each_image_of_a_rank_too() -> None:
    how = {"script": "more/torch_loader.py", "python": str(TORCH / "bin" / "python")}
    (row,) = _run(ranks=2, **how).records.to_dict("records")
    # Of 600 images each rank has 300, in batches of 64.
    assert [rank["images"] for rank in row["metrics.of_ranks"]] == [300] * 2
    assert [rank["batches"] for rank in row["metrics.of_ranks"]] == [5] * 2
    assert row["ranks"] == 2 and row["metrics.images"] == 600
