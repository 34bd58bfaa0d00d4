"""Private empirical risk minimization: fit one model to arrays with one call.

    result = hr.erm.auto(X, y, loss=hr.losses.Logistic(), over=hr.L2Ball(10.0), budget=hr.Budget(1.0, 1e-6))

returns a ``Result``: θ, the events that were billed, their cost, and the bound of the theorem. ``auto`` picks the
solver. Each solver can also be called by its name, with the same parameters and a few of its own. A ``Budget`` pays for
one call. An ``Accountant`` or a session pays for several calls, each with its ``spend``. The estimators have
scikit-learn's interface, and import it on first use.

Inside: ``rows`` reads and clips the rows, ``problem`` holds the public facts and computes exact sums, ``solver`` runs
every solver in ``solvers``, and ``rates`` has the bounds of the paper's table.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from hedgerow.erm.auto import auto
from hedgerow.erm.by_statistical_queries import by_statistical_queries
from hedgerow.erm.solver import Result
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
    from hedgerow.erm.search import PrivateSearch

ESTIMATORS = ("HuberRegressor", "Lasso", "LinearRegression", "LinearSVC", "LogisticRegression", "Ridge")

__all__ = [
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PrivateSearch",
    "Result",
    "Ridge",
    "auto",
    "by_statistical_queries",
    "frank_wolfe",
    "frank_wolfe_general",
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
    if name == "PrivateSearch":
        return importlib.import_module("hedgerow.erm.search").PrivateSearch
    if name == "regularized_output_perturbation":  # another spelling
        return regularised_output_perturbation
    if name == "hard_instance":  # its former place
        warnings.warn(
            "hard_instance is now in hedgerow.research.hard_instance. The former name works in this release only.",
            DeprecationWarning,
            stacklevel=2,
        )
        return importlib.import_module("hedgerow.research.hard_instance").hard_instance
    raise AttributeError(f"module 'hedgerow.erm' has no attribute {name!r}")
