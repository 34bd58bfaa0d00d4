"""The privacy budget, and the sensitivities its neighbours imply.

Symbols: ε, δ the budget; ρ zCDP loss; S, L bounds on a bounded query and on a gradient; k rows of a person.
Currency: ε, added up, when δ = 0; ρ otherwise. It is that of a row: what is ρ for one row is k²ρ for k, and ε is kε (Bun & Steinke,
Proposition 1.9), so a budget for a person with k rows is one of ρ/k², or ε/k, for a row (docs/proofs/people.md).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, final, get_args

from hedgerow import errors
from hedgerow._checks import number, positive, whole
from hedgerow.privacy import amplification, events, perturbed_objective
from hedgerow.privacy import planned as planned_noise
from hedgerow.privacy.conversion import epsilon_of_rho, largest_rho
from hedgerow.privacy.events import Event

Neighbours = Literal["replace", "add-remove"]
MOST_ROWS_PER_UNIT = 2**20
MOST_PRICE = 0.9999  # of planned noise: above, it is not worth a plan
FINE_STEPS, FEW_STEPS = 1024, 8  # of its grid in its deviation, and at least


class Contribution(NamedTuple):
    """What a row adds to the coordinates of one attribute: a vector for each value.

    ``square``: at least the squared norm of each. ``least``, ``most``: the ends of the inner products of two different ones.
    """

    square: float
    least: float
    most: float

    @classmethod
    def centred(cls, m: int) -> Contribution:
        """Of m values: unit vectors minus their mean."""
        return cls(1 - 1 / m, -1 / m, -1 / m)


@final
@dataclasses.dataclass(frozen=True)
class Budget:
    """(ε, δ) for everything that will ever be released, and what "neighbouring tables" means.

    "replace": one row changes and the number of rows is public. "add-remove": one row comes or goes.
    ``rows_per_unit``: k, where a person may have so many rows. Neighbours then differ in up to k rows, and the promise is a person's. It
    bounds no rows by itself: ``hr.open(…, unit=…)`` keeps at most k of each person, or the owner knows that there are no more.
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
        """This budget for persons of whom at most so many rows are kept.

        How many rows are kept then depends on who is there, so the number of rows is private: a person comes or goes.
        """
        if self.neighbours != "add-remove":
            raise errors.InvalidInput(
                "unit must come with neighbours='add-remove', for the number of rows that are kept depends on each person. Found "
                "'replace'. Use Budget(epsilon, delta, 'add-remove')."
            )
        if rows_per_unit is None and self.rows_per_unit == 1:
            raise errors.InvalidInput(
                "unit must come with rows_per_unit. Found none. Say how many rows of each person to keep, such as rows_per_unit=3."
            )
        most = self.rows_per_unit if rows_per_unit is None else whole("rows_per_unit", rows_per_unit)
        if self.rows_per_unit not in (1, most):
            raise errors.InvalidInput(
                f"rows_per_unit must be that of the budget, {self.rows_per_unit}. Found {most}. Leave it out."
            )
        return dataclasses.replace(self, rows_per_unit=most)

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def currency(self) -> str:
        return "epsilon" if self.pure else "rho"

    @property
    def total(self) -> float:
        """All there is to spend, in the currency of a row."""
        return self.of_a_row[0] if self.pure else self.rho()

    @property
    def of_a_row(self) -> tuple[float, float]:
        """(ε₀, δ₀) for one row that are (ε, δ) for k: ε₀ = ε/k and δ₀ = δ·(e^ε₀ − 1)/(e^ε − 1), rounded down.

        Along k rows the bound P(S) ≤ e^ε₀·Q(S) + δ₀ adds up to P(S) ≤ e^(kε₀)·Q(S) + δ₀·(1 + e^ε₀ + … + e^((k−1)ε₀)).
        """
        if self.rows_per_unit == 1:
            return self.epsilon, self.delta
        ε = math.nextafter(self.epsilon / self.rows_per_unit, 0.0)
        # (e^ε₀ − 1)/(e^ε − 1) without overflow
        share = math.exp(ε - self.epsilon) * math.expm1(-ε) / math.expm1(-self.epsilon)
        return ε, self.delta * share * (1 - 1e-12)

    def rho(self, slack: float = 0.0) -> float:
        """The largest ρ such that ρ-zCDP for a row implies (ε, δ − slack)-DP for a person, rounded down."""
        if self.pure:
            raise errors.InvalidInput("delta must be above 0 to count in rho. Found 0. Use epsilon, or give a delta.")
        if not 0 <= slack < self.delta:
            raise errors.InvalidInput(
                f"slack must be at least 0 and below delta = {self.delta!r}. Found {slack!r}. Reserve less."
            )
        # what fails for a row with δ fails for k with more, by a factor that grows with ρ
        if slack > 0 and self.rows_per_unit > 1:
            raise errors.InvalidInput(
                f"slack must be 0 where a person has several rows. Found {slack!r}. Use mechanisms without a delta of their own."
            )
        ρ = largest_rho(self.epsilon, self.delta - slack)
        return ρ if self.rows_per_unit == 1 else math.nextafter(ρ / self.rows_per_unit**2, 0.0)

    def epsilon_of_rows(self, epsilon: float, rho: float, delta: float, planned: float = 0.0) -> float:
        """The ε of a person at this δ, where a row's losses are ``epsilon`` and ``rho``: kε, or k²ρ converted.

        ``planned``: Δ²/2σ² of planned noise beside ``rho``.
        """
        k = self.rows_per_unit
        if planned > 0:
            return planned_noise.mixed_epsilon(k**2 * planned, k**2 * rho, delta, self.epsilon)
        return k * epsilon if self.pure else min(k * epsilon, epsilon_of_rho(k**2 * rho, delta))

    def cost(self, event: Event) -> float:
        """What the event costs in the currency; infinite if the currency cannot pay for it."""
        if type(event) not in events.KINDS.values():
            raise errors.InvalidInput(
                f"event must be one of {', '.join(events.KINDS)}. Found a {type(event).__name__}. "
                "Describe what will be drawn by one of these."
            )
        if isinstance(event, events.SubsampledGaussian):
            amplification.require_private(event, self.neighbours)
        if isinstance(event, events.Subsampled | events.FlippedRows):
            amplification.require_neighbours(event, self.neighbours)
        if isinstance(event, events.PerturbedObjective):
            perturbed_objective.require_private(event, self.neighbours)
        if self.pure and event.delta > 0:
            return math.inf
        cost = event.epsilon if self.pure else self._rho_of(event)
        return cost if cost > 0 else math.inf  # also for NaN: what cannot be priced cannot be paid

    def _rho_of(self, event: Event) -> float:
        if isinstance(event, events.Planned):
            return self._price(event.share) * event.continuous_rho * (1 + events.ROUNDING)
        return event.rho

    def _price(self, share: float) -> float:
        """Of planned noise. The same for a person as for a row: both parts of the budget are k² times as large for k rows."""
        return planned_noise.price(self.epsilon, self.delta, share)

    def planned(self, event: events.Gaussian, share: float, finest: float = 0.0) -> events.Planned | None:
        """Less noise at the same cost, where this share of the budget is planned; None where nothing is, or nothing is gained.

        Whether it is None does not depend on the event: of what was planned all is. So its grid may be finer than the event's, on
        which values stay as they are. ``finest``: on which the largest values fit; noise of hardly more than that has one of a few steps.
        """
        if self.pure or share <= 0 or self._price(share) > MOST_PRICE:
            return None
        fine = max(event.sigma / FINE_STEPS, min(finest, event.sigma / FEW_STEPS))
        grid = min(event.grid, events.grid_at_most(fine))
        σ = math.sqrt(self._price(share) * event.sigma**2 + (events.ROUNDED_AT_RANDOM * grid) ** 2)
        return events.Planned(events.Gaussian(event.sensitivity, σ * (1 + events.ROUNDING), grid), share)

    # Sensitivities, in rows: how far one neighbour can move the statistic.

    def linear(self) -> float:
        """A query that sums q(row) with q in [0, 1]."""
        return 1.0

    def bounded(self, bound: float) -> float:
        """A query that sums u(row) with |u| <= bound."""
        return self._twice_if_replaced(positive("bound", bound))

    def marginal_l1(self) -> float:
        """A whole table of counts, each row in one cell; ℓ1."""
        return self._twice_if_replaced(1.0)

    def marginal_l2(self) -> float:
        """A whole table of counts, each row in one cell; ℓ2."""
        return math.sqrt(2.0) if self.neighbours == "replace" else 1.0

    def residual_l2(self, sizes: Sequence[int]) -> float:
        """The centred table of counts on attributes of these sizes (docs/proofs/residuals.md); ℓ2."""
        return self.tensor_l2([Contribution.centred(m) for m in sizes])

    def tensor_l2(self, contributions: Sequence[Contribution]) -> float:
        """A sum over rows, each adding the tensor product of what its values add for each attribute (docs/proofs/residuals.md); ℓ2.

        A row has the squared norm Π square at most. Two rows have the inner product Π of ``square`` over attributes on which they
        agree, and of something from ``least`` to ``most`` over those on which they differ: a product is least at ends.
        """
        own = math.prod(c.square for c in contributions)
        if self.neighbours == "add-remove":
            return math.sqrt(own)
        least = min(
            math.prod(inner)
            for inner, agree in zip(
                itertools.product(*contributions),
                itertools.product((True, False, False), repeat=len(contributions)),
                strict=True,
            )
            if not all(agree)
        )
        return math.sqrt(2 * (own - least))

    def marginal_distance(self) -> float:
        """The ℓ1 distance of a table of counts to a fixed one."""
        return self._twice_if_replaced(1.0)

    def gradient(self, lipschitz: float) -> float:
        """A sum of gradients, each of norm at most `lipschitz`; ℓ2."""
        return self._twice_if_replaced(positive("lipschitz", lipschitz))

    def _twice_if_replaced(self, one: float) -> float:
        return 2 * one if self.neighbours == "replace" else one
