"""Words about a budget that is unlikely to be meant, from public facts alone: the budget, the universe, and n where it is public."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from hedgerow.errors import PublicWarning
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace

LARGE_EPSILON = 10.0
LARGE_DELTA = 1e-3  # where the number of rows is private


def advise(budget: Budget, rows: int | None, shape: Sequence[int], stacklevel: int = 3) -> None:
    """Warn of ε and δ that promise little, and of a table too small for its universe. ``rows``: None where private."""
    for words in advice(budget, rows, shape):
        warnings.warn(words, PublicWarning, stacklevel=stacklevel)


def advice(budget: Budget, rows: int | None, shape: Sequence[int]) -> list[str]:
    found = []
    if budget.epsilon > LARGE_EPSILON:
        found.append(
            f"epsilon should be at most {LARGE_EPSILON:g}. Found {budget.epsilon:g}, which lets odds about a person change by a "
            f"factor of e^{budget.epsilon:g}. Choose a smaller one, unless this is a test."
        )
    most = LARGE_DELTA if rows is None else 1 / rows
    if budget.delta > most:
        least = "a thousandth" if rows is None else f"1 / rows = {most:.3g}"
        found.append(
            f"delta should be far below {least}. Found {budget.delta:g}: with a delta so large, showing the row of a random "
            "person would be allowed. Choose a smaller one."
        )
    if rows is not None:
        noise = Amount.share_of(budget, 1 / len(shape)).marginal()
        spread = noise.scale * 2**0.5 if isinstance(noise, Laplace) else noise.sigma
        if rows < spread * max(shape):
            found.append(
                f"The table should have at least {spread * max(shape):.3g} rows for a universe whose largest attribute has "
                f"{max(shape)} cells, at this budget: below, a cell's noise exceeds its rows. Found {rows}. Declare fewer "
                "attributes or coarser ones, or spend more."
            )
    return found
