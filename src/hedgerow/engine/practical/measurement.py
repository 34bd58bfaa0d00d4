"""Released measurements: noisy counts with the event that drew them, and the public interval for the number of rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hedgerow._types import Array, Names
from hedgerow.engine.practical.contrasts import Contrasts, along
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.query.linear import Linear
from hedgerow.universe.universe import Universe


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy counts on ``attributes`` (or of ``query`` alone, then a single number), with the event that drew them.

    ``residual``: the counts are centred along every attribute and say nothing about smaller tables (``residuals``).
    ``ranged``: the attributes along which a residual was measured by contrasts of ranges (``contrasts``).
    ``of_groups``: the counts are of groups of values, not of single values (``value_groups``).
    ``rounding``: the largest difference, per row, between ``query`` and the query that was counted
        (``exact_counts.on_grid``).
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

    def with_values(self, values: Array) -> Measurement:
        """Return the same measurement with other released values."""
        return replace(self, values=values, _projected={})

    @property
    def variance(self) -> float:
        """The variance of each noisy count, or of each coordinate of a residual.

        It is σ² for Gaussian noise and 2b² for Laplace noise of scale b.
        """
        if isinstance(self.event, Gaussian):
            return self.event.sigma**2
        return 2 * self.event.scale**2

    @property
    def contrasts(self) -> tuple[Contrasts, ...]:
        """The contrasts along each attribute that a residual was measured by."""
        return along(self.values.shape, [name in self.ranged for name in self.attributes])

    def onto(self, names: Names) -> Array:
        """Sum the noisy counts to fewer attributes."""
        if names not in self._projected:
            away = tuple(i for i, name in enumerate(self.attributes) if name not in names)
            self._projected[names] = self.values.sum(axis=away)
        return self._projected[names]


@dataclass(frozen=True)
class RowCountInterval:
    """The public knowledge of n: exact under replace-one; an estimate with interval and deviation under add/remove."""

    estimate: float
    low: float
    high: float
    deviation: float = 0.0

    @property
    def off(self) -> float:
        """The largest distance of n from the estimate. ``low`` is at least 1, for fractions; n itself may be 0."""
        return max(self.high - self.estimate, self.estimate - (self.low if self.low > 1 else 0.0))

    @property
    def doubt(self) -> float:
        """The most by which half an interval for a fraction is wider than if n were known to be ``low``."""
        return (self.high - self.low) / (2 * self.low)


def varying_names(universe: Universe, names: Names) -> Names:
    """Leave out the attributes with only one value: they change no table."""
    return tuple(name for name in names if universe[name].size > 1)
