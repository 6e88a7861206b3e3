"""What each TODO of 02_threads is checked by.

Most jobs say only what they would do (--steps 0); two train for a step. The
checks look at the records, never at the code, and never at how long anything
took.
"""

from scaleout import ScaleoutError, machine, todo

CORES = machine.usable_cores()
FREE = {"bind": "none"}  # mpirun lets each rank use all cores


def decided(job, **how):
    """What a job decided: the metrics of its record."""
    run = job(steps=0, **how)
    count = len(run.records)
    assert count == 1, f"expected one record, from rank 0; saw {count}."
    return run.records["metrics"].iloc[0]


def cores_allowed(saw):
    """How many cores the kernel lets all ranks of a job use together."""
    allowed = set()
    for each in saw["shares"]:
        allowed.update(each["may_run_on"])
    there = sum(bool(allowed & set(core)) for core in saw["cores"])
    return min(CORES, there)


def cpus_of(saw):
    """The CPUs that each rank may run on, as sets."""
    return [set(each["may_run_on"]) for each in saw["shares"]]


@todo(
    1,
    hints=[
        "Two ranks on four cores have two threads each; three ranks on two "
        "cores cannot have less than one.",
        "`cores` is a list of all cores that the job may use, and `ranks` "
        "share it: divide with //, and take max(1, ...) of that.",
        "share = max(1, len(cores) // ranks)",
    ],
)
def the_ranks_fill_the_cores(job):
    """One rank has all cores, two have half each; none has less than 1."""
    jobs = [{"ranks": ranks} for ranks in sorted({1, 2, 3, CORES + 1})]
    # The last one may use a single core, whatever the machine has.
    for how in [*jobs, {"ranks": 1, "threads": 1}]:
        saw = decided(job, **how)
        ranks = how["ranks"]
        threads = saw["threads"]
        there = cores_allowed(saw)
        wanted = max(1, there // ranks)
        if not isinstance(threads, int):
            because = "A number of threads is whole: divide with //."
        elif threads == 0:
            because = "Every rank needs one thread at least: max(1, ...)."
        elif there < CORES and threads == max(1, CORES // ranks):
            because = (
                f"The machine has {CORES}, but mpirun has bound this job to "
                f"{there}: count `cores`, those that the job may use."
            )
        elif threads > wanted:
            because = f"{ranks} x {threads} is more than there are cores."
        else:
            because = "Some cores have nothing to do."
        assert isinstance(threads, int) and threads == wanted, (
            f"expected {wanted} thread(s) a rank with {ranks} rank(s) on "
            f"{there} core(s); saw {threads}. {because}"
        )


@todo(
    2,
    hints=[
        "Pinning is a system call: Linux lets a process choose the CPUs that "
        "it runs on. Rank r leaves out the r * threads cores before its own.",
        "Cut `threads` cores out of `cores`, and give the CPUs of all of them "
        "to os.sched_setaffinity(0, cpus). Leave it out when ranks * threads "
        "is more than there are cores.",
        "if args.pin and ranks * threads <= len(cores): own = "
        "cores[rank * threads : (rank + 1) * threads], and then "
        "os.sched_setaffinity(0, sum(own, []))",
    ],
)
def each_rank_has_cores_of_its_own(job):
    """With --pin each rank has cores of its own, one for each thread."""
    assert CORES > 1, (
        "this machine lets you use one core: there is nothing to share out, "
        "so nothing to check."
    )
    ranks = min(CORES, 4)
    pinned(job, ranks, threads=1)
    # On a large machine two ranks of two threads, on a small one all cores.
    pinned(job, 2 if CORES > 3 else 1, threads=2)

    sets = cpus_of(decided(job, ranks=ranks, intra=1, **FREE))
    assert set.intersection(*sets), (
        f"expected the ranks to share all CPUs without --pin; saw {sets}. "
        "Pin only if args.pin is set."
    )
    sets = cpus_of(crowded(job, ranks))
    assert set.intersection(*sets), (
        "expected no pinning where the threads do not fit the cores; saw "
        f"{sets}. Pin only if ranks * threads <= len(cores)."
    )


def pinned(job, ranks, threads):
    """Each of so many ranks has as many cores as threads, all different."""
    saw = decided(job, ranks=ranks, intra=threads, pin=True, **FREE)
    sets = cpus_of(saw)
    sizes = []
    for mine in sets:
        sizes.append(sum(bool(mine & set(core)) for core in saw["cores"]))
    case = f"{ranks} rank(s) x {threads} thread(s) with --pin"
    if sizes == [CORES] * ranks and threads < CORES:
        because = "Nobody was pinned: every rank still has all cores."
    elif ranks > 1 and all(mine == sets[0] for mine in sets):
        because = "All ranks are on the same cores: skip those before yours."
    elif max(sizes) < threads:
        because = "A rank needs as many cores as it has threads."
    else:
        because = "The cores of rank r begin at number r * threads."
    assert sizes == [threads] * ranks, (
        f"expected {threads} core(s) for each of {case}; saw {sizes}. "
        f"{because}"
    )
    assert len(set().union(*sets)) == sum(len(mine) for mine in sets), (
        f"expected CPUs that no two ranks share, for {case}; saw {sets}. "
        f"{because}"
    )


def crowded(job, ranks):
    """A job with --pin and more threads than cores."""
    try:
        return decided(job, ranks=ranks, intra=CORES + 1, pin=True, **FREE)
    except ScaleoutError as failed:
        output = getattr(failed, "run", failed).output
        assert "Invalid argument" not in output, (
            f"expected {ranks} ranks x {CORES + 1} threads on {CORES} cores "
            "to run, though they cannot be pinned; saw a rank that asked for "
            "no core at all, as none was left. Pin only if ranks * threads "
            "<= len(cores)."
        )
        raise


@todo(
    3,
    hints=[
        "Libraries read such variables once, when they are loaded or first "
        "used. `variables` has their names and values.",
        "os.environ takes text only: go through variables.items(), and turn "
        "each number into text. If args.leave is set, do nothing.",
        "if not args.leave: for name, value in variables.items(): "
        "os.environ[name] = str(value)",
    ],
)
def tensorflow_has_the_threads_that_were_asked_for(job):
    """TensorFlow takes --intra 9, and with --leave the number of the shell."""
    small = {"ranks": 1, "threads": 1, "steps": 1, "warmup": 1,
             "intra": 9, "inter": 1}
    # The launcher, which is our shell here, has set both to 1.
    saw = job(**small).records["metrics"].iloc[0]
    started = saw["shares"][0]["threads"]["Eigen"]
    intra = saw["settings"].get("TF_NUM_INTRAOP_THREADS")
    inter = saw["settings"].get("TF_NUM_INTEROP_THREADS")
    if intra != "9":
        because = (
            f"TF_NUM_INTRAOP_THREADS is still {intra}, as the shell had it: "
            "assign to it, whatever is there, unless args.leave is set."
        )
    elif inter != "1":
        because = (
            f"TF_NUM_INTEROP_THREADS is {inter} for --inter 1: each variable "
            "has a value of its own."
        )
    else:
        because = (
            "The variables look right to Python, but TensorFlow has not seen "
            "them: assign into os.environ, do not replace it."
        )
    # Beside those 9 there is one for --inter 1, and at most two more.
    assert 10 <= started <= 12, (
        "expected TensorFlow to start 9 threads for --intra 9, and 1 to 3 "
        f"beside; saw {started} in all. {because}"
    )
    shell = {"TF_NUM_INTEROP_THREADS": "9"}
    saw = job(**small, leave=True, env=shell).records["metrics"].iloc[0]
    started = saw["shares"][0]["threads"]["Eigen"]
    assert saw["settings"].get("TF_NUM_INTEROP_THREADS") == "9", (
        "expected --leave to leave the shell's TF_NUM_INTEROP_THREADS at 9; "
        "saw it changed. Set the variables only if args.leave is not set."
    )
    assert 9 <= started <= 12, (
        "expected the shell's settings with --leave, 1 thread for operations "
        f"and 9 operations at a time; saw {started} threads in all."
    )


@todo(
    4,
    hints=[
        "Count the threads that compute, on all ranks. Then count what they "
        "can compute on.",
        "Each of `ranks` ranks has `threads` threads; `cores` are those that "
        "the job may use, whatever the machine has.",
        "oversubscribed = ranks * threads > len(cores)",
    ],
)
def crowded_jobs_are_known(job):
    """Of six jobs, those with more threads than cores are oversubscribed."""
    jobs = [
        ("1 rank x 1 thread", {"ranks": 1, "intra": 1}),
        ("a rank for each core, 1 thread", {"ranks": CORES, "intra": 1}),
        ("2 ranks, each with all cores", {"ranks": 2, "intra": CORES}),
        ("1 rank, a thread too many", {"ranks": 1, "intra": CORES + 1}),
        ("a rank too many, 1 thread", {"ranks": CORES + 1}),
        # mpirun binds it to a single core, whatever the machine has.
        ("1 rank x 2 threads, bound to one core",
         {"ranks": 1, "intra": 2, "threads": 1}),
    ]
    words = {True: "oversubscribed", False: "not oversubscribed"}
    for name, how in jobs:
        saw = decided(job, **how)
        there = cores_allowed(saw)
        count = how["ranks"] * how.get("intra", 1)
        wanted = count > there
        said = saw["oversubscribed"]
        if there < CORES:
            because = "Count `cores`, those that the job may use."
        elif count == there:
            because = "As many threads as cores are not too many."
        elif how["ranks"] == 1:
            because = "Do not count ranks alone: each has `threads` threads."
        else:
            because = "Count the threads of all ranks: ranks * threads."
        assert bool(said) == wanted, (
            f"{name}: {count} thread(s) on {there} core(s); expected "
            f"{words[wanted]}, saw {words[bool(said)]}. {because}"
        )
