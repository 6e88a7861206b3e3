"""MPI ranks that wait for a notebook's cells: ipyparallel engines, encrypted, and stopped in every
case."""

import atexit
import contextlib
import io
import logging
import os
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .base.errors import ScaleoutError
from .base.settings import RUN_ID
from .jobs import rank, supervise
from .jobs.binding import Placement, place
from .jobs.environment import inherited_environment, program
from .jobs.job import Job
from .site import Site

if TYPE_CHECKING:
    import ipyparallel as ipp
    import psutil
    from traitlets.config import Config


LOOK_S = 0.5  # how often to look whether mpirun and the controller are still there


class Engines:
    """A set of MPI ranks behind `%%px`: engine id equals rank.

    As a context it starts them, and stops them at its end.

    Parameters
    ----------
    ranks : int
    threads : int, optional
        That each may use; without it the usable cores are shared out.
    start_timeout : int
        Seconds until a start that has not succeeded is given up; eight people on two cores needed
        over 60.

    Attributes
    ----------
    ranks, threads, start_timeout : int
        As above, `threads` filled in.
    client : ipyparallel.Client or None
        None while no ranks are there.

    Raises
    ------
    ScaleoutError
        There can be no such job: no rank, or far more than the cores.

    Examples
    --------
        engines = Engines(2)
        engines.start()     # now %%px runs a cell on both ranks
        engines.stop()      # also done when the notebook's kernel ends, however it ends
    """

    def __init__(
        self, ranks: int = 2, threads: int | None = None, start_timeout: int = 180
    ) -> None:
        self._job = Job.asked(
            ["python"],
            name="engines",
            ranks=ranks,
            threads=threads,
            site=Site(),
            timeout=start_timeout,
        )
        self.ranks, self.threads = self._job.ranks, self._job.threads
        self.start_timeout = start_timeout
        self.client: ipp.Client | None = None
        self._run_id = ""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._held = contextlib.ExitStack()  # what stop() gives back, the last first

    def start(self) -> "ipp.Client":
        """Start the ranks, and make `%%px` talk to all of them.

        Returns
        -------
        ipyparallel.Client

        Raises
        ------
        ScaleoutError
            When they do not start, or take too long; nothing of them is left then.
        """
        import ipyparallel as ipp

        self.stop()
        mpirun = program("mpirun")
        began = time.monotonic()
        try:
            cluster = self._prepare(mpirun)
            quiet = io.StringIO()  # for ipyparallel's own progress bar
            with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
                self.client = cluster.start_and_connect_sync(activate=True)
            self._held.callback(self.client.close)
            self._look_after(cluster)
        except (
            TimeoutError,
            ipp.error.TimeoutError,
            ipp.error.EngineError,
            RuntimeError,
            OSError,
        ) as error:
            after_s = time.monotonic() - began
            self.stop()
            raise ScaleoutError(
                f"{self.ranks} engines did not start ({type(error).__name__} after {after_s:.0f} s, "
                f"limit {self.start_timeout} s): type  scaleout doctor  to see why."
            ) from None
        except BaseException:  # the stop button, above all
            self.stop()
            raise
        return self.client

    def _prepare(self, mpirun: str) -> "ipp.Cluster":
        """Take cores and a folder, and return the cluster to start.

        stop() gives each of them back.
        """
        import ipyparallel as ipp

        atexit.register(self.stop)
        self._held.callback(atexit.unregister, self.stop)
        placement = self._held.enter_context(place(self._job, for_engines=True))
        if placement.warning and self.ranks * self.threads <= self._job.cores:
            print(placement.warning)  # that they are more than the cores, whoever starts them knows
        self._run_id = f"engines-{secrets.token_hex(6)}"
        self._folder = tempfile.TemporaryDirectory(prefix=".scaleout-engines-")
        self._held.callback(self._folder.cleanup)
        log = logging.getLogger("scaleout.engines")
        log.setLevel(logging.CRITICAL)  # what goes wrong is said once, by start()
        cluster = ipp.Cluster(
            engines="mpi",
            n=self.ranks,
            config=self._config(mpirun, placement),
            load_profile=False,
            profile_dir=self._folder.name,
            controller_ip="127.0.0.1",
            controller_args=["--IPController.enable_curve=True"],
            engine_timeout=self.start_timeout,
            log=log,
        )
        self._held.callback(_stop_cluster, cluster)
        return cluster

    def _config(self, mpirun: str, placement: Placement) -> "Config":
        """Tell ipyparallel how to start the controller and the ranks, each below a supervisor."""
        from traitlets.config import Config

        given = self._job.variables(self._run_id)
        if self.ranks * self.threads > self._job.cores or not placement.options:
            # Ranks that share cores must not poll while they wait, or each message takes
            # milliseconds (MPICH's variable).
            given["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"
        kept = inherited_environment(alone=True)
        # Launchers add variables and remove none: `env` removes what another job left to us.
        unset = [word for name in sorted(set(os.environ) - set(kept)) for word in ("-u", name)]
        added = [f"{name}={text}" for name, text in kept.items() if name not in os.environ]
        by_us = [rank.BIND, placement.cpus] if placement.cpus else []
        binding = [] if placement.cpus else placement.options
        config = Config()
        started = supervise.command("env", *unset, *added, mpirun)
        config.MPIEngineSetLauncher.mpi_cmd = started
        config.MPIEngineSetLauncher.mpi_args = [*binding, *rank.COMMAND, *by_us]
        config.MPIEngineSetLauncher.environment = given
        controller = supervise.command(sys.executable, "-m", "ipyparallel.controller")
        config.LocalProcessLauncher.stop_seconds_until_kill = int(supervise.END_WITHIN_S)
        config.LocalControllerLauncher.controller_cmd = controller
        config.LocalControllerLauncher.environment = {RUN_ID: self._run_id}
        config.LocalControllerLauncher.connection_info_timeout = self.start_timeout
        return config

    def _look_after(self, cluster: "ipp.Cluster") -> None:
        """Start the thread that ends cells which nobody can answer."""
        stopping = threading.Event()
        self._held.callback(stopping.set)
        launchers = [cluster.controller, *cluster.engines.values()]
        watch = (self.client, [launcher.process for launcher in launchers], stopping)
        threading.Thread(target=_watch, args=watch, daemon=True).start()

    def stop(self) -> None:
        """End the ranks and the controller; nothing of them is left.

        It is safe to call at any time, and twice.
        """
        held, self._held = self._held, contextlib.ExitStack()
        held.close()
        self.client = self._folder = None

    def reset(self) -> "ipp.Client":
        """End what is left of the ranks and start them anew.

        A rank that dies takes all the others with it.

        Returns
        -------
        ipyparallel.Client

        Raises
        ------
        ScaleoutError
            As of `start`.
        """
        return self.start()

    def __enter__(self) -> "ipp.Client":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _stop_cluster(cluster: "ipp.Cluster") -> None:
    """Ask ipyparallel to end its processes, and wait until their supervisors have ended all."""
    import psutil

    launchers: list[Any] = []
    with contextlib.suppress(Exception):
        launchers += [one for one in (cluster.controller, *cluster.engines.values()) if one]
        cluster.stop_cluster_sync()
    for launcher in launchers:
        with contextlib.suppress(psutil.Error, AttributeError):  # it has ended, or never began
            launcher.process.terminate()
            launcher.process.wait(supervise.END_WITHIN_S)


def _watch(
    client: "ipp.Client", processes: "Sequence[psutil.Process]", stopping: threading.Event
) -> None:
    """End cells that would wait for ever.

    Once mpirun or the controller has gone, nobody is left to answer.

    ipyparallel notices an engine that ends, but not a controller, and a set that was killed whole
    only after 35 s.
    """
    import psutil

    def gone(process: "psutil.Process") -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return bool(process.status() == psutil.STATUS_ZOMBIE)
        return True

    def give_up() -> None:
        for engine, uuid in list(client._engines.items()):
            client._handle_stranded_msgs(
                engine, uuid
            )  # what the client does itself when it hears that an engine died

    while not stopping.wait(LOOK_S):
        if any(map(gone, processes)):
            client._io_loop.add_callback(give_up)
