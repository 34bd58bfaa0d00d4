"""Who pays for a solver, and how much noise that buys.

Papers: Balle & Wang "Improving the Gaussian mechanism for differential privacy" (the analytic Gaussian); Dong, Roth & Su
"Gaussian differential privacy" (T adaptive Gaussian releases of sensitivity Δ and noise σ are one with μ = √T·Δ/σ).

Symbols: Δ the ℓ2 sensitivity of one release of p values; σ its noise; T releases; μ = √T·Δ/σ.

A Budget pays for one call and nothing else, so the call is certified as a whole: Gaussian noise by the analytic formula
δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), which allows less noise than any detour over ρ (7 % less at ε = 1, δ = 10⁻⁶);
one (ε₀, δ₀) step by itself; and any other list of events by their ρ. An Accountant pays together with other calls, so every
event is charged in its currency.

Noise comes on a grid. Values are rounded to it, which adds √p·grid to Δ: it is chosen so that this is a millionth of Δ.
The discrete Gaussian of so fine a grid is a rounded continuous one up to factors 1 ± 10⁻⁹ on its probabilities, which
`_MARGIN` of ε and δ pays for (docs/proofs/erm_mirror_descent.md).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from hedgerow._checks import positive
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.accounting import Accountant, Budget
from hedgerow.privacy.events import Event

_MARGIN = 1e-6  # share of ε and δ kept for the difference of the discrete Gaussian from the continuous one
_FINE = 1e-6  # share by which Δ is enlarged: half for rounding to the grid, half for that of clipped norms


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The least δ at which a Gaussian mechanism of Δ/σ = mu is (epsilon, δ)-private (Balle & Wang, Theorem 8)."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(min(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0)))


@functools.lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest Δ/σ that is (epsilon, delta)-private, rounded down."""
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    low = high
    while gaussian_delta(low, epsilon) > delta:
        low /= 2
    root = float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13))
    return root * (1 - 1e-9)


@dataclasses.dataclass(eq=False)
class Payment:
    """One call's means: a Budget spent as a whole (`accountant` None), or a share of an Accountant's."""

    budget: Budget
    accountant: Accountant | None
    available: float
    """What this call may spend, in the budget's currency."""
    priced_by_rho: bool = False
    """Whether a Budget's Gaussian noise is to be priced like an Accountant's, beside events of other kinds."""
    _paid: bool = False

    @classmethod
    def of(cls, budget: Budget | Accountant, spend: float | None = None) -> Payment:
        if isinstance(budget, Budget):
            if spend is not None:
                raise InvalidInput(
                    "spend must be left out with a Budget, which pays for one call. Found a value. Drop it."
                )
            return cls(budget, None, budget.total)
        if not isinstance(budget, Accountant):
            raise InvalidInput(
                f"budget must be a Budget or an Accountant. Found a {type(budget).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        share = budget.remaining if spend is None else positive("spend", spend)
        if budget.remaining <= 1e-9 * budget.budget.total:  # what rounding left over buys nothing but noise
            raise BudgetExceeded(
                f"The accountant must have {budget.budget.currency} left. Found none of {budget.budget.total:.4g}. Stop here."
            )
        if share > budget.remaining * (1 + 1e-12):
            raise BudgetExceeded(
                f"spend must be at most {budget.budget.currency} = {budget.remaining:.4g}, what is left. Found {share:.4g}. "
                "Spend less, or stop here."
            )
        return cls(budget.budget, budget, share)

    @property
    def mu(self) -> float:
        """√T·Δ/σ of the Gaussian noise that uses all there is: √(2ρ), or by the analytic formula if it is all there is."""
        if self.budget.pure:
            raise InvalidInput(
                "delta must be above 0 for Gaussian noise. Found 0. Give a delta, or use Frank–Wolfe, which needs none."
            )
        if self.accountant is None and not self.priced_by_rho:
            return gaussian_mu(self.budget.epsilon * (1 - _MARGIN), self.budget.delta * (1 - _MARGIN))
        return math.sqrt(2 * self.available) * (1 - 1e-12)

    def part(self, share: float) -> Payment:
        """To plan with: a share of the means, for Gaussian noise beside events of other kinds. The whole pays for it."""
        return dataclasses.replace(self, available=self.available * share, priced_by_rho=True, _paid=True)

    def gaussian(self, sensitivity: float, values: int, steps: int = 1, share: float = 1.0) -> events.Gaussian:
        """The noise of each of `steps` releases of so many values, each of this ℓ2 sensitivity, for a share of ρ."""
        exact, per_change = sensitivity * (1 + _FINE / 2), math.sqrt(steps / share) / self.mu
        # A millionth of the sensitivity, but no finer than keeps the noise below 2^40 steps.
        grid = events.grid_at_most(max(sensitivity * _FINE / 2 / math.sqrt(values), exact * per_change * 2.0**-39))
        Δ = exact + math.sqrt(values) * grid
        return events.Gaussian(Δ, per_change * Δ, grid)

    def approximate(self) -> events.ApproximateDP:
        """All there is, as one (ε, δ) step; from an Accountant, what its ρ and its slack allow."""
        if self.budget.pure:
            raise InvalidInput("delta must be above 0 for an (epsilon, delta) step. Found 0. Give a delta.")
        if self.accountant is None:
            return events.ApproximateDP(self.budget.epsilon, self.budget.delta)
        if self.accountant.slack <= 0:
            raise BudgetExceeded(
                "The accountant must have slack in delta for an (epsilon, delta) step. Found none. Open it with "
                "Accountant(budget, slack=…), or use a solver with Gaussian noise."
            )
        ρ = self.available
        ε = float(brentq(lambda ε: ε * math.tanh(ε / 2) - ρ, 0.0, ρ + 2 * math.sqrt(ρ) + 1, rtol=1e-13))
        return events.ApproximateDP(ε * (1 - 1e-11), self.accountant.slack)

    def charge(self, planned: Sequence[Event]) -> float:
        """Pay for all of a call's events, before any is drawn; what they cost, as in `Result.cost`."""
        if self._paid:
            raise BudgetExceeded("A payment must be made once. Found a second. Charge all events of the call together.")
        self._paid = True
        if self.accountant is not None:
            with self.accountant.exclusively():
                if not self.accountant.affords(*planned):  # so that a refusal part of the way charges nothing
                    cost = math.fsum(map(self.budget.cost, planned))
                    raise BudgetExceeded(
                        f"cost must be at most {self.budget.currency} = {self.accountant.remaining:.4g}, what is left. "
                        f"Found {cost:.4g}. Spend less, or stop here."
                    )
                for event in planned:
                    self.accountant.charge(event)
            return math.fsum(map(self.budget.cost, planned))
        return self._certified(planned)

    def _certified(self, planned: Sequence[Event]) -> float:
        """The ε of the events at the budget's δ, refused if above the budget's."""
        ε, δ = self.budget.epsilon, self.budget.delta
        if planned and all(isinstance(event, events.Gaussian) for event in planned):
            mu = math.sqrt(math.fsum(2 * event.rho * count for event, count in Counter(planned).items()))
            if gaussian_delta(mu, ε * (1 - _MARGIN)) <= δ * (1 - _MARGIN):
                return _gaussian_epsilon(mu, δ * (1 - _MARGIN), ε)
        if len(planned) == 1 and isinstance(planned[0], events.ApproximateDP):
            if planned[0].epsilon <= ε * (1 + 1e-12) and planned[0].delta <= δ * (1 + 1e-12):
                return planned[0].epsilon
            raise BudgetExceeded(
                f"cost must be at most epsilon = {ε:.4g} and delta = {δ:.4g}. Found {planned[0].epsilon:.4g} and "
                f"{planned[0].delta:.4g}. Ask for less."
            )
        accountant = Accountant(self.budget, slack=math.fsum(event.delta for event in planned))
        for event in planned:
            accountant.charge(event)
        return accountant.spent_epsilon


def _gaussian_epsilon(mu: float, delta: float, highest: float) -> float:
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    found = float(brentq(lambda ε: gaussian_delta(mu, ε) - delta, 0.0, highest, xtol=1e-300, rtol=1e-12))
    return min(highest, found / (1 - _MARGIN))
