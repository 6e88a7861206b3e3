"""Patients that nobody ever met: CT and PET slices made by NumPy, with tumours
whose outline is known. There is nothing to fill in here.

CT shows how dense tissue is, in Hounsfield units: 0 is water, fat is below
it. PET shows how much sugar tissue takes up, and is blurred. A tumour takes up
much. So does one organ, a patch of brown fat, in every patient: it is as
bright as a tumour, as large, and anywhere, but CT shows that it is fat. And
half of the tumours differ from what surrounds them by less than the noise of
CT. So neither is enough alone.
"""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

SIDE = 64  # pixels of a slice, each way
SLICES = 12  # of a patient
THICK = 5 / 3  # pixels, of a slice
PARTS = ["train", "validation", "test"]
PATIENTS = 48  # of whom one in six is for the validation
FEWEST = 6
TEST = 100  # further patients, for the final accuracy
SHOWN = (-160, 240)  # Hounsfield units: what a radiologist looks at
CT_NOISE = 25  # Hounsfield units
HIDDEN, SEEN = 8, 55  # how much denser a tumour is than what surrounds it
HEALTHY = 0.2  # of the patients have no tumour
BLUR = (0.5, 1.8, 1.8)  # of PET, pixels
PET_NOISE = 0.1


@dataclass
class Slices:
    """Slices of some patients."""

    images: np.ndarray  # (n, side, side, 2), float32: CT and PET
    masks: np.ndarray  # (n, side, side, 1): 1 where there is tumour, else 0
    patient: np.ndarray  # (n,): whose slice it is
    part: np.ndarray  # (n,): 0, 1 or 2, the patient's place in PARTS

    def of(self, part: str) -> np.ndarray:
        """The numbers of the slices in a part."""
        return np.flatnonzero(self.part == PARTS.index(part))


def cohort(patients: int = PATIENTS, test: int = 0, seed: int = 0) -> Slices:
    """So many patients to train on and to validate with, and so many to test
    with; a patient of the same number and seed is always the same."""
    # Never by slice: two slices of one patient are nearly the same picture.
    part = [int(number % 6 == 5) for number in range(patients)] + [2] * test
    whose = [*range(patients), *range(1000, 1000 + test)]
    each = [patient(number, seed) for number in whose]
    images, masks = map(np.concatenate, zip(*each, strict=True))
    return Slices(images, masks, np.repeat(whose, SLICES),
                  np.repeat(part, SLICES))


def hidden(number: int) -> bool:
    """Whether this patient's tumour is one that CT does not show."""
    return number // 6 % 2 == 1


def ellipsoid(centre, radii) -> np.ndarray:
    """Where it is: (SLICES, SIDE, SIDE) of True and False."""
    z, y, x = np.ogrid[:SLICES, :SIDE, :SIDE]
    away = zip((THICK * z, y, x), centre, radii, strict=True)
    return sum(((axis - c) / r) ** 2 for axis, c, r in away) < 1


def patient(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The images and masks of one patient, see Slices."""
    draw = np.random.default_rng([seed, number])
    ct = np.full((SLICES, SIDE, SIDE), -1000.0)
    pet = np.zeros_like(ct)
    wide, deep = draw.uniform(26, 31), draw.uniform(24, 30)
    body = ellipsoid((10, 32, 32), (99, deep, wide))
    ct[body], pet[body] = 20, 0.15  # muscle and bowel
    around = np.arange(4) * np.pi / 2 + draw.uniform(0, 1)
    middles = [np.array([draw.uniform(4, 16), 32 + 13 * np.sin(angle),
                         32 + 14 * np.cos(angle)]) for angle in around]
    fat = draw.integers(4)
    for place, middle in enumerate(middles):
        radius = draw.uniform(3, 7) if place == fat else 7.5
        radii = radius * draw.uniform(0.8, [1.6, 1.2, 1.2])
        organ = ellipsoid(middle, radii) & body
        ct[organ] = draw.uniform(-80, -40) if place == fat else draw.uniform(
            45, 105)
        pet[organ] = draw.uniform(*((0.6, 1.0) if place == fat else
                                    (0.1, 0.3)))

    mask = np.zeros(ct.shape, bool)
    healthy = draw.random() < HEALTHY
    ill = middles[(fat + draw.integers(1, 4)) % 4]  # in one of the others
    centre, radius = ill + draw.uniform(-3, 3, 3), draw.uniform(2, 7)
    if not healthy:
        mask = ellipsoid(centre, radius * draw.uniform(0.8, 1.2, 3)) & body
        ct[mask] += HIDDEN if hidden(number) else SEEN
        pet[mask] = draw.uniform(0.6, 1.0)

    ct += CT_NOISE * draw.standard_normal(ct.shape)
    pet = gaussian_filter(pet, BLUR) + PET_NOISE * draw.standard_normal(
        pet.shape)
    images = np.stack([ct.clip(*SHOWN), pet], axis=-1).astype(np.float32)
    return images, mask[..., None].astype(np.uint8)


def wrong_with(slices: Slices) -> str:
    """What the network cannot work with, in a sentence; or nothing."""
    images, masks, patient = slices.images, slices.masks, slices.patient
    if images.ndim != 4 or images.shape[3] != 2 or not images.size:
        return ("images are (slices, height, width, 2), CT and PET, and at "
                f"least one slice, not {images.shape}.")
    if masks.shape != (*images.shape[:3], 1):
        return (f"masks are {(*images.shape[:3], 1)} for these images, not "
                f"{masks.shape}.")
    if not patient.shape == slices.part.shape == images.shape[:1]:
        return (f"patient and part say for each of {len(images)} slices whose "
                f"it is and where it belongs, not {patient.shape} and "
                f"{slices.part.shape}.")
    if images.shape[1] % 4 or images.shape[2] % 4:
        return ("the network halves a slice twice, so its sides must be "
                f"multiples of 4, not {images.shape[1]} x {images.shape[2]}: "
                "pad or crop them.")
    broken = np.flatnonzero(~np.isfinite(images).all(axis=(1, 2, 3)))
    if broken.size:
        more = f", as have {broken.size - 1} more" if broken.size > 1 else ""
        return (f"slice {broken[0]} of patient {patient[broken[0]]} has a "
                f"pixel that is no number (NaN or infinite){more}: mend what "
                "is broken, or leave it out.")
    other = np.setdiff1d(masks, [0, 1])
    if other.size:
        return (f"a mask has {other[0]}: 1 stands for tumour and 0 for all "
                "else, so write masks == ... for the one that you mean.")
    pairs = np.unique(np.stack([patient, slices.part]), axis=1)
    names, times = np.unique(pairs[0], return_counts=True)
    if (times > 1).any():
        return (f"patient {names[times > 1][0]} is in two parts: put all "
                "slices of a patient into one, or the network is judged by "
                "what it has learned from.")
    for part, name in enumerate(PARTS[:2]):
        if part not in slices.part:
            return (f"nobody is in part {part}, {name}: deal out the patients "
                    "so that it has some.")
    return ""
