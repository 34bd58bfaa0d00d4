"""The peers of erm_peers.py: each a plain function of its settings, the grids, and diffprivlib in its own environment.

The Frank–Wolfe and the approximate minima perturbation are those of the public benchmark (Iyengar, Near, Song, Thakkar,
Thakurta & Wang, "Towards practical differentially private convex optimization", 2019), with its noise and its grids, written
anew. Where this departs from its code it is to the peer's advantage: Frank–Wolfe sees all rows in a step, not 1,000, may step by 2/(t+2)
besides 1/(t+1), and its bound on the entries is the exact one; approximate minima may use the smoothness ¼ of the logistic
loss besides 1.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from erm_data import Classification, Regression
from scipy.optimize import minimize

from hedgerow.privacy.conversion import gaussian_mu

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".venv-peers"
DELTA = 1e-6
BEYOND = " (no bar)"  # ends the name of a peer that is shown but not asked for
Array = np.ndarray


class Measured(NamedTuple):
    """The mean excess risk over seeds and its standard error; or why there is none."""

    risk: float
    error: float = math.nan
    note: str = ""


def measured(risks: Sequence[float]) -> Measured:
    spread = float(np.std(risks, ddof=1)) / math.sqrt(len(risks)) if len(risks) > 1 else math.nan
    return Measured(float(np.mean(risks)), spread)


def best_of(
    settings: Iterable[tuple],
    run: Callable[..., Sequence[Array]],
    risk: Callable[[Array], float],
    seeds: int,
    tries: int = 1,
) -> tuple[Measured, tuple]:
    """The least mean risk over the settings: tuned by looking at the answer, which no private user could.

    A run may give several θ, each a candidate. All are tried with few seeds, and the four best then with all of them.
    """

    def risks(setting: tuple, seed: int) -> list[float]:
        return [risk(theta) for theta in run(*setting, np.random.default_rng(seed))]

    first = {setting: np.mean([risks(setting, seed) for seed in range(tries)], axis=0) for setting in settings}
    ranked = sorted(((mean[k], setting, k) for setting, mean in first.items() for k in range(len(mean))))[:4]
    again = {
        setting: np.array([risks(setting, seed) for seed in range(seeds)]) for setting in {row[1] for row in ranked}
    }
    found = [(measured(again[setting][:, k]), (*setting, k)) for _, setting, k in ranked]
    return min(found, key=lambda row: row[0].risk)


def noisy_descent(
    gradient, project, p: int, n: int, L: float, ε: float, steps: int, η: float, rng
) -> tuple[Array, Array]:
    """θ ← Π(θ − η(∇ + noise)); T Gaussians are one; add-or-remove: sensitivity L/n. The average of the later half, the last."""
    sigma = L * math.sqrt(steps) / (n * gaussian_mu(ε, DELTA))
    theta, total = np.zeros(p), np.zeros(p)
    for t in range(steps):
        theta = project(theta - η * (gradient(theta) + sigma * rng.normal(size=p)))
        total += theta if t >= steps // 2 else 0
    return total / (steps - steps // 2), theta


def plain_frank_wolfe(gradient, p: int, n: int, L: float, ε: float, steps: int, radius: float, pace: int, rng):
    """The printed Laplace scale on the scores of ±radius·e_j; steps pace/(t + pace)."""
    scale = L * radius * math.sqrt(8 * steps * math.log(1 / DELTA)) / (n * ε)
    theta = np.zeros(p)
    for t in range(steps):
        g = radius * gradient(theta)
        sign, j = divmod(int(np.argmin(np.concatenate([g, -g]) + rng.laplace(0, scale, 2 * p))), p)
        mu = pace / (t + pace)
        theta *= 1 - mu
        theta[j] += mu * (-radius if sign else radius)
    return (theta,)


def approximate_minima(table: Classification, ε: float, share: float, out: float, beta: float, rng):
    """Add a linear term and a ridge, minimize to a gradient of γ, and add noise to the result; `share` goes to the first."""
    n, p, γ = table.n, table.p, 1 / table.n**2
    ε_out, δ_out = out * ε, out * DELTA
    ε_objective, δ_objective = ε - ε_out, DELTA - δ_out
    ridge = 2 * beta / ((1 - share) * ε_objective)
    b = rng.normal(0, 2 / n * (1 + math.sqrt(2 * math.log(1 / δ_objective))) / (share * ε_objective), p)

    def objective(theta):
        value, gradient = table.value_and_gradient(theta)
        return value + ridge / (2 * n) * theta @ theta + b @ theta, gradient + ridge / n * theta + b

    options = {"gtol": γ, "ftol": 1e-14, "maxiter": 2000}
    found = minimize(objective, np.zeros(p), jac=True, method="L-BFGS-B", options=options).x
    return (found + rng.normal(0, n * γ / ridge * (1 + math.sqrt(2 * math.log(1 / δ_out))) / ε_out, p),)


def on_classification(table: Classification, ε: float, seeds: int, quick: bool) -> dict[str, tuple[Measured, tuple]]:
    """Every plain peer, at the best of its grid."""
    n, p = table.n, table.p
    steps = (30, 100) if quick else (10, 30, 100, 300, 1000)
    paces = (10.0, 20.0, 40.0) if quick else (2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
    budgets = (10, 50) if quick else (5, 10, 20, 50, 100, 500, 1000)
    radii = (10.0, 30.0, 60.0) if quick else (3.0, 10.0, 30.0, 60.0, 100.0, 200.0, 500.0)
    return {
        "noisy gradient descent, steps tuned": best_of(
            product(steps, paces),
            lambda *s: noisy_descent(table.gradient, lambda theta: theta, p, n, 1.0, ε, *s),
            table.risk, seeds, tries=1 if quick else 2,
        ),
        "Frank–Wolfe of the public benchmark, tuned": best_of(
            product(budgets, radii, (1, 2)),
            lambda *s: plain_frank_wolfe(table.gradient, p, n, table.entry_bound, ε, *s),
            table.risk, seeds,
        ),
        "approximate minima of the public benchmark, tuned": best_of(
            product((0.9, 0.99) if quick else (0.9, 0.95, 0.98, 0.99), (0.01,) if quick else (0.001, 0.01, 0.1, 0.5), (0.25, 1.0)),
            lambda *s: approximate_minima(table, ε, *s),
            table.risk, seeds,
        ),
    }  # fmt: skip


def on_regression(table: Regression, ε: float, seeds: int, quick: bool) -> dict[str, tuple[Measured, tuple]]:
    n, p = table.n, table.p
    steps = (1, 3, 10) if quick else (1, 2, 3, 5, 10, 20, 40, 100)
    etas = (0.3, 1.0, 2.0) if quick else (0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0)

    def clipped(bound: float, rows: int):
        def run(steps: int, η: float, rng):
            gradient = lambda theta: table.clipped_gradient(theta, bound, rows)  # noqa: E731
            return noisy_descent(gradient, table.project, p, n, bound * math.sqrt(p), ε, steps, η, rng)

        return run

    found = {
        "noisy gradient descent with ℓ1 projection, steps tuned": best_of(
            product(steps, etas),
            lambda *s: noisy_descent(table.gradient, table.project, p, n, math.sqrt(p), ε, *s),
            table.risk, seeds, tries=2,
        ),
        "Frank–Wolfe of the public benchmark, tuned": best_of(
            product((5, 20, 100) if quick else (5, 10, 20, 50, 100, 500, 1000), (1.0,), (1, 2)),
            lambda *s: plain_frank_wolfe(table.gradient, p, n, 1.0, ε, *s),
            table.risk, seeds, tries=2,
        ),
    }  # fmt: skip
    bounds, sample = (0.1, 0.2, 0.3, 0.5), min(n, 20_000)  # the search sees a sample; what is reported, all rows
    tried = {
        c: best_of(product([t for t in steps if t <= 10], etas[-5:]), clipped(c, sample), table.risk, 1) for c in bounds
    }
    best = min(bounds, key=lambda c: tried[c][0].risk)
    setting = tried[best][1]
    risks = [table.risk(clipped(best, n)(*setting[:2], np.random.default_rng(k))[setting[2]]) for k in range(seeds)]
    found["noisy gradient descent with ℓ1 projection, clipping tuned too" + BEYOND] = measured(risks), (best, *setting)
    return found


def diffprivlib(
    table: Classification | Regression, epsilons: Sequence[float], seeds: int, quick: bool
) -> list[tuple[Measured, tuple]]:
    """diffprivlib 0.6.4, pure ε as it has no other; the best of its default C and a grid of ridges, for each ε."""
    linear = isinstance(table, Regression)
    ridges = (
        (0.0,) if linear else (0.0, 10.0, 100.0) if quick else (0.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
    )
    python, why = environment()
    if python is None:
        return [(Measured(math.nan, note=f"skipped: {why}"), ())] * len(epsilons)
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task.npz", Path(folder) / "answer.npz"
        X = table.X.astype(np.int8) if linear else table.X
        model = "linear" if linear else "logistic"
        np.savez(task, X=X, y=table.y, model=model, epsilons=epsilons, ridges=ridges, seeds=np.arange(seeds))
        done = subprocess.run(
            [python, "-I", HERE / "peer_diffprivlib.py", task, answer], capture_output=True, text=True
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return [(Measured(math.nan, note="skipped: its script failed"), ())] * len(epsilons)
        thetas = np.load(answer)["theta"]
    zero, rows = table.risk(np.zeros(table.p)), []
    for by_ridge in thetas:
        found = [
            (measured([table.risk(theta) for theta in by_seed]), (ridge,))
            for ridge, by_seed in zip(ridges, by_ridge, strict=True)
        ]
        best = min(found, key=lambda row: math.inf if math.isnan(row[0].risk) else row[0].risk)
        if not best[0].risk < 100 * zero:
            best = best[0]._replace(note=f"diverged ({best[0].risk:.0e})"), best[1]
        rows.append(best)
    return rows


def environment() -> tuple[Path | None, str]:
    """The Python of .venv-peers, made from peers.txt when it is not there or is of another list."""
    wanted, mark = (HERE / "peers.txt").read_text(), PEERS / "made-from.txt"
    python = PEERS / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if python.exists() and mark.exists() and mark.read_text() == wanted:
        return python, ""
    print("making .venv-peers for diffprivlib", flush=True)
    shutil.rmtree(PEERS, ignore_errors=True)
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-r", HERE / "peers.txt"]
    for command in ([sys.executable, "-m", "venv", PEERS], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return None, "the environment of benchmarks/peers.txt could not be made here"
    mark.write_text(wanted)
    return python, ""
