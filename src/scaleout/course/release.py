"""A copy for a class: labs and notebooks as new, without the answers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import ScaleoutError
from ..paths import home, meant, show
from .masters import STARTS, generated, untouched

ARCHIVES = {".zip": "zip", ".tar": "tar", ".tar.gz": "gztar", ".tgz": "gztar"}
UNKNOWN = (".rar", ".7z", ".gz", ".bz2", ".xz", ".zst")
# What only an instructor or an author needs: files, and folders with all that is in them.
NOT_GIVEN = (
    "solutions", "labs", "notebooks", "tests", ".ci", ".gitignore", "CHANGELOG.md",
    "CONTRIBUTING.md", "docs/instructors.md", "docs/teaching.md", "docs/tour.png",
)  # fmt: skip
OWN = "etc/class/"  # what takes the place of the file of the same name: README.md, Makefile


def release(target: Path, answers: Sequence[str] = ()) -> list[str]:
    """Writes the attendees' copy, whole or not at all.

    It is made from what git tracks, so nothing of the instructor's own comes along.
    """
    kind = next((kind for end, kind in ARCHIVES.items() if target.name.endswith(end)), None)
    if kind is None and target.name.endswith(UNKNOWN):
        raise ScaleoutError(
            f"{target.name} is no archive that can be made here: take {', '.join(ARCHIVES)}, "
            "or a folder's name."
        )
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
            made = _copy(Path(scratch) / "scaleout-workshop", chosen)
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


def _copy(folder: Path, chosen: Sequence[str]) -> Path:
    """The attendees' copy in a new folder."""
    root = home()
    for name in sorted(_tracked(root), key=lambda name: name.startswith(OWN)):
        if _given(name, chosen):
            new = folder / name.removeprefix(OWN)
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, new)
    made = {path.relative_to(root): text for path, text in generated()}
    for topic in (root / "solutions").glob("*/"):
        made |= {STARTS / topic.name / name: text for name, text in untouched(topic.name).items()}
    for path, text in made.items():
        new = folder / path
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
    return folder


def _given(name: str, chosen: Sequence[str]) -> bool:
    first, *inside = Path(name).parts
    if first == "solutions":
        return inside[0].removesuffix(".ipynb") in chosen
    return first not in NOT_GIVEN and name not in NOT_GIVEN


def _named(answers: Sequence[str]) -> list[str]:
    topics = {path.stem for path in (home() / "solutions").glob("[0-9][0-9]_*.ipynb")}
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
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z"], capture_output=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        raise ScaleoutError(f"{show(root)} is no git checkout: make the copy from one.") from None
    names = (os.fsdecode(name) for name in listed.stdout.split(b"\0"))
    return [name for name in names if name and (root / name).is_file()]
