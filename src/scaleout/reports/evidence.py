"""What a folder of results holds, as one dictionary that a page can carry.

It has runs, commands and settings, and no name of a person, a host or a folder: those are taken out
here, once.
"""

import hashlib
import re
import shlex
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import __version__, machine
from ..base import jsonlines
from ..base.errors import ScaleoutError
from ..base.paths import results_path, show
from ..comparisons import comparison
from ..comparisons.comparison import Comparison
from ..kit import records
from ..kit.fields import wrong
from ..measuring.metric import Metric
from ..sweeps import rows as sweeps
from ..sweeps.points import filled, holes

Entry = dict[str, Any]
SCHEMA = 1
SEED = "SEED"  # a sweep over this variable is an accuracy test
LINE = re.compile(r"(?:\[(\d+)\] )?(.*)")
PART = r"""(?:\\.|\$\{\w+\}|[^\s/:,;=<>|&)}\]`"'\\])+"""  # of a path, behind its /
NAMES = re.compile(  # of folders, hosts and people
    r"\w+://\S+|[\w.+%-]+@[\w.-]+"
    rf"|(?<![\w.~/)}}\]])(?:~[\w.-]*|\.\.)?(?:/+{PART})+/*"  # behind any sign but an operand
    rf"|(?<=[)}}\]])(?:/+{PART}){{2,}}/*"  # (a)/home/b, and no (a)/b
    rf"|(?<![^\s=,'\"(])(?P<flag>-[A-Za-z]+)(?:/+{PART}){{2,}}/*"  # -I/home/b
    r"|(?<![^\s=:,;<>|&({'\"])~[A-Za-z_][\w.-]*"
)
DIVIDED = re.compile(r"(?:^|[^\w.-])[\w.]*[\w)\]][ \t]+$")  # what stands before the / of a / b
FILE = re.compile(  # a name that tells nobody's; alice.smith is a person's
    r"python[\d.]*|.+\.(?:(?:py|sh|bash|sbatch|slurm|ipynb|cc|cpp|cu|hpp|f90|jl|exe|bin|sif|img|whl"
    r"|jsonl?|toml|ya?ml|cfg|ini|conf|xml|txt|log|out|md|html|csv|tsv|dat|db|parquet|npy|npz|h5|hdf5"
    r"|keras|pb|pt|pth|onnx|pkl|tfrecord|nc|zarr|nii|dcm|png|jpe?g|svg|pdf|gz|tgz|tar|xz|zst|zip)"
    r"|so[\d.]*)"
)


def gather(
    names: Path | str | Sequence[Path | str],
    accuracy: str = "accuracy",
    limits: bool = True,
    say: Callable[[str], None] = print,
    notes: str = "",
) -> Entry:
    """Read the comparisons, sweeps and records in a folder of results, or in several.

    Several tell a story in their order, and the last is its claim.
    """
    folders = [folder(name) for name in ([names] if isinstance(names, (Path, str)) else names)]
    runs = {path.parent.name: path.parent for path in _files(folders, "run.json")}
    texts: dict[str, str] = {}
    found: list[Entry] = []
    of_seeds: list[Entry] = []
    told: set[Path] = set()
    for one in reversed(folders):  # what is named twice is told where it is named last
        places = [path.parent for path in _measured(one) if path.resolve() not in told]
        told |= {path.resolve() for path in _measured(one)}
        each = _each(places, runs, texts, say)
        if not each and len(folders) > 1:
            raise _nothing(one)
        of_seeds += [entry for entry in each if SEED in entry.get("grid", {})]
        found[:0] = sorted((e for e in each if SEED not in e.get("grid", {})), key=_began)
    if not found:
        raise _nothing(folders[-1])
    own: Entry = {}
    if len(folders) > 1:
        found[-1]["claim"] = True
        if own := _by_records(found[-1:], _inside([], found[-1:], runs), accuracy):
            own["own"] = found[-1]["line"]
    here = _inside(folders, found, runs)
    seeds = own or _by_sweeps(of_seeds) or _by_records(found, here, accuracy)
    return {
        "schema": SCHEMA,
        "scaleout": __version__,
        "machine": _machine(found[0]["machine"], limits),
        "versions": _first_told([*found, seeds] if seeds else found),
        "comparisons": found,
        "accuracy": seeds,
        "texts": texts,
        "notes": anonymous(notes),
    }


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


def _inside(
    folders: Sequence[Path], found: Sequence[Entry], runs: Mapping[str, Path]
) -> dict[str, Path]:
    """Leave out the runs that lie elsewhere, and belong to none of these comparisons."""
    known = {row["run_id"] for entry in found for row in entry["rows"]}
    tops = [one.resolve() for one in folders]
    return {
        run_id: place
        for run_id, place in runs.items()
        if run_id in known or any(place.resolve().is_relative_to(top) for top in tops)
    }


def _each(
    places: Iterable[Path],
    runs: Mapping[str, Path],
    texts: dict[str, str],
    say: Callable[[str], None],
) -> list[Entry]:
    """Read what was compared and swept; what is not whole is left out."""
    found = []
    for place in places:
        try:
            swept = (place / "sweep.json").is_file()
            entry = _sweep(place, runs) if swept else _comparison(place, runs, texts)
            if SEED not in entry.get("grid", {}):
                compared(entry)
            found.append(entry)
        except (ScaleoutError, LookupError, ValueError):
            say(f"{show(place)} is left out: it has no whole round, or is damaged.")
    return found


def compared(entry: Entry) -> Comparison:
    """Make the comparison of an entry's rows."""
    points = entry.get("points", 0)
    return Comparison(entry["rows"], entry["lower"], entry["metric"], compared=points)


def _began(entry: Entry) -> str:
    return min(str(row["utc"]) for row in entry["rows"])


def anonymous(text: str) -> str:
    """Take the names of hosts and people out of a text, and of a path all but a file's name.

    A division such as a /b stays.
    """
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "HOST", text)

    def last(found: re.Match[str]) -> str:
        path, flag = found[0], found["flag"] or ""
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if re.fullmatch(r"//?\w+", path) and (before.endswith("<") or DIVIDED.search(before)):
            return path  # </b>, a /b, or a //b
        name = Path(path).name
        known = FILE.fullmatch(name) and "@" not in path and "://" not in path
        return flag + (name if known else "ELSEWHERE")

    return NAMES.sub(last, text)


def _setting(words: Iterable[str], env: Mapping[str, Any], ranks: int, threads: int) -> Entry:
    """Describe one command as a page tells it.

    That is its words, variables (None: unset), ranks, and threads of each.
    """
    given = [anonymous(str(word)) for word in words]
    texts = {name: value if value is None else anonymous(str(value)) for name, value in env.items()}
    return {"words": given, "env": texts, "ranks": ranks, "threads": threads}


def _comparison(place: Path, runs: Mapping[str, Path], texts: dict[str, str]) -> Entry:
    """Read what `compare` has left in a folder; add the scripts' texts."""
    about = jsonlines.table(place / "compare.json")
    rows, _ = jsonlines.read(place / "runs.jsonl", comparison.wrong)
    metric = str(about.get("metric", "rate"))
    how: dict[str, Entry] = dict(about.get("variants", {}))
    called: dict[str, str] = {}
    for name in how:
        short = anonymous(name)
        called[name] = short if short not in called.values() else f"{short} ({len(called) + 1})"
    judge = Metric(metric, about.get("lower") is True)
    job, (_, cores) = str(about["job"]), about["machine"]
    first = {row["variant"]: runs.get(row["run_id"]) for row in reversed(rows)}
    settings = {
        called[name]: _variant(job, args, first.get(name), cores) for name, args in how.items()
    }
    for name, file in dict(about.get("scripts", {})).items():
        if text := about["texts"].get(file):
            key = hashlib.sha256(text.encode()).hexdigest()[:16]  # of what was run
            texts[key] = anonymous(text)
            settings[called[name]] |= {"script": anonymous(file), "text": key}
    return {
        **{key: about[key] for key in ("guess", "guessed") if key in about},
        "kind": "compare",
        "metric": metric,
        "lower": about.get("lower") is True,
        "machine": about["machine"],
        "variants": settings,
        "line": _compare_line(list(settings.values()), judge),
        "rows": [_row({**row, "variant": called[row["variant"]]}, runs, judge) for row in rows],
    }


def _variant(job: str, args: Entry, run: Path | None, cores: int) -> Entry:
    """Describe a variant's command: as it was given or, of a lab's job, as its run tells it."""
    words, env = args.get("script"), args.get("env") or {}
    if not isinstance(words, list):
        words = shlex.split(job)
        words = (_ran(jsonlines.table(run / "run.json")) if run and not words[1:] else []) or words
    ranks = int(args.get("ranks") or 1)
    placed = {name: anonymous(str(args[name])) for name in ("nodes", "bind") if args.get(name)}
    setting = _setting(words, env, ranks, int(args.get("threads") or max(1, cores // ranks)))
    return {**setting, "placed": placed}


def _ran(about: Entry) -> list[str]:
    """Read the command of a rank, from its Python on, out of a run.json."""
    typed = shlex.split(str(about.get("command", "")))
    python = [at for at, word in enumerate(typed) if Path(word).name.startswith("python")]
    return typed[python[0] :] if python else []


def _row(row: Entry, runs: Mapping[str, Path], judge: Metric) -> Entry:
    """Describe a run with what it was judged by.

    That is the seconds it took, and the figures that each rank gave.
    """
    folder = runs.get(row.get("run_id", ""))
    names = (
        "round",
        "place",
        "variant",
        "again",
        "seed",
        "value",
        "unit",
        "utc",
        "run_id",
        "quick",
        "others",
    )
    kept = {name: row[name] for name in names if name in row}
    about = jsonlines.table(folder / "run.json") if folder else {}
    kept |= {"wall_s": row.get("wall_s", about.get("wall_s")), "given": row.get("values") or {}}
    if "cpu" in row:
        kept["machine"] = [row["cpu"], row["cores"]]
    if folder and not kept["given"] and judge.what != "wall_s":
        kept["given"] = _given(folder, judge)
    if folder and (told := _versions(folder)):
        kept |= told
    return kept


def _versions(folder: Path) -> Entry:
    """Read versions of libraries and the commit from a job's records; none where none tells them."""
    for line in jsonlines.read(folder / "records.jsonl", wrong)[0]:
        versions = {str(name): str(text) for name, text in line["versions"].items()}
        told = {"versions": versions, "commit": anonymous(line["commit"] or "")}
        return {name: what for name, what in told.items() if what}
    return {}


def _given(folder: Path, judge: Metric) -> dict[str, list[float]]:
    """Read the figures in a job's records or in what its ranks printed."""
    try:
        lines = (folder / "output.txt").read_text(encoding="utf-8").splitlines()
        said = [(int(m[1]) if m[1] else None, m[2]) for m in map(LINE.fullmatch, lines) if m]
        frame = records.read(folder / "records.jsonl")
        run = SimpleNamespace(lines=said, records=frame, talked=None)
        return {rank: list(each) for rank, each in judge.settled(run).read(run).ranks.items()}
    except (OSError, ScaleoutError, ValueError):
        return {}


def _compare_line(every: Sequence[Entry], judge: Metric) -> str:
    """Write the line that measures a comparison again."""
    first = every[0]
    if any((one["ranks"], one["threads"]) != (first["ranks"], first["threads"]) for one in every):
        return "the same call of compare()"  # of a notebook, where ranks may differ
    same = all(one["words"] == first["words"] for one in every)
    env = {
        name: dict.fromkeys(str(one["env"].get(name) or "") for one in every)
        for name in {name: 0 for one in every for name in one["env"]}
    }
    words = ["-n", str(first["ranks"]), "-t", str(first["threads"]), *_judged(judge)]
    for name, values in env.items():
        words += ["--env", f"{name}={','.join(values)}"]
    commands = [shlex.join(one["words"]) for one in (every[:1] if same else every)]
    return f"scaleout compare {shlex.join(words)} -- {' :: '.join(commands)}"


def _judged(judge: Metric) -> list[str]:
    """Write the options that say what a run is judged by."""
    named = ["--metric", judge.what] if judge.what != "rate" else []
    return [*named, "--lower"] if judge.lower and not judge.what.endswith("_s") else named


def _sweep(place: Path, runs: Mapping[str, Path]) -> Entry:
    """Read what `sweep` has left in a folder.

    Each repeat is a round, the default's two jobs are its baseline.
    """
    about = jsonlines.table(place / "sweep.json")
    kept, _ = jsonlines.read(place / "points.jsonl", sweeps.wrong)
    rows = list(sweeps.latest(kept).values())
    metric, command = about.get("metric") or {}, [str(word) for word in about.get("command", [])]
    judge = Metric(str(metric.get("what", "rate")), metric.get("lower") is True)
    inside = {name for word in command for name in holes(word)}
    settings: dict[str, Entry] = {}
    found: list[Entry] = []
    for place_, row in enumerate(rows):
        point = sweeps.point_of(row)
        name = anonymous(str(point)) if row["role"] == sweeps.POINT else "default"
        env = {key: value for key, value in row["env"].items() if key not in inside}
        seed = row["env"].get(SEED)
        ranks, threads = row["ranks"], row["threads"] or row["cores"]
        settings.setdefault(name, _setting(filled(command, row["env"]), env, ranks, threads))
        if row["status"] == "ok":
            where = {"round": row["repeat"], "place": place_, "variant": name, "seed": seed}
            again = int(row["role"] == sweeps.LAST)
            found.append(_row({**row, **where, "again": again, "value": row["rate"]}, runs, judge))
    grid = {name: list(values) for name, values in dict(about.get("grid", {})).items()}
    return {
        "kind": "sweep",
        "metric": str(metric.get("what", "rate")),
        "lower": metric.get("lower") is True,
        "machine": about.get("machine", ["", 0]),
        "grid": {
            anonymous(name): [anonymous(value) for value in values] for name, values in grid.items()
        },
        "variants": settings,
        "points": len(settings) - 1,
        "line": _sweep_line(grid, command, judge),
        "rows": found if SEED in grid else _rounds(found),
    }


def _rounds(rows: Sequence[Entry]) -> list[Entry]:
    """Arrange a sweep in rounds: of the default and of the points that ran well in each of them."""
    ends = [{row["round"] for row in rows if row["variant"] == "default" and row["again"] == again}
            for again in (0, 1)]  # fmt: skip
    rounds = sorted(set.intersection(*ends))
    ran: dict[str, set[int]] = {}
    for row in rows:
        ran.setdefault(row["variant"], set()).add(row["round"])
    names = ["default", *(n for n, own in ran.items() if n != "default" and own >= set(rounds))]
    order = [(r, name, again) for r in rounds for name in names for again in (0, 1)]
    at = {(row["round"], row["variant"], row["again"]): row for row in rows}
    return [at[key] for key in order if key in at] if len(names) > 1 else []


def _sweep_line(grid: Mapping[str, Sequence[str]], command: Sequence[str], judge: Metric) -> str:
    words: list[str] = []
    flags = {"ranks": "-n", "threads": "-t"}
    for name, values in grid.items():
        few = ",".join("" if value == "None" else anonymous(value) for value in values)
        words += [flags[name], few] if name in flags else ["--env", f"{name}={few}"]
    words += _judged(judge)
    return f"scaleout sweep {shlex.join(words)} -- {shlex.join(map(anonymous, command))}"


def _by_sweeps(found: Sequence[Entry]) -> Entry:
    """Make the accuracy test of sweeps over seeds: a variant for each command."""
    settings: dict[str, Entry] = {}
    rows = []
    for entry in sorted((entry for entry in found if entry["rows"]), key=_began):
        for row in entry["rows"]:
            if row["seed"] is None:
                continue  # the default, which has none
            setting = dict(entry["variants"][row["variant"]])
            setting["words"] = _without(setting["words"], str(row["seed"]))
            setting["env"] = {k: v for k, v in setting["env"].items() if k != SEED}
            name = shlex.join([*(f"{k}={v}" for k, v in setting["env"].items()), *setting["words"]])
            name += f" on {setting['ranks']} x {setting['threads']}"
            settings.setdefault(name, {**setting, "line": entry["line"]})
            rows.append({**row, "variant": name})
    if not rows:
        return {}
    seeds = {seed for entry in found for seed in entry["grid"][SEED]}
    about = {key: found[0][key] for key in ("metric", "lower", "machine", "line")}
    return {**about, "seeds": sorted(seeds, key=_by_size), "variants": settings, "rows": rows}


def _by_size(seed: str) -> tuple[int, str]:
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


def _by_records(found: Sequence[Entry], runs: Mapping[str, Path], metric: str) -> Entry:
    """Make the accuracy test of records: of a comparison's variants, or of a lab's."""
    of = {
        row["run_id"]: (number, row["variant"])
        for number, entry in enumerate(found)
        for row in entry["rows"]
    }
    twins = {row["run_id"] for entry in found for row in entry["rows"] if row["again"]}
    tests: dict[Any, list[Entry]] = {}
    settings: dict[tuple[Any, str], Entry] = {}
    for run_id, folder in runs.items():
        if run_id in twins:  # the baseline's second run of a round has its seed
            continue
        about = jsonlines.table(folder / "run.json")
        for line in jsonlines.read(folder / "records.jsonl", wrong)[0]:
            value, seed = line["metrics"].get(metric), line["seed"]
            value = value[-1] if isinstance(value, list) and value else value
            if isinstance(value, (int, float)) and seed is not None:
                key, variant = of.get(run_id, (line["lab"], anonymous(line["variant"])))
                row = {"variant": variant, "seed": str(seed), "value": value, "utc": line["utc"]}
                row |= {"run_id": run_id, "wall_s": about.get("wall_s")}
                row |= {"given": {"record": [value]}, "machine": [line["cpu"], line["cores"]]}
                row |= {"versions": {str(k): str(v) for k, v in line["versions"].items()}}
                tests.setdefault(key, []).append(row)
                words = _without(_ran(about), str(seed)) or [line["lab"], line["variant"]]
                how = about.get("env") or {}, line["ranks"], line["threads_per_rank"]
                settings.setdefault((key, variant), _setting(words, *how))

    def seeds(rows: Sequence[Entry]) -> set[str]:
        return {row["seed"] for row in rows}

    known = [(k, rows) for k, rows in tests.items() if len({row["variant"] for row in rows}) > 1]
    if not known:
        return {}
    key, rows = max(known, key=lambda test: len(seeds(test[1])))
    rows.sort(key=lambda row: str(row["utc"]))
    whose = found[key]["variants"] if isinstance(key, int) else {}
    return {
        "metric": metric,
        "lower": False,
        "machine": rows[0]["machine"],
        "seeds": sorted(seeds(rows), key=_by_size),
        "line": "",  # nobody knows what was typed
        "variants": {v: whose.get(v) or settings[key, v] for v in (row["variant"] for row in rows)},
        "rows": rows,
    }


def _machine(measured: Sequence[Any], limits: bool) -> Entry:
    """Describe the machine of the first comparison, with its limits if it is this one."""
    cpu, cores = measured
    about: Entry = {"processor": cpu, "cores that a job may fill": cores}
    if [machine.cpu_model(), machine.usable_cores()] == [cpu, cores]:
        here = machine.facts()
        about["sockets"] = here.sockets
        about["hardware threads"] = here.hardware_threads
        about["memory (GiB)"] = here.memory_limit_gib or here.memory_gib
        about["instruction sets"] = ", ".join(here.isa)
        about["MPI"] = f"{here.mpi} {here.mpi_version}"
        if limits:
            about["multiplies float32 (GFLOP/s)"] = round(machine.sgemm_gflops()[0], 1)
            about["copies memory (GB/s)"] = round(machine.copy_gb_per_s()[0], 1)
    return {
        "cpu": cpu,
        "cores": cores,
        "about": [[name, str(what)] for name, what in about.items()],
    }


def _first_told(found: Sequence[Entry]) -> dict[str, str]:
    """Take the versions of the libraries from the first run that tells them."""
    every = (row.get("versions") for entry in found for row in entry["rows"])
    return next(filter(None, every), {})
