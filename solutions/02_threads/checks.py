"""What each TODO of 02_threads is checked by.

Most jobs say only what they would do (--steps 0), on machines that
instruments.py makes up; two train for a step. The checks look at the records,
never at the code, and never at how long anything took.
"""

from scaleout import ScaleoutError, machine, todo

CORES = machine.usable_cores()
LIMIT_S = 20  # of a job whose ranks wait for each other
FREE = {"bind": "none"}  # mpirun lets each rank use all cores


def decided(job, **how):
    """What a job decided: the metrics of its record."""
    run = job(steps=0, **how)
    count = len(run.records)
    assert count == 1, f"expected one record, from rank 0; saw {count}."
    return run.records["metrics"].iloc[0]


def seen(job, ranks, name):
    """What so many ranks decided on a machine made up, and what the real one
    has. A job that failed later has kept what it saw before."""
    try:
        run = job(script="instruments.py", ranks=ranks, threads=1,
                  timeout=LIMIT_S)
    except ScaleoutError as failed:
        run = getattr(failed, "run", None)
        if run is None or not len(run.records) or (
                name not in set(run.records["variant"])):
            raise
    records = run.records.set_index("variant")
    row = records.loc[name]
    return row["metrics.found"], row["metrics.cores"], row["metrics.counted"]


def fixed(many):
    """What to say of a number of ranks that is not the job's."""
    return (f"{many} is written where the number of ranks should stand: "
            "`ranks` knows it.")


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


def share_slips(machines):
    """What may be computed in place of it, and what to say of that; `c`
    cores are shared by `r` ranks."""
    yield lambda c, r: 1, "Some cores have nothing to do."
    for has in machines.values():
        for slip in (lambda c, r, n=has: max(1, n // r),
                     lambda c, r, n=has: n // r, lambda c, r, n=has: n):
            yield slip, (f"The machine has {has}: count `cores`, those that "
                         "the job may use.")
    yield lambda c, r: c, "The ranks share them: divide by `ranks`."
    yield lambda c, r: max(1, c * r), "Divide by the ranks."
    yield lambda c, r: min(1, c // r), "One at least is max(1, ...), not min."
    yield (lambda c, r: max(1, 2 * c // r),
           "That counts the CPUs: a core may have two of them. Count `cores`.")
    for slip in (lambda c, r: -(-c // r), lambda c, r: max(1, round(c / r))):
        yield slip, "Round down, with //: the threads are to fit the cores."
    yield lambda c, r: max(1, c // r + 1), "Divide with //, and add nothing."
    yield (lambda c, r: max(1, c // (r + 1)),
           "Divide by the ranks that there are.")
    yield lambda c, r: max(1, r // c), "Divide the cores by the ranks."
    for many in (2, 3):
        yield lambda c, r, n=many: max(1, c // n), fixed(many)


def share_reason(saw, wanted, machines):
    """Why somebody may have got these numbers of threads, by ranks and
    cores."""
    wrong = next((key for key in saw if saw[key] != wanted[key]
                  or not isinstance(saw[key], int)), None)
    if wrong is None:
        return None, ""
    if not all(isinstance(each, int) for each in saw.values()):
        return wrong, "A number of threads is whole: divide with //."
    ranks, there = wrong
    because = next((why for slip, why in share_slips(machines)
                    if all(slip(c, r) == saw[r, c] for r, c in saw)), "")
    if saw[wrong] < 1:
        return wrong, "Every rank needs one thread at least: max(1, ...)."
    if saw[wrong] > wanted[wrong]:
        return wrong, (f"{ranks} x {saw[wrong]} is more than there are "
                       f"cores. {because}")
    return wrong, because or "Some cores have nothing to do."


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
    saw = {}
    wanted = {}
    for ranks in (3, 2, 1):
        for name in ("share 7", "share 12", "share 1"):
            found, cores, counted = seen(job, ranks, name)
            key = ranks, len(cores)
            saw[key] = found[0]["threads"]
            wanted[key] = max(1, len(cores) // ranks)
    wrong, because = share_reason(saw, wanted, counted)
    if wrong:
        ranks, there = wrong
        raise AssertionError(
            f"expected {wanted[wrong]} thread(s) a rank with {ranks} rank(s) "
            f"on {there} core(s); saw {saw[wrong]}. {because}"
        )
    # This one may use a single core, whatever the machine has.
    saw = decided(job, ranks=1, threads=1)
    threads = saw["threads"]
    there = cores_allowed(saw)
    assert threads == there, (
        f"expected {there} thread(s) with 1 rank on {there} core(s); saw "
        f"{threads}. The machine has {CORES}, but mpirun has bound this job "
        f"to {there}: count `cores`, those that the job may use."
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
    for ranks in (3, 2):
        fits = [("pin 2 of 7", 2), ("pin 1 of 9", 1)]
        fits += [("pin 2 of 6", 2)] if ranks == 3 else [("pin 2 of 7", 2)]
        for name, threads in fits:
            found, cores, _ = seen(job, ranks, name)
            pinned(found, cores, threads)
        found, _, _ = seen(job, ranks, "free")
        asked = [each["asked"] for each in found]
        assert not any(asked), (
            "expected the ranks to share all CPUs without --pin; saw them "
            f"pinned to {shown(asked)}. Pin only if args.pin is set."
        )
    found, cores, _ = seen(job, 3, "pin 4 of 9")
    asked = [each["asked"] for each in found]
    assert not any(asked), (
        "expected no pinning where the threads do not fit the cores, 3 x 4 "
        f"on {len(cores)}; saw {shown(asked)}. Pin only if ranks * threads "
        "<= len(cores)."
    )
    if CORES > 1:
        ranks = min(CORES, 4)
        saw = decided(job, ranks=ranks, intra=1, pin=True, **FREE)
        sets = cpus_of(saw)
        sizes = []
        for mine in sets:
            sizes.append(sum(bool(mine & set(core)) for core in saw["cores"]))
        assert sizes == [1] * ranks and not set.intersection(*sets), (
            f"expected each of {ranks} ranks on a core of its own with "
            f"--pin; saw {sets}."
        )


def shown(asked):
    """What the ranks asked for, in a sentence."""
    return "; ".join(str(each[-1]) if each else "nothing" for each in asked)


def pinned(found, cores, threads):
    """Each rank has asked for the cores that are its own, and all of them."""
    ranks = len(found)
    asked = [each["asked"] for each in found]
    sets = [set(each[-1]) if each else set() for each in asked]
    sizes = [sum(bool(mine & set(core)) for core in cores) for mine in sets]
    case = f"{ranks} ranks x {threads} thread(s) with --pin"
    begins = [min(mine, default=0) for mine in sets]
    of_core = {cpu: at for at, core in enumerate(cores) for cpu in core}
    strange = set().union(*sets) - set(of_core)
    because = "The cores of rank r begin at number r * threads."
    if not any(asked):
        because = "Nobody was pinned: os.sched_setaffinity(0, cpus) does it."
        if ranks * threads == len(cores):
            because = ("They fill the cores, and fit: pin if ranks * threads "
                       "<= len(cores).")
    elif max(map(len, sets)) < threads:
        because = "A rank needs as many cores as it has threads."
    elif strange:
        because = (f"There is no CPU {min(strange)} on this machine: take "
                   "the CPUs that stand in `cores`.")
    elif not all(asked):
        because = ("Only some ranks are pinned, and the others run on all "
                   "cores: each pins itself.")
    elif all(mine == sets[0] for mine in sets):
        because = "All ranks are on the same cores: skip those before yours."
    elif max(sizes) < threads or 0 in sizes:
        because = "A rank needs as many cores as it has threads."
    elif max(sizes) > threads:
        because = "As many cores as threads are enough."
    elif begins == sorted(begins) and min(map(of_core.get, begins)) > 0:
        because = "Rank 0 has the first ones: ranks count from 0."
    assert sizes == [threads] * ranks, (
        f"expected {threads} core(s) for each of {case}; saw {sizes}. "
        f"{because}"
    )
    assert len(set().union(*sets)) == sum(len(mine) for mine in sets), (
        f"expected CPUs that no two ranks share, for {case}; saw "
        f"{shown(asked)}. {because}"
    )
    wanted = [set(sum(cores[rank * threads:(rank + 1) * threads], []))
              for rank in range(ranks)]
    halves = [mine < whole for mine, whole in zip(sets, wanted, strict=True)]
    if all(halves):
        because = "A core has two CPUs here: take all CPUs of each."
    assert sets == wanted, (
        f"expected the CPUs {'; '.join(str(sorted(each)) for each in wanted)}"
        f" for {case} on cores {cores}; saw {shown(asked)}. {because}"
    )


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
    were_set(job)
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


def were_set(job):
    """The variables are where a library finds them, and left with --leave."""
    for case, inter in (("set", "5"), ("by itself", "0")):
        found, _, _ = seen(job, 3, case)
        as_asked(found, {
            "OMP_NUM_THREADS": "3", "TF_NUM_INTRAOP_THREADS": "3",
            "TF_NUM_INTEROP_THREADS": inter,
        })
    left, _, _ = seen(job, 3, "left")
    for each in left:
        saw = each["environ"]
        assert set(saw.values()) == {"1"}, (
            "expected --leave to leave the shell's variables at 1; saw "
            f"{shown_names(saw)}. Set the variables only if args.leave is "
            "not set."
        )


def as_asked(found, wanted):
    """Each rank has set each variable to its own value."""
    for rank, each in enumerate(found):
        saw = each["environ"]
        name = next((name for name in wanted if saw[name] != wanted[name]),
                    "OMP_NUM_THREADS")
        if each["libraries"] == wanted:
            because = ("A library would find them, but not Python: put them "
                       "into os.environ.")
        elif each["replaced"]:
            because = ("The variables look right to Python, but TensorFlow "
                       "does not see them: assign into os.environ, do not "
                       "replace it.")
        elif saw[name] == "1":
            because = (f"{name} is still 1, as the shell had it: assign to "
                       "it, whatever is there, unless args.leave is set.")
        elif saw[name] is None:
            because = f"{name} is gone: it is to have a value."
        elif saw[name] in wanted.values():
            because = (f"{name} is {saw[name]}: each variable has a value of "
                       "its own.")
        else:
            because = f"{name} is {saw[name]!r}: its value as text is enough."
        if rank and found[0]["environ"] == wanted:
            because = "Rank 0 alone has set them, and each rank needs them."
        assert saw == wanted == each["libraries"], (
            f"expected {shown_names(wanted)} for --intra 3 --inter "
            f"{wanted['TF_NUM_INTEROP_THREADS']}; on rank {rank} saw "
            f"{shown_names(saw)}. {because}"
        )


def shown_names(environ):
    """A few variables in a sentence."""
    return ", ".join(f"{name}={text}" for name, text in environ.items())


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
    words = {True: "oversubscribed", False: "not oversubscribed"}
    # (ranks, threads of each, cores); the last has --intra 0
    cases = [(2, 3, 6), (3, 2, 5), (2, 3, 7), (2, 5, 7), (3, 3, 4), (2, 1, 1)]
    names = [f"{threads} on {there}" for _, threads, there in cases]
    names[-1] = "share 1"
    said = []
    for (ranks, _, _), name in zip(cases, names, strict=True):
        found, _, counted = seen(job, ranks, name)
        said.append(bool(found[0]["oversubscribed"]))
    wanted = [ranks * threads > there for ranks, threads, there in cases]
    because = next((why for slip, why in crowd_slips(counted["all"])
                    if [slip(*case) for case in cases] == said), "")
    if said[:-1] == wanted[:-1]:
        because = ("--intra 0 is a fair share: `threads` says how many "
                   "threads a rank has.")
    for case, saw, right in zip(cases, said, wanted, strict=True):
        ranks, threads, there = case
        assert saw == right, (
            f"{ranks} ranks x {threads} thread(s): {ranks * threads} threads "
            f"on {there} core(s); expected {words[right]}, saw {words[saw]}. "
            f"{because or 'Count the threads of all ranks, and the cores.'}"
        )
    saw = decided(job, ranks=1, intra=2, threads=1)
    there = cores_allowed(saw)
    said = saw["oversubscribed"]
    assert bool(said) == (there < 2), (
        f"1 rank x 2 threads, bound to {there} core(s): expected "
        f"{words[there < 2]}, saw {words[bool(said)]}. Count `cores`, those "
        "that the job may use."
    )


def crowd_slips(machine_has):
    """What may be counted in place of it, and what to say of that."""
    every = "Count the threads of all ranks: ranks * threads."
    yield lambda r, t, c: False, f"Nothing was counted yet. {every}"
    yield lambda r, t, c: True, f"It says so of every job. {every}"
    yield lambda r, t, c: t > c, every
    yield lambda r, t, c: r > c, f"{every} Each rank has `threads` of them."
    yield lambda r, t, c: r + t > c, every
    yield (lambda r, t, c: r * t >= c,
           "As many threads as cores are not too many.")
    yield lambda r, t, c: r * t <= c, "It is the other way round."
    yield lambda r, t, c: r * t < c, "It is the other way round."
    yield (lambda r, t, c: r * t > 2 * c,
           "Count cores, not their CPUs: a core may have two.")
    yield (lambda r, t, c: r * t > machine_has,
           f"The machine has {machine_has}. Count `cores`, those that the job "
           "may use.")
    yield lambda r, t, c: r * t != c, "Fewer threads than cores fit, too."
    yield lambda r, t, c: r * t > c + 1, "One thread too many is too many."
    yield lambda r, t, c: 2 * t > c, fixed(2)
    yield lambda r, t, c: 3 * t > c, fixed(3)
