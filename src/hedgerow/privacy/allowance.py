"""Reserve, divide and spend parts of a budget, and work out the noise that each part buys.

Papers: Balle & Wang "Improving the Gaussian mechanism for differential privacy" (the analytic Gaussian); Dong, Roth &
Su "Gaussian differential privacy" (T adaptive Gaussian releases of sensitivity Δ and noise σ are one release with μ =
√T·Δ/σ).

Symbols: Δ sensitivity; b, σ the scale of Laplace and Gaussian noise; T the number of releases; μ = √T·Δ/σ; c the amount
spent, in the budget's currency.

An allowance of a ledger is charged to that ledger, event by event, in the ledger's currency. A ``Budget`` that pays for
one call and nothing else becomes a ledger of its own, ``OneCallLedger``, which certifies the call as a whole:

- Gaussian noise by the analytic formula δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). It allows less noise than any
  conversion through ρ (7 % less at ε = 1, δ = 10⁻⁶).
- A single (ε₀, δ₀) step by its own ε₀ and δ₀.
- Any other list of events by the sum of their ρ.

All noise lies on a grid. Values off the grid are rounded to it, which adds up to √p·grid to Δ for p values.
``fine_gaussian`` chooses the grid so that this is a millionth of Δ. On so fine a grid the discrete Gaussian equals a
rounded continuous Gaussian up to factors 1 ± 10⁻⁹ on its probabilities, and `_MARGIN` of ε and δ pays for that
difference (docs/proofs/erm_mirror_descent.md).

``advise`` warns about a budget that is probably a mistake. The warnings rest on public facts alone: the budget, the
universe, and the number of rows where that is public.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

from hedgerow import _scipy as scipy
from hedgerow._checks import positive
from hedgerow.errors import BudgetExceeded, InvalidInput, PublicWarning
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_delta, gaussian_epsilon, gaussian_mu
from hedgerow.privacy.events import Event, Exponential, Gaussian, Laplace, grid_at_most
from hedgerow.privacy.filter import FIT, Filter
from hedgerow.privacy.ledger import Accountant, HasLedger, Ledger, LedgerParts
from hedgerow.privacy.log import Entry
from hedgerow.privacy.receipt import Receipt
from hedgerow.privacy.renyi_events import hit_divergence

Payer = Budget | Ledger | HasLedger

_MARGIN = 1e-6  # share of ε and δ kept for the difference between the discrete and the continuous Gaussian
_CONTINUOUS = 1e-5  # the coarsest grid, as a share of σ, on which the analytic formula describes the discrete noise
_FINE = 1e-6  # relative increase of Δ: one half for rounding to the grid, one half for rounding of clipped norms


class Amount:
    """An amount of a budget's currency for planning, with the noise that it buys.

    An ``Amount`` cannot pay for anything. Only an ``Allowance`` can.
    """

    def __init__(self, budget: Budget, left: float, *, whole: bool = False, slack: float = 0.0) -> None:
        """Describe ``left`` units of the budget's currency.

        ``whole`` means that a whole Budget pays for one call, so that Gaussian noise is priced by the analytic formula.
        ``slack`` is the δ available to steps that have a δ of their own.
        """
        self.budget, self.left, self.whole, self.slack = budget, left, whole, slack

    @staticmethod
    def share_of(budget: Budget, share: float = 1.0) -> Amount:
        """Return this share of the budget's total."""
        return Amount(budget, share * budget.total)

    def part(self, share: float) -> Amount:
        """Return this share of what is left."""
        return Amount(self.budget, share * self.left)

    # Each method below spends all that is left on one event. The cost c is Δ/b for Laplace noise, Δ²/(2σ²) for Gaussian
    # noise, ε or ε²/8 for a choice, and ε·tanh(ε/2) for a guard round.

    def noise(self, l1: float, l2: float, grid: float = 1.0) -> Laplace | Gaussian:
        """Return noise for values of these sensitivities: Laplace by ``l1`` where δ = 0, else Gaussian by ``l2``."""
        if self.budget.pure:
            return Laplace(l1, l1 / self.left, grid)
        return self.gaussian(l2, grid)

    def gaussian(self, sensitivity: float, grid: float = 1.0) -> Gaussian:
        """Return Gaussian noise for values of this ℓ2 sensitivity."""
        return Gaussian(sensitivity, sensitivity / math.sqrt(2 * self.left), grid)

    def count(self) -> Laplace | Gaussian:
        """Return the noise for a number of rows."""
        return self.noise(self.budget.linear(), self.budget.linear())

    def marginal(self) -> Laplace | Gaussian:
        """Return the noise for a whole table of counts."""
        return self.noise(self.budget.marginal_l1(), self.budget.marginal_l2())

    def choice(self, sensitivity: float) -> Exponential:
        """Return the event of a choice by scores of this sensitivity."""
        return Exponential(sensitivity, self.left if self.budget.pure else math.sqrt(8 * self.left))

    def round_epsilon(self, rounds: int = 1) -> float:
        """Return the ε of each of ``rounds`` equal guard rounds, or of as many (ε, δ) steps.

        In the currency ρ this is the solution of ε·tanh(ε/2) = ρ/rounds, rounded down.
        """
        cost = self.left / rounds
        if self.budget.pure:
            return cost
        low, high = math.sqrt(2 * cost), math.sqrt(2 * cost) + cost + 1  # a bracket: ε²/2 ≥ ε·tanh(ε/2) ≥ ε − 1
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if middle * math.tanh(middle / 2) <= cost else (low, middle)
        return low

    def hit_epsilon(self, rounds: int = 1) -> float:
        """Return the ε of the tests in each of ``rounds`` equal rounds of hits, rounded down."""
        order, cost = self.budget.order, self.left / rounds
        low, high = 0.0, math.log(2.0) / order + 1.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if hit_divergence(middle, order) / order <= cost else (low, middle)
        return low

    @property
    def mu(self) -> float:
        """√T·Δ/σ of the Gaussian noise that uses all that is left: √(2ρ), or the analytic value for a whole Budget."""
        self._require_delta("Gaussian noise")
        if self.whole:  # μ for one row is kμ for a person with k rows (Dong, Roth & Su, Theorem 2.14)
            μ = gaussian_mu(self.budget.epsilon * (1 - _MARGIN), self.budget.delta * (1 - _MARGIN))
            return μ / self.budget.rows_per_unit
        return math.sqrt(2 * self.left) * (1 - 1e-12)

    def fine_gaussian(self, sensitivity: float, values: int, steps: int = 1, share: float = 1.0) -> Gaussian:
        """Return the noise of each of ``steps`` releases on a fine grid, paid for by this share of what is left.

        Each release has ``values`` real values, which need not lie on the grid, and this ℓ2 sensitivity.
        """
        exact, per_change = sensitivity * (1 + _FINE / 2), math.sqrt(steps / share) / self.mu
        # The grid is a millionth of the sensitivity. It is no finer than keeps σ below 2^40 grid steps, and no coarser
        # than the analytic formula allows.
        σ = exact * per_change
        finest, coarsest = σ * 2.0**-39, σ * _CONTINUOUS / 2
        grid = grid_at_most(min(max(sensitivity * _FINE / 2 / math.sqrt(values), finest), coarsest))
        Δ = exact + math.sqrt(values) * grid
        return Gaussian(Δ, per_change * Δ, grid)

    def approximate(self) -> tuple[float, float]:
        """Return the (ε, δ) of one step that uses all that is left.

        For an amount of a ledger, ε is what ρ pays for and δ is the remaining slack.
        """
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
        """Refuse a purpose that needs δ above 0 where the budget has none."""
        if self.budget.pure:
            raise InvalidInput(
                f"delta must be above 0 for {purpose}. Found 0. Give a delta, or use Frank–Wolfe, which needs none."
            )


@final
class CallFilter(Filter):
    """A filter that admits one charge, and certifies all of its events together.

    Costs and spending are stated as the ε of the call.
    """

    _certified: float | None = None  # the ε of the call, once it is charged

    @property
    def spent(self) -> float:
        """The ε that the call has spent."""
        return self._certified or 0.0

    @property
    def spent_epsilon(self) -> float:
        """The certified ε of the call. It is sharper than the bounds that hold for every list of events."""
        return self.spent

    @property
    def remaining(self) -> float:
        """The amount left, in the budget's currency: all of it before the call is charged, and nothing afterwards."""
        return self.budget.total if self._certified is None else 0.0

    def count(self, entry: Entry) -> None:
        """Add the events of the call to the sums."""
        super().count(entry)
        self._certified = entry.cost

    def admit(self, planned: tuple[Event, ...], costs: Sequence[float]) -> float:
        """Return the ε of the events, or refuse them."""
        if self._certified is not None:
            raise BudgetExceeded(
                "A Budget must be charged once, for one call. Found a second charge. Charge all events of the call "
                "together."
            )
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


@final
class OneCallLedger(Ledger):
    """A ledger in which a Budget pays for one call, whose events are all charged together.

    Costs and spending are stated as the ε of the call.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__(LedgerParts.in_memory(CallFilter(budget)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget!r}, spent={self.spent:.4g} epsilon)"


def _is_continuous(event: Event) -> bool:
    return isinstance(event, Gaussian) and event.grid <= _CONTINUOUS * event.sigma


@final
class Allowance(Amount):
    """An amount of a ledger's currency, set aside for one purpose and able to pay.

    ``left`` falls with every part that is carved out and with every charge.
    """

    def __init__(self, ledger: Ledger, amount: float, *, whole: bool = False) -> None:
        super().__init__(ledger.budget, amount, whole=whole, slack=ledger.slack)
        self.ledger = ledger
        self._fit = amount * float(FIT)  # the tolerance for rounding in all parts and charges together

    @classmethod
    def of(cls, payer: Payer, spend: float | None = None) -> Allowance:
        """Return an allowance of everything that a payer has left, or of the amount ``spend``.

        The payer is a Budget, a ledger, or an object with a ledger, such as a session. A Budget always pays as a whole.
        """
        if isinstance(payer, Budget):
            if spend is not None:
                raise InvalidInput(
                    "spend must be left out with a Budget, which pays for one call. Found a value. Drop it."
                )
            return cls(OneCallLedger(payer), payer.total, whole=True)
        ledger = payer if isinstance(payer, Ledger) else getattr(payer, "ledger", None)
        if not isinstance(ledger, Ledger):
            raise InvalidInput(
                "budget must be a Budget or an Accountant, or a session, which has one. Found a "
                f"{type(payer).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        share = ledger.remaining if spend is None else positive("spend", spend)
        if ledger.remaining <= 1e-9 * ledger.budget.total:  # a remainder from rounding buys only enormous noise
            raise BudgetExceeded(
                f"The accountant must have {ledger.budget.currency} left. Found none of {ledger.budget.total:.4g}. "
                "Stop here."
            )
        if share > ledger.remaining * (1 + 1e-12):
            raise BudgetExceeded(
                f"spend must be at most {ledger.budget.currency} = {ledger.remaining:.4g}, what is left. Found "
                f"{share:.4g}. Spend less, or stop here."
            )
        return cls(ledger, share)

    def quote(self) -> Amount:
        """Return the amount left now, for planning. Later charges to the allowance do not change it."""
        return Amount(self.budget, self.left, whole=self.whole, slack=self.slack)

    def carve(self, amount: float) -> Allowance:
        """Set an amount aside as an allowance of its own. Refuse more than is left."""
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
        if not self.whole:  # ``OneCallLedger`` certifies all events together
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
        """Charge the events as planned noise if possible, otherwise as they are.

        Planned noise is smaller at the same cost. It is available where the ledger accepts this share of its budget as
        planned. Returns the events to draw, and their receipt.
        """
        less = [planned for event in events if (planned := self.budget.plan_noise(event, share, finest)) is not None]
        if less:  # then every event has a planned form
            # The ledger refuses planned noise if something else was charged first, or if a crash lost some of it. The
            # events are then charged as they are, to the rest of the budget.
            with contextlib.suppress(BudgetExceeded):
                return [planned.event for planned in less], self.charge(*less, why=why, about=about)
        return [*events], self.charge(*events, why=why, about=about)


LARGE_EPSILON = 10.0  # warn above this ε, which promises a person very little
LARGE_DELTA = 1e-3  # warn above this δ where the number of rows is private; otherwise the limit is 1 / rows


def advise(budget: Budget, rows: int | None, shape: Sequence[int], stacklevel: int = 3) -> None:
    """Warn about an ε or δ that promises little, and about a table that is too small for its universe.

    ``rows`` is the number of rows, or None where that number is private. ``shape`` is the number of cells of each
    attribute.
    """
    for words in advice(budget, rows, shape):
        warnings.warn(words, PublicWarning, stacklevel=stacklevel)


def advice(budget: Budget, rows: int | None, shape: Sequence[int]) -> list[str]:
    """Return the warnings of ``advise`` as a list of texts."""
    found = []
    if budget.epsilon > LARGE_EPSILON:
        found.append(
            f"epsilon should be at most {LARGE_EPSILON:g}. Found {budget.epsilon:g}, which lets odds about a person "
            f"change by a factor of e^{budget.epsilon:g}. Choose a smaller one, unless this is a test."
        )
    most = LARGE_DELTA if rows is None else 1 / rows
    if budget.delta > most:
        least = "a thousandth" if rows is None else f"1 / rows = {most:.3g}"
        found.append(
            f"delta should be far below {least}. Found {budget.delta:g}: a delta this large would even allow "
            "publishing the row of one person, chosen at random. Choose a smaller one."
        )
    if rows is not None:
        noise = Amount.share_of(budget, 1 / len(shape)).marginal()
        spread = noise.scale * 2**0.5 if isinstance(noise, Laplace) else noise.sigma
        if rows < spread * max(shape):
            found.append(
                f"The table should have at least {spread * max(shape):.3g} rows at this budget, for a universe whose "
                f"largest attribute has {max(shape)} cells. Found {rows}, so the noise of a cell exceeds the rows in "
                "it. Declare fewer or coarser attributes, or spend more."
            )
    return found
