"""hedgerow: any number of adaptive questions about a sensitive table under one fixed privacy budget."""

import importlib
from typing import Any

import hedgerow.questions.files  # noqa: F401  # gives universes their files
from hedgerow import drafting, losses
from hedgerow.answer import Answer
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.data.csv_file import Csv
from hedgerow.data.readers import Typed
from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    LedgerBroken,
    LedgerUnavailable,
    NotPrivateWarning,
    PublicWarning,
    TooLarge,
    UnaccountedWarning,
)
from hedgerow.generalise.holdout import Holdout
from hedgerow.opening import open, release
from hedgerow.planning import Plan, plan
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.questions.attributes import MISSING, OTHER, Categories, Flag, Integers, Range, isnt
from hedgerow.questions.counts import (
    Query,
    any_of,
    conjunction,
    count,
    interval,
    linear,
    marginal,
    parity,
    threshold,
)
from hedgerow.questions.dates import Dates
from hedgerow.questions.quotients import mean, ratio, share
from hedgerow.questions.row_statistic import statistic
from hedgerow.questions.statistics import (
    correlation,
    difference,
    group_by,
    histogram,
    median,
    quantile,
    top,
    total,
    variance,
)
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds
from hedgerow.session import Session

__all__ = [
    "MISSING",
    "OTHER",
    "Accountant",
    "Answer",
    "Box",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Csv",
    "DataUnavailable",
    "Dates",
    "Flag",
    "GroupL1Ball",
    "HedgerowError",
    "Holdout",
    "Integers",
    "InvalidInput",
    "L1Ball",
    "L2Ball",
    "LedgerBroken",
    "LedgerUnavailable",
    "NotPrivateWarning",
    "Plan",
    "Polytope",
    "PublicWarning",
    "Query",
    "Range",
    "Session",
    "Simplex",
    "TooLarge",
    "Typed",
    "UnaccountedWarning",
    "Unconstrained",
    "Universe",
    "Workload",
    "any_of",
    "conjunction",
    "conjunctions",
    "correlation",
    "count",
    "difference",
    "drafting",
    "group_by",
    "histogram",
    "interval",
    "intervals",
    "isnt",
    "linear",
    "losses",
    "marginal",
    "marginals",
    "mean",
    "median",
    "minimize",
    "open",
    "parities",
    "parity",
    "plan",
    "quantile",
    "ratio",
    "release",
    "share",
    "statistic",
    "threshold",
    "thresholds",
    "top",
    "total",
    "variance",
]

_ON_DEMAND = ("audit", "bench", "erm", "estimators", "generalise", "ledgers", "wire")


def __getattr__(name: str) -> Any:
    """Modules that are loaded when first named: what they import is heavy, or optional."""
    if name in _ON_DEMAND:
        return importlib.import_module(f"hedgerow.{name}")
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
