"""Settings that had no effect: what a loader or a library said of one before it went on without it;
and variables of the shell that undo what -t sets."""

import os
import re
from collections.abc import Container, Sequence

from ..base.words import number, visible
from .job import Run

# Who says it, and how: glibc's loader, GNU's and LLVM's OpenMP, jemalloc, UCX, libnuma.
IGNORED = re.compile(
    r"(?:ERROR: |WARNING: )?ld\.so: .*(?:cannot be preloaded|invalid|ignored).*"
    r"|libgomp: (?:Invalid|Unknown|Warning|[A-Z_]+ .*ignored).*"
    r"|OMP: Warning #\d+: .*(?:ignor|invalid|unknown|not valid|not recogni|not supported).*"
    r"|<jemalloc>: (?:Invalid|Malformed|Unsupported).*"
    r"|.*\bUCX +WARN +(?:unused environment|invalid).*"
    r"|libnuma: Warning: .*",
    re.IGNORECASE,
)
LONGEST = 200  # characters of it
# What else limits the threads of a rank: of BLAS libraries, and of OpenMP as a whole.
BESIDE = (
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "MKL_DOMAIN_NUM_THREADS", "OMP_THREAD_LIMIT"),
)


def ignored(run: Run) -> str:
    """Say which setting of a job had no effect, in the words of who ignored it; "" for none."""
    for _, text in run.lines:
        if found := IGNORED.match(visible(text).strip()):
            return (
                f"a setting had no effect, so this is not what its name says:  {found[0][:LONGEST]}"
            )
    return ""


def of_shell(given: Container[str] = ()) -> dict[str, str]:
    """Return the variables of this shell that limit threads beside what -t sets, and that no job is
    given itself."""
    return {name: os.environ[name] for name in BESIDE if os.environ.get(name) and name not in given}


def undone(threads: Sequence[int], given: Container[str] = ()) -> str:
    """Say which variables of this shell undo the threads that were asked for; "" for none."""

    def undoes(name: str, text: str) -> bool:
        most = number(text) if name == "OMP_THREAD_LIMIT" else 0
        return any(text != str(asked) and not most > asked for asked in threads)

    found = {name: text for name, text in of_shell(given).items() if undoes(name, text)}
    if not found:
        return ""
    each = " and ".join(f"{name}={text}" for name, text in found.items())
    goes, them = ("goes", "it") if len(found) == 1 else ("go", "them")
    unset = " ".join(f"--env {name}=" for name in found)
    return (
        f"{each} of this shell {goes} before -t in all that reads {them}, as NumPy's libraries do: type  "
        f"unset {' '.join(found)}  first, or add  {unset}"
    )
