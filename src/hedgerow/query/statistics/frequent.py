"""The most frequent values of an attribute."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow._types import Array, Names
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import Estimate
from hedgerow.query.composed import (
    ComposedQuestion,
)
from hedgerow.query.counts import (
    BoundMarginal,
    Marginal,
    MarginalRespondent,
    Query,
    Resolution,
    marginal,
)
from hedgerow.query.linear import Linear
from hedgerow.query.raw_rows import RawRows
from hedgerow.query.statistics.statistic import Statistic, offer
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False)
class BoundTop(ComposedQuestion):
    """Cells of an attribute, sorted by frequency."""

    whole: BoundMarginal
    k: int

    is_fraction = True
    is_number = False

    @property
    def stored(self) -> None:
        """None: its labels are part of the answer, which follows from that to its table."""
        return None

    @property
    def key(self) -> Hashable:
        """Key of the question."""
        return ("top", self.whole.key, self.k)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """None: the answer needs the whole marginal."""
        return ()

    @property
    def tables(self) -> Sequence[Names]:
        """Attribute set of the marginal."""
        return self.whole.tables

    def ask(self, respondent: MarginalRespondent, within: float | None) -> Estimate:  # type: ignore[override]
        """Return the k most frequent cells, followed by all that the bars do not exclude from the top k."""
        said = self.whole.ask(respondent, within)
        values = np.asarray(said.value)
        errors = np.ones(values.shape) if said.error is None else np.asarray(said.error)
        order = np.argsort(-values, kind="stable")
        surely = np.sort(values - errors)[::-1][self.k - 1]  # at least k cells certainly have this fraction
        kept = [i for place, i in enumerate(order) if place < self.k or values[i] + errors[i] >= surely]
        labels = self.whole.labels[0][1]
        typical = None if said.typical is None else np.asarray(said.typical)[kept]
        axes = ((self.whole.asked[0], tuple(labels[i] for i in kept)),)
        error = None if said.error is None else errors[kept]
        return Estimate(values[kept], error, said.source, 0.0, typical, axes)


@dataclass(frozen=True, eq=False, repr=False)
class Top(Statistic):
    """The most frequent values, made by ``top``."""

    attribute: str
    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int | np.integer) or isinstance(self.k, bool) or self.k < 1:
            raise InvalidInput(f"k must be a whole number of at least 1. Found {self.k!r}. Give the number of values.")
        object.__setattr__(self, "k", int(self.k))

    def on(self, universe: Universe, resolution: Resolution = "values") -> BoundTop:
        """Bind the marginal of the attribute."""
        whole = marginal(self.attribute).on(universe)
        assert isinstance(whole, BoundMarginal)
        return BoundTop(whole, min(self.k, universe[self.attribute].size))

    def true_value(self, rows: RawRows) -> Array:
        """Return the largest fractions of single values."""
        return np.sort(Marginal((self.attribute,)).true_value(rows))[::-1][: self.k]


def top(attribute: str, k: int) -> Query:
    """Ask for the k most frequent values (cells) of an attribute with their fractions, the most frequent first.

    After them come all values that the error bars do not exclude from the top k. If there are none, the answer is
    certain.

    Parameters
    ----------
    attribute : str
        The attribute.
    k : int
        Number of values.

    Returns
    -------
    Query

    Example
    -------
    >>> top("job", 3)  # doctest: +SKIP
    """
    return Top(attribute, k)


offer(Top, top)
