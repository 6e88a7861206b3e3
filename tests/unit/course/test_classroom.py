"""The copy for a class, and what comes back from it."""

import csv
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from scaleout import cli, records
from scaleout.course import classroom, history
from scaleout.course.masters import generate
from scaleout.course.release import release
from scaleout.errors import ScaleoutError
from scaleout.settings import STACKS

RUNME = "# TODO 1: add.  (1 line)\n# BEGIN SOLUTION\nsecret = 1\n# STARTER: pass\n# END SOLUTION\n"
BOOK = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with two topics, an instructor's edited lab, and files that git does not track."""
    root = tmp_path / "workshop"
    for topic in ("00_tiny", "01_next"):
        for part in ("solutions", "labs"):
            (root / part / topic).mkdir(parents=True)
        (root / "solutions" / topic / "runme.py").write_text(RUNME)
        (root / "solutions" / topic / "checks.py").write_text("# checks\n")
        (root / "solutions" / f"{topic}.ipynb").write_text(json.dumps(BOOK))
    (root / "notebooks").mkdir()
    (root / "src").mkdir()
    (root / "src/package.py").write_text("")
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text("")
    monkeypatch.chdir(root)
    generate()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "labs/00_tiny/runme.py").write_text("the instructor's own\n")
    (root / "results").mkdir()
    (root / "results/mine.txt").write_text("")
    return root


def test_a_class_gets_everything_but_the_answers(workshop: Path, tmp_path: Path) -> None:
    assert release(tmp_path / "copy") == []
    given = {
        str(f.relative_to(tmp_path / "copy")) for f in (tmp_path / "copy").rglob("*") if f.is_file()
    }
    labs = {
        f"labs/{topic}/{name}"
        for topic in ("00_tiny", "01_next")
        for name in ("runme.py", "checks.py")
    }
    starts = {f"etc/starts/{topic}/runme.py" for topic in ("00_tiny", "01_next")}
    books = {"notebooks/00_tiny.ipynb", "notebooks/01_next.ipynb"}
    assert given == {"src/package.py", *books, *labs, *starts}
    assert not [f for f in given if "secret" in (tmp_path / "copy" / f).read_text()]
    assert (
        tmp_path / "copy/labs/00_tiny/runme.py"
    ).read_text() == "# TODO 1: add.  (1 line)\npass\n"


@pytest.mark.parametrize("answer", ["00", "0", "tiny", "00_tiny"])
def test_chosen_answers_come_along(workshop: Path, tmp_path: Path, answer: str) -> None:
    assert release(tmp_path / "copy", [answer]) == ["00_tiny"]
    found = sorted(
        str(f.relative_to(tmp_path / "copy")) for f in (tmp_path / "copy/solutions").rglob("*.*")
    )
    assert found == [
        "solutions/00_tiny.ipynb",
        "solutions/00_tiny/checks.py",
        "solutions/00_tiny/runme.py",
    ]


@pytest.mark.parametrize("name", ["copy.zip", "copy.tar.gz"])
def test_an_archive_holds_one_folder(workshop: Path, tmp_path: Path, name: str) -> None:
    assert cli.main(["release", str(tmp_path / name)]) == 0
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name) as archive:
            listed = archive.namelist()
    else:
        with tarfile.open(tmp_path / name) as archive:
            listed = archive.getnames()
    assert "scaleout-workshop/labs/00_tiny/runme.py" in listed
    assert {path.split("/")[0] for path in listed} == {"scaleout-workshop"}
    assert not [path for path in listed if "solutions" in path]


def test_a_wrong_release_says_so_and_writes_nothing(workshop: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ScaleoutError, match="exists already: remove it"):
        release(tmp_path / "there")
    with pytest.raises(ScaleoutError, match="no topic '07': there are 00_tiny, 01_next"):
        release(tmp_path / "new", ["07"])
    shutil.rmtree(workshop / ".git")
    with pytest.raises(ScaleoutError, match="no git checkout"):
        release(tmp_path / "new")
    assert not (tmp_path / "new").exists()


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
    out = classroom.collect([class_])
    assert sorted(f.name for f in out.iterdir()) == ["01_onednn.png", "04_kmeans.png", "table.csv"]
    with open(out / "table.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["attendee"] for row in rows] == [f"{n:02}" for n in range(1, 31)]
    assert {row["runs"] for row in rows} == {"8"}
    assert sum(int(row["04_kmeans: checks passed"]) for row in rows) == 20
    assert "person" not in (out / "table.csv").read_text()
    assert classroom.collect(
        [class_], names=True
    )  # a folder of its own, also within the same second


def test_names_are_given_when_asked_and_a_host_never(class_: Path) -> None:
    people = classroom.gather([class_ / "person-3", class_ / "person-4/results"], names=True)
    assert [a.name for a in people] == ["person-3", "person-4"]
    assert people[0].checks == {("04_kmeans", 1): "not yet", ("04_kmeans", 2): "not started"}
    assert "host" not in people[0].records and len(people[0].records) == 8


def test_folders_without_results_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["collect", str(tmp_path / "nowhere")]) in (1, 2)
    assert "There is no folder" in capsys.readouterr().err
    assert cli.main(["collect", str(tmp_path)]) in (1, 2)
    assert "No results there" in capsys.readouterr().err


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
    out = classroom.collect([person.parent])
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
    out = classroom.collect([odd], names=True)
    assert (out / "04_kmeans.png").stat().st_size > 1000
    table = (out / "table.csv").read_text(encoding="utf-8")
    assert "\n'=cmd" in table and "\x07" not in table


def test_the_small_jobs_of_checks_are_no_measurements(person: Path) -> None:
    about = person / "04_kmeans/run-1/run.json"
    for env, runs in (({}, 1), ({STACKS: "1"}, 0)):
        about.write_text(json.dumps({"env": env}))
        assert len(classroom.gather([person])[0].records) == runs
