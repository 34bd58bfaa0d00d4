"""Private empirical risk minimisation: one solver a file, one contract for all.

``hr.erm.<solver>(X, y, loss=…, over=…, budget=…)`` gives a ``Result``: θ, the events billed, the bound of its theorem.
``auto`` picks the solver. The estimators with scikit-learn's interface load it when first named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hedgerow.erm.auto import auto
from hedgerow.erm.hard_instance import hard_instance
from hedgerow.erm.problem import Result
from hedgerow.erm.solvers.frank_wolfe import frank_wolfe
from hedgerow.erm.solvers.frank_wolfe_general import frank_wolfe_general
from hedgerow.erm.solvers.lasso import lasso
from hedgerow.erm.solvers.mirror_descent import mirror_descent
from hedgerow.erm.solvers.noisy_sgd import noisy_sgd
from hedgerow.erm.solvers.objective_perturbation import objective_perturbation
from hedgerow.erm.solvers.output_perturbation import output_perturbation, regularised_output_perturbation
from hedgerow.erm.solvers.whitened_descent import whitened_descent

if TYPE_CHECKING:
    from hedgerow.erm.estimators import (
        HuberRegressor,
        Lasso,
        LinearRegression,
        LinearSVC,
        LogisticRegression,
        Ridge,
    )

ESTIMATORS = ("HuberRegressor", "Lasso", "LinearRegression", "LinearSVC", "LogisticRegression", "Ridge")

__all__ = [
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Result",
    "Ridge",
    "auto",
    "frank_wolfe",
    "frank_wolfe_general",
    "hard_instance",
    "lasso",
    "mirror_descent",
    "noisy_sgd",
    "objective_perturbation",
    "output_perturbation",
    "regularised_output_perturbation",
    "whitened_descent",
]


def __getattr__(name: str) -> Any:
    if name in ESTIMATORS:
        return getattr(importlib.import_module("hedgerow.erm.estimators"), name)
    raise AttributeError(f"module 'hedgerow.erm' has no attribute {name!r}")
