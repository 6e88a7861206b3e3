"""A table of one's own: what may stand in it, one sentence for what may not, and what is printed."""

from pathlib import Path
from typing import Any

import pytest

from scaleout import scaling


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


MINE = "# my cluster\nnodes, rate, note\n1,182,a\n4,705,\n\n8,1402,b\n16,2680,c\n"
STRONG = "nodes,seconds\n" + "".join(f"{n},{100 * (0.02 + 0.98 / n)}\n" for n in (1, 2, 4, 8, 16))


def test_a_table_is_read_fitted_and_predicted(tmp_path: Path, scaleout: Any) -> None:
    path = _file(tmp_path, MINE)
    done = scaleout("scaling", path, "--predict", "32,9999")
    assert done.returncode == 1
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    rate, low, _, high = (word.replace(",", "") for word in rows["32"][1:5])
    assert float(low) < float(rate) < float(high)
    assert float(rate) == pytest.approx(5120, rel=0.1)
    assert rows["32"][-1] in scaling.LAWS
    # A refusal stands below the table, whole.
    assert done.stdout.splitlines()[-1].startswith("9999 nodes are more than 16 times the 16")
    assert scaleout("scaling", path).returncode == 0, "twice the most, unasked"


def test_a_table_of_seconds_is_predicted_in_seconds(tmp_path: Path) -> None:
    printed: list[str] = []
    scaling.main(_file(tmp_path, STRONG), [32], printed.append)
    *_, head, row = printed
    assert head.endswith("seconds")
    seconds = float(row.partition("low if")[0].split()[-1])
    assert seconds == pytest.approx(100 * (0.02 + 0.98 / 32), rel=0.1)
