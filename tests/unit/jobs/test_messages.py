"""Each message that people meet has its section, and a job that fails with it names that."""

import re
from pathlib import Path

import pytest

from scaleout import machine
from scaleout.doctor import checks
from scaleout.doctor import report as doctor
from scaleout.doctor.checks import Pair
from scaleout.jobs import failures, messages
from scaleout.jobs.job import Run

PAGE = Path(__file__).resolve().parents[3] / messages.PAGE
HEADINGS = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

SEEN = {
    "RuntimeError: Intra op parallelism cannot be modified after initialization.": "intra-op-parallelism-cannot-be-",
    "ImportError: libmpi.so.12: cannot open shared object file: No such file": "libmpiso12-cannot-open",
    "One or more tensors were submitted to be reduced by subset of ranks and": "stalled-tensor",
    "AttributeError: 'Variable' object has no attribute 'ref'": "variable-object-has-no-attribute-ref",
    "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'": "distributed-package-doesnt-have",
    "URLError: <urlopen error [Errno -3] Temporary failure in name resolution>": "urlopen-error",
    "OSError: [Errno 98] Address already in use": "address-already-in-use",
    "DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, "
    "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use": "address-already-in-use",
    "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5555')": "address-already-in-use",
    "RuntimeError: Failed to bind to 0.0.0.0:8476: errno=98 UNKNOWN: Address already in use": "address-already-in-use",
    "RuntimeError: operator torchvision::nms does not exist": "operator-torchvisionnms-does-not-exist",
    "There are not enough slots available in the system": "not-enough-slots",
    "jupyter_client.kernelspec.NoSuchKernel: No such kernel named python3": "nosuchkernel",
    "HorovodInternalError: Horovod has been shut down. This was caused by": "horovod-has-been-shut-down",
}


@pytest.mark.parametrize("heading", messages.MESSAGES)
def test_every_message_has_its_section_with_something_to_do(heading: str) -> None:
    assert heading in HEADINGS
    body = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    assert len(body) > 150


def test_a_script_that_starts_its_own_workers_is_told_to_take_one_rank() -> None:
    body = (
        PAGE.read_text(encoding="utf-8").split("## Address already in use\n")[1].split("\n## ")[0]
    )
    assert "**Type:** `-n 1` for a script that starts its own workers" in body


def test_what_the_page_says_to_type_can_be_typed() -> None:
    assert not re.findall(r"`[^`\n]*\bADDRESS\b[^`\n]*`", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["cluster", "errors", "trust"])
def test_files_of_the_workshop_that_a_page_names_are_there(page: str) -> None:
    root = PAGE.parents[1]
    named = re.findall(
        r"`((?:tests|src|tools|labs|solutions|docs)/[\w./-]*\w)`",
        (PAGE.parent / f"{page}.md").read_text(),
    )
    assert [path for path in named if not (root / path).exists()] == []


@pytest.mark.parametrize(("text", "anchor"), SEEN.items())
def test_a_job_that_fails_names_the_section(text: str, anchor: str, tmp_path: Path) -> None:
    lines = [(0, "working"), (1, "Traceback (most recent call last):"), (1, text)]
    job = Run("id", "mine", "mpirun", tmp_path, 2, 1, 1, 1.0, lines)
    assert f"What it means: {PAGE}#{anchor}" in failures.explain(job)


def test_the_cause_comes_before_the_echo(tmp_path: Path) -> None:
    block = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "AttributeError: 'Variable' object has no attribute 'ref'",
    ]
    lines = [(0, "Horovod has been shut down"), *((1, line) for line in block)]
    assert "#variable-object" in failures.explain(
        Run("id", "mine", "mpirun", tmp_path, 2, 1, 1, 1.0, lines)
    )


def test_an_echo_alone_is_no_reason(tmp_path: Path) -> None:
    own = [
        (1, "Traceback (most recent call last):"),
        (1, "ValueError: mine"),
        (0, "Horovod has been shut down"),
    ]
    assert "What it means" not in failures.explain(
        Run("id", "mine", "mpirun", tmp_path, 2, 1, 1, 1.0, own)
    )


def test_an_unknown_failure_names_none(tmp_path: Path) -> None:
    job = Run("id", "mine", "mpirun", tmp_path, 2, 1, 3, 1.0, [(0, "I give up")])
    assert "What it means" not in failures.explain(job) and messages.section("all is well") is None


@pytest.mark.parametrize("heading", messages.FINDINGS)
def test_every_finding_has_its_section(heading: str) -> None:
    assert heading in HEADINGS


def test_the_doctors_own_sentences_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [{"mpi4py": {"world": [0, 1]}, "stage": "done"}] * 2
    found = [
        checks.two_processes(Pair(0, "", "", tuple(worlds)), machine.facts(), {}, {}),
        checks.kernel({}, "", {}),
        checks.kernel({"argv": ["/other/python"], "folder": "/other"}, "/other", {}),
        checks.memory(2.0, None, 1.0),
        checks.mpirun_on_path(machine.facts(), "/other/mpirun", "mpirun (Open MPI) 4.1.4"),
    ]
    assert all(check.status != "ok" and check.page for check in found), [
        (c.seen, c.page) for c in found
    ]
    monkeypatch.setattr(doctor, "examine", lambda facts: found)
    assert list(doctor.frame().more) == [check.page for check in found]


@pytest.mark.parametrize("base", ["sys.prefix", "site.USER_BASE"])
def test_without_a_checkout_the_page_is_the_one_that_pip_brought(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "lib/python3.11/site-packages/scaleout/jobs/messages.py"
    monkeypatch.setattr(messages, "__file__", str(module))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "none"))
    monkeypatch.setattr("site.USER_BASE", None)
    monkeypatch.setattr(base, str(tmp_path))
    assert messages.page() == messages.PAGE
    (tmp_path / messages.SHARED).parent.mkdir(parents=True)
    (tmp_path / messages.SHARED).touch()
    assert messages.page() == str(tmp_path / messages.SHARED)
