"""Write the course as web pages, to read before and after, offline, in one folder.

    python tools/make_pages.py [FOLDER] [--with-answers]       (make pages writes results/pages)

Without --with-answers they hold what attendees get: the notebooks as they are handed out. With it,
the solutions and their figures, and what is for instructors. Every relative link is checked; one
that leads nowhere ends this with its page and an exit status of 1."""

import argparse
import html
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html
from pygments.formatters import HtmlFormatter

from scaleout.base.paths import course_files
from scaleout.jobs import messages
from scaleout.teaching.release import NOT_GIVEN

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ROOT / "results" / "pages"
GUESSES = "docs/preview/index.html"  # as make preview writes it
FOR_INSTRUCTORS = ("instructors.md", "teaching.md")
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
{code_style}
body {{ font: 17px/1.55 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
        color: #222; background: #fff }}
nav {{ font-size: .85rem; margin-bottom: 2rem }}
nav a {{ margin-right: .8rem }}
img {{ max-width: 100% }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f4; padding: .6rem .8rem; font-size: .82rem;
       line-height: 1.4; margin: .4rem 0 }}
.jp-OutputArea-output pre, .output_subarea pre {{ background: none; border-left: 3px solid #7fb7be }}
.jp-InputPrompt, .jp-OutputPrompt, .prompt, .anchor-link {{ display: none }}
table {{ border-collapse: collapse; font-size: .85rem; margin: 1rem 0 }}
.wide {{ overflow-x: auto }}
td, th {{ border-bottom: 1px solid #ccc; padding: .25rem .7rem; text-align: left }}
details {{ margin: .4rem 0 }}
summary {{ cursor: pointer }}
</style>
<nav>{nav}</nav>
{body}
</html>
"""


def main(folder: Path = DEFAULT, answers: bool = False) -> int:
    """Write the pages; return 1 when a link leads nowhere, 2 when the folder is somebody's."""
    books = course_files(ROOT / ("solutions" if answers else "notebooks"), "[0-9][0-9]_*.ipynb")
    texts = [
        ROOT / ("README.md" if answers else "class-copy/README.md"),
        *(
            p
            for p in sorted((ROOT / "docs").glob("*.md"))
            if answers or p.name not in FOR_INSTRUCTORS
        ),
    ]
    if folder.exists() and folder != DEFAULT:
        print(f"{folder} exists already: remove it, or give the pages another folder.")
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "sites", folder / "sites")
    shutil.copytree(
        ROOT / "labs",
        folder / "labs",
        ignore=shutil.ignore_patterns(".*", "*.kept-*", "__pycache__"),
    )
    for other in ("LICENSE", "LICENSE-TEXT", "CONTRIBUTING.md", "AGENTS.md"):
        shutil.copy(ROOT / other, folder / other)
    ours = [] if answers else [Path(name).name for name in NOT_GIVEN]
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("*.md", *ours))
    names = {
        "index.html": "the workshop",
        **{f"{book.stem}.html": book.stem.replace("_", " ") for book in books},
    }
    for text in texts:
        name = "index.html" if text.name == "README.md" else f"{text.stem}.html"
        names.setdefault(name, text.stem)
        _write(folder / name, names[name], markdown2html(text.read_text(encoding="utf-8")), names)
    exporter = HTMLExporter(template_name="basic")
    for book in books:
        body, _ = exporter.from_notebook_node(nbformat.read(book, as_version=4))
        preview = f"docs/preview/{book.stem}.html"
        if (folder / preview).is_file():
            body = f'<p><a href="{preview}">Guess first</a>, before you install anything.</p>{body}'
        _write(folder / f"{book.stem}.html", names[f"{book.stem}.html"], body, names)
    lost = [
        f"{page.name}: {link}" for page in sorted(folder.glob("*.html")) for link in _lost(page)
    ]
    print(
        "\n".join(f"A link leads nowhere, {each}" for each in lost)
        or f"{len(names)} pages: {folder / 'index.html'}"
    )
    return 1 if lost else 0


def _write(path: Path, title: str, body: str, names: dict[str, str]) -> None:
    page = r'href="(?:\.\./)?(?:notebooks/|docs/)?([\w-]+)\.(?:ipynb|md)(#[^"]*)?"'
    body = re.sub(page, r'href="\1.html\2"', body).replace(
        'href="README.html"', 'href="index.html"'
    )
    body = re.sub(r'src="(?:\.\./docs/)?([\w-]+\.png)"', r'src="docs/\1"', body)
    body = re.sub(r'href="\.\./((?:docs/|labs/|sites)[^"]*)"', r'href="\1"', body)
    body = re.sub(
        r'href="(capstone-report\.html|preview/\w+\.html|[\w.-]+\.(?:json|yml))"',
        r'href="docs/\1"',
        body,
    )
    for page in ("CONTRIBUTING", "AGENTS"):  # read as they are
        body = body.replace(f'href="{page}.html"', f'href="{page}.md"')
    body = re.sub(
        r'<(h[1-6]) id="[^"]*">(.*?)<a class="anchor-link".*?</a>', _heading, body, flags=re.S
    )
    # what can be scrolled must be reached without a mouse
    body = body.replace("<table", '<div class="wide" tabindex="0"><table')
    body = body.replace("</table>", "</table></div>")
    body = body.replace('type="checkbox"', 'type="checkbox" aria-label="done"')
    links = names
    if (path.parent / GUESSES).is_file():
        links = {"index.html": names["index.html"], GUESSES: "guess first", **names}
    nav = "".join(f'<a href="{name}">{html.escape(said)}</a>' for name, said in links.items())
    style = HtmlFormatter(style="xcode").get_style_defs(".highlight")
    path.write_text(
        PAGE.format(title=html.escape(title), nav=nav, body=body, code_style=style),
        encoding="utf-8",
    )


def _heading(found: re.Match[str]) -> str:
    """A heading with the name in links that GitHub gives it, as all our links have it."""
    said = html.unescape(re.sub(r"<[^>]*>", "", found[2]))
    return f'<{found[1]} id="{messages.anchor(said)}">{found[2]}'


def _lost(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no place in it."""
    lost = set()
    for link in re.findall(r'(?:href|src)="([^"]+)', page.read_text(encoding="utf-8")):
        file, _, place = link.partition("#")
        to = page.parent / file if file else page
        if not re.match(r"[a-z]+:", link) and (
            not to.exists() or (place and f'id="{place}"' not in to.read_text(encoding="utf-8"))
        ):
            lost.add(link)
    return sorted(lost)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", nargs="?", type=Path, default=DEFAULT)
    arguments.add_argument("--with-answers", action="store_true", dest="answers")
    sys.exit(main(**vars(arguments.parse_args())))
