"""The same command at two commits: each in a git worktree of its own, gone at the end, however we
end."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import ScaleoutError
from ..base.words import count
from ..measuring.command import IN_FOLDER

# Waits until nobody holds its standard input any more, as when we are killed, and takes the worktrees
# away: what still runs in them is being ended, and may write until then.
GUARD = """
trap '' INT TERM HUP
cat > /dev/null
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  for tree in "$2"/*/; do git -C "$1" worktree remove --force "$tree" 2> /dev/null; done
  rm -rf "$2" && break
  sleep 1
done
git -C "$1" worktree prune
"""
END_S = 30.0  # for that, at the end


@dataclass(frozen=True)
class Ref:
    """A commit, by the name that somebody has typed for it."""

    name: str
    commit: str
    folder: Path  # of its worktree that stands for the current folder

    def inside(self, words: Sequence[str]) -> list[str]:
        """Return a command that runs in the worktree."""
        return [*IN_FOLDER, str(self.folder), *words]


def parse(text: str) -> list[str]:
    """Split MAIN,HEAD into its names: two or more, each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ScaleoutError(
            f"--refs takes two commits or more, each once, such as --refs main,HEAD; not {text!r}."
        )
    return names


@contextlib.contextmanager
def worktrees(names: Sequence[str]) -> Iterator[list[Ref]]:
    """Check out each of these commits in a folder of its own, as long as the block lasts."""
    top = _git("rev-parse", "--show-toplevel")
    inside = _git("rev-parse", "--show-prefix")
    commits = {name: _commit(name) for name in names}
    same = [name for name in names[1:] if commits[name] == commits[names[0]]]
    if same:
        raise ScaleoutError(
            f"{names[0]} and {same[0]} are the same commit, {commits[same[0]][:12]}: name another one "
            "(what a comparison of equals gives,  --calibrate  says)."
        )
    place = Path(tempfile.mkdtemp(prefix="scaleout-refs-"))
    guard = subprocess.Popen(
        ["sh", "-c", GUARD, "sh", top, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        found = []
        for number, (name, commit) in enumerate(commits.items()):
            tree = place / f"{number}-{''.join(c if c.isalnum() else '-' for c in name)}"
            _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
            if not (tree / inside).is_dir():
                raise ScaleoutError(
                    f"There is no folder {inside} in {name}: type the line elsewhere."
                )
            found.append(Ref(name, commit, tree / inside))
        yield found
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(END_S)


def dirty() -> str:
    """Say that there are changes which no commit holds; "" where there are none."""
    changed = _git("status", "--porcelain").splitlines()
    if not changed:
        return ""
    return (
        f"{count(len(changed), 'file')} of this tree {'is' if len(changed) == 1 else 'are'} not as git "
        f"has {'it' if len(changed) == 1 else 'them'}: that is not measured, only what is committed."
    )


def _commit(name: str) -> str:
    try:
        return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ScaleoutError:
        raise ScaleoutError(
            f"git knows no commit {name!r} here: fetch it first (in GitHub's checkout action: "
            "fetch-depth: 0), or name another one."
        ) from None


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ScaleoutError(f"git cannot be started ({error.strerror}).") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ScaleoutError(f"git {words[0]}: {said[-1] if said else f'status {done.returncode}'}.")
    return done.stdout.strip()
