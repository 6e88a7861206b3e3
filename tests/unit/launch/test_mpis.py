"""How a job starts on the other MPI libraries: whose options mpirun gets, which library takes the
place of MPICH's."""

import os
from pathlib import Path

import pytest

from scaleout import machine
from scaleout.jobs.binding import place
from scaleout.jobs.job import Job
from scaleout.launch import mpis
from scaleout.machine import Core
from scaleout.site import Site


@pytest.mark.parametrize(
    ("ranks", "threads", "cores", "wanted"),
    [
        (2, 1, 2, ["--map-by", "slot:PE=1", "--bind-to", "core"]),
        (2, 4, 8, ["--map-by", "slot:PE=4", "--bind-to", "core"]),
        (3, 1, 2, ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]),
    ],
)
def test_open_mpi_is_bound_in_its_own_words(
    ranks: int, threads: int, cores: int, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usable = tuple(Core(0, 0, (cpu,)) for cpu in range(8))
    monkeypatch.setattr(machine, "read_cores", lambda *_, **__: (usable, "sysfs"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    site = Site(launcher="openmpi")
    with place(Job(("true",), "x", ranks, threads, 1, cores, site)) as placement:
        assert placement.options == wanted and not placement.cpus


def test_intel_mpi_takes_the_place_of_the_library(tmp_path: Path) -> None:
    site = mpis.site("Intel MPI", tmp_path)
    assert site.mpirun.endswith("bin/mpiexec.hydra") and site.launcher == "hydra"
    assert site.env["LD_PRELOAD"] == str(tmp_path / "lib/libmpi.so.12")
    assert site.env["I_MPI_ROOT"] == str(tmp_path)


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_open_mpi_is_allowed_to_run_as_root_only_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, allowed: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    site = mpis.site("Open MPI", tmp_path)
    assert site.launcher == "openmpi" and site.env["MPI4PY_MPIABI"] == "openmpi"
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in site.env) == allowed
