"""Warn about a budget that is probably a mistake.

The warnings rest on public facts alone: the budget, the universe, and the number of rows where that is public.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from hedgerow.errors import PublicWarning
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace

LARGE_EPSILON = 10.0  # warn above this ε, which promises a person very little
LARGE_DELTA = 1e-3  # warn above this δ where the number of rows is private; otherwise the limit is 1 / rows


def advise(budget: Budget, rows: int | None, shape: Sequence[int], stacklevel: int = 3) -> None:
    """Warn about an ε or δ that promises little, and about a table that is too small for its universe.

    ``rows`` is the number of rows, or None where that number is private. ``shape`` is the number of cells of each
    attribute.
    """
    for words in advice(budget, rows, shape):
        warnings.warn(words, PublicWarning, stacklevel=stacklevel)


def advice(budget: Budget, rows: int | None, shape: Sequence[int]) -> list[str]:
    """Return the warnings of ``advise`` as a list of texts."""
    found = []
    if budget.epsilon > LARGE_EPSILON:
        found.append(
            f"epsilon should be at most {LARGE_EPSILON:g}. Found {budget.epsilon:g}, which lets odds about a person "
            f"change by a factor of e^{budget.epsilon:g}. Choose a smaller one, unless this is a test."
        )
    most = LARGE_DELTA if rows is None else 1 / rows
    if budget.delta > most:
        least = "a thousandth" if rows is None else f"1 / rows = {most:.3g}"
        found.append(
            f"delta should be far below {least}. Found {budget.delta:g}: a delta this large would even allow "
            "publishing the row of one person, chosen at random. Choose a smaller one."
        )
    if rows is not None:
        noise = Amount.share_of(budget, 1 / len(shape)).marginal()
        spread = noise.scale * 2**0.5 if isinstance(noise, Laplace) else noise.sigma
        if rows < spread * max(shape):
            found.append(
                f"The table should have at least {spread * max(shape):.3g} rows at this budget, for a universe whose "
                f"largest attribute has {max(shape)} cells. Found {rows}, so the noise of a cell exceeds the rows in "
                "it. Declare fewer or coarser attributes, or spend more."
            )
    return found
