"""12's stored trainings: what was found, and nothing of how fast or where."""

import json

import keep_losses

from scaleout.kit.fields import FIELDS, wrong


def test_a_stored_training_is_a_record_without_times_and_host() -> None:
    found = {"by_patient": [[1, 2, 3]], "dice": 0.4, "validation": [0.4], "loss": 0.5}
    empty = {str: "", int: 1, float: 1.0, list: [0.1], dict: {}, bool: False, type(None): None}
    record = {name: empty[types[0]] for name, types in FIELDS.items()}
    record |= {"host": "laptop", "metrics": {**found, "shown": [[0, 1, [5]]], "shares": []}}
    kept = json.loads(keep_losses.shortened(json.dumps(record), "tversky"))
    assert wrong(kept) == "" and kept["metrics"] == found
    assert (kept["variant"], kept["host"], kept["step_s"]) == ("tversky", "", [])
