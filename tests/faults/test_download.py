"""A server that answers anything: a download ends, in a sentence, and damaged data never takes its
file's name."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scaleout import fetching
from scaleout.errors import ScaleoutError

BODY = b"x" * 100


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """A server that answers these bytes to each question."""
    monkeypatch.setenv("SCALEOUT_DATA", str(tmp_path / "mnist"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetching, "MOST_BYTES", 1_000_000)
    door = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(fetching, "MNIST_URL", f"http://127.0.0.1:{door.getsockname()[1]}/")

    def serve(answer: bytes, times: int) -> None:
        while True:
            try:
                guest, _ = door.accept()
            except OSError:  # the test is over
                return
            with guest:
                guest.recv(65536)
                try:
                    for _ in range(times):
                        guest.sendall(answer)
                except OSError:  # it has heard enough
                    pass

    def start(answer: bytes, times: int = 1) -> None:
        threading.Thread(target=serve, args=(answer, times), daemon=True).start()

    yield start  # type: ignore[misc]
    door.shutdown(socket.SHUT_RDWR)
    door.close()


def _answer(*headers: str, status: str = "200 OK", body: bytes = BODY) -> bytes:
    return "\r\n".join([f"HTTP/1.0 {status}", *headers, "", ""]).encode() + body


ANSWERS = {
    "a length of 5,000 digits": (_answer("Content-Length: " + "9" * 5000), "arrived damaged"),
    "a length in words": (_answer("Content-Length: many"), "arrived damaged"),
    "a length below 0": (_answer("Content-Length: -5"), "arrived damaged"),
    "a length that is a digit's power": (_answer("Content-Length: ²"), "arrived damaged"),
    "a length that is too long": (_answer("Content-Length: 500"), "stopped coming 400 bytes"),
    "no length": (_answer(), "arrived damaged"),
    "part of something else": (_answer(status="206 Partial"), "arrived damaged"),
    "nothing to go on with": (_answer(status="416 No", body=b""), "arrived damaged"),
    "another page": (_answer(status="404 Gone"), "cannot be reached"),
    "a broken server": (_answer(status="500 Sorry"), "cannot be reached"),
    "a page that leads to itself": (_answer("Location: /x", status="302 There"), "cannot be reach"),
    "a page that leads to a file": (_answer("Location: file:///etc/passwd", status="302 There"), "c"),
    "no HTTP": (b"hello\r\n\r\n", "cannot be reached"),
    "nothing": (b"", "cannot be reached"),
    "a status that is no number": (b"HTTP/1.0 two OK\r\n\r\n", "cannot be reached"),
    "a line without end": (b"HTTP/1.0 " + b"2" * 200_000, "cannot be reached"),
    "a thousand headers": (_answer(*["A: b"] * 1000), "cannot be reached"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("part", [b"", b"y" * 10], ids=["new", "going on"])
def test_any_answer_ends_in_a_sentence(
    name: str, part: bytes, says: Callable[[bytes], None], tmp_path: Path
) -> None:
    answer, words = ANSWERS[name]
    says(answer)
    (tmp_path / "mnist").mkdir()
    if part or "416" in str(answer[:20]):
        (tmp_path / "mnist/train-images-idx3-ubyte.part").write_bytes(part)
    with pytest.raises(ScaleoutError, match=words):
        fetching.fetch("mnist")
    left = {path.name for path in (tmp_path / "mnist").iterdir()}
    assert left <= {"fetch.lock", "train-images-idx3-ubyte.part"}


def test_an_answer_without_end_does_not_fill_the_disk(says: Callable[..., None]) -> None:
    says(_answer(body=b"x" * 65536), 10**6)
    with pytest.raises(ScaleoutError, match="arrived damaged and was dropped"):
        fetching.fetch("mnist")
