"""What a job that failed says: the first traceback, whole, and a sentence for each way of failing."""

import re
from pathlib import Path

import pytest

from scaleout.jobs import failures
from scaleout.jobs.job import Run
from scaleout.jobs.output import Line, Stderr

ID = "20300101T000000-abcdef"
HEAD = "Traceback (most recent call last):"
LAUNCHER = [
    '  File "<frozen runpy>", line 198, in _run_module_as_main',
    '  File "/e/site-packages/mpi4py/__main__.py", line 8, in <module>',
    "    main()",
    '  File "/e/site-packages/mpi4py/run.py", line 320, in main',
    "    run_command_line(args)",
]
MINE = ['  File "/home/me/mpi4py/train.py", line 4, in <module>', "    step()", "    ^^^^^^"]


ABORTED = "Fatal Python error: Aborted"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("head", ["Thread", "Current thread"])
def test_a_rank_stands_where_its_main_thread_does_also_where_none_is_called_current(
    head: str, workers: int
) -> None:
    """What its workers say comes after it, and is not its own."""
    of_mpi = ["Stack (most recent call first):", '  File "a.py", line 1 in <module>', ABORTED]
    loader = ["Thread 0x02 (most recent call first):", '  File "a.py", line 2 in load']
    main = [f"{head} 0x01 (most recent call first):", '  File "a.py", line 3 in <module>']
    theirs = [
        ABORTED,
        "Current thread 0x07 (most recent call first):",
        '  File "a.py", line 4 in work',
    ]
    told = [(1, text) for text in [*of_mpi, *loader, *main, *theirs * workers]]
    assert failures.last_places(told, lambda file: True) == {1: ("a.py", 3)}


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        (
            ['  File "<string>", line 1 in <module>', '  File "a.py", line 10 in work'],
            "stood in a.py, line 10",
        ),
        (
            [
                '  File "/e/lib/python3.11/threading.py", line 327 in wait',
                '  File "a.py", line 10 in work',
                '  File "b.py", line 20 in <module>',
            ],
            "stood in a.py, line 10",
        ),
        (['  File "<string>", line 1 in <module>'], None),
    ],
    ids=["a text", "a library", "a text alone"],
)
def test_a_rank_stands_in_the_innermost_line_of_a_file_of_its_own(
    tmp_path: Path, stack: list[str], place: str | None
) -> None:
    """What is run from a text has no file to look into."""
    said = [ABORTED, "Current thread 0x01 (most recent call first):", *stack]
    run = Run(ID, "a", "mpirun", tmp_path, 1, 1, None, 1.0, [(0, text) for text in said])
    assert failures.where_ranks_stood(run) == ([f"rank 0 {place}"] if place else [])


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


HELLO = "Hello from rank 1 of 4 on this-machine"


def test_what_a_rank_prints_into_its_traceback_is_not_its_exception() -> None:
    """Its standard output and its standard error reach the job's on ways of their own."""
    said = [(1, text) for text in [HEAD, *MINE[:2], HELLO, MINE[2], "ValueError: mine"]]
    assert failures.first_traceback(said) == (1, [HEAD, *MINE, "ValueError: mine"])


@pytest.mark.parametrize(
    "printed",
    [
        "loaded shard 1",
        "epoch: 3",
        "NameOfAModel:",
        "done",
        "Traceback (most recent call last):",
        "ValueError: is what this test is about",
    ],
)
@pytest.mark.parametrize("at", range(5))
def test_what_comes_by_standard_output_is_no_part_of_a_traceback(printed: str, at: int) -> None:
    whole = [HEAD, *MINE, "ValueError: mine"]
    said: list[Line] = [(1, Stderr(text)) for text in whole]
    said.insert(at, (1, printed))
    assert failures.first_traceback(said) == (1, whole)


@pytest.mark.parametrize(
    ("others", "at"),
    [
        (["WARNING:root:slow", "loading: 10%"], 1),
        (["step: 3"], 3),
        (["INFO:data:shard 8"], 4),
        (["Thread: 2", "  is late"], 1),
    ],
)
def test_what_another_thread_says_meanwhile_is_not_the_exception(
    others: list[str], at: int
) -> None:
    more = ['  File "b.py", line 9, in deep', "    raise ValueError"]
    whole = [HEAD, *MINE, *more, "ValueError: mine"]
    said: list[Line] = [(0, Stderr(t)) for t in [*whole[:at], *others, *whole[at:]]]
    rank, block = failures.first_traceback(said)
    assert rank == 0 and block[0] == HEAD and block[-1] == "ValueError: mine"


def test_a_coloured_traceback_is_read() -> None:
    said: list[Line] = [
        (0, Stderr(f"\x1b[35m{text}\x1b[0m")) for text in [HEAD, "ValueError: mine"]
    ]
    assert failures.first_traceback(said) == (0, [HEAD, "ValueError: mine"])


def test_a_rank_that_ends_with_a_sentence_has_it_shown_whatever_it_printed_last(
    tmp_path: Path,
) -> None:
    said: list[Line] = [(0, "step 1"), (0, Stderr("no labels in shard 7")), (0, "closing files")]
    run = Run(ID, "a", "mpirun", tmp_path, 1, 1, 1, 1.0, said)
    assert failures.explain(run).splitlines()[1:3] == ["closing files", "no labels in shard 7"]


def test_a_traceback_that_was_cut_gives_way_to_a_whole_one() -> None:
    cut = [(1, text) for text in [HEAD, MINE[0], HELLO]]
    whole = [(3, text) for text in [HEAD, *MINE, "ValueError: mine"]]
    assert failures.first_traceback([*cut, *whole]) == (3, [HEAD, *MINE, "ValueError: mine"])
    assert failures.first_traceback(cut) == (1, [HEAD, MINE[0]])


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


GRAPH = [
    "InvalidArgumentError: Graph execution error:",
    "",
    "Detected at node Reshape defined at (most recent call last):",
    '  File "runme.py", line 3, in step',
    "    return reshape(x)",
    "",
    "Input to reshape is a tensor with 6 values, but the requested shape has 5",
    "\t [[{{node Reshape}}]]",
]
STACK = [
    "mpi4py.MPI.Exception: Message truncated, error stack:",
    "internal_Recv(335).....: MPI_Recv(count=2) failed",
    "MPIDIG_recv(74): Message from rank 0 truncated",
]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (GRAPH, [GRAPH[0], *GRAPH[6:]]),
        (STACK, STACK),
        (["ValueError: mine", "printed later"], ["ValueError: mine"]),
        ([STACK[0], *(f"line {n}" for n in range(99))], [STACK[0], *(f"line {n}" for n in range(8))]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["Abort(1) on node 1", "Stack (most recent call first):"])
def test_a_message_of_several_lines_is_shown_whole(
    end: str, said: list[str], shown: list[str]
) -> None:
    lines = [HEAD, *MINE, *said, end, "and so on"]
    mixed = [(1, text) for text in lines]
    mixed.insert(5, (0, "from another rank"))
    assert failures.first_traceback(mixed) == (1, [HEAD, *MINE, *shown])


def test_a_crash_names_its_rank_and_the_scripts_own_line(tmp_path: Path) -> None:
    said = [
        "Fatal Python error: Segmentation fault",
        "Current thread 0x00007f00 (most recent call first):",
        '  File "/lib/python3.11/ctypes/__init__.py", line 519 in string_at',
        '  File "mine.py", line 4 in <module>',
        '  File "<frozen runpy>", line 88 in _run_code',
        '  File "/lib/site-packages/mpi4py/run.py", line 53 in run_command_line',
    ]
    banner = (
        None,
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
    )
    lines = [*((1, text) for text in said), banner]
    told = failures.explain(Run("id", "mine", "mpirun", tmp_path, 2, 1, 11, 1.0, lines))
    assert told.startswith("mine failed first on rank 1: a rank crashed in native code (signal 11)")
    assert told.splitlines()[1:3] == said[2:4] and "runpy" not in told and "mpi4py" not in told


def test_a_traceback_that_torch_has_marked_is_found() -> None:
    marked = [(1, f"[rank1]: {text}") for text in [HEAD, *MINE, "ValueError: mine"]]
    echo = [(0, text) for text in [HEAD, *MINE, "RuntimeError: connection closed by peer"]]
    assert failures.first_traceback([*marked, *echo]) == (1, [HEAD, *MINE, "ValueError: mine"])


def test_where_the_launcher_finds_no_room_it_is_told_what_to_do(tmp_path: Path) -> None:
    said = "[proxy:0@node1] HYDU_create_process (launch.c:24): pipe error (Too many open files)"
    run = Run(ID, "train", "mpirun", tmp_path, 4, 1, status=255, lines=[(None, said)])
    assert "What to do: this machine has no room for more now: take" in failures.explain(run)


@pytest.mark.parametrize("failed", [0, 1])
@pytest.mark.parametrize("before", ["", "[rank1]: ", "\x1b[31m"], ids=["", "PyTorch", "red"])
def test_of_a_rank_that_failed_nobody_says_that_it_needs_longer(
    tmp_path: Path, failed: int, before: str
) -> None:
    waits = [
        ABORTED,
        "Current thread 0x1 (most recent call first):",
        '  File "a.py", line 3 in <module>',
    ]
    said: list[Line] = [(failed, "step 1")]
    said += [(failed, Stderr(before + text)) for text in [HEAD, *MINE, "ValueError: mine"]]
    said += [(1 - failed, Stderr(text)) for text in waits]
    run = Run(ID, "a", "mpirun", tmp_path, 2, 1, None, 9.0, said)
    text = failures.out_of_time(run, 9)
    assert f"rank {failed} had failed, and the others waited for it.\n{HEAD}" in text
    assert "ValueError: mine" in text and "longer" not in text and "end of its script" not in text
    assert f"rank {1 - failed} stood in a.py, line 3" in text
    assert f"rank {failed} had failed, as its traceback says" in text


def test_a_traceback_that_a_rank_lived_through_is_no_reason(tmp_path: Path) -> None:
    said: list[Line] = [(0, Stderr(text)) for text in [HEAD, *MINE, "ValueError: caught"]]
    stack = [
        ABORTED,
        "Current thread 0x1 (most recent call first):",
        '  File "a.py", line 3 in <module>',
    ]
    said += [(0, Stderr(text)) for text in stack]
    text = failures.out_of_time(Run(ID, "a", "mpirun", tmp_path, 1, 1, None, 9.0, said), 9)
    assert "give it longer" in text and "had failed" not in text


@pytest.mark.parametrize(
    "line",
    [
        '  File "/e/torch/multiprocessing/spawn.py", line 88 in join',
        "torch.multiprocessing.spawn.ProcessRaisedException: ",
        '  File "/e/torch/distributed/launcher/api.py", line 138, in __call__',
    ],
)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_script_that_starts_its_own_workers_belongs_on_one_rank(
    tmp_path: Path, line: str, ranks: int
) -> None:
    run = Run(ID, "a", "mpirun", tmp_path, ranks, 1, 1, 9.0, [(0, Stderr(line))])
    for text in (failures.explain(run), failures.out_of_time(run, 9)):
        assert ("once more: type  -n 1" in text) == (ranks > 1)
