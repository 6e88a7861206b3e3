"""records.gather goes through the library that the lab has loaded, and through none without one."""

import sys
from types import SimpleNamespace

import pytest

from scaleout import records


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("horovod.tensorflow", "torch.distributed", "mpi4py.MPI"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(("started", "ranks"), [(True, 2), (False, 1)])
def test_horovod_comes_before_mpi4py_once_it_is_started(
    started: bool, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    horovod = SimpleNamespace(
        is_initialized=lambda: started, allgather_object=lambda mine: [mine, mine]
    )
    monkeypatch.setitem(sys.modules, "horovod.tensorflow", horovod)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    assert len(records.gather({"rank": 0})) == ranks


@pytest.mark.parametrize(("started", "ranks"), [(True, 2), (False, 1)])
def test_pytorch_comes_before_mpi4py_once_its_group_is_started(
    started: bool, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_gather_object(everybody: list, mine: dict) -> None:
        everybody[:] = [mine, mine]

    torch = SimpleNamespace(
        is_initialized=lambda: started,
        get_world_size=lambda: 2,
        all_gather_object=all_gather_object,
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    assert records.gather({"rank": 0}) == [{"rank": 0}] * ranks
