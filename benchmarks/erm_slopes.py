"""Measure how the excess risk grows with rows and features: log-log slopes on the hardest tables of a family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.ticker import NullFormatter

from hedgerow import erm
from hedgerow.convex.sets import L1Ball, L2Ball
from hedgerow.losses import SmoothedHinge, Squared
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu

DELTA = 1e-6

INTRO = """\
Slopes are fitted to the mean excess risk over seeds on a logarithmic scale; ± is one standard error. The risk of a mechanism
is a maximum over tables. So every point is the hardest of a grid of tables, found with some seeds and measured with others.
If the hardest table is at an end of its grid, a harder one may exist beyond it. For the Lipschitz rates, the tables are linear
losses whose mean gradient is ¼ to 16 times the noise.

For the lasso, the tables have s equal coefficients, with s from ¼ to 3 times the number of steps T. A vertex can be told from
noise if its score, about 1/s, exceeds the noise of order T^½·ln(2p/s)/n. With T ∝ n^⅔ the two are equal at s ∝ n^⅔ ∝ T. With
fewer coefficients, all are found. With more, the labels have variance 1/s, so there is less to lose. The rate is for tables
whose features grow with n: the lower bound has p of the order (n ln n)^⅔, and that p is used. With a fixed p, the s
coefficients are a larger share of all features, the noise has fewer others to select, and the slope is steeper. The row
p = 256 shows by how much."""


def slope(x: Sequence[float], points: Sequence[Point]) -> tuple[float, float]:
    """Return the log-log slope by least squares, and its standard error from the errors of the points."""
    u = np.log(x) - np.mean(np.log(x))
    weights = u / (u @ u)
    relative = np.array([point.error / point.risk for point in points])
    return float(weights @ np.log([point.risk for point in points])), float(np.linalg.norm(weights * relative))


# Slopes. The linear loss: SmoothedHinge of width ½ on margins within ±½ is 1 − z − ¼, so the risk is R·‖mean x‖* − ⟨mean x, θ⟩.

LINEAR = SmoothedHinge(width=0.5)
SHARES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
COEFFICIENTS = (0.25, 0.5, 0.75, 1.0, 1.5, 3.0)  # as multiples of the number of steps


class Point(NamedTuple):
    """The risk on the hardest table of a grid, its standard error, and whether that table is inside the grid."""

    risk: float
    error: float
    inside: bool


def hardest(tables: Sequence[float], risk: Callable[[float, int], float], seeds: int) -> Point:
    """Found with some seeds and measured with others, so that the luck of the search does not count."""
    searched = [np.mean([risk(table, seed) for seed in range(max(2, seeds // 2))]) for table in tables]
    i = int(np.argmax(searched))
    measured = [risk(tables[i], 1000 + seed) for seed in range(seeds)]
    error = float(np.std(measured, ddof=1) / math.sqrt(seeds))
    return Point(float(np.mean(measured)), error, 0 < i < len(tables) - 1)


def hardest_mean(
    solve: Callable[[sp.csr_array, np.ndarray, int], np.ndarray], n: int, p: int, noise: float, seeds: int
) -> Point:
    """Over tables whose mean gradient, along one axis, is a share of the noise."""

    def risk(share: float, seed: int) -> float:
        m = min(1.0, share * noise)
        signs = np.where(np.arange(n) < n * (1 + m) / 2, 1.0, -1.0)
        X = sp.csr_array((signs, np.zeros(n, dtype=int), np.arange(n + 1)), shape=(n, p))
        return float(signs.mean() * (0.5 - solve(X, np.ones(n), seed)[0]))

    return hardest(SHARES, risk, seeds)


def linear(solver: Callable[..., erm.Result], over: L1Ball | L2Ball, norm: str, epsilon: float = 1.0):
    def solve(X: sp.csr_array, y: np.ndarray, seed: int) -> np.ndarray:
        return solver(X, y, loss=LINEAR, over=over, budget=Budget(epsilon, DELTA), norm=norm, seed=seed).theta

    return solve


Curve = tuple[list[int], list[Point]]


def l2_by_rows(quick: bool) -> Curve:
    ns, p, seeds = ([1000, 4000, 16000] if quick else [1000, 4000, 16000, 64000]), 50, 3 if quick else 8
    solve = linear(erm.mirror_descent, L2Ball(0.5), "l2")
    return ns, [hardest_mean(solve, n, p, 2 * math.sqrt(p) / (n * gaussian_mu(1.0, DELTA)), seeds) for n in ns]


def l2_by_features(quick: bool) -> Curve:
    ps, n, seeds = ([10, 40, 160] if quick else [10, 40, 160, 640]), 20000, 3 if quick else 8
    solve = linear(erm.mirror_descent, L2Ball(0.5), "l2")
    return ps, [hardest_mean(solve, n, p, 2 * math.sqrt(p) / (n * gaussian_mu(1.0, DELTA)), seeds) for p in ps]


def l1_by_features(solver: Callable[..., erm.Result], norm: str, quick: bool) -> Curve:
    ps, n, seeds = [10, 100, 1000, 10000], 20000, 3 if quick else 10
    solve = linear(solver, L1Ball(0.5), norm)
    return ps, [hardest_mean(solve, n, p, 2 * math.log(2 * p) / (n * gaussian_mu(1.0, DELTA)), seeds) for p in ps]


def lasso_by_rows(features: Callable[[int], int], quick: bool) -> Curve:
    """Algorithm 4 on tables y = ⟨x, ±1/s⟩, s equal coefficients, s about the number of steps."""
    ns = [1000, 2000, 4000, 8000] if quick else [1000, 2000, 4000, 8000, 16_000]
    points = []
    for n in ns:
        rng, p = np.random.default_rng(n), features(n)
        seeds = min(max((10**7 if quick else 5 * 10**7) // (n * p), 8), 64)  # few rows: much noise, little time
        X, signs = rng.choice([-1.0, 1.0], (n, p)), rng.choice([-1.0, 1.0], p)
        solve = partial(erm.lasso, X, budget=Budget(1.0, DELTA), refit=False)
        steps = solve(np.zeros(n), seed=0).iterations

        def risk(share: float, seed: int, X=X, signs=signs, solve=solve, steps=steps) -> float:
            s = max(1, round(share * steps))
            y = X[:, :s] @ signs[:s] / s
            theta = solve(y, seed=seed).theta
            held = np.flatnonzero(theta)
            return float(np.mean((X[:, held] @ theta[held] - y) ** 2)) / 2

        points.append(hardest(COEFFICIENTS, risk, seeds))
    return ns, points


def strongly_convex_by_rows(quick: bool) -> Curve:
    ns, p, ridge, seeds = [2000, 8000, 32000], 20, 0.5, 4 if quick else 8
    points = []
    for n in ns:
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, p))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = np.clip(X @ rng.normal(size=p) * 0.5, -1, 1)
        H = X.T @ X / n + ridge * np.eye(p)
        best = np.linalg.solve(H, X.T @ y / n)
        gaps = [
            erm.mirror_descent(
                X, y, loss=Squared(ridge=ridge), over=L2Ball(1.0), budget=Budget(1.0, DELTA), seed=seed
            ).theta
            - best
            for seed in range(seeds)
        ]
        risks = [gap @ H @ gap / 2 for gap in gaps]
        points.append(Point(float(np.mean(risks)), float(np.std(risks, ddof=1) / math.sqrt(seeds)), True))
    return ns, points


def growing(n: int) -> int:
    """The features of the lower bound, Theorem 5.8."""
    return round((n * math.log(n)) ** (2 / 3))


def slopes(quick: bool, picture: Path | None) -> list[str]:
    log_growth = math.log(2 * 10**4) / math.log(20)
    panels = [
        ("ℓ2 ball, mirror descent", "n", l2_by_rows, "−1 ± 0.15", lambda b: abs(b + 1) <= 0.15),
        ("ℓ2 ball, mirror descent", "p", l2_by_features, "½ ± 0.15", lambda b: abs(b - 0.5) <= 0.15),
        ("ℓ1 ball, mirror descent", "p", partial(l1_by_features, erm.mirror_descent, "l2"), "log p", None),
        ("ℓ1 ball, Frank–Wolfe", "p", partial(l1_by_features, erm.frank_wolfe, "linf"), "log p", None),
        ("lasso, p = (n ln n)^⅔", "n", partial(lasso_by_rows, growing), "−⅔ ± 0.1", lambda b: abs(b + 2 / 3) <= 0.1),
        ("lasso, p = 256", "n", partial(lasso_by_rows, lambda n: 256), "−⅔ or steeper", lambda b: b <= 0.1 - 2 / 3),
        ("ridge, mirror descent", "n", strongly_convex_by_rows, "−2 ± 0.15", lambda b: abs(b + 2) <= 0.15),
    ]
    lines = [
        *INTRO.splitlines(),
        "",
        "| solver | risk against | from … to | measured | expected | met | hardest table inside the grid |",
    ]
    lines.append("|---|---|---|---|---|---|---|")
    figure, axes = plt.subplots(2, 4, figsize=(15, 7), layout="constrained")
    for axis, (name, over, measure, expected, test) in zip(axes.flat, panels, strict=False):
        x, points = measure(quick)
        fitted, error = slope(x, points)
        risk = [point.risk for point in points]
        growth = risk[-1] / risk[0]
        spread = growth * math.hypot(*(points[i].error / risk[i] for i in (0, -1)))
        met = growth <= log_growth if test is None else test(fitted)
        shown = f"slope {fitted:.2f} ± {error:.2f}"
        if test is None:
            shown = f"grows {growth:.2f} ± {spread:.2f} times, log(2p) {log_growth:.2f} times"
        inside = f"{sum(point.inside for point in points)} of {len(points)} points"
        lines.append(
            f"| {name} | {over} | {x[0]:g} … {x[-1]:g} | {shown} | {expected} | {'yes' if met else 'NO'} | {inside} |"
        )
        axis.errorbar(x, risk, [2 * point.error for point in points], fmt="o-", capsize=3)
        axis.set(xscale="log", yscale="log", xlabel=over, ylabel="excess risk")
        axis.set_title(f"{name}\nslope {fitted:.2f}, expected {expected}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(True, which="both", alpha=0.3)
        print(lines[-1], [f"{r:.3g}" for r in risk], flush=True)
    axes.flat[-1].set_axis_off()
    if picture is not None:
        figure.savefig(picture, dpi=110)
    plt.close(figure)
    return lines
