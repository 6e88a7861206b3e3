"""MPI ranks that wait for a notebook's cells: ipyparallel engines, encrypted, and stopped in every case."""

import atexit
import contextlib
import io
import logging
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import machine, reaper
from .errors import ScaleoutError
from .launch import binding, clean_environment, program, thread_variables
from .paths import results
from .site import allocated_nodes

if TYPE_CHECKING:
    import ipyparallel as ipp
    import psutil

__all__ = ["Engines"]

LOOK_S = 0.5  # how often to look whether mpirun and the controller are still there


class Engines:
    """A set of MPI ranks behind `%%px`: engine id equals rank.

    ranks: how many.  threads: threads each may use; without it the usable cores are shared out.
    start_timeout: seconds until a start that has not succeeded is given up; eight people on two cores needed over 60.

        engines = Engines(2)
        engines.start()     # now %%px runs a cell on both ranks
        engines.stop()      # also done when the notebook's kernel ends, however it ends
    """

    def __init__(self, ranks: int = 2, threads: int | None = None, start_timeout: int = 180) -> None:
        if ranks < 1 or start_timeout <= 0:
            raise ScaleoutError(
                f"Engines need at least 1 rank and a limit above 0 s; asked for {ranks}, {start_timeout}."
            )
        self.ranks = ranks
        self.threads = threads or max(1, machine.usable_cores() // ranks)
        self.start_timeout = start_timeout
        self.client: ipp.Client | None = None
        self._cluster: ipp.Cluster | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._run_id = ""

    def start(self) -> "ipp.Client":
        """Starts the ranks and makes `%%px` talk to all of them; ScaleoutError when that takes too long."""
        import ipyparallel as ipp
        from traitlets.config import Config

        self.stop()
        config = Config()
        config.MPIEngineSetLauncher.mpi_cmd = [program("mpirun")]
        cores = machine.usable_cores()
        nodes = min(allocated_nodes(os.environ), self.ranks)  # the Slurm allocation around us, if it has several
        on_each = -(-self.ranks // max(1, nodes))
        spread = ["-ppn", str(on_each)] if nodes > 1 else []
        config.MPIEngineSetLauncher.mpi_args = spread + binding(on_each, self.threads, cores, elsewhere=nodes > 1)
        self._run_id = f"engines-{secrets.token_hex(6)}"
        mine = {"SCALEOUT_RUN_ID": self._run_id}
        config.LocalControllerLauncher.environment = mine
        config.LocalControllerLauncher.connection_info_timeout = self.start_timeout
        # Ranks that share cores must not poll while they wait, or each message takes milliseconds (MPICH's variable).
        shared = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"} if on_each * self.threads > cores else {}
        if nodes > 1:
            shared |= {"SLURM_OVERLAP": "1"}  # the notebook is itself a step of the job, which holds all its cores
        config.MPIEngineSetLauncher.environment = {**mine, **thread_variables(self.threads), **shared}
        log = logging.getLogger("scaleout.engines")
        log.setLevel(logging.CRITICAL)  # what goes wrong is said once, below
        where = results() if nodes > 1 else None  # other nodes do not see our /tmp
        self._folder = tempfile.TemporaryDirectory(prefix=".scaleout-engines-", dir=where)
        self._guard = reaper.guard(self._run_id)
        atexit.register(self.stop)
        self._cluster = ipp.Cluster(
            engines="mpi",
            n=self.ranks,
            config=config,
            load_profile=False,
            profile_dir=self._folder.name,
            controller_ip=_address() if nodes > 1 else "127.0.0.1",
            controller_args=["--IPController.enable_curve=True"],
            engine_timeout=self.start_timeout,
            log=log,
        )
        saved, began = dict(os.environ), time.monotonic()
        try:
            for name in set(saved) - set(clean_environment(saved)):  # the launchers add variables, they remove none
                if nodes < 2 or not name.startswith("SLURM"):
                    del os.environ[name]
            quiet = io.StringIO()  # for ipyparallel's own progress bar
            with contextlib.redirect_stderr(quiet), contextlib.redirect_stdout(quiet):
                self.client = self._cluster.start_and_connect_sync(activate=True)
        except (TimeoutError, ipp.error.TimeoutError, ipp.error.EngineError, RuntimeError, OSError) as error:
            after_s = time.monotonic() - began
            self.stop()
            raise ScaleoutError(
                f"{self.ranks} engines did not start ({type(error).__name__} after {after_s:.0f} s, "
                f"limit {self.start_timeout} s): type  scaleout doctor  to see why."
            ) from None
        except BaseException:  # the stop button, above all
            self.stop()
            raise
        finally:
            os.environ.update(saved)
        launchers = [self._cluster.controller, *self._cluster.engines.values()]
        self._stopping = threading.Event()
        watch = (self.client, [launcher.process for launcher in launchers], self._stopping)
        threading.Thread(target=_watch, args=watch, daemon=True).start()
        return self.client

    def stop(self) -> None:
        """Ends the ranks and the controller; nothing of them is left. Safe to call at any time, and twice."""
        if self._guard is None:
            return
        atexit.unregister(self.stop)
        self._stopping.set()
        if self.client is not None:
            self.client.close()
        if self._cluster is not None:
            with contextlib.suppress(Exception):  # what it leaves is ended below
                self._cluster.stop_cluster_sync()
        reaper.end(self._run_id)
        self._guard.communicate(b"done")
        self._folder.cleanup()
        self.client = self._cluster = self._guard = None

    def reset(self) -> "ipp.Client":
        """Ends what is left of the ranks and starts them anew: one that dies takes all the others with it."""
        return self.start()

    def __enter__(self) -> "ipp.Client":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _address() -> str:
    """This node's own address, the one that its name stands for, where engines on other nodes find the controller."""
    known = socket.gethostbyname_ex(socket.gethostname())[2]
    return next((address for address in known if not address.startswith("127.")), "127.0.0.1")


def _watch(client: "ipp.Client", processes: "Sequence[psutil.Process]", stopping: threading.Event) -> None:
    """Ends cells that would wait for ever: once mpirun or the controller has gone, nobody is left to answer.

    ipyparallel notices an engine that ends, but not a controller, and a set that was killed whole only after 35 s.
    """
    import psutil

    def gone(process: "psutil.Process") -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.status() == psutil.STATUS_ZOMBIE
        return True

    def give_up() -> None:
        for engine, uuid in list(client._engines.items()):
            client._handle_stranded_msgs(engine, uuid)  # what the client does itself when it hears that an engine died

    while not stopping.wait(LOOK_S):
        if any(map(gone, processes)):
            client._io_loop.add_callback(give_up)
