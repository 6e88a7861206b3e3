"""A machine's noise, read from folders that look like those of Linux."""

from pathlib import Path

import pytest

from scaleout.machine import noise
from scaleout.machine.noise import Clock, Ticks


def cpus(folder: Path, *governors: str, driver: str = "", **files: str) -> Path:
    for number, governor in enumerate(governors):
        own = folder / f"cpu{number}/cpufreq"
        own.mkdir(parents=True)
        (own / "scaling_governor").write_text(f"{governor}\n")
        (own / "scaling_driver").write_text(f"{driver}\n")
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return folder


def test_the_clock_of_a_machine_that_shows_none(tmp_path: Path) -> None:
    assert noise.clock(tmp_path) == Clock()


def test_the_clock_of_two_cores(tmp_path: Path) -> None:
    here = cpus(tmp_path, "powersave", "performance", driver="intel_pstate")
    assert noise.clock(here) == Clock(("performance", "powersave"), "intel_pstate")


@pytest.mark.parametrize(
    ("files", "turbo"),
    [
        ({"intel_pstate__no_turbo": "0"}, True),
        ({"intel_pstate__no_turbo": "1"}, False),
        ({"cpufreq__boost": "1"}, True),
        ({"cpufreq__boost": "0"}, False),
    ],
)
def test_turbo(tmp_path: Path, files: dict[str, str], turbo: bool) -> None:
    assert noise.clock(cpus(tmp_path, "performance", **files)).turbo is turbo


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("always [madvise] never\n", "madvise"), ("always madvise [never]\n", "never"), ("?", "")],
)
def test_huge_pages(tmp_path: Path, text: str, chosen: str) -> None:
    path = tmp_path / "enabled"
    assert noise.huge_pages(path) == ""
    path.write_text(text)
    assert noise.huge_pages(path) == chosen


def test_the_share_that_was_stolen(tmp_path: Path) -> None:
    path = tmp_path / "stat"
    path.write_text("cpu  10 0 10 65 5 0 0 10 5 5\ncpu0 1 2 3\n")
    before = noise.ticks(path)
    assert before == Ticks(100, stolen=10, idle=70)
    path.write_text("cpu  60 0 10 70 0 0 0 60 5 5\n")
    assert noise.ticks(path).share(before) == 0.5
    path.write_text("")
    assert noise.ticks(path) == Ticks() and Ticks().share(Ticks()) == 0


def test_this_machine_counts() -> None:
    assert noise.ticks().total > 0 and noise.load() >= 0
