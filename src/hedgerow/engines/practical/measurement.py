"""What was released: noisy counts with the record that drew them, and what is known of the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from hedgerow._types import Array, Names
from hedgerow.engines.practical.contrasts import Contrasts, along
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.questions.linear import Linear
from hedgerow.questions.universe import Universe


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts on ``attributes`` (or of ``query`` alone, then a single number), with the record that drew them.

    ``residual``: the counts are centred along every attribute and say nothing of smaller tables (``residuals``).
    ``ranged``: along which of its attributes a residual was measured by contrasts of ranges (``contrasts``).
    ``of_groups``: the counts are of groups of values, not of values (``merging``).
    ``rounding``: how far, per row, the query that was counted may be from ``query`` (``exact_counts.on_grid``).
    """

    attributes: Names
    values: Array
    event: Laplace | Gaussian
    query: Linear | None = None
    residual: bool = False
    rounding: float = 0.0
    of_groups: bool = False
    ranged: Names = ()
    _projected: dict[Names, Array] = field(default_factory=dict, repr=False)

    @property
    def variance(self) -> float:
        """Of each noisy count, and of a residual of each coordinate: σ², or 2b² for Laplace noise of scale b."""
        if isinstance(self.event, Gaussian):
            return self.event.sigma**2
        return 2 * self.event.scale**2

    @property
    def contrasts(self) -> tuple[Contrasts, ...]:
        """Of a residual: those that it was measured by, along each attribute."""
        return along(self.values.shape, [name in self.ranged for name in self.attributes])

    def onto(self, names: Names) -> Array:
        """The noisy counts summed to fewer attributes."""
        if names not in self._projected:
            away = tuple(i for i, name in enumerate(self.attributes) if name not in names)
            self._projected[names] = self.values.sum(axis=away)
        return self._projected[names]


@dataclass(frozen=True)
class Rows:
    """What is publicly known of n: exact under replace-one, an estimate with an interval and its standard deviation under add/remove."""

    estimate: float
    low: float
    high: float
    deviation: float = 0.0

    @property
    def off(self) -> float:
        """How far n may be from the estimate. ``low`` is at least 1, for fractions; n itself may be 0."""
        return max(self.high - self.estimate, self.estimate - (self.low if self.low > 1 else 0.0))

    @property
    def doubt(self) -> float:
        """How much wider, at most, half an interval for a fraction is than if n were known to be ``low``."""
        return (self.high - self.low) / (2 * self.low)


def varying(universe: Universe, names: Names) -> Names:
    """These attributes without those that have one value, on which every table is that of the others."""
    return tuple(name for name in names if universe[name].size > 1)
