"""11_parallelism's server.py: TensorFlow's own parameter server, in real processes on this machine.
Updates that wait against one rank alone, bytes against the formula, and processes that are killed."""

import re
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers import left_of

from scaleout import lab
from scaleout.jobs.job import Run

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
FEW_CORES = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def _run(ranks: int, **how: object) -> Run:
    given = {"threads": 1, "env": FEW_CORES, "timeout": 300, "echo": False, "step_ms": 2}
    topic = lab("11_parallelism", solution=True)
    return topic.run(ranks=ranks, script="more/server.py", **{**given, **how})


def _metrics(run: Run) -> dict[str, Any]:
    (row,) = run.records.to_dict("records")
    return {name.removeprefix("metrics."): value for name, value in row.items()}


def _bytes_are_as_the_formula_says(found: dict[str, Any]) -> None:
    for each in found["by_servers"]:
        for way in ("sent", "received"):
            assert each[way] == pytest.approx(found["formula"][way], rel=0.1), (way, found)
    pulled = sum(each["received"] for each in found["by_workers"])
    assert pulled == pytest.approx(found["used"] * 4 * found["parameters"], rel=0.1)


def _all_is_gone(run: Run) -> None:
    assert not left_of(run.id)
    listening = [one.laddr.port for one in psutil.net_connections("tcp") if one.status == "LISTEN"]
    ports = {int(port) for port in re.findall(r"port (\d+)", run.output)}
    assert ports and not ports.intersection(listening)


def _waits_for_all(servers: int, workers: int) -> None:
    gradients = 12 * workers
    run = _run(1 + servers + workers, servers=servers, gradients=gradients, rule="sync")
    found = _metrics(run)
    assert (found["variant"], found["used"], found["asked"]) == ("sync", gradients, gradients)
    assert found["off"] < 1e-5, "an update that waits is the update of one rank alone"
    assert found["loss"] < found["curve"][0][2]
    _bytes_are_as_the_formula_says(found)
    _all_is_gone(run)


def test_updates_that_wait_are_as_serial_and_send_what_the_formula_says() -> None:
    _waits_for_all(1, 2)


@pytest.mark.choice
@pytest.mark.parametrize("rule", ["async", "sync"])
def test_a_killed_worker_costs_at_most_the_gradient_it_was_at(rule: str) -> None:
    run = _run(4, gradients=90, rule=rule, kill="worker")
    found = _metrics(run)
    assert found["killed"] == "worker" and found["why"] == "" and run.status == 0
    assert 45 <= found["killed_at"][1] < 90, "it is killed when half of the gradients are used"
    # Another worker does its gradient again; what it had pushed by then counts twice.
    assert 0 <= found["used"] - found["asked"] <= 1
    assert f"used {found['used']}: 0 lost" in run.output
    assert found["loss"] < found["curve"][0][2]
    if rule == "sync" and found["used"] == found["asked"]:
        assert found["off"] < 1e-5, "nothing is lost: the weights are those of one rank alone"
    *living, dead = [each["received"] for each in found["by_workers"]]
    assert 0 < dead < min(living), "what it had received until then counts"
    _bytes_are_as_the_formula_says(found)
    _all_is_gone(run)
