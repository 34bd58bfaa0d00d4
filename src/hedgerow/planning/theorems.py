"""The guarantee of each mechanism for k answers together, as the number of rows that an error needs.

The error at n rows is the inverse of that function.

Symbols: n rows, |X| cells, k queries, β the probability that any answer is farther off than promised.

Differs: the textbook mechanisms promise 3α where their theorems are stated for α. Here an error is what holds for every
answer. The package's mechanisms are calibrated by the ledger, and need fewer rows than ``textbook.bounds``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Laplace
from hedgerow.textbook import bounds, mwem, pmw


@dataclass(frozen=True)
class Mechanism:
    """A mechanism and its guarantee.

    ``adaptive`` is True if questions may depend on earlier answers. ``how`` says how to use the mechanism, and
    ``theorem`` where the guarantee comes from. ``rows(error)`` is the number of rows that guarantees that error for all
    answers.
    """

    name: str
    adaptive: bool
    how: str
    theorem: str
    rows: Callable[[float], float]

    def error(self, rows: float) -> float:
        """Return the least error that so many rows guarantee, or infinity if they guarantee nothing."""
        return bounds.smallest_alpha(self.rows, rows)


def mechanisms(budget: Budget, queries: int, beta: float, cells: int) -> list[Mechanism]:
    """Return all mechanisms with a guarantee for linear queries. SmallDB is pure, and therefore within any δ."""
    found = [
        Mechanism(
            "noise on every answer", True, "one draw a question", "a union bound on the noise",
            lambda error: noise_width(budget, queries, beta) / error,
        ),
        Mechanism(
            "online PMW", True, 'hr.open(profile="theory")', "Theorems 4.14 and 4.15, calibrated",
            lambda error: pmw.rows_needed(budget, error / 3, beta, queries, cells),
        ),
        Mechanism(
            "MWEM", False, 'hr.release(method="mwem")', "Theorem 12.6, calibrated",
            lambda error: mwem.rows_needed(budget, error / 3, beta, queries, cells),
        ),
        Mechanism(
            "SmallDB", False, "exponential time", "Theorem 4.5",
            lambda error: bounds.small_db_rows(error, beta, budget.epsilon, queries, cells),
        ),
    ]  # fmt: skip
    return found if cells > 1 else found[:1]  # with one cell there is nothing to learn


def noise_width(budget: Budget, queries: int, beta: float) -> float:
    """Return a width, in rows, that k draws of noise all stay within, except with probability β.

    P(|Lap(b)| > w) ≤ e^(−w/b) and P(|N(0, σ²)| > w) ≤ 2e^(−w²/2σ²). The noise is a whole number, which adds 1.
    """
    k = float(queries)
    event = Amount.share_of(budget).noise(k * budget.linear(), math.sqrt(k) * budget.linear())
    if isinstance(event, Laplace):
        return event.scale * math.log(k / beta) + 1
    return event.sigma * math.sqrt(2 * math.log(2 * k / beta)) + 1
