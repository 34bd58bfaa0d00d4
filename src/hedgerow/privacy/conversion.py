"""Convert between ways of counting privacy: the only module that uses dp-accounting.

Papers: Bun & Steinke "Concentrated differential privacy"; Canonne, Kamath & Steinke "The discrete Gaussian for
differential privacy" (Proposition 12, from ρ to ε; the same as dp-accounting's, to 1e-12); Mironov, Talwar & Zhang "Rényi
differential privacy of the sampled Gaussian mechanism"; Balle & Wang "Improving the Gaussian mechanism for differential
privacy" (the analytic Gaussian).

Symbols: ε, δ; ρ zCDP loss; α a Rényi order; μ = Δ/σ of a Gaussian.

Differs: every sensitivity is worked out in ``budget``, under our own neighbours, and dp-accounting only ever sees a noise
multiplier with its default (add-or-remove) relation. Its replace-one relation doubles the sensitivity of a Gaussian in
one accountant and not in the other.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy  # which loads its parts when they are first named

from hedgerow._types import Array
from hedgerow.privacy import events
from hedgerow.privacy.events import Event


def dp_events(counts: Mapping[Event, int]) -> Any:
    """Events for dp-accounting, equal ones grouped, under its default neighbouring relation.

    Gaussian, planned or not: GaussianDpEvent(σ/Δ). Laplace: LaplaceDpEvent(1/ε'), ε' = ε + 2 ln cosh(ε/2): a continuous Laplace
    of loss ε' dominates every ε-DP mechanism, while one of loss ε does not dominate the discrete noise we draw.
    AboveThreshold, Exponential and a Laplace of ε below 1e-6: ZCDpEvent(ρ), for there is no native event
    (docs/proofs/accounting.md). What is (ε, δ)-private by a proof of its own: the same, without its δ, which no event
    there can carry: ask for an ε at δ less the sum of theirs.
    """
    dp = _dp_accounting()
    grouped = [dp.SelfComposedDpEvent(_dp_event(event), count) for event, count in counts.items()]
    return dp.ComposedDpEvent(grouped) if grouped else dp.NoOpDpEvent()


def _dp_event(event: Event) -> Any:
    dp = _dp_accounting()
    match event:
        case events.Planned():
            return _dp_event(event.event)
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
    """Import dp-accounting, which takes two seconds, when one of its accountants is first needed."""
    return importlib.import_module("dp_accounting")


# Any set of orders gives a valid bound; these only have to contain one close to the best.
_COARSE = 1 + np.concatenate([[0.0], np.geomspace(0.02, 1e12, 250)])


def _around(order: float) -> Array:
    return 1 + (order - 1) * np.geomspace(1 / 1.2, 1.2, 121) if order > 1 else np.array([order])


def epsilon_of_rho(ρ: float, delta: float) -> float:
    """Return the smallest known ε such that ρ-zCDP implies (ε, delta)-DP."""
    return _least_epsilon(lambda orders: ρ * orders, delta)


def renyi_epsilon(counts: Mapping[Event, int], delta: float) -> float:
    """Return the smallest ε, at delta, that the Rényi divergences of these events allow: those that `dp_events` exports."""

    def divergence(orders: Array) -> Array:
        return np.asarray(np.sum([count * _divergence(event, orders) for event, count in counts.items()], axis=0))

    return _least_epsilon(divergence, delta)


def _divergence(event: Event, orders: Array) -> Array:
    """Return the Rényi divergence of an event at each order α: what dp-accounting has for the event that `dp_events` makes of it.

    Gaussian: α·Δ²/2σ². Laplace of loss ε: ε + ln(1 + (α − 1)·(e^((1 − 2α)ε) − 1)/(2α − 1))/(α − 1). All else: αρ.
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
    return np.asarray(orders * event.rho)


def _least_epsilon(divergence: Callable[[Array], Array], delta: float) -> float:
    """Return the least ε over Rényi orders, first over all of them coarsely, then finely around the best."""
    coarse, order = _epsilon_and_order(_COARSE, divergence(_COARSE), delta)
    near = _around(order)
    return min(coarse, _epsilon_and_order(near, divergence(near), delta)[0])


def _epsilon_and_order(orders: Array, divergences: Array, delta: float) -> tuple[float, float]:
    """Return the least ε over these Rényi orders α of divergences D, and the order that gives it.

    ε(α) = D + ln(1 − 1/α) − ln(δα)/(α − 1) (Canonne, Kamath & Steinke, Proposition 12). Where δ² > 1 − e^(−D) the total
    variation is below δ by Bretagnolle and Huber's inequality, and ε is 0. Near α = 1 the formula loses its digits to cancellation.
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
    low, high = 0.0, epsilon
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low * (1 - 1e-11)  # below the root by more than the conversion's rounding and the tolerance of a fit


# Any set of orders gives a valid bound here too; whole ones, for which the divergence is a sum of positive terms.
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
    """The ε, at delta, of `steps` Gaussian releases of noise multiplier σ/Δ, each of a sum over a fresh Poisson sample at the
    rate, where neighbours add or remove one row that moves the sum by at most Δ.

    By the Rényi divergence of the subsampled Gaussian (Mironov, Talwar & Zhang), composed over the steps.
    """
    divergences = steps * np.array([_sampled_divergence(α, multiplier, rate) for α in _SAMPLED])
    return _epsilon_and_order(np.array(_SAMPLED, dtype=float), divergences, delta)[0]


@np.errstate(all="ignore")  # beyond float64 it is not a number, and refused
def _sampled_divergence(order: int, multiplier: float, rate: float) -> float:
    """D_α of one step at a whole order α: (α − 1)⁻¹·ln Σ_i C(α, i)·(1 − q)^(α − i)·q^i·e^((i² − i)/2z²).

    Without its exponential the sum is 1, and for i < 2 that is 1 too. So it is 1 plus the terms i ≥ 2 with e^x − 1 for e^x: all are
    positive, and no digit is lost however small the rate. Rounded down to nothing a loss would be free.

    Differs: dp-accounting takes the logarithm of the sum itself, and where rounding makes it negative says that ε is 0.
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
    """The least noise multiplier for which `subsampled_epsilon` is at most epsilon, rounded up."""
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


# The Gaussian mechanism by itself, exactly


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The least δ at which a Gaussian mechanism of Δ/σ = mu is (epsilon, δ)-private (Balle & Wang, Theorem 8)."""
    return float(
        scipy.special.ndtr(mu / 2 - epsilon / mu)
        - math.exp(min(epsilon + scipy.special.log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    )


@functools.lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest Δ/σ that is (epsilon, delta)-private, rounded down."""
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
    """The least ε, if at most `highest`, at which a Gaussian mechanism of Δ/σ = mu is (ε, delta)-private."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return float(scipy.optimize.brentq(lambda ε: gaussian_delta(mu, ε) - delta, 0.0, highest, xtol=1e-300, rtol=1e-12))
