"""Which values of a column are common enough to be told: stability-based partition selection.

Papers: Korolova, Kenthapadi, Mishra & Ntoulas "Releasing search queries and clicks privately"; Bun, Nissim & Stemmer
"Simultaneous private learning of multiple concepts" (stability); Swanberg, Desfontaines & Haney "DP-SIPS" (Gaussian noise).

Every value that occurs gets noise on its count, and is told if that reaches a threshold T. A value that one row alone has
would tell of that row: it is told with probability P[1 + Z ≥ T], the event's δ (docs/proofs/drafting.md).
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.data.tally import Tally
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import ThresholdedCounts
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

Kept = tuple[tuple[str | None, float], ...]


def thresholded(amount: Amount, delta: float) -> ThresholdedCounts:
    """Counts with all the noise that the amount allows, and the least threshold whose tail is at most δ."""
    if not 0 < delta < 0.5:
        raise InvalidInput(
            f"delta must be above 0 and below 0.5 to tell values. Found {delta!r}. Give a budget with a delta, or a codebook."
        )
    noise = amount.gaussian(amount.budget.marginal_l2())
    low, high = 1, 2 + math.ceil(noise.sigma * math.sqrt(2 * math.log(1 / delta)) + 2 * noise.sigma)
    while ThresholdedCounts(noise, high).delta > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if middle >= 2 and ThresholdedCounts(noise, middle).delta <= delta:
            high = middle
        else:
            low = middle
    return ThresholdedCounts(noise, high)


def common_values(tally: Tally, event: ThresholdedCounts, ledger: Ledger, noise: Noise, why: str) -> Kept:
    """The values whose noisy count reaches the threshold, None for the missing ones, with these counts, largest first."""
    receipt = ledger.charge(event, why=why, keep=False)  # how many values there are is not told
    occurring: list[tuple[str | None, int]] = sorted(tally.texts.items()) + [(None, tally.missing)] * bool(
        tally.missing
    )
    noisy = noise.add(np.array([count for _, count in occurring], np.int64), receipt)
    kept = [(value, float(n)) for (value, _), n in zip(occurring, noisy, strict=True) if n >= event.threshold]
    told = tuple(sorted(kept, key=lambda pair: (-pair[1], pair[0] is not None, pair[0] or "")))
    ledger.record(receipt, told, noise.private)
    return told
