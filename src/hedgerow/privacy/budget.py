"""The privacy budget, the prices of events, and the sensitivities that the neighbours imply.

Symbols: ε, δ the budget; ρ zCDP loss; S, L bounds on a bounded query and on a gradient; k the number of rows of a
person.

Currency: where δ = 0, ε, added up; otherwise ρ, added up. Amounts are stated for one row. A loss of ρ for one row is
k²ρ for k rows, and ε is kε (Bun & Steinke, Proposition 1.9). So a budget for a person with k rows is a budget of ρ/k²,
or ε/k, for one row (docs/proofs/people.md).

Many residuals can be released as one event (``Contribution``, ``apart_square``). A set s of attributes has residual
coordinates whose inner product for two rows is Π_{a∈s} t_a, where t_a is Q_a on the attributes on which the rows agree
and lies in [l_a, u_a] on the others (``Contribution``). With W_s the square of the factor by which the coordinates of s
are multiplied, two rows are apart by

    2 Σ_s W_s (Π_{a∈s} Q_a − Π_{a∈s} t_a)

in squared ℓ2 distance. Under add/remove the square is Σ_s W_s Π_{a∈s} Q_a. Under replace-one the sum must be maximized
over t. It is linear in each t_a, so its maximum is at ends: Q_a, l_a or u_a. With few attributes all ends are tried.
With many, let p_a p_b ≤ W_ab for all pairs and r_a = p_a t_a. Then

    Σ_{a<b} r_a r_b = ½(Σ r_a)² − ½ Σ r_a²   and   ½R² ≥ λR − ½λ² for every λ,

so that singles and pairs are bounded from below by a sum with one term per attribute, for every λ; the best λ is used.
What remains, W_ab − p_a p_b of the pairs and all larger sets, is bounded set by set.

Their ℓ2 sensitivity is a function of public sizes (docs/proofs/residuals.md).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, final, get_args

import numpy as np

from hedgerow import errors
from hedgerow._checks import number, positive, whole
from hedgerow._renamed import renamed_arguments, renamed_methods
from hedgerow._types import Array
from hedgerow.privacy import amplification, events, perturbed_objective
from hedgerow.privacy import planned as planned_noise
from hedgerow.privacy.conversion import epsilon_of_rho, largest_rho, order_of
from hedgerow.privacy.events import Event
from hedgerow.privacy.renyi_events import RenyiEvent

Neighbours = Literal["replace", "add-remove"]
MOST_ROWS_PER_UNIT = 2**20  # the largest ``rows_per_unit``
MOST_PRICE = 0.9999  # planned noise at a price above this saves too little to be worth a plan
# Planned noise gets a grid of this many steps in its standard deviation if possible, and of at least this many always.
FINE_STEPS, FEW_STEPS = 1024, 8
MOST_CORNERS = 20_000  # with at most this many corners of t, all of them are tried
MULTIPLIERS, REFINED = 201, 4  # values of λ that are tried, and how often around the best


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
        """Return this budget for a table that keeps at most ``rows_per_unit`` rows of each person.

        The number of rows that are kept depends on who is in the table, so it is private. The neighbours must therefore
        be "add-remove".

        Parameters
        ----------
        rows_per_unit : int, optional
            The number of rows of each person that are kept. Default: that of the budget.

        Returns
        -------
        Budget

        Raises
        ------
        InvalidInput
            If the neighbours replace a row, or the number is missing or not that of the budget.

        Example
        -------
        >>> hr.Budget(1.0, 1e-6, "add-remove").per_unit(3)
        Budget(epsilon=1.0, delta=1e-06, neighbours='add-remove', rows_per_unit=3)
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
        """Return the largest ρ for which ρ-zCDP for one row implies (ε, δ − slack)-DP for a person, rounded down.

        Parameters
        ----------
        slack : float
            The part of δ that is reserved for events that have a δ of their own.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If δ is 0, or the slack is not below it.

        Example
        -------
        >>> round(hr.Budget(1.0, 1e-6).rho(), 4)
        0.0244
        """
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

        Parameters
        ----------
        epsilon, rho : float
            The losses of one row.
        delta : float
            The δ of the statement.
        planned : float
            Δ²/2σ² of the planned noise, which is not part of ``rho``.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.Budget(1.0, 1e-6).epsilon_of_rows(0.5, 0.01, 1e-6), 2)
        0.5
        """
        k = self.rows_per_unit
        if planned > 0:
            return planned_noise.mixed_epsilon(k**2 * planned, k**2 * rho, delta, self.epsilon)
        return k * epsilon if self.pure else min(k * epsilon, epsilon_of_rho(k**2 * rho, delta))

    def cost(self, event: Event) -> float:
        """Return the cost of an event in the currency. It is infinite if the currency cannot pay for the event.

        Parameters
        ----------
        event : Event
            The draw that is planned.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the event is of an unknown kind, or does not suit the neighbours.

        Example
        -------
        >>> from hedgerow.privacy.events import Gaussian
        >>> hr.Budget(1.0, 1e-6).cost(Gaussian(sensitivity=1.0, sigma=10.0, grid=2.0**-10)) < 0.01
        True
        """
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

        Parameters
        ----------
        event : Gaussian
            The noise without planning.
        share : float
            The share of the budget that is set aside for planned noise.
        finest : float
            The finest grid on which the largest values can be represented.

        Returns
        -------
        Planned or None

        Example
        -------
        >>> hr.Budget(1.0, 0.0).plan_noise(None, share=0.5) is None
        True
        """
        if self.pure or share <= 0 or self._price(share) > MOST_PRICE:
            return None
        fine = max(event.sigma / FINE_STEPS, min(finest, event.sigma / FEW_STEPS))
        grid = min(event.grid, events.grid_at_most(fine))
        σ = math.sqrt(self._price(share) * event.sigma**2 + (events.ROUNDED_AT_RANDOM * grid) ** 2)
        return events.Planned(events.Gaussian(event.sensitivity, σ * (1 + events.ROUNDING), grid), share)

    # Sensitivities, in rows: the largest change of a statistic between neighbouring tables.

    def linear(self) -> float:
        """Return the sensitivity of a query that sums q(row), with q in [0, 1].

        Returns
        -------
        float
            In rows.

        Example
        -------
        >>> hr.Budget(1.0, 1e-6).linear()
        1.0
        """
        return 1.0

    def bounded_sum(self, bound: float) -> float:
        """Return the sensitivity of a query that sums u(row), with |u| <= bound.

        Parameters
        ----------
        bound : float
            The largest |u(row)|.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the bound is not positive.

        Example
        -------
        >>> hr.Budget(1.0, 1e-6).bounded_sum(10.0), hr.Budget(1.0, 1e-6, "add-remove").bounded_sum(10.0)
        (20.0, 10.0)
        """
        return self._twice_if_replaced(positive("bound", bound))

    def marginal_l1(self) -> float:
        """Return the ℓ1 sensitivity of a whole table of counts, each row in one cell.

        Returns
        -------
        float

        Example
        -------
        >>> hr.Budget(1.0, 1e-6).marginal_l1()
        2.0
        """
        return self._twice_if_replaced(1.0)

    def marginal_l2(self) -> float:
        """Return the ℓ2 sensitivity of a whole table of counts, each row in one cell.

        Returns
        -------
        float

        Example
        -------
        >>> hr.Budget(1.0, 1e-6, "add-remove").marginal_l2()
        1.0
        """
        return math.sqrt(2.0) if self.neighbours == "replace" else 1.0

    def residual_l2(self, sizes: Sequence[int]) -> float:
        """Return the ℓ2 sensitivity of the centered table of counts on attributes of these sizes.

        See docs/proofs/residuals.md.

        Parameters
        ----------
        sizes : sequence of int
            The number of cells of each attribute.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.Budget(1.0, 1e-6).residual_l2([2]), 4)
        1.4142
        """
        return self.tensor_l2([Contribution.centered_bounds(m) for m in sizes])

    def tensor_l2(self, contributions: Sequence[Contribution]) -> float:
        """Return the ℓ2 sensitivity of a sum over rows of tensor products, one factor per attribute.

        A row has a squared norm of at most Π ``square``. Two different rows have an inner product of Π c_a. If they
        agree on attribute a, c_a is its ``square``; if they differ, c_a lies between its ``least`` and its ``most``.
        Such a product is smallest at the ends of these intervals (docs/proofs/residuals.md).

        Parameters
        ----------
        contributions : sequence of Contribution
            Bounds on the factor of each attribute.

        Returns
        -------
        float

        Example
        -------
        >>> from hedgerow.privacy.budget import Contribution
        >>> round(hr.Budget(1.0, 1e-6).tensor_l2([Contribution.centered_bounds(2)]), 4)
        1.4142
        """
        return self.joint_l2(contributions, [range(len(contributions))], [1.0])

    def joint_l2(
        self, contributions: Sequence[Contribution], sets: Sequence[Sequence[int]], weights: Sequence[float]
    ) -> float:
        """Return the ℓ2 sensitivity of several such sums that are released together (docs/proofs/residuals.md).

        Parameters
        ----------
        contributions : sequence of Contribution
            Bounds on the factor of each attribute.
        sets : sequence of sequences of int
            The positions of each sum's attributes among ``contributions``.
        weights : sequence of float
            A factor for each sum, by which the square of the released values is multiplied.

        Returns
        -------
        float

        Example
        -------
        >>> from hedgerow.privacy.budget import Contribution
        >>> round(hr.Budget(1.0, 1e-6).joint_l2([Contribution.centered_bounds(2)], [[0]], [1.0]), 4)
        1.4142
        """
        if self.neighbours == "add-remove":
            return math.sqrt(own_square(contributions, sets, weights))
        return math.sqrt(apart_square(contributions, sets, weights))

    def marginal_distance(self) -> float:
        """Return the sensitivity of the ℓ1 distance between a table of counts and a fixed table.

        Returns
        -------
        float

        Example
        -------
        >>> hr.Budget(1.0, 1e-6).marginal_distance()
        2.0
        """
        return self._twice_if_replaced(1.0)

    def gradient(self, lipschitz: float) -> float:
        """Return the ℓ2 sensitivity of a sum of gradients, each of norm at most ``lipschitz``.

        Parameters
        ----------
        lipschitz : float
            The largest norm of the gradient of one row.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the bound is not positive.

        Example
        -------
        >>> hr.Budget(1.0, 1e-6).gradient(1.0)
        2.0
        """
        return self._twice_if_replaced(positive("lipschitz", lipschitz))

    def _twice_if_replaced(self, one: float) -> float:
        return 2 * one if self.neighbours == "replace" else one


class Contribution(NamedTuple):
    """Bounds on the vectors that a row adds to the coordinates of one attribute, one vector per value.

    ``square`` bounds the squared norm of every vector from above. ``least`` and ``most`` bound the inner products of
    two different vectors.
    """

    square: float
    least: float
    most: float

    @classmethod
    def centered_bounds(cls, m: int) -> Contribution:
        """Return the bounds for an attribute of m values, whose vectors are the unit vectors minus their mean."""
        return cls(1 - 1 / m, -1 / m, -1 / m)

    @property
    def ends(self) -> tuple[float, ...]:
        """The values of t_a between which a product is linear, each once."""
        return tuple(dict.fromkeys((self.square, self.least, self.most)))


def own_square(contributions: Sequence[Contribution], sets: Sequence[Sequence[int]], weights: Sequence[float]) -> float:
    """Return the largest squared norm of what one row adds."""
    return math.fsum(w * math.prod(contributions[i].square for i in s) for s, w in zip(sets, weights, strict=True))


def apart_square(
    contributions: Sequence[Contribution], sets: Sequence[Sequence[int]], weights: Sequence[float]
) -> float:
    """Return a bound on the squared distance of what two rows add: the maximum itself if all corners are tried."""
    own = own_square(contributions, sets, weights)
    alone = math.fsum(w * _alone([contributions[i] for i in s]) for s, w in zip(sets, weights, strict=True))
    if math.prod(len(c.ends) for c in contributions) <= MOST_CORNERS:
        corners = np.array(list(itertools.product(*(c.ends for c in contributions))))
        inner = sum(w * corners[:, list(s)].prod(axis=1) for s, w in zip(sets, weights, strict=True))
        return 2 * (own - float(np.min(inner)))
    return min(alone, _jointly(contributions, sets, weights))


def _alone(contributions: Sequence[Contribution]) -> float:
    """Return the squared distance of what two rows add to one set."""
    ends = itertools.product(*(c.ends for c in contributions))
    return 2 * (math.prod(c.square for c in contributions) - min(map(math.prod, ends)))


def _jointly(contributions: Sequence[Contribution], sets: Sequence[Sequence[int]], weights: Sequence[float]) -> float:
    """Return the bound by multipliers."""
    count = len(contributions)
    singles, pairs = np.zeros(count), np.zeros((count, count))
    rest = 0.0
    for s, w in zip(sets, weights, strict=True):
        if len(s) == 1:
            singles[s[0]] += w
        elif len(s) == 2:
            pairs[s[0], s[1]] += w
            pairs[s[1], s[0]] += w
        else:
            rest += w * _alone([contributions[i] for i in s])
    p = _factors(pairs)
    left = np.maximum(pairs - np.multiply.outer(p, p), 0.0)
    for i, j in itertools.combinations(range(count), 2):
        if left[i, j] > 0:
            rest += float(left[i, j]) * _alone([contributions[i], contributions[j]])
    square = np.array([c.square for c in contributions])
    r = p * square
    own = float(singles @ square) + (float(r.sum()) ** 2 - float((r**2).sum())) / 2
    ends = np.array([[c.square, c.least, c.most] for c in contributions])
    fixed = singles[:, None] * ends - (p[:, None] * ends) ** 2 / 2
    return 2 * (own - _largest_dual(p[:, None] * ends, fixed)) + rest


def _largest_dual(moving: Array, fixed: Array) -> float:
    """Return the largest value found of −½λ² + Σ_a min over the ends of (λ·moving + fixed), which is concave in λ."""
    low, high = float(moving.min(axis=1).sum()), float(moving.max(axis=1).sum())
    best = -math.inf
    for _ in range(REFINED):
        multipliers = np.linspace(low, high, MULTIPLIERS)
        values = [float((λ * moving + fixed).min(axis=1).sum()) - λ * λ / 2 for λ in multipliers.tolist()]
        i, step = int(np.argmax(values)), (high - low) / (MULTIPLIERS - 1)
        best = max(best, values[i])
        low, high = float(multipliers[i]) - step, float(multipliers[i]) + step
    return best


def _factors(pairs: Array) -> Array:
    """Return p with p_a·p_b at most W_ab for all pairs: near it where W has that form; 0 where a pair is missing."""
    count = len(pairs)
    others = ~np.eye(count, dtype=bool)
    if count < 3 or (pairs[others] <= 0).any():
        return np.zeros(count)
    logs = np.where(others, np.log(np.where(others, pairs, 1.0)), 0.0)
    total = logs.sum() / 2 / (count - 1)
    p = np.exp((logs.sum(axis=1) - total) / (count - 2))
    ratio = (pairs / np.multiply.outer(p, p))[others].min()
    return np.asarray(p * math.sqrt(ratio) * (1 - 1e-12))
