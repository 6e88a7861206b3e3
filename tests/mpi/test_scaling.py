"""07_scaling: the wires between two ranks, and the step that waits for each sum."""

from pathlib import Path

import pytest

from scaleout import lab

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(120)]

LAB = Path(__file__).resolve().parents[2] / "solutions" / "07_scaling"
SENT = Path("/sys/class/net/lo/statistics/tx_bytes")
NO_MEMORY = {"MPIR_CVAR_NOLOCAL": 1}
WIRES = {
    "TCP": NO_MEMORY | {"UCX_TLS": "tcp"},
    "sockets": NO_MEMORY | {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "sockets"},
}


@pytest.fixture(autouse=True)
def _here(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAB.parents[1])
    monkeypatch.setenv("SCALEOUT_QUICK", "1")


@pytest.mark.skipif(not SENT.exists(), reason="the kernel does not count what goes over lo")
@pytest.mark.parametrize("wire", WIRES)
def test_messages_go_over_the_wire_that_was_asked_for(wire: str) -> None:
    before = int(SENT.read_text())
    job = lab("07_scaling", solution=True).run(
        script="wire.py", ranks=2, threads=1, bytes=[4096, 1 << 20], compute=[0.001, 0],
        env=WIRES[wire], echo=False, timeout=60,
    )  # fmt: skip
    metrics = job.records["metrics"].iloc[0]
    assert [step["bytes"] for step in metrics["steps"]] == [4096, 1 << 20]
    assert [step["compute_s"] > 1e-5 for step in metrics["steps"]] == [True, False]
    # Both ranks sent each message thrice, one of them to warm up.
    assert int(SENT.read_text()) - before > 6 * metrics["sizes"][-1]


def test_a_step_that_waits_has_the_same_sum() -> None:
    ways = [
        lab("07_scaling", solution=True).run(
            ranks=2, threads=1, batch=64, width=64, steps=2, blocking=blocking, echo=False
        )
        for blocking in (True, False)
    ]
    waited, began = (job.records["metrics"].iloc[0]["shares"][0] for job in ways)
    assert (waited["begun"], began["begun"]) == (0, 4)
    assert waited["sum"] == pytest.approx(began["sum"])
