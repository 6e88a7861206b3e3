"""The sentence that a verdict allows."""

from ..errors import ScaleoutError
from ..words import rounded
from .comparison import Comparison


def explain(
    result: Comparison,
    *,
    faster: str = "",
    slower: str = "",
    same: str = "",
    unclear: str = "",
    variant: str = "",
) -> None:
    """Prints the sentence that applies to what was measured, and no other.

    A text may hold {variant}, {baseline}, {ratio}, {low}, {high}, {best} (the fastest that is shown
    to be faster than the baseline; else the baseline), {noise} and {within} (percent). Where a text
    is missing, what was found is said without a reason.

    Parameters
    ----------
    result : Comparison
    faster, slower, same, unclear : str
        For each verdict; `same` is for "no difference shown".
    variant : str
        Which; without it the best, or the last where none is faster.

    Raises
    ------
    ScaleoutError
        Where a text has a placeholder that is none.
    """
    best = result.best
    name = variant or (best if best != result.baseline else result.variants[-1])
    verdict, ratio = result.verdict(name), result.ratio(name)
    texts = {
        "faster": faster,
        "slower": slower,
        "no difference shown": same,
        "unclear": unclear,
    }
    words = {
        "variant": name,
        "baseline": result.baseline,
        "ratio": f"{ratio.middle:.2f}",
        "low": f"{ratio.low:.2f}",
        "high": f"{ratio.high:.2f}",
        "best": best,
        "noise": rounded(100 * result.noise),
        "within": rounded(100 * ratio.reach),
    }
    for text in texts.values():  # a slip shows at once, not when that verdict comes up
        try:
            text.format(**words)
        except (KeyError, IndexError, ValueError):
            known = ", ".join(f"{{{word}}}" for word in words)
            raise ScaleoutError(f"explain() fills in {known}; not all of {text!r}.") from None
    print(texts[verdict].format(**words) or result.sentence(name))
