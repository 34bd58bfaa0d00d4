"""A part of a budget, and the noise that it buys: the one way to hold back, share out and spend.

Papers: Balle & Wang "Improving the Gaussian mechanism for differential privacy" (the analytic Gaussian); Dong, Roth & Su
"Gaussian differential privacy" (T adaptive Gaussian releases of sensitivity Δ and noise σ are one with μ = √T·Δ/σ).

Symbols: Δ sensitivity; b, σ the scale of Laplace and Gaussian noise; T releases; μ = √T·Δ/σ; c what is spent, in the currency.

An allowance of a ledger is charged there, event by event, in the ledger's currency. A ``Budget`` that pays for one call and
nothing else is a ledger of its own, ``OneCall``, and the call is certified as a whole: Gaussian noise by the analytic formula
δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), which allows less noise than any detour over ρ (7 % less at ε = 1, δ = 10⁻⁶); one
(ε₀, δ₀) step by itself; and any other list of events by their ρ.

Noise comes on a grid. Values off it are rounded, which adds √p·grid to Δ: ``fine_gaussian`` chooses it so that this is a
millionth of Δ. The discrete Gaussian of so fine a grid is a rounded continuous one up to factors 1 ± 10⁻⁹ on its
probabilities, which `_MARGIN` of ε and δ pays for (docs/proofs/erm_mirror_descent.md).
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, final

import scipy  # which loads its parts when they are first named

from hedgerow._checks import positive
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_epsilon, gaussian_mu
from hedgerow.privacy.events import Event, Exponential, Gaussian, Laplace, grid_at_most
from hedgerow.privacy.ledger import FIT, Accountant, HasLedger, Ledger, Receipt

Payer = Budget | Ledger | HasLedger

_MARGIN = 1e-6  # share of ε and δ kept for the difference of the discrete Gaussian from the continuous one
_CONTINUOUS = 1e-5  # of σ: on a coarser grid the analytic formula is not the noise's own
_FINE = 1e-6  # share by which Δ is enlarged: half for rounding to the grid, half for that of clipped norms


class Amount:
    """So much of a budget's currency, to plan with, and what it buys. It pays for nothing: an ``Allowance`` does."""

    def __init__(self, budget: Budget, left: float, *, whole: bool = False, slack: float = 0.0) -> None:
        """``whole``: all of a Budget for one call, so that Gaussian noise is priced by itself. ``slack``: δ for other steps."""
        self.budget, self.left, self.whole, self.slack = budget, left, whole, slack

    @staticmethod
    def share_of(budget: Budget, share: float = 1.0) -> Amount:
        return Amount(budget, share * budget.total)

    def part(self, share: float) -> Amount:
        return Amount(self.budget, share * self.left)

    # What it buys, all of it in one event. c = Δ/b, Δ²/(2σ²), ε or ε²/8, and ε·tanh(ε/2).

    def noise(self, l1: float, l2: float, grid: float = 1.0) -> Laplace | Gaussian:
        """Noise on values of these sensitivities: Laplace by ℓ1 where δ = 0, else Gaussian by ℓ2."""
        if self.budget.pure:
            return Laplace(l1, l1 / self.left, grid)
        return self.gaussian(l2, grid)

    def gaussian(self, sensitivity: float, grid: float = 1.0) -> Gaussian:
        return Gaussian(sensitivity, sensitivity / math.sqrt(2 * self.left), grid)

    def count(self) -> Laplace | Gaussian:
        """Noise on a number of rows."""
        return self.noise(self.budget.linear(), self.budget.linear())

    def marginal(self) -> Laplace | Gaussian:
        """Noise on a whole table of counts."""
        return self.noise(self.budget.marginal_l1(), self.budget.marginal_l2())

    def choice(self, sensitivity: float) -> Exponential:
        """A choice by scores of this sensitivity."""
        return Exponential(sensitivity, self.left if self.budget.pure else math.sqrt(8 * self.left))

    def round_epsilon(self, rounds: int = 1) -> float:
        """The ε of each of so many guard rounds, or of so many (ε, δ) steps: ε·tanh(ε/2) = ρ inverted, rounded down."""
        cost = self.left / rounds
        if self.budget.pure:
            return cost
        low, high = math.sqrt(2 * cost), math.sqrt(2 * cost) + cost + 1  # ε²/2 ≥ ε·tanh(ε/2) ≥ ε − 1 … either side of ρ
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if middle * math.tanh(middle / 2) <= cost else (low, middle)
        return low

    @property
    def mu(self) -> float:
        """√T·Δ/σ of the Gaussian noise that uses all of it: √(2ρ); by the analytic formula where it is a whole Budget."""
        self._require_delta("Gaussian noise")
        if self.whole:  # μ for a person is kμ for a row (Dong, Roth & Su, Theorem 2.14)
            μ = gaussian_mu(self.budget.epsilon * (1 - _MARGIN), self.budget.delta * (1 - _MARGIN))
            return μ / self.budget.rows_per_unit
        return math.sqrt(2 * self.left) * (1 - 1e-12)

    def fine_gaussian(self, sensitivity: float, values: int, steps: int = 1, share: float = 1.0) -> Gaussian:
        """The noise of each of `steps` releases of so many values off the grid, each of this ℓ2 sensitivity, for a share."""
        exact, per_change = sensitivity * (1 + _FINE / 2), math.sqrt(steps / share) / self.mu
        # A millionth of the sensitivity, but no finer than keeps the noise below 2^40 steps, and no coarser than the analytic formula takes.
        σ = exact * per_change
        finest, coarsest = σ * 2.0**-39, σ * _CONTINUOUS / 2
        grid = grid_at_most(min(max(sensitivity * _FINE / 2 / math.sqrt(values), finest), coarsest))
        Δ = exact + math.sqrt(values) * grid
        return Gaussian(Δ, per_change * Δ, grid)

    def approximate(self) -> tuple[float, float]:
        """(ε, δ) of one step that uses all there is; in a ledger, what ρ and its slack allow."""
        self._require_delta("an (epsilon, delta) step")
        if self.whole:
            return self.budget.of_a_row
        if self.slack <= 0:
            raise BudgetExceeded(
                "The accountant must have slack in delta for an (epsilon, delta) step. Found none. Open it with "
                "Accountant(budget, slack=…), or use a solver with Gaussian noise."
            )
        ρ = self.left
        ε = float(scipy.optimize.brentq(lambda ε: ε * math.tanh(ε / 2) - ρ, 0.0, ρ + 2 * math.sqrt(ρ) + 1, rtol=1e-13))
        return ε * (1 - 1e-11), self.slack

    def _require_delta(self, purpose: str) -> None:
        if self.budget.pure:
            raise InvalidInput(
                f"delta must be above 0 for {purpose}. Found 0. Give a delta, or use Frank–Wolfe, which needs none."
            )


@final
class OneCall(Ledger):
    """A Budget that pays for the events of one call, charged together; costs and what was spent are then its ε."""

    @property
    def spent(self) -> float:
        return math.fsum(entry.cost for entry in self.entries())

    @property
    def spent_epsilon(self) -> float:
        """As certified: sharper than the bounds that hold for any list of events."""
        return self.spent

    @property
    def remaining(self) -> float:
        """In the budget's currency: all of it, or nothing once the call is paid."""
        return 0.0 if self.entries() else self.budget.total

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget!r}, spent={self.spent:.4g} epsilon)"

    def _admitted(self, planned: tuple[Event, ...], costs: list[float]) -> float:
        if self.entries():
            raise BudgetExceeded("A payment must be made once. Found a second. Charge all events of the call together.")
        ε, δ, k = self.budget.epsilon, self.budget.delta, self.budget.rows_per_unit
        if planned and not self.budget.pure and all(map(_is_continuous, planned)):
            mu = k * math.sqrt(math.fsum(2 * event.rho * count for event, count in Counter(planned).items()))
            if gaussian_delta(mu, ε * (1 - _MARGIN)) <= δ * (1 - _MARGIN):
                return min(ε, gaussian_epsilon(mu, δ * (1 - _MARGIN), ε) / (1 - _MARGIN))
        if len(planned) == 1 and planned[0].delta > 0:
            ε0, δ0 = self.budget.of_a_row
            if planned[0].epsilon <= ε0 * (1 + 1e-12) and planned[0].delta <= δ0 * (1 + 1e-12):
                return k * planned[0].epsilon
            raise BudgetExceeded(
                f"cost must be at most epsilon = {ε0:.4g} and delta = {δ0:.4g}. Found {planned[0].epsilon:.4g} and "
                f"{planned[0].delta:.4g}. Ask for less."
            )
        accountant = Accountant(self.budget, slack=math.fsum(event.delta for event in planned))
        accountant.charge(*planned)
        return accountant.spent_epsilon


def _is_continuous(event: Event) -> bool:
    return isinstance(event, Gaussian) and event.grid <= _CONTINUOUS * event.sigma


@final
class Allowance(Amount):
    """So much of a ledger's currency, for one purpose. ``left`` of it falls with what is carved out and charged."""

    def __init__(self, ledger: Ledger, amount: float, *, whole: bool = False) -> None:
        super().__init__(ledger.budget, amount, whole=whole, slack=ledger.slack)
        self.ledger = ledger
        self._fit = amount * float(FIT)  # once, for all that rounding adds to the parts

    @classmethod
    def of(cls, payer: Payer, spend: float | None = None) -> Allowance:
        """All of a Budget; or all that is left in a ledger, a session's for one, or ``spend`` of it."""
        if isinstance(payer, Budget):
            if spend is not None:
                raise InvalidInput(
                    "spend must be left out with a Budget, which pays for one call. Found a value. Drop it."
                )
            return cls(OneCall(payer), payer.total, whole=True)
        ledger = payer if isinstance(payer, Ledger) else getattr(payer, "ledger", None)
        if not isinstance(ledger, Ledger):
            raise InvalidInput(
                f"budget must be a Budget or an Accountant, or a session, which has one. Found a {type(payer).__name__}. "
                "Make one: Budget(1.0, 1e-6)."
            )
        share = ledger.remaining if spend is None else positive("spend", spend)
        if ledger.remaining <= 1e-9 * ledger.budget.total:  # what rounding left over buys nothing but noise
            raise BudgetExceeded(
                f"The accountant must have {ledger.budget.currency} left. Found none of {ledger.budget.total:.4g}. Stop here."
            )
        if share > ledger.remaining * (1 + 1e-12):
            raise BudgetExceeded(
                f"spend must be at most {ledger.budget.currency} = {ledger.remaining:.4g}, what is left. Found {share:.4g}. "
                "Spend less, or stop here."
            )
        return cls(ledger, share)

    def quote(self) -> Amount:
        """What it buys as of now, to plan with: what is charged later leaves it as it is."""
        return Amount(self.budget, self.left, whole=self.whole, slack=self.slack)

    def carve(self, amount: float) -> Allowance:
        """So much of it, set aside. Refused beyond what is left."""
        if not 0 <= amount <= self.left + self._fit:
            raise BudgetExceeded(
                f"A part must be at most {self.budget.currency} = {self.left:.4g}, what is left. Found {amount:.4g}. "
                "Set less aside, or stop here."
            )
        self.left -= amount
        return Allowance(self.ledger, amount)

    def charge(
        self, *planned: Event, why: str = "", about: Mapping[str, Any] | None = None, keep: bool = True
    ) -> Receipt:
        """Pay for the events from here, all or none. Refused beyond what is left, whatever the ledger has."""
        if not self.whole:  # ``OneCall`` certifies all events together
            cost = math.fsum(map(self.budget.cost, planned))
            if cost > self.left + self._fit and math.isfinite(cost):
                raise BudgetExceeded(
                    f"cost must be at most {self.budget.currency} = {self.left:.4g}, what is left. Found {cost:.4g}. "
                    "Spend less, or stop here."
                )
        receipt = self.ledger.charge(*planned, why=why, about=about, keep=keep)
        self.left, self.slack = 0.0 if self.whole else self.left - receipt.cost, self.ledger.slack
        return receipt

    def charge_planned(
        self, *events: Gaussian, share: float, finest: float, why: str = "", about: Mapping[str, Any] | None = None
    ) -> tuple[list[Gaussian], Receipt]:
        """Pay for the events, or for less noise at their cost where the ledger lets this share of it be planned: what to draw, with its receipt."""
        less = [planned for event in events if (planned := self.budget.planned(event, share, finest)) is not None]
        if less:  # then all of them
            # Refused where something else was charged first, or where a crash lost some of it: then as it is, from all else.
            with contextlib.suppress(BudgetExceeded):
                return [planned.event for planned in less], self.charge(*less, why=why, about=about)
        return [*events], self.charge(*events, why=why, about=about)
