"""One link for a class: a branch that only grows, and pulls by nbgitpuller that lose nothing of an
attendee's."""

import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import nbformat
import pytest
from nbgitpuller.pull import GitPuller

from scaleout import cli
from scaleout.base.errors import ScaleoutError
from scaleout.course import checks
from scaleout.course.lab import lab
from scaleout.course.masters import generate
from scaleout.teaching import release

RUNME = '''"""Adds numbers."""

first, second = 1, 2
# TODO 1: add them.  (1 line)
# BEGIN SOLUTION
total = first + second
# STARTER: total = 0
# END SOLUTION
'''
CHECKS = '''from scaleout import todo


@todo(
    1,
    hints=[
        "Two numbers, one sum.",
        "Which sign adds?",
        "total = first "
        "+ second",  # two pieces
    ],
)
def they_are_added(job):
    """The sum."""
'''


def git(at: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def book(*sources: str) -> str:
    cells = [nbformat.v4.new_code_cell(text, id=f"cell{n}") for n, text in enumerate(sources)]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells)) + "\n"


def commit(root: Path, files: dict[str, str]) -> None:
    """The instructor's next commit on main."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    generate()
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "next")


def publish(root: Path, files: dict[str, str]) -> None:
    """The next commit, released and pushed, without force."""
    commit(root, files)
    assert release.to_branch("class")
    git(root, "push", "-q", "origin", "class")


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one topic, released once to where others can read it."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "somebody@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("SCALEOUT_RESULTS", str(tmp_path / "results"))
    root = tmp_path / "course"
    for folder in ("labs", "notebooks"):
        (root / folder).mkdir(parents=True)
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(root, "init", "-q", "-b", "main")
    git(root, "remote", "add", "origin", (tmp_path / "remote.git").as_uri())
    monkeypatch.chdir(root)
    files = {"runme.py": RUNME, "checks.py": CHECKS, "extra.py": "print('a side script')\n"}
    topic = {f"solutions/00_tiny/{name}": text for name, text in files.items()}
    notebook = {"solutions/00_tiny.ipynb": book("a = 1", "b = 2", "c = 3")}
    publish(root, {**topic, **notebook, "class-copy/README.md": "for a class\n", "README.md": ""})
    return root


def follow_link(home: Path, **how: bool) -> Path:
    """What a click on the link does in an attendee's home; their copy."""
    asked = dict(parse_qsl(urlsplit(release.link("class")).query))
    folder = home / asked["targetpath"]
    list(GitPuller(asked["repo"], str(folder), branch=asked["branch"], **how).pull())
    assert (home / asked["urlpath"].removeprefix("lab/tree/")).is_file()
    return folder


@pytest.fixture
def copy(course: Path, tmp_path: Path) -> Path:
    return follow_link(tmp_path)


def test_the_branch_has_the_labs_and_no_answer(
    course: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = git(course, "ls-tree", "-r", "--name-only", "class").splitlines()
    assert {"labs/00_tiny/runme.py", "class-copy/starts/00_tiny/runme.py"} <= set(names)
    every = "".join(f"{name}\n{(copy / name).read_text()}" for name in names)
    assert "Which sign adds?" in every and "for a class" in every
    assert "solutions" not in every and "+ second" not in every
    monkeypatch.chdir(copy)  # who asks is shown the third hint
    said = [checks.hint(lab("00_tiny", solution=False), 1) for _ in range(3)]
    assert said[1:] == ["Hint 2 of 3: Which sign adds?", "Hint 3 of 3: total = first + second"]


def test_a_release_touches_neither_work_tree_nor_index(course: Path) -> None:
    commit(course, {"README.md": "news\n", "solutions/00_tiny/extra.py": "print('news')\n"})
    (course / "labs/00_tiny/runme.py").write_text("an instructor tries the lab\n")
    before = (course / ".git/index").read_bytes(), git(course, "rev-parse", "HEAD")
    assert release.to_branch("class")
    assert before == ((course / ".git/index").read_bytes(), git(course, "rev-parse", "HEAD"))
    assert git(course, "status", "--porcelain") == "M labs/00_tiny/runme.py"


def test_the_history_only_grows_from_another_clone_too(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = git(course, "rev-parse", "class")
    assert release.to_branch("class") == "" and git(course, "rev-parse", "class") == first
    git(course, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", "-b", "main", (tmp_path / "remote.git").as_uri(), "colleague")
    monkeypatch.chdir(tmp_path / "colleague")
    publish(tmp_path / "colleague", {"solutions/00_tiny/extra.py": "print('a colleague')\n"})
    git(course, "fetch", "-q")
    monkeypatch.chdir(course)
    publish(course, {"solutions/00_tiny/extra.py": "print('ours')\n"})
    history = git(course, "rev-list", "class").split()
    assert len(history) == 3 and history[-1] == first


def test_the_branch_of_an_older_release_goes_on(course: Path, tmp_path: Path, copy: Path) -> None:
    old = tmp_path / "old"
    git(tmp_path, "clone", "-q", "-b", "class", (tmp_path / "remote.git").as_uri(), "old")
    (old / "etc").mkdir()
    git(old, "mv", "class-copy/starts", "etc/starts")
    git(old, "commit", "-q", "-m", "as it was")
    git(old, "push", "-q")
    follow_link(course.parent)
    assert (copy / "etc/starts/00_tiny/runme.py").is_file()
    git(course, "fetch", "-q")
    publish(course, NEWS)
    follow_link(course.parent)
    assert not (copy / "etc").exists() and (copy / "class-copy/starts/00_tiny/runme.py").is_file()
    assert "Adds two" in (copy / "labs/00_tiny/runme.py").read_text()


@pytest.mark.parametrize(
    ("changed", "branch", "words"),
    [
        ("solutions/00_tiny/runme.py", "class", "runme.py is not as git has it"),
        ("solutions/00_tiny/new.py", "class", "new.py is not as git has it"),
        ("a_note_of_my_own.txt", "main", "main is no branch that this command made"),
        ("a_note_of_my_own.txt", "a class", "'a class' is not a valid branch name"),
    ],
)
def test_what_cannot_be_released_is_one_sentence(
    changed: str, branch: str, words: str, course: Path
) -> None:
    (course / changed).write_text("x = 1\n")
    before = git(course, "for-each-ref")
    with pytest.raises(ScaleoutError, match=words):
        release.to_branch(branch)
    assert git(course, "for-each-ref") == before


# The six cases of nbgitpuller's page on merging

NEWS = {"solutions/00_tiny/runme.py": RUNME.replace("Adds", "Adds two")}


def test_1_an_edited_cell_stays_beside_a_new_one(course: Path, copy: Path) -> None:
    path = copy / "notebooks/00_tiny.ipynb"
    mine = nbformat.read(path, as_version=4)
    mine.cells[0] |= {"source": "a = 7", "outputs": [nbformat.v4.new_output("stream", text="7")]}
    nbformat.write(mine, path)
    publish(course, {"solutions/00_tiny.ipynb": book("a = 1", "b = 2", "c = 4")})
    follow_link(course.parent)
    now = nbformat.read(path, as_version=4).cells
    assert [cell.source for cell in now] == ["a = 7", "b = 2", "c = 4"]
    assert now[0].outputs[0].text == "7"


def test_2_and_3_a_filled_gap_stays_and_another_line_is_renewed(course: Path, copy: Path) -> None:
    path = copy / "labs/00_tiny/runme.py"
    path.write_text(path.read_text().replace("total = 0", "total = mine"))
    newer = RUNME.replace("Adds", "Adds two").replace("total = 0", "total = None")
    publish(course, {"solutions/00_tiny/runme.py": newer})
    follow_link(course.parent)
    assert path.read_text() == newer[: newer.index("# BEGIN")] + "total = mine\n"
    assert "total = None" in (copy / "class-copy/starts/00_tiny/runme.py").read_text()


def test_4_a_deleted_file_comes_back_and_one_that_we_drop_stays(course: Path, copy: Path) -> None:
    (copy / "labs/00_tiny/runme.py").unlink()
    (copy / "labs/00_tiny/extra.py").write_text("print('mine')\n")
    git(course, "rm", "-q", "solutions/00_tiny/extra.py", "labs/00_tiny/extra.py")
    publish(course, NEWS)
    follow_link(course.parent)
    assert "Adds two" in (copy / "labs/00_tiny/runme.py").read_text()
    assert (copy / "labs/00_tiny/extra.py").read_text() == "print('mine')\n"


def test_5_a_file_of_theirs_makes_room_for_a_new_one(course: Path, copy: Path) -> None:
    (copy / "notebooks/01_next.ipynb").write_text(book("mine"))
    publish(course, {"solutions/01_next.ipynb": book("ours")})
    follow_link(course.parent)
    assert "ours" in (copy / "notebooks/01_next.ipynb").read_text()
    (kept,) = copy.glob("notebooks/01_next__*.ipynb")
    assert "mine" in kept.read_text()


def test_6_a_commit_of_theirs_stays_and_so_does_all_if_histories_part(
    course: Path, copy: Path
) -> None:
    (copy / "labs/00_tiny/extra.py").write_text("print('mine')\n")
    git(copy, "commit", "-q", "-a", "-m", "mine")
    publish(course, NEWS)
    follow_link(course.parent)
    assert (copy / "labs/00_tiny/extra.py").read_text() == "print('mine')\n"
    assert "Adds two" in (copy / "labs/00_tiny/runme.py").read_text()
    for ref in ("refs/heads/class", "refs/remotes/origin/class"):  # what nobody should do
        git(course, "update-ref", "-d", ref)
    release.to_branch("class")
    git(course, "push", "-q", "--force", "origin", "class")
    with pytest.raises(subprocess.CalledProcessError):
        follow_link(course.parent)
    follow_link(course.parent, backup=True)
    (kept,) = course.parent.glob("scaleout-workshop_backup_*")
    assert (kept / "labs/00_tiny/extra.py").read_text() == "print('mine')\n"


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("git@git.example.org:us/course.git", "https://git.example.org/us/course.git"),
        ("ssh://git@git.example.org:22/us/course", "https://git.example.org/us/course"),
        ("https://me:secret@git.example.org:8443/us/c", "https://git.example.org:8443/us/c"),
        ("/shared/course.git", release.REPOSITORY),
    ],
)
def test_the_link_has_an_address_for_everybody(origin: str, address: str, course: Path) -> None:
    git(course, "remote", "set-url", "origin", origin)
    link = urlsplit(release.link("class", "https://hub.example.org/"))
    assert (link.netloc, link.path) == ("hub.example.org", "/hub/user-redirect/git-pull")
    assert dict(parse_qsl(link.query))["repo"] == address


def test_a_release_to_a_branch_prints_its_link(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(course, "remote", "set-url", "origin", "git@git.example.org:us/course.git")
    assert cli.main(["release", "--git", "class"]) == 0
    words = "https://YOUR-HUB/hub/user-redirect/git-pull?repo=https%3A%2F%2Fgit.example.org%2Fus"
    assert words in capsys.readouterr().out
    assert cli.main(["release"]) == 2 and "Where to?" in capsys.readouterr().err
