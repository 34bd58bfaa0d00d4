"""The privacy budget, the prices of events, and the sensitivities that the neighbours imply.

Symbols: ε, δ the budget; ρ zCDP loss; S, L bounds on a bounded query and on a gradient; k the number of rows of a
person.

Currency: where δ = 0, ε, added up; otherwise ρ, added up. Amounts are stated for one row. A loss of ρ for one row is
k²ρ for k rows, and ε is kε (Bun & Steinke, Proposition 1.9). So a budget for a person with k rows is a budget of ρ/k²,
or ε/k, for one row (docs/proofs/people.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, final, get_args

from hedgerow import errors
from hedgerow._checks import number, positive, whole
from hedgerow._renamed import renamed_arguments, renamed_methods
from hedgerow.privacy import amplification, events, perturbed_objective
from hedgerow.privacy import planned as planned_noise
from hedgerow.privacy.conversion import epsilon_of_rho, largest_rho, order_of
from hedgerow.privacy.events import Event
from hedgerow.privacy.joint_sensitivity import Contribution, apart_square, own_square
from hedgerow.privacy.renyi_events import RenyiEvent

Neighbours = Literal["replace", "add-remove"]
MOST_ROWS_PER_UNIT = 2**20  # the largest ``rows_per_unit``
MOST_PRICE = 0.9999  # planned noise at a price above this saves too little to be worth a plan
# Planned noise gets a grid of this many steps in its standard deviation if possible, and of at least this many always.
FINE_STEPS, FEW_STEPS = 1024, 8


@final
@renamed_methods(bounded="bounded_sum", planned="plan_noise")
@renamed_methods(spelling=True, neighbors="neighbours")
@renamed_arguments(spelling=True, neighbors="neighbours")
@dataclasses.dataclass(frozen=True)
class Budget:
    """The total (ε, δ) for everything that will ever be released, and the meaning of "neighbouring tables".

    Parameters
    ----------
    epsilon : float
        The total ε, above 0.
    delta : float
        The total δ, from 0 to below 1. With 0 the budget is pure, and cannot pay for Gaussian noise.
    neighbours : {"replace", "add-remove"}
        "replace": one row changes, and the number of rows is public. "add-remove": one row is added or removed, and the
        number of rows is private.
    rows_per_unit : int
        k, the largest number of rows of one person. Neighbouring tables then differ in up to k rows, so that the
        promise protects a person and not only a row. The budget does not limit the rows by itself: either ``hr.open(…,
        unit=…)`` keeps at most k rows of each person, or the owner knows that nobody has more.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> Budget(epsilon=1.0, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06, neighbours='replace')
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"
    rows_per_unit: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if not 0 <= number(self.delta) < 1:
            raise errors.InvalidInput(
                f"delta must be at least 0 and below 1. Found {self.delta!r}. Use far less than 1 / rows, or 0."
            )
        object.__setattr__(self, "delta", number(self.delta))
        if self.neighbours not in get_args(Neighbours):
            raise errors.InvalidInput(
                f"neighbours must be {' or '.join(map(repr, get_args(Neighbours)))}. Found {self.neighbours!r}. "
                "Say whether a person's row is replaced, or added and removed."
            )
        object.__setattr__(self, "rows_per_unit", whole("rows_per_unit", self.rows_per_unit))
        if self.rows_per_unit > MOST_ROWS_PER_UNIT:
            raise errors.InvalidInput(
                f"rows_per_unit must be at most 2^20. Found {self.rows_per_unit!r}. Keep fewer rows of each person."
            )

    def __repr__(self) -> str:
        several = f", rows_per_unit={self.rows_per_unit}" if self.rows_per_unit > 1 else ""
        return f"Budget(epsilon={self.epsilon!r}, delta={self.delta!r}, neighbours={self.neighbours!r}{several})"

    def per_unit(self, rows_per_unit: int | None) -> Budget:
        """Return this budget for a table of which at most ``rows_per_unit`` rows of each person are kept.

        The number of rows that are kept depends on who is in the table, so it is private. The neighbours must therefore
        be "add-remove".
        """
        if self.neighbours != "add-remove":
            raise errors.InvalidInput(
                "unit must come with neighbours='add-remove', because the number of rows that are kept depends on each "
                "person. Found 'replace'. Use Budget(epsilon, delta, 'add-remove')."
            )
        if rows_per_unit is None and self.rows_per_unit == 1:
            raise errors.InvalidInput(
                "unit must come with rows_per_unit. Found none. Say how many rows of each person to keep, such as "
                "rows_per_unit=3."
            )
        most = self.rows_per_unit if rows_per_unit is None else whole("rows_per_unit", rows_per_unit)
        if self.rows_per_unit not in (1, most):
            raise errors.InvalidInput(
                f"rows_per_unit must be that of the budget, {self.rows_per_unit}. Found {most}. Leave it out."
            )
        return dataclasses.replace(self, rows_per_unit=most)

    @property
    def pure(self) -> bool:
        """True where δ = 0."""
        return self.delta == 0

    @property
    def currency(self) -> str:
        """The name of the currency: "epsilon" where δ = 0, otherwise "rho"."""
        return "epsilon" if self.pure else "rho"

    @property
    def total(self) -> float:
        """The whole budget, in its currency and for one row."""
        return self.of_a_row[0] if self.pure else self.rho()

    @property
    def of_a_row(self) -> tuple[float, float]:
        """The (ε₀, δ₀) for one row that implies (ε, δ) for k rows: ε₀ = ε/k, δ₀ = δ·(e^ε₀ − 1)/(e^ε − 1), rounded down.

        Over k rows the bound P(S) ≤ e^ε₀·Q(S) + δ₀ adds up to P(S) ≤ e^(kε₀)·Q(S) + δ₀·(1 + e^ε₀ + … + e^((k−1)ε₀)).
        """
        if self.rows_per_unit == 1:
            return self.epsilon, self.delta
        ε = math.nextafter(self.epsilon / self.rows_per_unit, 0.0)
        # (e^ε₀ − 1)/(e^ε − 1), arranged so that it cannot overflow
        share = math.exp(ε - self.epsilon) * math.expm1(-ε) / math.expm1(-self.epsilon)
        return ε, self.delta * share * (1 - 1e-12)

    def rho(self, slack: float = 0.0) -> float:
        """Return the largest ρ for which ρ-zCDP for one row implies (ε, δ − slack)-DP for a person, rounded down."""
        if self.pure:
            raise errors.InvalidInput("delta must be above 0 to count in rho. Found 0. Use epsilon, or give a delta.")
        if not 0 <= slack < self.delta:
            raise errors.InvalidInput(
                f"slack must be at least 0 and below delta = {self.delta!r}. Found {slack!r}. Reserve less."
            )
        # A failure probability δ for one row becomes a larger one for k rows, by a factor that grows with ρ.
        if slack > 0 and self.rows_per_unit > 1:
            raise errors.InvalidInput(
                f"slack must be 0 where a person has several rows. Found {slack!r}. Use mechanisms without a delta of "
                "their own."
            )
        ρ = largest_rho(self.epsilon, self.delta - slack)
        return ρ if self.rows_per_unit == 1 else math.nextafter(ρ / self.rows_per_unit**2, 0.0)

    def epsilon_of_rows(self, epsilon: float, rho: float, delta: float, planned: float = 0.0) -> float:
        """Return the ε of a person at this δ, given the losses of one row: kε, or k²ρ converted.

        ``plan_noise`` is Δ²/2σ² of the planned noise, which is not part of ``rho``.
        """
        k = self.rows_per_unit
        if planned > 0:
            return planned_noise.mixed_epsilon(k**2 * planned, k**2 * rho, delta, self.epsilon)
        return k * epsilon if self.pure else min(k * epsilon, epsilon_of_rho(k**2 * rho, delta))

    def cost(self, event: Event) -> float:
        """Return the cost of an event in the currency. It is infinite if the currency cannot pay for the event."""
        if type(event) not in events.KINDS.values():
            raise errors.InvalidInput(
                f"event must be one of {', '.join(events.KINDS)}. Found {type(event).__name__}. "
                "Describe what will be drawn by one of these."
            )
        if isinstance(event, events.SubsampledGaussian):
            amplification.require_private(event, self.neighbours)
        if isinstance(event, events.Subsampled | events.FlippedRows):
            amplification.require_same_neighbors(event, self.neighbours)
        if isinstance(event, events.PerturbedObjective):
            perturbed_objective.require_private(event, self.neighbours)
        if self.pure and event.delta > 0:
            return math.inf
        cost = event.epsilon if self.pure else self._rho_of(event)
        return cost if cost > 0 else math.inf  # NaN too is infinite: an event without a price cannot be paid for

    def _rho_of(self, event: Event) -> float:
        """Return the cost of an event in ρ, with planned noise at its own price, and some events at one order."""
        if isinstance(event, RenyiEvent):  # for several rows a person the conversion needs the loss at other orders
            return event.divergence(self.order) / self.order if self.rows_per_unit == 1 else math.inf
        if isinstance(event, events.Planned):
            return self._price(event.share) * event.continuous_rho * (1 + events.ROUNDING)
        return event.rho

    @property
    def order(self) -> float:
        """The Rényi order α at which ρ converts to (ε, δ). Divergences of αρ at this order alone imply (ε, δ)-DP."""
        if self.pure:
            raise errors.InvalidInput("delta must be above 0 for a Rényi order. Found 0. Give a delta.")
        return order_of(self.epsilon, self.delta)

    def _price(self, share: float) -> float:
        """Return the price of planned noise of this share.

        The price is the same for a person as for a row, because both parts of the budget are k² times as large for k
        rows.
        """
        return planned_noise.price(self.epsilon, self.delta, share)

    def plan_noise(self, event: events.Gaussian, share: float, finest: float = 0.0) -> events.Planned | None:
        """Return smaller noise at the event's cost, as planned noise for which this share of the budget is set aside.

        Returns None if the budget is pure, if nothing is planned, or if planning gains nothing. This does not depend on
        the event: either all noise is planned or none is. The grid may be finer than the event's, so that values on the
        event's grid remain unrounded. ``finest`` is the finest grid on which the largest values can still be
        represented. Where σ is hardly larger than ``finest``, the grid is still small enough for a few steps in σ.
        """
        if self.pure or share <= 0 or self._price(share) > MOST_PRICE:
            return None
        fine = max(event.sigma / FINE_STEPS, min(finest, event.sigma / FEW_STEPS))
        grid = min(event.grid, events.grid_at_most(fine))
        σ = math.sqrt(self._price(share) * event.sigma**2 + (events.ROUNDED_AT_RANDOM * grid) ** 2)
        return events.Planned(events.Gaussian(event.sensitivity, σ * (1 + events.ROUNDING), grid), share)

    # Sensitivities, in rows: the largest change of a statistic between neighbouring tables.

    def linear(self) -> float:
        """Return the sensitivity of a query that sums q(row), with q in [0, 1]."""
        return 1.0

    def bounded_sum(self, bound: float) -> float:
        """Return the sensitivity of a query that sums u(row), with |u| <= bound."""
        return self._twice_if_replaced(positive("bound", bound))

    def marginal_l1(self) -> float:
        """Return the ℓ1 sensitivity of a whole table of counts, each row in one cell."""
        return self._twice_if_replaced(1.0)

    def marginal_l2(self) -> float:
        """Return the ℓ2 sensitivity of a whole table of counts, each row in one cell."""
        return math.sqrt(2.0) if self.neighbours == "replace" else 1.0

    def residual_l2(self, sizes: Sequence[int]) -> float:
        """Return the ℓ2 sensitivity of the centered table of counts on attributes of these sizes.

        See docs/proofs/residuals.md.
        """
        return self.tensor_l2([Contribution.centered_bounds(m) for m in sizes])

    def tensor_l2(self, contributions: Sequence[Contribution]) -> float:
        """Return the ℓ2 sensitivity of a sum over rows of tensor products, one factor per attribute.

        A row has a squared norm of at most Π ``square``. Two different rows have an inner product of Π c_a, where c_a
        is ``square`` of the attributes on which they agree, and lies between ``least`` and ``most`` of those on which
        they differ. Such a product is smallest at the ends of these intervals (docs/proofs/residuals.md).
        """
        return self.joint_l2(contributions, [range(len(contributions))], [1.0])

    def joint_l2(
        self, contributions: Sequence[Contribution], sets: Sequence[Sequence[int]], weights: Sequence[float]
    ) -> float:
        """Return the ℓ2 sensitivity of several such sums that are released together.

        ``sets`` gives the positions of each sum's attributes among ``contributions``. The square of what is released
        is multiplied by ``weights`` (docs/proofs/residuals.md).
        """
        if self.neighbours == "add-remove":
            return math.sqrt(own_square(contributions, sets, weights))
        return math.sqrt(apart_square(contributions, sets, weights))

    def marginal_distance(self) -> float:
        """Return the sensitivity of the ℓ1 distance between a table of counts and a fixed table."""
        return self._twice_if_replaced(1.0)

    def gradient(self, lipschitz: float) -> float:
        """Return the ℓ2 sensitivity of a sum of gradients, each of norm at most ``lipschitz``."""
        return self._twice_if_replaced(positive("lipschitz", lipschitz))

    def _twice_if_replaced(self, one: float) -> float:
        return 2 * one if self.neighbours == "replace" else one
