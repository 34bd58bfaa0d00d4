"""What a session says of the population its rows come from, and by which theorem.

Bars hold on the table with 1 − β. The theorems add what the table itself may be off by, for another β: both hold with 1 − 2β. They speak of
fractions of independent rows; and at an ε near 1 they promise nothing, which is then what is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.generalise import transfer
from hedgerow.privacy.budget import Budget

FIRST, GROWTH = 1024, 4
"""Questions that a statement is made for: these, then so many times as many, each with half the β of the one before."""


@dataclass(frozen=True)
class Generalisation:
    """``extra`` is added to every bar on the table: the sum is a bar for the population, for all answers with 1 − ``beta``.

    ``epsilon`` and ``delta``: for one replaced row, whatever the session's neighbours. ``questions``: how many it holds for.
    """

    epsilon: float
    delta: float
    sample_beta: float
    beta: float
    questions: int
    extra: float
    theorem: str

    @property
    def is_useful(self) -> bool:
        """Whether it says anything: a fraction is never off by more than 1."""
        return self.extra < 1

    def error(self, sample_error: float | None) -> float | None:
        """The bar for the population, of a fraction whose bar on the table this is; None where there is none."""
        if sample_error is None or not sample_error + self.extra < 1:
            return None
        return sample_error + self.extra

    def __str__(self) -> str:
        privacy = f"({self.epsilon:g}, {self.delta:g})-private for a replaced row"
        if not self.is_useful:
            return f"No theorem bounds the error on the population at this budget, {privacy}: spend less, or use hr.Holdout."
        return (
            f"Every fraction is within its bar + {self.extra:.4g} of the population's, for the first {self.questions:,} answers together, "
            f"with probability {1 - self.beta:.4g}, by {self.theorem}: all answers are {privacy}."
        )


def stated(budget: Budget, *, rows: float | None, asked: int, sample_beta: float) -> Generalisation:
    """The best statement for so many questions. ``rows``: n, where it is public."""
    ε, δ = transfer.replace_one(budget)
    questions, β = FIRST, sample_beta / 2
    while questions < asked:
        questions, β = questions * GROWTH, β / 2
    total = min(1.0, 2 * sample_beta)
    found = [(transfer.jung(ε, δ, 0.0, sample_beta, total), transfer.JUNG)] if total < 1 else []
    if rows is not None:
        found.append((transfer.sample_gap(ε, δ, rows, questions, β), transfer.MONITOR))
    extra, theorem = min(found, default=(1.0, transfer.JUNG))
    return Generalisation(ε, δ, sample_beta, total, questions, extra, theorem)
