"""One job started from this machine: mpirun's command, its run, and how it ended."""

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from io import FileIO

from ..base.errors import FULL, WHEN_FULL, ScaleoutError
from ..jobs import meeting, rank, supervise, talking
from ..jobs.binding import Placement, place
from ..jobs.environment import inherited_environment, program
from ..jobs.failed_ranks import FailedRanks
from ..jobs.failures import explain, out_of_time
from ..jobs.job import EndJob, Job, JobFailed, JobInterrupted, JobTimeout, Run, new_run
from ..jobs.output import Transcript, mark, read
from ..site import words_of
from .signals import handed_on

# What ranks on other hosts get beyond the job's own limit, before they end by themselves.
BEYOND_S = 30.0
PLACES_S = 5.0  # for ranks to say where they stand once the time is up
LOOK_S = 1.0  # between two looks at the job's processes and connections, of some 10 ms each
MAPS = "/tmp", "hydra_hwloc_xmlfile_"  # what Hydra leaves behind where a job is aborted
OLD_S = 600.0
Errors = list[tuple[FileIO, FileIO]]  # of each rank's standard error, the end to read and the other


def run(
    job: Job, say: Callable[[str], None], where: Sequence[str] = (), first_host: str = ""
) -> Run:
    """Run a job to its end.

    On other machines than this one, `where` has mpirun's options that name them, and `first_host`
    is that of rank 0."""
    by_hydra = not job.elsewhere and job.site.launcher == "hydra"
    path = program(job.site.mpirun)
    run_id, folder = new_run(job.name)
    given = job.variables(run_id, str(folder / "records.jsonl"))
    inherited = inherited_environment(bool(job.site.scheduler), alone=by_hydra)
    with place(job) as placement:
        options = _options(job, where, placement.options)
        command = shlex.join([job.site.mpirun, *options, *job.command])
        say("$ " + command)
        if placement.warning:
            say(placement.warning)
        run = Run(run_id, job.name, command, folder, job.ranks, job.threads, env=job.env)
        with contextlib.ExitStack() as opened:
            try:
                meets = opened.enter_context(meeting.variables(run_id, first_host))
                errors = opened.enter_context(_errors(job.ranks if by_hydra else 0))
            except OSError as error:
                raise ScaleoutError(
                    f"{job.name} cannot be started ({error.strerror}): {WHEN_FULL}."
                ) from None
            line = [path, *_line(job, where, placement, run_id, errors)]
            every = {**inherited, **meets, **given}
            environment = {name: text for name, text in every.items() if text is not None}
            _follow(job, run, line, environment, say, errors)
    return _judged(job, run, say)


def _options(job: Job, where: Sequence[str], binding: Sequence[str]) -> list[str]:
    """Build the options of mpirun that a person would type."""
    spread = ["-ppn", str(job.ranks_per_node)] if job.nodes > 1 or job.site.hosts else []
    return ["-n", str(job.ranks), *where, *spread, *binding, *words_of(job.site.options)]


@contextlib.contextmanager
def _errors(ranks: int) -> Iterator[Errors]:
    """Make a pipe for the standard error of each of so many ranks, which inherit what we have opened.

    Hydra ends all at once when a rank aborts, and may not have handed on by then what that rank
    said last."""
    with contextlib.ExitStack() as opened:
        pipes: Errors = []
        for _ in range(ranks):
            out, into = os.pipe()
            pipes.append(
                (
                    opened.enter_context(open(out, "rb", buffering=0)),
                    opened.enter_context(open(into, "wb", buffering=0)),
                )
            )
        yield pipes


def _line(
    job: Job, where: Sequence[str], placement: Placement, run_id: str, errors: Errors
) -> list[str]:
    """Build mpirun's arguments: a person's options, and those that only a launcher needs."""
    marks = ["-prepend-pattern", mark(run_id)] if job.site.launcher == "hydra" else []
    count = [talking.COUNT] if job.counted else []
    # Ranks on a host that is cut off end by themselves: no signal of ours arrives there.
    limit = ["timeout", "--foreground", "-s", "KILL", f"{job.timeout + BEYOND_S:g}"]
    by_us = [rank.PER_NODE, str(job.ranks_per_node)] if job.ranks % job.ranks_per_node else []
    by_us += [rank.BIND, placement.cpus] if placement.cpus else []
    own = ",".join(str(into.fileno()) for _, into in errors)
    by_us += [rank.ERRORS, own] if errors else []
    by_us += [rank.WATCH] if job.watched else []
    binding = [] if placement.cpus else placement.options
    options = [*count, *marks, *_options(job, where, binding)]
    return [*options, *(limit if job.site.hosts else []), *rank.COMMAND, *by_us, *job.command]


def _follow(
    job: Job,
    run: Run,
    line: list[str],
    environment: dict[str, str],
    say: Callable[[str], None],
    errors: Errors,
) -> None:
    """Start the command, wait for its end, and keep what is known of the run."""
    start = time.monotonic()
    try:
        with contextlib.suppress(EndJob):
            _stream(job, run, line, environment, say, errors)
    except KeyboardInterrupt as stop:
        seconds, by = time.monotonic() - start, f" by {stop}" * bool(str(stop))
        left = supervise.descendants(os.getpid()) if run.status is None else []
        how = "is being ended" if left else "has been ended"
        raise JobInterrupted(f"Interrupted{by} after {seconds:.1f} s: the job {how}.") from None
    finally:
        run.wall_s = time.monotonic() - start
        run.keep()


def _stream(
    job: Job,
    run: Run,
    line: list[str],
    environment: dict[str, str],
    say: Callable[[str], None],
    errors: Errors,
) -> None:
    """Start mpirun below its supervisor, and take its lines until the end."""
    end = time.monotonic() + job.timeout
    talk, port = talking.Talk(job.counted), environment.get("MASTER_PORT", "")
    look_at = time.monotonic() + LOOK_S
    own = [out for out, _ in errors]

    def take_quietly(started: "subprocess.Popen[bytes]", within_s: float) -> None:
        for lines in read(started, run.id, time.monotonic() + within_s, own):
            transcript.add((one for one in lines if not talk.consume(*one)), quietly=True)

    inherited = [into for _, into in errors]
    with (
        Transcript(run.name, run.folder, run.lines, say) as transcript,
        _supervised(line, environment, job.stdin, inherited, take_quietly) as started,
        handed_on(lambda: _ranks(started.pid)),
    ):
        failed = FailedRanks(started.pid)
        for lines in read(started, run.id, end, own):
            heard_before = bool(run.lines)
            transcript.add(one for one in lines if not talk.consume(*one))
            if time.monotonic() >= look_at or (run.lines and not heard_before):
                if job.counted and not talk.met:
                    if heard_before:  # those at MASTER_PORT stay for a minute
                        talk.met = talking.connections(port)
                    ranks, launchers = _processes(started.pid)
                    if talking.own_sockets(ranks, talking.files(launchers)):
                        talk.seen = True
                failed.look(run.lines)
                look_at = time.monotonic() + LOOK_S
            if failed.waited_long():
                break
        if job.counted and not talk.calls:
            talk.met = talk.met or talking.connections(port)
        left_s = 0.0 if failed.waited_long() else end - time.monotonic()
        run.status = started.wait() if supervise.has_ended(started.pid, left_s) else None
        run.waited = run.status is None and failed.since is not None
        if run.waited:
            run.status = 1
        elif run.status is None:
            os.kill(started.pid, supervise.STAND)
            take_quietly(started, PLACES_S)
    run.talked = talk.verdict()


def _processes(supervisor: int) -> tuple[list[int], list[int]]:
    """List the processes of Hydra's ranks, and those of Hydra itself."""
    hydra = supervise.children(supervisor)
    launched = [both for both in map(supervise.ranks, hydra) if both]
    ranks = [pid for _, there in launched for pid in there]
    workers = [pid for rank in ranks for pid in supervise.descendants(rank)]
    return ranks + workers, hydra + [pid for proxies, _ in launched for pid in proxies]


def _ranks(supervisor: int) -> list[int]:
    """List the processes of the ranks on this machine; none where another launcher starts them."""
    launched = map(supervise.ranks, supervise.children(supervisor))
    return [pid for both in launched if both for pid in both[1]]


@contextlib.contextmanager
def _supervised(
    line: list[str],
    environment: dict[str, str],
    stdin: bool,
    inherited: Sequence[FileIO],
    listen: Callable[["subprocess.Popen[bytes]", float], None],
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command below a supervisor, which inherits these files.

    All that it has started has ended with the block; `listen` takes what it says so late, within
    so many seconds.
    """
    try:
        if not os.access(line[0], os.X_OK):
            number = errno.EACCES if os.path.exists(line[0]) else errno.ENOENT
            raise OSError(number, os.strerror(number))
        started = subprocess.Popen(
            supervise.command(*line),
            env=environment,
            stdin=None if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C in a terminal reaches us alone, and we end the job in order
            start_new_session=True,
            pass_fds=[file.fileno() for file in inherited],
        )
        for file in inherited:
            file.close()
    except OSError as error:
        fix = "type  make lab  to mend it, or correct the site file"
        if error.errno in FULL:
            fix = WHEN_FULL
        elif error.errno == errno.E2BIG:
            fix = "its arguments and variables are too long: put them into a file"
        raise ScaleoutError(f"{line[0]} cannot be started ({error.strerror}): {fix}.") from None
    try:
        yield started
    finally:
        if not supervise.has_ended(started.pid):
            os.kill(started.pid, supervise.END)
            # A second Ctrl-C leaves here: the supervisor ends the job in our place.
            # Ranks may save their state now; and mpirun would die of what nobody reads.
            with contextlib.suppress(ScaleoutError):
                listen(started, supervise.END_WITHIN_S)
            if not supervise.has_ended(started.pid, supervise.END_WITHIN_S):
                os.kill(started.pid, signal.SIGKILL)  # it does not answer; mpirun ends with it
            _tidy()
        started.wait()


def _tidy() -> None:
    """Remove the maps of the machine that Hydra has left in /tmp where a job was aborted.

    A rank reads its own only while it starts.
    """
    folder, name = MAPS
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                old = about.st_uid == os.getuid() and time.time() - about.st_mtime > OLD_S
                if entry.name.startswith(name) and old:
                    os.unlink(entry.path)


def _judged(job: Job, run: Run, say: Callable[[str], None]) -> Run:
    """Return the run if it ended well; else raise what its end calls for."""
    if run.status is None:
        raise JobTimeout(out_of_time(run, job.timeout), run)
    if run.status:
        raise JobFailed(explain(run), run)
    if run.copies:
        say(run.copies)
    return run
