"""What the one TODO of 12_capstone is checked by: a short training of one
rank. After it nothing is checked: the rest is your own work.

The check looks at what the record says, never at the code.
"""

from scaleout import todo

BRIEF = {"ranks": 1, "threads": 1, "epochs": 1, "patients": 6}
SMOOTH = 1.0
# What the loss is tried on: a tumour of 4 pixels, of which the network is 0.8
# sure in 2 and 0.1 in 2, as in all other pixels but 4 more false alarms.
RIGHT = 2 * 0.8 + 2 * 0.1
ALARMS = 4 * 0.8 + 24 * 0.1
MISSES = 4 - RIGHT


def tversky(alpha, beta, smooth=SMOOTH):
    """The loss that is expected of the example."""
    weighed = RIGHT + alpha * ALARMS + beta * MISSES
    return 1 - (RIGHT + smooth) / (weighed + smooth)


def near(saw, wanted):
    """Whether two losses are the same, as far as fp32 tells."""
    return saw is not None and abs(saw - wanted) < 1e-5


@todo(
    1,
    hints=[
        "The loss needs sums that can change a little when the network is a "
        "little surer: products of masks and sure, not counts.",
        "right: tf.reduce_sum(masks * sure), over all pixels of the batch. "
        "For alarms and misses, one of the factors is 1 minus itself.",
        "alarms = tf.reduce_sum((1 - masks) * sure), misses = tf.reduce_sum("
        "masks * (1 - sure)), then return 1 - (right + SMOOTH) / (right + "
        "alpha * alarms + beta * misses + SMOOTH)",
    ],
)
def dice_and_jaccard_are_cases_of_tversky(job):
    """Tversky's loss, which is Dice with two halves and Jaccard with ones."""
    run = job(**BRIEF)
    assert len(run.records) == 1, (
        f"expected one record, from rank 0; saw {len(run.records)}."
    )
    losses = run.records["metrics"].iloc[0]["examples"]
    assert losses["nothing"] is not None, (
        "expected a loss of 0 for a batch without tumour in which none was "
        "found; saw 0 divided by 0. Add SMOOTH above and below."
    )
    likely = {
        tversky(0.5, 0.5): "alpha and beta do not count: it is still Dice's.",
        tversky(1, 1): "alpha and beta do not count.",
        1 - tversky(0.2, 0.8): "1 minus it is asked for: a loss falls.",
        tversky(0.8, 0.2): "alpha counts alarms and beta counts misses: are "
        "they exchanged? (In keras.losses.tversky of Keras 3.15 they are.)",
        tversky(0.2, 0.8, smooth=0): "Add SMOOTH above and below.",
        1 - RIGHT / (RIGHT + 0.2 * ALARMS + 0.8 * MISSES + SMOOTH):
        "SMOOTH is missing above.",
    }
    saw = losses["missed"]
    because = [why for loss, why in likely.items() if near(saw, loss)]
    assert near(saw, tversky(0.2, 0.8)), (
        f"expected a loss of {tversky(0.2, 0.8):.4f} for alpha 0.2 and beta "
        f"0.8, from sums over all pixels of two slices; saw {saw:.4f}. "
        f"{' '.join(because[:1])}"
    )
    # Dice: twice what both have, over what each has. Jaccard: over the union.
    true = RIGHT + MISSES
    drawn = RIGHT + ALARMS
    dice = 1 - 2 * (RIGHT + SMOOTH) / (true + drawn + 2 * SMOOTH)
    jaccard = 1 - (RIGHT + SMOOTH) / (true + drawn - RIGHT + SMOOTH)
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
