"""`scaleout report`: what it reads, what it says, what it refuses, and that nothing slips in."""

import copy
import html
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured import (
    BASE,
    BATCH,
    CPU,
    FAST,
    SLOW,
    STORY,
    WHOLE,
    Entry,
    compared,
    honest,
    job,
    record,
    story,
    utc,
)

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.comparisons.comparison import Comparison
from scaleout.measuring.row import Compared
from scaleout.reports import evidence, findings, gather, page, report, rules
from scaleout.reports.evidence import Evidence, Machine, Measured, Setting
from scaleout.reports.findings import Findings, changes
from scaleout.reports.private import anonymous

EVIL = "<script>alert('x')</script>"


def gathered(*names: Any, **how: Any) -> Entry:
    """The evidence in a folder, as JSON holds it."""
    found: Entry = msgspec.to_builtins(gather.gather(*names, **how))
    return found


def read(found: Entry) -> Findings:
    return rules.judge(msgspec.convert(found, Evidence))


def drawn(found: Entry) -> str:
    return page.draw(read(found))


def refusals(found: Entry) -> list[str]:
    return [*read(found).refusals]


def remarks(found: Entry) -> list[str]:
    return [*read(found).remarks]


def _words(found: Entry) -> str:
    """What a reader sees of the page."""
    shown = drawn(found).partition("<main>")[2].partition("</main>")[0]
    return re.sub(r"<[^>]*>", " ", re.sub("</?span>", "", shown))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An honest folder: two steps and the whole, and the accuracy with five seeds."""
    return honest(tmp_path / "results")


@pytest.fixture
def found(results: Path) -> Entry:
    return gathered(results)


def test_the_page_says_what_was_measured(results: Path, found: Entry) -> None:
    text = _words(found)
    assert "--batch 256 --fused is 1.52 times as fast as train.py (1.50 to 1.5" in text, text
    headings = re.findall("<h2>(.*?)</h2>", drawn(found))
    assert headings == [
        *("The machine and its limits", "The baseline, twice", "The steps", "What did not help"),
        *("Accuracy", "What it cost", "The best command", "How it was measured"),
    ]
    assert "--batch 256 --fused: no difference from --batch 256 is shown" in text
    assert "Accuracy over 5 seeds, --batch 256, --fused against train.py: -0.02" in text
    assert "-n 1 -bind-to core:2 python train.py --batch 256 --fused" in text
    assert "<span>--batch</span> 256" in drawn(found)  # no line ends inside an option
    assert refusals(found) == []


def test_figures_that_are_equal_seed_by_seed_are_called_so(found: Entry) -> None:
    """A variable that changes no result: whole percents, the same from both."""
    for row in found["accuracy"]["rows"]:
        row["value"] = 96 + int(row["seed"]) % 2
        row["values"] = {"0": [row["value"]]}
    text = _words(found)
    assert "+0 (+0 to +0): with each seed both gave the same figure" in text and "worse" not in text
    assert refusals(found) == []


def test_all_that_did_not_help_is_told(results: Path) -> None:
    """Of eight variants three are at half the speed."""
    commands = {"train.py": BASE} | {f"--v {n}": [*BASE, "--v", str(n)] for n in range(8)}
    compared(results, "d", commands, [100, 50, 50, 50, 200, 200, 200, 200, 200])
    text = _words(gathered(results))
    assert len(re.findall(r"Comparison 4: --v \d", text)) == 3, text
    assert "All that was tried helped" not in text


@pytest.mark.parametrize("hours", [1, 5, 100])
def test_a_clock_that_went_back_changes_no_order(
    results: Path, found: Entry, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    for name in ("b", "c"):  # all but the first
        for path in (results / "compare" / name).glob("*.json*"):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for line in lines:
                if "utc" in line:
                    then = datetime.fromisoformat(line["utc"]) - timedelta(hours=hours)
                    line["utc"] = then.isoformat()
                else:
                    line["behind_s"] = 3600.0 * hours
            path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    order = [one["name"] for one in found["comparisons"]]
    assert [one["name"] for one in gathered(results)["comparisons"]] == order


def test_no_name_of_a_person_a_host_or_a_folder_is_in_it(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "login-7")
    words = [
        *BASE,
        "--data=/scratch/alice/mnist",
        "alice@login-7:/data",
        "https://login-7/x",
        "../x/y.sh",
    ]
    compared(results, "d", {"train.py": BASE, "login-7 /home/alice/x": words}, [100, 90])
    text = drawn(gathered(results))
    assert not re.search("alice|login-7|/home|/scratch|" + re.escape(str(results)), text)
    assert "python train.py" in text and "y.sh" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"x{sign}/home/alice/log", f"x{sign}ELSEWHERE") for sign in ">;{&|<@!?*+^%`\\"),
        *((f"x{sign}/home/alice/log", f"x{sign}ELSEWHERE") for sign in ")}]"),
        ("cc -I/home/alice/include -L/home/alice.smith/lib", "cc -IELSEWHERE -LELSEWHERE"),
        ("cc -isystem/home/alice/x t.cpp", "cc -isystemELSEWHERE t.cpp"),
        ("{/home/alice/x}", "{ELSEWHERE}"),
        ("$(cat /home/alice/x)", "$(cat ELSEWHERE)"),
        ("cd /home/alice.smith", "cd ELSEWHERE"),
        ("/home/alice.smith/t.py>>/home/alice.smith/log.txt", "t.py>>log.txt"),
        ("//home/alice/x /home//alice/x", "ELSEWHERE ELSEWHERE"),
        ("/scratch/${USER}/alice/t.py", "t.py"),
        ("/home/alice\\ smith/t.py", "t.py"),
        ("cd ~alice; ls ~alice.smith/x", "cd ELSEWHERE; ls ELSEWHERE"),
        ("alice+x@example.org", "ELSEWHERE"),
        ("/home/pythonista /usr/bin/python3.11", "ELSEWHERE python3.11"),
        ("/opt/lib/libtcmalloc.so.4", "libtcmalloc.so.4"),
    ],
)
def test_no_folder_and_no_person_stands_behind_any_sign(text: str, shown: str) -> None:
    assert anonymous(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("rate = total /seconds", "print(sum(x) /n)", "a[0] /n", "f(a)/b", "n //size", "x//n"),
        *("images/s", "about ~5 minutes", "a <b>word</b>", "./labs/01_x/runme.py", "1/2"),
    ],
)
def test_a_division_and_a_path_from_here_stay(text: str) -> None:
    assert anonymous(text) == text


def test_what_it_is_given_is_escaped_and_read_back(results: Path, tmp_path: Path) -> None:
    compared(results, "d", {"train.py": BASE, EVIL: [*BASE, EVIL]}, [100, 200])
    found = gathered(results)
    text = drawn(found)
    assert EVIL not in text and text.count("<script") == 1
    assert EVIL not in page.markdown(read(found)) and "&lt;script&gt;" in page.markdown(read(found))
    (tmp_path / "page.html").write_text(text)
    again, line = page.read(tmp_path / "page.html")
    assert msgspec.to_builtins(again.evidence) == found and line == ""


def test_a_page_is_drawn_anew_from_its_own_records(results: Path, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    assert cli.main(["report", str(results), "-o", str(one), "--check"]) == 0
    assert cli.main(["report", "--again", str(one), "-o", str(other)]) == 0
    assert one.read_text() == other.read_text()
    assert cli.main(["report", "--again", str(one), "--check"]) == 0
    assert "It holds" in capsys.readouterr().out
    assert cli.main(["report", str(results), "-o", str(tmp_path / "r.md")]) == 0
    assert "| 1 | --batch 256 |" in (tmp_path / "r.md").read_text()


def one_run(report: Entry) -> None:
    del report["comparisons"][0]["rows"][3:]


def equal_seeds(report: Entry) -> None:
    for row in report["accuracy"]["rows"]:
        row["seed"] = "1"


def seeds_that_nobody_takes(report: Entry) -> None:
    for row in report["accuracy"]["rows"]:
        row["value"], row["values"] = 98.5, {"0": [98.5]}


def two_things(report: Entry) -> None:
    del report["comparisons"][1]


def fewer_runs(report: Entry) -> None:
    del report["accuracy"]["rows"][-2:]


def few_seeds(report: Entry) -> None:
    report["accuracy"]["seeds"] = ["1", "2"]


def one_command(report: Entry) -> None:
    base, best = report["accuracy"]["variants"]
    del report["accuracy"]["variants"][best]
    rows = report["accuracy"]["rows"]
    report["accuracy"]["rows"] = [row for row in rows if row["variant"] == base]


def another_command(report: Entry) -> None:
    for setting in report["accuracy"]["variants"].values():
        setting["words"] = [word for word in setting["words"] if word != "--fused"]


def no_accuracy(report: Entry) -> None:
    report["accuracy"] = None


def two_machines(report: Entry) -> None:
    report["comparisons"][1]["machine"] = ["Another processor", 2]


def records_of_two_machines(report: Entry) -> None:
    report["accuracy"]["rows"][3] |= {"cpu": "A processor", "cores": 64}


def a_forged_number(report: Entry) -> None:
    report["comparisons"][0]["rows"][2]["value"] *= 2


def a_run_twice(report: Entry) -> None:
    rows = report["comparisons"][0]["rows"]
    rows[5]["run_id"] = rows[2]["run_id"]


def a_harmed_accuracy(report: Entry) -> None:
    for row in report["accuracy"]["rows"]:
        if "--fused" in row["variant"]:
            row["value"] -= 2.5
            row["values"] = {"0": [row["value"]]}


def a_harmed_count(report: Entry, lost: int = 60) -> None:
    """Of 2000 images the script prints how many it got right."""
    for row in report["accuracy"]["rows"]:
        row["value"] = 1950 + int(row["seed"]) - lost * ("--fused" in row["variant"])
        row["values"] = {"0": [row["value"]]}


def a_variable_and_ranks(report: Entry) -> None:
    """The best has them, and the accuracy was measured without."""
    best = report["comparisons"][2]["variants"]["--batch 256 --fused"]
    best |= {"env": {"ONEDNN": "on", "OLD": None}, "ranks": 2, "threads": 1}
    report["accuracy"] = None


def a_quick_run(report: Entry) -> None:
    report["comparisons"][0]["rows"][4]["quick"] = True


def another_installation(report: Entry) -> None:
    report["versions"] = {"tensorflow": "2.18.1", "numpy": "2.0"}
    for entry in report["comparisons"]:
        for row in entry["rows"]:
            row["versions"] = dict(report["versions"])
    report["comparisons"][2]["rows"][1]["versions"]["tensorflow"] = "2.17.0"


def lost_records(report: Entry) -> None:
    report["comparisons"][1]["rows"][3]["values"] = {}


@pytest.mark.parametrize(
    ("forge", "rule", "next_"),
    [
        (
            a_harmed_accuracy,
            "The accuracy must be unharmed: that of --batch 256, --fused",
            "SEED=1..20",
        ),
        (
            a_harmed_count,
            "The accuracy must be unharmed: that of --batch 256, --fused may be 60",
            "39.1 is",
        ),
        (
            a_variable_and_ranks,
            "Faster is not enough",
            "each with the ranks, threads and variables that it has",
        ),
        (a_quick_run, "The short form is no measurement: comparison 1", "unset SCALEOUT_QUICK"),
        (
            another_installation,
            "One report, one installation",
            "ran with tensorflow 2.17.0, and the first",
        ),
        (lost_records, "Each run left something", "measure it again:  scaleout compare"),
        (one_run, "One run is no measurement", "scaleout compare -n 1 -t 2 --metric"),
        (equal_seeds, "Seeds differ", "its own seed"),
        (
            seeds_that_nobody_takes,
            "Seeds differ: the 5 runs of train.py all gave the same figure",
            "let the script take it and print the figure with more digits",
        ),
        (two_things, "One change at a time", "Measure what --fused alone changes"),
        (fewer_runs, "As many runs as stated", "The same line runs"),
        (few_seeds, "As many runs as stated", "SEED=1..5"),
        (one_command, "Faster is not enough", "the same seeds"),
        (another_command, "Faster is not enough", "-- COMMAND --seed {SEED}"),
        (no_accuracy, "Faster is not enough", "scaleout sweep --env SEED=1..5"),
        (two_machines, "One report, one machine", "put its folder aside"),
        (records_of_two_machines, "One report, one machine", "put its folder aside"),
        (a_forged_number, "Figures follow from the runs", "scaleout report FOLDER"),
        (a_run_twice, "Each run counts once", "Measure the others"),
    ],
)
def test_a_forged_report_is_refused(
    found: Entry,
    forge: Callable[[Entry], None],
    rule: str,
    next_: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Forged in its records, and drawn from them: only the rule can tell."""
    forged = copy.deepcopy(found)
    forge(forged)
    path = tmp_path / "page.html"
    path.write_text(drawn(forged))
    assert "What it still lacks" in path.read_text() and rule in path.read_text()
    assert cli.main(["report", "--again", str(path), "--check"]) == 1
    said = capsys.readouterr().out
    assert f"Refused. {rule}" in said and next_ in said, said


def test_what_a_count_may_lose_is_a_share_of_it(found: Entry) -> None:
    a_harmed_count(found, 30)
    assert refusals(found) == []


def test_records_that_do_not_tell_our_version_are_of_the_same_installation(found: Entry) -> None:
    another_installation(found)
    rows = found["comparisons"][2]["rows"]
    rows[1]["versions"] = found["versions"] | {"scaleout": "0.1.0"}
    assert refusals(found) == []
    found["versions"]["scaleout"] = "0.1.1"
    (said,) = refusals(found)
    assert "comparison 3 ran with scaleout 0.1.0, and the first run that tells it with" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [("is 1.52 times as fast", "is 2.52 times as fast"), ('r="6"', 'r="9"'), ("</main>", "")],
)
def test_a_number_changed_on_the_page_is_refused(
    found: Entry, old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    text = drawn(found)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert cli.main(["report", "--again", str(path), "--check"]) == 1
    said = capsys.readouterr().out
    assert "Figures follow from the runs" in said and "--again" in said


def test_a_page_of_another_version_is_drawn_anew(
    found: Entry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    text = drawn({**found, "scaleout": "0.0.1"})
    path.write_text(text.replace("The steps", "All steps"))
    assert cli.main(["report", "--again", str(path), "--check"]) == 1
    said = capsys.readouterr().out
    assert "drawn by another version, scaleout 0.0.1" in said and "Figures follow" not in said
    assert report(again=str(path)) == report(again=path, check=True) == 0
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    ["", "<html></html>", page.BEGIN + "{}" + page.END, page.BEGIN + "[" * 10**5 + page.END],
)
def test_a_page_that_is_no_report_is_one_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.html"
    path.write_text(text)
    assert cli.main(["report", "--again", str(path), "--check"]) in (1, 2)
    assert "is no report, or its records are damaged" in capsys.readouterr().err


def test_a_class_on_one_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder with a report in it, and alone two pages, of which one is forged, one that is damaged
    and one that is no report."""
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "own"))
    class_ = tmp_path / "class"
    class_.mkdir()
    assert cli.main(["report", str(honest(class_ / "ada/results"))]) == 0
    text = (class_ / "ada/results/report.html").read_text()
    (class_ / "bob.html").write_text(text)
    (class_ / "cy.html").write_text(text.replace("1.52 times", "9.52 times"))
    (class_ / "dee.html").write_text(page.BEGIN + EVIL)
    (class_ / "index.html").write_text(EVIL)
    assert cli.main(["collect", str(class_)]) == 0
    said = capsys.readouterr().out
    assert "04: " in said and "05: " not in said
    (path,) = (tmp_path / "own").rglob("reports.html")
    rows = re.findall("<tr><td>(.*?)</td></tr>", path.read_text())
    cells = [row.split("</td><td>") for row in rows]
    assert [row[0] for row in cells] == ["01", "02", "03"]
    for row in cells:
        assert "--fused is 1.52 times as fast" in row[2] and row[3] == (
            "--batch 256 1.50; --batch 256 --fused 1.52"
        )
    assert [row[-1] for row in cells[:2]] == ["holds"] * 2 and "9.52" in cells[2][-1]
    assert cli.main(["collect", str(class_), "--names"]) == 0
    newest = max((tmp_path / "own").rglob("reports.html"))
    assert re.findall("<tr><td>(.*?)</td>", newest.read_text()) == ["ada", "bob", "cy"]


def asked(setting: Entry) -> Entry:
    """With what is left out where it is 1."""
    return {"ranks": 1, "threads": 1, **setting}


def leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in the records a value stands."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[call-overload]
    for key, one in inside:
        yield (*path, key)
        if isinstance(one, (dict, list)):
            yield from leaves(one, (*path, key))


HONEST: list[Entry] = []
JUNK = st.sampled_from([None, -1, 0, 1e999, 2**60, "", EVIL, [], {}, [[]], {"x": None}, True])


@given(data=st.data(), junk=JUNK)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_records_of_anything_are_drawn_or_refused(
    data: st.DataObject, junk: Any, results: Path, tmp_path: Path
) -> None:
    if not HONEST:
        HONEST.append(gathered(results))
        top = story(tmp_path / "story") / "compare"
        HONEST.append(gathered([top / name for name in STORY], "dice", notes="*"))
    report = copy.deepcopy(data.draw(st.sampled_from(HONEST)))
    *above, last = data.draw(st.sampled_from(sorted(leaves(report), key=repr)))
    place: Any = report
    for key in above:
        place = place[key]
    place[last] = junk
    path = tmp_path / "page.html"
    path.write_text(page.BEGIN + json.dumps(report).replace("<", "\\u003c") + page.END)
    try:
        found, _ = page.read(path)
    except ScaleoutError as error:
        assert "damaged" in str(error) or "of another form" in str(error)
    else:
        assert EVIL not in page.draw(found)


def test_a_notebooks_comparison_tells_its_commands_by_its_runs(results: Path) -> None:
    place = results / "compare/c"
    about = json.loads((place / "compare.json").read_text())
    names = list(about["variants"])
    how = [{"script": "first.py", "ranks": 1}, {"ranks": 2, "threads": 1, "steps": 9}]
    about |= {"job": "12_x", "variants": dict(zip(names, how, strict=True)), "typed": []}
    (place / "compare.json").write_text(json.dumps(about))
    for row in map(json.loads, (place / "runs.jsonl").read_text().splitlines()):
        path = place / "jobs" / row["run_id"] / "run.json"
        number = names.index(row["variant"])
        said = f"mpirun -n {number + 1} -bind-to core:1 python -m mpi4py labs/{number}.py --steps=9"
        path.write_text(json.dumps({**json.loads(path.read_text()), "command": said}))
    whole = gathered(results)
    found = whole["comparisons"][2]
    first, second = map(asked, found["variants"].values())
    assert first["words"] == ["python", "-m", "mpi4py", "labs/0.py", "--steps=9"]
    assert (first["ranks"], first["threads"], second["ranks"], second["threads"]) == (1, 2, 2, 1)
    assert read(whole).steps[2].measured.line == "the same call of compare()"


@pytest.mark.parametrize(
    ("commands", "sentence", "refused"),
    [
        (("train.py --batch 256 --fused", "train.py"), "fp32 against bf16: +0.01", []),
        (("train.py", "train.py --batch 256 --fused"), "bf16 against fp32: -0.01", []),
        (("train.py --batch 256 --fused",) * 2, "bf16 minus fp32: -0.01", ["no command tells"]),
        (("other.py",) * 2, "bf16 minus fp32: -0.01", ["without --batch and --fused"]),
    ],
)
def test_records_with_seeds_are_an_accuracy_test_too(
    results: Path, commands: tuple[str, str], sentence: str, refused: list[str]
) -> None:
    """Their commands tell which is the baseline's, whichever ran first."""
    before = gathered(results)["accuracy"]["rows"]
    for path in (results / "sweep").rglob("*.json*"):
        path.unlink()
    for variant, base, words in zip(("fp32", "bf16"), (0.80, 0.79), commands, strict=True):
        for seed in range(5):
            when = utc(seed + 10 * (variant == "bf16"))
            told = record("12_x", variant, seed, base + 0.01 * (seed % 3), when)
            place = results / "12_x" / f"{variant}-{seed}"
            job(place, 3.0, record=told)
            about = json.loads((place / "run.json").read_text())
            about["command"] = f"mpirun -n 1 python -m mpi4py {words} --seed {seed}"
            (place / "run.json").write_text(json.dumps(about))
    found = gathered(results, "dice")
    assert found["accuracy"]["metric"] == "dice"
    assert found["accuracy"]["seeds"] == ["0", "1", "2", "3", "4"]
    assert f"Accuracy over 5 seeds, {sentence}" in _words(found), _words(found)
    lacks = refusals(found)
    assert len(lacks) == len(refused) and all(map(str.__contains__, lacks, refused)), lacks
    rows = found["accuracy"]["rows"]
    assert [row["wall_s"] for row in rows] == [row["wall_s"] for row in before]
    rows[1]["run_id"] = rows[0]["run_id"]
    (twice,) = [one for one in refusals(found) if one.startswith("Each run counts once")]
    assert twice.endswith("Put all other jobs aside, and report the rest:  scaleout report FOLDER")


@pytest.mark.parametrize(
    ("value", "wall_s", "changed"),
    [
        (0.183461, 0.183, False),
        (0.0514999, 0.051, False),
        (0.1005, 0.101, False),
        (312.4996, 312.5, False),
        (0.183461, 0.190, True),
        (0.05, 0.047, True),
    ],
)
def test_the_seconds_of_a_short_run_are_kept_to_a_thousandth(
    found: Entry, value: float, wall_s: float, changed: bool
) -> None:
    found["comparisons"][0] |= {"metric": "wall_s", "lower": True}
    for row in found["comparisons"][0]["rows"]:
        row |= {"value": value, "wall_s": wall_s, "values": {}}
    assert any("Figures follow from the runs" in one for one in refusals(found)) == changed


def swept(top: Path, second: float = 2.0, repeats: int = 3, start: int = 0) -> None:
    """A sweep over 1 and 2 ranks as `scaleout sweep` leaves it: 2 ranks take so many seconds."""
    place = top / "sweep" / "x"
    place.mkdir(parents=True)
    metric = {"what": "wall_s", "lower": True, "reduce": ""}
    about = {"command": ["python", "t.py"], "metric": metric, "machine": CPU}
    (place / "sweep.json").write_text(json.dumps({**about, "grid": {"ranks": ["1", "2"]}}))
    rows = []
    jobs = (
        ("default, first", 1, 4.0),
        ("point", 1, 4.1),
        ("point", 2, second),
        ("default, last", 1, 4.05),
    )
    for role, ranks, seconds in jobs:
        for repeat in range(repeats):
            took = seconds * (1 + 0.01 * repeat)
            row = {"role": role, "ranks": ranks, "threads": 1 if role == "point" else None}
            row |= {"env": {}, "repeat": repeat, "status": "ok", "reason": "", "rate": took}
            row |= {"unit": "s", "wall_s": took, "run_id": f"{len(rows)}"}
            row["utc"] = utc(start + len(rows))
            rows.append({**row, "cpu": CPU[0], "cores": CPU[1], "values": {}})
            job(place / "jobs" / f"{len(rows) - 1}", took)
    (place / "points.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_a_sweep_with_repeats_is_a_step_with_its_null_pair(tmp_path: Path) -> None:
    swept(tmp_path)
    text = _words(gathered(tmp_path))
    assert "2 ranks x 1 thread is 2.01 times as fast as default" in text, text


# As the README has it: a sweep to search, then a comparison, then the page.


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("start", [0, 50_000], ids=["the sweep first", "the comparison first"])
def test_what_a_comparison_claims_is_what_the_page_claims(
    tmp_path: Path, start: int, repeats: int, capsys: pytest.CaptureFixture[str]
) -> None:
    swept(tmp_path, repeats=repeats, start=start)
    place = compared(tmp_path, "a", {"old.py": BASE, "new.py": BATCH}, [100, 186])
    itself, found = Comparison.read(place), read(gathered(tmp_path))
    assert itself.verdict("new.py") == "faster" and found.claim is not None
    assert (found.claim.step.comparison.baseline, found.claim.name) == ("old.py", "new.py")
    assert found.claim.ratio.middle == itself.ratio("new.py").middle
    assert [step.measured.swept for step in found.steps] == [not start, bool(start)]
    text = _words(gathered(tmp_path))
    assert "new.py is 1.86 times as fast as old.py" in text, text
    assert "Nothing that was tried" not in text
    assert re.search(r"The best command .* -bind-to core:2 python train.py --batch 256", text, re.S)
    cli.main(["report", str(tmp_path), "--check"])
    assert "It claims no gain" not in capsys.readouterr().out


def test_what_is_faster_than_another_baseline_is_told_and_not_claimed(tmp_path: Path) -> None:
    swept(tmp_path)
    compared(tmp_path, "a", {"old.py": BASE, "new.py": BATCH}, [100, 100.2])
    found = gathered(tmp_path)
    assert read(found).claim is None
    told = (
        "Nothing that was tried is shown to be faster than the baseline, old.py. In comparison 1, "
        "2 ranks x 1 thread is faster than default, which is not the baseline of this page."
    )
    assert told in " ".join(_words(found).split())
    swept(tmp_path / "slow", second=5.0)
    compared(tmp_path / "slow", "a", {"old.py": BASE, "new.py": BATCH}, [100, 100.2])
    text = _words(gathered(tmp_path / "slow"))
    assert "the baseline, old.py." in text and "of this page" not in text


# A story: several comparisons, of which the last is the claim


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    monkeypatch.setenv("SCALEOUT_RESULTS", str(story(tmp_path / "results")))
    return gathered(STORY, "dice")


def test_a_story_claims_its_last_comparison_with_the_accuracy_of_its_own_runs(told: Entry) -> None:
    text = _words(told)
    assert "mine is 1.40 times as fast as first" in text, text
    assert re.search(r"Accuracy over 5 seeds, mine against first: [+-]0.00\d+ \(", text), text
    assert read(told).steps[-1].measured.line == "the same call of compare()"
    assert refusals(told) == [] and remarks(told) == []
    assert told["accuracy"]["seeds"] == ["1", "2", "3", "4", "5"]
    assert len(told["accuracy"]["rows"]) == 10  # without the baseline's second runs
    headings = re.findall("<h2>(.*?)</h2>", drawn(told))
    assert headings[:5] == [
        *(
            "Its points",
            "The machine and its limits",
            "The baseline, twice",
            "The steps",
            "What did not help",
        )
    ]
    assert "Comparison 2: evaluate: no difference from input is shown" in text
    assert re.search(r"\| 1 \| input \| 15\d \| 1.50 \| 1.30 \|", page.markdown(read(told)))
    assert re.search(r"\| faster \| 13\.?\d* → 11\.?\d* \|", page.markdown(read(told))), (
        page.markdown(told)
    )
    assert "and drew the page from them." in text


def test_the_page_shows_what_each_step_changed_in_the_script(told: Entry) -> None:
    text = drawn(told)
    titles = re.findall("<details><summary>(.*?)</summary>", text)
    assert titles == [
        "Comparison 1, input: 2 lines added to the script, 1 removed",
        "Comparison 2, evaluate: 1 line added to the script, 1 removed",
        # of comparison 4, mine, the text is that of evaluate
        *("labs/runme.py", "steps/1-input.py", "steps/2-evaluate.py"),  # whole
    ]
    assert "-    one slice after another\n+    all of a volume" in text
    assert "/home/alice" not in text and sorted(told["texts"].values()) != sorted(
        [SLOW, FAST, WHOLE]
    )
    assert "    +    in batches" in page.markdown(read(told))


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ("import os\n\ndef f():\n    return 1  # in words\n", ""),
        ("import os\n\ndef f():\n    return 2\n", "f"),
        ("import sys\n\ndef f():\n    return 1\n\nn = f()\n", "imports, other lines"),
        ("def f(:\n", ""),
    ],
)
def test_the_functions_that_a_step_changes_are_named(after: str, named: str) -> None:
    texts = {"1": "import os\n\ndef f():\n    return 1\n", "2": after}
    assert findings.touched(texts, Setting(text="1"), Setting(text="2")) == named
    assert not findings.touched(texts, Setting(), Setting(text="2"))


def test_a_name_is_a_path_or_stands_below_results_and_counts_once(
    told: Entry, tmp_path: Path
) -> None:
    top = tmp_path / "results"
    again = gathered([top, top / "compare" / STORY[3]], "dice")
    assert again == told
    assert gathered(["compare/1-input", *STORY[1:]], "dice") == told
    (one,) = gathered(STORY[0], "dice")["comparisons"]
    assert "claim" not in one


def test_a_story_from_the_command_line(
    told: Entry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", *STORY, "--accuracy", "dice", "--check"]) == 0
    assert "It holds: every rule is kept." in capsys.readouterr().out
    path = tmp_path / "results/report.html"
    assert cli.main(["report", "--again", str(path), "--check"]) == 0
    assert report(STORY, accuracy="dice", out=tmp_path / "r.html", say=print) == 0
    assert (tmp_path / "r.html").read_text() == path.read_text()
    assert cli.main(["report", STORY[0], "5-prof"]) == 2
    said = capsys.readouterr().err
    assert "There is no folder 5-prof" in said and "scaleout report 4-proof" in said
    (tmp_path / "results/compare/9-empty").mkdir()
    assert cli.main(["report", *STORY, "9-empty"]) == 2  # and not: the claim is 4-proof
    assert "There is nothing to report in" in capsys.readouterr().err


def two_in_one_step(report: Entry) -> None:
    report["comparisons"][1]["variants"]["evaluate"] |= {"ranks": 2, "threads": 1}


def a_script_with_itself(report: Entry) -> None:
    report["comparisons"][0]["variants"]["input"]["text"] = hash_of(report, "first")


def hash_of(report: Entry, name: str, number: int = 0) -> str:
    text: str = report["comparisons"][number]["variants"][name]["text"]
    return text


def a_crippled_baseline(report: Entry) -> None:
    report["comparisons"][3]["variants"]["first"]["threads"] = 1


def a_baseline_with_a_variable(report: Entry) -> None:
    report["comparisons"][3]["variants"]["first"]["env"] = {"TF_ENABLE_ONEDNN_OPTS": "0"}


def a_baseline_on_two_nodes(report: Entry) -> None:
    report["comparisons"][3]["variants"]["first"]["placed"] = {"nodes": "2"}


def a_claim_that_is_no_step(report: Entry) -> None:
    report["comparisons"][3]["variants"]["mine"]["env"] = {"TF_ENABLE_ONEDNN_OPTS": "1"}


def an_unmeasured_script(report: Entry) -> None:
    report["comparisons"][3]["variants"]["mine"]["text"] = "0" * 16


def a_step_that_did_not_help(report: Entry) -> None:
    mine = report["comparisons"][3]["variants"]["mine"]
    mine |= {"text": hash_of(report, "evaluate", 1), "ranks": 1, "threads": 2}


def less_work(report: Entry) -> None:
    for name, steps in (("first", 100), ("mine", 80)):
        claim = report["comparisons"][3]
        claim["variants"][name]["work"] = {"steps": steps, "batch": 16}
    claim |= {"lower": True, "metric": "train_s"}
    for row in claim["rows"]:
        row["value"] = 1000 / row["value"]
        row["values"] = {"record": [row["value"]]}


def another_clock(report: Entry) -> None:
    for row in report["comparisons"][3]["rows"]:
        row["wall_s"] = 110.0 + row["round"] % 3


def a_claim_of_copies(report: Entry) -> None:
    for row in report["comparisons"][3]["rows"]:
        if row["variant"] == "mine":
            row["copies"] = "The 2 ranks never talked to each other."


def no_job(report: Entry) -> None:
    for row in report["comparisons"][3]["rows"]:
        row["run_id"] = ""


def a_claim_without_steps(report: Entry) -> None:
    del report["comparisons"][2]


def one_seed_for_all_rounds(report: Entry) -> None:
    for row in report["accuracy"]["rows"]:
        row["seed"] = "1"


def three_seeds(report: Entry) -> None:
    rows = report["accuracy"]["rows"]
    report["accuracy"]["rows"] = [row for row in rows if row["seed"] in "123"]
    report["accuracy"]["seeds"] = ["1", "2", "3"]


def harm(report: Entry) -> None:
    for row in report["accuracy"]["rows"]:
        if row["variant"] == "mine":
            row["value"] -= 0.03
            row["values"] = {"record": [row["value"]]}


@pytest.mark.parametrize(
    ("forge", "rule", "next_"),
    [
        (two_in_one_step, "One change at a time: evaluate (comparison 2) changes ranks x threads and "
         "the script at once", "Measure first what ranks x threads alone changes"),
        (a_script_with_itself, "Something must change: comparison 1 compares a script with itself",
         "measure again:  "),
        (a_claim_without_steps, "One change at a time: mine (comparison 3)",
         "Measure what ranks x threads alone changes too"),
        (a_crippled_baseline, "The claim is that of its steps: first (comparison 4)", "ranks x threads"),
        (a_baseline_with_a_variable, "The claim is that of its steps: first (comparison 4)",
         "another value of variable TF_ENABLE_ONEDNN_OPTS"),
        (a_baseline_on_two_nodes, "The claim is that of its steps: first", "another value of --nodes"),
        (a_claim_that_is_no_step, "The claim is that of its steps: mine (comparison 4)",
         "Measure it as a step, or claim two ranks of comparison 3"),
        (an_unmeasured_script, "The claim is that of its steps: mine",
         "A script of the claim is that of no step"),
        (a_step_that_did_not_help, "The claim is that of its steps: mine", "Measure it as a step"),
        (less_work, "The same work for all", "steps: 100, and one of mine 80 (comparison 4)"),
        (another_clock, "Two clocks must agree", "--metric wall_s"),
        (a_claim_of_copies, "A claim is of one job: mine (comparison 4) ran as copies", "never talked"),
        (no_job, "Each run left something: no job was run for comparison 4", "scaleout.run(...)"),
        (one_seed_for_all_rounds, "Seeds differ: the 5 runs of first share seeds", "SCALEOUT_ROUND"),
        (three_seeds, "As many runs as stated: 3 seeds", "(in Python rounds=5, least=5), and a script"),
        (harm, "The accuracy must be unharmed: that of mine may be", "--rounds 20 --least 20"),
    ],
)  # fmt: skip
def test_a_forged_story_is_refused(
    told: Entry,
    forge: Callable[[Entry], None],
    rule: str,
    next_: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    test_a_forged_report_is_refused(told, forge, rule, next_, tmp_path, capsys)


def test_two_scripts_of_one_name_are_told_apart_by_their_texts(told: Entry) -> None:
    first, mine = told["comparisons"][3]["variants"].values()
    mine |= {"words": first["words"], "script": first["script"], "ranks": 1, "threads": 2}
    told["accuracy"]["variants"]["mine"] = mine
    del told["comparisons"][2]  # with two ranks, which it has no more
    assert refusals(told) == []
    assert "Accuracy over 5 seeds, mine against first" in _words(told)


def a_late_guess(report: Entry) -> None:
    report["comparisons"][0]["guessed"] = "2026-06-01T00:00:00+00:00"


def all_helped(report: Entry) -> None:
    del report["comparisons"][1]


def another_commit(report: Entry) -> None:
    report["comparisons"][1]["rows"][3]["commit"] = "b" * 40


def busy(report: Entry) -> None:
    report["comparisons"][1]["rows"][3]["others"] = 0.25


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (all_helped, "All that was tried helped, which is rare"),
        (
            a_late_guess,
            "Comparison 1 has no valid guess: the one that it has was written down after",
        ),
        (
            another_commit,
            "commit is not the same in all runs: comparison 1 at aaaaaaa and comparison 2 at",
        ),
        (busy, "Others took 25 % of the CPUs' time in the run 2-evaluate-3 of comparison 2."),
    ],
)
def test_a_remark_refuses_nothing(
    told: Entry,
    forge: Callable[[Entry], None],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forge(told)
    path = tmp_path / "page.html"
    path.write_text(drawn(told))
    assert cli.main(["report", "--again", str(path), "--check"]) == 0
    said = capsys.readouterr().out
    assert sentence in said and said.count("Remark. ") == 1, said


def test_a_file_by_another_name_with_another_argument_changes_the_argument(told: Entry) -> None:
    one, _ = told["comparisons"][2]["variants"].values()
    one |= {"words": ["python", "-u", "steps/1-input.py", "7"]}
    copied = one | {"script": "steps/copy.py", "words": ["python", "-u", "steps/copy.py", "9"]}
    before, after = msgspec.convert([one, copied], list[Setting])
    assert changes(before, after) == ["the argument"]
    bound = msgspec.structs.replace(after, placed={"bind": "none"})
    assert changes(before, bound) == ["the argument", "--bind"]


NOTES = f"""# Why

We **expected** 2 times, and `input` gave [1.5](https://example.org):

- one of alice@login-7
- {EVIL} ![x](https://example.org/x.png)

```
a < b
```
"""


def test_an_attendees_own_words_are_on_the_page_and_kept_in_it(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes, path, other = tmp_path / "n.md", tmp_path / "page.html", tmp_path / "other.html"
    notes.write_text(NOTES)
    assert (
        cli.main(["report", str(results), "-o", str(path), "--notes", str(notes), "--check"]) == 0
    )
    text = path.read_text()
    shown = text.partition("<h2>In our own words</h2>")[2].partition("<h2>")[0]
    assert "<h3>Why</h3>" in shown and "<strong>expected</strong>" in shown and "<li>" in shown
    assert "<code>input</code>" in shown and "<code>a &lt; b" in shown
    assert not re.search("<script|<img|<a |alice|login-7|example", shown), shown
    assert cli.main(["report", "--again", str(path), "--check"]) == 0
    assert cli.main(["report", "--again", str(path), "-o", str(other)]) == 0
    assert other.read_text() == text
    path.write_text(text.replace("expected</strong>", "knew</strong>", 1))
    assert cli.main(["report", "--again", str(path), "--check"]) == 1
    notes.write_text("Something *else*")
    assert cli.main(["report", "--again", str(other), "--notes", str(notes), "--check"]) == 0
    assert "Something <em>else</em>" in other.read_text()
    with_notes = msgspec.structs.replace(page.read(other)[0].evidence, notes=NOTES)
    assert EVIL not in page.markdown(rules.judge(with_notes))
    assert cli.main(["report", str(results), "--notes", str(tmp_path / "nosuch.md")]) == 2
    assert "nosuch.md cannot be read" in capsys.readouterr().err


# Facts that a row holds stay


def _rows(place: Path, change: Callable[[Entry], None]) -> None:
    """Change the rows of a comparison as they lie in its folder."""
    path = place / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        change(row)
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_a_page_says_what_the_comparison_itself_says(results: Path) -> None:
    """Copies, how a figure was read, and the start of short jobs."""

    def short(row: Entry) -> None:
        row |= {"copies": "These were 2 copies.", "remark": "'1 2' was read as columns"}
        row |= {"start_s": 90.0}

    place = results / "compare/b"
    _rows(place, short)
    itself, text = Comparison.read(place), html.unescape(_words(gathered(place)))
    assert itself.sentence("--batch 256 --fused") in text and "is its start" in text
    assert "read as columns" in text and text.count("These were 2 copies.") == 2
    assert all(note in text for note in itself.notes), itself.notes
    _rows(results / "compare/c", short)
    assert any(one.startswith("A claim is of one job") for one in refusals(gathered(results)))


SECRET = "s3cr3t/pa55"


def test_a_secret_stands_nowhere(results: Path, tmp_path: Path) -> None:
    """In variables, words that were filled with one, names, the typed line, texts and notes."""
    words = [*BASE, f"--user=me:{SECRET}", f"API_TOKEN={SECRET}"]
    place = compared(results, "d", {"train.py": BASE, f"API_TOKEN={SECRET}": words}, [100, 200])
    about = json.loads((place / "compare.json").read_text())
    about["typed"] = ["scaleout", "compare", f"--env=api_token={SECRET},0th3r", "--", *BASE]
    about["variants"][f"API_TOKEN={SECRET}"]["env"] = {"API_TOKEN": SECRET, "PASSWORD": "x"}
    about |= {
        "scripts": dict.fromkeys(about["variants"], "train.py"),
        "texts": {"train.py": f"# {SECRET}"},
    }
    (place / "compare.json").write_text(json.dumps(about))
    _rows(place, lambda row: row.update(remark=f"'{SECRET}' was read"))
    found = gathered(results, notes=f"It is {SECRET}.")
    text = drawn(found) + page.markdown(read(found))
    assert SECRET not in text and "PASSWORD=x" not in text and "0th3r" not in text
    assert "API_TOKEN=***" in text and 'export API_TOKEN="${API_TOKEN:?}"' in html.unescape(text)


def test_figures_of_ranks_that_nobody_told_apart_are_added_up_as_when_measured(
    results: Path,
) -> None:
    """Open MPI's mpirun: of what n ranks print the median, n times."""

    def untold(row: Entry) -> None:
        half = row["value"] / 2
        row |= {"values": {"?": [half, half]}, "ranks": 2, "reduce": "sum", "command": "mpirun x"}

    for place in (results / "compare").iterdir():
        _rows(place, untold)
        for path in place.rglob("output.txt"):
            number = float(path.read_text().split()[-1])
            path.write_text(f"images/s: {number / 2}\n" * 2)
    found = gathered(results)
    assert refusals(found) == []
    found["comparisons"][0]["rows"][1]["reduce"] = "mean"
    assert "Figures follow from the runs" in "".join(refusals(found))


def test_the_line_that_measures_again_is_the_one_that_was_typed(results: Path) -> None:
    place = results / "compare/a"
    about = json.loads((place / "compare.json").read_text())
    values = "KMP_AFFINITY=granularity=fine,compact,1,0;granularity=fine,scatter"
    about["typed"] = ["scaleout", "compare", "--env", values, "--reduce", "mean", "--", *BASE]
    (place / "compare.json").write_text(json.dumps(about))
    sweep = results / "sweep/best/sweep.json"
    asked = json.loads(sweep.read_text())
    asked["typed"][2:2] = ["--env", "X=1,2 if ranks=2", "--repeat", "3"]
    sweep.write_text(json.dumps(asked))
    found = gathered(results)
    code = f"scaleout compare --env '{values}' --reduce mean -- python train.py"
    assert f"\n    {code}\n" in page.markdown(read(found))
    fewer_runs(found)
    assert "--env 'X=1,2 if ranks=2' --repeat 3 " in "".join(refusals(found))


@pytest.mark.parametrize(
    ("ran", "shown"),
    [
        ("/home/alice/bin/mpirun -n 2 /home/alice/bin/python t.py", "mpirun -n 2 python t.py"),
        (
            "mpirun -n 2 --map-by slot:PE=1 --bind-to core python t.py",
            "mpirun -n 2 --map-by slot:PE=1 --bind-to core python t.py",
        ),
        (
            "mpirun -n 2 -bind-to user:0+4,1+5 python t.py",
            "mpirun -n 2 -bind-to core:2 python t.py",
        ),
        (
            "mpirun -n 2 -hosts alice@node1,node2 -ppn 1 python t.py",
            "mpirun -n 2 -hosts HOSTS -ppn 1 python t.py",
        ),
    ],
)
def test_the_best_command_is_the_line_that_ran(results: Path, ran: str, shown: str) -> None:
    def started(row: Entry) -> None:
        if row["variant"] != "train.py":
            row |= {"command": ran, "ranks": 2, "threads": 2}

    _rows(results / "compare/c", started)
    place = results / "compare/c/compare.json"
    about = json.loads(place.read_text())
    about["variants"]["--batch 256 --fused"]["nodes"] = 2
    place.write_text(json.dumps(about))
    text = page.markdown(read(gathered(results)))
    assert f"\n    {shown}\n" in text and "It ran on 2 nodes." in text and "#SBATCH" not in text


def nulls(chance: random.Random) -> Evidence:
    """Ten comparisons of equal programs, with a noise of 3 %."""
    base = Setting(words=["python", "a.py"])
    every = []

    def noisy() -> float:
        return math.exp(chance.gauss(0, 0.03))

    for number in range(10):
        columns = [("a", 0), ("a", 1), ("b", 0)]
        rows = [
            Compared(variant=name, round=r, again=again, value=noisy(), run_id="x")
            for r in range(5)
            for name, again in columns
        ]
        other = Setting(words=["python", "a.py", "--way", str(number)])
        every.append(Measured(metric="rate", variants={"a": base, "b": other}, rows=rows))
    here = Machine(cpu="x", cores=2, about=[])
    return Evidence(scaleout="0", machine=here, comparisons=every)


def test_ten_comparisons_of_equal_programs_seldom_claim_a_gain() -> None:
    """About 1 page in 100; without the correction it was 10."""
    chance = random.Random(16)
    claims = [findings.claim(findings.steps(nulls(chance))) for _ in range(120)]
    assert sum(one is not None for one in claims) <= 4


def test_a_single_comparison_is_told_as_compare_tells_it(results: Path) -> None:
    found = read(gathered(results / "compare/a"))
    itself = Comparison.read(results / "compare/a")
    assert found.steps[0].comparison.ratio("--batch 256") == itself.ratio("--batch 256")
    text = page.markdown(found)
    assert "logarithms at 95 %. " in text
    assert "wider as this page tries 3 variants" in page.markdown(read(gathered(results)))


@pytest.mark.parametrize(
    ("name", "less"),
    [
        ("loss", True),
        ("val_loss", True),
        ("test error: ([0-9.]+)", True),
        ("WER", True),
        ("accuracy", False),
        ("glossary", False),
    ],
)
def test_of_a_loss_less_is_better(name: str, less: bool) -> None:
    assert evidence.less_is_better(name) is less


@pytest.mark.parametrize(("factor", "refused"), [(3.0, True), (1.01, False), (0.5, False)])
def test_a_loss_that_rises_is_harm(found: Entry, factor: float, refused: bool) -> None:
    found["accuracy"] |= {"lower": True, "metric": "loss: ([0-9.]+)"}
    for row in found["accuracy"]["rows"]:
        row["value"] = 0.3 + 0.001 * int(row["seed"]) * (1 + ("--fused" in row["variant"]))
        row["value"] *= factor if "--fused" in row["variant"] else 1
        row["values"] = {"0": [row["value"]]}
    said = "".join(refusals(found))
    assert ("The accuracy must be unharmed: that of" in said) is refused, said
    assert ("is better" in _words(found).partition("The machine")[0]) is (factor < 1)


def test_the_limits_are_those_of_the_time_of_the_first_comparison(results: Path) -> None:
    assert "GFLOP/s" not in _words(gathered(results))
    path = results / "compare/a/compare.json"
    limits = {"multiplies float32 (GFLOP/s)": 101.5, "copies memory (GB/s)": 9.0}
    path.write_text(json.dumps({**json.loads(path.read_text()), "limits": limits}))
    assert "| multiplies float32 (GFLOP/s) | 101.5 |" in page.markdown(read(gathered(results)))


def test_two_clocks_are_both_told_where_both_show_a_gain(told: Entry) -> None:
    for row in told["comparisons"][3]["rows"]:
        row["wall_s"] = 110.0 if row["variant"] == "mine" else 130.0
    assert "itself, 1.40; whole jobs, timed from outside, 1.18 (1.18 to 1.18)." in _words(told)
    assert refusals(told) == []


@pytest.mark.parametrize(
    ("metric", "refused"),
    [("images/s: ([0-9.]+)", True), ("epoch time: (.*)", True), ("steps: (.*)", False)],
)
def test_a_count_needs_no_clock(told: Entry, metric: str, refused: bool) -> None:
    another_clock(told)
    told["comparisons"][3]["metric"] = metric
    assert any(one.startswith("Two clocks") for one in refusals(told)) is refused


@pytest.mark.parametrize(
    ("work", "other", "said"),
    [
        ({"steps": 100, "batch": 16}, {"steps": 95, "batch": 16}, "steps: 100, and one of mine 95"),
        ({"steps": 100, "batch": 16}, {"steps": 50, "batch": 32}, ""),
        ({"steps": 100, "batch": 16}, {"steps": 40, "batch": 32}, "steps x batch: 1600, and"),
        ({"epochs": 5}, {"epochs": 4}, "epochs: 5, and one of mine 4"),
        ({"epochs": 5}, {}, ""),
    ],
)
def test_less_work_is_told_of_a_rate_too(told: Entry, work: Entry, other: Entry, said: str) -> None:
    variants = told["comparisons"][3]["variants"]
    variants["first"]["work"], variants["mine"]["work"] = work, other
    assert refusals(told) == []
    assert said in "".join(remarks(told)) and bool(said) == bool(remarks(told))


def test_a_page_of_another_form_is_written_anew(found: Entry, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(drawn(found).replace('"schema":2', '"schema":1'))
    with pytest.raises(ScaleoutError, match="another form: write it anew with  scaleout report"):
        page.read(path)
