"""What oneDNN did, from the lines it prints with ONEDNN_VERBOSE=1; and what number formats do to a sum.

The lines are described in oneDNN's developer guide, "Verbose Mode": comma-separated fields, named by a template line
in the header, so that a newer oneDNN may add or move some.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .errors import ScaleoutError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DECK19",
    "FORMATS",
    "KERNELS",
    "dot",
    "dot_errors",
    "formats",
    "isa",
    "layout",
    "parse",
    "reorders",
    "round_to",
    "shares",
    "summary",
]

Line = str | tuple[int | None, str]
MARKER = re.compile(r"(?:onednn|dnnl|mkldnn)_verbose,")
HEADER = {"version": r"info,(?:oneDNN|DNNL|MKL-DNN) v([\d.]+)", "isa": r"cpu,isa:(.*)", "runtime": r"cpu,(runtime:.*)"}
KERNELS = {
    "default": "default",
    "onednn": "oneDNN fp32",
    "bf16": "oneDNN bf16",
    "mixed": "Keras mixed",
    "xla": "XLA",
}
# An Intel talk on deep learning at scale with distributed frameworks, 2019: ResNet-50, batch 16, a small cloud node.
DECK19 = {"default": 3.84, "MKL-DNN": 17.69}  # images/s
# Exponent bits and mantissa bits (the leading 1 is not stored); int8 is not a floating format.
FORMATS: dict[str, tuple[int, int] | None] = {"fp32": (8, 23), "fp16": (5, 10), "bf16": (8, 7), "int8": None}


def parse(lines: Iterable[Line], after: str | None = None) -> "pd.DataFrame":
    """The primitives that oneDNN executed, a row each, from a job's output: Run.lines, or text lines.

    after: leave out what came before the first line that holds this text (the header counts all the same).
    Columns: rank, primitive, implementation, isa (such as avx512_core_bf16, or "not named"), prop_kind, src, wei, dst
    (layouts in oneDNN's letters), src_type, dst_type, post_ops (what was fused behind it), auxiliary, problem (shapes),
    time_ms.  frame.attrs: version, isa and runtime from the header, and `damaged`: lines cut short, which are left out.
    ScaleoutError when there is no such line.
    """
    import pandas as pd

    rows, about, damaged, seen, began = [], {}, 0, 0, after is None
    names: dict[int | None, list[str]] = {}  # each rank prints a header of its own
    for line in lines:
        rank, text = line if isinstance(line, tuple) else _rank(line)
        seen, began = seen + 1, began or str(after) in text
        found = MARKER.search(text)
        if not found:
            continue
        text = text[found.start() :]
        if "template:" in text and ",primitive," in text.partition("template:")[2]:
            fields = text.partition("template:")[2].strip().split(",")
            names[rank] = fields[fields.index("operation") :]
        elif ",exec," in text:
            row = _row(text, names.get(rank) or next(iter(names.values()), None))
            damaged += row is None
            if row and began:
                rows.append({"rank": rank, **row})
        else:
            about |= {k: m[1].strip() for k, v in HEADER.items() if (m := re.search(v, text))}
    if not names and damaged:
        raise ScaleoutError("oneDNN's header is missing: it names the fields, so keep the output from its first line.")
    if not rows:
        raise ScaleoutError(
            f"oneDNN reported nothing in these {seen} lines: "
            + ("run the job with ONEDNN_VERBOSE=1." if not names else "it was loaded, but given no work.")
        )
    frame = pd.DataFrame(rows)
    frame.attrs = {**about, "damaged": damaged}
    return frame


def _rank(text: str) -> tuple[int | None, str]:
    found = re.match(r"\[(\d+)\] ", text)
    return (int(found[1]), text[found.end() :]) if found else (None, text)


def _row(text: str, names: Sequence[str] | None) -> dict[str, object] | None:
    """One executed primitive; None for a line that is not whole."""
    fields = text.strip().split(",")
    fields = fields[fields.index("exec") :] if "exec" in fields else []
    if not names or len(fields) != len(names):
        return None
    told = dict(zip(names, fields, strict=True))
    if not re.fullmatch(r"\d+(\.\d+)?(e[-+]?\d+)?", told["exec_time"]):
        return None
    # A memory descriptor reads NAME_TYPE:properties:kind:LAYOUT:flags, such as wei_f32:a:blocked:Acdb16a::f0
    memory = {}
    for descriptor in told["memory_descriptors"].split():
        name, _, rest = descriptor.partition(":")
        name, _, dtype = name.rpartition("_")
        memory[name] = (dtype, (rest.split(":") + ["", ""])[2])
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


def _grouped(frame: "pd.DataFrame", by: list[str]) -> "pd.DataFrame":
    times = frame.groupby(by, sort=False)["time_ms"]
    table = times.agg(calls="size", time_ms="sum").sort_values("time_ms", ascending=False).reset_index()
    return table.assign(share=table.time_ms / max(frame.time_ms.sum(), 1e-12))


def shares(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Where oneDNN's time went: primitive, prop_kind, calls, time_ms, share (of 1), the longest first."""
    return _grouped(frame, ["primitive", "prop_kind"])


def isa(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The instruction sets of the kernels that ran: isa, calls, time_ms, share (of 1)."""
    return _grouped(frame, ["isa"])


def reorders(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The changes of layout: what moved, from, to, calls, time_ms, share (of the time of all primitives, of 1)."""
    moved = frame[frame.primitive == "reorder"]
    weights = [_of_weights(src) or _of_weights(dst) for src, dst in zip(moved.src, moved.dst, strict=True)]
    told = moved.assign(moved=["weights" if w else "images" for w in weights])
    for end in ("src", "dst"):
        told[end] = [layout(tag, weights=w) for tag, w in zip(moved[end], weights, strict=True)]
    table = _grouped(told.rename(columns={"src": "from", "dst": "to"}), ["moved", "from", "to"])
    return table.assign(share=table.time_ms / max(frame.time_ms.sum(), 1e-12))


def _of_weights(tag: str) -> bool:
    """Whether a layout can only be one of weights: its first dimension is cut in blocks, or moves fastest."""
    return "A" in tag or tag.endswith("a") or tag in ("cdba", "ba")


def layout(tag: str, weights: bool = False) -> str:
    """oneDNN's letters in the usual ones: "acdb" is nhwc, "aBcd16b" nChw16c, "cdba" of weights hwio.

    n images, c channels, h height, w width; weights: o outputs, i inputs. A capital is cut in blocks, whose size and
    letter stand at the end.
    """
    spelled = dict(zip("abcd", "oihw" if weights else "nchw", strict=True))
    return "".join(spelled.get(c, spelled.get(c.lower(), c).upper() if c.isalpha() else c) for c in tag)


def summary(records: "pd.DataFrame") -> "pd.DataFrame":
    """The executive summary of runs of 01_onednn: a row for each network and kind of kernels, then DECK19's.

    Columns: environment, network, batch, runs, images_per_s (the median run), lowest, highest, speed_up (over default).
    """
    import pandas as pd

    rows = []
    for network, group in records.groupby("metrics.network", sort=False):
        default = group.rate[group["metrics.kernels"] == "default"].median()
        for kernels, runs in group.groupby("metrics.kernels", sort=False):
            rate, batch = runs.rate.median(), runs.batch_per_rank.iloc[0]
            row = (KERNELS[kernels], network, batch, len(runs), rate, runs.rate.min(), runs.rate.max(), rate / default)
            rows.append(row)
    for name, rate in DECK19.items():
        rows.append((f"2019, {name}", "resnet50", 16, None, rate, None, None, rate / DECK19["default"]))
    columns = ["environment", "network", "batch", "runs", "images_per_s", "lowest", "highest", "speed_up"]
    return pd.DataFrame(rows, columns=columns).astype({"runs": "Int64"})


def round_to(x: "np.ndarray | float", name: str, scale: float | None = None) -> np.ndarray:
    """The nearest numbers that a format can hold, as float64: "fp32", "fp16", "bf16" or "int8".

    Ties go to the even neighbour; beyond the largest number a floating format gives infinity. int8 holds
    scale * (-127 ... 127) and stops at the ends; its scale is by default max|x| / 127.
    """
    x = np.asarray(x, dtype=np.float64)
    bits = _bits(name)
    if bits is None:
        scale = scale or float(np.max(np.abs(x), initial=0.0)) / 127 or 1.0
        return np.clip(np.rint(x / scale), -127, 127) * scale
    exponent_bits, mantissa_bits = bits
    lowest, highest = 2 - 2 ** (exponent_bits - 1), 2 ** (exponent_bits - 1) - 1
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest)  # below the lowest one, the spacing shrinks no more
    spacing = np.ldexp(1.0, exponent - mantissa_bits)
    rounded = np.rint(x / spacing) * spacing
    return np.where(np.abs(rounded) >= 2.0 ** (highest + 1), np.copysign(np.inf, x), rounded)


def _bits(name: str) -> tuple[int, int] | None:
    if name not in FORMATS:
        raise ScaleoutError(f"There is no format {name!r}; there are {', '.join(FORMATS)}.")
    return FORMATS[name]


def formats() -> "pd.DataFrame":
    """What each format can hold, from its bits: largest, smallest_normal, smallest, epsilon (the gap above 1)."""
    import pandas as pd

    rows = []
    for name, bits in FORMATS.items():
        if bits is None:
            rows.append((name, 8, 0, 7, 2.0**7 - 1, 1.0, 1.0, 1.0))
            continue
        exponent, mantissa = bits
        highest, lowest = 2 ** (exponent - 1) - 1, 2 - 2 ** (exponent - 1)
        largest = (2 - 2.0**-mantissa) * 2.0**highest
        limits = (largest, 2.0**lowest, 2.0 ** (lowest - mantissa), 2.0**-mantissa)
        rows.append((name, 1 + exponent + mantissa, exponent, mantissa, *limits))
    columns = ["format", "bits", "exponent", "mantissa", "largest", "smallest_normal", "smallest", "epsilon"]
    return pd.DataFrame(rows, columns=columns).set_index("format")


def dot(x: np.ndarray, y: np.ndarray, name: str, accumulate: str = "fp32") -> np.ndarray:
    """The dot products of rows, (..., n) with (..., n): inputs rounded to `name`, each partial sum to `accumulate`.

    So works a processor that multiplies in one format and adds up in another. int8 adds up exactly, as in int32.
    """
    products = np.moveaxis(round_to(x, name) * round_to(y, name), -1, 0)  # (n, ...)
    if name == "int8":
        return products.sum(axis=0)
    total = np.zeros(products.shape[1:])
    for product in products:
        total = round_to(total + product, accumulate)
    return total


def dot_errors(lengths: Sequence[int], repeats: int = 20, seed: int = 0) -> "pd.DataFrame":
    """Relative errors of dot products of random numbers in [0, 1): length, how (inputs, sum), error; `repeats` each."""
    import pandas as pd

    x, y = np.random.default_rng(seed).random((2, repeats, max(lengths)))
    rows = []
    for length in lengths:
        exact = np.sum(x[:, :length] * y[:, :length], axis=1)
        for name, total in (("fp32", "fp32"), ("int8", "int32"), ("bf16", "fp32"), ("fp16", "fp16"), ("bf16", "bf16")):
            found = dot(x[:, :length], y[:, :length], name, total if total in FORMATS else "fp32")
            how = f"{name}, sum in {total}"
            rows += [(length, how, error) for error in np.abs(found - exact) / exact]
    return pd.DataFrame(rows, columns=["length", "how", "error"])
