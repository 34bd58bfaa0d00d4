"""A loss over weighted records, as a function of θ: what ``weighted_cells`` is for tables.

Symbols: X the feature vectors, one row per record, w the weights, y the labels, z = Xθ.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.solver.weighted_cells import ListedCells

BLOCK = 1 << 14  # records whose curvature is computed at once


class WeightedRows(ListedCells):
    """The sum Σ w(x)φ(⟨x, θ⟩, y) over records."""

    def __init__(self, risk: GlmRisk, X: Array, y: Array, weights: Array, mass: float) -> None:
        self.risk, self.loss, self.mass = risk, risk.loss, mass
        self.X, self.y, self.weights = X, y, weights

    @classmethod
    def of(cls, risk: GlmRisk, columns: NDArray[np.int32], weights: Array) -> Self:
        """Return the objective of coded records. Those outside ``where`` count with the ridge alone."""
        at = dict(zip(risk.attributes, columns, strict=True))
        mass = float(weights.sum())
        if risk.restriction is not None:
            weights = weights * risk.restriction.table[tuple(at[name] for name in risk.restriction.attributes)]
        names = risk.features.attributes
        X = risk.features.rows({name: at[name] for name in names}) if names else np.ones((weights.size, 1))
        return cls(risk, X, risk.labels[at[risk.target]], weights, mass)

    def parts(self, theta: Array) -> tuple[Array, Array]:
        """Return the predictors and the labels of the records; K outputs are on the last axis."""
        return self.X @ theta.reshape((-1, *self.risk.outputs)), self.y

    def gradient(self, theta: Array) -> Array:
        """Return the weighted sum of gradients."""
        z, y = self.parts(theta)
        each = self.loss.derivative(z, y)
        each = each * (self.weights[:, None] if self.risk.outputs else self.weights)
        return np.asarray((self.X.T @ each).ravel() + self.mass * self.loss.ridge * theta)

    def hessian(self, theta: Array) -> Array:
        """Return the weighted sum of Hessians, a block of records after another."""
        p, K = self.X.shape[1], max(1, math.prod(self.risk.outputs))
        total = np.zeros((p, K, p, K))
        z, y = self.parts(theta)
        for start in range(0, self.weights.size, BLOCK):
            some = slice(start, start + BLOCK)
            X, weights = self.X[some], self.weights[some]
            curved = self.loss.curvature(z[some], y[some]).reshape(weights.size, K, K) * weights[:, None, None]
            for k in range(K):
                for m in range(k, K):
                    block = X.T @ (X * curved[:, k, m, None])
                    total[:, k, :, m] += block
                    if m > k:
                        total[:, m, :, k] += block
        return total.reshape(p * K, p * K) + self.mass * self.loss.ridge * np.eye(p * K)
