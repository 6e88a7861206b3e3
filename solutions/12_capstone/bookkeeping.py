"""What 12_capstone can be asked for, which slices it takes, and how good the
trained network is. There is nothing to fill in here.
"""

import argparse
import os
import zipfile
from collections import Counter
from time import perf_counter

import numpy as np
import phantoms
import tensorflow as tf

from scaleout import data
from scaleout.kit.flags import Parser, one_or_more, refuse, zero_or_more

CHANNELS = {"ct": [0], "pet": [1], "ct+pet": [0, 1]}
AT_ONCE = 40  # slices that are judged together


def arguments(docstring: str, losses, words=None) -> argparse.Namespace:
    """The flags, as typed or as words."""
    parser = Parser(docstring)
    parser.add_argument("--loss", choices=losses, default="dice",
                        help="beside cross-entropy (dice)")
    parser.add_argument("--channels", choices=CHANNELS, default="ct+pet",
                        help="what the network sees (ct+pet)")
    parser.add_argument("--epochs", type=one_or_more, default=6,
                        help="how often each slice is seen (6)")
    parser.add_argument("--patients", type=one_or_more,
                        default=phantoms.PATIENTS,
                        help=f"how many are made up ({phantoms.PATIENTS})")
    parser.add_argument("--test", type=zero_or_more, default=0,
                        help="how many further ones it is tested with in the "
                        "end, which is not timed (0)")
    parser.add_argument("--data", help="a file of slices in their place, as "
                        "numpy.savez writes it: images, masks, patient, part")
    args = parser.parse_args(words)
    # compare numbers its rounds: each has patients and weights of its own
    args.seed = int(os.environ.get("SCALEOUT_ROUND", "0"))
    if data.quick():
        args.epochs = min(args.epochs, 2)
        args.patients = min(args.patients, phantoms.FEWEST)
        args.test = min(args.test, 4)
    return args


def slices_for(args: argparse.Namespace) -> phantoms.Slices:
    """The slices to work with, or the end of the job with a sentence."""
    if args.data:
        try:
            with np.load(args.data) as file:
                names = ("images", "masks", "patient", "part")
                slices = phantoms.Slices(*(file[name] for name in names))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            refuse(f"--data {args.data} is no file of slices ({error}): write "
                   "one with numpy.savez(FILE, images=..., masks=..., "
                   "patient=..., part=...).")
        problem = phantoms.wrong_with(slices)
        if problem:
            refuse(f"--data {args.data}: {problem}")
    elif args.patients < phantoms.FEWEST:
        refuse(f"--patients takes {phantoms.FEWEST} or more, of whom one in "
               f"six is for the validation, not {args.patients}.")
    else:
        slices = phantoms.cohort(args.patients, args.test, args.seed)
    slices.images = slices.images[..., CHANNELS[args.channels]]
    return slices


class Stopwatch:
    """Adds up where the time goes; none is left out."""

    def __init__(self) -> None:
        self.spent = Counter()
        self.at = perf_counter()

    def lap(self, what: str) -> None:
        """Note the seconds since the last lap."""
        now = perf_counter()
        self.spent[what] += now - self.at
        self.at = now


def dice_of(counts: np.ndarray) -> np.ndarray:
    """The Dice of each patient, (n,), from pixels that are right, drawn and
    true, (n, 3): 1 for the same outline. Of a patient without a tumour it is 1
    if nothing is drawn, and else 0."""
    right, drawn, true = np.transpose(counts)
    both = drawn + true
    return np.where(both == 0, 1.0, 2 * right / np.maximum(both, 1))


def by_patient(counts: np.ndarray, patient: np.ndarray) -> np.ndarray:
    """Counts of slices, (n, 3), added up for each patient, (patients, 3)."""
    whose = np.unique(patient, return_inverse=True)[1]
    return np.stack([np.bincount(whose, of) for of in counts.T], 1).astype(int)


def tested(model, slices, scaled) -> dict:
    """For the record: what is drawn in the patients of the test."""
    rows = slices.of("test")
    if not rows.size:
        return {}
    look = tf.function(model, autograph=False, reduce_retracing=True)
    pictures = np.stack([scaled(slices, row) for row in rows])
    drawn = np.concatenate([look(pictures[at:at + AT_ONCE]).numpy() > 0
                            for at in range(0, len(rows), AT_ONCE)])
    true = slices.masks[rows] == 1
    counts = np.stack([pixels.sum(axis=(1, 2, 3)) for pixels in
                       (drawn & true, drawn, true)], 1)
    patient = slices.patient[rows]
    found = by_patient(counts, patient)
    shown = []  # of each patient the slice with most tumour, and what is drawn
    for number in np.unique(patient):
        own = np.flatnonzero(patient == number)
        most = own[np.argmax(counts[own, 2])]
        shown.append([number, most - own[0], np.flatnonzero(drawn[most])])
    return {"dice": dice_of(found).mean(), "by_patient": found,
            "shown": shown}


def examples(overlap_loss) -> dict:
    """For the check: what the loss says of a small case."""
    masks = np.zeros((2, 4, 4, 1), np.float32)
    masks[0, 1:3, 1:3] = 1
    sure = np.full_like(masks, 0.1)
    sure[0, 1:4, 2:4] = 0.8
    none = np.zeros_like(masks)
    cases = {"dice": (masks, sure, 0.5, 0.5), "jaccard": (masks, sure, 1, 1),
             "missed": (masks, sure, 0.2, 0.8),
             "nothing": (none, none, 0.1, 0.9),
             "right": (masks, masks, 0.1, 0.9)}
    said = {name: float(overlap_loss(*case)) for name, case in cases.items()}
    # JSON has no word for what is no number, such as 0 / 0.
    return {name: loss if np.isfinite(loss) else None
            for name, loss in said.items()}
