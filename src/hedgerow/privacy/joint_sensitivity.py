"""The ℓ2 sensitivity of many residuals that are released as one event.

A set s of attributes has residual coordinates whose inner product for two rows is Π_{a∈s} t_a, where t_a is Q_a on the
attributes on which the rows agree and lies in [l_a, u_a] on the others (``Contribution``). With W_s the square of the
factor by which the coordinates of s are multiplied, two rows are apart by

    2 Σ_s W_s (Π_{a∈s} Q_a − Π_{a∈s} t_a)

in squared ℓ2 distance. Under add/remove the square is Σ_s W_s Π_{a∈s} Q_a. Under replace-one the sum must be maximized
over t. It is linear in each t_a, so its maximum is at ends: Q_a, l_a or u_a. With few attributes all ends are tried.
With many, let p_a p_b ≤ W_ab for all pairs and r_a = p_a t_a. Then

    Σ_{a<b} r_a r_b = ½(Σ r_a)² − ½ Σ r_a²   and   ½R² ≥ λR − ½λ² for every λ,

so that singles and pairs are bounded from below by a sum with one term per attribute, for every λ; the best λ is used.
What remains, W_ab − p_a p_b of the pairs and all larger sets, is bounded set by set.

Everything here is a function of public sizes (docs/proofs/residuals.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hedgerow._types import Array

MOST_CORNERS = 20_000  # with at most this many corners of t, all of them are tried
MULTIPLIERS, REFINED = 201, 4  # values of λ that are tried, and how often around the best


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
