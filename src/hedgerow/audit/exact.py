"""The exact privacy of a mechanism whose two output laws are known, against the claim of an event.

Papers: Balle & Wang, *Improving the Gaussian mechanism* (the profile δ(ε)); Bun & Steinke, *Concentrated differential
privacy*; Dwork & Roth, ch. 3 (AboveThreshold).

Symbols: p, q the laws on two neighbours, outcome by outcome; ℓ = ln p/q; δ(ε) = Σ max(0, p − e^ε·q), the larger of both
directions; D_α = ln(Σ p^α·q^(1−α))/(α − 1) likewise; ρ = sup over α > 1 of D_α/α.

Outcomes with the same ratio may be merged into one outcome, because nothing here depends on more than the law of ℓ. So
the tails of Laplace noise, where ℓ is constant, are summed in closed form. Only the tails of a Gaussian are cut, beyond
40σ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from hedgerow._types import Array, Integers
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import AboveThreshold, Event, Exponential, Gaussian, Laplace, Subsampled
from hedgerow.privacy.renyi_events import HitRound

ORDERS = tuple(1 + np.geomspace(1e-3, 1e4, 71))
"""The orders α at which a claim of zCDP is checked."""
LOSSES = 12  # number of values of ε, up to the claimed one, at which δ is checked
CUT = 40.0  # multiples of σ, or of the scale, where tails are cut: e^-800 of a Gaussian, e^-40 of a Laplace remains
ROUNDING = 1e-9  # relative rounding error that a comparison forgives


@final
@dataclass(frozen=True, eq=False)
class Pair:
    """The two laws of an output on two neighbours, as logarithms of probabilities, outcome by outcome.

    Parameters
    ----------
    log_p, log_q : array
        One logarithm of a probability per outcome. The probabilities of each law must add up to 1.

    Raises
    ------
    InvalidInput
        If the laws have different outcomes, or their probabilities do not add up to 1.

    Example
    -------
    >>> pair = hr.audit.Pair(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    >>> round(pair.epsilon, 3)
    1.099
    """

    log_p: Array
    log_q: Array

    def __post_init__(self) -> None:
        if self.log_p.shape != self.log_q.shape or self.log_p.ndim != 1 or self.log_p.size == 0:
            raise InvalidInput(
                f"Two laws must have the same outcomes. Found shapes {self.log_p.shape} and {self.log_q.shape}. List "
                "them all."
            )
        for log in (self.log_p, self.log_q):
            if np.isnan(log).any() or abs(float(_log_sum(log))) > 1e-6:
                raise InvalidInput(
                    "Probabilities must add up to 1. Found a law whose sum is not 1. Give every outcome."
                )

    @classmethod
    def of(cls, p: ArrayLike, q: ArrayLike) -> Self:
        """Return the pair of two probability vectors.

        Parameters
        ----------
        p, q : array
            One probability per outcome.

        Returns
        -------
        Pair

        Raises
        ------
        InvalidInput
            If the probabilities do not add up to 1.

        Example
        -------
        >>> round(hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75]).epsilon, 3)
        1.099
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(np.log(np.asarray(p, dtype=float)), np.log(np.asarray(q, dtype=float)))

    @classmethod
    def of_densities(
        cls,
        log_f: Callable[[Array], Array],
        log_g: Callable[[Array], Array],
        low: float,
        high: float,
        parts: int = 20_000,
    ) -> Self:
        """Return the pair of two densities on [low, high], given by their logarithms. There must be no mass outside.

        Gauss's rule is used in each of ``parts`` intervals. δ then has a relative error of at most some 10^-6, because
        no rule is exact where a ratio crosses e^ε within an interval.

        Parameters
        ----------
        log_f, log_g : callable
            The logarithms of the densities, at an array of points.
        low, high : float
            The ends of the interval.
        parts : int
            The number of intervals of the integration.

        Returns
        -------
        Pair

        Raises
        ------
        InvalidInput
            If a density does not integrate to 1.

        Example
        -------
        >>> log_laplace = lambda center: lambda x: -abs(x - center) - np.log(2)
        >>> round(hr.audit.Pair.of_densities(log_laplace(0), log_laplace(1), -40, 41).epsilon, 3)
        1.0
        """
        nodes, weights = np.polynomial.legendre.leggauss(8)
        width = (high - low) / parts
        points = (low + width * (np.arange(parts)[:, None] + (nodes + 1) / 2)).reshape(-1)
        w = np.log(np.tile(weights * width / 2, parts))
        return cls(log_f(points) + w, log_g(points) + w)

    @property
    def _ratio(self) -> Array:
        """The log-ratio ℓ of every outcome, 0 for outcomes that neither law has."""
        with np.errstate(invalid="ignore"):
            ratio = self.log_p - self.log_q
        return np.where(np.isneginf(self.log_p) & np.isneginf(self.log_q), 0.0, ratio)

    @property
    def epsilon(self) -> float:
        """The pure loss max |ℓ|. It is infinite if one neighbour has outcomes that the other does not have."""
        return float(np.abs(self._ratio).max())

    def delta(self, epsilon: float) -> float:
        """Return the least δ at which the pair is (epsilon, δ)-private.

        Parameters
        ----------
        epsilon : float
            The ε of the claim.

        Returns
        -------
        float

        Example
        -------
        >>> hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75]).delta(0.0)
        0.5
        """
        ratio = self._ratio
        with np.errstate(invalid="ignore"):
            one = np.exp(self.log_p) * -np.expm1(np.minimum(epsilon - ratio, 0.0))
            two = np.exp(self.log_q) * -np.expm1(np.minimum(epsilon + ratio, 0.0))
        return float(max(np.nansum(one), np.nansum(two)))

    def epsilon_at(self, delta: float) -> float:
        """Return the least ε at which the pair is (ε, delta)-private, or infinity if there is none.

        Parameters
        ----------
        delta : float
            The δ of the claim.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75]).epsilon_at(0.1), 3)
        0.956
        """
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e6:
                return math.inf
        return float(scipy.optimize.brentq(lambda ε: self.delta(ε) - delta, 0.0, high, xtol=1e-12, rtol=1e-12))

    def renyi(self, order: float) -> float:
        """Return the Rényi divergence D_α, the larger one of both directions.

        Parameters
        ----------
        order : float
            The order α, above 1.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75]).renyi(2.0), 3)
        0.847
        """
        if math.isinf(self.epsilon):
            return math.inf
        sums = (_log_sum(order * a + (1 - order) * b) for a, b in ((self.log_p, self.log_q), (self.log_q, self.log_p)))
        return float(max(sums)) / (order - 1)

    def rho(self, orders: Sequence[float] = ORDERS) -> float:
        """Return the least ρ for which D_α ≤ ρα at these orders.

        Parameters
        ----------
        orders : list of float
            The orders α.

        Returns
        -------
        float

        Example
        -------
        >>> round(hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75]).rho(), 3)
        0.549
        """
        return float(max(self.renyi(α) / α for α in orders))

    def then(self, other: Pair) -> Pair:
        """Return the pair of both outputs together, drawn independently.

        Parameters
        ----------
        other : Pair
            The laws of the second output.

        Returns
        -------
        Pair

        Example
        -------
        >>> once = hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75])
        >>> round(once.then(once).epsilon, 3)
        2.197
        """
        return Pair((self.log_p[:, None] + other.log_p).reshape(-1), (self.log_q[:, None] + other.log_q).reshape(-1))


@final
@dataclass(frozen=True)
class Verdict:
    """The loss of a pair and the claim of an event.

    Attributes
    ----------
    epsilon, rho : float
        The loss of the pair.
    claimed_epsilon, claimed_rho : float
        The claim of the event.
    excess : tuple of str
        Descriptions of the places where the loss is larger than the claim.

    Example
    -------
    >>> pair = hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75])
    >>> hr.audit.check_pair(pair, (1.0, 0.5)).excess
    ('ε = 1.09861 is above 1', 'D_α = 0.549759 is above ρα = 0.5005 at α = 1.001')
    """

    epsilon: float
    rho: float
    claimed_epsilon: float
    claimed_rho: float
    excess: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """True if the loss exceeds the claim nowhere."""
        return not self.excess


def check_pair(pair: Pair, claim: Event | tuple[float, float], orders: Sequence[float] = ORDERS) -> Verdict:
    """Compare a pair with the (ε, ρ) of an event: the pure loss, δ at losses up to ε, and D_α at every order.

    The δ that ρ-zCDP allows at ε is the bound of Bun & Steinke, e^(−(ε − ρ)²/4ρ).

    Parameters
    ----------
    pair : Pair
        The two laws.
    claim : Event or tuple of two float
        The event, or its (ε, ρ).
    orders : list of float
        The orders α to check.

    Returns
    -------
    Verdict

    Example
    -------
    >>> pair = hr.audit.Pair.of([0.75, 0.25], [0.25, 0.75])
    >>> hr.audit.check_pair(pair, (1.1, 0.6)).holds
    True
    """
    epsilon, rho = (claim.epsilon, claim.rho) if isinstance(claim, Event) else claim
    excess = []
    if pair.epsilon > epsilon * (1 + ROUNDING):
        excess.append(f"ε = {pair.epsilon:.6g} is above {epsilon:.6g}")
    for α in orders:
        if (divergence := pair.renyi(α)) > rho * α * (1 + ROUNDING) + 1e-13:
            excess.append(f"D_α = {divergence:.6g} is above ρα = {rho * α:.6g} at α = {α:.4g}")
            break
    for ε in np.linspace(0, 1, LOSSES) * min(epsilon, rho + 8 * math.sqrt(rho)):
        left = math.exp(-((ε - rho) ** 2) / (4 * rho)) if ε > rho else 1.0
        if pair.delta(float(ε)) > left * (1 + ROUNDING):
            excess.append(f"δ({ε:.4g}) = {pair.delta(float(ε)):.4g} is above {left:.4g}")
            break
    return Verdict(pair.epsilon, pair.rho(orders), epsilon, rho, tuple(excess))


def _log_sum(logs: Array) -> float:
    """Return ln Σ e^x."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


# The laws of this package's own draws, on neighbours that are as far apart as the event allows


def laplace_pair(event: Laplace, shift: float | None = None) -> Pair:
    """Return the laws of discrete Laplace noise on two values.

    Parameters
    ----------
    event : Laplace
        The noise.
    shift : float, optional
        The distance of the two values, a multiple of the grid. By default the sensitivity.

    Returns
    -------
    Pair

    Example
    -------
    >>> from hedgerow.privacy.events import Laplace
    >>> round(hr.audit.laplace_pair(Laplace(sensitivity=1.0, scale=2.0, grid=1.0)).epsilon, 3)
    0.5
    """
    k, h = _steps(event.sensitivity if shift is None else shift, event.grid), event.grid / event.scale
    if k == 0:
        return Pair(np.zeros(1), np.zeros(1))
    at = np.arange(1, k)  # strictly between the two centers; at and beyond them the ratio is constant
    log_mass = math.log(math.tanh(h / 2))
    tail = -math.log(-math.expm1(-h))  # Σ e^(−jh)
    log_p = log_mass + np.concatenate([[tail], -at * h, [tail - k * h]])
    return Pair(log_p, log_p[::-1].copy())


def gaussian_pair(event: Gaussian, shift: float | None = None) -> Pair:
    """Return the laws of discrete Gaussian noise on two values.

    Parameters
    ----------
    event : Gaussian
        The noise. Its sigma must be at most 2.5e5 grid steps.
    shift : float, optional
        The distance of the two values, a multiple of the grid. By default the sensitivity.

    Returns
    -------
    Pair

    Raises
    ------
    InvalidInput
        If sigma is above 2.5e5 grid steps.

    Example
    -------
    >>> from hedgerow.privacy.events import Gaussian
    >>> round(hr.audit.gaussian_pair(Gaussian(sensitivity=1.0, sigma=2.0, grid=1.0)).rho(), 3)
    0.125
    """
    k, s = _steps(event.sensitivity if shift is None else shift, event.grid), event.sigma / event.grid
    if CUT * s > 1e7:
        raise InvalidInput(f"sigma must be at most 2.5e5 grid steps to be summed. Found {s:.3g}. Use a coarser grid.")
    far = math.ceil(CUT * s) + k
    at = np.arange(-far, far + k + 1)
    logs = [-((at - centre) ** 2) / (2 * s * s) for centre in (0, k)]
    return Pair(*(log - _log_sum(log) for log in logs))


def thresholded_pair(noise: Gaussian, threshold: int, counts: ArrayLike, neighbour: ArrayLike) -> Pair:
    """Return the laws of values that are released with their noisy counts if these reach a threshold.

    A value that does not occur is never released.
    """
    each = [
        _value_laws(noise, threshold, int(a), int(b))
        for a, b in zip(np.asarray(counts), np.asarray(neighbour), strict=True)
    ]
    return functools.reduce(Pair.then, each)


def _value_laws(noise: Gaussian, threshold: int, count: int, other: int) -> Pair:
    """Return the laws of one value's release for two true counts."""
    k = np.arange(math.ceil(-CUT * noise.sigma), math.floor(CUT * noise.sigma) + max(count, other) + 1)

    def law(true: int) -> Array:
        if true == 0:
            return np.append(0.0, np.full(np.count_nonzero(k >= threshold), -np.inf))
        log = -((k - true) ** 2) / (2 * noise.sigma**2)
        log -= _log_sum(log)
        return np.append(_log_sum(log[k < threshold]), log[k >= threshold])

    return Pair(law(count), law(other))


def subsampled_pair(event: Subsampled, one: ArrayLike, other: ArrayLike) -> Pair:
    """Return the laws of a noisy count of ones in a secret sample.

    ``one`` and ``other`` give the probabilities that the sample of a table has j ones.
    """
    noise = event.inner
    if not isinstance(noise, Laplace) or noise.grid != 1:
        raise InvalidInput(
            "The noise of a sampled count must be Laplace on whole rows. Found another noise or grid. Use Laplace "
            "noise with grid 1."
        )
    laws = [np.asarray(law, dtype=float) for law in (one, other)]
    most = max(law.size for law in laws)
    far = math.ceil(CUT * noise.scale)
    at = np.arange(-far, most + far)
    logs = math.log(math.tanh(0.5 / noise.scale)) - np.abs(at - np.arange(most)[:, None]) / noise.scale
    with np.errstate(divide="ignore"):
        drawn = [np.log(np.pad(law, (0, most - law.size))) for law in laws]
    return Pair(*(np.logaddexp.reduce(law[:, None] + logs, axis=0) for law in drawn))


def exponential_pair(scores: ArrayLike, neighbour_scores: ArrayLike, event: Exponential) -> Pair:
    """Return the laws of the choice among candidates.

    Parameters
    ----------
    scores, neighbour_scores : array
        The scores on the two neighbours. One row moves each by at most the sensitivity.
    event : Exponential
        The exponential mechanism.

    Returns
    -------
    Pair

    Example
    -------
    >>> from hedgerow.privacy.events import Exponential
    >>> pair = hr.audit.exponential_pair([3, 1], [2, 2], Exponential(sensitivity=1.0, epsilon=1.0))
    """
    logs = [np.asarray(s, dtype=float) / event.scale for s in (scores, neighbour_scores)]
    return Pair(*(log - _log_sum(log) for log in logs))


def above_threshold_pair(
    values: Sequence[float],
    neighbour_values: Sequence[float],
    event: AboveThreshold,
    *,
    threshold: float = 0.0,
    grid: float = 1.0,
    gap: bool = False,
) -> Pair:
    """Return the laws of a guard round on short sequences.

    An outcome is the place that was "above", if any, and with ``gap`` also the gap. The laws are summed over the noise
    of the threshold, which is on ``grid``, as that of a round with ``on_grid`` is. A round without it has a finer grid,
    2^-20, whose law the same sums approach.

    Parameters
    ----------
    values, neighbour_values : list of float
        The values on the two neighbours, multiples of the grid.
    event : AboveThreshold
        The noise of the round.
    threshold, grid : float
        The threshold and the grid, in rows.
    gap : bool
        Release the gap, too.

    Returns
    -------
    Pair

    Example
    -------
    >>> from hedgerow.privacy.events import AboveThreshold
    >>> pair = hr.audit.above_threshold_pair([0.0, 1.0], [1.0, 0.0], AboveThreshold(1.0, 2.0, 4.0))
    """
    laws = [_round_law(v, event, threshold, grid, gap) for v in (values, neighbour_values)]
    return Pair.of(laws[0], laws[1])


def _round_law(values: Sequence[float], event: AboveThreshold, threshold: float, grid: float, gap: bool) -> Array:
    """Return the probability of every outcome of a guard round on these values."""
    b, c = event.threshold_scale / grid, event.query_scale / grid
    far = math.ceil(CUT * b)
    τ = np.arange(-far, far + 1)
    log_τ = -np.abs(τ) / b
    weights = np.exp(log_τ - _log_sum(log_τ))
    law: list[Array] = []
    for value in values:
        need = _steps(threshold, grid) + τ - _steps(value, grid)  # ν must be at least this
        above = laplace_tail(need, c)
        if gap:
            widest = math.ceil(CUT * c)
            at = np.exp(-np.abs(need[:, None] + np.arange(widest)) / c) * math.tanh(0.5 / c)
            law.append(np.append(weights @ at, weights @ laplace_tail(need + widest, c)))
        else:
            law.append(np.array([weights @ above]))
        weights = weights * laplace_tail(1 - need, c)  # ν ≤ need − 1
    law.append(np.array([weights.sum()]))
    return np.concatenate(law)


def hit_round_pair(
    values: Sequence[float], neighbour_values: Sequence[float], event: HitRound, *, threshold: float = 0.0
) -> Pair:
    """Return the laws of a round of hits on short sequences of whole numbers of rows, with noise of whole rows.

    An outcome is the place that was "above", if any.

    Parameters
    ----------
    values, neighbour_values : list of float
        The values on the two neighbours.
    event : HitRound
        The noise of the round.
    threshold : float
        The public threshold, in rows.

    Returns
    -------
    Pair
    """
    laws = []
    for each in (values, neighbour_values):
        need = np.array([_steps(threshold, 1.0) - _steps(value, 1.0) for value in each])
        below = np.concatenate([[1.0], np.cumprod(laplace_tail(1 - need, event.query_scale))])
        laws.append(np.append(below[:-1] * laplace_tail(need, event.query_scale), below[-1]))
    return Pair.of(laws[0], laws[1])


def laplace_tail(k: Integers, scale: float) -> Array:
    """Return P[ν ≥ k] for discrete Laplace noise on whole numbers."""
    h = 1 / scale
    upper = np.exp(-np.maximum(k, 1) * h) / (1 + math.exp(-h))
    lower = 1 - np.exp(-np.maximum(1 - k, 1) * h) / (1 + math.exp(-h))
    return np.where(k >= 1, upper, lower)


def _steps(value: float, grid: float) -> int:
    """Return a value in whole steps of the grid. Refuse one that is not a multiple."""
    steps = value / grid
    if steps != round(steps):
        raise InvalidInput(f"Values must be multiples of the grid, {grid!r}. Found {value!r}. Round them.")
    return round(steps)
