"""What comes back from a class."""

import csv
import json
import os
import shutil
from pathlib import Path

import measured
import numpy as np
import pytest
import rows

from scaleout import records
from scaleout.base.settings import STACKS
from scaleout.comparisons import elsewhere
from scaleout.course import history
from scaleout.reports import page
from scaleout.teaching import classroom, collect, headlines


@pytest.fixture
def class_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of thirty attendees: four jobs each in two topics, some checks."""
    for number in range(30):
        home = tmp_path / "class" / f"person-{number}" / "results"
        for topic in ("01_onednn", "04_kmeans"):
            for job in range(4):
                (home / topic / f"run-{job}").mkdir(parents=True)
                monkeypatch.setenv(
                    "SCALEOUT_RECORDS", str(home / topic / f"run-{job}/records.jsonl")
                )
                records.write(
                    lab=topic,
                    variant="cnn",
                    ranks=1 + job % 2,
                    rate=100.0 + number + job,
                    rate_unit="images/s",
                )
        monkeypatch.setenv("SCALEOUT_RESULTS", str(home))
        history.keep_state("04_kmeans", 1, "not yet")
        history.keep_state("04_kmeans", 1, "passed" if number % 3 else "not yet")
        history.keep_state("04_kmeans", 2, "not started")
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    return tmp_path / "class"


def test_a_class_becomes_a_picture_a_topic_and_a_table_without_names(class_: Path) -> None:
    out = collect.collect([class_])
    assert sorted(f.name for f in out.iterdir()) == ["01_onednn.png", "04_kmeans.png", "table.csv"]
    with open(out / "table.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["attendee"] for row in rows] == [f"{n:02}" for n in range(1, 31)]
    assert {row["runs"] for row in rows} == {"8"}
    assert sum(int(row["04_kmeans: checks passed"]) for row in rows) == 20
    assert "person" not in (out / "table.csv").read_text()
    assert collect.collect([class_], names=True)  # a folder of its own, also within the same second


def test_names_are_given_when_asked_and_a_host_never(class_: Path) -> None:
    people = collect.gather([class_ / "person-3", class_ / "person-4/results"], names=True)
    assert [a.name for a in people] == ["person-3", "person-4"]
    assert people[0].checks == {("04_kmeans", 1): "not yet", ("04_kmeans", 2): "not started"}
    assert "host" not in people[0].records and len(people[0].records) == 8


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One attendee's results: a run with one good record, and a check."""
    folder = tmp_path / "class" / "one"
    run = folder / "04_kmeans" / "run-1"
    run.mkdir(parents=True)
    monkeypatch.setenv("SCALEOUT_RECORDS", str(run / "records.jsonl"))
    records.write(lab="04_kmeans", variant="cnn", rate=12.5, rate_unit="images/s")
    (run.parent / "checks.jsonl").write_text('{"todo": 1, "state": "passed"}\n')
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    return folder


def _changed(person: Path, **wrong: object) -> str:
    good = json.loads((person / "04_kmeans/run-1/records.jsonl").read_text().splitlines()[0])
    return json.dumps(good | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lab": "../../../x"},
        {"lab": "04_" + "k" * 300},
        {"ranks": "two"},
        {"rate": float("nan")},
        {"cpu": None},
        {},
    ],
)
def test_what_is_no_record_of_the_workshop_is_said_and_left_out(
    wrong: dict[str, object], person: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = person / "04_kmeans/run-1/records.jsonl"
    good = path.read_text()
    bad = _changed(person, **wrong) if wrong else "[" * 100_000
    path.write_text(good + bad + "\n")
    before = set(tmp_path.rglob("*"))
    out = collect.collect([person.parent])
    said = capsys.readouterr().out
    assert said.startswith("01: 04_kmeans/run-1/records.jsonl, line 2: no record (")
    new = set(tmp_path.rglob("*")) - before - {out, *out.parents}
    assert new == {out / "04_kmeans.png", out / "table.csv"}
    assert ",1,1" in (out / "table.csv").read_text()


def test_names_of_any_kind_are_drawn_and_written(person: Path) -> None:
    odd = person.with_name(os.fsdecode(b"=cmd \xff\x07 $\\frac{$"))
    line = _changed(person, variant="$\\frac{$ \n \x1b[2J", cpu="$_$", rate_unit="$x^$")
    (person / "04_kmeans/run-1/records.jsonl").write_text(line + "\n")
    person.rename(odd)
    out = collect.collect([odd], names=True)
    assert (out / "04_kmeans.png").stat().st_size > 1000
    table = (out / "table.csv").read_text(encoding="utf-8")
    assert "\n'=cmd" in table and "\x07" not in table


@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_the_small_jobs_of_checks_are_no_measurements(person: Path, mark: str) -> None:
    about = person / "04_kmeans/run-1/run.json"
    for env, runs in (({}, 1), ({STACKS: "1"}, 0)):
        about.write_bytes((mark + json.dumps({"env": env})).encode())
        assert len(collect.gather([person])[0].records) == runs


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("anna/results", ["anna"]),
        ("Bea_123_assignsubmission_file_/bea/results", ["bea"]),
        ("dora/results/results", ["dora"]),
        ("Eve_7/hand-in/eve/results", ["eve"]),
        ("Gus_8/a/b/gus", ["gus"]),
        ("Ida Lee_3_assignsubmission_file_/Ida Lee/results", ["Ida Lee"]),
        ("Jo Li_4/results of mine", ["results of mine"]),
        ("Hal_9/a/b/c/d/results", []),
    ],
)
def test_what_a_platform_has_wrapped_is_found_or_named(
    person: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, names: list[str]
) -> None:
    folder = tmp_path / "handed" / place
    folder.parent.mkdir(parents=True)
    person.rename(folder)
    (tmp_path / "handed/zoe/results/04_kmeans/run").mkdir(parents=True)
    (tmp_path / "handed/zoe/results/04_kmeans/run/records.jsonl").touch()
    (tmp_path / "handed/carl").mkdir()
    (tmp_path / "handed/carl/carl.tgz").touch()
    (tmp_path / "handed/notes.txt").touch()
    found = collect.gather([tmp_path / "handed"], names=True)
    assert [a.name for a in found if a.name != "zoe"] == names
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said] == [
        *(() if names else ["Hal_9"]),
        "carl",
        "notes.txt",
    ]
    assert "carl.tgz is an archive: unpack it first" in said[-2]
    collect.collect([tmp_path / "handed"], names=True)
    assert "zoe: 0 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("Kai_5/Results.ZIP", "Kai_5: left out, Results.ZIP is an archive: unpack it first.\n"),
        ("lea lee.tar.gz", "lea lee.tar.gz: left out, lea lee.tar.gz is an archive: unpack it first.\n"),
        ("Jo_4/hand-in/results.zip", "Jo_4: left out, results.zip is an archive: unpack it first.\n"),
        ("one/older.zip", ""),
        (".trash/mo.zip", ""),
    ],
    ids=["in a folder", "alone", "deeper", "beside results", "hidden"],
)  # fmt: skip
def test_an_archive_is_named_where_nothing_else_was_handed_in(
    person: Path, capsys: pytest.CaptureFixture[str], place: str, said: str
) -> None:
    archive = person.parent / place
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.touch()
    (found,) = collect.gather([person.parent], names=True)
    assert found.name == "one" and len(found.records) == 1
    assert capsys.readouterr().out == said


def test_a_folder_that_is_given_twice_is_one_attendees(person: Path, tmp_path: Path) -> None:
    """Also by way of a link to it."""
    (tmp_path / "link").symlink_to(person)
    (found,) = collect.gather([person.parent, person, tmp_path / "link"], names=True)
    assert found.name == "one" and len(found.records) == 1


def test_two_people_whose_folders_have_one_name_are_told_apart(person: Path) -> None:
    for who in ("ann", "bob"):
        shutil.copytree(person, person.parent / who / "work/results")
    people = collect.gather([person.parent], names=True)
    assert [a.name for a in people] == ["ann/work", "bob/work", "one"]


def test_all_that_one_person_has_handed_in_is_told_apart(person: Path, tmp_path: Path) -> None:
    long = "p" * 70
    for place in ("anna/mon/project", "anna/tue/project", f"ben/{long}/x", f"ben/{long}/y/x"):
        shutil.copytree(person, person.parent / place / "results")
    shutil.copytree(person, tmp_path / "other/one")
    people = collect.gather([person.parent, tmp_path / "other"], names=True)
    assert [a.name for a in people] == [
        "class/anna/mon/project",
        "class/anna/tue/project",
        f"class/ben/{long}"[:60] + " (1)",
        f"class/ben/{long}"[:60] + " (2)",
        "class/one",
        "other/one",
    ]
    people = collect.gather([person.parent / "anna"], names=True)
    assert [a.name for a in people] == ["mon/project", "tue/project"]


def test_each_page_of_one_person_is_on_the_page_of_the_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("mon", "tue"):
        (tmp_path / "class/anna" / day).mkdir(parents=True)
        (tmp_path / "class/anna" / day / "page.html").write_text(page.BEGIN)
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    monkeypatch.setattr(collect, "class_page", lambda handed_in: "\n".join(handed_in))
    out = collect.collect([tmp_path / "class"], names=True)
    assert (out / "reports.html").read_text().split("\n") == [
        "anna/mon/page.html",
        "anna/tue/page.html",
    ]


@pytest.mark.parametrize("mark", ["\ufeff", ""])
def test_a_mark_that_an_editor_put_at_the_start_hides_no_record(person: Path, mark: str) -> None:
    path = person / "04_kmeans/run-1/records.jsonl"
    path.write_bytes((mark + path.read_text().replace("\n", "\r\n")).encode())
    checks = person / "04_kmeans/checks.jsonl"
    checks.write_bytes(("\ufeff" + checks.read_text()).encode())
    (found,) = collect.gather([person])
    assert len(found.records) == 1 and found.checks == {("04_kmeans", 1): "passed"}
    assert not found.left_out


# The headline comparisons of a class

KINDS = (
    "AMD EPYC 7B13",
    "Intel(R) Xeon(R) Platinum 8488C",
    "Intel(R) Core(TM) i7-1165G7 @ 2.80GHz",
)
PI = {"1 rank": ["a"], "2 ranks": ["b"]}


@pytest.fixture
def knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workshop whose lesson 00 knows the headline `pi`."""
    (tmp_path / "workshop/notebooks").mkdir(parents=True)
    of_pi = rows.measured("pi", {"2 ranks": 1.9}, baseline="1 rank")
    rows.keep(tmp_path / "workshop/labs/00_welcome", of_pi)
    monkeypatch.chdir(tmp_path / "workshop")
    return tmp_path / "workshop"


def compared(
    results: Path, ratios: dict[str, float], name: str = "pi", cpu: str = KINDS[0],
    spread: float = 0.0, **more: object,
) -> Path:  # fmt: skip
    """A comparison of an attendee, on a machine whose runs vary by such a share."""
    commands = {"1 rank": ["a"], **{variant: ["b", variant] for variant in ratios}}
    place = measured.compared(results, name, commands, [100.0, *(100 * r for r in ratios.values())])
    about = json.loads((place / "compare.json").read_text())
    (place / "compare.json").write_text(json.dumps({**about, "machine": [cpu, 2], **more}))
    lines = [json.loads(line) for line in (place / "runs.jsonl").read_text().splitlines()]
    chance = np.random.default_rng(int(1e6 * sum(ratios.values())))
    varied = [{**line, "value": line["value"] * chance.normal(1, spread)} for line in lines]
    (place / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in varied))
    return place


def test_thirty_machines_become_rows_and_a_picture_without_names(
    class_: Path, knows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {}
    kept = classroom.machines_picture

    def keep(found: dict[str, object]) -> object:
        drawn.update(found=found, figure=kept(found))
        return drawn["figure"]

    monkeypatch.setattr(classroom, "machines_picture", keep)
    for number, ratio in enumerate(np.linspace(1.97, 0.95, 30)):
        results = class_ / f"person-{number}/results"
        compared(results, {"2 ranks": ratio}, cpu=KINDS[number % 3], spread=0.03)
        compared(results, {"2 ranks": ratio}, name="mine")  # a comparison of one's own
    out = collect.collect([class_])
    assert {"headline-pi.png", "headlines.jsonl"} <= {path.name for path in out.iterdir()}
    assert not list(out.glob("*mine*"))
    lines = [json.loads(line) for line in (out / "headlines.jsonl").read_text().splitlines()]
    assert [line["attendee"] for line in lines] == [f"{n:02}" for n in range(1, 31) for _ in "ab"]
    assert "person" not in (out / "headlines.jsonl").read_text()
    assert {line["comparison"] for line in lines} == {"pi"} and lines[0]["date"] == "2026-01-01"
    # They are rows like those of a lesson: read again, each kind of machine is one.
    back, left_out = elsewhere.read(out / "headlines.jsonl")
    assert len(back) == 60 and not left_out
    names = ["EPYC 7B13, 2 cores", "Xeon Platinum 8488C, 2 cores", "Core i7-1165G7, 2 cores"]
    assert [other.name for other in elsewhere.others(back)] == names
    # The picture: all thirty, from the largest ratio to the smallest, told by number and processor.
    axes = drawn["figure"].axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0] == "01: EPYC 7B13, 2 cores" and len(labels) == 30
    medians = [line[0].get_xdata()[0] for line in axes.containers]
    assert medians == sorted(medians, reverse=True) and len(medians) == 30
    shown = [line[0].get_markerfacecolor() != "white" for line in axes.containers]
    title = " ".join(drawn["figure"].get_suptitle().split())
    assert title == (
        "2 ranks: faster than 1 rank for 26 of 30 attendees, slower for 1; in the median "
        f"{np.median(medians):.2f} times as fast."
    )
    assert shown.count(True) == 27 and medians[-1] < 1 < medians[0]
    assert "2 ranks, 01: EPYC 7B13, 2 cores: 1.95 (1." in drawn["figure"].get_label()


def test_of_several_variants_those_of_half_a_class_are_drawn(knows: Path, tmp_path: Path) -> None:
    found = {}
    for who, ratios in enumerate([{"a$_": 2.0, "b": 3.0}, {"b": 2.0}, {"b": 1.0, "c": 1.0}]):
        compared(tmp_path / str(who), ratios)
        ((one,), _) = headlines.read(tmp_path / str(who), headlines.known())
        found[f"0{who}"] = one.comparison
    assert [axes.get_title("left") for axes in classroom.machines_picture(found).axes] == ["b"]
    two = {name: found[name] for name in ("00", "01")}
    figure = classroom.machines_picture(two)
    assert [axes.get_title("left") for axes in figure.axes] == [r"a\$_", "b"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["00", "01"]


@pytest.mark.parametrize(
    ("about", "runs", "says"),
    [
        ({"lower": True}, {}, "pi: it is another comparison of that name; left out."),
        ({}, {"variant": "four"}, "pi: it is another comparison of that name; left out."),
        ({}, {"quick": True}, "pi: it was measured in the short form (SCALEOUT_QUICK); left out."),
        ({}, {"round": 0}, "pi: There is no whole round to compare: measure at least one."),
        ({"machine": ["", 0]}, {}, "pi: it does not say which machine it is of; left out."),
        ({}, {"value": "x"}, "pi/runs.jsonl, line 1: no record (its value is another kind, or out"),
        ({}, {"again": 0}, "pi: its rounds are not whole; left out."),
    ],
)
def test_what_is_no_headline_is_said_and_left_out(
    person: Path,
    knows: Path,
    capsys: pytest.CaptureFixture[str],
    about: dict[str, object],
    runs: dict[str, object],
    says: str,
) -> None:
    place = compared(person, {"2 ranks": 1.9}, **about)
    lines = [json.loads(line) | runs for line in (place / "runs.jsonl").read_text().splitlines()]
    (place / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    out = collect.collect([person])
    assert f"01: compare/{says}" in capsys.readouterr().out
    assert not list(out.glob("headline*"))


def test_too_few_rounds_are_no_headline(
    person: Path, knows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = compared(person, {"2 ranks": 1.9})
    lines = (place / "runs.jsonl").read_text().splitlines()
    (place / "runs.jsonl").write_text("\n".join(lines[:6]))  # of three runs each
    assert not list(collect.collect([person]).glob("headline*"))
    assert "01: compare/pi: it has fewer than 3 whole rounds; left out." in capsys.readouterr().out
