"""The problems on which erm_peers.py compares: classification tables and one sparse regression, each with its least risk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit

from hedgerow import demo
from hedgerow.convex.sets.convex_set import shrink_to_sum

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
Array = np.ndarray


class Classification:
    """The average logistic loss of a table with rows of norm at most 1. Equal rows are summed once, with their count."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y
        self.n, self.p = X.shape
        self.entry_bound = float(np.abs(X).max())  # known from the encoding
        distinct, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
        rows = np.ascontiguousarray(distinct[:, :-1])
        self._rows = sp.csr_array(rows) if np.mean(rows != 0) < 0.5 else rows
        self._columns = sp.csr_array(self._rows.T) if sp.issparse(self._rows) else rows.T
        self._labels, self._weights = distinct[:, -1], counts / self.n
        options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-8}
        self.least = 0.0
        self.least = minimize(
            self.value_and_gradient, np.zeros(self.p), jac=True, method="L-BFGS-B", options=options
        ).fun

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        z = self._rows @ theta
        value = float(self._weights @ (np.logaddexp(0, z) - self._labels * z))
        return value, self._columns @ (self._weights * (expit(z) - self._labels))

    def gradient(self, theta: Array) -> Array:
        return self._columns @ (self._weights * (expit(self._rows @ theta) - self._labels))

    def risk(self, theta: Array) -> float:
        return self.value_and_gradient(theta)[0] - self.least


def adult() -> Classification | None:
    """Income above 50K from 78 indicators: seven attributes one-hot, age in 8 bins, hours in 6, any capital gains, losses."""
    path = DATA / "adult" / "adult.csv.gz"
    if not path.exists():
        return None
    table = pd.read_csv(path)
    sizes = {
        "workclass": 9, "education-num": 16, "marital-status": 7, "occupation": 15, "relationship": 6, "race": 5, "sex": 2,
    }  # fmt: skip
    parts = [np.eye(size)[table[name]] for name, size in sizes.items()]
    parts += [np.eye(8)[np.minimum(table["age"] // 9, 7)], np.eye(6)[np.minimum(table["hours-per-week"] // 17, 5)]]
    parts += [np.eye(2)[(table[name] > 0).astype(int)] for name in ("capital-gain", "capital-loss")]
    X = np.hstack(parts)
    keep = np.random.default_rng(0).permutation(len(table))[:39074]
    return Classification(X[keep] / np.sqrt(len(parts)), table["income>50K"].to_numpy(float)[keep])


def nltcs() -> Classification | None:
    """The last of 16 disability items from the other 15 as ±1, and a constant."""
    path = DATA / "nltcs" / "nltcs.csv.gz"
    if not path.exists():
        return None
    items = pd.read_csv(path).to_numpy(float)
    X = np.column_stack([2 * items[:, :-1] - 1, np.ones(len(items))])
    return Classification(X / np.sqrt(X.shape[1]), items[:, -1])


def rand_hie() -> Classification:
    """Predict a doctor's visit in a year from plan and health: numbers over their public maxima, health one-hot, a constant."""
    table = pd.read_parquet(demo.path())
    largest = {
        "coinsurance": 100,
        "incentive": 1300,
        "expense_limit": 4000,
        "physical_limitation": 1,
        "chronic_diseases": 60,
    }
    parts = [table[name] / top for name, top in largest.items()] + [table["individual_deductible"]]
    parts += [table["health"] == level for level in ("excellent", "good", "fair", "poor")] + [np.ones(len(table))]
    X = np.column_stack(parts).astype(float)
    return Classification(X / np.sqrt(len(largest) + 3), (table["visits"] > 0).to_numpy(float))


@dataclass
class Regression:
    """½ the mean squared residual over ‖θ‖₁ ≤ 1, entries ±1, s coefficients of size 1/s, noise of 0.1 on the label."""

    n: int
    p: int
    s: int = 10
    X: Array = field(init=False, repr=False)
    y: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.choice(np.array([-1, 1], dtype=np.int8), (self.n, self.p)).astype(np.float64)
        truth = np.zeros(self.p)
        truth[rng.choice(self.p, self.s, replace=False)] = rng.choice([-1.0, 1.0], self.s) / self.s
        self.y = np.clip(self.X @ truth + 0.1 * rng.normal(size=self.n), -1, 1)
        self._gram, self._cross = self.X.T @ self.X / self.n, self.X.T @ self.y / self.n
        self._half = float(self.y @ self.y) / (2 * self.n)
        self._single = self.X.astype(np.float32), self.y.astype(np.float32)
        best, self.least = np.zeros(self.p), 0.0
        for _ in range(300):
            best = self.project(best - 0.7 * self.gradient(best))
        self.least = self.risk(best)

    def risk(self, theta: Array) -> float:
        return float(theta @ self._gram @ theta / 2 - self._cross @ theta) + self._half - self.least

    def gradient(self, theta: Array) -> Array:
        """Return a gradient without clipped residuals, which favors the peer over a bound of 1."""
        return self._gram @ theta - self._cross

    def clipped_gradient(self, theta: Array, bound: float, rows: int) -> Array:
        """Return the gradient of the first rows, with every residual cut to ±bound."""
        X, y = self._single[0][:rows], self._single[1][:rows]
        return (X.T @ np.clip(X @ theta.astype(np.float32) - y, -bound, bound)).astype(np.float64) / rows

    @staticmethod
    def project(theta: Array) -> Array:
        return np.sign(theta) * shrink_to_sum(np.abs(theta), 1.0)
