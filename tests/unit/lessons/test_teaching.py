"""What docs/teaching.md says of the predictions of day 1 is about those that its notebooks ask for."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
BOOKS = sorted(ROOT.glob("solutions/0[0-5]_*.ipynb"))
ROW = re.compile(r"^\| (Further, )?`(guess_\w+)`.*? \| (.+?) \| .+ \|$", re.M)
GUESS = re.compile(r"^(guess_\w+) = (.+?)(?:  # (.+))?$", re.M)


def answers(example: object, offered: str, answer: str) -> bool:
    """Whether an answer is one that could be typed: an offered text, yes or no, or a number."""
    if isinstance(example, str):
        options = [example, *re.findall(r"[\"`]([^\"`]+)[\"`]", offered)]
        return any(option in answer for option in options)
    return bool(re.match("yes|no" if isinstance(example, bool) else r".*\d", answer))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_the_predictions_and_their_answers_are_those_of_the_notebook(book: Path) -> None:
    section = PAGE.partition(f"\n## {book.stem[:2]} ")[2].partition("\n## ")[0]
    told = {name: (bool(further), answer) for further, name, answer in ROW.findall(section)}
    asked, predict = [], ""
    for cell in nbformat.read(book, as_version=4).cells:
        predict = cell.source if "**Predict:**" in cell.source else predict
        for name, example, comment in GUESS.findall(cell.source):
            asked.append((name, "further" in cell.metadata.get("tags", [])))
            offered = predict.partition("**Predict:**")[2] + comment
            assert answers(ast.literal_eval(example), offered, told[name][1]), told[name]
    assert asked == [(name, further) for name, (further, _) in told.items()]
