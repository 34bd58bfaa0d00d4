"""Find what the deviations of all measured pairs have in common: a few directions over the values of all attributes.

    D       the deviations of all pairs from what the model believes, as one symmetric matrix over the values of all
            attributes; each attribute's rows are divided by s_a, so that all noise is about alike
    D = U diag(λ) Uᵀ
    e       the edge of the noise: noise alone has hardly an eigenvalue beyond e = 2·√(largest sum of variances in a row)

Values that deviate from the model mostly do so alike in many pairs: whoever explains one deviation of an attribute
explains others. So the matrix of true deviations has few large eigenvalues, and noise spreads over all of them. An
eigenvalue becomes sign(λ)·√(λ² − e²), and 0 within the edge: the shrinkage that is optimal in mean square for a matrix
of few directions in noise (Gavish & Donoho, "Optimal shrinkage of singular values", 2017; Shabalin & Nobel 2013). Of a
cell's noise the part h_i + h_j − h_i·h_j is left, h_i the kept share of the unit vector of value i.

Everything here is a function of released values, and continuous in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hedgerow._types import Array, Names

LEAST_NOISE = 1e-3  # least part of a cell's noise that is taken to be left


class CommonDeviations(NamedTuple):
    """What the factors say of one pair: the deviations of its cells, and the variance of their noise."""

    off: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class CommonFactors:
    """The kept directions: their ``vectors`` and ``signs``, and the ``kept`` share h of every value."""

    sizes: Mapping[str, int]
    vectors: Array
    signs: Array
    kept: Array

    @classmethod
    def none(cls) -> CommonFactors:
        """Return factors of no attribute."""
        return cls({}, np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    @classmethod
    def fit(
        cls, sizes: Mapping[str, int], off: Mapping[Names, Array], variances: Mapping[Names, float]
    ) -> CommonFactors:
        """Find the factors of the pairs' deviations ``off``, whose cells have noise of these variances."""
        logs: dict[str, list[float]] = {name: [] for name in sizes}
        for pair, variance in variances.items():
            for name in pair:
                logs[name].append(0.5 * math.log(variance))
        means = {name: math.fsum(each) / len(each) for name, each in logs.items() if each}
        half = math.fsum(means.values()) / max(len(means), 1) / 2
        scale = {name: math.exp(means.get(name, half) - half) for name in sizes}
        place = _places(sizes)
        matrix = np.zeros((sum(sizes.values()),) * 2)
        spread = dict.fromkeys(sizes, 0.0)
        for (a, b), table in off.items():
            unit = scale[a] * scale[b]
            matrix[place[a], place[b]] = table / unit
            matrix[place[b], place[a]] = table.T / unit
            spread[a] += variances[a, b] / unit**2 * sizes[b]
            spread[b] += variances[a, b] / unit**2 * sizes[a]
        edge = 4 * max(spread.values(), default=0.0)
        values, vectors = np.linalg.eigh(matrix)
        beyond = np.square(values) > edge
        values, vectors = values[beyond], vectors[:, beyond]
        shrunk = np.sqrt(np.square(values) - edge)
        kept = np.square(vectors) @ (shrunk / np.abs(values))
        rows = np.concatenate([np.full(size, scale[name]) for name, size in sizes.items()] or [np.zeros(0)])
        return cls(sizes, rows[:, None] * vectors * np.sqrt(shrunk), np.sign(values), kept)

    @classmethod
    def restore(cls, sizes: Mapping[str, int], state: Mapping[str, Any] | None) -> CommonFactors:
        """Rebuild the factors that ``state`` described; without them there are none."""
        return cls.none() if state is None else cls(sizes, state["vectors"], state["signs"], state["kept"])

    def state(self) -> dict[str, Any]:
        """Return the factors as plain data."""
        return {"vectors": self.vectors, "signs": self.signs, "kept": self.kept}

    def of_pair(self, pair: Names, variance: float) -> CommonDeviations | None:
        """Return what the factors say of a pair whose cells have noise of this variance; None without factors."""
        if not len(self.signs):
            return None
        place = _places(self.sizes)
        a, b = place[pair[0]], place[pair[1]]
        left = self.kept[a][:, None] + self.kept[b] - np.multiply.outer(self.kept[a], self.kept[b])
        off = (self.vectors[a] * self.signs) @ self.vectors[b].T
        return CommonDeviations(off, np.maximum(left, LEAST_NOISE) * variance)


def _places(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Return the rows of each attribute's values."""
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return {name: slice(first, last) for name, first, last in zip(sizes, ends, ends[1:], strict=False)}
