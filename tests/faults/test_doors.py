"""Each door takes anything: what a file or a command line holds ends in a value of the right type
or in one sentence, never in another exception. Records, points and tables have such tests beside
their modules."""

import dataclasses
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import untrusted
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleout.base.errors import ScaleoutError
from scaleout.course import history
from scaleout.jobs.job import Job
from scaleout.launch import slurm
from scaleout.site import Site
from scaleout.teaching.collect import STATES

usual = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**30, -1, 0, 1, True])
WORDS = st.text(max_size=12) | st.sampled_from(["a", "a\nb", "$(id)", "-x", "..", "/", "a;b", "²"])
PLAIN = st.none() | NUMBERS | WORDS
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
BYTES = st.binary(max_size=80)


def _json(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with untrusted.at_work(tmp_path_factory.mktemp("doors") / "workshop") as folder:
        yield folder


@pytest.fixture
def topic(place: Path) -> Path:
    """The results of a lab."""
    folder = place.parent / "results/00_tiny"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


CHECK = st.fixed_dictionaries({"todo": JSON, "state": JSON | st.sampled_from(STATES)})


@usual
@given(lines=st.lists(CHECK | JSON | BYTES, max_size=4))
def test_checks_of_ones_own(topic: Path, lines: list[Any]) -> None:
    good = b'{"todo": 7, "state": "passed"}'
    (topic / "checks.jsonl").write_bytes(b"\n".join([*map(_json, lines), good]) + b"\n")
    states = history.last_states(topic / "checks.jsonl")
    assert dict(states)[7] == "passed"
    assert all(type(todo) is int and isinstance(state, str) for todo, state in states)


FIELDS = [field.name for field in dataclasses.fields(Site)]
GIVEN = st.dictionaries(st.sampled_from(FIELDS) | WORDS, JSON, max_size=4)


def _toml(value: Any) -> str:
    """A value as TOML has it, and near enough to it where TOML has none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    return {None: '""', True: "true", False: "false"}.get(value, repr(value))


@usual
@given(table=GIVEN, more=st.sampled_from(["", 'scheduler = "slurm"\n']))
def test_a_site_of_any_keys(tmp_path: Path, table: dict[str, Any], more: str) -> None:
    path = tmp_path / "site.toml"
    text = more + "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in table.items())
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        _is_sound(Site.read(path))
    except ScaleoutError as error:
        assert str(error)


def _is_sound(site: Site) -> None:
    """What was read can be used: a job script of it has no line that nobody wrote."""
    script = slurm.dry_run(
        Job.asked(
            ["python", "a.py"], name="a", site=dataclasses.replace(site, scratch=""), queued=True
        )
    )
    asked = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    fixed = {"job-name", "nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "time", "output"}
    fixed |= {"comment", "partition", "account", "reservation"}
    own = [line for line in asked if line.removeprefix("#SBATCH --").partition("=")[0] in fixed]
    assert len(own) <= len(fixed) + len(site.sbatch)
    assert len(asked) - len(own) <= len(site.sbatch) + 1  # no-requeue


COMMANDS = {
    "run": ("train.py 00_tiny nosuch -n -t --env --site --timeout --hosts -N --bind --python --"),
    "submit": ("train.py 00_tiny -n -t --env --timeout -N"),
    "sweep": "-n -t --env --metric --reduce --lower --repeat --search --timeout --name -- python train.py",
    "compare": "-n -t --env --rounds --least --guess --metric --name --site -- python train.py :: ./-x.py",
    "scaling": "csv/good.csv csv/nan.csv --predict",
    "report": "bad nosuch csv/good.csv --again --check --accuracy --notes",
    "hint": "00_tiny 1",
    "collect": "bad nosuch",
    "release": "x.zip --answers",
}
VALUES = WORDS | NUMBERS.map(str) | st.sampled_from(
    ["1", "2", "1,2", "A=1", "A=1,2", "sites/key.toml", "sites/good.toml", "fifo.toml", "a,b", "(",
     "9" * 400, "x" * 300]
)  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(sorted(COMMANDS)))
    known = st.sampled_from(COMMANDS[command].split())
    words = draw(st.lists(known | VALUES, max_size=7))
    fixed = ["--site", "sites/slurm.toml", "--dry-run"] if command == "submit" else []
    return [command, *fixed, *words]


@settings(usual, max_examples=300)
@given(words=command_lines())
def test_any_command_line(place: Path, words: list[str]) -> None:
    before = untrusted.tree(place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status, out, errors = untrusted.answer(words)
    except AssertionError as job:
        assert str(job) == "a job was started"
    else:
        assert status in (0, 1, 2) and "Traceback" not in out + errors, (status, errors)
        assert status != 2 or errors.startswith("scaleout")
    assert untrusted.tree(place) == before
