"""Write docs/machines.md: what the lessons' headline comparisons gave on every machine that they met.

    python tools/make_machines.py [--check]       (make pages writes it, make lint checks it)

It is made from solutions/*/elsewhere.jsonl alone. With --check nothing is written: where the page is
another one, this ends with a sentence and an exit status of 1."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scaleout.base.words import day, kibibytes, markdown_table, percent, rounded
from scaleout.comparisons import elsewhere
from scaleout.comparisons.comparison import Other
from scaleout.comparisons.elsewhere import Headline, Kind
from scaleout.doctor.traps import STEPS
from scaleout.measuring.kind import names

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/machines.md"
ANEW = "python tools/make_machines.py"
HEAD = """# The headlines on other machines

The figures in the notebooks come from one small machine, and yours is another. Here you see what
the main comparisons of the lessons gave on every machine on which they were measured. In a notebook
they are drawn below your own, and are never mixed with it.

"""
NONE = """No machine has been measured for this page yet. Once one has, a table of the machines stands here,
and below it a table for each comparison.
"""
READ = """Each number says how many times as fast as the baseline a variant is, with its 95 % interval: above
1 it is faster, below 1 slower. "No difference" stands where the interval reaches no farther than
5 % from 1, and "unclear" where the measurement does not decide. The *noise* is what two identical
jobs could differ by on that machine; no smaller difference counts.
[Comparing](compare.md) explains how all this is computed, and [hardware](hardware.md) which machine
suits which training.
"""
# What each headline compares, by its name, or by how the names of several begin or end; {rest} is the
# other part.
SAYS = {
    "pi": "Pi by adding up 40 million strips, on one rank and on several.",
    "kernels": "A training step of a small convolutional network: TensorFlow's own kernels, and those of oneDNN.",
    "graph": "The same step with oneDNN's kernels: one operation after another (eager), and as a graph.",
    "resnet50": "A training step of ResNet-50: oneDNN's kernels, TensorFlow's own, and oneDNN's with the batch "
    "normalisation fused.",
    "threads": "A training of a small network: on one thread, on a thread for each core, and as one copy on each "
    "core, whose rates add up.",
    "crowd": "Two copies of K-means at once: with a fair share of the threads each, with a thread for each core that "
    "sleeps while it waits, and by default.",
    "message": "A message from one rank to another and back: one byte, and longer ones.",
    "allreduce-": "The sum of {rest} over a rank on each core: sent to one rank and back to all, around a ring, and as "
    "the MPI library does it.",
    "k-means": "K-means with 64 clusters on a million points: on one thread, on several threads, and on several ranks.",
    "k-means-numpy": "K-means in NumPy, with its sums over the ranks by MPI: on one rank, and on several.",
    "ddp": "A training step by PyTorch's DistributedDataParallel: on one rank and on several, bound to cores or not.",
    "four-ways": "One clustering of a million points on all cores: by scikit-learn, and by daal4py with threads or "
    "with ranks.",
    "efficiency": "A training with Horovod: one rank, independent copies, and ranks that average their "
    "gradients, at two cycle times.",
    "whole-job": "A whole training job: as it was first written, and after tuning.",
    "weak-scaling": "A training in which each rank keeps its number of images: one rank, and several.",
    "product-": "A product of two matrices in fp32, in bf16 and in int8, with instructions up to {rest}.",
    "network-": "A small convolutional network in fp32, in bf16 and in int8, with instructions up to {rest}.",
    "-by-step": "A product of two matrices in {rest}, with the oldest instructions and with newer ones.",
    "together-": "A training step of {rest}: as independent copies, and with averaged gradients.",
    "frameworks": "The same small network, trained by TensorFlow and by PyTorch.",
    "pipeline": "Images for a training: read one after another, and read in parallel and in batches, "
    "with a cache and with prefetching.",
    "crossing-": "Four layers on all ranks: the batch divided (data parallelism), and the weights divided (tensor "
    "parallelism). The batch has {rest} times as many rows as the layer is wide.",
    "training": "The training of the capstone: as it was first written, tuned on one rank, and tuned on several.",
}
NETWORKS = {"cnn": "a small convolutional network", "resnet50": "ResNet-50"}
# Rows that are facts: what they are called, and how they are written.
FACTS = {
    "wrong_sums": "share of wrong sums",
    "alpha_us": "alpha (microseconds)",
    "beta_ns": "beta (nanoseconds a byte)",
    "exchange_ms": "exchange of the gradients (ms)",
    "ring_ms": "the same by the ring's formula (ms)",
}
WORDS = {"unclear": ", unclear", "no difference shown": ", no difference"}  # behind a ratio


def says(name: str) -> str:
    """The sentence of a headline; KeyError where there is none."""
    if name in SAYS:
        return SAYS[name]
    for part, text in SAYS.items():
        rest = name.removeprefix(part) if part.endswith("-") else name.removesuffix(part)
        if rest != name and ("-" in (part[0], part[-1])):
            step = STEPS[rest][1] if rest in STEPS else rest.replace("MiB", " MiB")
            if found := re.fullmatch(r"(.+)-(\d+)(?:-ranks)?", rest):
                step = (
                    f"{NETWORKS.get(found[1], found[1].replace('MiB', ' MiB'))} on {found[2]} ranks"
                )
            step = NETWORKS.get(step, step)
            return text.format(rest=step)
    raise KeyError(name)


def page(root: Path = ROOT) -> str:
    """The text of the page."""
    files = sorted(root.glob(f"solutions/*/{elsewhere.FILE}"))
    lessons = {path.parent.name: elsewhere.read(path)[0] for path in files}
    every = [row for rows in lessons.values() for row in rows]
    if not every:
        return HEAD + NONE
    kinds = named_kinds(every)
    parts = [HEAD + READ, f"## The machines\n\n{_machines(kinds, every)}\n"]
    for topic, rows in lessons.items():
        if told := list(_lesson(rows, kinds)):
            parts += [f"## {_title(root, topic)}\n", *told]
    return "\n".join(parts)


def named_kinds(rows: Sequence[Headline]) -> dict[str, Kind]:
    """Each kind of machine once, by a name that no other has."""
    kinds: list[Kind] = []
    for row in rows:
        if not any(kind.same(row.machine) for kind in kinds):
            kinds.append(row.machine)
    return dict(zip(names(kinds), kinds, strict=True))


def _machines(kinds: dict[str, Kind], rows: Sequence[Headline]) -> str:
    columns = ["machine", "processor", "instructions", "cores", "L2 cache", "L3 cache", "memory"]
    lines = []
    for name, kind in kinds.items():
        last = max(row.date for row in rows if kind.same(row.machine))
        memory = f"{kind.memory_gib:.0f} GiB" if kind.memory_gib else "unknown"
        caches = [kibibytes(kib) for kib in (kind.l2_kib, kind.l3_kib)]
        isa = kind.isa or "older than AVX2"
        lines.append([name, kind.cpu, isa, kind.cores, *caches, memory, day(last)])
    return markdown_table([*columns, "measured"], lines)


def _lesson(rows: Sequence[Headline], kinds: dict[str, Kind]) -> Iterator[str]:
    """A sentence and a table for each headline of a lesson."""
    for name in dict.fromkeys(row.comparison for row in rows):
        own = [row for row in rows if row.comparison == name]
        found = {
            machine: other
            for machine, kind in kinds.items()
            for other in elsewhere.others(row for row in own if kind.same(row.machine))
        }
        # one that compares with another baseline has a table of its own
        for baseline in dict.fromkeys(other.found.baseline for other in found.values()):
            some = {where: one for where, one in found.items() if one.found.baseline == baseline}
            yield f"**{name}.** {says(name)} The baseline is *{baseline}*.\n\n{_table(some)}\n"


def _table(found: Mapping[str, Other]) -> str:
    """A row a variant, a column a machine; then what else was found, and the noise."""
    variants = dict.fromkeys(name for one in found.values() for name in one.found.variants)
    facts = dict.fromkeys(
        (variant, fact)
        for one in found.values()
        for variant, told in one.facts.items()
        for fact in told
    )
    lines = [[name, *(_ratio(one, name) for one in found.values())] for name in variants]
    for variant, fact in facts:
        values = [one.facts.get(variant, {}).get(fact) for one in found.values()]
        write = percent if fact == "wrong_sums" else rounded
        cells = ["" if value is None else write(value) for value in values]
        lines.append([f"{variant}: {FACTS.get(fact, fact)}", *cells])
    lines.append(["*noise*", *(percent(one.found.noise) for one in found.values())])
    return markdown_table(["", *found], lines)


def _ratio(other: Other, variant: str) -> str:
    """A ratio with its interval; "" where this machine lacks the variant."""
    if variant not in other.found.variants:
        return ""
    ratio = other.found.ratio(variant)
    interval = f"({rounded(ratio.low)} to {rounded(ratio.high)})"
    return f"{rounded(ratio.middle)} {interval}{WORDS.get(other.found.verdict(variant), '')}"


def _title(root: Path, topic: str) -> str:
    """The heading of a lesson's notebook, with a link to it."""
    book = root / "solutions" / f"{topic}.ipynb"
    title = topic
    if book.is_file():
        cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
        if found := re.search(r"^# (.+)$", "".join(cells[0]["source"]), re.M):
            title = found[1]
    return f"[{title}](../notebooks/{topic}.ipynb)"


def main(root: Path = ROOT, only_check: bool = False) -> int:
    """Write the page, or check it; return 1 where it is out of date, or lacks a sentence."""
    try:
        text = page(root)
    except KeyError as missing:
        print(f"tools/make_machines.py says nothing of the headline {missing}: add it to SAYS.")
        return 1
    path = root / PAGE
    if not only_check:
        path.write_text(text, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what the lessons' rows give: type")
        print(f"  {ANEW}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(only_check=sys.argv[1:] == ["--check"]))
