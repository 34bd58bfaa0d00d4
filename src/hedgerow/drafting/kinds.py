"""Find the kind of values in a column that has no type or may have missing values, by five noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hedgerow.data.value_counts import ValueCounts
from hedgerow.drafting.numbers import level
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

Held = Literal["whole", "number", "date", "text"]


@dataclass(frozen=True)
class KindEstimate:
    """Kind of most values of a column, as five noisy counts tell it."""

    kind: Held
    missing: bool
    """True if more values are missing than noise explains."""
    rows: float
    """Number of rows, with noise."""
    others: float
    """Share of the rows that have a value of another kind, with noise."""
    level: float
    """Share of the rows that the noise of a count seldom exceeds."""

    @property
    def is_clear(self) -> bool:
        """True if noise cannot have decided the kind."""
        return self.level < 0.25


def most_common_kind(
    tally: ValueCounts, event: Laplace | Gaussian, ledger: Ledger, noise: Noise, why: str
) -> KindEstimate:
    """Find the kind of most values."""
    receipt = ledger.charge(event, why=why)
    missing, whole, fractions, dates, texts = noise.add(tally.kinds(), receipt).tolist()
    seen = level(event, 5)
    numbers = whole + fractions
    kind: Held
    if max(numbers, dates, texts) == texts:
        kind = "text"
    elif dates >= numbers:
        kind = "date"
    else:
        kind = "number" if fractions > seen else "whole"
    rows = max(1.0, missing + whole + fractions + dates + texts)
    others = rows - max(missing, 0.0) - max(numbers, dates, texts)
    return KindEstimate(kind, missing > seen, rows, max(0.0, others) / rows, seen / rows)
