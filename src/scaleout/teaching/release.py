"""A copy for a class: labs and notebooks as new, without the answers. It is a folder, an archive, or
a branch that a JupyterHub brings to each attendee."""

import ast
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from ..base.errors import ScaleoutError
from ..base.paths import course_files, home, meant, read_text, show
from ..course.checks import veiled
from ..course.masters import STARTS, generated, untouched

ARCHIVES = {".zip": "zip", ".tar": "tar", ".tar.gz": "gztar", ".tgz": "gztar"}
# What only an instructor or an author needs: files, and folders with all that is in them.
NOT_GIVEN = (
    "solutions", "labs", "notebooks", "tests", ".ci", ".github", ".gitignore", "CHANGELOG.md",
    "CONTRIBUTING.md", "docs/instructors.md", "docs/teaching.md", "docs/tour.png",
    "docs/cluster.md", "docs/hub.md", "docs/image.md", "docs/one-link.md",
    "docs/capstone-report.html", "docs/capstone-steps.png", "docs/capstone-top.png",
)  # fmt: skip
OWN = "class-copy/"  # what goes to the copy's top: README.md, in place of ours, and survey.md
CUT = "# From here on: not in the copy that a class gets"  # a line of the Makefile
FORMER_STARTS = "etc/starts"  # by which a branch of an older release is known
FOLDER = "scaleout-workshop"  # what an attendee's copy is called
HUB = "https://YOUR-HUB"
REPOSITORY = "https://YOUR-GIT-HOST/YOUR-REPOSITORY"


def release(target: Path, answers: Sequence[str] = ()) -> list[str]:
    """Write the attendees' copy, whole or not at all, and return the topics whose solutions it has.

    It is made from what git tracks, so nothing of the instructor's own comes along.
    """
    kind = next((kind for end, kind in ARCHIVES.items() if target.name.endswith(end)), None)
    try:
        if target.exists():
            raise ScaleoutError(
                f"{show(target)} exists already: remove it, or give the copy another name."
            )
        chosen = _named(answers)
        _tracked(home())
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that a full disk leaves nothing under its name.
        with tempfile.TemporaryDirectory(prefix=".release-", dir=target.parent) as scratch:
            made = _copy(Path(scratch) / FOLDER, chosen)
            if kind:
                base = str(Path(scratch) / "made")
                made = Path(shutil.make_archive(base, kind, scratch, made.name))
            os.rename(made, target)
    except OSError as error:
        why = error.strerror or error
        raise ScaleoutError(
            f"{show(target)} cannot be written ({why}): make room, or name another place."
        ) from None
    return chosen


def to_branch(branch: str, answers: Sequence[str] = ()) -> str:
    """Append the attendees' copy to a branch as one commit.

    Returns the commit's short name; "" when the branch holds just that copy already.

    The history of the branch only grows, also where a clone knows it from origin alone: whoever
    pulls it never meets another history. Work tree and index stay as they are.
    """
    chosen = _named(answers)
    _git("check-ref-format", "--branch", branch)
    if unsaved := _unsaved():
        raise ScaleoutError(
            f"{unsaved[0]} is not as git has it: commit what the class is to get, and put the rest "
            "away with  git stash -u"
        )
    mine, last = _tip(branch)
    if last and not _git("ls-tree", "--full-tree", last, str(STARTS), FORMER_STARTS):
        raise ScaleoutError(
            f"{branch} is no branch that this command made: give the attendees' branch another name."
        )
    with tempfile.TemporaryDirectory(prefix="scaleout-release-") as scratch:
        copy = _copy(Path(scratch) / FOLDER, chosen)
        into = {"GIT_DIR": _git("rev-parse", "--absolute-git-dir"), "GIT_WORK_TREE": str(copy)}
        into["GIT_INDEX_FILE"] = str(Path(scratch) / "index")
        _git("add", "--all", "--force", ".", at=copy, **into)
        tree = _git("write-tree", at=copy, **into)
    if last and tree == _git("rev-parse", f"{last}^{{tree}}"):
        return ""
    message = f"The workshop as of {_git('rev-parse', '--short', 'HEAD')}"
    parent = ["-p", last] if last else []
    commit = _git("commit-tree", tree, *parent, "-m", message)
    _git("update-ref", "-m", "scaleout release", f"refs/heads/{branch}", commit, mine)
    return commit[:10]


def link(branch: str, hub: str = HUB) -> str:
    """Make the address that brings the branch to a JupyterHub with nbgitpuller."""
    asked = {"repo": _repository(), "branch": branch, "targetpath": FOLDER}
    asked["urlpath"] = f"lab/tree/{FOLDER}/{_first_notebook()}"
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{urlencode(asked)}"


def _unsaved() -> list[str]:
    """List what the copy is made of and git does not hold as it is.

    Labs and notebooks are made anew, so they do not count.
    """
    seen = _git("status", "--porcelain", "--untracked-files=all", ".", ":!labs", ":!notebooks")
    return [line[3:] for line in seen.splitlines() if line[:2] != "??" or "solutions/" in line]


def _tip(branch: str) -> tuple[str, str]:
    """Find the branch's last commit here ("" for none), and the one that the next is to follow.

    That is origin's, where it has what we lack: another clone has released since.
    """
    refs = [f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"]
    seen = _git("for-each-ref", "--format=%(refname) %(objectname)", *refs)
    at = dict(line.split() for line in seen.splitlines())
    mine, theirs = (at.get(ref, "") for ref in refs)
    behind = mine and theirs and _git("rev-list", "-1", theirs, f"^{mine}")
    return mine, theirs if behind else mine or theirs


def _first_notebook() -> str:
    return f"notebooks/{course_files(home() / 'solutions', '*.ipynb')[0].name}"


def _repository() -> str:
    """Return origin's address for an attendee: no ssh, and nobody's name or password."""
    try:
        url = _git("remote", "get-url", "origin")
    except ScaleoutError:
        return REPOSITORY
    if ssh := re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)(?::\d+(?=/))?[:/](.+)", url):
        return f"https://{ssh[1]}/{ssh[2]}"
    if "://" not in url:
        return REPOSITORY
    return urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()


def _copy(folder: Path, chosen: Sequence[str]) -> Path:
    """Make the attendees' copy in a new folder."""
    root = home()
    for name in sorted(_tracked(root), key=lambda name: name.startswith(OWN)):
        if _given(name, chosen):
            new = folder / name.removeprefix(OWN)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, new)
    makefile = folder / "Makefile"
    if makefile.exists():
        makefile.write_text(for_a_class(read_text(makefile)), encoding="utf-8")
    made = {path.relative_to(root): text for path, text in generated()}
    for topic in (root / "solutions").glob("*/"):
        made |= {STARTS / topic.name / name: text for name, text in untouched(topic.name).items()}
    for path, text in made.items():
        new = folder / path
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(_veil(text) if path.name == "checks.py" else text, encoding="utf-8")
    return folder


def for_a_class(makefile: str) -> str:
    """Return the Makefile without what follows its line CUT: the targets of who teaches."""
    return makefile.partition(f"\n{CUT}")[0]


def _veil(checks: str) -> str:
    """Veil the hints of a checks.py from the third on; `scaleout hint` shows them."""
    text = checks.encode()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]  # of the lines, in bytes
    hints = [
        hint
        for node in ast.walk(ast.parse(checks))
        if isinstance(node, ast.keyword)
        and node.arg == "hints"
        and isinstance(node.value, ast.List)
        for hint in node.value.elts[2:]
    ]
    for hint in sorted(hints, key=lambda hint: (hint.lineno, hint.col_offset), reverse=True):
        start = starts[hint.lineno - 1] + hint.col_offset
        end = starts[(hint.end_lineno or 0) - 1] + (hint.end_col_offset or 0)
        text = text[:start] + repr(veiled(ast.literal_eval(hint))).encode() + text[end:]
    return text.decode()


def _given(name: str, chosen: Sequence[str]) -> bool:
    first, *inside = Path(name).parts
    if first == "solutions":
        return inside[0].removesuffix(".ipynb") in chosen
    return first not in NOT_GIVEN and name not in NOT_GIVEN


def _named(answers: Sequence[str]) -> list[str]:
    topics = {path.stem for path in course_files(home() / "solutions", "[0-9][0-9]_*.ipynb")}
    chosen = set()
    for answer in answers:
        found = meant(answer, topics)
        if not found:
            there = ", ".join(sorted(topics)) or "none"
            raise ScaleoutError(f"There is no topic {answer!r}: there are {there}.")
        chosen.add(found)
    return sorted(chosen)


def _tracked(root: Path) -> list[str]:
    try:
        listed = _git("ls-files", "-z")
    except ScaleoutError:
        raise ScaleoutError(f"{show(root)} is no git checkout: make the copy from one.") from None
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def _git(*words: str, at: Path | None = None, **variables: str) -> str:
    """Ask git, in the workshop's folder or in another; ScaleoutError has its last words."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=at or home(),
            # `git status` writes nothing then, not even what it learnt about times of files.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", **variables},
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ScaleoutError(f"git does not work here ({error}).") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ScaleoutError(f"git {words[0]}: {why.removeprefix('fatal: ')}")
    return done.stdout.rstrip("\n")
