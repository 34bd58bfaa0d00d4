"""Select the values of a column that are common enough to be released: stability-based partition selection.

Papers: Korolova, Kenthapadi, Mishra & Ntoulas "Releasing search queries and clicks privately"; Bun, Nissim & Stemmer
"Simultaneous private learning of multiple concepts" (stability); Swanberg, Desfontaines & Haney "DP-SIPS" (Gaussian
noise).

Every value that occurs gets noise on its count, and is released if the noisy count reaches a threshold T. A value that
only one row has would reveal that row. It is released with probability P[1 + Z ≥ T], which is the event's δ
(docs/proofs/drafting.md).
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.data.value_counts import ValueCounts
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import ThresholdedCounts
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

Kept = tuple[tuple[str | None, float], ...]


def threshold_event(amount: Amount, delta: float) -> ThresholdedCounts:
    """Return the event of least noise that the amount pays for, with the least threshold whose tail is at most δ."""
    if not 0 < delta < 0.5:
        raise InvalidInput(
            f"delta must be above 0 and below 0.5 to release values. Found {delta!r}. Give a budget with a delta, or a "
            "codebook."
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


def common_values(tally: ValueCounts, event: ThresholdedCounts, ledger: Ledger, noise: Noise, why: str) -> Kept:
    """Return the values whose noisy count reaches the threshold, with these counts, largest first.

    The value None stands for missing values.
    """
    # The number of values is private, so the draws are not recorded.
    receipt = ledger.charge(event, why=why, keep=False)
    occurring: list[tuple[str | None, int]] = sorted(tally.texts.items()) + [(None, tally.missing)] * bool(
        tally.missing
    )
    noisy = noise.add(np.array([count for _, count in occurring], np.int64), receipt)
    kept = [(value, float(n)) for (value, _), n in zip(occurring, noisy, strict=True) if n >= event.threshold]
    told = tuple(sorted(kept, key=lambda pair: (-pair[1], pair[0] is not None, pair[0] or "")))
    ledger.record(receipt, told, noise.private)
    return told
