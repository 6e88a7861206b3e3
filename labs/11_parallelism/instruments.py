"""What the checks look at beside the result: who is given what, and by whom.

    mpirun -n 4 python -m mpi4py labs/11_parallelism/instruments.py

It takes about 2 seconds. --way says which of the five gaps is watched in a
small case: tensor, pipeline, groups, sharded or broken. Each is watched by
itself, whatever the others hold, on any number of ranks. There is nothing to
fill in here.
"""

import argparse
from collections.abc import Callable, Iterator

import broken
import measure
import numpy as np
import pipeline
import sharded
import tensor

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import adam, examples, forward, layer, serial, slope

from scaleout import data, records
from scaleout.kit.flags import one_or_more

MORE = ["Ssend", "ssend", "Bsend", "bsend", "Rsend", "Issend", "issend",
        "Sendrecv", "sendrecv", "Irecv", "recv", "irecv",
        "gather", "Gather", "Gatherv", "scatter", "Scatter", "Scatterv",
        "alltoall", "Alltoall", "Alltoallv", "scan", "Scan", "exscan",
        "Exscan", "Iallreduce", "Ireduce", "Ibcast", "Iallgather",
        "Iallgatherv", "Ireduce_scatter", "Reduce_scatter_block"]
NUMBERS = 10  # of a gradient, which no 3 or 4 ranks share equally
TRIALS = 30
LOUD = 1e6  # times as large: no limit is above that


def settings() -> argparse.Namespace:
    """What was typed behind the name of this file."""
    parser = measure.sizes(__doc__)
    parser.set_defaults(width=16, batch=16)
    parser.add_argument("--way", choices=list(WAYS), default="tensor",
                        help="which gap is watched (tensor)")
    parser.add_argument("--micro-batches", type=one_or_more, default=2,
                        help="into which a pipeline cuts its rows (2)")
    parser.add_argument("--schedule", default="gpipe",
                        choices=list(pipeline.SCHEDULES),
                        help="of the stages (gpipe)")
    return measure.read(parser)


def counted(name: str) -> Callable:
    """One call that measure.py does not note."""
    call = getattr(MPI.Intracomm, name)

    def noted(self, *args, **named):
        given = [each[0] if isinstance(each, list) else each
                 for each in (*args, *named.values())]
        size = max([getattr(each, "nbytes", 8) for each in given] or [0])
        self.given[name] = self.given.get(name, 0) + size
        return call(self, *args, **named)

    return noted


def close(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether both are the same, but for rounding."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12)


# Tensor parallelism, TODO 1


def likely(size: int) -> dict:
    """What each slip hands on: an array for each rank, from the lists of
    g_inner, columns, g and rows of all ranks."""

    def parts(inner: list, columns: list, g: list, rows: list) -> list:
        return [i @ c.T for i, c in zip(inner, columns, strict=True)]

    def unmasked(inner: list, columns: list, g: list, rows: list) -> list:
        return [each @ r.T @ c.T for each, r, c in
                zip(g, rows, columns, strict=True)]

    def everywhere(make: Callable) -> Callable:
        return lambda *lists: [make(parts(*lists))] * size

    return {
        "sum": everywhere(sum),
        "part": parts,
        "mean": everywhere(lambda all_: sum(all_) / size),
        "twice": everywhere(lambda all_: sum(all_) * size),
        "inner": lambda inner, columns, g, rows:
            [sum(inner) @ c.T for c in columns],
        "kept": lambda inner, columns, g, rows: g,
        "unmasked": lambda *lists: [sum(unmasked(*lists))] * size,
        "unmasked part": unmasked,
        "first": everywhere(lambda all_: all_[0]),
        "largest": everywhere(lambda all_: np.max(all_, axis=0)),
        "but last": everywhere(lambda all_: sum(all_[:-1])),
        "one rank": lambda *lists:
            [sum(parts(*lists)), *parts(*lists)[1:]],
    }


def by_slip(hand_on: Callable, comm: MPI.Intracomm, args: argparse.Namespace,
            x: np.ndarray, y: np.ndarray) -> list:
    """The gradients of each rank's columns and rows with such a slip."""
    weights = measure.network(args)
    h = forward(weights, x)
    shards = [data.shard(args.width, rank, comm.size)
              for rank in range(comm.size)]
    g = [slope(h[-1], y, len(x))] * comm.size
    gradients = [[] for _ in shards]
    for k in reversed(range(0, args.layers, 2)):
        columns = [weights[k][:, shard] for shard in shards]
        rows = [weights[k + 1][shard] for shard in shards]
        g = [each * (h[k + 2] > 0) for each in g]
        inner = []
        for rank, shard in enumerate(shards):
            own = h[k + 1][:, shard]
            inner.append((g[rank] @ rows[rank].T) * (own > 0))
            gradients[rank] = [h[k].T @ inner[rank], own.T @ g[rank],
                               *gradients[rank]]
        g = hand_on(inner, columns, g, rows)
    return gradients


def watch_tensor(comm: MPI.Intracomm, args: argparse.Namespace) -> dict:
    """Which slip gives the gradients of this rank."""
    x, y = examples(args.batch, args.width, args.dtype)
    pieces = tensor.my_pieces(comm, args.layers, args.width)
    weights = [layer(k, args.width, args.dtype)[part].copy()
               for k, part in pieces]
    told = measure.Watched(comm)
    saw = tensor.tensor_parallel(told, weights, x, y)[1]
    # The sums in forward are given out: the rest is TODO 1, which all pairs
    # but the first come to.
    pairs = args.layers // 2
    given = (sum(told.given.values()) / x.nbytes - pairs) / (pairs - 1)
    off, factor = measure.compare(saw, pieces,
                                  serial(measure.network(args), x, y)[1])
    slips = []
    for name, hand_on in likely(comm.size).items():
        try:
            all_ranks = by_slip(hand_on, comm, args, x, y)
        except ValueError:
            continue  # shards of unlike lengths do not add up
        gives = all_ranks[comm.rank]
        if all(map(close, saw, gives)):
            slips.append(name)
        # The gradients of columns or rows may have been added up, too, of all
        # pairs but the first.
        for kind in (0, 1):
            sums = [sum(each) if k > 1 and k % 2 == kind and len(
                {part.shape for part in each}) == 1 else each[comm.rank]
                    for k, each in enumerate(zip(*all_ranks, strict=True))]
            if name == "sum" and all(map(close, saw, sums)):
                slips.append(["columns", "rows"][kind])
    return {"layers": [k for k, _ in pieces], "off": off, "factor": factor,
            "slips": slips, "given": given}


# Pipelines, TODO 2 and 3


class Heard(measure.Watched):
    """A communicator that notes what is said while a stage goes back."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        super().__init__(comm)
        self.back = None  # or a list of calls
        self.calls = []


def heard(name: str) -> Callable:
    """One call of such a communicator."""
    call = getattr(measure.Watched, name)

    def noted(self, *args, **named):
        if self.back is not None:
            what = args[0] if args else None
            what = what[0] if isinstance(what, list) else what
            sent = what.copy() if isinstance(what, np.ndarray) else None
            other = named.get("source", named.get("dest"))
            other = args[1] if len(args) > 1 else other
            self.back.append((name, sent, other))
        return call(self, *args, **named)

    return noted


class Stage(pipeline.Stage):
    """A stage of which we see what it is given, returns and says."""

    def __init__(self, pipe: Heard, weights: list) -> None:
        super().__init__(pipe, weights)
        self.worked = []  # (micro-batch, given, returned, calls)
        self.waited = 0  # for what was sent in the same backward
        pipe.stage = self

    def backward(self, m: int, g: np.ndarray) -> None:
        self.pipe.back = calls = []
        self.now = []
        before = len(self.pipe.requests)
        super().backward(m, g)
        self.waited += sum(each == MPI.REQUEST_NULL
                           for each in self.pipe.requests[before:])
        self.pipe.back = None
        self.worked.append((m, self.now, calls))

    def back(self, m: int, g: np.ndarray) -> np.ndarray:
        given = g.copy()
        result = super().back(m, g)
        self.now.append((given, result.copy()))
        return result


def watch_pipeline(comm: MPI.Intracomm, args: argparse.Namespace) -> dict:
    """What each stage takes back, sends and receives."""
    for name in [*measure.TO_ALL, *measure.TO_ONE, *MORE]:
        setattr(Heard, name, heard(name))
    pipeline.Stage = Stage
    pipe = Heard(comm.Dup())
    x, y = examples(args.batch, args.width, args.dtype)
    layers = range(args.layers)[data.shard(args.layers, comm.rank, comm.size)]
    weights = measure.network(args)
    gradients = pipeline.pipeline(
        pipe, [weights[k].copy() for k in layers], x, y, args)[1]
    unreceived, unfinished = pipe.left()
    off, factor = measure.compare(
        gradients, [(k, slice(None)) for k in layers],
        serial(weights, x, y)[1])
    found = {"layers": list(layers), "off": off, "factor": factor,
             "unreceived": unreceived, "unfinished": unfinished,
             "waited": pipe.stage.waited, "backs": 0, "zeros": 0,
             "given": 0, "returned": 0, "sent": 0, "calls": [], "sources": []}
    for _, backs, calls in pipe.stage.worked:
        found["backs"] += len(backs)
        found["calls"] += [name for name, _, _ in calls]
        found["sources"] += [
            "any" if other in (None, MPI.ANY_SOURCE) else int(other)
            for name, _, other in calls if name.lower() in ("recv", "irecv")]
        found["zeros"] += sum(not given.any() for given, _ in backs)
        sends = [sent for name, sent, _ in calls
                 if "send" in name.lower() and sent is not None]
        found["sent"] += len(sends)
        for given, returned in backs:
            found["returned"] += any(close(s, returned) for s in sends)
            found["given"] += any(close(s, given) for s in sends)
    return found


def watch_groups(comm: MPI.Intracomm, args: argparse.Namespace) -> dict:
    """Whom this rank meets, for each number of stages that fits."""
    found = {}
    for stages in range(1, comm.size + 1):
        if comm.size % stages == 0:
            # Distributed: every rank asks for its two groups
            groups = pipeline.communicators(comm, stages)
            found[str(stages)] = [
                each.allgather(comm.rank) if each != MPI.COMM_NULL else []
                for each in groups]
    return found


# A sharded optimizer, TODO 4


def watch_sharded(comm: MPI.Intracomm, args: argparse.Namespace) -> dict:
    """What adam is given, and which weights are right after each step."""
    given = measure.Watched(comm)
    draw = np.random.default_rng(11)
    w = draw.standard_normal(NUMBERS)
    wanted, state, whole = w.copy(), {}, {}
    mine = data.shard(NUMBERS, comm.rank, comm.size)
    kinds, likely_parts = [], {}
    found = {"own": True, "others": True, "numbers": 0}

    def noted(some: np.ndarray, g: np.ndarray, kept: dict) -> None:
        for name, part in likely_parts.items():
            if close(g, part[mine]) or close(g, part):
                kinds.append(name)
                break
        else:
            kinds.append("other")
        adam(some, g, kept)

    sharded.adam = noted
    for step in range(2):
        own = np.random.default_rng([step, comm.rank]).standard_normal(NUMBERS)
        # Distributed: what the sum is
        total = comm.allreduce(own)
        likely_parts |= {
            "sum": total, "mean": total / comm.size,
            "twice": total * comm.size, "own": own,
            "zeros": np.zeros_like(own)}
        sharded.sharded_adam(given, w, own.copy(), state)
        adam(wanted, total, whole)
        found["own"] &= close(w[mine], wanted[mine])
        found["others"] &= close(np.delete(w, mine), np.delete(wanted, mine))
    found["numbers"] = max([np.size(part) for part in state.values()] or [0])
    return found | {"kinds": sorted(set(kinds)), "calls": list(given.given),
                    "float32": in_float32(comm),
                    "shard": mine.stop - mine.start}


def in_float32(comm: MPI.Intracomm) -> str:
    """What is wrong with a step in float32; nothing, if it is right."""
    own = np.linspace(1, 2, NUMBERS, dtype=np.float32) * (comm.rank + 1)
    w = np.ones(NUMBERS, np.float32)
    wanted = w.copy()
    sharded.adam = adam
    # Distributed: what the sum is
    adam(wanted, comm.allreduce(own), {})
    try:
        sharded.sharded_adam(measure.Watched(comm), w, own, {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if np.allclose(w, wanted, rtol=1e-5) else "other weights"


# An alarm, TODO 5


def spoiled(comm: broken.Broken, fault: str, seed: int, told: MPI.Intracomm,
            times: float, all_times: float = 1) -> bool:
    """Whether the alarm sees a fault in numbers so many times as large; all
    numbers may be larger or smaller, too."""
    comm.fault, comm.seed = "", seed
    mine = broken.gradient(comm, seed) * np.float32(all_times)
    total, wrong = np.empty_like(mine), np.empty_like(mine)
    comm.Allreduce(mine, total)
    comm.fault = fault
    comm.Allreduce(mine, wrong)
    # Distributed: where it is wrong on any rank
    where = comm.allreduce((total != wrong).astype(int)) > 0
    mine[where] *= times
    comm.Allreduce(mine, wrong)
    comm.fault = ""
    # Distributed: whether any rank sees it
    return any(comm.allgather(bool(broken.alarm(told, mine, wrong))))


def probes(told: MPI.Intracomm) -> Iterator[tuple]:
    """Sums in which no number is rounded, so that all weights are exact."""
    one = np.zeros(1024, np.float32)
    one[700] = told.size
    none = np.zeros_like(one)
    mine = one if told.rank == 0 else none
    yield "nothing", none, none
    yield "one number", mine, one
    yield "its mean", mine, one / told.size


def watch_broken(comm: MPI.Intracomm, args: argparse.Namespace) -> dict:
    """What the alarm says of some sums that are known."""
    broken.main(argparse.Namespace(trials=TRIALS, seed=1))
    told = measure.Watched(comm)
    spoil = broken.Broken(comm)
    make, seeds = np.random.default_rng, []

    def default_rng(*seed):
        seeds.append(repr(seed))
        return make(*seed)

    found = {"rings": [], "changed": False}
    for name, mine, total in probes(told):
        before = mine.copy(), total.copy()
        np.random.default_rng = default_rng
        said = bool(broken.alarm(told, mine, total))
        np.random.default_rng = make
        found["changed"] |= not (close(mine, before[0])
                                 and close(total, before[1]))
        # Distributed: whether any rank sees it
        if any(comm.allgather(said)):
            found["rings"].append(name)
    found["seeds"] = seeds
    found["loud"] = [
        all(spoiled(spoil, fault, seed, told, LOUD) for seed in range(6))
        for fault in broken.FAULTS]
    # A power of two, so that all is rounded as before.
    found["small"] = all(
        spoiled(spoil, fault, seed, told, 1, 1 / 1024) for seed in range(6)
        for fault in broken.FAULTS)
    found["big"] = any(
        spoiled(spoil, "", seed, told, 1, 1024) for seed in range(6))
    return found


WAYS = {"tensor": watch_tensor, "pipeline": watch_pipeline,
        "groups": watch_groups, "sharded": watch_sharded,
        "broken": watch_broken}


def main(args: argparse.Namespace) -> None:
    # What measure.py does not note, these do, too.
    for name in MORE:
        setattr(measure.Watched, name, counted(name))
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = MPI.COMM_WORLD
    found = records.gather(WAYS[args.way](comm, args))
    # Distributed: one record and one line, not one from each rank
    if comm.rank == 0:
        records.write(lab="11_parallelism", variant=args.way, ranks=comm.size,
                      metrics={"found": found})
        print(f"{args.way}: {found[0]}", flush=True)


if __name__ == "__main__":
    main(settings())
