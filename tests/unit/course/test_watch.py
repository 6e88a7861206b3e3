"""Save the file and see the verdict, at once where no job is needed; Ctrl-C ends it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import COMMAND, until

from scaleout.course.marks import cut
from scaleout.course.masters import generate

pytestmark = pytest.mark.mpi


class Watch:
    """The command at work, and what it has said since one looked last."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "said.txt"
        self.script = folder / "labs/00_tiny/runme.py"
        self.seen = 0
        with open(self.file, "w") as out:
            self.process = subprocess.Popen(
                [COMMAND, "check", "--watch", "00_tiny"], stdout=out, stderr=out, cwd=folder
            )

    def save(self, text: str, name: str = "runme.py") -> None:
        new = self.script.with_name("new")
        new.write_text(text)
        os.replace(new, self.script.with_name(name))

    def says(self, words: str) -> str:
        """What came up to these words."""
        until(lambda: words in self.file.read_text()[self.seen :], what=f"{words!r}")
        text = self.file.read_text()[self.seen :]
        self.seen += text.index(words) + len(words)
        return text


@pytest.fixture
def watch(workshop: Path) -> Iterator[Watch]:
    watching = Watch(workshop)
    yield watching
    watching.process.kill()
    watching.process.wait()


def test_each_save_is_judged_and_ctrl_c_ends_it(watch: Watch) -> None:
    given = watch.script.read_text()
    watch.says("TODO 2  not started")
    watch.says("Waiting for runme.py to be saved; Ctrl-C ends this.")
    watch.save(given.replace("rank = 0", "rank = (0"))
    watch.says("Python cannot read line 11 of runme.py")
    watch.says("Waiting for")
    master = watch.script.parents[2] / "solutions/00_tiny/runme.py"
    watch.save(cut(master.read_text(), keep=lambda number: True))
    watch.says("TODO 2  passed")
    watch.says("Waiting for")
    watch.process.send_signal(signal.SIGINT)
    assert watch.process.wait(30) == 0
    assert "Traceback" not in watch.file.read_text()[watch.seen :]


SECOND = """
# TODO 3: add them up.  (1 line)
# BEGIN SOLUTION
total = 3
# END SOLUTION
"""
CHECK = """

@todo(3, hints=["How?", "So."], script="second.py")
def added(job):
    \"\"\"They are added up.\"\"\"
    job()
"""


def test_a_lab_of_two_scripts_is_judged_when_either_is_saved(workshop: Path) -> None:
    topic = workshop / "solutions/00_tiny"
    (topic / "second.py").write_text(SECOND.lstrip())
    with open(topic / "checks.py", "a") as checks:
        checks.write(CHECK)
    generate()
    watch = Watch(workshop)
    try:
        watch.says("TODO 3  not started")
        watch.says("Waiting for runme.py or second.py to be saved")
        watch.save("total = (3\n", "second.py")
        watch.says("of second.py")
        watch.says("Waiting for")
        watch.save("rank = (0\n")
        watch.says("of runme.py")
    finally:
        watch.process.kill()
        watch.process.wait()
