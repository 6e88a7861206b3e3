"""What a job is made of, without starting one: its lines, its environment, its binding, and what a
failure says."""

import os
import random
import re
from pathlib import Path

import pytest

from scaleout import lab, machine
from scaleout.errors import ScaleoutError
from scaleout.jobs import failures, output
from scaleout.jobs import run as launch
from scaleout.jobs.binding import place
from scaleout.jobs.job import Job, JobFailed, JobInterrupted, Run
from scaleout.jobs.site import Site

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


def test_the_pieces_of_all_ranks_become_whole_lines() -> None:
    assert _lines(STREAM) == WANTED


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


def _allow(
    monkeypatch: pytest.MonkeyPatch, cores: list[tuple[int, ...]], allowed: set[int]
) -> None:
    """A machine with these cores, on which this process may use these logical CPUs."""
    layout = tuple(machine.Core(0, 0, cpus, -1) for cpus in cores)
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


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"ranks": 0}, "at least 1 rank and 1 thread, in whole numbers; asked for 0"),
        ({"ranks": 1, "threads": 0}, "asked for 1 and 0"),
        ({"timeout": 0}, "above 0 and finite; asked for 0"),
        ({"timeout": float("inf")}, "asked for inf"),
        ({"env": {"A;touch x;B": "1"}}, "'A;touch x;B' is no name of a variable"),
        ({"env": {"A": "x\0y"}}, "The value of A holds a NUL"),
        ({"site": Site(env={"A B": "1"})}, "'A B' is no name of a variable"),
    ],
)
def test_what_no_job_can_have_is_refused_before_anything_is_written(
    results: Path, how: dict, words: str
) -> None:
    with pytest.raises(ScaleoutError, match=words):
        launch.run(["true"], name="x", **how)
    assert not results.exists()


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


HEAD = "Traceback (most recent call last):"
LAUNCHER = [
    '  File "<frozen runpy>", line 198, in _run_module_as_main',
    '  File "/e/site-packages/mpi4py/__main__.py", line 8, in <module>',
    "    main()",
    '  File "/e/site-packages/mpi4py/run.py", line 320, in main',
    "    run_command_line(args)",
]
MINE = ['  File "/home/me/mpi4py/train.py", line 4, in <module>', "    step()", "    ^^^^^^"]


def test_the_first_traceback_is_shown_without_the_launchers_frames() -> None:
    one = [
        (1, text) for text in [HEAD, *LAUNCHER, *MINE, "ValueError: my own", "Abort(1) on node 1"]
    ]
    echo = [(0, text) for text in [HEAD, *MINE, "HorovodInternalError: shut down"]]
    mixed = [(0, "step 1"), one[0], echo[0], *one[1:4], *echo[1:], *one[4:]]
    assert failures.first_traceback(mixed) == (1, [HEAD, *MINE, "ValueError: my own"])


@pytest.mark.parametrize("link", failures.LINKS)
def test_a_chain_of_exceptions_is_shown_whole(link: str) -> None:
    chain = [
        HEAD,
        *MINE,
        "KeyError: 3",
        "",
        link + " exception:",
        "",
        HEAD,
        *LAUNCHER,
        *MINE,
        "RuntimeError: stop",
    ]
    wanted = [text for text in chain if text not in LAUNCHER]
    assert failures.first_traceback([(0, text) for text in [*chain, "", "later"]]) == (0, wanted)


def test_a_traceback_that_was_cut_short_is_shown_as_far_as_it_goes() -> None:
    assert failures.first_traceback([(2, HEAD), (2, MINE[0])]) == (2, [HEAD, MINE[0]])
    assert failures.first_traceback([(0, "no traceback")]) == (None, [])


BANNER = [
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "=   PID 7 RUNNING AT host",
    "=   EXIT CODE: {0}",
]
BANNER += ["YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {1} (signal {0})"]


def _killed(number: int, words: str) -> list[tuple[int | None, str]]:
    return [(None, text.format(number, words)) for text in BANNER]


@pytest.mark.parametrize(
    ("status", "lines", "words"),
    [
        (
            6,
            _killed(6, "Aborted"),
            "a rank gave up in native code (signal 6), as TensorFlow does when refused memory",
        ),
        (
            6,
            [(1, "terminate called without an active exception"), *_killed(6, "Aborted")],
            "a rank aborted while one of its threads still ran (signal 6)",
        ),
        (9, [], "exit status 9"),  # os._exit(9) is no signal
        (
            3,
            [(1, "Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort")],
            "first on rank 1: exit status 3",
        ),
        (-9, [(0, "hello")], "mpirun itself was ended by signal 9"),
    ],
)
def test_a_failure_is_told_in_words(results: Path, status: int, lines: list, words: str) -> None:
    job = Run(ID, "train", "mpirun", results / "train" / ID, 2, 1, status, 1.5, lines)
    told = failures.explain(job).splitlines()
    assert (
        told[0].startswith("train failed") and words in told[0] and told[0].endswith("after 1.5 s.")
    )
    assert re.fullmatch(r"All it said: .*output\.txt", told[-1])


def test_the_last_words_of_a_rank_that_aborts_are_told(results: Path) -> None:
    last = [
        (1, text)
        for text in (
            "Rank 1 ran out of memory.",
            "lib/libmpi.so.12(+0x42) [0x7f8f59]",
            "Abort(1) on node 1",
        )
    ]
    lines = [(0, "step 1"), *last[:2], (0, "step 2"), last[2]]
    told = failures.explain(Run(ID, "train", "mpirun", results, 2, 1, 1, 1.5, lines)).splitlines()
    assert told[:2] == [
        "train failed first on rank 1: exit status 1, after 1.5 s.",
        "Rank 1 ran out of memory.",
    ]


def test_in_a_notebook_an_error_is_its_sentence(results: Path) -> None:
    job = Run(ID, "train", "mpirun", results, 2, 1, 3)
    for error in (ScaleoutError("what"), JobFailed("what", job), JobInterrupted("what")):
        assert error._render_traceback_() == ["what"]
    assert issubclass(
        JobInterrupted, KeyboardInterrupt
    )  # a bare `except Exception` must not swallow it
