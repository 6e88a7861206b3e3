"""One network, split over the ranks in six ways.

    mpirun -n 4 python -m mpi4py solutions/11_parallelism/runme.py

Here on four ranks; it takes about 3 seconds. You will see a line for each way:
whether it does what one rank alone does, how long a step takes, and how much
memory the rank needs that needs most. network.py is that network on one rank.
"""

import argparse

import common
import numpy as np

# Distributed: this import also starts MPI
from mpi4py import MPI
from network import adam, backward, examples, forward, layer, loss, relu, slope
from schedules import SCHEDULES

from scaleout import data, records


def add_up(comm: MPI.Intracomm, part: np.ndarray) -> np.ndarray:
    """The sum over the ranks, on all of them, in place of their parts."""
    # Distributed: all ranks of comm give `part`, and the sum takes its place
    comm.Allreduce(MPI.IN_PLACE, part)
    return part


def data_parallel(comm: MPI.Intracomm, weights: list,
                  x: np.ndarray, y: np.ndarray) -> tuple:
    """Each rank has all layers and some rows.

    Returns what its rows add to the loss, the gradients, and a log, which is
    empty here: only pipelines keep one. So do all ways below.
    """
    rows = data.shard(len(x), comm.rank, comm.size)
    h = forward(weights, x[rows])  # (rows, width) each
    gradients = [np.zeros_like(w) for w in weights]
    g = slope(h[-1], y[rows], len(x))  # (rows, width)
    # One layer at a time: each is added up as soon as it is there.
    for k in reversed(range(len(weights))):
        g = backward([weights[k]], h[k : k + 2], g, [gradients[k]])
        add_up(comm, gradients[k])  # (width, width)
    return loss(h[-1], y[rows], len(x)), gradients, []


def tensor_parallel(comm: MPI.Intracomm, weights: list,
                    x: np.ndarray, y: np.ndarray) -> tuple:
    """Each rank has some columns of a layer, and those rows of the next.

    ReLU looks at one number at a time, so between the two nothing travels.
    """
    # Of each pair (width, width / ranks), then (width / ranks, width)
    pairs = list(zip(weights[0::2], weights[1::2], strict=True))
    kept = []
    h = x  # (batch, width)
    for columns, rows in pairs:
        inner = relu(h @ columns)  # (batch, width / ranks)
        part = inner @ rows  # (batch, width): one part of a sum
        out = relu(add_up(comm, part))  # (batch, width)
        kept.append((h, inner, out))
        h = out

    g = slope(h, y, len(x))  # (batch, width)
    gradients = []
    for columns, rows in reversed(pairs):
        before, inner, out = kept.pop()
        # Every rank has the whole batch and the whole g. So the gradients of
        # its own columns and rows are whole, too, and need no sum.
        g = g * (out > 0)  # (batch, width)
        g_rows = inner.T @ g  # (width / ranks, width)
        g_inner = (g @ rows.T) * (inner > 0)  # (batch, width / ranks)
        g_columns = before.T @ g_inner  # (width, width / ranks)
        gradients = [g_columns, g_rows] + gradients
        # TODO 1: forward needs one sum over the ranks for each pair, and
        # backward does, too. The gradient with respect to `before` is
        # g_inner @ columns.T, but each rank has some columns only. Set g to
        # the whole gradient, which the pair before this one goes on with.
        # (1 line)
        # BEGIN SOLUTION
        g = add_up(comm, g_inner @ columns.T)  # (batch, width)
        # STARTER: g = g_inner @ columns.T
        # END SOLUTION
    # All ranks have the same loss: one of them gives it.
    return loss(h, y, len(x)) if comm.rank == 0 else 0.0, gradients, []


class Stage:
    """Some layers, and what they keep of each micro-batch until it is back."""

    def __init__(self, pipe: MPI.Intracomm, weights: list) -> None:
        self.pipe = pipe
        self.last = pipe.size - 1
        self.weights = weights
        self.gradients = [np.zeros_like(w) for w in weights]
        self.kept = {}
        # Distributed: the last message to each side, while it is on its way
        self.to_right = MPI.REQUEST_NULL
        self.to_left = MPI.REQUEST_NULL
        self.log = []

    def through(self, m: int, h: np.ndarray) -> np.ndarray:
        """Micro-batch m through these layers."""
        # Distributed: messages move inside MPI's calls, not while we compute
        self.to_right.Wait()
        start = MPI.Wtime()
        self.kept[m] = forward(self.weights, h)
        self.log.append(["forward", m, start, MPI.Wtime(), len(self.kept)])
        return self.kept[m][-1]

    def back(self, m: int, g: np.ndarray) -> np.ndarray:
        """Its gradient back through them; their own are added up."""
        # Distributed: as above
        self.to_left.Wait()
        start = MPI.Wtime()
        g = backward(self.weights, self.kept[m], g, self.gradients)
        self.log.append(["backward", m, start, MPI.Wtime(), len(self.kept)])
        del self.kept[m]
        return g

    def forward(self, m: int, h: np.ndarray) -> None:
        """Micro-batch m comes from the left and goes to the right.

        h: on the first stage the micro-batch itself; elsewhere as large.
        """
        pipe = self.pipe
        if pipe.rank > 0:
            h = np.empty_like(h)  # (micro-batch, width)
            # Distributed: what the stage before this one made of it; messages
            # from one rank arrive in the order in which they were sent
            pipe.Recv(h, pipe.rank - 1)
        h = self.through(m, h)
        if pipe.rank < self.last:
            # Distributed: on it goes; Isend does not wait until it is there
            self.to_right = pipe.Isend(h, pipe.rank + 1)

    def backward(self, m: int, g: np.ndarray) -> None:
        """Its gradient comes from the right and goes to the left.

        g: on the last stage the gradient of the loss; elsewhere as large.
        """
        pipe = self.pipe
        # TODO 2: the mirror image of forward. Receive g from the stage after
        # this one, unless this is the last. self.back(m, g) gives what the
        # stage before this one waits for: Isend it, unless this is the first,
        # and keep the request in self.to_left.  (5 lines)
        # BEGIN SOLUTION
        if pipe.rank < self.last:
            # Distributed: the gradient by what this stage gave
            pipe.Recv(g, pipe.rank + 1)
        g = self.back(m, g)
        if pipe.rank > 0:
            # Distributed: the gradient by what this stage was given
            self.to_left = pipe.Isend(g, pipe.rank - 1)
        # STARTER: if pipe.rank == self.last:
        # STARTER:     self.back(m, g)
        # END SOLUTION


def pipeline(pipe: MPI.Intracomm, weights: list, x: np.ndarray, y: np.ndarray,
             args: argparse.Namespace) -> tuple:
    """Each rank has some layers, and parts of the batch go through them."""
    stage = Stage(pipe, weights)
    x_parts = np.split(x, args.micro_batches)  # (micro-batch, width) each
    y_parts = np.split(y, args.micro_batches)
    total = 0.0
    schedule = SCHEDULES[args.schedule]
    for what, m in schedule(pipe.rank, pipe.size, args.micro_batches):
        if what == "forward":
            stage.forward(m, x_parts[m])
            continue
        g = np.zeros_like(y_parts[m])  # (micro-batch, width)
        if pipe.rank == stage.last:
            # args.batch, not the rows here: so all parts add up to the batch.
            h = stage.kept[m][-1]
            g = slope(h, y_parts[m], args.batch)
            total += loss(h, y_parts[m], args.batch)
        stage.backward(m, g)
    # Distributed: before anything is changed, what was sent has arrived
    MPI.Request.Waitall([stage.to_right, stage.to_left])
    return total, stage.gradients, stage.log


def communicators(comm: MPI.Intracomm, stages: int) -> tuple:
    """Two smaller circles of ranks: my pipeline, and who has my layers, too.

    Ranks 0 and 1 are the stages of replica 0, ranks 2 and 3 of replica 1 ...
    """
    replica = comm.rank // stages
    stage = comm.rank % stages
    # TODO 3: comm.Split(colour, key) is a communicator of all ranks with the
    # same colour, in the order of their keys. `pipe` joins the stages of one
    # replica, and `same` the ranks that have the same stage.  (2 lines)
    # BEGIN SOLUTION
    # Distributed: gradients and activations travel here, from stage to stage
    pipe = comm.Split(replica, stage)
    # Distributed: gradients of the same layers are added up here
    same = comm.Split(stage, replica)
    # STARTER: pipe = comm
    # STARTER: same = MPI.COMM_SELF
    # END SOLUTION
    return pipe, same


def hybrid(comm: MPI.Intracomm, circles: tuple, weights: list, x: np.ndarray,
           y: np.ndarray, args: argparse.Namespace) -> tuple:
    """Pipelines side by side, each with some rows."""
    pipe, same = circles
    stages = common.stages_of("hybrid", comm.size)
    rows = data.shard(len(x), comm.rank // stages, comm.size // stages)
    total, gradients, log = pipeline(pipe, weights, x[rows], y[rows], args)
    for g in gradients:
        add_up(same, g)  # (width, width)
    return total, gradients, log


def sharded_adam(comm: MPI.Intracomm, w: np.ndarray, g: np.ndarray,
                 state: dict) -> None:
    """A step of Adam: w changes on all ranks by the sum of everybody's g.

    Adam's two arrays are as long as the gradient that it is given: so let each
    rank keep them for its own shard of the weights alone.
    """
    shards = [data.shard(len(w), r, comm.size) for r in range(comm.size)]
    counts = [shard.stop - shard.start for shard in shards]
    mine = shards[comm.rank]
    # TODO 4: comm.Reduce_scatter(g, part, counts) puts this rank's shard of
    # the sum into `part`, a new array of that length. Give adam the shard of w
    # and `part`; then comm.Allgatherv(MPI.IN_PLACE, [w, counts]) brings the
    # shards of w together.  (4 lines)
    # BEGIN SOLUTION
    part = np.empty_like(g[mine])  # (n / ranks,)
    # Distributed: to each its shard of the sum
    comm.Reduce_scatter(g, part, counts)
    adam(w[mine], part, state)
    # Distributed: everybody's new weights, from those who have them
    comm.Allgatherv(MPI.IN_PLACE, [w, counts])
    # STARTER: adam(w, add_up(comm, g), state)
    # END SOLUTION


def whole_adam(comm: MPI.Intracomm, weights: list, x: np.ndarray,
               y: np.ndarray, states: list) -> tuple:
    """Data parallelism as it is: all of Adam's memory on every rank."""
    total, gradients, log = data_parallel(comm, weights, x, y)
    for w, g, state in zip(weights, gradients, states, strict=True):
        adam(w, g, state)
    return total, weights, log


def sharded(comm: MPI.Intracomm, weights: list, x: np.ndarray, y: np.ndarray,
            states: list) -> tuple:
    """The same, but each rank keeps its shard of Adam's memory.

    A layer changes as soon as its gradient is there, which is then forgotten.
    """
    rows = data.shard(len(x), comm.rank, comm.size)
    h = forward(weights, x[rows])  # (rows, width) each
    g = slope(h[-1], y[rows], len(x))
    for k in reversed(range(len(weights))):
        w = weights[k]
        gradient = np.zeros_like(w)  # (width, width)
        g = backward([w], h[k : k + 2], g, [gradient])  # (rows, width)
        sharded_adam(comm, w.ravel(), gradient.ravel(), states[k])
    return loss(h[-1], y[rows], len(x)), weights, []


def alarm(comm: MPI.Intracomm, mine: np.ndarray, total: np.ndarray) -> bool:
    """Whether an allreduce of everybody's `mine` to `total` went wrong.

    All ranks call it, and all get the same answer. It may cost some numbers,
    not another allreduce of the whole array.
    """
    # TODO 5: find something that must be true of `total`, whoever computed it
    # and however it was rounded, and that a few numbers can tell. Three faults
    # must show: a block on one rank that is not the sum; a block to which one
    # rank's part was never added; two blocks that changed places, on all
    # ranks. comm.allreduce(number) is in order.  (about 5 lines)
    # BEGIN SOLUTION
    w = np.random.default_rng(1).random(len(mine))  # (n,), on each rank alike
    # Distributed: what the sum must come to, counted before it was made
    wanted = comm.allreduce(float(w @ mine))
    size = comm.allreduce(float(w @ np.abs(mine)))
    wrong = abs(float(w @ total) - wanted) > 1e-7 * size
    # Distributed: whoever sees it tells all
    return comm.allreduce(wrong, op=MPI.LOR)
    # STARTER: return False
    # END SOLUTION


def split(comm: MPI.Intracomm, way: str, args: argparse.Namespace) -> None:
    """Runs one way: is it as serial, how long is a step, what does it hold?"""
    where = common.pieces(way, comm.rank, comm.size, args)
    x, y = examples(args.batch, args.width, args.dtype)  # (batch, width)
    circles = (MPI.COMM_SELF, comm)
    if way == "hybrid":
        circles = communicators(comm, common.stages_of(way, comm.size))
    states = [{} for _ in where]
    weights = []

    def step() -> tuple:
        if way == "data":
            return data_parallel(comm, weights, x, y)
        if way == "tensor":
            return tensor_parallel(comm, weights, x, y)
        if way == "pipeline":
            return pipeline(comm, weights, x, y, args)
        if way == "hybrid":
            return hybrid(comm, circles, weights, x, y, args)
        if way == "adam":
            return whole_adam(comm, weights, x, y, states)
        return sharded(comm, weights, x, y, states)

    def first_step() -> tuple:
        for k, part in where:
            whole = layer(k, args.width, args.dtype)  # (width, width)
            weights.append(whole[part].copy())
        # Adam has to go on with what it kept.
        steps = common.STEPS_OF_ADAM if way in common.WITH_ADAM else 1
        for _ in range(steps - 1):
            step()
        return step()

    (mine, result, _), peak = common.peak_bytes(first_step)
    wanted_loss, wanted = common.whole_network(way, x, y, args)
    about = common.compare(result, where, wanted)
    about["peak_bytes"] = peak
    kept = [np.size(part) for state in states for part in state.values()]
    about["state_bytes"] = sum(kept) * x.itemsize
    # Distributed: whom this rank meets in its two circles
    about["circles"] = [each.allgather(comm.rank) for each in circles]
    step_s, about["logs"] = common.timed(step, args.steps)
    about["unreceived"] = sum(common.left_over(each) for each in circles)
    # Distributed: the loss is the sum of what each rank has of it
    total = comm.allreduce(mine)
    # Distributed: what each rank found
    found = records.gather(about)
    # Distributed: one report, not one from each rank
    if comm.rank == 0:
        common.report(way, args, step_s, total, wanted_loss, found)


def main(args: argparse.Namespace) -> None:
    # Distributed: all ranks of the job; comm.rank is this one, of comm.size
    comm = MPI.COMM_WORLD
    ways = common.WAYS if args.way == "all" else [args.way]
    for way in ways:
        common.check_sizes(way, comm.size, args)
    for way in ways:
        split(comm, way, args)


if __name__ == "__main__":
    main(common.settings(__doc__.splitlines()[0]))
