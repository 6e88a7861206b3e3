"""What 12_capstone can be asked for, and which slices it takes.

runme.py and first.py import this; there is nothing to fill in here.
"""

import argparse
import math
import zipfile

import numpy as np
import phantoms

from scaleout import data
from scaleout.flags import (
    Parser,
    above_zero,
    one_or_more,
    refuse,
    zero_or_more,
)
from scaleout.words import count

LOSSES = {  # how much a false alarm and a missed pixel count, in "tversky"
    "cross-entropy": None,
    "dice": (0.5, 0.5),
    "jaccard": (1.0, 1.0),
    "tversky": (0.3, 0.7),
}
QUICK_PATIENTS = 8
QUICK_EPOCHS = 2


def arguments(docstring: str, words=None, lr=0.004) -> argparse.Namespace:
    """The flags, as typed or as words. lr: the learning rate by default."""
    parser = Parser(docstring)
    parser.add_argument("--epochs", type=one_or_more, default=12,
                        help="how often each slice is seen, at most (12)")
    parser.add_argument("--goal", type=above_zero, default=0.85,
                        help="stop once the validation Dice is so high (0.85)")
    parser.add_argument("--batch-per-rank", type=one_or_more, default=8,
                        help="slices a step on each rank (8)")
    parser.add_argument("--lr", type=above_zero, default=lr,
                        help=f"learning rate at the start ({lr})")
    parser.add_argument("--loss", choices=LOSSES, default="tversky",
                        help="beside cross-entropy (tversky)")
    parser.add_argument("--channels", choices=["ct", "ct+pet"],
                        default="ct+pet",
                        help="what the network sees (ct+pet)")
    parser.add_argument("--checkpoint", help="folder to keep checkpoints in "
                        "(that of the run)")
    parser.add_argument("--seed", type=zero_or_more, default=0,
                        help="seed of the patients, weights and order (0)")
    more = parser.add_argument_group("for the notebook's experiments")
    more.add_argument("--attention", action="store_true",
                      help="put a gate on each skip connection")
    more.add_argument("--dropout", type=shares, default="0,0,0",
                      help="share of the filters to drop in each level, from "
                      "the top (0,0,0)")
    more.add_argument("--bf16", action="store_true",
                      help="let oneDNN compute in bfloat16")
    more.add_argument("--patients", type=one_or_more,
                      default=phantoms.PATIENTS,
                      help=f"how many are made up ({phantoms.PATIENTS})")
    more.add_argument("--data", help="a file of slices in their place, as "
                      "numpy.savez writes it: images, labels, patient")
    args = parser.parse_args(words)
    if data.quick():
        args.epochs = min(args.epochs, QUICK_EPOCHS)
        args.patients = min(args.patients, QUICK_PATIENTS)
    return args


def shares(text: str) -> list[float]:
    """The value of --dropout, a share for each level."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) != 3 or not all(0 <= share < 1 for share in found):
        raise argparse.ArgumentTypeError(
            "it takes three shares from 0 up to 1, such as 0,0.1,0.2, not "
            f"{text}"
        )
    return found


def slices_for(args: argparse.Namespace) -> phantoms.Slices:
    """The slices to work with, or the end of the job with a sentence."""
    if not args.data:
        if args.patients < phantoms.FEWEST:
            refuse(f"--patients takes {phantoms.FEWEST} or more, of whom half "
                   f"are to train on, not {args.patients}.")
        return phantoms.make(args.patients, args.seed)
    try:
        with np.load(args.data) as file:
            slices = phantoms.Slices(
                *(file[name] for name in ("images", "labels", "patient"))
            )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        refuse(f"--data {args.data} is no file of slices ({error}): write one "
               "with numpy.savez(FILE, images=..., labels=..., patient=...).")
    problem = phantoms.wrong_with(slices)
    if problem:
        refuse(f"--data {args.data}: {problem}")
    return slices


def refuse_few(slices: int, part: str, ranks: int) -> None:
    """End the job if a part has fewer slices than ranks that share it."""
    if slices < ranks:
        refuse(f"{count(ranks, 'rank')} cannot share "
               f"{count(slices, 'slice')} of the {part}: start fewer, or deal "
               "out the patients otherwise (TODO 1 of runme.py).")


def variant_of(args: argparse.Namespace) -> str:
    """What the network sees and learns by, in words."""
    words = [args.channels, args.loss]
    if args.attention:
        words.append("attention")
    if any(args.dropout):
        words.append("dropout")
    if args.bf16:
        words.append("bf16")
    return ", ".join(words)


def speeds(args, at_s: list, slices: int, dice: float) -> dict:
    """For the record: when the goal was reached, if it was, and how many
    slices a second the epochs after the first went through, all time
    counted. at_s: when each epoch ended."""
    found = {"goal": args.goal}
    if dice >= args.goal:
        found["reached_s"] = at_s[-1]
    if len(at_s) > 1:
        each = (at_s[-1] - at_s[0]) / (len(at_s) - 1)
        found["slices_per_s"] = slices / each
    return found


def by_patient(counts: np.ndarray, patient: np.ndarray) -> list:
    """Counts of slices, (3, n), added up for each patient: 3 x (patients,)."""
    _, whose = np.unique(patient, return_inverse=True)
    return [np.bincount(whose, row).astype(int) for row in counts]


def found_pixels(evaluate, x, counts, patient) -> list:
    """For each patient the slice with most tumour: its number, and the pixels
    in which the network sees one, counted along the rows."""
    hits, _, misses = counts
    found = []
    for number in np.unique(patient):
        own = np.flatnonzero(patient == number)
        most = own[np.argmax((hits + misses)[own])]
        seen = np.flatnonzero(evaluate(x[most:most + 1]).numpy() > 0)
        found.append([most, seen])
    return found


def examples(tversky, dice_of) -> dict:
    """What the functions say of small cases, for the checks."""
    truth = np.zeros((2, 4, 4, 1), np.float32)
    truth[0, 1:3, 1:3] = 1
    guess = np.full_like(truth, 0.1)
    guess[0, 1:4, 2:4] = 0.8
    none = np.zeros_like(truth)
    weights = {"dice": (0.5, 0.5), "jaccard": (1.0, 1.0),
               "missed": (0.2, 0.8), "alarms": (0.8, 0.2)}
    said = {name: known(float(tversky(truth, guess, *pair)))
            for name, pair in weights.items()}
    said["nothing"] = known(float(tversky(none, none, 0.3, 0.7)))
    said["right"] = known(float(tversky(truth, truth, 0.3, 0.7)))
    # Three patients: half found, no tumour at all, and a false alarm.
    cases = np.array([[30, 0, 0], [10, 0, 5], [50, 0, 0]])
    dices = [known(float(dice)) for dice in dice_of(*cases)]
    return {"losses": said, "dices": dices}


def known(value: float) -> float | None:
    """For the record: what is no number, such as 0 / 0, is left out."""
    return value if math.isfinite(value) else None
