"""Digits, the photograph, the slices of the ranks, and fetching from a server on this machine."""

import gzip
import hashlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from scaleout import data
from scaleout.base.errors import ScaleoutError
from scaleout.kit import fetching


def _idx(folder: Path, part: str, n: int) -> dict[str, str]:
    """Writes one split in MNIST's format and returns the SHA-256 of its files; the first two pixels
    number the row."""
    images = np.zeros((n, 28, 28), np.uint8)
    images[:, 0, 0], images[:, 0, 1] = np.arange(n) // 256, np.arange(n) % 256
    images[:, 27, 27] = 255
    texts = {
        f"{part}-images-idx3-ubyte.gz": np.array([0x803, n, 28, 28], ">u4").tobytes()
        + images.tobytes(),
        f"{part}-labels-idx1-ubyte.gz": np.array([0x801, n], ">u4").tobytes()
        + (np.arange(n) % 10).astype("u1").tobytes(),
    }
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(gzip.compress(text, compresslevel=1))
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in texts}


def _rows(x: np.ndarray) -> list[int]:
    return (x[:, 0, 0, 0] * 255 * 256 + x[:, 0, 1, 0] * 255).round().astype(int).tolist()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SCALEOUT_DATA", str(tmp_path / "mnist"))
    return tmp_path / "mnist"


@pytest.fixture
def whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small MNIST with both splits."""
    monkeypatch.setattr(fetching, "MNIST", _idx(folder, "train", 300) | _idx(folder, "t10k", 50))
    return folder


def _hold(digits: "data.Digits") -> None:
    x_train, y_train, x_test, y_test = digits
    for x, y in ((x_train, y_train), (x_test, y_test)):
        assert x.shape == (len(y), 28, 28, 1) and y.shape == (len(x),)
        assert x.dtype == np.float32 and y.dtype == np.int64
        assert x.min() == 0 and 0.9 < x.max() <= 1
        assert set(y.tolist()) == set(range(10))


def test_both_splits_of_mnist_are_used_as_they_are(whole: Path) -> None:
    x_train, y_train, x_test, y_test = data.digits()
    _hold((x_train, y_train, x_test, y_test))
    assert _rows(x_train) == list(range(300)) and _rows(x_test) == list(range(50))
    assert y_train.tolist() == [i % 10 for i in range(300)]
    assert "60,000" in data.source()


def test_the_test_split_alone_is_shared_out_without_overlap(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fetching, "MNIST", {**_idx(folder, "t10k", 10_000), "train-images-idx3-ubyte.gz": ""}
    )
    x_train, y_train, x_test, y_test = data.digits()
    _hold((x_train, y_train, x_test, y_test))
    assert len(x_train) == 8500 and len(x_test) == 1500
    assert sorted(_rows(x_train) + _rows(x_test)) == list(range(10_000))
    for x, y in ((x_train, y_train), (x_test, y_test)):
        assert y.tolist() == [row % 10 for row in _rows(x)]
    assert "8,500" in data.source()


def test_a_check_takes_few_images_to_train_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = data.digits()
    monkeypatch.setenv("SCALEOUT_IMAGES", "99")
    few = data.digits()
    assert [len(part) for part in few] == [99] * 4
    assert all((part == all_of_it[:99]).all() for part, all_of_it in zip(few, whole, strict=True))


def test_without_files_the_digits_of_scikit_learn_are_used(folder: Path) -> None:
    first, second = data.digits(), data.digits()
    _hold(first)
    assert len(first[0]) == 1500 and len(first[2]) == 297
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert "scikit-learn" in data.source() and "1,500" in data.source()
    frame = np.concatenate([first[0][:, :2], first[0][:, -2:]], axis=1)
    assert frame.max() == 0  # two empty pixels all round, as in MNIST


@pytest.mark.parametrize("part", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
def test_a_damaged_file_is_named(whole: Path, part: str) -> None:
    raw = bytearray((whole / part).read_bytes())
    raw[-1] ^= 1
    (whole / part).write_bytes(raw)
    with pytest.raises(ScaleoutError, match=re.escape(f"{whole / part} is damaged")):
        data.digits()


def test_the_photograph_is_a_picture_in_floats(tmp_path: Path) -> None:
    china = data.photo()
    assert china.shape == (427, 640, 3) and china.dtype == np.float32
    assert 0 <= china.min() < 0.1 and 0.9 < china.max() <= 1
    assert data.photo(scale=0.5).shape == (214, 320, 3)
    Image.new("L", (4, 2), 255).save(tmp_path / "grey.png")
    assert data.photo(path=tmp_path / "grey.png").tolist() == np.ones((2, 4, 3)).tolist()


def test_a_file_that_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    for path in (tmp_path / "text.png", tmp_path / "missing.png", tmp_path):
        with pytest.raises(ScaleoutError, match=re.escape(f"{path} cannot be read as a picture")):
            data.photo(path=path)


@pytest.mark.parametrize("ranks", range(1, 20))
def test_every_row_is_on_exactly_one_rank_and_sizes_differ_by_one_at_most(ranks: int) -> None:
    for n in [*range(50), 1000, 10_007]:
        shards = [range(n)[data.shard(n, rank, ranks)] for rank in range(ranks)]
        assert [row for shard in shards for row in shard] == list(range(n))
        assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize(("rank", "ranks"), [(3, 0), (2, 2), (-1, 2)])
def test_the_shard_of_a_rank_that_is_not_there_is_refused(rank: int, ranks: int) -> None:
    with pytest.raises(
        ScaleoutError, match=f"There is no rank {rank} of {ranks}: they are counted from 0"
    ):
        data.shard(10, rank, ranks)


class Server(http.server.ThreadingHTTPServer):
    """Serves files; and badly, when told to."""

    files: dict[str, bytes] = {}
    stop_after = 1 << 30  # bytes of a body before the connection is closed
    asked: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rsplit("/", 1)[1]
        self.server.asked.append(name)
        if name not in self.server.files:
            return self.send_error(404)
        body = self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.stop_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with MNIST's four names on this machine; `data` fetches from it into an empty
    folder."""
    served = Server(("127.0.0.1", 0), Handler)
    served.asked = []
    monkeypatch.setattr(
        fetching,
        "MNIST",
        _idx(tmp_path / "served", "train", 40) | _idx(tmp_path / "served", "t10k", 20),
    )
    served.files = {name: (tmp_path / "served" / name).read_bytes() for name in fetching.MNIST}
    monkeypatch.setattr(fetching, "MNIST_URL", f"http://127.0.0.1:{served.server_port}/mnist/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


def _is_whole(folder: Path, server: Server) -> bool:
    return all((folder / name).read_bytes() == text for name, text in server.files.items())


def test_fetch_brings_the_four_files_once(server: Server, folder: Path) -> None:
    assert data.fetch() == folder
    assert _is_whole(folder, server)
    assert len(data.digits()[0]) == 40
    data.fetch()
    assert server.asked == list(fetching.MNIST)


def test_a_file_that_arrives_damaged_is_dropped_and_fetched_anew(
    server: Server, folder: Path
) -> None:
    first = next(iter(fetching.MNIST))
    good = server.files[first]
    server.files[first] = bytes(len(good))
    with pytest.raises(ScaleoutError, match=f"{first} arrived damaged and was dropped"):
        data.fetch()
    assert list(folder.iterdir()) == []
    server.files[first] = good
    data.fetch()
    assert _is_whole(folder, server)


def _sentence(fetch: Callable[[], object]) -> str:
    with pytest.raises(ScaleoutError) as caught:
        fetch()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_network_one_sentence_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetching, "MNIST_URL", "http://127.0.0.1:1/mnist/")
    said = _sentence(lambda: data.fetch())
    assert "cannot be reached" in said and "export SCALEOUT_DATA=" in said
