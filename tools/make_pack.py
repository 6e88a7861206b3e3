"""Pack the environment, .venv, into one file that many nodes can read: dist/venv.squashfs.

    make pack

A file system that serves many nodes suffers from tens of thousands of small files. The pack is one
file: a node opens it once, and finds the rest in it. Mounted in the place of .venv it is what .venv
was; mounted anywhere else it works with its `bin` first on PATH, and with its `lib` named, because Horovod
was compiled for one place. docs/image.md says how."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup_env import ROOT, Stop, choose_prefix, say

PACK = ROOT / "dist" / "venv.squashfs"
HOW = """{name}: {files:,} files of {large:.2f} GiB in one of {small:.2f} GiB.
Here is how a node uses it, without root:

    mkdir -p /tmp/$USER/venv && squashfuse {pack} /tmp/$USER/venv
    export PATH=/tmp/$USER/venv/bin:$PATH LD_LIBRARY_PATH=/tmp/$USER/venv/lib

Afterwards:  fusermount -u /tmp/$USER/venv"""
# What only a set-up writes into the environment.
LEFT_OUT = (".scaleout/tmp", ".scaleout/uv")
# The first lines of a script that starts the Python beside it, wherever that is. To sh they are a
# command, to Python a text that nobody reads.
BESIDE = b"""#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""


def mksquashfs(environ: dict[str, str]) -> str:
    """The program that packs; Stop when it is missing."""
    found = shutil.which("mksquashfs", path=environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if not found:
        raise Stop(
            "There is no mksquashfs here: type  sudo apt-get install squashfs-tools  (Debian, Ubuntu) or  "
            "sudo dnf install squashfs-tools  (Fedora, Rocky), then  make pack  again."
        )
    return found


def movable(script: bytes, prefix: Path) -> bytes:
    """A script of the environment that starts the Python beside it; b"" for any other file."""
    first, _, rest = script.partition(b"\n")
    python = re.fullmatch(rb"#!(/.+)/python[\d.]*", first)
    own = python and os.path.realpath(os.fsdecode(python[1])) == str(prefix.resolve() / "bin")
    return BESIDE + rest if own else b""


def words(prefix: Path, scratch: Path) -> list[str]:
    """What mksquashfs is told about files that are not packed as they are."""
    left_out, given = list(LEFT_OUT), []
    for path in sorted((prefix / "bin").iterdir()):
        if path.is_file() and (text := movable(path.read_bytes(), prefix)):
            name = f"bin/{path.name}"
            (scratch / path.name).write_bytes(text)
            left_out.append(name)
            given.append(f'{name} f 755 0 0 cat "{scratch / path.name}"')
    (scratch / "given.list").write_text("\n".join(given) + "\n")
    (scratch / "left-out.list").write_text("\n".join(left_out) + "\n")
    return ["-pf", str(scratch / "given.list"), "-ef", str(scratch / "left-out.list")]


def pack(prefix: Path, target: Path, environ: dict[str, str]) -> None:
    """Write the pack, whole or not at all."""
    program = mksquashfs(environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pack-") as folder:
        scratch = Path(folder)
        command = [program, str(prefix.resolve()), str(scratch / target.name)]
        command += ["-comp", "zstd", "-Xcompression-level", "9", "-all-root", "-no-progress"]
        done = subprocess.run(
            [*command, *words(prefix, scratch)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
            raise Stop(
                f"mksquashfs could not pack {prefix} ({last}): mend that, then  make pack  again."
            )
        (scratch / target.name).rename(target)


def main() -> int:
    prefix = choose_prefix(dict(os.environ), sys.prefix)
    try:
        pack(prefix, PACK, dict(os.environ))
    except Stop as stop:
        say(str(stop))
        return 1
    files = [Path(at, name).lstat() for at, _, names in os.walk(prefix) for name in names]
    large, small = sum(file.st_size for file in files) / 2**30, PACK.stat().st_size / 2**30
    say(
        HOW.format(
            name=PACK.relative_to(ROOT), files=len(files), large=large, small=small, pack=PACK
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
