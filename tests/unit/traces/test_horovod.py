"""Horovod's timeline is read whole, and as far as it goes when the job was ended in the middle of a
line."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import lesson

from scaleout.base.errors import ScaleoutError
from scaleout.traces import horovod as timeline

HEAD = (
    '[\n{"name": "process_name", "ph": "M", "pid": 0, '
    '"args": {"start_time_since_epoch_in_micros":1700000000000000}},\n'
)


def made(steps: int, ranks: int = 2, tensors: int = 2) -> str:
    """A timeline as Horovod writes it: rank r is ready 10 + 2 r ms after a step begins, then 3 ms
    of allreduce."""
    events = []
    for pid in range(1, tensors + 1):
        events.append(
            {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": f"gradient_{pid}"}}
        )
    for step in range(steps):
        begin = 20_000 * step
        last = 10_000 + 2_000 * (ranks - 1)
        for pid in range(1, tensors + 1):
            at = begin + 10_000 - 1_000 * (tensors - pid)  # the last tensor is ready last
            events.append({"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": at, "pid": pid})
            for rank in range(ranks):
                ready = {
                    "ph": "X",
                    "name": str(rank),
                    "ts": at + 2_000 * rank,
                    "pid": pid,
                    "dur": 0,
                }
                events.append(ready)
            events.append({"ph": "E", "ts": begin + last, "pid": pid})
        for pid in range(1, tensors + 1):
            events.append({"ph": "B", "name": "ALLREDUCE", "ts": begin + last, "pid": pid})
            events.append({"ph": "B", "name": "MPI_ALLREDUCE", "ts": begin + last, "pid": pid})
            events.append({"ph": "E", "ts": begin + last + 2_000, "pid": pid})
            args = {"dtype": "float32", "shape": "[2]"}
            events.append({"ph": "E", "ts": begin + last + 3_000, "pid": pid, "args": args})
    return HEAD + ",".join(map(json.dumps, events)) + "]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "timeline.json"


def test_each_step_is_split_into_compute_waiting_and_communication(file: Path) -> None:
    file.write_text(made(steps=5))
    found = timeline.read(file)
    assert (
        set(found.spans.phase) == {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "MPI_ALLREDUCE"}
        and len(found.spans) == 30
    )
    steps = found.steps()
    assert found.whole and not found.unread
    assert steps.step.tolist() == [1, 1, 2, 2, 3, 3, 4, 4] and steps["rank"].tolist() == [0, 1] * 4
    for rank, compute, waiting in ((0, 0.015, 0.002), (1, 0.017, 0.0)):
        mine = steps[steps["rank"] == rank]
        np.testing.assert_allclose(mine.compute_s, compute, atol=1e-9)
        np.testing.assert_allclose(mine.waiting_s, waiting, atol=1e-9)
        np.testing.assert_allclose(mine.communication_s, 0.003, atol=1e-9)


def test_a_job_of_one_step_has_no_picture(file: Path) -> None:
    file.write_text(made(steps=1))
    with pytest.raises(
        ScaleoutError, match="no whole step after the first: let the job take more steps"
    ):
        lesson("05_horovod").step_timeline(timeline.read(file), 0.01)


def test_what_is_sent_while_ranks_compute_stands_in_the_title(file: Path) -> None:
    draw = lesson("05_horovod").step_timeline
    ready = (
        "In these steps the gradients are ready after 16.0 ms (a rank alone: 10.0 for all of it)."
    )
    after = "after that a rank waits 1.0 ms for the slowest, and communicates for 3.0."

    def title() -> str:
        return " ".join(draw(timeline.read(file), 0.01).get_suptitle().split())

    file.write_text(made(steps=5))
    none = "While the ranks compute, gradients are being sent for 0.0 ms a step;"
    assert title() == f"{ready} {none} {after}"
    early = [  # two that overlap, 5 ms in all
        {"ph": kind, "name": "MPI_ALLREDUCE", "ts": 20_000 * step + at, "pid": pid}
        for step in range(5)
        for kind, at, pid in (("B", 1_000, 8), ("B", 3_000, 9), ("E", 4_000, 8), ("E", 6_000, 9))
    ]
    file.write_text(f"{made(steps=5)[:-1]},{','.join(map(json.dumps, early))}]")
    assert "sent for 5.0 ms a step" in title()


def test_a_timeline_that_was_cut_anywhere_is_read_up_to_the_cut(file: Path) -> None:
    text = made(steps=4)
    whole = len(json.loads(text))
    seen = []
    for end in range(len(HEAD) + 400, len(text) - 1, 37):
        file.write_text(text[:end])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = timeline.read(file)
            except ScaleoutError:
                continue
        assert len(found.spans) <= 24 and not found.whole
        assert set(found.steps().step) <= {1, 2, 3}
        np.testing.assert_allclose(found.steps().communication_s.astype(float), 0.003, atol=1e-9)
        seen.append(len(found.spans))
    assert whole > 0 and seen == sorted(seen) and seen[-1] == 23


TEN = made(steps=10)
HALF = TEN.index("{", len(TEN) // 2)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (TEN[: HALF + 20] + TEN[HALF + 200 :], 3),  # as two writers leave it
        (TEN[:HALF] + "\0" * 4096 + TEN[HALF + 400 :], 3),  # as a full disk leaves it
        (TEN[:HALF] + '"ph": "E", "ts": 1},' + TEN[HALF:], 3),
        (TEN + "\n" + TEN, 9),
        (TEN + made(steps=3, ranks=3, tensors=4), 9),
        (TEN[:-1] + ",\n" + made(steps=3, tensors=5).removeprefix(HEAD), 9),
        (
            TEN
            + "\n"
            + json.dumps({"traceEvents": [{"ph": "X", "name": "MatMul", "ts": 5, "dur": 1}]}),
            9,
        ),
        (TEN[:-1] + ",\n" + made(steps=3).replace("[\n", "", 1), 9),  # joined by a script
        (TEN[:HALF] + TEN, 3),
        (TEN + "scaleout: interrupted", 9),
    ],
    ids=[
        "damaged",
        "zeros",
        "half an event",
        "twice",
        "another behind",
        "an older one joined",
        "no timeline behind",
        "joined",
        "cut, and again",
        "a word behind",
    ],
)
def test_what_is_not_this_jobs_whole_timeline_is_counted_and_told(
    file: Path, text: str, steps: int
) -> None:
    file.write_text(text)
    with pytest.warns(
        UserWarning, match=r"was read up to its event \d+: .* Not read: [1-9]\d* event"
    ):
        found = timeline.read(file)
    assert not found.whole and found.unread
    table = found.steps()
    assert table.step.nunique() == steps
    np.testing.assert_allclose(table.communication_s.astype(float), 0.003, atol=1e-9)


def test_a_timeline_that_nobody_has_closed_is_not_whole(file: Path) -> None:
    file.write_text(TEN[:-1])
    assert not timeline.read(file).whole


def test_other_tensors_are_no_steps(file: Path) -> None:
    """What is averaged once an epoch is no gradient."""
    other = [
        {"name": "process_name", "ph": "M", "pid": 9, "args": {"name": "accuracy"}},
        {"ph": "B", "name": "ALLREDUCE", "ts": 500_000, "pid": 9},
        {"ph": "E", "ts": 900_000, "pid": 9},
    ]
    file.write_text(made(steps=5)[:-1] + "," + ",".join(map(json.dumps, other)) + "]")
    assert timeline.read(file).steps().communication_s.max() < 0.004


@pytest.mark.parametrize("text", [None, "", "[", "no timeline", HEAD, '{"ph": "B"}', "[1, 2]"])
def test_what_holds_no_timeline_is_refused_in_one_sentence(file: Path, text: str | None) -> None:
    if text is not None:
        file.write_text(text)
    with pytest.raises(ScaleoutError) as caught:
        timeline.read(file)
    assert "\n" not in str(caught.value) and "timeline.json" in str(caught.value)
