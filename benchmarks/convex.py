"""200 regressions, classifiers and medians in one session against one private fit for each. Writes docs/benchmarks-convex.md.

    python benchmarks/convex.py [--seeds 3] [--quick]

Needs the integer-coded Adult data beside the repository (../shared); without them it says what it skips. ε = 1, δ = 1e-9
for everything a method releases. All methods have the same losses, the same one-hot features (rows of norm √(features + 1),
the intercept among them) and the same set {‖θ‖ ≤ 5}. The single-query method is noisy gradient descent with clipped
slopes, its number of steps, step size and averaging chosen per query by the true excess risk, which no private user
could do; it has 1/200 of the budget, or all of it for every single query.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.solver.public_minimum import minimize_over
from hedgerow.data import Table
from hedgerow.errors import NotPrivateWarning
from hedgerow.losses import Absolute, Hinge, Logistic, Squared
from hedgerow.research.pages import short_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "adult_dense"
EPSILON, DELTA, QUERIES, RADIUS = 1.0, 1e-9, 200, 5.0
COMPARED, BY_SOLVERS = 40, 8  # of the queries, the first ones, for the slower methods
KINDS = {"logistic": Logistic, "linear": Squared, "SVM": Hinge, "median": Absolute}
LABELS_ONLY = ("marital-status", "relationship", "race")  # integer codes without an order: no numeric targets
CLIP = 2.0  # of the slope of the single-query method: squared losses are not Lipschitz worth the name
warnings.simplefilter("ignore", NotPrivateWarning)


@dataclass
class Case:
    kind: str
    query: hr.Query
    risk: GlmRisk
    least: float  # the least average loss on the table


def cases(data: Table, how_many: int, seed: int = 0) -> list[Case]:
    """Random losses, targets and one to seven features."""
    rng, universe, found = np.random.default_rng(seed), data.universe, []
    binary = [n for n in universe.names if universe[n].size == 2]
    numeric = [n for n in universe.names if n not in LABELS_ONLY]
    for i in range(how_many):
        kind = list(KINDS)[i % len(KINDS)]
        target = str(rng.choice(binary if kind in ("logistic", "SVM") else numeric))
        others = [n for n in universe.names if n != target]
        features = [str(n) for n in rng.choice(others, rng.integers(1, 8), replace=False)]
        query = hr.minimize(KINDS[kind](target=target, features=features, onehot=features), hr.L2Ball(RADIUS))
        risk = query.on(universe).risk
        least = (
            minimize_over(
                risk, data.marginal(risk.attributes), hr.L2Ball(RADIUS), 1e-5 if risk.is_smooth else 1e-4
            ).value
            / data.rows
        )
        found.append(Case(kind, query, risk, least))
    return found


def excess(case: Case, data: Table, theta: np.ndarray) -> float:
    return case.risk.objective(data.marginal(case.risk.attributes)).value(theta) / data.rows - case.least


def in_a_session(
    data: Table, asked: list[Case], budget: hr.Budget, seed: int, declared: bool = False
) -> tuple[list[float], list[Any], dict[str, float]]:
    began = time.perf_counter()
    workload = [case.query for case in asked] if declared else None
    session = hr.open(data, universe=data.universe, budget=budget, seed=seed, workload=workload)
    opened = time.perf_counter()
    answers = session.ask_all([case.query for case in asked], progress=False)
    took = {"opening, s": opened - began, "all answers, s": time.perf_counter() - opened}
    return [excess(c, data, a.value) for c, a in zip(asked, answers, strict=True)], answers, took


def bounded(asked: list[Case], runs: list[tuple[list[float], list[Any], dict[str, float]]]) -> str:
    """Return the number of answers with a bound, its width beside the true excess risk, and the number of bounds that hold."""
    kinds = [case.kind for case in asked] * len(runs)
    found = [(a.error, r) for risks, answers, _ in runs for a, r in zip(answers, risks, strict=True)]
    rows = []
    for kind in [*KINDS, "all"]:
        some = [(e, r) for k, (e, r) in zip(kinds, found, strict=True) if kind in (k, "all")]
        stated = [(e, max(r, 0.0)) for e, r in some if e is not None]
        if stated:
            bound, excess_ = (float(np.median([pair[i] for pair in stated])) for i in (0, 1))
            held = sum(r <= e for e, r in stated)
            rows.append(
                {"loss": kind, "answers": len(some), "with a bound": len(stated), "that hold": held, "median bound": bound, "median excess": excess_}
            )  # fmt: skip
    return markdown(rows) if rows else "none"


def alone(data: Table, case: Case, budget: hr.Budget, rho: float, rng: np.random.Generator) -> float:
    """The best of a few settings of noisy gradient descent with this much ρ, by its true excess risk."""
    risk, n, ball = case.risk, data.rows, hr.L2Ball(RADIUS)
    counts = data.marginal(risk.attributes)
    taken = np.argwhere(counts > 0)  # the cells that hold rows, as rows with weights: the same sums, sooner
    cells = {name: taken[:, i] for i, name in enumerate(risk.attributes)}
    X, y = risk.features.rows(cells), risk.labels[cells[risk.target]]
    weights = counts[tuple(taken.T)].astype(float)
    slope = min(CLIP, risk.slope_bound(ball))
    L, p = slope * risk.features.row_norm_bound, risk.dimension

    def excess_of(theta: np.ndarray) -> float:
        return float(weights @ risk.loss.value(X @ theta, y)) / n - case.least

    best = excess_of(np.zeros(p))
    for T, factors in ((40, (0.1, 0.3, 1.0, 3.0)), (400, (0.03, 0.1, 0.3, 1.0, 3.0, 10.0))):
        sigma = budget.gradient(L) * math.sqrt(T / (2 * rho))
        usual = 2 * RADIUS / math.sqrt(T * (L**2 + p * (sigma / n) ** 2))
        for factor in factors:
            theta, later = np.zeros(p), np.zeros(p)
            for k in range(T):  # steps that shrink to nothing: the last point of a loss with kinks settles
                slopes = np.clip(risk.loss.derivative(X @ theta, y), -slope, slope)
                step = factor * usual * (1 - k / T)
                theta = ball.project(theta - step * (X.T @ (weights * slopes) + rng.normal(0, sigma, p)) / n)
                later += theta if k >= T // 2 else 0.0
            best = min(best, excess_of(theta), excess_of(later / (T - T // 2)))
    return best


def by_solvers(data: Table, frame: pd.DataFrame, asked: list[Case], share: float) -> list[dict[str, Any]]:
    """The package's own one-shot solvers on one-hot arrays, as a user would call them."""
    rows = []
    for name, spent in (("a share each", share), ("all of it each", 1.0)):
        for method in ("auto", "mirror_descent", "objective_perturbation"):
            risks = []
            for i, case in enumerate(asked):
                cells = {n: frame[n].to_numpy() for n in case.risk.features.attributes}
                X, y = case.risk.features.rows(cells), case.risk.labels[frame[case.risk.target].to_numpy()]
                whole = hr.Budget(EPSILON, DELTA)
                rho = spent * whole.total
                epsilon = (
                    EPSILON if spent == 1 else rho + 2 * math.sqrt(rho * math.log(1 / DELTA))
                )  # what a share converts to
                try:
                    result = getattr(hr.erm, method)(
                        X, y, loss=type(case.risk.loss)(), over=hr.L2Ball(RADIUS), budget=hr.Budget(epsilon, DELTA),
                        row_bound=case.risk.features.row_norm_bound, seed=i,
                    )  # fmt: skip
                except hr.HedgerowError:
                    continue  # a loss the solver does not take
                risks.append((excess(case, data, result.theta), case.kind))
            if risks:
                rows.append(
                    {
                        "method": f"erm.{method}, {name}",
                        "queries": len(risks),
                        "mean excess": float(np.mean([r for r, _ in risks])),
                    }
                )
    return rows


def table_of(asked: list[Case], columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Means by loss, of the queries that every method of the table has answered."""
    kinds = np.array([case.kind for case in asked])
    rows = []
    for kind in [*KINDS, "all"]:
        chosen = kinds == kind if kind != "all" else np.ones(len(kinds), bool)
        row: dict[str, Any] = {"loss": kind, "queries": int(chosen.sum())}
        for name, risks in columns.items():
            row[f"{name}, mean"] = float(risks[chosen].mean())
        row["hedgerow, worst"] = float(columns["hedgerow"][chosen].max())
        rows.append(row)
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    head = list(rows[0])
    shown = [[f"{row[k]:.3g}" if isinstance(row[k], float) else str(row[k]) for k in head] for row in rows]
    return "\n".join(["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *shown]])


def picture(columns: dict[str, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    colours = {"hedgerow": "tab:green", "alone, 1/200 each": "tab:red", "alone, all of it each": "tab:gray"}
    for name, risks in columns.items():
        axes.plot(np.arange(1, len(risks) + 1), np.sort(np.maximum(risks, 1e-6)), color=colours[name], label=name)
    axes.set(
        yscale="log",
        xlabel="queries, easiest first",
        ylabel="excess risk",
        title="Adult, 8 attributes, ε = 1, δ = 1e-9",
    )
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "benchmark-convex.png", dpi=150)
    plt.close(figure)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=2)
    arguments.add_argument("--quick", action="store_true", help="a tenth of the queries, one seed, nothing written")
    given = arguments.parse_args()
    if not DATA.exists():
        print("skipped: convex questions on Adult (no data at shared/data/adult_dense beside the repository)")
        return
    began = time.perf_counter()
    frame = pd.read_csv(DATA / "adult_dense.csv.gz")
    data = Table(frame, hr.Universe.from_sizes(json.loads((DATA / "adult_dense-domain.json").read_text())))
    budget = hr.Budget(EPSILON, DELTA)
    asked = cases(data, QUERIES // 10 if given.quick else QUERIES)
    runs = [in_a_session(data, asked, budget, seed) for seed in range(1 if given.quick else given.seeds)]
    declared = [in_a_session(data, asked, budget, seed, True) for seed in range(len(runs))]
    ours = np.mean([risks for risks, _, _ in runs], axis=0)
    some, rng = asked[: 8 if given.quick else COMPARED], np.random.default_rng(1)
    columns = {
        "hedgerow": ours[: len(some)],
        "alone, 1/200 each": np.array([alone(data, c, budget, budget.total / QUERIES, rng) for c in some]),
        "alone, all of it each": np.array([alone(data, c, budget, budget.total, rng) for c in some]),
    }
    compared = table_of(some, columns)
    mean, share, whole = (compared[-1][f"{name}, mean"] for name in columns)
    bars = [
        (a.error, r) for risks, answers, _ in runs for a, r in zip(answers, risks, strict=True) if a.error is not None
    ]
    times = {k: float(np.mean([t[k] for _, _, t in runs])) for k in runs[0][2]}
    text = (
        f"# Benchmarks: convex questions\n\nWritten by `python benchmarks/convex.py`: {len(asked)} random logistic, linear, SVM and median "
        f"questions about Adult (48,842 rows, 8 attributes), one to seven one-hot features, ε = 1 and δ = 1e-9 for all of them together, "
        f"neighbours replace a row; means over {len(runs)} sessions. Excess risk: the average loss minus the smallest average loss over "
        f"the set {{‖θ‖ ≤ 5}}.\n\n## All {len(asked)} questions in one session\n\n{markdown(table_of(asked, {'hedgerow': ours}))}\n\n"
        f"Mean excess risk {ours.mean():.4f} (bar 0.004). Error bars are stated for {len(bars)} of {len(asked) * len(runs)} answers and "
        f"{sum(r <= e for e, r in bars)} of them hold. Opening a session {times['opening, s']:.1f} s, all answers {times['all answers, s']:.1f} s.\n\n"
        f"## Bounds on the excess risk where the questions are declared (`workload=`)\n\n{bounded(asked, declared)}\n\n"
        f"## The first {len(some)} of them, compared with one private fit for each\n\nEvery query is fitted by noisy gradient descent on its own. Its steps and "
        f"step size are chosen for each query by the true excess risk, which a private user could not do.\n\n{markdown(compared)}\n\n"
        f"{share / mean:.1f} times better than fits that share the budget (bar 5); {mean / whole:.2f} of the excess risk of fits that "
        "each have the whole budget (bar 2).\n"
    )
    if not given.quick:
        solvers = by_solvers(data, frame, asked[:BY_SOLVERS], 1 / QUERIES)
        text += f"\n## The package's own one-shot solvers on the first {BY_SOLVERS} (hedgerow: {ours[:BY_SOLVERS].mean():.4f})\n\n{markdown(solvers)}\n"
        picture(columns)
        (ROOT / "docs" / "benchmarks-convex.md").write_text(
            short_lines(text) + "\n![excess risk by query](benchmark-convex.png)\n"
        )
    print(text)
    print(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
