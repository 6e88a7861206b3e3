"""The numbers that the labs' scripts take, and what is said of those that make no sense."""

import argparse
import subprocess
import sys

import pytest

from scaleout import flags

REFUSES = "from scaleout.kit.flags import refuse; refuse('It takes 1 or more.')"


@pytest.mark.parametrize(
    ("take", "typed", "says"),
    [
        (flags.zero_or_more, "-1", "it takes 0 or more, not -1"),
        (flags.one_or_more, "0", "it takes 1 or more, not 0"),
        (flags.above_zero, "0", "it takes more than 0, not 0"),
        (flags.above_zero, "nan", "it takes more than 0, not nan"),
    ],
)
def test_another_is_refused_in_a_sentence(take, typed: str, says: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        take(typed)
    assert str(refused.value) == says


def test_under_torchrun_one_rank_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    said = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        done = subprocess.run(
            [sys.executable, "-c", REFUSES], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and not done.stdout
        said.append(done.stderr)
    assert said == ["It takes 1 or more.\n", ""]
