"""Read what oneDNN did, from the lines it prints with ONEDNN_VERBOSE=1.

The lines are described in oneDNN's developer guide, "Verbose Mode": comma-separated fields, named
by a template line in the header, so that a newer oneDNN may add or move some."""

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..base.errors import ScaleoutError
from ..base.words import count, plain
from ..jobs.output import Line

if TYPE_CHECKING:
    import pandas as pd


MARKER = re.compile(r"(?:onednn|dnnl|mkldnn)_verbose,")
HEADER = {
    "version": r"info,(?:Intel\(R\) )?(?:oneDNN|DNNL|MKL-DNN) v([\d.]+)",
    "isa": r"cpu,isa:(.*)",
    "runtime": r"cpu,(runtime:.*)",
}
# What stands before "exec" where a primitive was executed: no word, or this one. The graph API and
# others have a word of their own, and other fields.
PRIMITIVE = re.compile(r"\w+_verbose,(?:v?[\d.]+,)*(?:primitive,)?exec,")
CUT = re.compile(r"\w+_verbose,(?:v?[\d.]*,)*(?:p[a-z]*|v?[\d.]*)?(?:,?ex?e?c?)?")
FIELDS = {
    *("operation", "primitive", "implementation", "prop_kind", "memory_descriptors", "attributes"),
    *("auxiliary", "problem_desc", "exec_time"),
}
WEIGHTS = re.compile("A|a$")
TYPE = r"undef|boolean|e\d+m\d+|[a-z]+\d+(?:_e\d+m\d+)?"  # f32, bf16, u8, f8_e5m2, e8m0


def parse(lines: Iterable[str | Line], after: str | None = None) -> "pd.DataFrame":
    """Read from a job's output which primitives oneDNN executed.

    Parameters
    ----------
    lines : iterable of str or (rank, str)
        All that the job printed, such as `run.lines`, from its first line: oneDNN's header names
        the fields. A line of text may begin with its rank, as in "[1] ".
    after : str, optional
        Leave out what was executed before the first line with this text in it, such as what
        belongs to the warm-up. The header before it is read all the same.

    Returns
    -------
    pandas.DataFrame
        A row for each executed primitive, in the order of the lines: `rank` (None where the lines
        name none), `primitive`, `implementation`, `isa` (in the implementation's name, else "not
        named"), `prop_kind`; layouts `src`, `wei`, `dst`; types `src_type`, `dst_type`; `post_ops`,
        `auxiliary`, `problem`; `time_ms`, milliseconds. What a primitive lacks is "". Its attrs hold
        "version", "isa" and "runtime" as the header has them, and "damaged", how many lines were
        not understood; a warning says so too.

    Raises
    ------
    ScaleoutError
        The header is missing, or nothing was executed (after that line).

    Notes
    -----
    The lines are described under "Verbose Mode" in oneDNN's developer guide.
    """
    import pandas as pd

    about: dict[str, str] = {}
    rows, damaged, seen, began = [], 0, 0, after is None
    first = ""  # of the lines that were not understood
    names: dict[int | None, list[str]] = {}  # each rank prints a header of its own
    for line in lines:
        rank, text = line if isinstance(line, tuple) else _rank(line)
        seen, began = seen + 1, began or str(after) in text
        found = MARKER.search(text)
        if not found:
            continue
        text = text[found.start() :]
        template = text.partition("template:")[2].strip().split(",")
        if {*template} >= FIELDS:
            names[rank] = template[template.index("operation") :]
        elif PRIMITIVE.match(text) or CUT.fullmatch(text.strip()):
            row = _row(text, names.get(rank) or next(iter(names.values()), None))
            if row is None:
                damaged, first = damaged + 1, first or text.strip()
            elif began:
                rows.append({"rank": rank, **row})
        else:
            about |= {k: m[1].strip() for k, v in HEADER.items() if (m := re.search(v, text))}
    unread = f"{count(damaged, 'line')} of oneDNN's cannot be read, such as  {plain(first, 100)}"
    if not rows:
        why = "it was loaded, but given no work."
        if not names and not damaged and not about:
            why = "run the job with ONEDNN_VERBOSE=1."
        elif not names and about.get("version", "").startswith(("0.", "1.")):
            why = f"oneDNN {about['version']} is too old, it does not name its fields."
        elif not names and damaged:
            why = (
                "its header is missing, which names the fields: keep the output from its first "
                "line, and its lines whole."
            )
        elif damaged:
            why = f"{unread}: a line was cut, or this oneDNN writes them in another way."
        raise ScaleoutError(f"oneDNN reported nothing in these {seen} lines: {why}")
    if damaged:
        warnings.warn(f"{unread}  Their time is not in the table.", stacklevel=2)
    frame = pd.DataFrame(rows)
    frame.attrs = {**about, "damaged": damaged}
    return frame


def _rank(text: str) -> tuple[int | None, str]:
    """Take the rank off a line's beginning."""
    found = re.match(r"\[(\d+)\] ", text)
    return (int(found[1]), text[found.end() :]) if found else (None, text)


def _row(text: str, names: Sequence[str] | None) -> dict[str, object] | None:
    """Read one executed primitive; None for a line that is not whole, or of a kind not known."""
    fields = text.strip().split(",")
    fields = fields[fields.index("exec") :] if "exec" in fields else []
    if not names or len(fields) != len(names):
        return None
    told = dict(zip(names, fields, strict=True))
    if not re.fullmatch(r"\d+(\.\d+)?(e[-+]?\d+)?", told["exec_time"]):
        return None
    # A memory descriptor reads NAME_TYPE:properties:kind:LAYOUT:flags, such as
    # wei_f32:a:blocked:Acdb16a::f0, and from oneDNN 3.7 on NAME:TYPE:properties:kind:LAYOUT:flags.
    memory = {}
    for descriptor in told["memory_descriptors"].split():
        found = re.fullmatch(rf"(\w+?)[_:]({TYPE}):(.*)", descriptor)
        if not found:
            return None
        memory[found[1]] = (found[2], (found[3].split(":") + ["", ""])[2])
    nothing = ("", "")
    post_ops = re.search(r"attr-post-ops:(\S+)", told["attributes"])
    isa = re.search(r"\b(?:sse|avx|amx)\w*", told["implementation"])
    return {
        "primitive": told["primitive"],
        "implementation": told["implementation"],
        "isa": isa[0] if isa else "not named",
        "prop_kind": told["prop_kind"].replace("undef", ""),
        "src": memory.get("src", nothing)[1],
        "wei": memory.get("wei", nothing)[1],
        "dst": memory.get("dst", nothing)[1],
        "src_type": memory.get("src", nothing)[0],
        "dst_type": memory.get("dst", nothing)[0],
        "post_ops": post_ops[1] if post_ops else "",
        "auxiliary": told["auxiliary"],
        "problem": told["problem_desc"],
        "time_ms": float(told["exec_time"]),
    }


def shares(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Add up oneDNN's time by primitive and kind.

    Parameters
    ----------
    frame : pandas.DataFrame
        As `parse` returns it.

    Returns
    -------
    pandas.DataFrame
        `primitive`, `prop_kind`, `calls`, `time_ms` (milliseconds of all calls) and `share` (of all
        of oneDNN's time, from 0 to 1), the longest first.
    """
    return _added_up(frame, ["primitive", "prop_kind"], frame.time_ms.sum())


def reorders(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Add up the time of reorders by what was moved, from which layout to which.

    Parameters
    ----------
    frame : pandas.DataFrame
        As `parse` returns it.

    Returns
    -------
    pandas.DataFrame
        `moved` ("images" or "weights"), `from` and `to` in the usual letters (nhwc, nChw16c, OIhw16i16o),
        `calls`, `time_ms` (milliseconds of all calls) and `share` (of all of oneDNN's time, from 0 to
        1), the longest first. oneDNN itself names dimensions a, b, c, d; weights are told by a layout
        that no images have: the first dimension moves fastest, or is cut into blocks.
    """
    moved = frame[frame.primitive == "reorder"]
    weights = [any(map(WEIGHTS.search, ends)) for ends in zip(moved.src, moved.dst, strict=True)]
    told = moved.assign(moved=["weights" if each else "images" for each in weights])
    for end, name in (("src", "from"), ("dst", "to")):
        letters = ["oihw" if each else "nchw" for each in weights]
        spelled = [str.maketrans("abcdABCD", each + each.upper()) for each in letters]
        told[name] = [tag.translate(table) for tag, table in zip(moved[end], spelled, strict=True)]
    return _added_up(told, ["moved", "from", "to"], frame.time_ms.sum())


def _added_up(frame: "pd.DataFrame", by: list[str], whole_ms: float) -> "pd.DataFrame":
    """Count the calls of each group and add up their time, the longest first."""
    times = frame.groupby(by, sort=False)["time_ms"]
    table = times.agg(calls="size", time_ms="sum").sort_values("time_ms", ascending=False)
    return table.reset_index().assign(share=lambda rows: rows.time_ms / max(whole_ms, 1e-12))
