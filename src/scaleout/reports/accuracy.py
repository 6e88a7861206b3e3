"""The accuracy test of a report: of sweeps over seeds, or of what the jobs have recorded."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict, replace

from ..measuring.journal import description
from .evidence import Measured, Setting, Test, Tested, less_is_better, more_is_better
from .reading import SEED, Job, Jobs, Told, fields_of, ran_words, records_of, told


def by_sweeps(found: Sequence[Measured], jobs: Jobs) -> Test | None:
    """Make the accuracy test of sweeps over seeds, by the figure of most: a variant for each command."""
    found = sorted((one for one in found if one.rows), key=lambda one: one.began)
    metrics = Counter(one.metric for one in found)
    found = [one for one in found if one.metric == metrics.most_common(1)[0][0]]
    settings: dict[str, Setting] = {}
    rows = []
    for one in found:
        for row in one.rows:
            if row.seed is None:
                continue  # the default, which has none
            setting = one.variants[row.variant]
            setting = replace(
                setting,
                words=_without(setting.words, f"{{{SEED}}}"),
                env={key: value for key, value in setting.env.items() if key != SEED},
                typed=one.typed,
            )
            env = [f"{key}={value}" for key, value in setting.env.items()]
            name = shlex.join([*env, *setting.words]) + f" on {setting.ranks} x {setting.threads}"
            settings.setdefault(name, setting)
            tested = asdict(told(jobs.get(row.run_id)))
            rows.append(Tested(**{**asdict(row), **tested, "variant": name}))
    if not rows:
        return None
    first = found[0]
    return Test(
        metric=first.metric,
        lower=less_is_better(first.metric) or (first.lower and not more_is_better(first.metric)),
        reduce=first.reduce,
        machine=first.machine,
        typed=first.typed,
        seeds=sorted({seed for one in found for seed in one.seeds}, key=by_size),
        variants=settings,
        rows=rows,
    )


def by_records(found: Sequence[Measured], jobs: Jobs, metric: str) -> Test | None:
    """Make the accuracy test of records: of a comparison's variants, or of a lab's."""
    of = {row.run_id: (n, row.variant) for n, one in enumerate(found) for row in one.rows}
    twins = {row.run_id for one in found for row in one.rows if row.again}
    tests: dict[int | str, list[Tested]] = {}  # by a comparison's number, or a lab's name
    settings: dict[tuple[int | str, str], Setting] = {}
    for run_id, folder in jobs.items():
        if run_id in twins:  # the baseline's second run of a round has its seed
            continue
        job = description(folder / "run.json", Job) or Job()
        for record in records_of(folder):
            value = record.metrics.get(metric)
            value = value[-1] if isinstance(value, list) and value else value
            if not isinstance(value, (int, float)) or record.seed is None:
                continue
            key, variant = of.get(run_id, (record.lab, record.variant))
            setting = Setting(
                words=_without(ran_words(job), str(record.seed)) or [record.lab, record.variant],
                env=job.env,
                ranks=record.ranks,
                threads=record.threads_per_rank or 1,
            )
            settings.setdefault((key, variant), setting)
            row = Tested(
                variant=variant,
                seed=str(record.seed),
                value=value,
                values={"record": [value]},
                ranks=record.ranks,
                utc=record.utc,
                run_id=run_id,
                wall_s=job.wall_s,
                cpu=record.cpu,
                cores=record.cores,
                versions=record.installed,
                **asdict(fields_of(Told, record.metrics)),
            )
            if math.isfinite(value):  # of a training that diverged the seed is missing
                tests.setdefault(key, []).append(row)
    known = [(k, rows) for k, rows in tests.items() if sum(key == k for key, _ in settings) > 1]
    if not known:
        return None
    key, rows = max(known, key=lambda test: len({row.seed for row in test[1]}))
    rows.sort(key=lambda row: row.utc)
    named = dict.fromkeys([*(r.variant for r in rows), *(v for k, v in settings if k == key)])
    whose = found[key].variants if isinstance(key, int) else {}
    return Test(
        metric=metric,
        lower=less_is_better(metric),
        machine=(rows[0].cpu, rows[0].cores),
        seeds=sorted({str(row.seed) for row in rows}, key=by_size),
        variants={v: whose.get(v) or settings[key, v] for v in named},
        rows=rows,
        recorded=True,
    )


def by_size(seed: str) -> tuple[int, str]:
    return (int(seed), "") if seed.isdecimal() else (0, seed)


def _without(words: Sequence[str], seed: str) -> list[str]:
    """Drop the seed from the words of a command, and the flag before it."""
    kept: list[str] = []
    for word in words:
        if word == seed and kept and "seed" in kept[-1].lower():
            kept.pop()
        elif not ("seed" in word.lower() and word.endswith(f"={seed}")):
            kept.append(word)
    return kept
