"""A question bound to a universe, and what it asks of whoever answers: no caller needs to know its kind.

A new kind of question is a ``Query`` (``counts``) whose ``on`` gives a ``Bound``; where the answer needs something that no
engine offers yet, the engine's protocol grows by that (``engines/engine``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from hedgerow._types import Array, Names

Source = Literal["hypothesis", "measured", "repeat", "combined"]
"""Where an answer came from; "combined" of one that was computed from answers that came from several."""
Labels = tuple[tuple[str, tuple[Any, ...]], ...]
"""The values of each axis of a table, by the attribute's name."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an engine says.

    ``error``: a half-width, of a table one for each cell, that holds together with all others; None where nothing bounds it.
    ``resolution``: how much of it is there because the universe's bins cannot tell apart what was asked from its neighbours.
    ``typical``: how large the error of questions like it is on average: no bound. None where nobody knows.
    ``labels``: of a table's cells, where these depend on what was answered.
    ``coefficients``: of a θ whose ``error`` is an excess risk, how far each of its entries may be from that of the least risk.
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
        """Equal for two questions exactly when they ask the same."""

    @property
    def tables(self) -> Sequence[Names]:
        """The attribute sets whose marginals decide the answer."""

    @property
    def is_fraction(self) -> bool:
        """Whether the answer is a fraction of the rows, and so can be given in rows."""

    @property
    def labels(self) -> Labels:
        """Of a table's cells; none where the answer is no table."""

    def ask(self, respondent: Respondent, within: float | None) -> Estimate: ...
