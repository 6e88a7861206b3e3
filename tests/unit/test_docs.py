"""What the pages tell people to open or to type is there: in this repository, and in a class's copy."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import prove_gate
import pytest
from helpers import ROOT

from scaleout import cli, report
from scaleout.jobs.output import Transcript
from scaleout.teaching.release import release

PLACE = r"(?:docs|labs|notebooks|requirements|sites|solutions|src|tests|tools|class-copy)"
NAMED = re.compile(rf"(?<![\w./>~-]){PLACE}/[\w./-]*\w")
MEANT = re.compile(r"NN_|OURS|YOUR")  # a reader puts a name in its place
TARGET = re.compile(r"^([a-z][a-z -]*):", re.M)
MADE = ("class-copy/starts",)  # is in the copy alone
LIMIT = re.compile(r"\d[\d,. ]*(?:million )?(?:[kKMG]i?B|(?:kilo|mega|giga)bytes|lines)\b")


def code(text: str) -> Iterator[str]:
    """What stands between backticks or is indented as code, line by line, without shell comments."""
    for block in re.findall(r"^```\w*\n(.*?)^```|^((?:    .+\n)+)", text, flags=re.M | re.S):
        yield from (line.split("  #")[0].strip() for line in "".join(block).splitlines())
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def slips(page: str, text: str, root: Path) -> Iterator[str]:
    """Name each file, target, command and flag of a page that is not there."""
    targets = set(" ".join(TARGET.findall((root / "Makefile").read_text())).split())
    commands = next(
        action.choices for action in cli.parser()._actions if isinstance(action.choices, dict)
    )
    for line in code(text):
        for path in NAMED.findall(line):
            if not (root / path).exists() and not MEANT.search(path) and path not in MADE:
                yield f"{page}: there is no {path}"
        for target in re.findall(r"(?:^|&& )make ([a-z-]+)(?![\w=])", line):
            if target not in targets:
                yield f"{page}: there is no  make {target}"
        for word, rest in re.findall(r"(?:^|bin/|&& )scaleout ([a-z]+)(.*)", line):
            if word not in commands:
                yield f"{page}: there is no  scaleout {word}"
                continue
            known = {flag for action in commands[word]._actions for flag in action.option_strings}
            for flag in re.findall(
                r"(?<=\s)--[a-z][a-z-]*", rest.split(" -- ")[0].split(" && ")[0]
            ):
                if flag not in known:
                    yield f"{page}: scaleout {word} knows no {flag}"
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if ":" not in link and not (root / page).parent.joinpath(link).exists():
            yield f"{page}: there is no {link}"


def pages(root: Path) -> list[Path]:
    """Every page that people read, but the history."""
    return [*sorted(root.glob("docs/*.md")), *sorted(root.glob("*.md"))]


def prose(notebook: Path) -> str:
    """The text of a notebook, without its code."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a class gets of this repository."""
    folder = tmp_path_factory.mktemp("class") / "copy"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        release(folder)
    return folder


def test_what_the_pages_name_is_there() -> None:
    found = [
        slip
        for path in pages(ROOT)
        if path.name != "CHANGELOG.md"
        for slip in slips(str(path.relative_to(ROOT)), path.read_text(), ROOT)
    ]
    assert not found


def test_what_the_pages_of_a_class_name_is_in_its_copy(copy: Path) -> None:
    texts = {path: path.read_text() for path in pages(copy)}
    texts |= {path: prose(path) for path in sorted(copy.glob("notebooks/*.ipynb"))}
    assert len(texts) > len(pages(copy))
    found = [
        slip
        for path, text in texts.items()
        for slip in slips(str(path.relative_to(copy)), text, copy)
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Read `docs/of_yesterday.md`.", "there is no docs/of_yesterday.md"),
        ("    python solutions/05_horovod/gone.py\n", "there is no solutions/05_horovod/gone.py"),
        ("Type `make lobster`.", "there is no  make lobster"),
        ("    .venv/bin/scaleout fly 05\n", "there is no  scaleout fly"),
        ("```bash\nscaleout run 05 --wings 2 -- --steps 3\n```\n", "scaleout run knows no --wings"),
        ("[here](docs/of_yesterday.md)", "there is no docs/of_yesterday.md"),
    ],
)
def test_a_slip_is_found(text: str, says: str) -> None:
    assert [slip.partition(": ")[2] for slip in slips("README.md", text, ROOT)] == [says]
    right = "`docs/trust.md` `make lab` `scaleout run 05 -n 2 -- --steps 3` [here](docs/trust.md)"
    assert not list(slips("README.md", right, ROOT))


def test_the_page_of_12_passes_the_check_and_its_notebook_says_what_it_claims(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = ROOT / "docs/capstone-report.html"
    assert report(again=page, check=True) == 0, capsys.readouterr().out
    cells = json.loads((ROOT / "solutions/12_capstone.ipynb").read_text(encoding="utf-8"))["cells"]
    (told,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "stop6s")
    (claim,) = re.findall("<p>mine is ([^ ]* times as fast)", page.read_text(encoding="utf-8"))
    assert claim in told, "the notebook tells of another page"


def test_the_page_of_the_gate_has_the_figures_of_its_rows_and_they_keep_its_promise() -> None:
    lines = (ROOT / "tests/data/gate.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert prove_gate.table(rows) in (ROOT / "docs/gate.md").read_text(encoding="utf-8")
    equal = [row["gate"] for row in rows if row["slower"] == 0]
    slower = [row["gate"] for row in rows if row["slower"] == 0.1]
    assert len(equal) == len(slower) == 100 and sum(row["load"] for row in rows) == 100
    assert equal.count(1) <= 5 and slower.count(1) >= 95


def test_trust_promises_of_a_jobs_output_what_is_kept(tmp_path: Path) -> None:
    """That is all of it: the page may name no limit, and the memory that it takes is the page's."""
    page = " ".join((ROOT / "docs/trust.md").read_text().split())
    said = [(0, f"step {n:06}: loss 0.123456, 1234.5 rows/s") for n in range(200_000)]
    with Transcript("job", tmp_path, kept := [], say=print) as transcript:
        transcript.add(said, quietly=True)
    assert len(kept) == len((tmp_path / "output.txt").read_text().splitlines()) == len(said)
    assert not LIMIT.findall(page)
    each = sys.getsizeof(kept) / len(kept) + sys.getsizeof(kept[0]) + sys.getsizeof(kept[0][1])
    (about,) = re.findall(r"(\d+) bytes a line", page)
    assert int(about) == pytest.approx(each, rel=0.1)
    slips = "the last 20 MB are kept, or 100,000 lines of 1.5 million lines, 64 KiB each"
    assert LIMIT.findall(slips) == ["20 MB", "100,000 lines", "1.5 million lines", "64 KiB"]


def test_the_glossary_is_in_the_order_of_the_alphabet_and_names_notebooks() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    parts = [re.findall(r"^- (.+)", part, re.M) for part in page.split("\n## ")[1:]]
    entries = [re.match(r"\*\*(.+?)\*\* \((\d\d)\): \S", line) for part in parts for line in part]
    assert all(entries) and len(entries) >= 100
    books = {path.name[:2] for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {entry[2] for entry in entries if entry} <= books
    for part in parts:
        words = [line.partition("** (")[0].removeprefix("**").casefold() for line in part]
        keys = [re.sub("[^a-z0-9]", "", word) for word in words]
        assert keys == sorted(keys), words
    known = {name for entry in entries if entry for name in entry[1].casefold().split(", ")}
    assert {"tape", "graph", "autograph", "colour", "key", "request"} <= known
