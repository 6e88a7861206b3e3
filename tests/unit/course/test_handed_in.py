"""What attendees hand in may be anything: it costs a sentence, nothing is written elsewhere, and the
others of the class are drawn."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from scaleout import cli, plots
from scaleout.course import classroom, handed_in, waiting
from scaleout.course.handed_in import HandedIn

GOOD = {
    "lab": "04_kmeans", "variant": "cnn", "rate_unit": "images/s", "cpu": "a cpu", "cores": 2,
    "ranks": 2, "threads_per_rank": 1, "rate": 12.5, "host": "secret",
}  # fmt: skip


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One attendee's results, with a good record and a good check; another's beside them."""
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    for name in ("one", "two"):
        run = tmp_path / "class" / name / "04_kmeans" / "run-1"
        run.mkdir(parents=True)
        (run / "records.jsonl").write_text(json.dumps(GOOD) + "\n")
        check = json.dumps({"todo": 1, "state": "passed"})
        (run.parent / "checks.jsonl").write_text(check + "\n")
    return tmp_path / "class" / "one"


def _record(**wrong: object) -> str:
    return json.dumps({**GOOD, **wrong})


BAD_LINES = {
    "a path out": _record(lab="../../../x"),
    "a path": _record(lab="/tmp/x"),
    "a lab with a line end": _record(lab="04_kmeans\n"),
    "a long lab": _record(lab="04_" + "k" * 300),
    "a lab that is a list": _record(lab=["04_kmeans"]),
    "ranks in words": _record(ranks="two"),
    "no ranks": _record(ranks=None),
    "fewer ranks than none": _record(ranks=-2),
    "half a rank": _record(ranks=1.5),
    "ranks that are true": _record(ranks=True),
    "a rate in words": _record(rate="fast"),
    "a rate below none": _record(rate=-1),
    "no number": _record(rate=float("nan")),
    "endless": _record(rate=float("inf")),
    "400 digits": '{"rate": 1' + "0" * 400 + "," + _record()[1:].replace('"rate": 12.5, ', ""),
    "5000 digits": _record(rate=None).replace("null", "9" * 5000),
    "threads in a list": _record(threads_per_rank=[1]),
    "a variant that is a number": _record(variant=3),
    "a cpu that is none": _record(cpu=None),
    "cores in an object": _record(cores={"a": 1}),
    "brackets": "[" * 100_000,
    "a list": "[1, 2]",
    "a word": '"record"',
    "half a line": _record()[:40],
    "no JSON": "\x00\xff{{{",
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_counted_and_the_good_ones_stay(name: str, person: Path) -> None:
    path = person / "04_kmeans/run-1/records.jsonl"
    path.write_text(BAD_LINES[name].replace("\n", " ") + "\n" + json.dumps(GOOD) + "\n")
    given = HandedIn(person)
    assert given.left_out == "lines that are no record of the workshop (1)"
    assert [line["rate"] for line in given.records] == [12.5]
    assert "host" not in given.records[0]


@pytest.mark.parametrize(
    "line",
    ["[1]", '{"todo": "1", "state": "passed"}', '{"todo": 1}', '{"todo": 1, "state": ["passed"]}',
     '{"todo": 1, "state": "<script>"}', '{"todo": -1, "state": "passed"}', "[" * 100_000,
     '{"todo": 1e99, "state": "passed"}', '{"todo": 400, "state": "passed"}'],
)  # fmt: skip
def test_a_bad_check_is_counted_and_the_good_ones_stay(line: str, person: Path) -> None:
    path = person / "04_kmeans/checks.jsonl"
    path.write_text(line + "\n" + path.read_text())
    given = HandedIn(person)
    assert given.left_out == "lines that are no record of the workshop (1)"
    assert given.checks == {("04_kmeans", 1): "passed"}


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _large(path: Path) -> None:
    os.truncate(path, handed_in.BYTES + 1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(_pipe, "no regular file"), (_folder, "no regular file"), (_link, "cannot be read"),
     (_large, "beyond the 20 MB")],
)  # fmt: skip
def test_only_regular_files_of_a_stated_size_are_read(
    spoil: Callable[[Path], None], words: str, person: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(person / "04_kmeans/run-1/records.jsonl")
    assert words in HandedIn(person).left_out
    assert cli.main(["collect", str(person.parent), "--names"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and said[0].startswith("one: left out records.jsonl")


def test_half_a_million_bad_lines_are_one_sentence(
    person: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (person / "04_kmeans/run-1/records.jsonl").write_text("{\n" * 500_000)
    assert cli.main(["collect", str(person.parent)]) == 0
    said, *_, last = capsys.readouterr().out.splitlines()
    assert "lines beyond the 100,000 that are read (400,001)" in said
    assert last.startswith("The pictures and the table: ")


def test_nothing_is_written_outside_of_the_new_folder(person: Path, tmp_path: Path) -> None:
    for run, lab in enumerate(("../../../x", str(tmp_path / "y"), "04_kmeans/../../z")):
        folder = person / "04_kmeans" / f"bad-{run}"
        folder.mkdir()
        (folder / "records.jsonl").write_text(_record(lab=lab) + "\n")
    before = {path for path in tmp_path.rglob("*")}
    out = classroom.collect([person.parent])
    new = {path for path in tmp_path.rglob("*")} - before - {out, *out.parents}
    assert new == {out / "04_kmeans.png", out / "table.csv"}


def test_names_of_any_kind_are_drawn_and_written(person: Path) -> None:
    odd = os.fsdecode(b"=cmd \xff\x07 $\\frac{$")
    person.rename(person.with_name(odd))
    records = person.with_name(odd) / "04_kmeans/run-1/records.jsonl"
    records.write_text(_record(variant="$\\frac{$ \n \x1b[2J", cpu="$_$", rate_unit="$x^$") + "\n")
    out = classroom.collect([person.parent], names=True)
    assert (out / "04_kmeans.png").stat().st_size > 1000
    table = (out / "table.csv").read_text(encoding="utf-8")
    assert "\n'=cmd" in table and "\x07" not in table


def test_so_many_topics_are_no_attendees(person: Path) -> None:
    lines = [_record(lab=f"10_topic{n}") for n in range(99)]
    (person / "04_kmeans/run-1/records.jsonl").write_text("\n".join(lines))
    given = HandedIn(person)
    assert len({line["lab"] for line in given.records}) == handed_in.TOPICS - 1  # and 04_kmeans
    assert given.left_out == "lines of too many topics (70)"


def test_a_folder_that_is_named_twice_counts_once(person: Path) -> None:
    assert len(classroom.gather([person.parent, person, person.parent])) == 2


def test_the_small_jobs_of_checks_are_no_measurements(person: Path) -> None:
    for name, env in {"run-1": {}, "run-2": waiting.variables(100.0)}.items():
        run = person / "04_kmeans" / name
        run.mkdir(exist_ok=True)
        (run / "records.jsonl").write_text(_record(rate={"run-1": 1.0, "run-2": 99.0}[name]) + "\n")
        (run / "run.json").write_text(json.dumps({"env": env}))
    found = HandedIn(person)
    assert [record["rate"] for record in found.records] == [1.0] and not found.left_out
    for damaged in ("[" * 100_000, "[]", '{"env": 5}', ""):
        (person / "04_kmeans/run-2/run.json").write_text(damaged)
        assert len(HandedIn(person).records) == 2


def test_collect_that_is_interrupted_leaves_no_half_class(
    person: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plots, "class_picture", interrupted)
    assert cli.main(["collect", str(person.parent)]) == 130
    assert capsys.readouterr().err == (
        "scaleout: Interrupted: collect did not come to its end; the same line begins again.\n"
    )
    assert list((tmp_path / "mine/class").iterdir()) == []


@pytest.mark.parametrize("state", handed_in.STATES)
def test_each_state_is_drawn_in_a_colour_of_its_own(state: str) -> None:
    columns = ["job", "attendee", "cpu", "cores", "rate", "rate_unit"]
    figure = plots.class_picture(pd.DataFrame(columns=columns), {"01": {1: state}})
    bars = {bar.get_label(): bar.patches[0] for bar in figure.axes[1].containers}
    assert [name for name, patch in bars.items() if patch.get_height()] == [state]
    assert len({patch.get_facecolor() for patch in bars.values()}) == len(handed_in.STATES)
