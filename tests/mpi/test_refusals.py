"""What a lab's script cannot do is one sentence, from one rank, whatever the number of ranks."""

from typing import Any

import pytest
from helpers import ROOT

from scaleout import lab
from scaleout.jobs.job import JobFailed

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

MORE = [pytest.mark.choice]
NO_TORCH = "PyTorch is not in this Python: type  make torch"
# For each topic, flags and ranks, and a piece of the sentence. In make test the first of each, but
# for 06, which loads TensorFlow first.
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "03_spmd": [
        ({"script": "straggler.py", "rate": "nan"}, "--rate: it takes more than 0, not nan"),
        ({"sizes": ["many"]}, "argument --sizes: it takes 0 or more, not many"),
        ({"script": "pingpong.py", "ranks": 1}, "takes two ranks"),
        ({"script": "straggler.py", "ranks": 1}, "Rank 0 needs a worker"),
    ],
    "06_tuning": [
        ({"labels": 9}, "--labels takes 10, one of each digit, to "),
        ({"side": 30}, "--side takes a multiple of 4 from 28 on, such as 64, not 30."),
        ({"env": {"SCALEOUT_IMAGES": "1"}}, "2 ranks cannot share 1 image(s): start at most 1."),
    ],
    "08_precision": [
        ({"bits": [9]}, "whole numbers of 2 to 8 bits"),
        ({"batches": 1}, "nobody calibrates with an empty set"),
        (
            {"script": "convert.py", "ranks": 1, "calibrate": [0]},
            "an empty calibration set shows no range",
        ),
        ({"script": "convert.py"}, "This script is for one rank"),
        ({"script": "ladder.py"}, "a rank for each of --steps, not 2: mpirun -n 1"),
        ({"script": "streams.py", "model": "README.md"}, "README.md is no TFLite model"),
    ],
    "09_networks": [
        ({"batch": 7}, "7 images cannot be divided evenly among 2 ranks"),
        ({"network": "resnet50", "side": 40}, "resnet50 takes 75 or more, not 40"),
        ({"framework": "torch"}, NO_TORCH),
        *(
            ({"script": script}, f"{NO_TORCH}, then run this with  --python .side/torch/bin/python")
            for script in ("ddp.py", "broken.py", "batch_norm.py", "more/fsdp.py")
        ),
    ],
    "11_parallelism": [
        ({"script": "pipeline.py", "batch": 10}, "does not divide into 4 micro-batches"),
        ({"script": "pipeline.py", "ranks": 3, "layers": 2}, "3 stages are more than 2 layers"),
        (
            {"script": "pipeline.py", "ranks": 3, "replicas": 2},
            "3 ranks do not divide into 2 pipelines",
        ),
        ({"script": "tensor.py", "ranks": 3, "width": 2}, "2 columns are fewer than 3 ranks"),
        ({"script": "tensor.py", "layers": 3}, "Layers go in pairs, and 3 is odd"),
        ({"script": "broken.py", "ranks": 1}, "goes wrong on two or more"),
        ({"script": "stuck.py", "ranks": 3}, "This pipeline has two stages"),
        ({"script": "more/server.py"}, "1 serve, and nobody is left to work"),
        (
            {"script": "more/server.py", "ranks": 3, "kill": "worker"},
            "Nobody would be left to work: two workers or more",
        ),
        (
            {"script": "more/server.py", "ranks": 4, "kill": "worker", "rule": "both"},
            "Who is killed does not come back",
        ),
    ],
}


@pytest.mark.parametrize(
    ("topic", "how", "says"),
    [
        pytest.param(topic, how, says, marks=MORE * (at > 0 or topic == "06_tuning"))
        for topic, rows in REFUSED.items()
        for at, (how, says) in enumerate(rows)
    ],
)
def test_what_makes_no_sense_is_one_sentence_from_rank_0(
    topic: str, how: dict[str, Any], says: str, results: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    usual = {"ranks": 2, "threads": 1, "timeout": 100, "echo": False}
    with pytest.raises(JobFailed) as caught:
        lab(topic, solution=True).run(**{**usual, **how})
    ((rank, said),) = [line for line in caught.value.run.lines if line[0] is not None]
    assert rank == 0 and says in said
