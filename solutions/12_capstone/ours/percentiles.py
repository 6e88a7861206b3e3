"""The limits of a patient are the same for all of its slices."""

LIMITS = {}  # of each patient


def scaled(slices, row) -> np.ndarray:
    """A slice as the network takes it, (64, 64, channels): from 0, the darkest
    of the patient's pixels, to 1, the brightest, without the last half per
    cent on either side."""
    patient = slices.patient[row]
    if patient not in LIMITS:
        volume = slices.images[slices.patient == patient]
        LIMITS[patient] = np.percentile(volume, [0.5, 99.5], axis=(0, 1, 2))
    low, high = LIMITS[patient]
    picture = (slices.images[row] - low) / (high - low)
    return np.clip(picture, 0, 1).astype(np.float32)
