"""Small files of the kernel's, read so that a missing one does no harm."""

from pathlib import Path

ROOT = Path("/")
SYSTEM = "sys/devices/system"


def read_text(path: Path) -> str:
    """What a file holds, without the white space around it; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def number(text: str, default: int = -1) -> int:
    """The whole number that a text is."""
    try:
        return int(text)
    except ValueError:
        return default
