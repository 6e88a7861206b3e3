"""A table of one's own: what may stand in it, and one sentence with its line for what may not."""

import json
import math
import os
from pathlib import Path

import pytest

from scaleout import scaling
from scaleout.errors import ScaleoutError


def _file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_spreadsheet_writes_a_mark_first_and_it_is_left_out(tmp_path: Path) -> None:
    path = _file(tmp_path, b"\xef\xbb\xbfnodes,rate\r\n1,10\r\n2,19\r\n")
    assert scaling.read_table(path) == ([1, 2], [10, 19])


def test_seconds_of_the_same_work_are_strong_scaling_and_of_each_its_own_weak(
    tmp_path: Path,
) -> None:
    strong = scaling.read_measured(_file(tmp_path, "ranks,seconds\n1,8\n2,4\n4,2\n"))
    assert strong.rates == pytest.approx([1 / 8, 1 / 4, 1 / 2]) and strong.count == "ranks"
    assert strong.seconds(4, 1 / 2) == 2
    weak = scaling.read_measured(_file(tmp_path, "GPUs,weak_seconds\n1,8\n2,8\n4,10\n"))
    assert weak.rates == pytest.approx([1 / 8, 2 / 8, 4 / 10])
    assert weak.seconds(4, 4 / 10) == 10


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2,1e-320", "line 3: nodes are 1 to"),
        ("2,0", "line 3: nodes are 1 to"),
        ("1e300,19", "line 3: nodes are 1 to"),
        ("2," + "9" * 400, "line 3: nodes are 1 to"),
        ("²,19", "line 3: .* holds no two numbers"),
        ("2,fast", "line 3: '2,fast' holds no two numbers"),
        ("2", "line 3: '2' holds no two numbers"),
        ("2," + "9" * 90_000, "line 3: nodes are 1 to"),
        ("2," + "x" * 90_000, "line 3: '2,xxx.*' holds no two numbers"),
        ("2," + "9" * 200_000, "line 3 is no line of a table"),
        ("2,\0", "line 3 is no line of a table"),
        ("nan,19", "line 3: nodes are 1 to"),
    ],
)
def test_a_wrong_line_is_named_in_one_short_sentence(row: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScaleoutError, match=words) as refused:
        scaling.read_table(_file(tmp_path, f"nodes,rate\n1,10\n{row}\n4,36\n"))
    assert len(str(refused.value).splitlines()) == 1 and len(str(refused.value)) < 300


def test_a_folder_or_a_pipe_is_no_table_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ScaleoutError, match="is no file: give the path"):
            scaling.read_table(wrong)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaleoutError, match="cannot be read"):
        scaling.read_table(_file(tmp_path, b"nodes,rate\n\xff\xfe,1\n"))


def _rows(path: Path, *predict: int, **more: object) -> tuple[dict, list[str]]:
    said: list[str] = []
    scaling.main(path, predict, 1e6, True, said.append, **more)
    printed: list[str] = []
    scaling.main(path, predict, 1e6, False, printed.append, **more)
    return json.loads(said[0]), printed


STRONG = "nodes,seconds\n" + "".join(f"{n},{100 * (0.02 + 0.98 / n)}\n" for n in (1, 2, 4, 8, 16))


def test_a_table_of_seconds_is_foretold_in_seconds(tmp_path: Path) -> None:
    found, printed = _rows(_file(tmp_path, STRONG), 32)
    row = found["predictions"][0]
    assert row["seconds"] == pytest.approx(100 * (0.02 + 0.98 / 32), rel=0.1)
    assert any("seconds" in line for line in printed)


def test_a_target_gives_the_fewest_nodes_likely_and_safely(tmp_path: Path) -> None:
    path = _file(tmp_path, "nodes,rate\n" + "".join(f"{n},{100 * n}\n" for n in (1, 2, 4, 8)))
    found, printed = _rows(path, 16, target=1000.0)
    assert 9 <= found["target"]["likely"] <= 12
    assert found["target"]["safe"] > found["target"]["likely"]
    assert any(line.startswith("1,000/s: likely from") for line in printed)
    assert _rows(path, 16, target=1e9)[0]["target"] == {"rate": 1e9, "likely": None, "safe": None}
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ScaleoutError, match="--target takes a rate above 0"):
            scaling.main(path, [16], 1e6, False, print, wrong)


def test_it_says_what_to_measure_next(tmp_path: Path) -> None:
    found, printed = _rows(_file(tmp_path, STRONG), 64)
    first = found["next"][0]
    assert first["width"] < first["width_now"] and first["nodes"] <= 32
    assert printed[-1].startswith(f"Measure next: {first['nodes']} nodes")


def test_what_the_low_end_rests_on_is_named(tmp_path: Path) -> None:
    found, printed = _rows(_file(tmp_path, STRONG), 64)
    assert found["predictions"][0]["low_law"] in {law.name for law in scaling.LAWS}
    assert any("low if: " in line for line in printed)


@pytest.mark.parametrize("rates", [(1e99, 1e-99, 5, 6), (10, 4, 2, 1)])
def test_rates_that_no_law_comes_near_are_refused_and_nothing_is_promised(
    rates: tuple[float, ...], tmp_path: Path
) -> None:
    rows = "".join(f"{n},{rate}\n" for n, rate in zip((1, 2, 4, 8), rates, strict=True))
    path = _file(tmp_path, "nodes,rate\n" + rows)
    found, printed = _rows(path, 16)
    assert "No law comes nearer to these rates" in found["predictions"][0]["refused"]
    assert not any(line.startswith("Measure next") for line in printed)
