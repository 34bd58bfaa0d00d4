"""Privacy losses of whole sequences of events, composed numerically and independently of the ledgers.

Nothing here uses ρ, Rényi orders or a conversion. Each event has a pair of laws that no other pair of its kind beats, given by the
law of its loss ℓ = ln p/q under p. Laws are put on a grid so that δ(ε) is exact at its points and too large between them
(Doroshenko et al., *Connect the dots*): an atom, or a cell's mass, goes to the two ends so that its p and its q are kept. Fourier
transforms compose them, and δ(ε) = E max(0, 1 − e^(ε − ℓ)).
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from hedgerow.privacy import events
from hedgerow.privacy.renyi_events import HitRound, RandomRuns

SIZE = 1 << 15
TAIL = 60.0  # nats: what a wider grid would have beside this one is less than e^-60 of its mass


@dataclass(frozen=True)
class Losses:
    """The privacy losses of one person: ``atoms`` (ℓ, p, how often), normal losses of ``mu``², and the probability of a failure."""

    atoms: tuple[tuple[tuple[float, ...], tuple[float, ...], int], ...] = ()
    mu2: float = 0.0
    lost: float = 0.0
    largest: float = field(default=0.0)  # the sum of the largest losses of all but the normal ones


def response(epsilon: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Randomized response, which no ε-DP mechanism beats (Kairouz, Oh & Viswanath)."""
    p = 1 / (1 + math.exp(-epsilon))
    return (epsilon, -epsilon), (p, 1 - p)


def ranged(epsilon: float, top: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A choice whose losses are ``top`` and ``top`` − ε: scores of one set of candidates rise by Δ, all others fall."""
    p = math.expm1(epsilon - top) / (math.exp(epsilon - top) - math.exp(-top))
    return (top, top - epsilon), (p, 1 - p)


def laplace(epsilon: float, steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Discrete Laplace noise on one value that moves by so many steps of its grid, exactly."""
    r = math.exp(-epsilon / steps)
    inner = np.arange(1, steps)
    mass = (1 - r) / (1 + r)
    end = 1 / (1 + r)  # of all at or below 0
    p = [end, *(mass * r**inner), end * r**steps]
    return tuple((epsilon - 2 * epsilon / steps * np.arange(steps + 1)).tolist()), tuple(map(float, p))


def discrete_gaussian(sigma: float, steps: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the exact losses of discrete Gaussian noise on a value that moves by this number of grid steps."""
    reach = math.ceil(13 * sigma) + steps
    k = np.arange(-reach, reach + 1)
    p = np.exp(-(k**2) / (2 * sigma**2))
    return tuple((((k - steps) ** 2 - k**2) / (2 * sigma**2)).tolist()), tuple((p / p.sum()).tolist())


def hits(epsilon: float, rising: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Endless tests of randomized response up to the first "yes", which is likelier under p, or under q: by its place."""
    s = 1 / (1 + math.exp(-epsilon))
    yes = s if rising else 1 - s
    places = np.arange(math.ceil(40 / -math.log1p(-yes)))
    p = yes * (1 - yes) ** places
    values = (epsilon - places * epsilon) * (1 if rising else -1)
    return tuple(values.tolist()), tuple((p / p.sum()).tolist())


def best_of(event: RandomRuns, epsilon: float, rare: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The best of K draws of which the better outcome is rare, and likelier by e^ε under p."""

    def worse(x: float) -> float:  # the generating function of K
        return math.expm1(event.mean * x) / math.expm1(event.mean)

    rare = min(rare, 1 / (1 + math.exp(epsilon)))  # else the other outcome would tell more than ε
    p, q = worse(1 - rare * math.exp(epsilon)), worse(1 - rare)
    return (math.log(p / q), math.log((1 - p) / (1 - q))), (p, 1 - p)


def losses_of(charged: Iterable[events.Event], rows: int, rng: np.random.Generator) -> Losses:
    """Return the losses of all events, for persons with this number of rows. ``rng`` takes one of several worst pairs."""
    atoms: collections.Counter[tuple[tuple[float, ...], tuple[float, ...]]] = collections.Counter()
    mu2 = lost = largest = 0.0

    def pure(epsilon: float, times: int = 1) -> None:
        atoms[response(rows * epsilon)] += times

    for event in charged:
        times = 1
        lost = lost + event.delta - lost * event.delta
        if isinstance(event, events.Repeated):
            event, times = event.event, event.times
        if isinstance(event, events.Planned):
            event = event.event
        if isinstance(event, events.ThresholdedCounts):
            event = event.noise
        match event:
            case events.Gaussian(sensitivity=Δ, sigma=σ, grid=g) if σ >= 8 * g or rng.random() < 0.5:
                mu2 += (
                    times * (rows * Δ / σ) ** 2
                )  # on a fine grid that is its law; on a coarse one it is the usual guess
            case events.Gaussian(sensitivity=Δ, sigma=σ, grid=g):
                one = math.floor(Δ / g + 1e-12)
                if rng.random() < 0.5:  # one value takes all of it
                    atoms[discrete_gaussian(σ / g, rows * one)] += times
                else:  # or each of many a step
                    atoms[discrete_gaussian(σ / g, rows)] += times * one**2
            case events.Laplace(sensitivity=Δ, grid=g):
                steps = math.floor(Δ / g + 1e-12)
                if 1 <= rows * steps <= 4096:
                    atoms[laplace(rows * event.epsilon, rows * steps)] += times
                else:
                    pure(event.epsilon, times)
            case events.Exponential():
                atoms[ranged(rows * event.epsilon, rows * event.epsilon * rng.uniform(0.02, 0.98))] += times
            case events.FlippedRows():
                pure(event.each, event.times)
            case HitRound():
                atoms[hits(event.epsilon_query, bool(rng.integers(2)))] += times
            case RandomRuns():  # of runs that are ε-DP, whose ρ is ε·tanh(ε/2)
                each = event.each
                one = brentq(lambda ε, each=each: ε * math.tanh(ε / 2) - each, 1e-12, 10.0 + each)
                atoms[best_of(event, one, float(rng.choice([1e-4, 1e-3, 1e-2, 0.1, 0.5])))] += times
            case _:
                pure(event.epsilon, times)
    largest = sum(max(values) * count for (values, _), count in atoms.items())
    return Losses(tuple((values, p, count) for (values, p), count in atoms.items()), mu2, lost, largest)


def delta(losses: Losses, epsilon: float) -> float:
    """The δ at which all of it together is (epsilon, δ)-private: an upper bound, tight to the square of the grid's step."""
    second = losses.mu2 + sum(count * float(np.dot(p, np.square(v))) for v, p, count in losses.atoms)
    width = 1.2 * (epsilon + second + math.sqrt(2 * TAIL * second)) + max(
        [max(map(abs, v)) for v, _, _ in losses.atoms], default=0.0
    )
    h = 2 * width / SIZE
    transform = np.ones(SIZE // 2 + 1, complex)
    for values, p, count in losses.atoms:
        transform *= np.fft.rfft(_on_grid(np.array(values), np.array(p), h)) ** count
    if losses.mu2 > 0:
        transform *= np.fft.rfft(_normal(losses.mu2, h))
    mass = np.fft.irfft(transform, SIZE)
    at = np.fft.fftfreq(SIZE, 1 / SIZE) * h
    return losses.lost + (1 - losses.lost) * float(np.dot(mass, -np.expm1(np.minimum(epsilon - at, 0.0))))


def _on_grid(values: np.ndarray, p: np.ndarray, h: float) -> np.ndarray:
    low = np.floor(values / h)
    upper = np.expm1(-(values - low * h)) / math.expm1(-h)  # keeps p and q = p·e^−ℓ
    mass = np.zeros(SIZE)
    np.add.at(mass, low.astype(int) % SIZE, p * (1 - upper))
    np.add.at(mass, (low.astype(int) + 1) % SIZE, p * upper)
    return mass


def _normal(mu2: float, h: float) -> np.ndarray:
    """Losses N(μ²/2, μ²): each cell's mass under p and under q to its ends."""
    mu = math.sqrt(mu2)
    reach = min(SIZE // 2 - 2, math.ceil((mu2 / 2 + math.sqrt(2 * TAIL) * mu) / h))
    ends = np.arange(-reach, reach + 1) * h

    def between(mean: float) -> np.ndarray:
        a, b = (ends[:-1] - mean) / mu, (ends[1:] - mean) / mu
        flip = a > 0  # from the nearer tail, lest digits cancel
        return np.where(flip, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

    p, q = between(mu2 / 2), between(-mu2 / 2)
    # a + b = p and a·e^−l + b·e^−(l + h) = q
    share = np.where(
        p > 1e-290,
        (1 - np.exp(np.log(np.maximum(q, 1e-300)) + ends[:-1] - np.log(np.maximum(p, 1e-300)))) / -math.expm1(-h),
        0.5,
    )
    b = p * np.clip(share, 0.0, 1.0)
    mass = np.zeros(SIZE)
    cells = np.arange(-reach, reach)
    np.add.at(mass, cells % SIZE, p - b)
    np.add.at(mass, (cells + 1) % SIZE, b)
    mass[reach] += math.exp(float(log_ndtr(-(ends[-1] - mu2 / 2) / mu)))
    return mass


def most_delta_of_choices(
    epsilon: float,
    parts: int,
    options: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]],
    width: float,
    size: int = 4001,
) -> float:
    """The δ that an analyst reaches who chooses each event after having seen the loss so far, or stops.

    The budget has so many parts; ``options[j]``: the losses of events that cost j + 1 of them. Losses are rounded down to a grid, so
    what comes out is reached by somebody.
    """
    at = np.linspace(-width, width, size)
    step = at[1] - at[0]
    stop = -np.expm1(np.minimum(epsilon - at, 0.0))
    best = [stop]
    for left in range(1, parts + 1):
        found = best[-1].copy()
        for j in range(left):
            for values, p in options[j]:
                following = np.zeros(size)
                for value, mass in zip(np.floor(values / step).astype(int), p, strict=True):
                    moved = np.clip(np.arange(size) + value, 0, size - 1)
                    following += mass * best[left - 1 - j][moved]
                found = np.maximum(found, following)
        best.append(found)
    return float(best[-1][size // 2])
