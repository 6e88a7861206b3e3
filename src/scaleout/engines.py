"""MPI ranks that wait for a notebook's cells: ipyparallel engines, encrypted, and stopped in every case."""

import atexit
import contextlib
import io
import logging
import os
import secrets
import subprocess
import tempfile
from typing import TYPE_CHECKING

from . import machine, reaper
from .errors import ScaleoutError
from .launch import clean_environment, program, thread_variables

if TYPE_CHECKING:
    import ipyparallel as ipp

__all__ = ["Engines"]


class Engines:
    """A set of MPI ranks behind `%%px`: engine id equals rank.

    ranks: how many.  threads: threads each may use; without it the usable cores are shared out.
    start_timeout: seconds until a start that has not succeeded is given up.

        engines = Engines(2)
        engines.start()     # now %%px runs a cell on both ranks
        engines.stop()      # also done when the notebook's kernel ends, however it ends
    """

    def __init__(self, ranks: int = 2, threads: int | None = None, start_timeout: int = 60) -> None:
        self.ranks = ranks
        self.threads = threads or max(1, machine.facts().usable_cores // ranks)
        self.start_timeout = start_timeout
        self.client: ipp.Client | None = None
        self._cluster: ipp.Cluster | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._run_id = ""

    def start(self) -> "ipp.Client":
        """Starts the ranks and makes `%%px` talk to all of them; ScaleoutError when that takes too long."""
        import ipyparallel as ipp
        from traitlets.config import Config

        self.stop()
        self._run_id = f"engines-{secrets.token_hex(6)}"
        self._folder = tempfile.TemporaryDirectory(prefix="scaleout-engines-")
        self._guard = reaper.guard(self._run_id)
        atexit.register(self.stop)
        variables = {"SCALEOUT_RUN_ID": self._run_id, **thread_variables(self.threads)}
        config = Config()
        config.LocalControllerLauncher.environment = {"SCALEOUT_RUN_ID": self._run_id}
        config.MPIEngineSetLauncher.environment = variables
        config.MPIEngineSetLauncher.mpi_cmd = [program("mpirun")]
        config.MPIEngineSetLauncher.mpi_args = self._binding()
        log = logging.getLogger("scaleout.engines")
        log.setLevel(logging.ERROR)
        self._cluster = ipp.Cluster(
            engines="mpi",
            n=self.ranks,
            config=config,
            load_profile=False,
            profile_dir=self._folder.name,
            controller_ip="127.0.0.1",
            controller_args=["--IPController.enable_curve=True"],
            engine_timeout=self.start_timeout,
            log=log,
        )
        saved = dict(os.environ)
        try:
            for name in set(saved) - set(clean_environment(saved)):  # the launchers add variables, they remove none
                del os.environ[name]
            with contextlib.redirect_stderr(io.StringIO()):  # ipyparallel's own progress bar
                self.client = self._cluster.start_and_connect_sync(activate=True)
        except (TimeoutError, ipp.error.TimeoutError, ipp.error.EngineError, RuntimeError, OSError) as error:
            self.stop()
            raise ScaleoutError(
                f"{self.ranks} engines did not start within {self.start_timeout} s ({type(error).__name__}): "
                "type  scaleout doctor  to see why."
            ) from None
        finally:
            os.environ.update(saved)
        return self.client

    def _binding(self) -> list[str]:
        fits = self.ranks * self.threads <= machine.facts().usable_cores
        return ["-bind-to", f"core:{self.threads}"] if fits else []

    def stop(self) -> None:
        """Ends the ranks and the controller; nothing of them is left. Safe to call at any time, and twice."""
        if self._guard is None:
            return
        atexit.unregister(self.stop)
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
