"""A question bound to a universe, and the estimate that answers it. Callers need not know the kind of the question.

A new kind of question is a ``Query`` (``counts``) whose ``on`` returns a ``Bound``. If its answer needs something that
no engine offers yet, the protocol of the engine grows by that (``engine/interface``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from hedgerow._types import Array, Names

Source = Literal["hypothesis", "measured", "repeat", "combined"]
"""Origin of an answer; "combined" for one that was computed from answers of different origins."""
Basis = Literal["guaranteed", "bootstrap"]
"""Origin of the intervals of coefficients: they follow from the bound on the excess risk, or from a bootstrap."""
GUARANTEED: Basis = "guaranteed"
BOOTSTRAP: Basis = "bootstrap"
Labels = tuple[tuple[str, tuple[Any, ...]], ...]
"""Name of the attribute and labels of the cells, for each axis of a table."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer of an engine to a bound question.

    ``value``: a number, a table, or θ. ``error``: guaranteed half-width, one for each cell of a table; all of them hold
    together. None if nothing bounds it. ``source``: origin of the answer. ``resolution``: the part of ``error`` that is
    there because the universe's bins do not separate the records asked about from others. ``typical``: average size of
    the error of similar questions. It is no bound; None if unknown. ``labels``: labels of a table's cells, if they
    depend on the answer. ``coefficients``: if ``error`` is the excess risk of a θ, a bound for each entry on its
    distance from the θ of least risk. ``lower``, ``upper``: ends of the interval where they are nearer than ``value`` ±
    ``error``, as those of a ratio are; None where they are not. ``basis``: where ``coefficients`` come from.
    ``simulation``: a bound on the excess risk that θ has on the hypothesis because it was fitted on a sample of it.
    """

    value: float | Array
    error: float | Array | None
    source: Source
    resolution: float | Array = 0.0
    typical: float | Array | None = None
    labels: Labels | None = None
    coefficients: Array | None = None
    lower: float | Array | None = None
    upper: float | Array | None = None
    basis: Basis = GUARANTEED
    simulation: float | None = None


BarUnit = Literal["fraction", "value", "rows"]
"""Unit of an error bar: a fraction of the rows, the unit of the answer's values, or a number of rows."""
ROUNDING = 1e-9  # a bar that exceeds the one that was asked for by less than this part of it is as narrow


def is_within(error: float | Array | None, within: float) -> bool:
    """Return True if an answer has bars of at most ``within``, up to rounding."""
    return error is not None and float(np.max(error)) <= within * (1 + ROUNDING)


Respondent = TypeVar("Respondent", contravariant=True)


class Bound(Protocol[Respondent]):
    """One question about one universe. ``BoundQuestion`` has the defaults of its kind.

    Callers ask a question for what they need to know of it, and never for its class.
    """

    @property
    def key(self) -> Hashable:
        """Hashable key, equal for two questions exactly if they ask the same."""

    @property
    def tables(self) -> Sequence[Names]:
        """Attribute sets whose marginals determine the answer."""

    @property
    def is_fraction(self) -> bool:
        """True if the answer is a fraction of the rows, and can therefore be given in rows."""

    @property
    def labels(self) -> Labels:
        """Labels of a table's cells; empty if the answer is no table."""

    @property
    def linears(self) -> Sequence[Any]:
        """Linear queries that the answer needs in any case, which can be asked together in a batch."""

    @property
    def condition(self) -> Any | None:
        """The question as a condition (``linear.Condition``); None if it is not true or false for each record."""

    @property
    def in_rows(self) -> bool:
        """True if the answer is a sum over all rows, which is always given in rows."""

    @property
    def bar_unit(self) -> BarUnit:
        """Unit of the bar that can be asked for."""

    @property
    def is_composed(self) -> bool:
        """True if the answer follows from those to other questions, beside which it is cached as a whole."""

    @property
    def plain_name(self) -> str | None:
        """Text that every process writes alike for this question and for no other; None if there is none.

        Ledgers hold its hash.
        """

    @property
    def stored(self) -> tuple[Any, Any] | None:
        """A question that binds to this one again and has a stored form, with its resolution; None if there is none."""

    def kept_cells(self, universe: Any) -> int:
        """Return the number of cells in the tables that stay cached after the question was asked."""

    def weighted_sets(self, most: int) -> Sequence[tuple[Names, float]]:
        """Return the attribute sets that the answer depends on, each with its weight.

        A question that needs a larger set lists instead the sets of ``most`` attributes that it depends on mostly.
        """

    def ask(self, respondent: Respondent, within: float | None) -> Estimate:
        """Ask ``respondent`` for the answer, with a bar of ``within`` if given."""
        ...


class BoundQuestion:
    """Defaults of bound questions. A kind overrides those that do not hold for it."""

    __slots__ = ()

    in_rows: bool = False
    is_composed: ClassVar[bool] = False
    plain_name: ClassVar[str | None] = None

    @property
    def tables(self) -> Sequence[Names]:
        """Attribute sets whose marginals determine the answer."""
        raise NotImplementedError

    @property
    def linears(self) -> Sequence[Any]:
        """None: the answer does not follow from linear queries that are known in advance."""
        return ()

    @property
    def condition(self) -> Any | None:
        """None: the question is not true or false for each record."""
        return None

    @property
    def bar_unit(self) -> BarUnit:
        """A fraction of the rows."""
        return "fraction"

    @property
    def stored(self) -> tuple[Any, Any] | None:
        """None: the question has no stored form."""
        return None

    def kept_cells(self, universe: Any) -> int:
        """Return 0: no table stays cached."""
        return 0

    def weighted_sets(self, most: int) -> Sequence[tuple[Names, float]]:
        """Return the attribute sets of its tables, each with weight 1."""
        return [(names, 1.0) for names in self.tables if names]
