"""What each TODO of 07_scaling is checked by: small jobs on up to four ranks,
for job.sh what it asks for and starts, and for again.sh what it does when it
is warned. TODO 6 stands in train.py.

instruments.py calls what stands at TODO 1 to 3, on four ranks and on
three. The checks look at the records, never at the code or the clock. 103
rows leave 3 when four ranks share them, and 1 when three do.
"""

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from argparse import ArgumentError, ArgumentParser
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import numpy as np

from scaleout import ScaleoutError, todo

RANKS = 4
FEWER = 3  # what is right for four ranks alone is seen on these
LIMIT_S = 20  # of a job whose ranks wait for each other
ROWS = 103
LAYERS = 3
ONE_S = 0.5
PATIENCE_S = 60.0  # with the queue; a job that waits longer is taken back
PATIENCE_WARNED_S = 15.0  # with a script that was warned
SMALL = {
    "batch": ROWS,
    "width": 64,
    "layers": LAYERS,
    "steps": 2,
    "one": ONE_S,
}
HERE = Path(__file__).parent
# What a job script may ask for, as sbatch reads it.
SBATCH = ArgumentParser(add_help=False, allow_abbrev=False,
                        exit_on_error=False)
for names in ("-N --nodes", "-n --ntasks", "--ntasks-per-node", "-t --time",
              "-c --cpus-per-task", "-o --output"):
    SBATCH.add_argument(*names.split(), default="")
# What Slurm tells a job. There are as many nodes as tasks, and it is not the
# number of cores, so that one is not taken for the other.
TOLD = {"SLURM_JOB_ID": "4711", "SLURM_CPUS_PER_TASK": "2",
        "SLURM_CPUS_ON_NODE": "2", "SLURM_NTASKS": "5", "SLURM_NPROCS": "5",
        "SLURM_NNODES": "5", "SLURM_JOB_NUM_NODES": "5",
        "SLURM_NTASKS_PER_NODE": "1", "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0"}
ENDS = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL",
        "OUT_OF_MEMORY")
OWN_CLUSTER = HERE.parents[1] / ".setup/cluster/slurm.conf"
STARTERS = ("srun", "mpirun", "mpiexec", "python", "python3")
# Stands in for what starts the ranks, and writes down how it was called. It
# takes a moment, to see whether somebody waits for it.
STAND_IN = """#!/bin/bash
printf 'called\\t%s\\t%s\\t%s\\n' "${0##*/}" "$OMP_NUM_THREADS" "$*" \\
    >> "$CALLED"
SLEEP 0.3
echo ended >> "$CALLED"
"""
# And these for ranks that take a moment to save, and for the queue.
RANKS_STAND_IN = """#!/bin/bash
trap 'SLEEP 0.5; echo saved >> "$CALLED"; exit 0' USR1
for other in TERM INT HUP USR2; do
    trap "echo 'srun was ended by $other' >> '$CALLED'; exit 1" $other
done
echo started >> "$CALLED"
for second in {1..100}; do SLEEP 0.05; [ -n "$BRIEF" ] && break; done
echo done >> "$CALLED"
"""
QUEUE_STAND_IN = """#!/bin/bash
echo "${0##*/} $*" >> "$CALLED"
"""
# Nobody knows how long ranks take to save: a sleep in a script is no wait.
NO_SLEEP = """#!/bin/bash
exit 0
"""


def record(job, variant, **how):
    """The record of a job; one that failed later has left it, too."""
    try:
        run = job(threads=1, **how)
    except ScaleoutError as failed:
        run = getattr(failed, "run", None)
        if run is None or variant not in set(run.records.get("variant", ())):
            raise
    return run.records.set_index("variant").loc[variant]


def seen(job, ranks, what):
    """What each rank wrote down of the formula, its rows or its step."""
    return record(job, what, script="instruments.py", ranks=ranks,
                  timeout=LIMIT_S)["metrics.found"]


def is_near(saw, wanted):
    """Whether two times or ratios agree, up to rounding."""
    return (isinstance(saw, int | float)
            and abs(saw - wanted) <= 1e-5 * abs(wanted))


def shown(saw):
    """A number in a sentence; anything else as it is."""
    return f"{saw:.3g}" if isinstance(saw, int | float) else f"{saw}"


def reason(saw, slips):
    """Why somebody may have got this number, as far as it can be told."""
    return next((why for numbers, why in slips
                 if any(is_near(saw, number) for number in numbers)), "")


def fixed(number, ranks):
    """What to say of a number of ranks that is not the job's."""
    if number == 2:
        return ("2 is written where the number of ranks should stand: "
                "`ranks` knows it.")
    return (f"That is as if there were {number} ranks, of {ranks}: `ranks` "
            "says how many there are.")


def ring_slips(n, ranks, alpha, beta):
    """What slips in the formula give, and what to say of them."""
    block = beta * n / ranks
    message = alpha + block
    whole = alpha + beta * n
    sent = 2 * (ranks - 1)
    yield [0.0], ("Count the messages of one rank, and what each of them "
                  "takes.")
    yield [sent / 2 * message, sent / 2 * whole], (
        "There are two rounds: one brings the sums together, one brings "
        "them to all.")
    yield [2 * ranks * message], (
        "With ranks - 1 messages a block has reached every other rank.")
    yield [(2 * ranks - 1) * message, 2 * ranks - message], (
        "There are ranks - 1 messages in each of two rounds: mind the "
        "brackets.")
    yield [sent * whole, sent * (alpha + beta * n * ranks)], (
        "A message is one block of the n bytes, n / ranks.")
    yield [sent * (alpha + beta * n / (ranks - 1))], (
        "There are as many blocks as ranks: a message has n / ranks bytes.")
    yield [sent * alpha + block, alpha + sent * block], (
        "Each message costs alpha and beta both: mind the brackets.")
    yield [sent * block], "Each message costs alpha, too."
    yield [sent * (alpha + beta) * n / ranks, sent * alpha * n / ranks], (
        "Here alpha is paid for each byte: alpha is what a message costs, "
        "and beta what each of its bytes costs.")
    yield [sent * ranks * message], (
        "All ranks send at the same time: count what one of them sends.")
    yield [times * np.log2(ranks) * each
           for times in (1, 2) for each in (message, whole)], (
        "That is a tree's number of messages. In a ring a block goes from "
        "neighbour to neighbour, ranks - 1 times.")
    for many in {2, RANKS, FEWER} - {ranks}:
        other = alpha + beta * n / many
        yield [2 * (many - 1) * other, sent * other,
               2 * (many - 1) * message], fixed(many, ranks)


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
    n = 1_000_003  # bytes, as instruments.py has it
    for ranks in (RANKS, FEWER):
        found = seen(job, ranks, "formula")[0]
        alpha, beta, saw = found["alpha"], found["beta"], found["saw"]
        wanted = 2 * (ranks - 1) * (alpha + beta * n / ranks)
        expected = (
            f"expected the formula to give {1e6 * wanted:.3g} us on {ranks} "
            f"ranks, for {2 * (ranks - 1)} messages"
        )
        assert not found["failed"], f"{expected}; saw {found['failed']}"
        assert isinstance(saw, int | float), (
            f"{expected}; saw {saw} come back, which is no number. Does it "
            "stand behind `return`?"
        )
        because = reason(saw, ring_slips(n, ranks, alpha, beta))
        assert is_near(saw, wanted), (
            f"{expected}; saw {1e6 * saw:.3g} us. {because}"
        )


def rows_reasons(mode, parts, ranks):
    """Why ranks may have these rows, as far as it can be told."""
    begins = [first for first, _ in parts]
    sizes = [stop - first for first, stop in parts]
    rows = {row for part in parts for row in range(*part)}
    last = max(rows, default=0)
    whole = ROWS if mode == "strong" else ranks * ROWS
    yield len(set(begins)) == 1, (
        "All ranks begin at the same row: start from `rank`.")
    yield mode == "weak" and sum(sizes) == ROWS, (
        "In weak scaling each rank has a whole batch of its own.")
    yield mode == "strong" and sizes == [ROWS] * ranks, (
        "In strong scaling one batch is shared out.")
    for many in {2, RANKS, FEWER} - {ranks}:
        yield mode == "strong" and parts == [
            (ROWS * rank // many, ROWS * (rank + 1) // many)
            for rank in range(ranks)], fixed(many, ranks)
    yield min(begins) >= max(sizes), (
        "Nobody begins at row 0: ranks count from 0.")
    yield last >= whole and sum(sizes) == len(rows), (
        f"There are rows up to {last}, of {whole}: the last rank goes too "
        "far.")
    yield len(rows) == parts[-1][1] < whole, (
        "What is left over when you divide must be somebody's.")
    yield True, (
        "Where one rank ends the next begins: the row of `stop` is the first "
        "that is not in a slice.")


def parts_of(job, ranks, mode):
    """The first and the last row of each rank, where these are whole."""
    found = [each[mode] for each in seen(job, ranks, "rows")]
    for rank, each in enumerate(found):
        expected = f"{mode}: expected a slice of rows on each of {ranks} ranks"
        failed = each["failed"]
        first, stop, step = each["part"]
        if "There is no rank" in failed:
            many = re.search(r"There is no rank \d+ of (\d+)|$", failed)[1]
            if many not in (None, "0", str(ranks)):
                failed += f" {fixed(int(many), ranks)}"
        assert not failed.startswith("None"), (
            f"{expected}; on rank {rank} saw nothing come back. Does each "
            "way through my_rows end in `return`?"
        )
        assert not failed, f"{expected}; on rank {rank} saw {failed}"
        assert isinstance(first, int) and isinstance(stop, int), (
            f"{expected}; on rank {rank} saw one from {first} to {stop}. "
            "The number of a row is whole: give both ends, and divide "
            "with //."
        )
        assert step in ("None", 1), (
            f"{expected}, in one piece; on rank {rank} saw every "
            f"{step}th row. Let each rank have rows that lie together: "
            "slice(first, stop)."
        )
    return [(each["part"][0], each["part"][1]) for each in found]


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
    for ranks in (RANKS, FEWER):
        for mode, wanted in (("strong", ROWS), ("weak", ranks * ROWS)):
            parts = parts_of(job, ranks, mode)
            sizes = [stop - first for first, stop in parts]
            rows = {row for part in parts for row in range(*part)}
            because = next(why for is_so, why
                           in rows_reasons(mode, parts, ranks) if is_so)
            assert sum(sizes) == wanted and rows == set(range(wanted)), (
                f"{mode}: expected each of {wanted} rows on one rank; saw "
                f"{sum(sizes)}, {len(rows)} of them different. {because}"
            )
            assert max(sizes) - min(sizes) <= 1, (
                f"{mode}: expected parts that differ by one row at most; saw "
                f"{sizes}. All wait for the rank that has most: give each "
                f"{ROWS // ranks} rows, and one more to {ROWS % ranks} of "
                "them."
            )
        saw = [first for first, _ in parts]
        assert saw == sorted(saw), (
            "weak: expected the rows of a rank behind those of the ranks "
            f"before it; saw them begin at {saw}."
        )


WAITING = {"allreduce", "reduce", "bcast", "barrier", "allgather", "gather",
           "send", "recv", "sendrecv"}


def begins(event):
    """Whether a call begins something and returns at once."""
    return event[0] == "I" and event != "Is_inter" or event.endswith("_init")


def under_way(found, ranks):
    """Each rank has begun a sum behind each layer, and waits for none."""
    begun = [each["begun"] for each in found]
    events = found[0]["events"]
    left = any(each["left"] for each in found)
    calls = [event for event in events if event.lower() in WAITING]
    order = [event for event in events if event == "compute" or begins(event)]
    if left and any(begun):
        because = ("Not every request was kept: each goes to the end of "
                   "`sums`.")
    elif left:
        because = ("Nobody can wait for what was begun: Iallreduce returns a "
                   "request, to be kept in `sums`.")
    elif any(begun):
        because = "Each layer has a gradient, to be added up behind it."
    elif any(map(begins, events)):
        because = ("Each was waited for at once: the step waits for all of "
                   "`sums`, after the last layer.")
    elif calls:
        because = (f"Each was waited for at once: {calls[0]} returns when "
                   "the sum is there, Iallreduce returns a request at once, "
                   "to be kept in `sums`.")
    else:
        because = ("Nothing was added up: Iallreduce begins a sum, and "
                   "returns a request to be kept in `sums`.")
    assert begun == [LAYERS] * ranks, (
        f"expected {LAYERS} sums under way on each rank after the last layer; "
        f"saw {begun}. {because}"
    )
    assert not calls, (
        f"expected nothing in the step that waits; saw {calls[0]}, for which "
        "the next layer has to wait. Iallreduce stands in place of the "
        "`Allreduce` below."
    )
    assert ("compute", "compute") not in pairwise(order), (
        "expected each sum to begin behind its own layer; saw a layer "
        "computed while the sum of the one before it had not begun. Then "
        "nothing is left that the exchange could go on behind."
    )


def sums_reason(found, layer, ranks):
    """Why gradients hold this after the step, as far as it can be told."""
    saw = [each["most"][layer] for each in found]
    own = [(layer + 1) * 10.0 ** rank for rank in range(ranks)]
    if any(each["least"][layer] != each["most"][layer] for each in found):
        return "Only a part of the gradient was added up."
    if saw == own:
        return ("Each rank still has its own: the sum went into another "
                "array, such as a copy. gradients[-1] itself has to take it.")
    if saw == [sum(own), *own[1:]]:
        return "Rank 0 alone has the sum, and all ranks need it: Iallreduce."
    if saw == [max(own)] * ranks:
        return "That is the largest of them: the default, MPI.SUM, adds."
    if saw == [sum(own) / ranks] * ranks:
        return ("That is their mean: a gradient is divided by all rows "
                "already, so that the sum is wanted.")
    return "Is it the gradient of this layer that is added up, in place?"


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
    for ranks in (RANKS, FEWER):
        try:
            found = seen(job, ranks, "step")
        except ScaleoutError as failed:
            output = getattr(failed, "run", failed).output
            assert "NoneType" not in output or "Waitall" not in output, (
                "expected `sums` to hold a request for each layer; saw None "
                "in it. Allreduce waits, and gives nothing back; Iallreduce "
                "returns a request at once."
            )
            raise
        under_way(found, ranks)
        for layer in range(LAYERS):
            wanted = float((layer + 1) * sum(10**r for r in range(ranks)))
            saw = [each["most"][layer] for each in found]
            least = [each["least"][layer] for each in found]
            assert saw == least == [wanted] * ranks, (
                f"expected the sum of all ranks' gradients, {wanted:g}, on "
                f"each of {ranks} ranks for layer {layer}; saw "
                f"{', '.join(f'{number:g}' for number in saw)}. "
                f"{sums_reason(found, layer, ranks)}"
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
    for mode, ranks in (("strong", RANKS), ("weak", RANKS), ("strong", 2)):
        found = record(job, mode, mode=mode, ranks=ranks, **SMALL)
        saw = found["metrics"]["efficiency"]
        speedup = ONE_S / found["step_median_s"]
        wanted = speedup / ranks if mode == "strong" else speedup
        because = reason(saw, efficiency_slips(mode, speedup, ranks))
        asked = "args.one / median_s"
        if mode == "strong":
            asked += " / ranks"
        assert is_near(saw, wanted), (
            f"{mode}: expected {asked} = {wanted:.3g} on {ranks} ranks, with "
            f"the {ONE_S:g} s that this check gives as args.one, a made-up "
            f"time; saw {shown(saw)}. {because}"
        )


def efficiency_slips(mode, speedup, ranks):
    """What slips in the efficiency give, and what to say of them."""
    wanted = speedup / ranks if mode == "strong" else speedup
    yield [1.0, 1 / ranks], ("It is 1 only if nothing is lost: divide the "
                             "times, and keep what comes out.")
    yield [speedup // ranks, speedup // 1 / ranks, speedup // 1], (
        "// drops the fraction: divide with /.")
    yield [1 / wanted], ("It is the other way round: a faster step is worth "
                         "more.")
    if mode == "strong":
        yield [speedup], ("That is the speed-up: divide it by the ranks that "
                          "it took.")
        for many in {2, RANKS} - {ranks}:
            yield [speedup / many], fixed(many, ranks)
    yield [speedup / ranks], ("In weak scaling each rank has as much to do "
                              "as one alone: nothing to divide by.")
    yield [speedup * ranks], ("More ranks for the same speed are worth less, "
                              "not more.")
    yield [speedup / (ranks - 1)], "Rank 0 works, too: divide by all ranks."
    yield [100 * wanted], "That is in percent: a share of 1 is asked for."
    yield [speedup / ROWS], ("That is divided by the rows: divide by the "
                             "ranks.")
    yield [ONE_S - ONE_S / speedup], "Divide the times: a share is a ratio."


def asks(text):
    """What a job script asks sbatch for, which reads up to a command; and
    how many lines with #SBATCH come too late."""
    lines = text.splitlines()
    ends = next((at for at, line in enumerate(lines)
                 if line.strip() and not line.startswith("#")), len(lines))
    asked = SBATCH.parse_args([])
    for line in lines[:ends]:
        # What cannot be read, such as an open quotation, asks for nothing
        with suppress(ValueError, ArgumentError):
            if line.startswith("#SBATCH"):
                words = shlex.split(line.removeprefix("#SBATCH"),
                                    comments=True)
                SBATCH.parse_known_args(words, asked)
    late = sum(line.startswith("#SBATCH") for line in lines[ends:])
    return asked, late


def minutes(text):
    """A time limit in minutes, as sbatch reads it: M, M:S, H:M:S, and with
    days before it D-H, D-H:M or D-H:M:S."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+(?::\d+){0,2})", text)
    if not found:
        return None
    parts = [int(part) for part in found[2].split(":")]
    if found[1] is None and len(parts) < 3:
        parts = [0, *parts]
    hours, mins, seconds = [*parts, 0, 0][:3]
    days = int(found[1] or 0)
    return round(1440 * days + 60 * hours + mins + seconds / 60, 2)


def put_stand_ins(folder, stand_ins):
    """Programs in a folder that stands first in the PATH of a script."""
    sleeping = shutil.which("sleep") or "sleep"
    for name, text in stand_ins.items():
        path = Path(folder, name)
        path.write_text(text.replace("SLEEP", sleeping))
        path.chmod(0o755)


def started(script):
    """What the script starts the ranks with, the threads, its words, what it
    complains of, and whether it waits for their end."""
    with TemporaryDirectory() as folder:
        put_stand_ins(folder, dict.fromkeys(STARTERS, STAND_IN))
        (called := Path(folder, "called")).write_text("")
        (said := Path(folder, "said")).write_text("")
        env = os.environ | TOLD | {
            "PATH": f"{folder}:{os.environ['PATH']}", "CALLED": str(called)}
        env.pop("OMP_NUM_THREADS", None)
        with said.open("w") as errors, suppress(subprocess.TimeoutExpired):
            subprocess.run(["bash", script], cwd=folder, env=env,
                           stdout=subprocess.DEVNULL, stderr=errors,
                           timeout=20)
        lines = called.read_text().splitlines()
        calls = [line.split("\t")[1:] for line in lines if "\t" in line]
        waited = lines.count("ended") == len(calls)
        if not waited or not calls:
            sleep(1)  # what still runs ends before its folder goes
        complaint = said.read_text().strip()
        late = [line.split("\t")[1:]
                for line in called.read_text().splitlines() if "\t" in line]
    waited = waited and len(late) == len(calls)
    program, threads, words = next(
        (call for call in late if "train.py" in call[2]), [*late, [""] * 3][0])
    return program, threads, words, complaint, waited


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
    saw, late = asks(text)
    because = (f"{late} lines with #SBATCH are not read: Slurm stops at the "
               "first command." if late > 0 else "")
    if not because and re.search(r"^\s*(# SBATCH|##+\s*SBATCH|\s+#SBATCH)",
                                 text, re.MULTILINE):
        because = ("Slurm reads only lines that begin with #SBATCH, in one "
                   "word.")
    tasks = saw.ntasks or saw.ntasks_per_node or "1"
    for what, number, asked in (
        ("nodes", saw.nodes, "2"),
        ("tasks, in --ntasks or for each node", tasks,
         "2" if saw.ntasks else "1"),
        ("task for each node", saw.ntasks_per_node or "1", "1"),
        ("cores for each task", saw.cpus_per_task, "2"),
        ("minutes", minutes(saw.time), 5),
    ):
        if what == "minutes" and not because:
            because = ("Slurm reads M, M:S or H:M:S: five minutes are 5, 5:00 "
                       "or 00:05:00.")
        assert number == asked, (
            f"expected the job to ask for {asked} {what}; saw "
            f"{number or 'none'}. {because}"
        )
    assert os.path.normpath(saw.output) == "train-%j.txt", (
        f"expected the output in train-%j.txt; saw {saw.output or 'none'}. "
        "Slurm writes the job's number in the place of %j, and knows no "
        "variables of the shell there."
    )
    program, threads, words, complaint, waited = started(script)
    assert program, f"expected it to start train.py; it says: {complaint}"
    assert not program.startswith("python"), (
        "expected one Python for each task; saw one in all. Slurm runs the "
        "script once, on the first node: srun starts the others."
    )
    assert re.search(r"-m mpi4py (\./)?train\.py", words), (
        "expected python -m mpi4py train.py to be started; saw "
        f"{program} {words}."
    )
    before = words.partition("python")[0]
    many = re.search(r"\s(?:-np?|--ntasks)[=\s]?(\d+)\s", f" {before}")
    assert not many or many[1] in ("2", TOLD["SLURM_NTASKS"]), (
        "expected all tasks to be started, two; saw "
        f"{program} start {many[1]}."
    )
    # It may also be given on the way: env, or --export of srun
    given = re.search(r"OMP_NUM_THREADS=(\d+)", before)
    threads = given[1] if given else threads
    also = ("That is the number of tasks." if threads == TOLD["SLURM_NTASKS"]
            else "Is it exported, and above srun?")
    assert threads == "2", (
        "expected each task to have OMP_NUM_THREADS=2, as many as its cores; "
        f"saw {threads or 'none'}. {also} Slurm puts the cores of a task into "
        "$SLURM_CPUS_PER_TASK."
    )
    assert waited, (
        f"expected the script to wait for {program}; saw it end before. With "
        "its last line the job is over, and Slurm ends what still runs."
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
        how = {"ranks": 2, "threads": 1, "every": 5, "timeout": LIMIT_S}
        runs = []
        for name, steps in (("whole", 20), ("two", 10), ("two", 20)):
            try:
                run = job(**how, folder=f"{folder}/{name}", steps=steps)
            except ScaleoutError as failed:
                output = getattr(failed, "run", failed).output
                assert "is not defined" not in output and (
                    "UnboundLocalError" not in output), (
                    "expected `state` to hold arrays that are there before "
                    f"the first step; saw {last_line(output)} What a step "
                    "makes anew is not kept from the one before."
                )
                raise
            runs.append(run.records["metrics"].iloc[0])
        whole, first, again = runs
        with np.load(f"{folder}/two/checkpoint-000020.npz") as kept:
            because = state_reason([*kept.values()], again["weights"])
    assert again["begin"] == 10, (
        "expected the second start to go on from step 10; saw step "
        f"{again['begin']}. Does a checkpoint hold how many steps are done? "
        f"{because}"
    )
    assert again["weights"] == whole["weights"], (
        "expected the weights of 20 steps at once; after a stop they are "
        f"others. {because}"
    )


def last_line(output):
    """The last line of an output that names an error."""
    found = re.findall(r"\w+Error: .*", output)
    return f"{found[-1]}." if found else "an error."


def state_reason(kept, weights):
    """What a checkpoint lacks, as far as it can be told."""
    large = [array for array in kept if array.size > 1]
    small = [array for array in kept if array.size == 1]
    if not small:
        return "`done` is not in it."
    if not any(array.any() for array in small):
        return ("`state` holds a number of steps that stays 0: the step "
                "counts in `done` itself, not in a copy of it.")
    if not all(array.any() for array in large):
        return ("An array in it stays as it was at the start, all 0: the "
                "step changes w and velocity themselves, not a copy.")
    hashes = [hashlib.sha256(array.tobytes()).hexdigest() for array in large]
    if not any(each.startswith(weights) for each in hashes):
        return "The weights, `w`, are not in it."
    if len(large) == 2 and np.array_equal(*large):
        return "It holds the same array twice."
    return ("What carries on from one step to the next, beside the weights "
            "and the number of steps? A checkpoint holds all three.")


def warned(script, warn=True):
    """What happens, in its order, when the script is warned: the lines that
    the stand-ins write down, and what the script complains of."""
    with TemporaryDirectory() as folder:
        queue = dict.fromkeys(("scontrol", "sbatch", "scancel"),
                              QUEUE_STAND_IN)
        put_stand_ins(folder, {"srun": RANKS_STAND_IN, "sleep": NO_SLEEP,
                               **queue})
        (called := Path(folder, "called")).write_text("")
        # The script puts the workshop's programs first, where no srun is.
        env = os.environ | TOLD | {
            "PATH": f"{folder}:{os.environ['PATH']}", "CALLED": str(called),
            "BRIEF": "" if warn else "1"}
        job = subprocess.Popen(["bash", script], cwd=folder, env=env,
                               stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        try:
            end = monotonic() + 20
            while not called.read_text() and monotonic() < end:
                sleep(0.05)
            if warn:
                job.send_signal(signal.SIGUSR1)
            complaint = job.communicate(timeout=PATIENCE_WARNED_S)[1].strip()
            said = called.read_text().splitlines()
        except subprocess.TimeoutExpired:
            complaint = ""
            said = [*called.read_text().splitlines(), "it does not end"]
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
    because = next(why for is_so, why in warned_reasons(saw, complaint)
                   if is_so)
    seen_as = ", ".join(saw[:6]) + (", ..." if len(saw) > 6 else "")
    assert saw == wanted, (
        f"expected, in this order, {', '.join(wanted)}; saw "
        f"{seen_as}. {because} {complaint}".rstrip()
    )
    saw, complaint = warned(HERE / "again.sh", warn=False)
    assert saw == ["started", "done"], (
        "expected a training that comes to its end unwarned to be over; saw "
        f"{', '.join(saw[:6])}. Only the warning, USR1, puts the job back "
        f"into the queue. {complaint}".rstrip()
    )


def warned_reasons(saw, complaint):
    """What may have happened, and what to say of it."""
    queued = [line for line in saw if line.startswith("scontrol")]
    yield "it does not end" in saw, (
        "Does the script signal itself, or wait for something that does not "
        "come? srun's process is $ranks.")
    yield any(line.startswith("sbatch") for line in saw), (
        "sbatch starts another job, with another number, which would not "
        "find this one's checkpoints: put this one back, by scontrol "
        "requeue.")
    yield "saved" not in saw and "kill:" in complaint, (
        "$ranks is to be read when the signal comes, not when the trap is "
        "set, as in double quotes.")
    yield "saved" not in saw and "done" in saw, (
        "The ranks went on as if nobody had warned them: who sends the "
        "signal on to srun?")
    yield "saved" not in saw, (
        "srun was ended before its ranks could save: hand on USR1, which is "
        "what they listen to.")
    yield saw[1:2] == queued[:1] != [], (
        "The job would be put back while its ranks still save: wait for "
        "srun first. Nobody knows how long they take.")
    yield not queued, "The ranks have saved, and nobody puts the job back."
    yield len(queued) > 1, "Once is enough."
    yield True, ("scontrol requeue puts a job back. The job's number stands "
                 "in $SLURM_JOB_ID.")
