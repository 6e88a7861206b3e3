"""Bad input on the command line: one row for each sentence that a person can get. Each is answered in
that one sentence, without a traceback, before a job starts, and nothing is written."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import untrusted
from faults.untrusted import answer, tree

# What is typed, with variables before it as in a shell: a piece of the sentence.
TYPED = {
    "run": "the following arguments are required: LAB",
    "run nosuch": "There is no lab called 'nosuch'. There are",
    "run nosuch.py": "There is no script nosuch.py: check the path",
    "run train.sh": "train.sh is a shell script, and each rank would",
    "run train.ipynb": "train.ipynb is a notebook: open it with  make lab  or",
    "run .": ". is a folder: give a script in it, such as train.py.",
    "run ./csv/good.csv": "csv/good.csv is no Python script: scaleout run takes",
    "run -m a/b": "-m takes a module, such as pkg.train, not a/b.",
    "run train.py extra": "unrecognized arguments: extra, put the script's",
    "run train.py -n 0": "A job needs at least 1 rank and 1 thread, in",
    "run train.py -n two": "argument -n/--ranks: invalid int value: 'two'",
    "run train.py -n 100000": "100,000 ranks would take all memory of 1",
    "run train.py --timeout nan": "A job needs a time limit in seconds, above 0",
    "run train.py --env A": "--env takes NAME=VALUE, such as --env",
    "run train.py --env 'A;touch x;B=1'": "'A;touch x;B' is no name of a variable: take",
    "run train.py --env SCALEOUT_NODES=7": "SCALEOUT_NODES is what scaleout itself tells a",
    "run train.py --hosts=a,-oProxyCommand=x": "'-oProxyCommand=x' is no name of a machine: name",
    "run train.py --hosts a,a": "a is there twice: name each machine once",
    "run train.py --hosts a -N 2": "2 nodes asked for, but there are 1 to use here",
    "run train.py --hosts a,b --site sites/slurm.toml": "--hosts and a site with a scheduler exclude",
    "run train.py --python nosuch": "There is no Python to start at nosuch: give",
    "run train.py --site nosuch.toml": "The site file nosuch.toml cannot be read: No",
    "run train.py --site sites/key.toml": "sites/key.toml: there is no key 'mpirum'; a",
    "run train.py --site sites/toml.toml": "The site file sites/toml.toml cannot be read",
    "run train.py --site sites/type.toml": "sites/type.toml: mpirun must be a name or a",
    "run train.py --site sites/options.toml": "sites/options.toml: options must be a list, such",
    "run train.py --site sites/env.toml": "sites/env.toml: env must be a table: a line",
    "run train.py --site sites/cores.toml": "sites/cores.toml: cores must be a number, 0 or",
    "run train.py --site sites/launcher.toml": 'sites/launcher.toml: launcher must be "hydra"',
    "run train.py --site sites/bind.toml": 'sites/bind.toml: bind must be "core" or "none"',
    "run train.py --site sites/hostsoption.toml": "sites/hostsoption.toml: '-V' is no name of a",
    "run train.py --site sites/hoststwice.toml": "sites/hoststwice.toml: a is there twice: name",
    "run train.py --site sites/sshalone.toml": "sites/sshalone.toml: ssh needs hosts: add a",
    "run train.py --site sites/scheduler.toml": 'sites/scheduler.toml: scheduler must be "slurm"',
    "run train.py --site sites/alone.toml": "partition needs a scheduler: add a line",
    "run train.py --site sites/both.toml": "sites/both.toml: hosts and scheduler exclude",
    "run train.py --site sites/openmpislurm.toml": "sites/openmpislurm.toml: several nodes need",
    "submit train.py --site sites/start.toml": 'sites/start.toml: start must be "mpirun" or',
    "submit train.py --site sites/partitionline.toml": "sites/partitionline.toml: partition must be a",
    "submit train.py --site sites/minutes.toml": "sites/minutes.toml: minutes must be a number",
    "submit train.py --site sites/sbatchline.toml": "sites/sbatchline.toml: sbatch must be a list",
    "submit train.py --site sites/array.toml": "sites/array.toml: sbatch: '--array=0-1' is not for a",
    "submit train.py --site sites/modules.toml": "sites/modules.toml: modules must be a list, such",
    "submit train.py --site sites/scratch.toml": "sites/scratch.toml: scratch must be an",
    "submit train.py --dry-run --site sites/scratchunset.toml": "scratch = '$NO_SUCH_VARIABLE' names a variable",
    "submit train.py --site sites/good.toml": 'sites/good.toml has no scheduler = "slurm"',
    "PATH=/nowhere submit train.py --site sites/slurm.toml": "There is no sbatch here: log in to the cluster",
    "submit train.py --site sites/slurm.toml --dry-run -N 0": "1 ranks cannot be shared out evenly over 0",
    "sweep -n 1,2 --": "There is no command to measure",
    "sweep -n 0 -- python train.py": "-n takes numbers of ranks, 1 or more, such as",
    "sweep -n 1,2 -- nosuchprogram": "There is no program nosuchprogram to start",
    "sweep -n 1,2 -- mpirun -n 2 python train.py": "Leave mpirun out: -n says on how many ranks",
    "sweep -n 1,2 -- python nosuch.py": "There is no script nosuch.py: check what",
    "sweep -n 1 --env 'A=10..1' -- python train.py": "A=10..1 is no range of 1 to 1,000 values: type",
    "sweep -n 1,2 --metric '(' -- python train.py": "--metric '(' is no regular expression: missing",
    "sweep -n 1,2 --repeat 0 -- python train.py": "--repeat takes a number, 1 or more, not 0.",
    "sweep -n 1,2 --reduce min -- python train.py": "--reduce takes sum, mean, max, not 'min'.",
    "sweep -t 1,x -- python train.py": "-t takes numbers with commas between, such as",
    "sweep -n 1,100000 -- python train.py": "100,000 ranks would take all memory of 1",
    "sweep --env A -- python train.py": "--env takes NAME=VALUE1,VALUE2, such as",
    "sweep --env A=, -- python train.py": "A has no value to try: type  --env A=VALUE1",
    "sweep -- python train.py": "There is nothing to sweep over: type, for example,",
    "sweep --env BATCH=1,2 -- python train.py {BACTH}": "Nothing fills {BACTH} in the command: the names are BATCH",
    "sweep -n 1,2 --name ../../x -- python train.py": "A name has letters, digits, - and _, 60 at",
    "compare -- python train.py": "There is one variant, and nothing to compare",
    "compare -- :: python train.py": "A command is missing: put them last, as in  -n 2",
    "compare --rounds 2 -- python train.py :: python ./-x.py": "A comparison needs 3 rounds or more, not 2.",
    "compare --env A=1,2 -- python train.py :: python ./-x.py": "Compare commands, with :: between them, or",
    "scaling nosuch.csv": "nosuch.csv cannot be read: No such file or",
    "scaling csv/empty.csv": "csv/empty.csv needs a first line that names",
    "scaling csv/few.csv": "2 different numbers of nodes are too few to say",
    "scaling csv/words.csv": "csv/words.csv, line 6: 'sixteen,many' holds no",
    "scaling csv/nan.csv": "csv/nan.csv, line 6: nodes are 1 or more, and",
    "scaling csv/binary.csv": "csv/binary.csv is no text in UTF-8: save it",
    "scaling csv/twice.csv": "csv/twice.csv has two columns named rate: which",
    "scaling csv/semicolons.csv": "has semicolons between its columns: save it",
    "scaling fifo.toml": "fifo.toml cannot be read: it is no regular file",
    "scaling csv/good.csv --predict 64,,128": "--predict takes numbers of nodes with commas",
    "check 00_tiny 1 9": "00_tiny has no TODO 9; it has 1.",
    "check 01_broken": "labs/01_broken/checks.py cannot be loaded",
    "check 03_gone": "labs/03_gone/checks.py is missing: fetch the",
    "check 05_empty": "05_empty has no TODO that could be checked",
    "hint 16_nohints 1": "TODO 1 of 16_nohints has no hints.",
    "SCALEOUT_RESULTS=/dev/null run train.py": "Results cannot be written to",
    "SCALEOUT_DATA=train.py data fetch mnist": "train.py cannot be written (File exists): make",
    "release empty": "empty exists already: remove it, or give the",
    "release x.zip --answers 99": "There is no topic '99': there are none.",
    "report": "Name a folder of results or, after --again, a",
    "report nosuch": "There is no folder nosuch: name the one that",
    "report empty": "scaleout sweep --repeat 3",
    "report empty nosuch": "There is no folder nosuch: name the one that",
    "report empty --notes nosuch.md": "nosuch.md cannot be read (No such file",
    "compare --guess 0 -- python train.py :: python train.py 2": "as in guess=1.3; not 0.0",
    "report --again nosuch.html": "nosuch.html cannot be read",
    "collect nosuch": "There is no folder nosuch: give the results",
    "collect empty": "No results there: each attendee's folder holds",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with untrusted.at_work(tmp_path_factory.mktemp("place") / "workshop") as folder:
        yield folder


@pytest.mark.parametrize("typed", TYPED)
def test_bad_input_is_answered_in_one_sentence(
    typed: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = shlex.split(typed)
    if setting := re.fullmatch(r"([A-Z_]+)=(.*)", words[0]):
        monkeypatch.setenv(setting[1], setting[2])
        words.pop(0)
    before = tree(place)
    status, out, errors = answer(words)
    assert (status, out) == (2, ""), (status, out, errors)
    assert errors.startswith("scaleout") and len(errors.splitlines()) == 1, errors
    assert TYPED[typed] in errors
    assert tree(place) == before


def test_a_line_of_the_command_cannot_be_faked_by_what_is_typed() -> None:
    _, _, errors = answer(["run", "a\nb\x1b[2J.py"])
    assert "There is no script a?b?[2J.py" in errors


def test_what_is_right_in_the_same_place_passes(place: Path) -> None:
    assert answer(["scaling", "csv/good.csv", "--predict", "16"])[0] == 0
    words = ["submit", "train.py", "--site", "sites/slurm.toml", "--dry-run"]
    assert answer(words)[1].startswith("#!/bin/bash")
    for name in ("00_tiny", "00", "0"):
        assert answer(["hint", name, "1"])[1] == "Hint 1 of 1: one\n"
    with pytest.raises(AssertionError, match="a job was started"):
        answer(["run", "train.py"])
