"""What each TODO of 12_capstone is checked by: one epoch with a dozen
patients, on two ranks.

The checks look at what the record says, never at the code. After these three
TODOs nothing is checked: the rest is your own work.
"""

from scaleout import todo

BRIEF = {
    "ranks": 2,
    "threads": 1,
    "epochs": 1,
    "patients": 12,
}
SMOOTH = 1.0
# What TODO 3 is tried on: a tumour of 4 pixels, of which the network is 0.8
# sure in 2 and 0.1 in 2, as in all other pixels but 4 more false alarms.
HITS = 2 * 0.8 + 2 * 0.1
ALARMS = 4 * 0.8 + 24 * 0.1
MISSES = 4 - HITS


def metrics_of(job):
    """Runs the job; the metrics of its one record."""
    run = job(**BRIEF)
    assert len(run.records) == 1, (
        f"expected one record, from rank 0; saw {len(run.records)}."
    )
    return run.records["metrics"].iloc[0]


def tversky(alpha, beta, smooth=SMOOTH, hits=HITS):
    """The loss that is expected of the example."""
    weighed = hits + alpha * ALARMS + beta * MISSES
    return 1 - (hits + smooth) / (weighed + smooth)


def near(saw, wanted):
    """Whether two losses are the same, as far as fp32 tells."""
    return saw is not None and abs(saw - wanted) < 1e-5


@todo(
    1,
    hints=[
        "Two slices of one patient are nearly the same picture. What decides "
        "to which part a slice belongs, its own number or its patient's?",
        "The patients are counted 0, 1, 2, ... Every fourth of them belongs "
        "to the same place of PARTS: the remainder of a division by four.",
        "return patient % len(PARTS)",
    ],
)
def slices_of_a_patient_stay_together(job):
    """Each patient is in one part, and each part has patients."""
    parts = metrics_of(job)["parts"]
    of_patient = {}
    for part, patients in parts.items():
        assert patients, f"expected patients in each part; saw none in {part}."
        for patient in patients:
            of_patient.setdefault(patient, []).append(part)
    both = {who: names for who, names in of_patient.items() if len(names) > 1}
    assert not both, (
        f"expected all slices of a patient in one part; saw {len(both)} of "
        f"{len(of_patient)} patients in several, such as patient "
        f"{min(both)} in {' and '.join(both[min(both)])}. Let the patient's "
        "number decide, not the slice's."
    )
    train = len(parts["train"])
    assert train == len(of_patient) // 2, (
        f"expected half of {len(of_patient)} patients to train on; saw "
        f"{train}: use all four places of PARTS."
    )


@todo(
    2,
    hints=[
        "Dice is 1 where the two outlines are the same and 0 where they do "
        "not meet. And when there is no outline at all?",
        "2 * hits / (2 * hits + alarms + misses); where these are all 0, put "
        "1 there: np.where(condition, there, elsewhere).",
        "both = 2 * hits + alarms + misses, then return np.where(both == 0, "
        "1.0, 2 * hits / np.maximum(both, 1))",
    ],
)
def dice_is_defined_for_every_patient(job):
    """Half found gives a half, nothing to find and nothing found gives 1."""
    found, empty, alarm = metrics_of(job)["examples"]["dices"]
    because = {
        1 / 3: "That is Jaccard's index: the hits count twice in Dice.",
        30 / 120: "The hits count twice above, and below too.",
        60 / 90: "Those below are twice the hits, the alarms and the misses.",
        0.75: "The misses are left out.",
    }
    near_to = [why for dice, why in because.items()
               if found is not None and abs(found - dice) < 1e-6]
    assert found is not None and abs(found - 0.5) < 1e-6, (
        "expected a Dice of 0.5 for 30 hits, 10 false alarms and 50 misses; "
        f"saw {found}. {' '.join(near_to)}"
    )
    assert empty is not None, (
        "expected a Dice of 1 for a patient without tumour in whom none was "
        "found; saw 0 divided by 0. Such a patient needs a rule of its own."
    )
    assert empty == 1, (
        "expected a Dice of 1 for a patient without tumour in whom none was "
        f"found; saw {empty}. The network is right there."
    )
    assert alarm == 0, (
        "expected a Dice of 0 for a patient without tumour in whom 5 pixels "
        f"were found; saw {alarm}. Only where there are no alarms either is "
        "it 1."
    )


@todo(
    3,
    hints=[
        "The loss needs sums that can change a little when the network is a "
        "little surer: products of truth and guess, not counts.",
        "hits: tf.reduce_sum(truth * guess), over all pixels of the batch. "
        "For the other two, one of the factors is 1 minus itself.",
        "hits as above, alarms = tf.reduce_sum((1 - truth) * guess), misses "
        "= tf.reduce_sum(truth * (1 - guess)), then return 1 - (hits + "
        "SMOOTH) / (hits + alpha * alarms + beta * misses + SMOOTH)",
    ],
)
def dice_and_jaccard_are_cases_of_tversky(job):
    """Tversky's loss, which is Dice with two halves and Jaccard with ones."""
    losses = metrics_of(job)["examples"]["losses"]
    assert losses["nothing"] is not None, (
        "expected a loss of 0 for a batch without tumour in which none was "
        "found; saw 0 divided by 0. Add SMOOTH above and below."
    )
    likely = {
        1 - tversky(0.2, 0.8): "1 minus it is asked for: a loss falls.",
        tversky(0.8, 0.2): "alpha counts alarms and beta counts misses: are "
        "they swapped?",
        tversky(0.2, 0.8, smooth=0): "Add SMOOTH above and below.",
        1 - HITS / (HITS + 0.2 * ALARMS + 0.8 * MISSES + SMOOTH):
        "SMOOTH is missing above.",
        tversky(0.5, 0.5): "alpha and beta do not count.",
        tversky(1, 1): "alpha and beta do not count.",
    }
    saw = losses["missed"]
    because = [why for loss, why in likely.items() if near(saw, loss)]
    assert near(saw, tversky(0.2, 0.8)), (
        f"expected a loss of {tversky(0.2, 0.8):.4f} for alpha 0.2 and beta "
        f"0.8, from sums over all pixels of two slices; saw {saw:.4f}. "
        f"{' '.join(because)}"
    )
    # Dice: twice what both have, over what each has. Jaccard: over the union.
    truth = HITS + MISSES
    guess = HITS + ALARMS
    dice = 1 - 2 * (HITS + SMOOTH) / (truth + guess + 2 * SMOOTH)
    jaccard = 1 - (HITS + SMOOTH) / (truth + guess - HITS + SMOOTH)
    assert near(losses["dice"], dice), (
        f"expected Dice's loss, {dice:.4f}, for alpha and beta of 0.5; saw "
        f"{losses['dice']:.4f}."
    )
    assert near(losses["jaccard"], jaccard), (
        f"expected Jaccard's loss, {jaccard:.4f}, for alpha and beta of 1; "
        f"saw {losses['jaccard']:.4f}."
    )
    assert near(losses["nothing"], 0) and near(losses["right"], 0), (
        "expected a loss of 0 where all is right; saw "
        f"{losses['nothing']:.4f} without a tumour, and "
        f"{losses['right']:.4f} with one."
    )
