"""What a job is made of, without starting one: its lines, its binding, its lab."""

import os
import random
from pathlib import Path

import pytest

from scaleout import lab, machine
from scaleout.jobs import output
from scaleout.jobs.binding import place
from scaleout.jobs.job import Job
from scaleout.site import Site

ID = "20300101T000000-abcdef"


def _mark(rank: int) -> bytes:
    return f"\x1e{ID}:{rank}\x1f".encode()


def _lines(*chunks: bytes) -> list[tuple[int | None, str]]:
    pieces = output.Pieces(ID)
    return [line for chunk in (*chunks, b"") for line in pieces.feed(chunk)]


STREAM = b"".join(
    [
        _mark(0) + b"first of zero\n",
        _mark(1) + b"begin of one, ",
        _mark(0) + b"\n",
        _mark(12) + b"\x1e\x1f \x1e0\x1f not a mark\n",
        _mark(1) + b"end of one\r\n",
        b"mpirun speaks\n",
        b"\n",
        _mark(0) + "ä".encode()[:1],
        _mark(0) + "ä".encode()[1:] + b"\xff\n",
        _mark(2) + b"no end \x1e203001",
        _mark(0) + b"nor here",
    ]
)
WANTED = [
    (0, "first of zero"),
    (0, ""),
    (12, "\x1e\x1f \x1e0\x1f not a mark"),
    (1, "begin of one, end of one"),
    (None, "mpirun speaks"),
    (None, ""),
    (0, "ä\ufffd"),
    (2, "no end \x1e203001"),
    (0, "nor here"),
]


def test_it_does_not_matter_where_the_stream_is_cut() -> None:
    for at in range(len(STREAM) + 1):
        assert _lines(STREAM[:at], STREAM[at:]) == WANTED, f"cut at {at}"
    assert _lines(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == WANTED
    rng = random.Random(0)
    for _ in range(200):
        cuts = sorted(rng.sample(range(len(STREAM)), 8))
        assert (
            _lines(*(STREAM[a:b] for a, b in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)))
            == WANTED
        )


def test_each_line_knows_whether_it_came_by_standard_error() -> None:
    (line,) = output.Pieces(ID, 3, output.Stderr).feed(b"so\n")
    assert line == (3, "so") and isinstance(line[1], output.Stderr)
    (line,) = output.Pieces(ID).feed(_mark(3) + b"so\n")
    assert line == (3, "so") and not isinstance(line[1], output.Stderr)


@pytest.mark.parametrize(
    ("said", "drawn", "rest"),
    [
        (b"\r10 %\r20 %\r30", "10 %\r20 %", "30"),
        (b"\r10 %", None, "\r10 %"),
        (b"10 %\r", None, "10 %"),  # a line of Windows, whose end has not come
        (b"no bar", None, "no bar"),
        (b"10 %\r20 %\r30 %" + b"." * output.HELD, "10 %\r20 %", "30 %" + "." * output.HELD),
    ],
)
def test_a_bar_is_shown_while_it_grows(
    said: bytes, drawn: str | None, rest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = _clock(monkeypatch)
    pieces = output.Pieces(ID)
    assert list(pieces.feed(_mark(2) + said)) == []
    assert list(pieces.drawn()) == [], "the line may end within a second"
    now.append(now[-1] + 1.5)
    assert list(pieces.drawn()) == ([] if drawn is None else [(2, drawn)])
    assert list(pieces.drawn()) == [], "once a second at most"
    assert list(pieces.feed(b"")) == [(2, rest)]


def _clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Hold the clock of what is read: its time is the last of a list."""
    now = [100.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[-1])
    return now


def test_a_bar_that_is_shown_loses_nothing_where_a_mark_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = _clock(monkeypatch)
    pieces = output.Pieces(ID)
    assert list(pieces.feed(_mark(0) + b"1 %\r2 %" + _mark(1)[:9])) == []
    assert list(pieces.drawn()) == []
    now.append(now[-1] + 1.5)
    assert list(pieces.drawn()) == [(0, "1 %")]
    assert list(pieces.feed(_mark(1)[9:] + b"one\n" + _mark(0) + b"\r3 %\n")) == [
        (1, "one"),
        (0, "2 %\r3 %"),
    ]


def _allow(
    monkeypatch: pytest.MonkeyPatch, cores: list[tuple[int, ...]], allowed: set[int]
) -> None:
    """A machine with these cores, on which this process may use these logical CPUs."""
    layout = tuple(machine.Core(0, 0, cpus) for cpus in cores)
    monkeypatch.setattr(machine, "read_cores", lambda *_, **__: (layout, "sysfs"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr(os, "cpu_count", lambda: sum(map(len, cores)))


FOUR = [(0, 4), (1, 5), (2, 6), (3, 7)]  # four cores of two hardware threads


@pytest.mark.parametrize(
    ("allowed", "ranks", "threads", "cores", "wanted"),
    [
        ({*range(8)}, 2, 2, 4, ["-bind-to", "core:2"]),
        ({*range(8)}, 4, 1, 4, ["-bind-to", "core:1"]),
        ({*range(8)}, 4, 2, 4, []),  # does not fit
        ({2, 6, 3, 7}, 2, 1, 2, ["-bind-to", "user:2+6,3+7"]),
        ({2, 6, 3, 7}, 1, 2, 2, ["-bind-to", "user:2+6+3+7"]),
        ({1, 3}, 2, 1, 2, ["-bind-to", "user:1,3"]),
        ({1, 3}, 3, 1, 2, []),
        # a site that knows of more cores, on other machines
        ({1, 3}, 4, 2, 8, ["-bind-to", "core:2"]),
    ],
)
def test_ranks_are_bound_to_cores_that_they_may_use(
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[int],
    ranks: int,
    threads: int,
    cores: int,
    wanted: list[str],
) -> None:
    _allow(monkeypatch, FOUR, allowed)
    job = Job(("true",), "x", ranks, threads, 1, cores, Site())
    with place(job) as placement:
        assert placement.options == wanted
        cpus = {"core:1": "0+4,1+5,2+6,3+7", "core:2": "0+4+1+5,2+6+3+7"}
        by_us = "".join(wanted[1:]).removeprefix("user:")
        assert placement.cpus == ("" if cores == 8 else cpus.get(by_us, by_us))


def test_a_notebook_among_the_solutions_runs_the_solution(
    workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, chosen in {
        ".": "labs",
        "labs": "labs",
        "notebooks": "labs",
        "solutions": "solutions",
    }.items():
        monkeypatch.chdir(workshop / folder)
        assert lab("tiny").script == workshop / chosen / "00_tiny/runme.py"
        assert lab("tiny", solution=True).script == workshop / "solutions/00_tiny/runme.py"
        assert lab("tiny", solution=False).script == workshop / "labs/00_tiny/runme.py"


def test_a_lab_can_be_named_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path / "solutions")  # not the workshop's
    assert lab("00_welcome").script.parts[-3:] == ("labs", "00_welcome", "runme.py")
