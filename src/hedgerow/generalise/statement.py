"""A session's statement about the population its rows come from, and the theorem behind it.

Bars hold on the table with probability 1 − β. The theorems add the error of the table itself, for another β: both
hold with probability 1 − 2β. They are about fractions of independent rows. At an ε near 1 they promise nothing, and
the statement then says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.generalise import transfer
from hedgerow.privacy.budget import Budget

FIRST, GROWTH = 1024, 4
"""Statements are made for 1024 questions, then for 4 times as many, and so on, each with half the β of the last."""


@dataclass(frozen=True, repr=False)
class PopulationStatement:
    """A statement about the population: ``extra`` is added to every bar on the table.

    The sum is a bar for the population, for all answers together with probability 1 − ``beta``. ``epsilon`` and
    ``delta`` are for one replaced row, whatever the session's neighbours. ``questions`` is the number of answers that
    the statement covers.
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
        """True if the statement says anything: a fraction is never off by more than 1."""
        return self.extra < 1

    def error(self, sample_error: float | None) -> float | None:
        """Return the population bar of a fraction with this bar on the table; None if there is none."""
        if sample_error is None or not sample_error + self.extra < 1:
            return None
        return sample_error + self.extra

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        privacy = f"({self.epsilon:g}, {self.delta:g})-private for a replaced row"
        if not self.is_useful:
            return (
                f"No theorem bounds the error on the population at this budget, {privacy}: "
                "spend less, or use hr.Holdout."
            )
        return (
            f"Every fraction is within its bar + {self.extra:.4g} of the population's, "
            f"for the first {self.questions:,} answers together, "
            f"with probability {1 - self.beta:.4g}, by {self.theorem}: all answers are {privacy}."
        )


def population_statement(budget: Budget, *, rows: float | None, asked: int, sample_beta: float) -> PopulationStatement:
    """Return the best statement for ``asked`` questions; ``rows`` is n where it is public."""
    ε, δ = transfer.replace_one(budget)
    questions, β = FIRST, sample_beta / 2
    while questions < asked:
        questions, β = questions * GROWTH, β / 2
    total = min(1.0, 2 * sample_beta)
    found = [(transfer.jung(ε, δ, 0.0, sample_beta, total), transfer.JUNG)] if total < 1 else []
    if rows is not None:
        found.append((transfer.sample_gap(ε, δ, rows, questions, β), transfer.MONITOR))
    extra, theorem = min(found, default=(1.0, transfer.JUNG))
    return PopulationStatement(ε, δ, sample_beta, total, questions, extra, theorem)
