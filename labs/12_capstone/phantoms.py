"""Patients that nobody ever met: CT and PET slices made by NumPy, with tumours
whose outline is known.

runme.py and first.py import this; there is nothing to fill in here.

CT shows how dense tissue is, in Hounsfield units: 0 is water, air is -1000.
PET shows how much sugar it takes up, and is blurred. A tumour takes up much
sugar. So do the kidneys, which are no tumour: PET alone is not enough. And
half of the tumours are as dense as what surrounds them: CT alone is not
enough either.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

SIDE = 64  # pixels of a slice, each way
PATIENTS = 96
SLICES = 8  # of a patient
FEWEST = 4  # patients, one for each part and another to train on
CT_NOISE = 25  # Hounsfield units
HIDDEN = 8  # by so much a hidden tumour differs from what surrounds it
SEEN = 70  # and by so much one that CT shows


@dataclass
class Slices:
    """Slices of some patients."""

    images: np.ndarray  # (n, side, side, 2): CT and PET
    labels: np.ndarray  # (n, side, side, 1): 1 where there is tumour, else 0
    patient: np.ndarray  # (n,): whose slice it is


def make(patients: int, seed: int = 0) -> Slices:
    """The slices of so many patients; a patient of the same number and seed is
    always the same."""
    each = [slices_of(number, seed) for number in range(patients)]
    images, labels = map(np.concatenate, zip(*each, strict=True))
    return Slices(images, labels, np.repeat(np.arange(patients), SLICES))


def slices_of(number: int, seed: int) -> tuple:
    """The images and labels of one patient, see Slices."""
    draw = np.random.default_rng([seed, number])
    height = np.linspace(-1, 1, SLICES)[:, None, None]  # (slices, 1, 1)
    y, x = np.mgrid[:SIDE, :SIDE][:, None] - (SIDE - 1) / 2  # (1, 64, 64)

    def ellipse(at, radii, turn=0.0):
        """Where the tissue of an organ is, in each slice: (slices, 64, 64)."""
        right, down = x - at[0], y - at[1]
        along = right * np.cos(turn) + down * np.sin(turn)
        across = down * np.cos(turn) - right * np.sin(turn)
        shrinks = 1 - 0.3 * height**2  # towards the ends of the organ
        inside = (along / radii[0]) ** 2 + (across / radii[1]) ** 2
        return inside < shrinks

    ct = np.full((SLICES, SIDE, SIDE), -1000.0)
    pet = np.zeros((SLICES, SIDE, SIDE))
    wide, deep = draw.uniform(25, 29), draw.uniform(19, 23)
    body = ellipse((0, 0), (wide, deep))
    inner = ellipse((0, 0), (wide - 2.5, deep - 2.5))
    ct[body], pet[body] = -90, 0.4  # fat
    ct[inner], pet[inner] = 40, 1.0  # muscle and bowel
    liver = ellipse((-9 + draw.normal(), -4 + draw.normal()),
                    draw.uniform([9, 7], [12, 10]), draw.normal(0, 0.3))
    ct[liver & inner], pet[liver & inner] = 62, 2.2
    stomach = ellipse((10 + draw.normal(), -7 + draw.normal()),
                      draw.uniform([4, 3], [7, 6]), draw.normal(0, 0.4))
    ct[stomach & inner], pet[stomach & inner] = 10, 1.3
    for side in (-1, 1):
        kidney = ellipse((side * draw.uniform(11, 14), draw.uniform(6, 9)),
                         draw.uniform([3, 4], [4.5, 5.5]), draw.normal(0, 0.3))
        ct[kidney & inner], pet[kidney & inner] = 32, draw.uniform(4, 7)
    spine = ellipse((0, deep - 7), (3.5, 3.5))
    ct[spine], pet[spine] = 260, 1.5

    tumour = tumour_in(draw, x, y, height, wide, deep) & inner & ~spine
    ct[tumour] += HIDDEN if hidden(number) else SEEN
    pet[tumour] += draw.uniform(4, 8)

    ct += CT_NOISE * draw.standard_normal(ct.shape)
    # A PET camera blurs, and counts few photons.
    pet = gaussian_filter(pet, (0, 1.2, 1.2))
    pet += 0.25 * np.sqrt(pet) * draw.standard_normal(pet.shape)
    images = np.stack([ct, pet], axis=-1).astype(np.float32)
    return images, tumour[..., None].astype(np.uint8)


def hidden(number: int) -> bool:
    """Whether this patient's tumour is one that CT does not show."""
    return number // 4 % 2 == 1


def tumour_in(draw, x, y, height, wide, deep) -> np.ndarray:
    """Where the tumour is: a ball with a wavy outline, (slices, 64, 64)."""
    angle, out = draw.uniform(0, 2 * np.pi), draw.uniform(0.1, 0.6)
    right = x - out * wide * np.cos(angle)
    down = y - out * deep * np.sin(angle)
    radius = np.exp(draw.uniform(np.log(2.5), np.log(8)))  # most are small
    around = np.arctan2(down, right)
    waves = draw.uniform(0, 0.18, 2)
    phases = draw.uniform(0, 2 * np.pi, 2)
    outline = 1 + waves[0] * np.cos(2 * around + phases[0])
    outline += waves[1] * np.cos(3 * around + phases[1])
    middle, length = draw.uniform(-0.5, 0.5), draw.uniform(0.6, 1.0)
    thins = np.sqrt(np.maximum(0, 1 - ((height - middle) / length) ** 2))
    return np.hypot(right, down) < radius * outline * thins


def wrong_with(slices: Slices) -> str:
    """What the network cannot work with, in a sentence; or nothing."""
    images, labels, patient = slices.images, slices.labels, slices.patient
    if images.ndim != 4 or images.shape[3] != 2:
        return ("images are (slices, height, width, 2), CT and PET, not "
                f"{images.shape}.")
    if labels.shape != (*images.shape[:3], 1):
        return (f"labels are {(*images.shape[:3], 1)} for these images, not "
                f"{labels.shape}.")
    if patient.shape != images.shape[:1]:
        return (f"patient names the patient of each of {len(images)} slices, "
                f"but its shape is {patient.shape}.")
    if images.shape[1] % 4 or images.shape[2] % 4:
        return ("the network halves a slice twice, so its sides must be "
                f"multiples of 4, not {images.shape[1]} x {images.shape[2]}: "
                "pad or crop them.")
    broken = np.flatnonzero(~np.isfinite(images).all(axis=(1, 2, 3)))
    if broken.size:
        return (f"slice {broken[0]} of patient {patient[broken[0]]} has a "
                "pixel that is no number (NaN or infinite), and it is one of "
                f"{broken.size} such slices: mend them or leave them out.")
    other = np.setdiff1d(labels, [0, 1])
    if other.size:
        return (f"a label is {other[0]}: 1 stands for tumour and 0 for all "
                "else, so write labels == ... for the one that you mean.")
    if len(np.unique(patient)) < FEWEST:
        return (f"there must be {FEWEST} patients or more, of whom half are "
                f"to train on, not {len(np.unique(patient))}.")
    return ""


def ready(images: np.ndarray) -> np.ndarray:
    """Images as the network takes them: CT from -160 to 240 Hounsfield units
    and PET up to 10, each from 0 to 1. It is what radiologists look at."""
    ct = np.clip((images[..., :1] + 160) / 400, 0, 1)
    pet = np.clip(images[..., 1:] / 10, 0, 1)
    return np.concatenate([ct, pet], axis=-1).astype(np.float32)
