"""The privacy budget, the sensitivities its neighbours imply, and the filter that refuses before anything is drawn.

Papers: Bun & Steinke "Concentrated differential privacy"; Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy" (Proposition 12, the conversion that dp-accounting computes); Feldman & Zrnic "Individual privacy
accounting via a Rényi filter" (costs may be chosen adaptively, each fixed from public facts before its draw).

Symbols: ε, δ the budget; ρ zCDP loss; α a Rényi order; S, L bounds on a bounded query and on a gradient.
Currency: ε, added up, when δ = 0; ρ otherwise.

Differs: every sensitivity is worked out here, under our own neighbours, and dp-accounting only ever sees a noise
multiplier with its default (add-or-remove) relation. Its replace-one relation doubles the sensitivity of a Gaussian in
one accountant and not in the other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, final, get_args

import numpy as np

from hedgerow import errors
from hedgerow._checks import number, positive
from hedgerow.privacy import events
from hedgerow.privacy.events import Event
from hedgerow.privacy.process import Home, OneOnly

Neighbours = Literal["replace", "add-remove"]

_FIT = Fraction(1, 10**12)
"""Share of the total by which a sum may exceed it: costs carry rounding errors, and an exact fit must pass."""


@final
@dataclasses.dataclass(frozen=True)
class Budget:
    """(ε, δ) for everything that will ever be released, and what "neighbouring tables" means.

    "replace": one row changes and the number of rows is public. "add-remove": one row comes or goes.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replace"

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

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def currency(self) -> str:
        return "epsilon" if self.pure else "rho"

    @property
    def total(self) -> float:
        """All there is to spend, in the currency."""
        return self.epsilon if self.pure else self.rho()

    def rho(self, slack: float = 0.0) -> float:
        """The largest ρ such that ρ-zCDP implies (ε, δ − slack)-DP, rounded down."""
        if self.pure:
            raise errors.InvalidInput("delta must be above 0 to count in rho. Found 0. Use epsilon, or give a delta.")
        if not 0 <= slack < self.delta:
            raise errors.InvalidInput(
                f"slack must be at least 0 and below delta = {self.delta!r}. Found {slack!r}. Reserve less."
            )
        return _largest_rho(self.epsilon, self.delta - slack)

    def cost(self, event: Event) -> float:
        """What the event costs in the currency; infinite if the currency cannot pay for it."""
        if type(event) not in events.KINDS.values():
            raise errors.InvalidInput(
                f"event must be one of {', '.join(events.KINDS)}. Found a {type(event).__name__}. "
                "Describe what will be drawn by one of these."
            )
        if self.pure and event.delta > 0:
            return math.inf
        cost = event.epsilon if self.pure else event.rho
        return cost if cost > 0 else math.inf  # also for NaN: what cannot be priced cannot be paid

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
        """The centred table of counts on attributes of these sizes (docs/proofs/residuals.md); ℓ2.

        A row is a tensor product of centred unit vectors: norm² Π(1 − 1/m). Two rows have the inner product
        Π(1 − 1/m) over attributes on which they agree times Π(−1/m) over those on which they differ.
        """
        own = math.prod(1 - 1 / m for m in sizes)
        if self.neighbours == "add-remove":
            return math.sqrt(own)
        least = min(
            math.prod(-1 / m if differs else 1 - 1 / m for m, differs in zip(sizes, which, strict=True))
            for which in itertools.product((False, True), repeat=len(sizes))
            if any(which)
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


class Accountant(OneOnly):
    """A filter: adaptively chosen events pass as long as the sum of their costs stays within the budget.

    `slack` is the part of δ set aside, once and for all, for events that have a δ of their own; the rest of δ converts
    to ρ. Both sums are filtered (Whitehouse et al. "Fully adaptive composition in differential privacy", Theorem 1).

    There is one of it: copies are itself, pickles and forks of its process are refused, and threads take turns.
    """

    def __init__(self, budget: Budget, slack: float = 0.0) -> None:
        if type(budget) is not Budget:  # another type could price events as it likes
            raise errors.InvalidInput(
                f"budget must be a Budget. Found a {type(budget).__name__}. Make one: Budget(1.0, 1e-6)."
            )
        self._budget = budget
        self._total = Fraction(budget.total if slack == 0 else budget.rho(slack))
        self._slack, self._failing = Fraction(slack), Fraction(0)
        self._spent = Fraction(0)  # exact, so that many small costs do not drown in rounding
        self._events: list[Event] = []
        self._counts: dict[Event, int] = {}
        self._turn, self._charging = _Turn(), threading.Lock()

    @property
    def budget(self) -> Budget:
        return self._budget

    def exclusively(self) -> contextlib.AbstractContextManager[None]:
        """`with accountant.exclusively():` no other thread charges or asks meanwhile. Refused in a fork.

        A mechanism holds it for a whole question, so that no other comes between what it reads, compares, charges,
        draws and remembers. It may be nested.
        """
        return self._turn

    @property
    def spent(self) -> float:
        return float(self._spent)

    @property
    def remaining(self) -> float:
        return max(0.0, float(self._total - self._spent))

    @property
    def slack(self) -> float:
        """What is left of the δ set aside."""
        return max(0.0, float(self._slack - self._failing))

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def affords(self, *planned: Event) -> bool:
        """Whether all these events would pass, together."""
        costs = [self.budget.cost(event) for event in planned]
        if not all(map(math.isfinite, costs)):
            return False
        failing = sum((Fraction(event.delta) for event in planned), self._failing)
        return failing <= self._slack * (1 + _FIT) and self._fits(sum(map(Fraction, costs), Fraction(0)))

    def charge(self, event: Event) -> None:
        """Record the event, or refuse it. Call before drawing: what was charged is spent, drawn or not."""
        cost = self.budget.cost(event)
        with self.exclusively(), self._alone():
            if not math.isfinite(cost):
                raise errors.BudgetExceeded(
                    f"cost must be finite in {self.budget.currency}. Found infinity for {type(event).__name__} noise, "
                    f"which a budget with delta = {self.budget.delta:g} cannot pay for. Use Laplace noise, or give a delta above 0."
                )
            if not self._fits(Fraction(cost)):
                raise errors.BudgetExceeded(
                    f"cost must be at most {self.budget.currency} = {self.remaining:.4g} (what is left of "
                    f"{float(self._total):.4g}). Found {cost:.4g}. Ask for a looser error, or stop here."
                )
            if self._failing + Fraction(event.delta) > self._slack * (1 + _FIT):
                raise errors.BudgetExceeded(
                    f"delta must be at most {float(self._slack - self._failing):.4g} (what is left of the slack). "
                    f"Found {event.delta:.4g}. Open the accountant with a larger slack."
                )
            self._spent += Fraction(cost)  # first: an interrupt from here on counts too much, never too little
            self._failing += Fraction(event.delta)
            self._events.append(event)
            self._counts[event] = self._counts.get(event, 0) + 1

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Not even within a charge of the same thread, as a signal's handler would be: it would see the old sum."""
        if not self._charging.acquire(blocking=False):
            raise errors.InvalidInput("A charge must end before the next. Found one within another. Ask after it.")
        try:
            yield
        finally:
            self._charging.release()

    def _fits(self, cost: Fraction) -> bool:
        return self._spent + cost <= self._total * (1 + _FIT)

    @property
    def spent_epsilon(self) -> float:
        """The ε, at the budget's δ, of the recorded events: the smallest of the bounds at hand.

        Bounds: the sum of ε; the conversion of the sum of ρ; dp-accounting's Rényi accountant on `dp_event()`. The
        last two read the events as a list fixed beforehand: the promise made to the data is the budget, not this.
        """
        if not self._events:
            return 0.0
        basic = math.fsum(event.epsilon * count for event, count in list(self._counts.items()))
        if self.budget.pure:
            return basic
        delta = self.budget.delta - float(self._failing)
        renyi = _renyi_epsilon(self.dp_event(), delta)
        return min(basic, _epsilon_of_rho(self.spent, delta), renyi)

    def dp_event(self) -> Any:
        """The recorded events for dp-accounting, equal ones grouped, under its default neighbouring relation.

        Gaussian: GaussianDpEvent(σ/Δ). Laplace: LaplaceDpEvent(1/ε'), ε' = ε + 2 ln cosh(ε/2): a continuous Laplace
        of loss ε' dominates every ε-DP mechanism, while one of loss ε does not dominate the discrete noise we draw.
        AboveThreshold, Exponential and a Laplace of ε below 1e-6: ZCDpEvent(ρ), for there is no native event
        (docs/proofs/accounting.md). ApproximateDP: the same, without its δ, which no event there can carry: ask for
        an ε at δ less the sum of theirs.
        """
        dp = _dp_accounting()
        grouped = [dp.SelfComposedDpEvent(_dp_event(event), count) for event, count in list(self._counts.items())]
        return dp.ComposedDpEvent(grouped) if grouped else dp.NoOpDpEvent()

    def __repr__(self) -> str:
        return f"Accountant({self.budget!r}, spent={self.spent:.4g} {self.budget.currency})"


class _Turn:
    """The lock of an account, taken only in the account's process."""

    def __init__(self) -> None:
        self._home, self._lock = Home(), threading.RLock()

    def __enter__(self) -> None:
        # before the lock, which in a fork may be held by a thread that is not there
        self._home.require("An account", "Ask there, and pass on the answers.")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class _Accountable(Protocol):
    @property
    def _accountant(self) -> Accountant: ...


_Self = TypeVar("_Self", bound=_Accountable)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def one_at_a_time(
    method: Callable[Concatenate[_Self, _Given], _Answer],
) -> Callable[Concatenate[_Self, _Given], _Answer]:
    """A question to a mechanism: asked while it has its account to itself."""

    @functools.wraps(method)
    def alone(self: _Self, /, *given: _Given.args, **named: _Given.kwargs) -> _Answer:
        with self._accountant.exclusively():
            return method(self, *given, **named)

    return alone


def _dp_event(event: Event) -> Any:
    dp = _dp_accounting()
    match event:
        case events.Gaussian():
            return dp.GaussianDpEvent(event.sigma / event.sensitivity)
        case events.Laplace() if event.epsilon > 1e-6:  # below, its Rényi formula would lose digits to cancellation
            return dp.LaplaceDpEvent(1 / _dominating_laplace(event.epsilon))
        case _:
            return dp.ZCDpEvent(event.rho)


def _dominating_laplace(ε: float) -> float:
    """The loss ε' of the continuous Laplace mechanism whose trade-off curve lies below that of every ε-DP mechanism."""
    return 2 * ε + 2 * (math.log1p(math.exp(-ε)) - math.log(2)) if ε > 1e-3 else ε + ε**2 / 4


def _dp_accounting() -> Any:
    """dp-accounting takes two seconds to import, so it waits for the first budget with δ > 0."""
    return importlib.import_module("dp_accounting")


# Any set of orders gives a valid bound; these only have to contain one close to the best.
_COARSE = tuple(1 + np.concatenate([[0.0], np.geomspace(0.02, 1e12, 250)]))


def _around(order: float) -> tuple[float, ...]:
    return tuple(1 + (order - 1) * np.geomspace(1 / 1.2, 1.2, 121)) if order > 1 else (order,)


def _epsilon_of_rho(ρ: float, delta: float) -> float:
    """The smallest known ε such that ρ-zCDP implies (ε, delta)-DP."""
    compute_epsilon = _dp_accounting().rdp.compute_epsilon
    coarse, order = compute_epsilon(_COARSE, [ρ * α for α in _COARSE], delta)
    fine, _ = compute_epsilon(_around(order), [ρ * α for α in _around(order)], delta)
    return float(min(coarse, fine))


def _renyi_epsilon(dp_event: Any, delta: float) -> float:
    accountant = _dp_accounting().rdp.RdpAccountant
    coarse, order = accountant(_COARSE[1:]).compose(dp_event).get_epsilon_and_optimal_order(delta)
    return float(min(coarse, accountant(_around(order)).compose(dp_event).get_epsilon(delta)))


@functools.lru_cache(maxsize=256)
def _largest_rho(epsilon: float, delta: float) -> float:
    low, high = 0.0, epsilon
    while _epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low * (1 - 1e-11)  # below the root by more than the conversion's rounding and the tolerance of a fit


@functools.lru_cache(maxsize=64)
def subsampled_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least σ/Δ at which `steps` Gaussian releases are (epsilon, delta)-private, each of a sum over a fresh Poisson
    sample at the rate, where neighbours add or remove one row that moves the sum by at most Δ; rounded up.

    By the Rényi divergence of the subsampled Gaussian (Mironov, Talwar & Zhang), composed over the steps.
    """
    dp = _dp_accounting()
    orders = (*range(2, 33), *range(34, 64, 2), 72, 80, 96, 112, 128, 160, 192, 256, 384, 512)  # whole: others are slow

    def reached(multiplier: float) -> float:
        sampled = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
        return float(dp.rdp.RdpAccountant(orders).compose(sampled, steps).get_epsilon(delta))

    high = 1.0
    while reached(high) > epsilon:
        high *= 2
    low = high / 2
    while reached(low) <= epsilon:
        low, high = low / 2, low
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) <= epsilon else (middle, high)
    return high
