"""What rank 0 of server.py does: it hands out the work, looks, and reports.

There is nothing to fill in here. It imports TensorFlow, so only rank 0 does.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from learner import Network

# Distributed: this import also starts MPI
from mpi4py import MPI
from watching import tell

from scaleout import data, records

BATCH = 32  # images in each gradient
LOOKS = 30  # at the weights, for the curve of the loss
POLL_S = 0.002  # between two looks at how far they are
PATIENCE_S = 60.0  # without a single gradient


def train(network: object, coordinator: object, rows: np.ndarray,
          kill: Callable[[], None]) -> tuple:
    """Rank 0 leads: hands out all rows, and looks at the weights meanwhile.

    Returns (seconds, gradients, weights) at some moments, how many gradients
    of others came between a pull and its push, and why it ended early.
    """
    args = network.args
    # An update waits for so many gradients; without a rule for none.
    group = args.workers if args.wait_for_all else len(rows)
    every = len(rows) / LOOKS
    moments = [(0.0, 0, network.start)]
    used = 0
    begin = time.monotonic()
    news = begin

    def look() -> None:
        moments.append((time.monotonic() - begin, used, network.pull()))

    try:
        for first in range(0, len(rows), group):
            for each in rows[first : first + group]:
                # Distributed: to whichever worker is free
                coordinator.schedule(network.work, args=(each,))
            # Distributed: until each has a result
            while not coordinator.done():
                time.sleep(POLL_S)
                now = int(network.pushed)
                if now > used:
                    news = time.monotonic()
                used = now
                if args.kill and 2 * used >= len(rows):
                    kill()
                    args.kill = None
                if not args.wait_for_all and used - moments[-1][1] >= every:
                    look()
                if time.monotonic() > news + PATIENCE_S:
                    return moments, 0.0, f"no gradient for {PATIENCE_S:g} s"
            # Distributed: raises what went wrong on a server
            coordinator.join()
            used = int(network.pushed)
            if args.wait_for_all:
                network.apply()
                if used - moments[-1][1] >= every:
                    look()
        look()
        return moments, int(network.between) / used, ""
    except tf.errors.UnavailableError:
        return moments, 0.0, "a server is gone, and its weights with it"


def warm_up(network: object, coordinator: object, rows: np.ndarray) -> None:
    """Once without a clock, so that everybody has every function."""
    for _ in range(2 * network.args.workers):
        coordinator.schedule(network.work, args=(rows[0],))
    coordinator.join()
    network.apply()
    network.restart()


def lead(comm: MPI.Comm, args: argparse.Namespace, cluster: dict) -> list:
    """Rank 0: connects to all processes, trains, and reports.

    Returns what would talk to the servers once more when it is forgotten.
    """
    others = list(range(1, comm.size))
    for rank in others:
        # Distributed: its process serves
        comm.recv(source=rank)
    x, y, x_test, y_test = data.digits()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    # TensorFlow sends the images to each worker once, inside of what it runs.
    network = Network(strategy, args, x[:2000], y[:2000])
    updates = -(-args.gradients // args.workers)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(network.x), size=(updates * args.workers, BATCH))
    killed = args.kill or ""
    last = args.servers if args.kill == "server" else comm.size - 1

    warm_up(network, coordinator, rows)
    before = tell(comm, "bytes", others)
    moments, stale, why = train(network, coordinator, rows,
                                lambda: tell(comm, "kill", [last]))
    after = tell(comm, "bytes", others)
    moved = [{key: b[key] - a[key] for key in b} if b else None
             for a, b in zip(before, after, strict=True)]
    curve = [[seconds, used, network.loss_of(w, x_test, y_test)]
             for seconds, used, w in moments]
    off = None
    if args.wait_for_all and not why:
        off = float(np.abs(moments[-1][2] - network.serial(rows)).max())
    about = {
        "asked": len(rows),
        "curve": curve,
        "stale": stale,
        "off": off,
        "killed": killed,
        "why": why,
        "by_servers": moved[: args.servers],
        "by_workers": moved[args.servers :],
    }
    report(args, network.n, about)
    return [network, coordinator]


def report(args: argparse.Namespace, n: int, about: dict) -> None:
    """Some lines and one record."""
    seconds, used, loss = about["curve"][-1]
    share = 4 * n / args.servers
    # When rank 0 looks at the weights, that is a pull, too.
    looks = len(about["curve"]) - 1
    formula = {"sent": (used + looks) * share, "received": used * share}
    variant = "sync" if args.wait_for_all else "async"
    records.write(
        lab="11_parallelism",
        variant=variant,
        ranks=1 + args.servers + args.workers,
        batch_per_rank=BATCH,
        rate=used / seconds if seconds else None,
        rate_unit="gradients/s",
        metrics={
            **about,
            "servers": args.servers,
            "workers": args.workers,
            "parameters": n,
            "slow": args.slow,
            "used": used,
            "seconds": seconds,
            "loss": loss,
            "formula": formula,
        },
    )
    if about["why"]:
        print(f"{variant}: it ended after {used} gradients or more: "
              f"{about['why']}", flush=True)
        return
    print(f"{variant}: {used} gradients in {seconds:.2f} s, "
          f"{about['stale']:.1f} of others between pull and push; "
          f"loss {loss:.3f}", flush=True)
    if about["off"] is not None:
        print(f"weights differ from serial by {about['off']:.1e}", flush=True)
    sent = max(each["sent"] for each in about["by_servers"])
    print(f"a server sent {sent:,} bytes; the formula says "
          f"{formula['sent']:,.0f}", flush=True)
