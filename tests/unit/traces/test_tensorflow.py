"""Reading a profile of TensorFlow: made-up ones whose sums are known, damaged ones, none."""

from pathlib import Path

import pytest

from scaleout import records
from scaleout.base.errors import ScaleoutError
from scaleout.jobs.job import Run
from scaleout.traces import tensorflow as profile

# name of the event, milliseconds of each call
EVENTS = {
    "net/conv/BiasAdd:_MklNativeFusedConv2D": [30.0, 32.0],
    "net/conv_bn/mul:Mul": [10.0, 12.0],
    "net/other/mul:Mul": [1.0],
    "net/conv_bn/moments/variance:Mean": [7.0],
    "grad/net/dense/MatMul:_MklMatMul": [5.0],
    "net/call:StatefulPartitionedCall": [90.0],
    "EagerLocalExecute: __inference_step_427": [99.0],
    "KernelAndDeviceFunc::Run": [98.0],
    "ThreadpoolListener::Record": [1.0],
    "step": [100.0],
}


def _written(folder: Path, events: dict[str, list[float]], day: str = "2026_01_01") -> Path:
    space = profile._description().XSpace()
    plane = space.planes.add(name="/host:CPU")
    line = plane.lines.add(name="tf_Compute")
    for number, (name, times) in enumerate(events.items(), 1):
        plane.event_metadata[number].id = number
        plane.event_metadata[number].name = name
        for ms in times:
            line.events.add(metadata_id=number, duration_ps=int(ms * 1e9))
    place = folder / "plugins/profile" / day
    place.mkdir(parents=True)
    (place / "host.xplane.pb").write_bytes(space.SerializeToString())
    return folder


def test_operations_are_added_up_and_nothing_else(tmp_path: Path) -> None:
    frame = profile.read(_written(tmp_path, EVENTS))
    assert frame.time_ms.tolist() == pytest.approx([62, 22, 7, 5, 1])
    assert frame.iloc[0][["name", "op", "library", "calls"]].tolist() == [
        "net/conv/BiasAdd",
        "Conv2D",
        "oneDNN",
        2,
    ]
    sums = profile.by_op(frame).set_index("op")
    assert sums.time_ms.to_dict() == pytest.approx(
        {"Conv2D": 62, "Mul": 23, "Mean": 7, "MatMul": 5}
    )
    assert sums.library.to_dict() == {
        "Conv2D": "oneDNN",
        "Mul": "Eigen",
        "Mean": "Eigen",
        "MatMul": "oneDNN",
    }
    assert sums.share.sum() == pytest.approx(1) and sums.calls["Mul"] == 3


def test_a_step_is_told_in_one_sentence(tmp_path: Path) -> None:
    frame = profile.read(_written(tmp_path, EVENTS))
    frame.attrs["step_ms"] = 100.0
    said = profile.words(frame)
    assert said == (
        "100 ms a step: Conv2D 62%, Mul 23%, Mean 7%, other oneDNN operations 5%, "
        "between operations 3%."
    )
    frame.attrs["step_ms"] = 90.0  # operations at once: nothing is left between them
    assert "between" not in profile.words(frame)


def test_what_is_no_profile_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        ScaleoutError, match="There is no profile in .*: run the job with --profile"
    ):
        profile.read(tmp_path)
    _written(tmp_path, {"step": [1.0]})
    with pytest.raises(ScaleoutError, match="holds no operation"):
        profile.read(tmp_path)
    (file,) = tmp_path.rglob("*.xplane.pb")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(ScaleoutError, match="is no whole profile"):
        profile.read(tmp_path)


def _run(folder: Path, monkeypatch: pytest.MonkeyPatch, *steps: list[float]) -> Run:
    """A profiled run that wrote a record with each of these lists of times."""
    _written(folder, {"net/mul:Mul": [6.0, 6.0]})
    monkeypatch.setenv("SCALEOUT_RECORDS", str(folder / "records.jsonl"))
    for step_s in steps:
        records.write(lab="mine", step_s=step_s)
    return Run("id", "mine", "mpirun", folder, 1, 1)


def test_a_run_is_divided_by_the_steps_that_it_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = profile.read(_run(tmp_path, monkeypatch, [], [0.01, 0.01, 0.01]))
    assert frame.time_ms.tolist() == pytest.approx([4]) and frame.attrs["step_ms"] == 10
    assert profile.words(frame) == "10.0 ms a step: Mul 40%, between operations 60%."


@pytest.mark.parametrize("steps", [(), ([],), ([], [])])
def test_a_run_that_tells_of_no_step_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[list[float], ...]
) -> None:
    run = _run(tmp_path, monkeypatch, *steps)
    with pytest.raises(ScaleoutError, match="No record of mine tells how many steps it took"):
        profile.read(run)
    assert profile.read(run.folder).time_ms.tolist() == [12]


def test_a_folder_has_no_step_to_put_into_words(tmp_path: Path) -> None:
    with pytest.raises(ScaleoutError, match="does not tell how long a step took"):
        profile.words(profile.read(_written(tmp_path, EVENTS)))
