"""All that a folder of results holds, without a name of a person, a host or a folder, and without a
secret: those are taken out here, once."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from .. import __version__, machine
from ..base.errors import ScaleoutError
from ..base.paths import results_path, show
from .accuracy import by_records, by_sweeps
from .attempts import attempts
from .evidence import Evidence, Machine, Measured, Runs
from .private import Veil
from .reading import Jobs, comparison, sweep

HERE = Path(__file__).parent
Kind = TypeVar("Kind", bound=Runs)


def gather(
    names: Path | str | Sequence[Path | str],
    accuracy: str = "accuracy",
    say: Callable[[str], None] = print,
    notes: str = "",
) -> Evidence:
    """Read the comparisons, sweeps and records in a folder of results, or in several.

    Several tell a story in their order, and the last is its claim.
    """
    folders = [folder(name) for name in ([names] if isinstance(names, (Path, str)) else names)]
    jobs = {path.parent.name: path.parent for path in _files(folders, "run.json")}
    texts: dict[str, str] = {}
    found: list[Measured] = []
    of_seeds: list[Measured] = []
    known: set[Path] = set()
    for top in reversed(folders):  # what is named twice is told where it is named last
        places = [path.parent for path in _measured(top) if path.resolve() not in known]
        known |= {path.resolve() for path in _measured(top)}
        each = _each(places, jobs, texts, say)
        if not each and len(folders) > 1:
            raise _nothing(top)
        of_seeds += [one for one in each if one.seeds]
        found[:0] = sorted((one for one in each if not one.seeds), key=lambda one: one.began)
    if not found:
        raise _nothing(folders[-1])
    test = None
    if len(folders) > 1:
        found[-1] = replace(found[-1], claim=True)
        if test := by_records(found[-1:], _inside([], found[-1:], jobs), accuracy):
            test = replace(test, own=True, typed=found[-1].typed)
    test = test or by_sweeps(of_seeds, jobs)
    test = test or by_records(found, _inside(folders, found, jobs), accuracy)
    every = [row for one in [*found, *filter(None, [test])] for row in one.rows]
    found, left, others = attempts(found, known, _files(folders, "compare.json"))
    whole = Evidence(
        scaleout=__version__,
        machine=_machine(found[0]),
        versions=next((row.versions for row in every if row.versions), {}),
        comparisons=found,
        accuracy=test,
        texts=texts,
        notes=notes,
        left=left,
        others=others,
        drawn=drawn(),
    )
    veil = Veil(whole)
    named = [_renamed(one, veil.unlike(one.variants)) for one in found]
    test = test and _renamed(test, veil.unlike(test.variants))
    return veil.shown(replace(whole, comparisons=named, accuracy=test))


def folder(name: Path | str) -> Path:
    """Find the folder that somebody names by its path, or by what it is called below results/."""
    places = [results_path(*kind, str(name)) for kind in ((), ("compare",), ("sweep",))]
    there = [place for place in (Path(name), *places) if place.is_dir()]
    if not there:
        near = sorted(path.parent.name for path in results_path("compare").glob("*/compare.json"))
        raise ScaleoutError(
            f"There is no folder {show(Path(name))}: name the one that compare and sweep have "
            f"written to, such as  scaleout report {near[-1] if near else 'results'}"
        )
    return next((place for place in there if _measured(place)), there[0])


def drawn() -> str:
    """Digest what draws and judges a report: another version of it may draw the same otherwise."""
    parts = [path for ending in ("py", "html") for path in HERE.glob(f"*.{ending}")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(parts))).hexdigest()[:16]


def _nothing(folder: Path) -> ScaleoutError:
    return ScaleoutError(
        f"There is nothing to report in {show(folder)}: measure first, with  scaleout compare  "
        "or  scaleout sweep --repeat 3"
    )


def _measured(folder: Path) -> list[Path]:
    """List what says that something was compared or swept."""
    return [path for name in ("compare", "sweep") for path in sorted(folder.rglob(f"{name}.json"))]


def _files(folders: Sequence[Path], name: str) -> list[Path]:
    """List such files in these folders, and in the results around a comparison's own folder."""
    around = [
        f.resolve().parents[1] for f in folders if f.resolve().parent.name in ("compare", "sweep")
    ]
    return [path for top in dict.fromkeys([*around, *folders]) for path in sorted(top.rglob(name))]


def _inside(folders: Sequence[Path], found: Sequence[Measured], jobs: Jobs) -> dict[str, Path]:
    """Leave out the runs that lie elsewhere, and belong to none of these comparisons."""
    known = {row.run_id for one in found for row in one.rows}
    tops = [one.resolve() for one in folders]
    return {
        run_id: place
        for run_id, place in jobs.items()
        if run_id in known or any(place.resolve().is_relative_to(top) for top in tops)
    }


def _each(
    places: Iterable[Path], jobs: Jobs, texts: dict[str, str], say: Callable[[str], None]
) -> list[Measured]:
    """Read what was compared and swept; what is not whole is left out."""
    found = []
    for place in places:
        try:
            swept = (place / "sweep.json").is_file()
            lines = (place / "compare.json", place / "runs.jsonl")
            one = sweep(place, jobs) if swept else comparison(*lines, jobs, texts)
        except (ScaleoutError, LookupError, ValueError):
            one = None
        if one is not None and (one.seeds or _has_a_round(one)):
            found.append(one)
        else:
            say(f"{show(place)} is left out: it has no whole round, or is damaged.")
    return found


def _has_a_round(one: Measured) -> bool:
    each = [row.round for row in one.rows]
    names = {row.variant for row in one.rows}
    return len(names) > 1 and any(each.count(number) == len(names) + 1 for number in set(each))


def _renamed(one: Kind, called: Mapping[str, str]) -> Kind:
    """Call the variants as a page may."""
    variants = {called[name]: setting for name, setting in one.variants.items()}
    rows = [replace(row, variant=called[row.variant]) for row in one.rows]
    return replace(one, variants=variants, rows=rows)


def _machine(first: Measured) -> Machine:
    """Describe the machine of the first comparison, as far as it is known or is this one."""
    cpu, cores = first.machine
    about: dict[str, object] = {"processor": cpu, "cores that a job may fill": cores}
    if (machine.cpu_model(), machine.usable_cores()) == (cpu, cores):
        here = machine.facts()
        about["sockets"] = here.sockets
        about["hardware threads"] = here.hardware_threads
        about["memory (GiB)"] = here.memory_limit_gib or here.memory_gib
        about["instruction sets"] = ", ".join(here.isa)
        about["MPI"] = f"{here.mpi} {here.mpi_version}"
    about |= first.limits
    return Machine(cpu=cpu, cores=cores, about=[(name, str(what)) for name, what in about.items()])
