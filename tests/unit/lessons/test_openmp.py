"""The knobs of 02 one by one, where the OpenMP build is, and what ldd proves."""

from pathlib import Path

import pytest
from helpers import lesson

from scaleout.base import paths
from scaleout.base.errors import ScaleoutError

openmp = lesson("02_threads", "openmp")


def test_an_environment_that_was_cut_off_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("labs", "notebooks", ".side/intel/bin"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScaleoutError, match="make intel"):
        openmp.python()
    (tmp_path / ".side/intel" / paths.WHOLE).touch()
    assert openmp.python() == ".side/intel/bin/python"


@pytest.mark.parametrize(("cpus", "cells"), [(1, 4), (2, 4), (3, 4), (4, 9), (64, 9)])
def test_no_setting_is_compared_with_itself(cpus: int, cells: int) -> None:
    variants = openmp.settings(cpus)
    assert len(variants) == cells + 1 and next(iter(variants)) == "1 x 1"
    assert len({str(how) for how in variants.values()}) == len(variants)
    most = str(max(2, cpus))
    alone = variants["OMP_NUM_THREADS"]["env"]
    assert alone["OMP_NUM_THREADS"] == most and list(alone.values()).count("1") == 2
    assert variants[f"{most} x 1"]["env"]["TF_NUM_INTEROP_THREADS"] == most
    assert variants[f"1 x {most}"]["env"]["TF_NUM_INTRAOP_THREADS"] == most


def test_the_proof_follows_from_what_ldd_names() -> None:
    plain = ["libm.so.6 => /lib/libm.so.6 (0x1)", "libc.so.6 => /lib/libc.so.6 (0x2)"]
    assert "2 libraries, of which none is an OpenMP runtime" in openmp.proof(plain)
    with_openmp = [*plain, "libiomp5.so => /opt/libiomp5.so (0x3)"]
    assert "libiomp5.so is OpenMP: it can read OMP_NUM_THREADS" in openmp.proof(with_openmp)
