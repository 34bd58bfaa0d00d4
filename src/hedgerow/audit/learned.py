"""Statistics learned from outputs: one number per output, larger if the first of two neighbours is more likely.

Any statistic gives a valid bound, because the runs that judge it are not those that it was learned on. A good statistic
gives a high bound. The best is the likelihood ratio, and these functions estimate it: of a category by its frequency,
of a vector by its coordinates one at a time and by its best direction, of a sequence by each item given the previous
one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.errors import InvalidInput

Outputs = Sequence[Any]
Scorer = Callable[[Outputs], Array]

_BINS = 24  # bins per coordinate
_FEW = 12  # numbers with at most this many different values count as categories
_CAP = 12.0  # the largest log-ratio that one item may contribute


def _ratio(first: float, second: float) -> float:
    return math.log((first + 0.5) / (second + 0.5))


def of_categories(first: Outputs, second: Outputs) -> list[Scorer]:
    """Learn the log-ratio of an output's frequencies, with ½ added to both."""
    seen: tuple[Counter[Hashable], Counter[Hashable]] = Counter(first), Counter(second)
    return [lambda outputs: np.array([_ratio(seen[0][z], seen[1][z]) for z in outputs])]


def of_vectors(first: Outputs, second: Outputs) -> list[Scorer]:
    """Learn the sum over coordinates of the log-ratio of their bins, and the linear discriminant."""
    one, two = _matrix(first), _matrix(second)
    edges = [_edges(np.concatenate([a, b])) for a, b in zip(one.T, two.T, strict=True)]
    tables = [_bin_ratios(a, b, at) for a, b, at in zip(one.T, two.T, edges, strict=True)]

    def by_bins(outputs: Outputs) -> Array:
        columns = _matrix(outputs).T
        ratios: Array = np.sum(
            [t[np.searchsorted(e, z, "right")] for z, e, t in zip(columns, edges, tables, strict=True)], axis=0
        )
        return ratios

    spread = np.atleast_2d(np.cov(one.T)) + np.atleast_2d(np.cov(two.T))
    ridge = 1e-9 * max(float(np.trace(spread)), 1e-300) * np.eye(len(spread))
    weights = np.linalg.lstsq(spread + ridge, one.mean(axis=0) - two.mean(axis=0), rcond=None)[0]
    return [by_bins, lambda outputs: _matrix(outputs) @ weights]


def of_sequences(first: Outputs, second: Outputs) -> list[Scorer]:
    """Learn the sum over items of the log-ratio of their frequencies, and the log-ratio of whole sequences.

    The frequency of an item is that at its place, given the previous item. Items are categories, except for numbers
    with many values, which are binned. Sequences may end early.
    """
    numbers = [z for output in (*first, *second) for z in output if _is_number(z)]
    edges = _edges(np.array(numbers, dtype=float)) if len(set(numbers)) > _FEW else None

    def coded(output: Sequence[Any]) -> tuple[Hashable, ...]:
        if edges is None:
            return (*output, None)
        return (*(int(np.searchsorted(edges, z, "right")) if _is_number(z) else z for z in output), None)

    def steps(output: Sequence[Any]) -> list[tuple[int, Hashable, Hashable]]:
        items = coded(output)
        return [(place, items[place - 1] if place else None, item) for place, item in enumerate(items)]

    seen = [Counter(step for z in outputs for step in steps(z)) for outputs in (first, second)]
    before: list[Counter[Hashable]] = [Counter() for _ in seen]
    for counts, total in zip(seen, before, strict=True):
        for (place, previous, _), times in counts.items():
            total[place, previous] += times

    def by_steps(outputs: Outputs) -> Array:
        """Return the statistic of each sequence: the sum of its steps' log-ratios, each given the steps before it."""
        scores = []
        for z in outputs:
            score = 0.0
            for step in steps(z):
                context = step[:2]
                score += _ratio(seen[0][step], seen[1][step]) - _ratio(before[0][context], before[1][context])
            scores.append(score)
        return np.array(scores)

    whole = of_categories([coded(z) for z in first], [coded(z) for z in second])[0]
    return [by_steps, lambda outputs: whole([coded(z) for z in outputs])]


LEARNERS: dict[str, Callable[[Outputs, Outputs], list[Scorer]]] = {
    "category": of_categories,
    "vector": of_vectors,
    "sequence": of_sequences,
}


def _is_number(z: object) -> bool:
    return isinstance(z, (int, float, np.number)) and not isinstance(z, (bool, np.bool_))


def _matrix(outputs: Outputs) -> Array:
    """Return vectors as a matrix of numbers. Refuse NaN and different lengths."""
    rows = [np.asarray(z, dtype=float).reshape(-1) for z in outputs]
    if len({row.size for row in rows}) != 1 or not rows[0].size or np.isnan(matrix := np.array(rows)).any():
        raise InvalidInput(
            "A vector must have the same number of entries in every run. Found vectors of several lengths, or "
            "entries that are not numbers. Audit them as sequences."
        )
    return matrix


def _edges(values: Array) -> Array:
    """Return the edges of bins: every value if there are few, else quantiles of both neighbours' values together."""
    distinct = np.unique(values)
    if distinct.size <= _BINS:
        return distinct[1:]
    return np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1]))


def _bin_ratios(one: Array, two: Array, edges: Array) -> Array:
    """Return the capped log-ratio of every bin."""
    counts: list[NDArray[np.int64]] = [
        np.bincount(np.searchsorted(edges, z, "right"), minlength=edges.size + 1) for z in (one, two)
    ]
    return np.clip(np.log((counts[0] + 0.5) / (counts[1] + 0.5)), -_CAP, _CAP)
