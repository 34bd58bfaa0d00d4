"""A question bound to a universe, and the estimate that answers it. Callers need not know the kind of the question.

A new kind of question is a ``Query`` (``counts``) whose ``on`` returns a ``Bound``. If its answer needs something that
no engine offers yet, the protocol of the engine grows by that (``engine/interface``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from hedgerow._types import Array, Names

Source = Literal["hypothesis", "measured", "repeat", "combined"]
"""Origin of an answer; "combined" for one that was computed from answers of different origins."""
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
    distance from the θ of least risk.
    """

    value: float | Array
    error: float | Array | None
    source: Source
    resolution: float | Array = 0.0
    typical: float | Array | None = None
    labels: Labels | None = None
    coefficients: Array | None = None


Respondent = TypeVar("Respondent", contravariant=True)


class Bound(Protocol[Respondent]):
    """One question about one universe."""

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

    def ask(self, respondent: Respondent, within: float | None) -> Estimate:
        """Ask ``respondent`` for the answer, with a bar of ``within`` if given."""
        ...
