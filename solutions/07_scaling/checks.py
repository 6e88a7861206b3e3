"""What each TODO of 07_scaling is checked by: small jobs on three ranks, whose 100 rows do not divide by three."""

from scaleout.exercises import todo

SMALL = {"threads": 1, "batch": 100, "width": 64, "layers": 3, "steps": 2}


def metrics(job, ranks=3, **how):
    run = job(ranks=ranks, **{**SMALL, **how})
    assert len(run.records) == 1, f"expected one record, from rank 0; saw {len(run.records)}."
    return run.records.iloc[0], run.records["metrics"].iloc[0]


@todo(
    1,
    hints=[
        "A ring has two rounds. In each of them, how many messages does a rank send, and how large is one?",
        "2 (ranks - 1) messages; each is one block of the array, n / ranks bytes, and costs alpha + beta times that.",
        "return 2 * (ranks - 1) * (alpha + beta * n / ranks)",
    ],
)
def the_ring_has_its_formula(job):
    """The time by the formula, from the alpha and beta that this job measured."""
    for ranks in (2, 3):
        _, saw = metrics(job, ranks)
        block = saw["alpha_s"] + saw["beta_s"] * saw["bytes"] / ranks
        wanted = 2 * (ranks - 1) * block
        assert wanted > 0 and abs(saw["ring_s"] - wanted) < 1e-6 * wanted, (
            f"expected the formula to give {1e6 * wanted:.1f} us on {ranks} ranks, for {2 * (ranks - 1)} blocks; "
            f"saw {1e6 * saw['ring_s']:.1f} us."
        )


@todo(
    2,
    hints=[
        "Strong scaling: the same work on more ranks. Weak scaling: the same work on each rank.",
        "data.shard(batch, rank, ranks) shares one batch out; in weak scaling rank 0 has the first batch rows, rank 1 "
        "the next.",
        'if mode == "strong": return data.shard(batch, rank, ranks)   and else '
        "return slice(rank * batch, (rank + 1) * batch)",
    ],
)
def each_rank_has_its_rows(job):
    """Three ranks share 100 rows in strong scaling, and have 100 each, all different, in weak scaling."""
    for mode, wanted in (("strong", 100), ("weak", 300)):
        _, saw = metrics(job, mode=mode)
        rows = [row for share in saw["shares"] for row in range(share["first"], share["stop"])]
        sizes = sorted(share["stop"] - share["first"] for share in saw["shares"])
        assert sorted(rows) == list(range(wanted)), (
            f"{mode}: expected each of {wanted} rows on one rank; saw {len(rows)}, {len(set(rows))} of them different."
        )
        assert sizes[-1] - sizes[0] <= 1, f"{mode}: expected parts that differ by one row at most; saw {sizes}."


@todo(
    3,
    hints=[
        "Allreduce returns when the sum is there. Which call returns at once, and gives you something to wait for?",
        "comm.Iallreduce returns a request; the list `sums` is waited for after the last layer.",
        "sums.append(comm.Iallreduce(MPI.IN_PLACE, gradients[-1]))",
    ],
)
def the_exchange_does_not_hold_up_the_next_layer(job):
    """The sums are right, and a rank that is late holds up nobody before the last layer."""
    _, saw = metrics(job)
    _, alone = metrics(job, 1)
    rows = [share["stop"] - share["first"] for share in saw["shares"]]
    sums = [share["sum"] for share in saw["shares"]]
    assert max(sums) - min(sums) < 1e-5, f"expected one sum on all ranks; saw {sums}."
    if sum(rows) == saw["rows"]:  # else TODO 2 is still open, and the sum is another
        off = abs(sums[0] - alone["shares"][0]["sum"])
        assert off < 1e-3, f"expected the gradient of all rows, as one rank finds it; saw one that is off by {off:.1e}."
    # A large exchange takes milliseconds. A rank that does not wait for it between two layers waits at the end.
    _, saw = metrics(job, 2, width=1024, batch=8, steps=4)
    waits = [[end - start for what, start, end in share["log"] if what == "exchange"] for share in saw["shares"]]
    between, last = 1e3 * min(max(wait[:-1]) for wait in waits), 1e3 * max(wait[-1] for wait in waits)
    assert last > between, (
        "expected the ranks to wait for each other at the end of the step; "
        f"saw them wait {between:.2f} ms between two layers, and {last:.2f} ms at the end."
    )


@todo(
    4,
    hints=[
        "With efficiency 1 nothing is lost. How long would the step then take on this many ranks?",
        "Strong: args.one / ranks would be ideal. Weak: args.one would.",
        'efficiency = args.one / median_s / (ranks if args.mode == "strong" else 1)',
    ],
)
def the_efficiency_is_the_part_that_was_worth_it(job):
    """Half a second on one rank, in both modes, over what this job took."""
    for mode in ("strong", "weak"):
        row, saw = metrics(job, mode=mode, one=0.5)
        wanted = 0.5 / row.step_median_s / (3 if mode == "strong" else 1)
        assert abs(saw["efficiency"] - wanted) < 1e-3 * wanted, (
            f"{mode}: expected an efficiency of {wanted:.2g}, one rank taking 0.5 s, three {row.step_median_s:.2g} s; "
            f"saw {saw['efficiency']:.2g}."
        )
