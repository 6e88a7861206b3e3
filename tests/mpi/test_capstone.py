"""12_capstone: what a file of slices must hold, and the first version on two ranks."""

from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT, flags, lesson, run_script

from scaleout.jobs.job import JobFailed

pytestmark = [pytest.mark.mpi, pytest.mark.slow, pytest.mark.timeout(600)]

LAB = ROOT / "solutions/12_capstone"
READ = """
    import sys

    sys.path.insert(0, {folder!r})
    from bookkeeping import arguments, slices_for

    slices_for(arguments(""))
"""

# One job, which loads TensorFlow once.
BOTH = """
    import sys

    sys.path.insert(0, {folder!r})
    import first
    import runme
    from bookkeeping import arguments

    for version in (first, runme):
        version.main(arguments("", sys.argv[1:]))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "slices.npz"


def test_a_label_of_2_is_refused_once_and_by_rank_0(file: Path, script, results: Path) -> None:
    slices = lesson("12_capstone", "phantoms").make(4)
    np.savez(file, images=slices.images, labels=2 * slices.labels, patient=slices.patient)
    with pytest.raises(JobFailed) as failed:
        run_script(script(READ.format(folder=str(LAB))), f"--data={file}", ranks=2)
    said = failed.value.run.output
    assert said.count("a label is 2: 1 stands for tumour") == 1
    assert "Traceback" not in said


def test_both_versions_begin_equal_and_two_ranks_of_ours_are_one(
    file: Path, script, results: Path
) -> None:
    """On a file of one's own, in which the only patient of the validation has no tumour."""
    slices = lesson("12_capstone", "phantoms").make(4)
    slices.labels[slices.patient == 2] = 0
    np.savez(file, images=slices.images, labels=slices.labels, patient=slices.patient + 100)
    words = flags({"epochs": 1, "lr": 0.001, "data": file})
    run = run_script(script(BOTH.format(folder=str(LAB))), *words, ranks=2, timeout=300.0)
    assert len(run.records) == 2, run.output
    first, ours = run.records["metrics"]
    assert len({share["start"] for share in [*first["shares"], *ours["shares"]]}) == 1
    assert [len(share["wrote"]) for share in first["shares"]] == [1, 1]
    assert [len(share["wrote"]) for share in ours["shares"]] == [1, 0]
    assert len({share["end"] for share in ours["shares"]}) == 1, "batch norm's averages, too"
    hits, alarms, misses = np.array(ours["counts"]).sum(axis=1)
    assert hits == misses == 0 and ours["dice"][-1] == float(alarms == 0)
