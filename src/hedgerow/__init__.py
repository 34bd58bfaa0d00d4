"""hedgerow: any number of adaptive questions about a sensitive table under one fixed privacy budget."""

import importlib
from typing import Any

from hedgerow import losses
from hedgerow.convex.minimize import minimize
from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, Polytope, Simplex, Unconstrained
from hedgerow.data.csv_file import Csv
from hedgerow.errors import (
    BudgetExceeded,
    DataUnavailable,
    HedgerowError,
    InvalidInput,
    NotPrivateWarning,
    TooLarge,
)
from hedgerow.opening import open, release
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Accountant
from hedgerow.questions.attributes import OTHER, Categories, Flag, Integers, Range, isnt
from hedgerow.questions.counts import (
    Query,
    any_of,
    conjunction,
    count,
    interval,
    linear,
    marginal,
    mean,
    parity,
    threshold,
)
from hedgerow.questions.universe import Universe
from hedgerow.questions.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds
from hedgerow.session import Answer, Session

__all__ = [
    "OTHER",
    "Accountant",
    "Answer",
    "Box",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Csv",
    "DataUnavailable",
    "Flag",
    "GroupL1Ball",
    "HedgerowError",
    "Integers",
    "InvalidInput",
    "L1Ball",
    "L2Ball",
    "NotPrivateWarning",
    "Polytope",
    "Query",
    "Range",
    "Session",
    "Simplex",
    "TooLarge",
    "Unconstrained",
    "Universe",
    "Workload",
    "any_of",
    "conjunction",
    "conjunctions",
    "count",
    "interval",
    "intervals",
    "isnt",
    "linear",
    "losses",
    "marginal",
    "marginals",
    "mean",
    "minimize",
    "open",
    "parities",
    "parity",
    "release",
    "threshold",
    "thresholds",
]

_ON_DEMAND = ("audit", "bench", "erm", "estimators", "wire")


def __getattr__(name: str) -> Any:
    """Modules that are loaded when first named: what they import is heavy, or optional."""
    if name in _ON_DEMAND:
        return importlib.import_module(f"hedgerow.{name}")
    raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
