"""Tables that others have published: how fast so many nodes or GPUs were, with source and year.

LITERATURE holds each table that was found with five counts or more, all with one program. Of a
source with a dozen tables it holds those that one rule names, which stands beside them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A published table."""

    name: str
    source: str
    nodes: tuple[int, ...]
    rates: tuple[float, ...]
    unit: str = "images/s"
    differs: str = ""


_PRACE = (
    "PRACE Best Practice Guide Deep Learning, 2019: ResNet-50, fp32, GPUs, four in each node; {}"
)
PUBLISHED = {
    "MXNet": Published(
        "MXNet",
        _PRACE.format("real data, parameter server"),
        (1, 4, 8, 16, 32),
        (182, 705, 1402, 2680, 5120),
    ),
    "PyTorch + Horovod": Published(
        "PyTorch + Horovod",
        _PRACE.format("synthetic data"),
        (1, 4, 8, 16, 32),
        (208, 768, 1497, 2942, 5796),
    ),
}
_NEMO = "NVIDIA, NeMo Framework User Guide, Performance, {}: nodes of 8 A100"
_MPT = (
    "MosaicML, llm-foundry, MPT Training Benchmarks, 2024: H100, bf16, 2,048 tokens a sequence; "
    "the models with five counts or more"
)
_MPT_DIFFERS = "larger micro-batches, and for some another sharding, from 128 GPUs on"
_DLPERF = (
    "OneFlow, DLPerf, 2020 and 2021: BERT-base, fp32, 8 V100 a node; "
    "the first such table of each framework"
)
_PLAYBOOK = "Hugging Face, The Ultra-Scale Playbook: Training LLMs on GPU Clusters, 2025: GPUs"
_SIX = (1, 2, 4, 8, 16, 32)
_MORE = (
    Published(
        "NeMo BERT 4B",
        _NEMO.format(2022),
        (1, 2, 4, 8, 16),
        (57287, 108695, 215358, 393167, 728178),
        "tokens/s",
    ),
    Published(
        "NeMo T5 3B",
        _NEMO.format(2022),
        (1, 2, 4, 5, 10, 20),
        (110769, 215579, 417644, 515100, 957506, 1626353),
        "tokens/s",
    ),
    Published(
        "MPT-1B",
        _MPT,
        (8, 16, 32, 64, 128, 256, 512),
        (363645, 736596, 1444183, 2841754, 5647854, 10894207, 20396905),
        "tokens/s",
        _MPT_DIFFERS,
    ),
    Published(
        "MPT-3B",
        _MPT,
        (16, 32, 64, 128, 256, 512),
        (386285, 736701, 1441663, 2998098, 5829686, 11092218),
        "tokens/s",
        _MPT_DIFFERS,
    ),
    Published(
        "MPT-13B",
        _MPT,
        (8, 16, 32, 64, 128, 256, 512),
        (38336, 76280, 153960, 307209, 650264, 1277214, 2535811),
        "tokens/s",
        _MPT_DIFFERS,
    ),
    Published(
        "MPT-70B",
        _MPT,
        (32, 64, 128, 256, 512),
        (28242, 66523, 135490, 265149, 515636),
        "tokens/s",
        "micro-batch 2 on 32 GPUs, 8 on the others",
    ),
    Published(
        "DLPerf MindSpore",
        _DLPERF,
        _SIX,
        (112.18, 174.45, 352.69, 704.81, 1309.7, 2457.8),
        "samples/s",
    ),
    Published(
        "DLPerf MXNet",
        _DLPERF,
        _SIX,
        (156.76, 295.42, 587.71, 1153.08, 2172.62, 4340.89),
        "samples/s",
    ),
    Published(
        "DLPerf PyTorch",
        _DLPERF,
        (1, 4, 8, 16, 32),
        (119.6, 457.72, 921.32, 1499.4, 2885.81),
        "samples/s",
    ),
    Published(
        "DLPerf TensorFlow 1",
        _DLPERF,
        (1, 4, 8, 16, 32),
        (107.33, 397.71, 790.03, 1404.04, 2727.9),
        "samples/s",
    ),
    Published(
        "DLPerf TensorFlow 2",
        _DLPERF,
        _SIX,
        (103.58, 177.18, 347.83, 675.82, 909.0, 1551.52),
        "samples/s",
    ),
    Published(
        "DLPerf PaddlePaddle",
        _DLPERF,
        _SIX,
        (132.64, 228.12, 406.02, 615.12, 1116.02, 2073.6),
        "samples/s",
    ),
    Published(
        "Playbook, data parallel",
        _PLAYBOOK,
        (8, 16, 32, 64, 128, 256),
        (321199.52, 601755.04, 1131765.44, 1991183.36, 3385144.32, 4019297.28),
        "tokens/s",
        "published per GPU",
    ),
    Published(
        "Playbook, tensor parallel",
        _PLAYBOOK,
        (2, 4, 8, 16, 32),
        (27846.36, 49683.04, 87226.56, 99929.6, 68686.08),
        "tokens/s",
        "published per GPU; the largest batch that fits grows from 3 to 20",
    ),
    Published(
        "HPL, College of Charleston",
        "hpc-cofc, generic-benchmarks, 2019: HPL, nodes of 40 cores",
        (1, 2, 4, 8, 10),
        (2284.66, 4473.86, 8930.94, 17784.9, 22218.8),
        "GFLOP/s",
        "the matrix grows with the nodes (weak scaling)",
    ),
    Published(
        "ResNet-50 on AWS p3",
        "markmp, aws-samples/deep-learning-models, issue 2, 2018: TensorFlow, V100, 8 a node",
        (1, 2, 8, 16, 32, 64),
        (740, 1481.3, 5000, 9860, 21300, 37000),
        "images/s",
        "ranks bound to slots on 32 and 64 GPUs",
    ),
)
LITERATURE = {**PUBLISHED, **{table.name: table for table in _MORE}}
