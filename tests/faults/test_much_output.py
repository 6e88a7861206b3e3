"""What a job says at once, and much of it, comes out as what it says bit by bit."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaleout.jobs import output, transcript
from scaleout.jobs.job import Run
from scaleout.jobs.output import Pieces
from scaleout.jobs.transcript import Transcript

MARK = {rank: f"\x1eID:{rank}\x1f".encode() for rank in range(3)}
WORDS = st.sampled_from([b"", b"loss 0.1", b"\xff\xfe", b"\r", b"tail\r", "é".encode(), b"a b"])
LINES = st.lists(
    st.one_of(
        st.builds(lambda rank, text: MARK[rank] + text, st.sampled_from(range(3)), WORDS),
        st.builds(lambda text: MARK[0] + text, WORDS),
        st.builds(lambda one, two: MARK[0] + one + MARK[1] + two, WORDS, WORDS),
        WORDS,
    ),
    max_size=30,
)


def _fed(data: bytes, cuts: list[int]) -> list[tuple[int | None, str]]:
    pieces, found = Pieces("ID"), []
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in zip(places, places[1:], strict=False):
        if begin < end:
            found += list(pieces.feed(data[begin:end]))
    found += list(pieces.feed(b""))
    return [(rank, line) for rank, text in found for line in text.split("\n")]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(lines=LINES, alike=st.integers(0, 40), cuts=st.lists(st.integers(0, 900), max_size=4))
def test_many_lines_at_once_are_the_same_lines(
    lines: list[bytes], alike: int, cuts: list[int]
) -> None:
    many = [MARK[2 - number // 30] + f"step {number}".encode() for number in range(alike)]
    data = b"\n".join([*lines, *many, *lines, b""])
    quick = _fed(data, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "FEWEST", 10**9)
        assert quick == _fed(data, cuts)


@pytest.mark.parametrize("between", [b"", MARK[1]], ids=["lines", "pieces"])
def test_many_lines_of_one_rank_are_never_looked_at_one_by_one(between: bytes) -> None:
    """As one text: 200 MB of lines cost a tenth of what they cost one by one."""
    lines = [MARK[1] + b"x" * 40 + between + b"y" * 40] * 500
    text = "\n".join(["x" * 40 + "y" * 40] * 500)
    assert list(Pieces("ID").feed(b"\n".join([*lines, b""]))) == [(1, text)]
    data = b"\n".join([*lines, *[MARK[0] + b"y"] * 500, b"mpirun's own", *lines[:5], b""])
    found = list(Pieces("ID").feed(data))
    assert found[:3] == [(1, text), (0, "\n".join("y" * 500)), (None, "mpirun's own")]
    assert found[3:] == [(1, "x" * 40 + "y" * 40)] * 5  # too few for that to pay


def test_lines_that_hide_a_mark_in_a_mark_are_looked_at_once() -> None:
    hidden = MARK[1][:3] + MARK[1] + MARK[1][3:] + b"x"
    lines, looked = [MARK[1] + hidden] * 2000, []
    pieces = Pieces("ID")
    real = pieces._alike
    pieces._alike = lambda lines, at: looked.append(at) or real(lines, at)  # type: ignore[method-assign]
    found = list(pieces.feed(b"\n".join([*lines, MARK[0] + b"y", b""])))
    assert len(found) == 2001 and {rank for rank, _ in found} == {0, 1} and len(looked) < 100


class _All:
    """Takes lines one by one, and all at once."""

    def __init__(self) -> None:
        self.said = io.StringIO()

    def __call__(self, text: str) -> None:
        raise AssertionError("one by one")

    def all(self, text: str) -> None:
        self.said.write(text)


def test_who_takes_all_at_once_gets_what_the_file_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "HEAD_BYTES", 50_000)
    monkeypatch.setattr(transcript, "TAIL_BYTES", 50_000)
    run, listener = Run("ID", "train", "mpirun", tmp_path, 2, 1), _All()
    with Transcript(run, listener) as taken:
        for number in range(100):
            lines = [f"{number} {line}" for line in range(50)]
            whole = [(number % 2, "\n".join(lines))]
            taken.add(whole if number % 3 else [(number % 2, line) for line in lines])
    kept = (tmp_path / "output.txt").read_text()
    assert listener.said.getvalue() == kept and len(kept.splitlines()) == 5000
    lines = [text for _, text in run.lines]
    assert lines[0] == "0 0" and lines[-1] == "99 49"
    (gap,) = (text for text in lines if "lines are left out here" in text)
    assert int(gap.split()[1].replace(",", "")) + len(lines) - 1 == 5000
    assert sum(len(text) + transcript.LINE_BYTES for text in lines) < 110_000
