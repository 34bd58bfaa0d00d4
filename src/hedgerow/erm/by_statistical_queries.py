"""Descent by statistical queries on arrays: each step reads a few random rows, in a time that does not grow with n.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithm 4,
Theorems 14 and 21, Corollaries 15 and 16. The mechanism is ``textbook/descent_by_queries``. Proof:
docs/proofs/descent_by_queries.md.

Symbols: S the table, D the population; G a bound on a row's gradient, Δ the diameter of Θ; (ε, δ) the privacy of the
whole call.

The excess over the population: ℓ_x(θ) − ℓ_x(θ₀) is in ±GΔ, and θ is (ε, δ)-private when one row is replaced, so that
E[ℓ_D(θ) − ℓ_S(θ)] ≤ 2GΔ(e^ε − 1 + δ) by the lemma of ``transfer``. As E[min ℓ_S] ≤ min ℓ_D, the expected excess over
the population is at most that plus the expected excess over the table.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._checks import positive
from hedgerow._threads import one_thread
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.data.row_store import in_memory
from hedgerow.erm import values
from hedgerow.erm.solver import Result
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.allowance import Allowance, Payer
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise, Seeded
from hedgerow.textbook import descent_by_queries
from hedgerow.textbook.descent_by_queries import ClippedRisk, DescentPlan

MOST_CALLS = 10_000  # statistical queries of one call, a few seconds of work
FINEST, COARSEST = 1e-4, 10.0  # errors that are tried, as shares of G·Δ


@one_thread
def by_statistical_queries(
    X: Any,
    y: ArrayLike,
    *,
    loss: Loss,
    over: ConvexSet,
    budget: Payer,
    alpha: float | None = None,
    beta: float | None = None,
    feature_bound: float = 1.0,
    label_bound: float = 1.0,
    size: int = 64,
    spend: float | None = None,
    seed: int | None = None,
    noise: Noise | None = None,
) -> Result:
    """Minimize the average loss by gradient descent whose coordinates are statistical queries to a few random rows.

    A call costs a time that does not grow with the number of rows. Use it where rows are many or expensive to read;
    ``auto`` is more accurate for the same budget. Neighbours must replace a row.

    Parameters
    ----------
    X : array or frame
        Features. Its shape is public; values are never refused.
    y : array
        One label per row.
    loss : Loss
        One of ``hedgerow.losses``.
    over : ConvexSet
        A bounded set of allowed θ, such as ``hr.L2Ball(1.0)``.
    budget : Budget, Accountant or Session
        A Budget that pays for this call alone, or an Accountant or session of the same people.
    alpha : float, optional
        The expected excess on the table. Default: the smallest that can be paid for, in at most 10,000 queries.
    beta : float, optional
        Make the excess hold except with this probability, by choosing the best of several runs.
    feature_bound, label_bound : float
        Features and labels are cut to ± these.
    size : int
        Number of random rows of each query.
    spend : float, optional
        Amount of the payer's currency to use. Default: all that is left.
    seed : int, optional
        Makes the noise repeatable, and so not private.
    noise : Noise, optional
        A source of noise, instead of a seed.

    Returns
    -------
    Result
        ``risk_bound`` is about the table, ``population_bound`` about the population. Both are expectations.

    Raises
    ------
    InvalidInput
        If an option is out of range, the neighbours add or remove a row, or X is not a dense array with a label per
        row.

    Example
    -------
    >>> hr.erm.by_statistical_queries(X, y, loss=loss, over=hr.L2Ball(1), budget=budget)  # doctest: +SKIP
    """
    if seed is not None and noise is not None:
        raise InvalidInput("seed and noise must not both be given. Found both. Drop one of them.")
    ledger = Accountant(budget) if isinstance(budget, Budget) else Allowance.of(budget).ledger
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            "neighbours must be 'replace', because the cost of a sample depends on the number of rows. Found "
            "'add-remove'. Use hr.erm.auto."
        )
    matrix, labels = values.matrix(X), values.labels(y)
    if not isinstance(matrix, np.ndarray) or labels.size != matrix.shape[0] or not labels.size:
        raise InvalidInput(
            "X must be a dense array with at least one row, and y must have one label for each row. Found other "
            "shapes. Check X and y."
        )
    names = [f"x{i}" for i in range(matrix.shape[1])]
    named = dataclasses.replace(loss, target="y", features=tuple(names), intercept=False)
    risk = ClippedRisk(named, over, feature_bound, label_bound)
    store = in_memory({"y": labels, **{name: matrix[:, i] for i, name in enumerate(names)}})
    left = ledger.remaining if spend is None else min(positive("spend", spend), ledger.remaining)
    plan = _plan(risk, store.rows, ledger.budget, left, alpha, beta, size)
    before = ledger.spent
    source = noise if noise is not None else Noise() if seed is None else Seeded(seed)
    theta = descent_by_queries.minimize(plan, store, ledger, source)
    bound = plan.expected_excess if alpha is None or beta is None else alpha
    events = (plan.query.event,) * plan.calls + (() if plan.choice is None else (plan.choice,))
    return Result(
        theta, events, ledger.spent - before, bound, plan.steps * plan.runs, "by_statistical_queries",
        population_bound=bound + population_gap(risk, ledger.budget),
    )  # fmt: skip


def population_gap(risk: ClippedRisk, budget: Budget) -> float:
    """Return 2GΔ(e^ε − 1 + δ), at most 2GΔ: the difference of the expected excess over the population and the table."""
    ε, δ = budget.epsilon, budget.delta
    return 2 * risk.norm * risk.diameter * min(1.0, math.expm1(min(ε, 1.0)) + δ)


def _plan(
    risk: ClippedRisk, rows: int, budget: Budget, left: float, alpha: float | None, beta: float | None, size: int
) -> DescentPlan:
    """Return the plan for α, or for the smallest α that the amount pays for within ``MOST_CALLS``."""
    if alpha is not None:
        plan = descent_by_queries.configure(risk, rows, alpha=alpha, beta=beta, size=size)
        if plan.cost(budget) > left * (1 + 1e-12):
            raise BudgetExceeded(
                f"cost must be at most {left:.4g} (what may be spent). Found {plan.cost(budget):.4g} for {plan.calls} "
                "queries. Ask for less accuracy, or use more rows."
            )
        return plan
    scale, found = risk.norm * risk.diameter, None
    for share in np.geomspace(COARSEST, FINEST, 200):
        for noisy in (0.1, 0.5, 2.0, 8.0):  # much noise in few rows, or little in more steps
            plan = descent_by_queries.configure(
                risk, rows, alpha=float(share) * scale, beta=beta, size=size, noise=noisy
            )
            if plan.calls <= MOST_CALLS and plan.cost(budget) <= left:
                found = plan
                break
        else:
            break
    if found is None:
        raise BudgetExceeded(
            f"The amount must pay for one step at least. Found {left:.4g} for {rows} rows. Use more rows or budget."
        )
    return found
