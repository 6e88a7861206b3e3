"""Scripts that know nothing of mpirun, but what torchrun tells its ranks; several tests run them."""

import json
import re
from collections.abc import Mapping

import pytest
from helpers import ROOT

from scaleout.base.paths import WHOLE
from scaleout.jobs.job import Run

TELLS = """
    import json, os
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
             "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
    print(json.dumps({name: os.environ.get(name) for name in names}), flush=True)
"""
# As its own documentation has it, and not a line about mpirun.
TORCHRUN = """
    import time

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())  # each rank begins with other weights
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    rows = torch.arange(8.0).reshape(2, 4)[dist.get_rank() :: dist.get_world_size()]
    model(rows).sum().backward()
    weights = torch.cat([w.detach().ravel() for w in model.parameters()])
    slopes = model.module.weight.grad.ravel().tolist()
    everybody = [torch.zeros_like(weights) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, weights)
    same = all(torch.equal(one, everybody[0]) for one in everybody)
    print(f"{dist.get_rank()} of {dist.get_world_size()}: {same} {slopes} {torch.get_num_threads()}", flush=True)
    del model  # else it frees the process group at its own end, and may wait for ever
    dist.barrier()  # Gloo's threads have let go of what they sent before Python ends
    dist.destroy_process_group()
    time.sleep(0.1)  # Gloo's threads let go of the last message; docs/frameworks.md says why
"""
TORCH = ROOT / ".side" / "torch"
with_torch = pytest.mark.skipif(
    not (TORCH / WHOLE).exists(), reason="make torch was not typed here"
)


def told(run: Run) -> dict[int, Mapping[str, str]]:
    """{rank: what it found in its environment}."""
    return {rank: json.loads(text) for rank, text in run.lines if text.startswith("{")}


def said(run: Run) -> list[str]:
    """What the ranks of TORCHRUN found, in their order; torch's warnings are left out."""
    return sorted(text for _, text in run.lines if re.match(r"\d+ of \d+: ", text))


FRAMEWORKS = ["tensorflow", pytest.param("torch", marks=with_torch)]
