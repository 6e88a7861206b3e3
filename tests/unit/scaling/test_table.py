"""A table of one's own: what may stand in it, one sentence for what may not, and what is printed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scaleout import scaling
from scaleout.errors import ScaleoutError


def _file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_table_of_rates_is_read(tmp_path: Path) -> None:
    """With a spreadsheet's mark, notes, an empty line, and a column that is not asked for."""
    text = b"\xef\xbb\xbf# mine\r\nNodes, rate, note\r\n1,10,a\r\n\r\n2,19\r\n"
    table = scaling.read_measured(_file(tmp_path, text))
    assert (table.nodes, table.rates, table.count) == ([1, 2], [10, 19], "nodes")


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
    ("text", "words"),
    [
        ("", "needs a first line that names the columns"),
        ("nodes,rate,rate\n1,2,3\n", "has two columns named rate: which one is it"),
        ("nodes;rate\n1;2,5\n", "has semicolons between its columns: save it with commas"),
        ("nodes,rate\n1,2\n".encode("utf-16"), "is no text in UTF-8: save it as CSV once more"),
        ("nodes,rate\n1,10\n2,fast\n", "line 3: '2,fast' holds no two numbers"),
        ("nodes,rate\n1,1,200\n", "line 2: '1,1,200' holds no two numbers"),
        ("nodes,rate\n1,10\n2,0\n", "line 3: nodes are 1 to .* it holds 2 and 0"),
        ("nodes,rate\n1,10\n2,nan\n", "line 3: nodes are 1 to"),
    ],
)
def test_a_table_that_is_none_is_told_in_one_sentence(
    text: str | bytes, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ScaleoutError, match=words) as refused:
        scaling.read_measured(_file(tmp_path, text))
    assert len(str(refused.value).splitlines()) == 1


def test_what_cannot_be_read_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ScaleoutError, match="is no file: give the path"):
            scaling.read_measured(wrong)
    with pytest.raises(ScaleoutError, match=r"cannot be read: No such file"):
        scaling.read_measured(tmp_path / "nosuch.csv")


MINE = "# my cluster\nnodes, rate, note\n1,182,a\n4,705,\n\n8,1402,b\n16,2680,c\n"
STRONG = "nodes,seconds\n" + "".join(f"{n},{100 * (0.02 + 0.98 / n)}\n" for n in (1, 2, 4, 8, 16))


def _answer(path: Path, *predict: int, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """The answer as JSON, and the printed lines."""
    said: list[str] = []
    scaling.main(path, predict, 1e6, True, said.append, **more)
    printed: list[str] = []
    scaling.main(path, predict, 1e6, False, printed.append, **more)
    return json.loads(said[0]), printed


def test_a_table_is_read_fitted_and_predicted(tmp_path: Path, scaleout: Any) -> None:
    path = _file(tmp_path, MINE)
    done = scaleout("scaling", path, "--predict", "32,9999", "--work", "1e6")
    assert done.returncode == 1 and "node hours for 1e+06" in done.stdout
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert float(rows["32"][1].replace(",", "")) == pytest.approx(5120, rel=0.1)
    assert "low if: " in done.stdout
    # A refusal stands below the table, whole.
    assert done.stdout.splitlines()[-1].startswith("9999 nodes are more than 16 times the 16")
    first, second = json.loads(scaleout("scaling", path, "--json", "--predict", "32,9999").stdout)[
        "predictions"
    ]
    assert first["low"] < first["rate"] < first["high"] and first["low_law"] in scaling.LAWS
    assert first["node_hours"] == pytest.approx(32 * 1e6 / first["rate"] / 3600)
    assert "too far to trust" in second["refused"]
    assert scaleout("scaling", path).returncode == 0, "twice the most, unasked"


def test_what_makes_no_sense_names_its_own_option(tmp_path: Path, scaleout: Any) -> None:
    path = _file(tmp_path, MINE)
    for words, said in (
        ("--predict=4,,8", "--predict takes numbers of nodes"),
        ("--work=0", "--work takes a number above 0"),
        ("--target=0", "--target takes a rate above 0"),
    ):
        done = scaleout("scaling", path, words)
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("--") == 1


def test_a_table_of_seconds_is_predicted_in_seconds(tmp_path: Path) -> None:
    answer, printed = _answer(_file(tmp_path, STRONG), 32)
    assert answer["predictions"][0]["seconds"] == pytest.approx(100 * (0.02 + 0.98 / 32), rel=0.1)
    assert any("seconds" in line for line in printed)


def test_a_target_gives_the_fewest_nodes_likely_and_safely(tmp_path: Path) -> None:
    path = _file(tmp_path, "nodes,rate\n" + "".join(f"{n},{100 * n}\n" for n in (1, 2, 4, 8)))
    answer, printed = _answer(path, 16, target=900.0)
    assert 8 <= answer["target"]["likely"] < answer["target"]["safe"]
    assert printed[-1].startswith("900/s: likely from ") and "safely (the" in printed[-1]
    answer, printed = _answer(path, 16, target=1e9)
    assert answer["target"] == {"rate": 1e9, "likely": None, "safe": None}
    assert printed[-1] == "1,000,000,000/s: not reached by any prediction, up to 128 nodes"
    assert "safely not up to 128 nodes" in _answer(path, 16, target=5000.0)[1][-1]
