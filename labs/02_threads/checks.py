"""What each TODO of 02_threads is checked by: jobs that only say what they would do, and one that trains for a step.

No check looks at how long anything took.
"""

import os

from scaleout import machine
from scaleout.exercises import todo

CORES = machine.usable_cores()
NOTHING = {"steps": 0}  # the job decides on threads and cores, and trains nothing


def decided(job, **how):
    """What a job decided: the metrics of its record."""
    run = job(**NOTHING, **how)
    assert len(run.records) == 1, f"expected one record, from rank 0; saw {len(run.records)}."
    return run.records["metrics"].iloc[0]


@todo(
    1,
    hints=[
        "Two ranks on four cores have two threads each; three ranks on two cores cannot have less than one.",
        "`cores` is a list of all cores that the job may use, and `ranks` share it: divide, without a remainder.",
        "share = max(1, len(cores) // ranks)",
    ],
)
def the_ranks_fill_the_cores(job):
    """One rank has all cores, two have half of them each, and one rank more than cores has one thread."""
    for ranks in sorted({1, 2, CORES + 1}):
        saw, wanted = decided(job, ranks=ranks)["threads"], max(1, CORES // ranks)
        assert saw == wanted, f"expected {wanted} thread(s) a rank with {ranks} rank(s) on {CORES} cores; saw {saw}."


@todo(
    2,
    hints=[
        "The pinning line is a system call: Linux lets a process choose the CPUs that it runs on. Python has it in os.",
        "Cut `threads` cores out of `cores`, behind those of the ranks before you; os.sched_setaffinity(0, cpus) takes "
        "the CPUs of all of them. Leave it out when ranks * threads is more than there are cores.",
        "if args.pin and ranks * threads <= len(cores): own = cores[rank * threads : (rank + 1) * threads]; "
        "os.sched_setaffinity(0, sum(own, []))",
    ],
)
def each_rank_has_cores_of_its_own(job):
    """With --pin no CPU belongs to two ranks, and each has one core per thread; without it they stay as they were."""
    assert CORES > 1, "this machine lets you use one core: there is nothing to share out, so nothing to check."
    free = {"threads": len(os.sched_getaffinity(0)) + 1}  # more than fit, so mpirun binds nothing by itself
    ranks = CORES if CORES < 4 else 4
    for pin in (True, False):
        saw = decided(job, ranks=ranks, intra=1, pin=pin, **free)
        sets = [set(each["may_run_on"]) for each in saw["on_rank"]]
        shared = set.intersection(*sets)
        if pin:
            assert not shared, f"expected CPUs of its own for each of {ranks} ranks; saw {shared} on all (with --pin)."
            cores = [[core for core in saw["cores"] if mine & set(core)] for mine in sets]
            sizes = [len(each) for each in cores]
            assert set(sizes) == {1}, f"expected 1 core a rank for --intra 1; saw {sizes}."
        else:
            assert shared, f"expected the ranks to share the CPUs without --pin; saw {sets}. Is it for --pin alone?"
    more = decided(job, ranks=ranks, intra=CORES + 1, pin=True, **free)
    sets = [set(each["may_run_on"]) for each in more["on_rank"]]
    assert set.intersection(*sets), f"expected no pinning where the threads do not fit the cores; saw {sets}."


@todo(
    3,
    hints=[
        "Libraries read such variables once, when they are loaded or first used. `settings` has their names.",
        "os.environ takes text only: turn each number into text, unless args.leave says that nothing be set.",
        "if not args.leave: os.environ.update({name: str(value) for name, value in settings.items()})",
    ],
)
def tensorflow_has_the_threads_that_were_asked_for(job):
    """With --intra 9 TensorFlow starts nine threads for operations though the shell says 1; not so with --leave."""
    small = {"ranks": 1, "threads": 1, "steps": 1, "warmup": 1, "intra": 9, "inter": 1}
    # Beside those nine there is one for --inter 1, and at most two of TensorFlow's own.
    saw = job(**small).records["metrics"].iloc[0]["on_rank"][0]["threads"]["Eigen"]
    assert 10 <= saw <= 12, f"expected TensorFlow to start 9 threads for --intra 9 and 1 to 3 beside; saw {saw} in all."
    shell = {"TF_NUM_INTEROP_THREADS": "9"}
    saw = job(**small, leave=True, env=shell).records["metrics"].iloc[0]["on_rank"][0]["threads"]["Eigen"]
    assert 9 <= saw <= 12, (
        f"expected --leave to leave the shell's settings alone, 1 thread for operations and 9 operations at a time; "
        f"saw {saw} threads that TensorFlow started."
    )


@todo(
    4,
    hints=[
        "Count the threads that compute, on all ranks. Then count what they can compute on.",
        "Each of `ranks` ranks has `threads` threads; `cores` are those that the job may use, be there more or not.",
        "oversubscribed = ranks * threads > len(cores)",
    ],
)
def crowded_jobs_are_known(job):
    """Of five settings, those are oversubscribed where the kernel has more threads to place than cores for them."""
    one_core = {"threads": 1}  # mpirun binds the rank to a single core, whatever the machine has
    five = {
        "1 rank x 1 thread": {"ranks": 1, "intra": 1},
        f"{CORES} rank(s) x 1 thread": {"ranks": CORES, "intra": 1},
        f"2 ranks x {CORES} thread(s)": {"ranks": 2, "intra": CORES},
        f"1 rank x {CORES + 1} threads": {"ranks": 1, "intra": CORES + 1},
        "1 rank x 2 threads, bound to one core": {"ranks": 1, "intra": 2, **one_core},
    }
    for name, how in five.items():
        saw = decided(job, **how)
        allowed = set().union(*(each["may_run_on"] for each in saw["on_rank"]))  # as the kernel has it
        there = min(CORES, sum(bool(allowed & set(core)) for core in saw["cores"]))
        wanted = how["ranks"] * how["intra"] > there
        words = {True: "oversubscribed", False: "not oversubscribed"}
        assert bool(saw["oversubscribed"]) == wanted, (
            f"{name} on {there} core(s): expected {words[wanted]}; saw {words[bool(saw['oversubscribed'])]}."
        )
