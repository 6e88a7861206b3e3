"""A table of one's own: what may stand in it, one sentence for what may not, and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest

from scaleout import cli, scaling
from scaleout.base.errors import ScaleoutError


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


def _printed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str]]:
    """The exit status of `scaleout scaling`, and what it prints."""
    status = cli.main(["scaling", *map(str, words)])
    return status, capsys.readouterr().out.splitlines()


def test_a_program_reads_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, STRONG)
    status, lines = _printed(capsys, path, "--predict", "32,9999", "--json")
    near, far = json.loads("\n".join(lines))["predictions"]
    assert status == 1
    assert near["seconds"] == pytest.approx(1 / near["rate"])
    assert near["low"] < near["rate"] < near["high"]
    assert far["nodes"] == 9999 and "more than 16 times" in far["refused"]


def test_a_table_of_seconds_is_predicted_in_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, head, row = _printed(capsys, _file(tmp_path, STRONG), "--predict", 32)[1]
    assert head.endswith("seconds")
    seconds = float(row.partition("low if")[0].split()[-1])
    assert seconds == pytest.approx(100 * (0.02 + 0.98 / 32), rel=0.1)


@pytest.mark.parametrize(
    ("text", "count", "values"),
    [
        ('"","nodes","rate"\n"1",1,182\n"2",4,705\n', "nodes", [182, 705]),
        ('"nodes","rate"\n"1","182.0"\n"8","1,402.0"\n', "nodes", [182, 1402]),
        ('"Ranks", "rate"\n1, "1\'402"\n2, 3e3\n', "ranks", [1402, 3000]),
        ("#nodes,rate\n1,5\n2,9\n", "nodes", [5, 9]),
        ("# mine, of May\n# gpus,rate\n1,5\n2,9\n", "gpus", [5, 9]),
        ("# nodes,rate\ncores,rate\n1,5\n2,9\n", "cores", [5, 9]),
        ("nodes,ranks,rate\n1,1,5\n1,2,9\n", "ranks", [5, 9]),
        ("cores,nodes,rate\n8,1,5\n8,2,9\n", "nodes", [5, 9]),
        ("nodes,ranks,gpus,rate\n2,2,1,5\n2,2,2,9\n", "gpus", [5, 9]),
    ],
)
def test_a_table_is_read_as_programs_write_it(
    tmp_path: Path, text: str, count: str, values: list[float]
) -> None:
    table = scaling.read_measured(_file(tmp_path, text))
    assert (table.count, table.values) == (count, values)
    assert min(table.nodes) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "NodeCount,RunsPerNode,Time\n1,512,88\n",
            "what it has there is 'NodeCount, RunsPerNode, T",
        ),
        (
            "# OSU\n# Size       Avg Latency(us)\n4    7.9\n",
            "message sizes (Size Avg Latency(us)), no",
        ),
        ("#bytes #repetitions t_avg[usec]\n4 1000 7.9\n", "table of message sizes (bytes"),
        (
            "Message size,latency\n4,7.9\n",
            "message sizes (Message size, latency), no table of nodes",
        ),
        ("4,7.9\n8,7.1\n", "what it has there is '4, 7.9'"),
        ("nodes   seconds\n1  2\n", "has blanks between its columns: save it with commas"),
        ("nodes\tseconds\n1\t2\n", "has tabs between"),
        ('"nodes";"seconds"\n1;2,5\n', "needs a first line"),
        ("nodes,seconds\n1,9\n4,\n", "line 3: '4,' holds no two numbers"),
        ("nodes,seconds\n1,9\n2,OOM\n", "line 3"),
        ('nodes,seconds\n1,"9,5"\n', "line 2"),
        ("nodes,seconds\n1,inf\n", "seconds is above 0; it holds 1 and inf"),
        ("nodes,rate\n8,1,402\n", "line 2"),
        ("nodes,ranks,rate\n1,4,5\n2,8,9\n", "counts nodes and ranks, and both change"),
    ],
)
def test_a_table_that_is_none_is_told_by_what_it_holds(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ScaleoutError) as caught:
        scaling.read_measured(_file(tmp_path, text))
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rates", "alone"),
    [((10, 19, 36, 70), True), ((0.01, 100, 0.5, 3), False), ((100, 1, 0.5, 0.01), False)],
)
def test_where_no_law_comes_near_no_law_says_what_one_alone_gives(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rates: tuple[float, ...],
    alone: bool,
) -> None:
    rows = (f"{2**k},{rate}\n" for k, rate in enumerate(rates))
    path = _file(tmp_path, "nodes,rate\n" + "".join(rows))
    status, printed = _printed(capsys, path)
    assert status == (not alone)
    assert ("; one alone " in printed[0]) == alone and " scatter " in printed[0]
    assert printed[1].startswith("What holds it back") == alone
    about = json.loads("\n".join(_printed(capsys, path, "--json")[1]))
    assert isinstance(about["one"], float) == alone


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("ranks,seconds\n1,100\n2,11.1\n4,2.86\n8,1.35\n", 1, "from 1 to 2 (9.01 times)"),
        ("cores,rate\n1,10\n2,20\n4,40\n8,100\n", 0, "faster than proportional (superlinear)"),
        ("gpus,rate\n16,10\n32,19\n64,37\n128,90\n", 0, "from 64 to 128 (2.43 times)"),
        ("nodes,rate\n1,10\n2,19\n4,40\n8,79\n", 0, ""),
    ],
)
def test_faster_than_proportional_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, words: str
) -> None:
    table = scaling.read_measured(path := _file(tmp_path, text))
    most = int(2 * max(table.nodes))
    ended, printed = _printed(capsys, path, "--predict", most)
    assert ended == status
    assert words in printed[-1] and bool(words) == ("superlinear" in printed[-1])
    assert bool(words) != any("What holds it back" in line for line in printed)
    if words and not status:  # the growth that was seen once may come again
        high = printed[-2].split(" to ")[1].split()[0].replace(",", "")
        assert float(high) >= 2 * table.rates[-1]
    with pytest.raises(ScaleoutError, match=f"measure on at least 10000 {table.count}"):
        scaling.fit_rates(table.nodes, [n for n in table.nodes], table.count).predict(160000)


def _series(name: str, **series: list[float]) -> str:
    """A table with a column that tells these apart, on 1, 2, 4 nodes and so on."""
    lines = [f"{one},{2**n},{v}" for one, values in series.items() for n, v in enumerate(values)]
    return "\n".join([f"{name},nodes,rate", *lines])


F32, BF16 = [100, 195, 380, 738], [150, 292, 568, 1100]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (_series("dtype", float32=F32, bfloat16=BF16), "its column dtype (float32, bfloat16)"),
        (_series("model", alexnet=[5148, 8816], resnet50=[736, 1406]), "column model"),
        (_series("batch", b32=F32, b64=[1.12 * rate for rate in F32]), "1.12 to 1.12 times"),
        (_series("host", a=F32, b=[2 * rate for rate in F32[:2]]), "column host (a, b)"),
        ("nodes,rate\n1,10\n2,19\n4,36\n8,70\n15,135\n", "line 6 is the sum of those above"),
    ],
)
def test_a_table_of_several_series_predicts_nothing(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ScaleoutError) as caught:
        scaling.read_measured(_file(tmp_path, text))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        _series("run", a=F32, b=[1.2 * rate for rate in F32]),
        _series("day", mon=[100, 195, 390], tue=[108, 190, 380]),
        _series("note", a=[100], b=[195]),
        "nodes,rate,efficiency\n1,10,1\n2,19,0.95\n4,36,0.9\n",
    ],
)
def test_another_column_that_tells_no_series_is_left_out(tmp_path: Path, text: str) -> None:
    assert scaling.read_measured(_file(tmp_path, text)).nodes[0] == 1


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("gpus,rate\n1,736\n2,703\n4,681\n8,660\n", "the rate of all together, gpus times"),
        ("nodes,rate\n1,10\n4,11\n", "that of one node"),
        ("nodes,rate\n1,10\n4,38\n", ""),
        ("nodes,seconds\n1,10\n4,10\n", ""),
    ],
)
def test_of_a_rate_that_hardly_changes_it_is_asked_whose_it_is(
    tmp_path: Path, text: str, asked: str
) -> None:
    said = scaling.read_measured(_file(tmp_path, text)).remark
    assert asked in said and bool(said) == bool(asked)
