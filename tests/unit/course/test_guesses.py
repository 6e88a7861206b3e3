"""A master shows example guesses; an attendee's notebook leaves them open."""

import json

from scaleout.course import masters


def test_an_attendee_makes_a_guess_of_their_own() -> None:
    source = "guess_us = 10  # your guess, such as 5\nguess_all = (1, 2)\nmeasured = guess_us"
    cell = {"cell_type": "code", "source": [source], "outputs": [], "metadata": {}}
    made = json.loads(masters._cut_notebook(json.dumps({"cells": [cell], "metadata": {}}), "x"))
    assert "".join(made["cells"][0]["source"]) == (
        "guess_us = None  # your guess, such as 5\nguess_all = None\nmeasured = guess_us"
    )
