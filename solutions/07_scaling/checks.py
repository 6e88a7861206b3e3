"""What each TODO of 07_scaling is checked by: small jobs on up to four ranks,
for job.sh what it asks for and starts, and for again.sh what it does when it
is warned. TODO 6 stands in train.py.

The checks look at the records, never at the code or the clock. 103 rows leave
3 when four ranks share them.
"""

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from scaleout import todo

RANKS = 4
ROWS = 103
LAYERS = 3
ONE_S = 0.5
PATIENCE_S = 60.0  # with the queue; a job that waits longer is taken back
SMALL = {
    "threads": 1,
    "batch": ROWS,
    "width": 64,
    "layers": LAYERS,
    "steps": 2,
    "one": ONE_S,
}
HERE = Path(__file__).parent
SHORT = {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "t": "time",
         "o": "output"}
ASK = re.compile(r"#SBATCH\s+(?:--([\w-]+)[=\s]|-(\w)[=\s]?)\s*(\S+)")
ENDS = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL",
        "OUT_OF_MEMORY")
OWN_CLUSTER = HERE.parents[1] / ".setup/cluster/slurm.conf"
STARTERS = ("srun", "mpirun", "mpiexec", "python")
# Stands in for what starts the ranks, and writes down how it was called.
STAND_IN = """#!/bin/bash
printf '%s\\n' "${0##*/}" "$OMP_NUM_THREADS" "$*" > "$CALLED"
"""
# And these for ranks that take a moment to save, and for the queue.
RANKS_STAND_IN = """#!/bin/bash
trap 'sleep 0.5; echo saved >> "$CALLED"; exit 0' USR1
echo started >> "$CALLED"
for second in {1..200}; do sleep 0.05; done
"""
QUEUE_STAND_IN = """#!/bin/bash
echo "scontrol $*" >> "$CALLED"
"""


def small_job(job, ranks=RANKS, mode="strong"):
    """The record of a small job, and its metrics."""
    run = job(ranks=ranks, mode=mode, **SMALL)
    assert len(run.records) == 1, (
        f"expected one record, from rank 0; saw {len(run.records)}."
    )
    return run.records.iloc[0], run.records["metrics"].iloc[0]


def is_near(saw, wanted):
    """Whether two times or ratios agree, up to rounding."""
    return abs(saw - wanted) <= 1e-6 * abs(wanted)


def reason(saw, reasons):
    """Why somebody may have got this number, as far as it can be told."""
    return next((why for number, why in reasons if is_near(saw, number)), "")


@todo(
    1,
    hints=[
        "A ring has two rounds. In each of them, how many messages does a "
        "rank send, and how large is one?",
        "2 (ranks - 1) messages; each is one block of the array, n / ranks "
        "bytes, and costs alpha + beta times that.",
        "return 2 * (ranks - 1) * (alpha + beta * n / ranks)",
    ],
)
def the_ring_has_its_formula(job):
    """The time by the formula, from this job's own alpha and beta."""
    for ranks in (2, RANKS):
        _, metrics = small_job(job, ranks)
        n = metrics["bytes"]
        alpha = metrics["alpha_s"]
        beta = metrics["beta_s"]
        saw = metrics["ring_s"]
        message = alpha + beta * n / ranks
        wanted = 2 * (ranks - 1) * message
        because = reason(saw, [
            ((ranks - 1) * message, "There are two rounds: one brings the "
             "sums together, one brings them to all."),
            (2 * ranks * message, "With ranks - 1 messages a block has "
             "reached every other rank."),
            (2 * (ranks - 1) * (alpha + beta * n), "A message is one block of "
             "the n bytes, n / ranks."),
            (2 * (ranks - 1) * alpha + beta * n / ranks, "Each message costs "
             "alpha and beta both: mind the brackets."),
            (2 * (ranks - 1) * (alpha + beta) * n / ranks, "alpha is paid for "
             "a message, and beta for each of its bytes."),
        ])
        assert is_near(saw, wanted), (
            f"expected the formula to give {1e6 * wanted:.1f} us on {ranks} "
            f"ranks, for {2 * (ranks - 1)} messages; saw {1e6 * saw:.1f} us. "
            f"{because}"
        )


@todo(
    2,
    hints=[
        "Strong scaling: the same work on more ranks. Weak scaling: the same "
        "work on each rank.",
        "data.shard(batch, rank, ranks) shares one batch out; in weak scaling "
        "rank 0 has the first `batch` rows, rank 1 the next.",
        'if mode == "strong": return data.shard(batch, rank, ranks), and else '
        "return slice(rank * batch, (rank + 1) * batch)",
    ],
)
def each_rank_has_its_rows(job):
    """Four ranks share 103 rows, or have 103 each, all of them different."""
    for mode, wanted in (("strong", ROWS), ("weak", RANKS * ROWS)):
        _, metrics = small_job(job, mode=mode)
        shares = metrics["shares"]
        sizes = [share["stop"] - share["first"] for share in shares]
        rows = set()
        for share in shares:
            rows.update(range(share["first"], share["stop"]))
        because = ""
        if len({share["first"] for share in shares}) == 1:
            because = "All ranks begin at the same row: start from `rank`."
        elif mode == "weak" and sum(sizes) == ROWS:
            because = "In weak scaling each rank has a whole batch of its own."
        elif mode == "strong" and sum(sizes) == RANKS * ROWS:
            because = "In strong scaling one batch is shared out."
        elif sum(sizes) == len(rows) < wanted:
            because = "What is left over when you divide must be somebody's."
        elif sum(sizes) > len(rows):
            because = "Where one rank ends the next begins."
        assert sum(sizes) == wanted and rows == set(range(wanted)), (
            f"{mode}: expected each of {wanted} rows on one rank; saw "
            f"{sum(sizes)}, {len(rows)} of them different. {because}"
        )
        assert max(sizes) - min(sizes) <= 1, (
            f"{mode}: expected parts that differ by one row at most; saw "
            f"{sizes}. All wait for the rank that has most: give the 3 rows "
            "that are left over to 3 different ranks."
        )


@todo(
    3,
    hints=[
        "Allreduce returns when the sum is there. Which call returns at once, "
        "and gives you something to wait for?",
        "comm.Iallreduce returns a request; the list `sums` is waited for "
        "after the last layer.",
        "sums.append(comm.Iallreduce(MPI.IN_PLACE, gradients[-1]))",
    ],
)
def the_exchange_does_not_hold_up_the_next_layer(job):
    """Three sums are under way after the last layer, and all come right."""
    _, metrics = small_job(job)
    shares = metrics["shares"]
    begun = [share["begun"] for share in shares]
    because = ""
    if begun == [0] * RANKS:
        because = (
            "Each was waited for at once, or nobody can wait for it: "
            "Iallreduce returns a request, to be kept in `sums`."
        )
    assert begun == [LAYERS] * RANKS, (
        f"expected {LAYERS} sums under way on each rank after the last layer; "
        f"saw {begun}. {because}"
    )
    sums = [share["sum"] for share in shares]
    assert max(sums) - min(sums) < 1e-5, (
        f"expected one sum on all ranks; saw {sums}. Is it the last gradient "
        "that is added up, in place?"
    )
    rows = sum(share["stop"] - share["first"] for share in shares)
    if rows == metrics["rows"]:  # else TODO 2 is open, and the sum is another
        _, alone = small_job(job, 1)
        off = abs(sums[0] - alone["shares"][0]["sum"])
        assert off < 1e-3, (
            "expected the gradient of all rows, as one rank finds it; saw one "
            f"that is off by {off:.1e}. Is it added up once? Iallreduce "
            "stands in place of the `Allreduce` below."
        )


@todo(
    4,
    hints=[
        "With efficiency 1 nothing is lost. How long would the step then take "
        "on this many ranks?",
        "Strong: args.one / ranks would be ideal. Weak: args.one would.",
        "efficiency = args.one / median_s, and in strong scaling that / ranks",
    ],
)
def the_efficiency_is_the_part_that_was_worth_it(job):
    """One rank's step over that of this job, shared out or not."""
    for mode in ("strong", "weak"):
        row, metrics = small_job(job, mode=mode)
        saw = metrics["efficiency"]
        step_s = row.step_median_s
        speedup = ONE_S / step_s
        wanted = speedup / RANKS if mode == "strong" else speedup
        because = reason(saw, [
            (1.0, "It is 1 only if nothing is lost: divide the times."),
            (1 / wanted, "It is the other way round: a faster step is worth "
             "more."),
            (speedup, "That is the speed-up: divide it by the ranks that it "
             "took."),
            (speedup / RANKS, "In weak scaling each rank has as much to do as "
             "one alone: nothing to divide by."),
            (speedup * RANKS, "More ranks for the same speed are worth less, "
             "not more."),
        ])
        asked = "args.one / median_s"
        if mode == "strong":
            asked += " / ranks"
        assert is_near(saw, wanted), (
            f"{mode}: expected {asked} = {wanted:.3g}, with the {ONE_S:g} s "
            f"that this check gives as args.one, a made-up time; saw "
            f"{saw:.3g}. {because}"
        )


def asks(text):
    """What a job script asks sbatch for, which reads up to a command."""
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if ask := ASK.match(line):
            found[ask[1] or SHORT.get(ask[2], ask[2])] = ask[3]
    return found


def minutes(text):
    """A time limit in minutes, as sbatch reads it: M, M:S or H:M:S."""
    if not re.fullmatch(r"\d+(:\d+){0,2}", text):
        return None
    parts = [int(part) for part in text.split(":")]
    if len(parts) == 3:
        return 60 * parts[0] + parts[1] + parts[2] / 60
    return parts[0] + (parts[1] / 60 if len(parts) == 2 else 0)


def started(script):
    """What the script starts the ranks with, the threads, and its words."""
    with TemporaryDirectory() as folder:
        for name in STARTERS:
            path = Path(folder, name)
            path.write_text(STAND_IN)
            path.chmod(0o755)
        (called := Path(folder, "called")).write_text("")
        env = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}", "CALLED": str(called),
            "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_ID": "4711",
            "SLURM_NTASKS": "2", "OMP_NUM_THREADS": ""}
        ended = subprocess.run(["bash", script], cwd=folder, env=env,
                               capture_output=True, text=True, timeout=20)
        program, threads, words = [*called.read_text().split("\n"), "", ""][:3]
    return program, threads, words, ended.stderr


def ask(*command):
    """What a command of Slurm's prints; "" where Slurm does not answer."""
    if shutil.which(command[0]) is None:
        return ""
    env = dict(os.environ)
    if OWN_CLUSTER.exists():  # make cluster
        env["SLURM_CONF"] = str(OWN_CLUSTER)
    try:
        done = subprocess.run(command, env=env, capture_output=True,
                              text=True, timeout=20)
    except subprocess.TimeoutExpired:  # a full queue lets sbatch wait
        return ""
    return "" if done.returncode else done.stdout.strip()


def by_slurm(script):
    """How the job ended in the queue, and its output; None if it waits."""
    number = ask("sbatch", "--parsable", f"--chdir={HERE}", str(script))
    number = number.partition(";")[0]
    assert number, (
        "expected Slurm to take the job; it refused. Type  sbatch job.sh  in "
        "this folder to see why: most often a partition or account is "
        "missing, or the queue is full."
    )
    output = HERE / f"train-{number}.txt"
    end = monotonic() + PATIENCE_S
    while True:
        told = ask("scontrol", "show", "job", "--oneliner", number)
        state = re.search(r"JobState=(\w+)|$", told)[1]
        if state in ENDS:
            said = output.read_text() if output.exists() else ""
            output.unlink(missing_ok=True)
            shutil.rmtree(HERE / f"kept-{number}", ignore_errors=True)
            return state, said
        if state == "PENDING" and monotonic() > end:
            ask("scancel", number)
            return None
        sleep(0.5)


@todo(
    5,
    hints=[
        "Lines that begin with #SBATCH are read by Slurm, and only above the "
        "first command. What starts a program on all nodes?",
        "--nodes, --ntasks-per-node, --cpus-per-task, --time, --output with "
        "%j for the number. Then OMP_NUM_THREADS, and srun.",
        "#SBATCH --nodes=2, and so on; export "
        "OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK; srun --mpi=pmi2 python -m "
        'mpi4py train.py --folder "kept-$SLURM_JOB_ID"',
    ],
    script="job.sh",
)
def the_job_script_asks_and_starts(job):
    """Two nodes, a task on each, and all tasks are started."""
    script = HERE / "job.sh"
    text = script.read_text()
    saw = asks(text)
    late = text.count("\n#SBATCH") - len(saw)
    because = (f"{late} lines with #SBATCH are not read: Slurm stops at the "
               "first command." if late > 0 else "")
    tasks = saw.get("ntasks", saw.get("ntasks-per-node", "1"))
    wanted = "2" if "ntasks" in saw else "1"
    for what, number, asked in (
        ("nodes", saw.get("nodes"), "2"),
        ("tasks, in --ntasks or for each node", tasks, wanted),
        ("cores for each task", saw.get("cpus-per-task"), "2"),
        ("minutes", minutes(saw.get("time", "")), 5),
    ):
        assert number == asked, (
            f"expected the job to ask for {asked} {what}; saw {number}. "
            f"{because}"
        )
    assert saw.get("output") == "train-%j.txt", (
        f"expected the output in train-%j.txt; saw {saw.get('output')}. "
        "Slurm writes the job's number in the place of %j."
    )
    program, threads, words, complaint = started(script)
    assert program, f"expected it to start train.py; it says: {complaint}"
    assert program != "python", (
        "expected one Python for each task; saw one in all. Slurm runs the "
        "script once, on the first node: srun starts the others."
    )
    assert "-m mpi4py train.py" in words, (
        "expected python -m mpi4py train.py to be started; saw "
        f"{program} {words}."
    )
    assert threads == "2", (
        "expected each task to have OMP_NUM_THREADS=2, as many as its cores; "
        f"saw {threads or 'none'}. Is it exported, and above srun? Slurm puts "
        "the cores of a task into $SLURM_CPUS_PER_TASK."
    )
    if not ask("sinfo"):
        return  # nobody to submit it to
    if ended := by_slurm(script):
        state, output = ended
        assert state == "COMPLETED" and "2 ranks, from step 0" in output, (
            f"expected two ranks to train; Slurm's job ended as {state}, and "
            f"its output ends so: {output[-300:]}"
        )


@todo(
    6,
    hints=[
        "Three things change in a step. Which of them does the next step "
        "need?",
        "The weights, the velocity that carries on from step to step, and how "
        "many steps are done.",
        "state = [w, velocity, done]",
    ],
    script="train.py",
)
def a_training_goes_on_as_if_nobody_had_stopped_it(job):
    """Ten steps, and from their checkpoint ten more: as twenty at once."""
    with TemporaryDirectory() as folder:
        how = {"ranks": 2, "threads": 1, "every": 5}
        whole, _, again = [
            job(**how, folder=f"{folder}/{name}", steps=steps)
            .records["metrics"].iloc[0]
            for name, steps in (("whole", 20), ("two", 10), ("two", 20))
        ]
    assert again["begin"] == 10, (
        "expected the second start to go on from step 10; saw step "
        f"{again['begin']}. Does a checkpoint hold how many steps are done?"
    )
    assert again["weights"] == whole["weights"], (
        "expected the weights of 20 steps at once; after a stop they are "
        "others. What carries on from one step to the next, beside the "
        "weights and the number of steps?"
    )


def warned(script):
    """What happens, in its order, when the script is warned: the lines that
    the stand-ins write down, and what the script complains of."""
    with TemporaryDirectory() as folder:
        for name, text in (("srun", RANKS_STAND_IN),
                           ("scontrol", QUEUE_STAND_IN)):
            path = Path(folder, name)
            path.write_text(text)
            path.chmod(0o755)
        (called := Path(folder, "called")).write_text("")
        # The script puts the workshop's programs first, where no srun is.
        env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}",
                            "CALLED": str(called), "SLURM_JOB_ID": "4711"}
        job = subprocess.Popen(["bash", script], cwd=folder, env=env,
                               stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        try:
            end = monotonic() + 20
            while not called.read_text() and monotonic() < end:
                sleep(0.05)
            job.send_signal(signal.SIGUSR1)
            complaint = job.communicate(timeout=20)[1]
            said = called.read_text().splitlines()
        except subprocess.TimeoutExpired:
            complaint, said = "", ["it does not end"]
        finally:
            # The stand-in for srun may live on where nobody waited for it
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    return said, complaint


@todo(
    7,
    hints=[
        "What the shell does when a signal comes, a `trap` says. Three things "
        "are to be done, in this order: hand on, wait, back into the queue.",
        "A function holds the three: `kill -USR1` to srun, `wait` for it, "
        "`scontrol requeue` with the job's number. `trap NAME USR1` calls it.",
        'again() { kill -USR1 "$ranks"; wait "$ranks"; scontrol requeue '
        '"$SLURM_JOB_ID"; }; trap again USR1',
    ],
    script="again.sh",
)
def a_warned_job_saves_and_goes_back_into_the_queue(job):
    """The ranks save, then the job is put back into the queue."""
    saw, complaint = warned(HERE / "again.sh")
    wanted = ["started", "saved", "scontrol requeue 4711"]
    queued = [line for line in saw if line.startswith("scontrol")]
    because = ""
    if "saved" not in saw:
        because = "Who sends the signal on to srun?"
    elif not queued:
        because = "The ranks have saved, and nobody puts the job back."
    elif saw[1:2] == queued:
        because = ("The job would be put back while its ranks still save: "
                   "wait for srun first.")
    elif queued[0] != wanted[2]:
        because = "The job's number stands in $SLURM_JOB_ID."
    assert saw == wanted, (
        f"expected, in this order, {', '.join(wanted)}; saw "
        f"{', '.join(saw)}. {because} {complaint}"
    )
