"""The doctor that is interrupted."""

import pytest

from scaleout import cli
from scaleout.doctor import report


def test_an_interrupt_is_answered_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(facts: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "examine", pressed)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == (
        "scaleout: Interrupted: nothing of the doctor is left running.\n"
    )


def test_an_interrupt_without_words_is_still_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(command: object, **how: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scaleout.sweeps.sweep", pressed)
    assert cli.main(["sweep", "-n", "1", "--", "true"]) == 130
    assert capsys.readouterr().err == (
        "scaleout: Interrupted: sweep did not come to its end; the same line begins again.\n"
    )
