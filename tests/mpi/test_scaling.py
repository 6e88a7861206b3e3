"""07_scaling: the wires between two ranks, the step that waits for each sum, and the training that
goes on."""

import os
import random
import re
import signal
import subprocess
import sys
import time
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
        env=WIRES[wire], echo=False, timeout=300,
    )  # fmt: skip
    metrics = job.records["metrics"].iloc[0]
    assert [step["bytes"] for step in metrics["steps"]] == [4096, 1 << 20]
    # The shortest round: a rank may lose its core in any of the others.
    assert [min(step["compute_s"]) > 1e-5 for step in metrics["steps"]] == [True, False]
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


def _train(folder: Path, every: int = 3) -> "subprocess.Popen[str]":
    words = ["--folder", str(folder), "--steps", "120", "--every", str(every)]
    return subprocess.Popen(
        [sys.executable, "-m", "mpi4py", str(LAB / "train.py"), *words],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def _steps(said: str) -> tuple[int, int]:
    """The step that a training went on from, and the last that it kept."""
    began = int(re.search(r"from step (\d+)", said)[1])
    return began, max([began, *map(int, re.findall(r"saved: step (\d+)", said))])


def test_a_training_that_is_killed_loses_one_interval_at_most_and_ends_the_same(
    tmp_path: Path,
) -> None:
    whole = _train(tmp_path / "whole").communicate(timeout=300)[0]
    chance = random.Random(7)
    kept = kills = 0
    while kills < 20:
        job = _train(tmp_path / "killed")
        said = job.stdout.readline()
        if "from step" not in said:  # it names the checkpoint first
            said += job.stdout.readline()
        time.sleep(chance.uniform(0, 0.03))
        job.kill()
        said += job.communicate(timeout=300)[0]
        kills += job.returncode == -signal.SIGKILL
        if job.returncode == 0 and kills < 20:  # done before the kill: once more from the start
            assert said.splitlines()[-1].split()[-1] == whole.splitlines()[-1].split()[-1]
            for path in (tmp_path / "killed").iterdir():
                path.unlink()
            kept = 0
            continue
        began, last = _steps(said)
        # What is told as kept is there; a save that was not told any more may be there too.
        assert kept <= began <= kept + 3
        kept = last
    end = _train(tmp_path / "killed").communicate(timeout=300)[0]
    assert _steps(end)[0] >= kept
    if "weights" in end:  # the last kill may have come after the last save
        assert end.splitlines()[-1] == whole.splitlines()[-1]


def test_a_warned_training_saves_and_stops(tmp_path: Path) -> None:
    job = _train(tmp_path, every=1000)
    said = job.stdout.readline()
    job.send_signal(signal.SIGUSR1)
    said += job.communicate(timeout=300)[0]
    began = job.returncode, _steps(said)
    again = _train(tmp_path, every=1000).communicate(timeout=300)[0]
    save_ms, interval_s = map(
        float, re.search(r"save took (\S+) ms.* every (\S+) s\.", said).groups()
    )
    assert interval_s == pytest.approx((2 * save_ms / 1e3 * 3 * 3600) ** 0.5, rel=0.02)
    assert began[0] == 0 and _steps(again)[0] == began[1][1] > 0


def test_a_warning_that_comes_when_all_have_stopped_ends_no_rank(tmp_path: Path) -> None:
    # Python gives a handler of its own back before MPI_Finalize, but not what is ignored.
    program = f"""
import runpy, signal, sys
sys.argv = ["train.py", "--steps=1", "--folder={tmp_path}"]
runpy.run_path({str(LAB / "train.py")!r}, run_name="__main__")
print(signal.getsignal(signal.SIGUSR1).name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "SIG_IGN", done.stderr
