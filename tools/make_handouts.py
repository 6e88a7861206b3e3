"""Write what a class gets on paper: results/handouts.html, and handouts.pdf where Chromium is.

    python tools/make_handouts.py [FOLDER]       (make handouts writes to results)

Each day has two pages at most: what each notebook ends with, the commands, the words. Then come all exercises on
one page, and on another the tasks for those who are done early. All of it is taken from the notebooks and
pages as they are. Without Chromium, print handouts.html from any browser, on A4."""

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from nbconvert.filters import markdown2html

from scaleout import cli
from scaleout.base.paths import course_files

ROOT = Path(__file__).resolve().parents[1]
DAYS = {
    "1": ("doctor", "run", "check", "hint", "reset"),
    "2": ("compare", "sweep", "scaling", "submit"),
    "3": ("tour", "report"),
}
LIMIT_S = 120.0
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Handouts</title>
<style>
@page {{ size: A4; margin: 11mm }}
body {{ font: 9.2pt/1.3 system-ui, sans-serif; margin: 0; color: #111 }}
section {{ break-before: page; columns: 2; column-gap: 7mm }}
section:first-of-type {{ break-before: auto }}
section:nth-of-type(4) {{ font-size: 8.2pt; line-height: 1.22 }} /* all exercises on one page */
h1 {{ font-size: 13pt; margin: 0 0 2mm; column-span: all }}
h2 {{ font-size: 10.5pt; margin: 2mm 0 .5mm; break-after: avoid }}
p, ul {{ margin: .6mm 0 1mm }}
ul {{ padding-left: 4.5mm }}
li {{ break-inside: avoid }}
code {{ font-size: 8.4pt }}
span {{ white-space: nowrap }}
</style>
{body}
</html>
"""


def main(folder: Path) -> int:
    """Write the handouts; return 1 when the browser made no PDF of them."""
    books = {path.stem[:2]: _texts(path) for path in course_files(ROOT / "notebooks", "*.ipynb")}
    sections = [_day(day, books) for day in DAYS]
    exercises = [f"## {_title(text)}\n\n{_part(text, 'On your own')}" for text in books.values()]
    sections.append(["# All exercises", *exercises])
    sections.append(["# Done early?", *_early()])
    body = "".join(f"<section>{_html(chr(10).join(parts))}</section>" for parts in sections)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "handouts.html"
    page.write_text(PAGE.format(body=body), encoding="utf-8")
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None
    )
    if browser is None:
        print(f"{page}: print it from a browser (there is no Chromium here to make a PDF).")
        return 0
    printed = page.with_suffix(".pdf")
    printed.unlink(missing_ok=True)
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    words += [f"--print-to-pdf={printed.absolute()}", page.absolute().as_uri()]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([browser, *words], capture_output=True, timeout=LIMIT_S)
    if not printed.exists():
        print(f"{browser} made no PDF: print {page} from a browser.")
        return 1
    print(f"{printed}, {_pages(printed)} pages; {page}")
    return 0


def _day(day: str, books: dict[str, str]) -> list[str]:
    """What the notebooks of a day end with, its commands, and its words."""
    table = (ROOT / "docs/instructors.md").read_text(encoding="utf-8")
    numbers = re.findall(rf"^\| {day} \| (\d\d) ", table, re.M)
    parts = [f"# Day {day}"]
    for number in numbers:
        parts += [f"## {_title(books[number])}\n", _part(books[number], "What you take with you")]
    parts.append("## Commands (in a terminal)\n")
    parser = cli.parser()
    (verbs,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    about = {each.dest: each.help for each in verbs._choices_actions}
    parts += [f"- `scaleout {verb}`: {about[verb]}" for verb in DAYS[day]]
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    words = re.finditer(r"^- \*\*.+? \((\d\d)\): .+(?:\n  .+)*", glossary, re.M)
    of_the_day = sorted((word[0] for word in words if word[1] in numbers), key=str.casefold)
    return [*parts, "\n## Words\n", *of_the_day]


def _early() -> list[str]:
    """What those do who are done early, topic by topic."""
    page = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\d\d .+)$|^\*\*Those who are done early\*\* ((?:.+\n)+)", page, re.M)
    parts = []
    for title, task in found:
        for theirs, yours in (("their", "your"), ("they", "you")):
            task = re.sub(rf"\b{theirs}\b", yours, task)
        parts.append(f"## {title}\n" if title else f"{task[0].upper()}{task[1:]}")
    return parts


def _texts(path: Path) -> str:
    """All texts of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def _part(text: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    return text.partition(f"## {heading}\n")[2].split("\n## ")[0].strip()


def _html(text: str) -> str:
    """Markdown as HTML; on paper no link leads anywhere, and no line ends inside an option."""
    made = markdown2html(re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", text))
    made = re.sub(r'<a class="anchor-link".*?</a>', "", made)
    return re.sub(r"(?<=[\s>])(--?\w[\w-]*|--)(?![\w-])", r"<span>\1</span>", made)


def _pages(printed: Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", nargs="?", type=Path, default=ROOT / "results")
    sys.exit(main(arguments.parse_args().folder))
