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
POLL_S = 0.002  # between two looks at whether all is done
COUNT_S = 0.02  # between two questions to a server about how far they are
PATIENCE_S = 60.0  # without a single gradient
ROUNDS = 1 if data.quick() else 3  # of both rules in turns


class Training:
    """One training by one rule, as rank 0 leads it and sees it."""

    def __init__(self, network: object, coordinator: object, rule: str,
                 rows: np.ndarray) -> None:
        self.network = network
        self.coordinator = coordinator
        self.rule = rule
        self.rows = rows
        self.used = 0  # gradients, when rank 0 last asked
        self.stale = 0.0  # gradients of others between pull and push
        self.killed_at = []  # seconds, gradients
        self.why = ""  # it ended early
        self.moments = [(0.0, 0, network.start)]  # seconds, gradients, weights
        self.begin = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self.begin

    def look(self) -> None:
        """The weights now, for the curve of the loss."""
        weights = self.network.pull()
        self.moments.append((self.seconds(), self.used, weights))

    def time_to_look(self) -> bool:
        every = len(self.rows) / LOOKS
        return self.used - self.moments[-1][1] >= every

    def hand_out(self, rows: np.ndarray, kill: Callable | None) -> None:
        """Has a gradient of each of these rows computed and used."""
        for each in rows:
            # Distributed: to whichever worker is free
            self.coordinator.schedule(self.network.work,
                                      args=(self.rule, each))
        asked = time.monotonic()
        news = asked
        # Distributed: until each has a result
        while not self.coordinator.done():
            time.sleep(POLL_S)
            if time.monotonic() < asked + COUNT_S:
                continue
            used = int(self.network.pushed)
            asked = time.monotonic()
            if used > self.used:
                news = asked
            self.used = used
            if kill and not self.killed_at and 2 * used >= len(self.rows):
                self.killed_at = [self.seconds(), used]
                kill()
            if self.rule == "async" and self.time_to_look():
                self.look()
            if asked > news + PATIENCE_S:
                self.why = f"no gradient for {PATIENCE_S:g} s"
                return
        # Distributed: raises what went wrong on a server
        self.coordinator.join()
        self.used = int(self.network.pushed)

    def run(self, kill: Callable | None) -> None:
        """All rows; kill() is called when half of the gradients are used."""
        # What one update waits for; where nobody waits, all is handed out.
        group = len(self.rows)
        if self.rule == "sync":
            group = self.network.args.workers
        try:
            for first in range(0, len(self.rows), group):
                self.hand_out(self.rows[first : first + group], kill)
                if self.why:
                    return
                if self.rule == "sync":
                    self.network.apply()
                    if self.time_to_look():
                        self.look()
            self.look()
            if self.rule == "async":
                self.stale = int(self.network.between) / self.used
        except tf.errors.UnavailableError:
            self.why = "a server is gone, and its weights with it"


def warm_up(network: object, coordinator: object, rule: str,
            rows: np.ndarray) -> None:
    """Once without a clock, so that everybody has every function."""
    for _ in range(2 * network.args.workers):
        coordinator.schedule(network.work, args=(rule, rows[0]))
    coordinator.join()
    network.apply()


def connected(args: argparse.Namespace, cluster: dict) -> tuple:
    """The network, its weights on the servers, and who hands out the work."""
    x, y, x_test, y_test = data.digits()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    # TensorFlow sends the images to each worker once, inside of what it runs.
    network = Network(strategy, args, x[:2000], y[:2000])
    return network, coordinator, x_test, y_test


def lead(comm: MPI.Comm, args: argparse.Namespace, cluster: dict) -> list:
    """Rank 0: connects to all processes, trains, and reports.

    Returns what would talk to all processes once more when it is forgotten.
    """
    others = list(range(1, comm.size))
    for rank in others:
        # Distributed: its process serves
        comm.recv(source=rank)
    if args.kill:
        tf.get_logger().setLevel("CRITICAL")
    network, coordinator, x_test, y_test = connected(args, cluster)
    updates = -(-args.gradients // args.workers)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(network.x), size=(updates * args.workers, BATCH))
    last = args.servers if args.kill == "server" else comm.size - 1

    def kill() -> None:
        # Linux soon forgets what the others' connections to it have counted.
        tell(comm, "bytes", others)
        tell(comm, "kill", [last])

    rules = [args.rule]
    if args.rule == "both":
        # In turns, so that both meet the same machine.
        rules = (ROUNDS * ["async", "sync", "sync", "async"])[: 2 * ROUNDS]
    for rule in sorted(set(rules)):
        warm_up(network, coordinator, rule, rows)
    for rule in rules:
        network.restart()
        before = tell(comm, "bytes", others)
        training = Training(network, coordinator, rule, rows)
        training.run(kill if args.kill else None)
        after = tell(comm, "bytes", others)
        moved = [{key: b[key] - a[key] for key in b}
                 for a, b in zip(before, after, strict=True)]
        curve = [[seconds, used, network.loss_of(w, x_test, y_test)]
                 for seconds, used, w in training.moments]
        off = None
        if rule == "sync" and not training.why:
            weights = training.moments[-1][2]
            off = float(np.abs(weights - network.serial(rows)).max())
        report(args, training, curve, off, moved)
    return [network, coordinator]


def report(args: argparse.Namespace, training: Training, curve: list,
           off: float | None, moved: list) -> None:
    """Some lines and one record."""
    rule = training.rule
    used = training.used
    seconds, left, loss = curve[-1]
    share = 4 * training.network.n / args.servers
    # When rank 0 looks at the weights, that is a pull, too.
    looks = len(curve) - 1
    formula = {"sent": (used + looks) * share, "received": used * share}
    records.write(
        lab="11_parallelism",
        variant=rule,
        ranks=1 + args.servers + args.workers,
        batch_per_rank=BATCH,
        rate=left / seconds if seconds else None,
        rate_unit="gradients/s",
        metrics={
            "servers": args.servers,
            "workers": args.workers,
            "slow": args.slow,
            "parameters": training.network.n,
            "asked": len(training.rows),
            "used": used,
            "left": left,
            "seconds": seconds,
            "loss": loss,
            "curve": curve,
            "stale": training.stale,
            "off": off,
            "killed": args.kill or "",
            "killed_at": training.killed_at,
            "why": training.why,
            "by_servers": moved[: args.servers],
            "by_workers": moved[args.servers :],
            "formula": formula,
        },
    )
    if training.killed_at:
        tell_of_the_killed(args, training, seconds, left)
    if training.why:
        print(f"{rule}: it ended early: {training.why}", flush=True)
        return
    between = ""
    if rule == "async":
        between = f"{training.stale:.1f} of others between pull and push, "
    print(f"{rule}: {used} gradients in {seconds:.2f} s, {between}"
          f"loss {loss:.3f}", flush=True)
    if off is not None:
        print(f"weights differ from serial by {off:.1e}", flush=True)
    sent = max(each["sent"] for each in moved[: args.servers])
    print(f"a server sent {sent:,} bytes; the formula says "
          f"{formula['sent']:,.0f}", flush=True)


def tell_of_the_killed(args: argparse.Namespace, training: Training,
                       seconds: float, left: int) -> None:
    """What became of the gradients, and what is left."""
    at_s, at = training.killed_at
    print(f"the last {args.kill} was killed after {at} gradients", flush=True)
    used = training.used
    asked = len(training.rows)
    if not training.why:
        print(f"asked for {asked} gradients, used {used}: "
              f"{max(0, asked - used)} lost, {max(0, used - asked)} twice; "
              f"{at / at_s:.0f} a second before, "
              f"{(used - at) / (seconds - at_s):.0f} after", flush=True)
    else:
        print(f"left are the weights that rank 0 saw after {left} gradients; "
              f"{used - left} or more came later and are lost", flush=True)
