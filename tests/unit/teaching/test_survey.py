"""The survey of a class: the page asks what the code counts, and only counts come out of it."""

import os
import re
from pathlib import Path

import pytest

from scaleout.teaching import collect, survey

PAGE = (Path(__file__).resolve().parents[3] / "class-copy/survey.md").read_text(encoding="utf-8")


def filled(answers: dict[tuple[int, str], str]) -> str:
    """The page with answers written in."""
    head, *sections = re.split(r"(?m)^(?=## )", PAGE)
    for place, section in enumerate(sections):
        for (number, name), said in answers.items():
            if section.startswith(f"## {number}. "):
                sections[place] = section = section.replace(f"\n{name}:", f"\n{name}: {said}")
    return head + "".join(sections)


def test_the_page_asks_what_is_counted() -> None:
    sections = {int(number): text for number, text in survey.SECTION.findall(PAGE)}
    assert sorted(sections) == list(range(1, 16))
    for number, (_, right) in survey.CONCEPTS.items():
        assert re.findall(r"^- (\w): ", sections[number], re.M) == ["a", "b", "c", "d"]
        assert f"- {right}: " in sections[number] and right != "d"
        assert [name for name, _ in survey.LINE.findall(sections[number])] == ["before", "after"]
    for number in survey.COURSE:
        assert survey.LINE.findall(sections[number]) == [("answer", "")]
    assert survey.LINE.findall(sections[survey.WORDS]) == [("words", "")]


def test_who_answered_before_and_after_is_counted(tmp_path: Path) -> None:
    one = {(1, "before"): "a", (1, "after"): "c", (2, "before"): "b", (14, "answer"): "4"}
    two = {(1, "before"): "C", (1, "after"): "c", (15, "words"): "a <b> ![](http://x)"}
    pages = []
    for name, answers in (("one", one), ("two", two)):
        (tmp_path / name / "results").mkdir(parents=True)
        (tmp_path / name / "survey.md").write_text(filled(answers))
        pages.append(survey.read(tmp_path / name / "results"))
    assert pages == [one, two]
    said = survey.counted(pages)
    assert "Right before: 50 % of the answers; after: 100 %." in said
    assert "| 1 what mpirun starts | 2 | 1 | 2 |" in said
    assert "| 2 a gain within the noise | 0 | 0 | 0 |" in said, "answered only once"
    assert "| 14 use for one's own training | 0 | 0 | 0 | 1 | 0 |" in said
    assert "\n    a <b> ![](http://x)\n" in said, "shown as it was typed, and drawn by nobody"


def test_an_untouched_page_says_nothing_and_a_huge_one_is_cut(tmp_path: Path) -> None:
    (tmp_path / "survey.md").write_text(PAGE)
    assert survey.read(tmp_path) == {}
    (tmp_path / "survey.md").write_text("## 1. x\nbefore: a\n" + 100_000 * "-" + "\nafter: c\n")
    assert survey.read(tmp_path) == {(1, "before"): "a"}
    (tmp_path / "survey.md").unlink()
    os.mkfifo(tmp_path / "survey.md")
    assert survey.read(tmp_path) == {}, "a pipe is not waited for"
    assert "Nobody answered" in survey.counted([{(1, "before"): "c"}])


def test_collect_writes_the_page_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = tmp_path / "class/one/results/04_kmeans"
    topic.mkdir(parents=True)
    (topic / "checks.jsonl").write_text('{"todo": 1, "state": "passed"}\n')
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "mine"))
    out = collect.collect([tmp_path / "class"])
    assert not (out / "survey.md").exists()
    (topic.parents[1] / "survey.md").write_text(filled({(11, "answer"): "3"}))
    out = collect.collect([tmp_path / "class"])
    assert "| 11 pace | 0 | 0 | 1 | 0 | 0 |" in (out / "survey.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("places", "page", "answered"),
    [
        (["anna", "ben"], "survey.md", []),
        (["anna"], "survey.md", []),
        (["group/anna", "group/ben"], "group/survey.md", []),
        (["anna/results", "ben/results"], "survey.md", []),
        (["anna/results", "ben/results"], "anna/survey.md", ["anna"]),
        (["anna/results", "ben"], "ben/survey.md", ["ben"]),
        (["Jo_4/my results", "ben"], "Jo_4/survey.md", ["my results"]),
    ],
)
def test_a_survey_counts_for_the_person_whose_folder_it_is_in(
    tmp_path: Path, places: list[str], page: str, answered: list[str]
) -> None:
    for place in places:
        (tmp_path / place / "04_kmeans").mkdir(parents=True)
        (tmp_path / place / "04_kmeans/checks.jsonl").write_text('{"todo": 1, "state": "passed"}\n')
    (tmp_path / page).write_text(filled({(11, "answer"): "3"}))
    class_ = collect.gather([tmp_path], names=True)
    assert len(class_) == len(places)
    assert [a.name for a in class_ if a.answers] == answered
    folders = [tmp_path / place for place in places]
    assert [a.name for a in collect.gather(folders, names=True) if a.answers] == [
        name for name in answered if name != "my results"
    ]
