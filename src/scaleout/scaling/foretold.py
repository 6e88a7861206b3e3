"""What the laws said of a row that they had not seen."""

from dataclasses import dataclass

from ..errors import ScaleoutError
from .published import Published
from .rates import Prediction, fit_rates


@dataclass(frozen=True)
class Foretold:
    """The last row of a table, predicted from the rows before it."""

    table: Published
    said: Prediction | None

    @property
    def truth(self) -> float:
        """What was published."""
        return self.table.rates[-1]

    @property
    def held(self) -> bool:
        """Whether the interval held it; a refusal holds nothing."""
        return self.said is not None and self.said.low < self.truth < self.said.high

    @property
    def off(self) -> float:
        """By how much the prediction was too high, as a share; not a number where refused."""
        return self.said.rate / self.truth - 1 if self.said else float("nan")


def foretell(table: Published) -> Foretold:
    """Fits all rows of a table but the last, and predicts that one."""
    try:
        said = fit_rates(table.nodes[:-1], table.rates[:-1]).predict(table.nodes[-1])
    except ScaleoutError:
        return Foretold(table, None)
    return Foretold(table, said)
