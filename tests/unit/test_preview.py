"""The preview's pages hold what the lessons' rows say, each figure by the hash of its rows, and
nothing else."""

import hashlib
import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import make_preview
import msgspec
import pytest
from helpers import ROOT
from preview_questions import QUESTIONS
from rows import EPYC, XEON, keep, measured

from scaleout.base.words import day, percent, rounded
from scaleout.comparisons import elsewhere
from scaleout.comparisons.elsewhere import Headline
from scaleout.teaching import guesses

LESSONS = sorted(path.parent.name for path in ROOT.glob(f"solutions/*/{elsewhere.FILE}"))
MOST = 100_000  # bytes of a page


class Figures(HTMLParser):
    """(question, figure, hash, text) of all that a page shows of a row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []
        self.question = self.hash = self.name = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.question = held.get("data-question", self.question)
        self.hash, self.name = held.get("data-hash", ""), held.get("data-figure", "")

    def handle_data(self, data: str) -> None:
        if self.hash:
            self.found.append((self.question, self.name, self.hash, data))
            self.hash = ""


def hashes(rows: list[Headline]) -> dict[str, list[Headline]]:
    """The rows of each comparison, machine and day by their hash, found in a way of its own."""
    groups: dict[tuple[object, ...], dict[str, Headline]] = defaultdict(dict)
    for row in rows:
        kind = msgspec.structs.astuple(msgspec.structs.replace(row.machine, memory_gib=0.0))
        groups[row.comparison, row.date, kind][row.variant] = row
    return {
        hashlib.sha256("\n".join(sorted(map(elsewhere.line, own.values()))).encode()).hexdigest()[
            :16
        ]: [*own.values()]
        for own in groups.values()
    }


def slips(root: Path, topic: str, text: str) -> list[str]:
    """Each figure of a page that its rows do not give."""
    known = hashes(elsewhere.read(root / f"solutions/{topic}/{elsewhere.FILE}")[0])
    questions = {one.key: one for one in QUESTIONS[topic[:2]]}
    wrong = []
    for key, name, hash_, said in Figures(text).found:
        if hash_ not in known:
            wrong.append(f"{key}: no rows have the hash {hash_}")
            continue
        (other,) = elsewhere.others(known[hash_])
        may = []
        for variant in other.found.variants:
            if re.fullmatch(questions[key].variant, variant):
                ratio, flip = other.found.ratio(variant), questions[key].inverse
                ends = (ratio.high, ratio.low) if flip else (ratio.low, ratio.high)
                figures = dict(zip(("low", "high"), ends, strict=True)) | {"ratio": ratio.middle}
                may = [1 / figures[name] if flip else figures[name]] if name in figures else may
                if name == "wrong_sums":
                    may = [other.facts[variant]["wrong_sums"]]
        texts = [rounded(value) if name != "wrong_sums" else percent(value) for value in may]
        texts += [percent(other.found.noise)] * (name == "noise") + [day(other.date)] * (
            name == "date"
        )
        if said not in texts:
            wrong.append(f"{key}: {name} is {said!r}, and its rows give {texts}")
    return wrong


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A workshop whose lessons 05 and 08 were measured on two kinds of machine."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/headlines.py").write_text((ROOT / "tools/headlines.py").read_text())
    cycles = {"2 ranks, apart": 1.9, "2 ranks, cycle 1 ms": 1.2, "2 ranks, cycle 4 ms": 1.6}
    keep(
        tmp_path / "solutions/05_horovod",
        measured("efficiency", cycles, baseline="1 rank"),
        measured("efficiency", {**cycles, "2 ranks, cycle 1 ms": 0.8}, XEON, baseline="1 rank"),
    )
    wrong = {"int8": {"wrong_sums": 0.25}}
    keep(
        tmp_path / "solutions/08_precision",
        measured("product-AVX2", {"int8": 2.0}, facts=wrong),
        measured("product-AVX2", {"int8": 2.0}, XEON),
        measured("product-AVX512_CORE_AMX", {"int8": 7.9, "bf16": 3.9}, XEON),
    )
    return tmp_path


def test_the_stored_pages_are_what_the_rows_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_preview.main(only_check=True) == 0, capsys.readouterr().out


@pytest.mark.parametrize("topic", LESSONS)
def test_every_figure_of_a_page_comes_from_its_rows(topic: str) -> None:
    written, _ = make_preview.pages()
    text = written[f"{topic}.html"]
    asked = re.findall('data-question="([^"]+)"', text)
    assert slips(ROOT, topic, text) == []
    assert len(Figures(text).found) >= 5 * len(asked)
    assert len(text.encode()) < MOST


@pytest.mark.parametrize("topic", LESSONS)
def test_a_page_asks_nothing_of_anybody(topic: str) -> None:
    for name in (topic, "index"):
        text = make_preview.pages()[0][f"{name}.html"]
        assert "default-src 'none'" in text
        assert not re.search(r"(?:https?:)?//[a-z]|\bsrc=|<link|@import|url\(|fetch\(", text)
        links = re.findall(r'href="([^"]+)"', text)
        assert links and all(
            link in {"index.html", *(f"{x}.html" for x in LESSONS)} for link in links
        )


def test_no_figure_stands_outside_of_what_is_opened_after_the_guess() -> None:
    for name, text in make_preview.pages()[0].items():
        before = re.sub(r'<details class="found">.*?</details>', "", text, flags=re.S)
        assert "data-hash" not in before and "<details" not in before, name
        assert "<details open" not in text


@pytest.mark.parametrize("change", ["a row", "a figure", "a hash", "a figure's machine"])
def test_a_change_of_a_row_or_of_a_figure_is_seen(top: Path, change: str) -> None:
    text = make_preview.pages(top)[0]["05_horovod.html"]
    assert slips(top, "05_horovod", text) == []
    if change == "a row":
        path = top / f"solutions/05_horovod/{elsewhere.FILE}"
        path.write_text(path.read_text().replace("100.0", "100.5", 1))
    elif change == "a figure":
        text = re.sub(r'(data-figure="low">)[\d.]+', r"\g<1>1.234", text, count=1)
    elif change == "a hash":
        text = re.sub(r'data-hash="\w{4}', 'data-hash="0000', text, count=1)
    else:
        first, second = sorted({hash_ for _, _, hash_, _ in Figures(text).found})
        part, mark = text.split('data-question="cycle-1"')[1], 'data-question="cycle-1"'
        other = part.replace(first, "x" * 16).replace(second, first).replace("x" * 16, second)
        text = text.split(mark)[0] + mark + other
    assert slips(top, "05_horovod", text)


def test_what_was_found_is_told_by_machine(top: Path) -> None:
    written, _ = make_preview.pages(top)
    text = " ".join(written["05_horovod.html"].split())
    epyc, xeon = "EPYC 7B13, AVX2, 2 cores", "Xeon Platinum 8488C, AMX, 2 cores"
    both = f"The ranks are faster than one rank on {epyc} and on {xeon}."
    assert text.count(f'<p class="finding">{both}</p>') == 2
    apart = f"The ranks are faster than one rank on {epyc}, and slower than one rank on {xeon}."
    assert f'<p class="finding">{apart}</p>' in text
    assert "Here are three predictions of this notebook." in text
    text = " ".join(written["08_precision.html"].split())
    said = f"int8 is faster than fp32 on {xeon}; on {epyc}, the sums are wrong, so their rate is"
    assert said in text and f"Wrong sums on {epyc}: <span" in text
    assert "Here are two predictions of this notebook, as the stored comparisons" in text


def test_a_reason_stands_only_where_every_machine_says_faster(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/headlines.py").write_text((ROOT / "tools/headlines.py").read_text())
    lesson, reason = tmp_path / "solutions/01_onednn", QUESTIONS["01"][0].faster
    for xeon, told in ((2.0, True), (1.0, False), (0.5, False)):
        first = measured("kernels", {"oneDNN": 2.0}, baseline="default")
        keep(lesson, first, measured("kernels", {"oneDNN": xeon}, XEON, baseline="default"))
        assert (reason in make_preview.pages(tmp_path)[0]["01_onednn.html"]) == told


def test_a_question_without_a_row_is_named_and_left_out(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_preview.main(top) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("08_precision: no row answers 'bf16' (network-AVX512_CORE_AMX, ")
    assert said[0].endswith("; left out.") and said[1].startswith("3 pages in docs/preview, ")
    keep(top / "solutions/05_horovod", measured("renamed", {"2 ranks": 1.9}, baseline="1 rank"))
    assert make_preview.main(top, only_check=True) == 1
    assert capsys.readouterr().out == (
        "docs/preview/05_horovod.html is not what the lessons' rows give: type\n  make preview\n"
    )
    assert make_preview.main(top) == 0 and make_preview.main(top, only_check=True) == 0
    page = (top / "docs/preview/05_horovod.html").read_text()
    assert "data-question=" not in page and "No machine has been measured for this page" in page
    keep(top / "solutions/05_horovod", measured("efficiency", {"9": 1.9}, baseline="1 rank"))
    (top / "docs/preview/99_gone.html").touch()
    assert make_preview.main(top) == 0, "a variant that is gone is a question that is left out"
    assert not (top / "docs/preview/99_gone.html").exists()


def test_of_a_machine_the_newest_day_counts_and_of_alternatives_the_first(top: Path) -> None:
    path = top / f"solutions/08_precision/{elsewhere.FILE}"
    more = [
        *measured("product-AVX512_CORE", {"int8": 3.0}, XEON),
        *measured("product-AVX512_CORE_AMX", {"int8": 6.0}, XEON, date="2026-12-24"),
        *measured("product-AVX512_CORE", {"int8": 3.0}, msgspec.structs.replace(EPYC, cores=4)),
    ]
    with path.open("a") as file:
        file.writelines(elsewhere.line(row) + "\n" for row in more)
    text = make_preview.pages(top)[0]["08_precision.html"]
    assert slips(top, "08_precision", text) == []
    shown = [
        said
        for key, name, _, said in Figures(text).found
        if key == "int8-newest" and name in ("ratio", "date")
    ]
    assert shown == ["24 December 2026", "6.00", "28 November 2026", "3.00"]


def test_the_questions_can_be_handed_in_and_have_names_of_their_own(tmp_path: Path) -> None:
    assert sorted(QUESTIONS) == [topic[:2] for topic in LESSONS]
    for number, questions in QUESTIONS.items():
        keys = [one.key for one in questions]
        assert 1 <= len(keys) <= 3 and len({*keys}) == len(keys)
        topic = next(name for name in LESSONS if name.startswith(number))
        line = f"{guesses.WORD} {topic} {' '.join(f'{key}=1.5' for key in keys)}"
        (tmp_path / guesses.FILE).write_text(line)
        assert [key for _, key in guesses.read(tmp_path)[0]] == keys
        for one in questions:
            assert one.asks.endswith("?") and one.bound.endswith(".") and one.comparison
    assert f'LINE = "{guesses.WORD}"' in make_preview.TEMPLATE.read_text(encoding="utf-8")
    assert f"<code>{guesses.FILE}</code>" in make_preview.TEMPLATE.read_text(encoding="utf-8")
