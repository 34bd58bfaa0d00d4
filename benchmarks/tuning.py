"""A private search among models beside one model with the whole budget, on four real tables: `make bench-tuning`.

`python benchmarks/tuning.py [TABLE …]` writes docs/benchmarks-tuning.md, or the lines of some tables anew. Every way has ε = 1,
δ = 10⁻⁶ for all it does with the training rows, and is judged by the classes of rows that no way has seen.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tables import load

import hedgerow as hr
from hedgerow.erm.search import PrivateSearch

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks-tuning.md"
BUDGET = hr.Budget(1.0, 1e-6)
TABLES = ("adult", "nltcs", "census", "ballots")
SEEDS = 3
SMALL = 20  # attributes with more values are one number
MOST = 15_000  # rows of a table that are taken
HEAD = """# Private tuning
*Written by `make bench-tuning` (benchmarks/tuning.py).*

The share of right classes on rows that nothing was fitted to, at ε = 1, δ = 10⁻⁶: means of {seeds} seeds, ± their standard
errors. `PrivateSearch` pays for the choice, which leaves less for the fit that wins.

- **bounds**: 8 logistic regressions, whose `row_bound` is 1/64 to 2 times the norm of a row.
- **wide**: the same for logistic regressions and support vector machines: 16 models.
- **one fit**: the whole budget for the model with the row's norm as its bound, without a search. For *a poor guess* the
  bound is 64 times less.
- **all, split**: every candidate once, each with an equal part of ρ, a fifth of it for the score.
- **most frequent**: the share of the more frequent class.

| table | rows | candidates | one fit | a poor guess | private search | all, split | most frequent |
|---|---|---|---|---|---|---|---|
"""


def problem(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns of indicators and of numbers from 0 to 1, whose rows have about the same norm, and the target."""
    table = load(name)
    parts = []
    for column, (attribute, size) in enumerate(table.sizes.items()):
        if attribute != table.target:
            codes = table.codes[:, column]
            parts.append(np.eye(size)[codes] if size <= SMALL else (codes / (size - 1))[:, None])
    y = table.codes[:, list(table.sizes).index(table.target)]
    middle = table.sizes[table.target] // 2
    return np.hstack(parts) / np.sqrt(len(parts)), (y >= max(middle, 1)).astype(int)


def candidates(wide: bool) -> list[object]:
    bounds = [2.0**-k for k in range(-1, 7)]
    kinds: list[Callable[..., object]] = (
        [hr.erm.LogisticRegression, hr.erm.LinearSVC] if wide else [hr.erm.LogisticRegression]
    )
    return [kind(BUDGET, classes=[0, 1], row_bound=bound) for kind in kinds for bound in bounds]


def split(models: list[object], X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> object:
    """Fit every candidate once. Fits and scores share the budget as those of a search do."""
    account, each = hr.Accountant(BUDGET), BUDGET.total / len(models)
    price = hr.Budget(_epsilon(0.8 * each), BUDGET.delta)
    best: tuple[float, object] | None = None
    for model in models:
        made = type(model)(**{**model.get_params(), "budget": price, "ledger": account})  # type: ignore[attr-defined]
        made.fit(X, y)
        score = (made.predict(X) == y).sum() + rng.normal() / np.sqrt(2 * 0.2 * each)
        if best is None or score > best[0]:
            best = score, made
    assert best is not None
    return best[1]


def _epsilon(rho: float) -> float:
    from hedgerow.privacy.conversion import epsilon_of_rho

    return epsilon_of_rho(rho, BUDGET.delta) * (1 - 1e-9)


def measured(name: str, wide: bool) -> str:
    X, y = problem(name)
    order = np.random.default_rng(0).permutation(y.size)[:MOST]
    test, train = order[: order.size // 5], order[order.size // 5 :]
    models = candidates(wide)
    found: list[list[float]] = []
    for seed in range(SEEDS):
        good = hr.erm.LogisticRegression(BUDGET, classes=[0, 1], row_bound=1.0)
        poor = hr.erm.LogisticRegression(BUDGET, classes=[0, 1], row_bound=1 / 64)
        ways = [
            good.fit(X[train], y[train]),
            poor.fit(X[train], y[train]),
            PrivateSearch(models, BUDGET).fit(X[train], y[train]),
            split(models, X[train], y[train], np.random.default_rng(seed)),
        ]
        found.append([float((way.predict(X[test]) == y[test]).mean()) for way in ways])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(SEEDS)
    cells = " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
    base = max(y[test].mean(), 1 - y[test].mean())
    return f"| {name} | {train.size:,} | {'wide' if wide else 'bounds'} ({len(models)}) | {cells} | {base:.4f} |"


def main() -> None:
    """Measure all tables, or those that are named, and keep the lines of the others."""
    warnings.simplefilter("ignore")
    found = {name: [measured(name, wide) for wide in (False, True)] for name in sys.argv[1:] or TABLES}
    before = PAGE.read_text().splitlines() if PAGE.exists() else []
    lines = {name: [line for line in before if line.startswith(f"| {name} |")] for name in TABLES} | found
    bills = []
    for wide in (False, True):
        bill = PrivateSearch(candidates(wide), BUDGET).bill()
        bills.append(
            f"A search of {len(candidates(wide))} candidates expects {bill.runs:.1f} runs and fits each with {bill.share:.0%} "
            f"of ρ. A candidate is tried with\nprobability {bill.tried:.2f}. Splitting leaves each fit {bill.split:.0%}."
        )
    every = [line for name in TABLES for line in lines[name]]
    PAGE.write_text(HEAD.format(seeds=SEEDS) + "\n".join(every) + "\n\n" + "\n".join(bills) + "\n")


if __name__ == "__main__":
    main()
