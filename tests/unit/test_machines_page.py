"""The page of all machines says what the lessons' rows say, and no other."""

import ast
import re
from pathlib import Path

import make_machines
import msgspec
import pytest
from helpers import ROOT
from rows import EPYC, XEON, keep, measured


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with three machines: two of one kind, and one of the same name with other caches."""
    (tmp_path / "docs").mkdir()
    lessons = tmp_path / "solutions"
    wrong = {"int8": {"wrong_sums": 0.123}}
    keep(
        lessons / "08_precision",
        measured("product-AVX2", {"bf16": 0.11, "int8": 1.0}, facts=wrong),
        measured("product-AVX2", {"bf16": 0.25, "int8": 1.0}, XEON),
        measured("network-AVX512_CORE_AMX", {"bf16": 3.9}, XEON, date="2026-12-02"),
    )
    much = msgspec.structs.replace(EPYC, memory_gib=64)
    other = msgspec.structs.replace(EPYC, l3_kib=262144)
    keep(
        lessons / "00_welcome",
        measured("pi", {"2 ranks": 1.9}, much, "2026-11-30", "1 rank"),
        measured("pi", {"2 ranks": 1.5}, other, "2026-11-30", "1 rank"),
    )
    (lessons / "00_welcome.ipynb").write_text('{"cells": [{"source": ["# 00 Welcome\\n"]}]}')
    return tmp_path


def test_every_machine_and_every_headline_has_its_row(top: Path) -> None:
    text = make_machines.page(top)
    small, large = (f"EPYC 7B13, AVX2, 2 cores, L3 {size} MiB" for size in (32, 256))
    machines, first, second = re.split(r"^## \[", text.split("## The machines\n")[1], flags=re.M)
    assert machines.strip().splitlines()[2:] == [
        f"| {small} | AMD EPYC 7B13 | AVX2 | 2 | 512 KiB | 32 MiB | 64 GiB | 30 November 2026 |",
        f"| {large} | AMD EPYC 7B13 | AVX2 | 2 | 512 KiB | 256 MiB | 8 GiB | 30 November 2026 |",
        "| Xeon Platinum 8488C, AMX, 2 cores | Intel(R) Xeon(R) Platinum 8488C | AMX | 2 | 2 MiB "
        "| 105 MiB | 16 GiB | 2 December 2026 |",
    ]
    assert first.splitlines()[0] == "00 Welcome](../notebooks/00_welcome.ipynb)"
    says = (
        "Pi by adding up 40 million strips, on one rank and on several. The baseline is *1 rank*."
    )
    assert f"**pi.** {says}\n" in first
    assert f"\n|  | {small} | {large} |\n" in first
    assert "\n| 2 ranks | 1.90 (1.88 to 1.92) | 1.50 (1.48 to 1.52) |\n| *noise* | 1." in first
    assert f"\n|  | {small} | Xeon Platinum 8488C, AMX, 2 cores |\n" in second
    assert "\n| bf16 | 0.110 (0.109 to 0.112) | 0.250 (0.247 to 0.253) |\n" in second
    none = "1.00 (0.986 to 1.01), no difference"
    assert f"\n| int8 | {none} | {none} |\n" in second
    assert "\n| int8: share of wrong sums | 12 % |  |\n" in second
    assert "in int8, with instructions up to AMX. The baseline is *fp32*." in second


def test_without_rows_the_page_says_so(tmp_path: Path) -> None:
    text = make_machines.page(tmp_path)
    assert "No machine has been measured for this page yet." in text and "|" not in text


def test_a_page_that_is_out_of_date_is_told_and_made_anew(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make_machines.main(top, only_check=True) == 1
    said = "docs/machines.md is not what the lessons' rows give: type\n"
    assert capsys.readouterr().out == f"{said}  python tools/make_machines.py\n"
    assert not (top / "docs/machines.md").exists()
    assert make_machines.main(top) == make_machines.main(top, only_check=True) == 0
    keep(top / "solutions/00_welcome", measured("pi", {"2 ranks": 1.8}, baseline="1 rank"))
    assert make_machines.main(top, only_check=True) == 1
    keep(top / "solutions/00_welcome", measured("pie", {"2 ranks": 1.8}, baseline="1 rank"))
    capsys.readouterr()
    assert make_machines.main(top) == 1
    assert "says nothing of the headline 'pie': add it to SAYS" in capsys.readouterr().out


def test_each_headline_that_is_measured_has_a_sentence() -> None:
    tree = ast.parse((ROOT / "tools/headlines.py").read_text())
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = [
        "".join(part.value if isinstance(part, ast.Constant) else "AVX2" for part in parts)
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "Headline"
        for parts in [getattr(node.args[0], "values", [node.args[0]])]
    ]
    assert len(names) > 15 and "pi" in names
    names.remove("AVX2-AVX2")  # product-STEP and network-STEP
    for name in [*names, "product-AVX2", "network-AVX512_CORE_AMX"]:
        assert make_machines.says(name).endswith(".") and "{" not in make_machines.says(name)
    assert make_machines.says("allreduce-4MiB").startswith("The sum of 4 MiB over")
    assert make_machines.says("together-resnet50-2").startswith("A training step of ResNet-50 on 2")
