"""Conversions between ε, δ, zCDP and Rényi divergences. This is the only module that uses dp-accounting.

Papers: Bun & Steinke "Concentrated differential privacy"; Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy" (Proposition 12, from ρ to ε; it agrees with dp-accounting to 1e-12); Mironov, Talwar & Zhang
"Rényi differential privacy of the sampled Gaussian mechanism"; Balle & Wang "Improving the Gaussian mechanism for
differential privacy" (the analytic Gaussian).

Symbols: ε, δ; ρ zCDP loss; α a Rényi order; μ = Δ/σ of a Gaussian.

Differs: every sensitivity is worked out in ``budget``, under our own definition of neighbours. dp-accounting only sees
noise multipliers, under its default relation (add or remove one row). Its replace-one relation doubles the sensitivity
of a Gaussian in one of its accountants and not in the other.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hedgerow import _scipy as scipy
from hedgerow._types import Array
from hedgerow.privacy import events
from hedgerow.privacy.events import Event
from hedgerow.privacy.renyi_events import RenyiEvent


def dp_events(counts: Mapping[Event, int]) -> Any:
    """Return the events in dp-accounting's form, equal events grouped, under its default neighbouring relation.

    - Gaussian, planned or not: GaussianDpEvent(σ/Δ).
    - Laplace: LaplaceDpEvent(1/ε'), ε' = ε + 2 ln cosh(ε/2). A continuous Laplace of loss ε' dominates every ε-DP
      mechanism. A continuous Laplace of loss ε would not dominate the discrete noise that is drawn here.
    - AboveThreshold, Exponential, and Laplace with ε below 1e-6: ZCDpEvent(ρ), because dp-accounting has no native
      event for them (docs/proofs/accounting.md).
    - Events whose loss is known at some Rényi orders only: NonPrivateDpEvent, because dp-accounting has no event for
      them. `renyi_epsilon` has their divergences.
    - Events that are (ε, δ)-private by a proof of their own: ZCDpEvent(ρ), without their δ, which no event of
      dp-accounting can carry. Ask dp-accounting for the ε at δ less the sum of theirs.
    """
    dp = _dp_accounting()
    grouped = [dp.SelfComposedDpEvent(_dp_event(event), count) for event, count in counts.items()]
    return dp.ComposedDpEvent(grouped) if grouped else dp.NoOpDpEvent()


def _dp_event(event: Event) -> Any:
    """Return one event in dp-accounting's form."""
    dp = _dp_accounting()
    match event:
        case events.Planned():
            return _dp_event(event.event)
        case events.Gaussian():
            return dp.GaussianDpEvent(event.sigma / event.sensitivity)
        case events.Laplace() if event.epsilon > 1e-6:  # below this its Rényi formula would lose digits to cancellation
            return dp.LaplaceDpEvent(1 / _dominating_laplace(event.epsilon))
        case RenyiEvent():
            return dp.NonPrivateDpEvent()
        case _:
            return dp.ZCDpEvent(event.rho)


def _dominating_laplace(ε: float) -> float:
    """Return the loss ε' of the continuous Laplace whose trade-off curve lies below that of every ε-DP mechanism."""
    return 2 * ε + 2 * (math.log1p(math.exp(-ε)) - math.log(2)) if ε > 1e-3 else ε + ε**2 / 4


def _dp_accounting() -> Any:
    """Import dp-accounting when one of its accountants is first needed, because the import takes two seconds."""
    return importlib.import_module("dp_accounting")


# Rényi orders to try. Every order gives a valid bound, so the list only has to contain one close to the best.
_COARSE = 1 + np.concatenate([[0.0], np.geomspace(0.02, 1e12, 250)])


def _around(order: float) -> Array:
    """Return Rényi orders close to the given one."""
    return 1 + (order - 1) * np.geomspace(1 / 1.2, 1.2, 121) if order > 1 else np.array([order])


def epsilon_of_rho(ρ: float, delta: float) -> float:
    """Return the smallest known ε for which ρ-zCDP implies (ε, delta)-DP."""
    return _least_epsilon(lambda orders: ρ * orders, delta)


def renyi_epsilon(counts: Mapping[Event, int], delta: float) -> float:
    """Return the least ε, at delta, that the Rényi divergences of the events allow, as `dp_events` exports them."""

    def divergence(orders: Array) -> Array:
        return np.asarray(np.sum([count * _divergence(event, orders) for event, count in counts.items()], axis=0))

    return _least_epsilon(divergence, delta)


def _divergence(event: Event, orders: Array) -> Array:
    """Return the Rényi divergence of an event at each order α, as dp-accounting has it for the event's exported form.

    Gaussian: α·Δ²/2σ². Laplace of loss ε: ε + ln(1 + (α − 1)·(e^((1 − 2α)ε) − 1)/(2α − 1))/(α − 1). All others: αρ.
    """
    match event:
        case events.Planned():
            return _divergence(event.event, orders)
        case events.Gaussian():
            return np.asarray(orders * (event.sensitivity / event.sigma) ** 2 / 2)
        case events.Laplace() if event.epsilon > 1e-6:
            ε, α = _dominating_laplace(event.epsilon), np.where(orders > 1, orders, 2.0)
            excess = (α - 1) * np.expm1((1 - 2 * α) * ε) / (2 * α - 1)
            return np.where(orders > 1, ε + np.log1p(excess) / (α - 1), ε + math.expm1(-ε))
        case RenyiEvent():
            return np.array([event.divergence(order) for order in orders.tolist()])
    return np.asarray(orders * event.rho)


def _least_epsilon(divergence: Callable[[Array], Array], delta: float) -> float:
    """Return the least ε over Rényi orders: first over all orders coarsely, then finely around the best."""
    return _least_epsilon_and_order(divergence, delta)[0]


def _least_epsilon_and_order(divergence: Callable[[Array], Array], delta: float) -> tuple[float, float]:
    """Return the least ε over Rényi orders, and the order that gives it."""
    coarse = _epsilon_and_order(_COARSE, divergence(_COARSE), delta)
    near = _around(coarse[1])
    return min(coarse, _epsilon_and_order(near, divergence(near), delta))


def _epsilon_and_order(orders: Array, divergences: Array, delta: float) -> tuple[float, float]:
    """Return the least ε over these Rényi orders α with divergences D, and the order that gives it.

    ε(α) = D + ln(1 − 1/α) − ln(δα)/(α − 1) (Canonne, Kamath & Steinke, Proposition 12). Where δ² > 1 − e^(−D) the total
    variation distance is below δ by the Bretagnolle–Huber inequality, so ε is 0. Orders near α = 1 are skipped, because
    there the formula loses its digits to cancellation.
    """
    if delta == 0:
        return (0.0 if not divergences.any() else math.inf), 1.0
    far = orders > 1.01
    α = np.where(far, orders, 2.0)
    ε = np.where(far, divergences + np.log1p(-1 / α) - np.log(delta * α) / (α - 1), math.inf)
    ε = np.where(delta**2 + np.expm1(-divergences) > 0, 0.0, np.maximum(ε, 0.0))
    best = int(np.argmin(ε))
    return float(ε[best]), float(orders[best])


@functools.lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ for which ρ-zCDP implies (epsilon, delta)-DP, rounded down."""
    low, high = 0.0, epsilon
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    # Below the root by more than the rounding of the conversion and the ledger's tolerance FIT.
    return low * (1 - 1e-11)


@functools.lru_cache(maxsize=256)
def order_of(epsilon: float, delta: float) -> float:
    """Return the Rényi order α at which ``largest_rho`` converts to epsilon.

    A sum of divergences of at most α·ρ at this one order implies (epsilon, delta)-DP, with ρ = ``largest_rho``.
    """
    ρ = largest_rho(epsilon, delta)
    return _least_epsilon_and_order(lambda orders: ρ * orders, delta)[1]


# Orders for the subsampled Gaussian. They are whole numbers, for which the divergence is a sum of positive terms.
_SAMPLED = (
    *range(2, 33),
    *range(34, 64, 2),
    72,
    80,
    96,
    112,
    128,
    160,
    192,
    256,
    384,
    512,
    *(1 << k for k in range(10, 15)),
)


@functools.lru_cache(maxsize=64)
def subsampled_epsilon(multiplier: float, delta: float, rate: float, steps: int) -> float:
    """Return the ε, at delta, of ``steps`` Gaussian releases, each of a sum over a fresh Poisson sample.

    ``multiplier`` is σ/Δ and ``rate`` the probability that a row is in a sample. Neighbours add or remove one row,
    which changes a sum by at most Δ. The bound is the Rényi divergence of the subsampled Gaussian (Mironov, Talwar &
    Zhang), composed over the steps.
    """
    divergences = steps * np.array([_sampled_divergence(α, multiplier, rate) for α in _SAMPLED])
    return _epsilon_and_order(np.array(_SAMPLED, dtype=float), divergences, delta)[0]


@np.errstate(all="ignore")  # a value beyond float64 becomes NaN, which the callers refuse
def _sampled_divergence(order: int, multiplier: float, rate: float) -> float:
    """Return D_α of one step at a whole order α: (α − 1)⁻¹·ln Σ_i C(α, i)·(1 − q)^(α − i)·q^i·e^((i² − i)/2z²).

    Without the exponential factor the sum is 1, and for i < 2 that factor is 1. So the sum is 1 plus the terms i ≥ 2
    with e^x − 1 in place of e^x. All of these are positive, and no digit is lost however small the rate. This matters,
    because a loss that is rounded down to zero would be free.

    Differs: dp-accounting takes the logarithm of the sum itself. Where rounding makes that logarithm negative, it
    reports an ε of 0.
    """
    z, q, α = multiplier, rate, order
    if q == 1:
        return α / (2 * z**2)
    i = np.arange(2.0, α + 1)
    x = (i * i - i) / (2 * z * z)
    ln_gamma = scipy.special.gammaln
    chosen = ln_gamma(α + 1) - ln_gamma(i + 1) - ln_gamma(α - i + 1) + i * math.log(q) + (α - i) * math.log1p(-q)
    logs = chosen + np.where(x < 1, np.log(np.expm1(np.minimum(x, 1.0))), x + np.log(-np.expm1(-np.maximum(x, 1.0))))
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))  # ln Σ of the terms
    return (math.log1p(math.exp(total)) if total < 30 else total) / (α - 1)


@functools.lru_cache(maxsize=64)
def subsampled_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Return the least noise multiplier for which `subsampled_epsilon` is at most epsilon, rounded up."""
    high = 1.0
    while subsampled_epsilon(high, delta, rate, steps) > epsilon:
        high *= 2
    low = high / 2
    while subsampled_epsilon(low, delta, rate, steps) <= epsilon:
        low, high = low / 2, low
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if subsampled_epsilon(middle, delta, rate, steps) <= epsilon else (middle, high)
    return high


# The exact privacy of a single Gaussian mechanism


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the least δ at which a Gaussian mechanism of Δ/σ = mu is (epsilon, δ)-DP (Balle & Wang, Theorem 8)."""
    return float(
        scipy.special.ndtr(mu / 2 - epsilon / mu)
        - math.exp(min(epsilon + scipy.special.log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    )


@functools.lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest Δ/σ that is (epsilon, delta)-private, rounded down."""
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    low = high
    while gaussian_delta(low, epsilon) > delta:
        low /= 2
    root = float(
        scipy.optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-13)
    )
    return root * (1 - 1e-9)


def gaussian_epsilon(mu: float, delta: float, highest: float) -> float:
    """Return the least ε at which a Gaussian mechanism of Δ/σ = mu is (ε, delta)-DP; it must be at most ``highest``."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return float(scipy.optimize.brentq(lambda ε: gaussian_delta(mu, ε) - delta, 0.0, highest, xtol=1e-300, rtol=1e-12))
