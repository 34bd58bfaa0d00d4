"""Find the kind of values in a column that has no type or may have missing values, by five noisy counts."""

from __future__ import annotations

from typing import Literal

from hedgerow.data.value_counts import ValueCounts
from hedgerow.drafting.numbers import level
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

Held = Literal["whole", "number", "date", "text"]


def most_common_kind(
    tally: ValueCounts, event: Laplace | Gaussian, ledger: Ledger, noise: Noise, why: str
) -> tuple[Held, bool]:
    """Return the kind of most values, and True if some are missing."""
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
    return kind, missing > seen
