"""hedgerow answers any number of adaptive questions about a sensitive table under one fixed privacy budget.

Every public name is imported when it is first used, so that ``import hedgerow`` takes almost no time.
"""

import importlib as _importlib
import typing as _typing

from hedgerow import _deprecated

if _typing.TYPE_CHECKING:
    from hedgerow import drafting, losses
    from hedgerow.answer import Answer
    from hedgerow.client.remote import connect
    from hedgerow.convex.minimize import minimize
    from hedgerow.convex.sets import (
        Box,
        GroupL1Ball,
        InterpolationBall,
        L1Ball,
        L2Ball,
        NuclearBall,
        Polytope,
        Simplex,
        Unconstrained,
    )
    from hedgerow.data.csv_file import Csv
    from hedgerow.data.readers import TrustSchema
    from hedgerow.errors import (
        BudgetExceeded,
        DataUnavailable,
        FitChangedWarning,
        HedgerowError,
        InvalidInput,
        InvalidRelease,
        LedgerBroken,
        LedgerUnavailable,
        NotPrivateWarning,
        PublicWarning,
        TooLarge,
        UnaccountedWarning,
    )
    from hedgerow.generalise.holdout import Holdout
    from hedgerow.opening import open, release
    from hedgerow.planning.plan import plan
    from hedgerow.planning.report import Plan
    from hedgerow.privacy.budget import Budget
    from hedgerow.privacy.ledger import Accountant
    from hedgerow.profiles import Practical, Theory
    from hedgerow.query.counts import (
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
    from hedgerow.query.ratios import mean, share
    from hedgerow.query.row_statistic import statistic
    from hedgerow.query.statistics import (
        compare,
        correlation,
        cramers_v,
        difference,
        group_by,
        histogram,
        interpolated_quantile,
        median,
        odds_ratio,
        quantile,
        ratio,
        relative_risk,
        survival,
        top,
        total,
        trend,
        variance,
    )
    from hedgerow.query.workloads import Workload, conjunctions, intervals, marginals, parities, thresholds
    from hedgerow.release_file.release import Release, load
    from hedgerow.session import Session
    from hedgerow.universe.attributes import MISSING, OTHER, Categories, Flag, Integers, Range, not_
    from hedgerow.universe.dates import Dates
    from hedgerow.universe.universe import Universe

_NAMES = {  # public names, by the module that defines them
    "answer": ["Answer"],
    "client.remote": ["connect"],
    "convex.minimize": ["minimize"],
    "convex.sets": [
        "Box",
        "GroupL1Ball",
        "InterpolationBall",
        "L1Ball",
        "L2Ball",
        "NuclearBall",
        "Polytope",
        "Simplex",
        "Unconstrained",
    ],
    "data.csv_file": ["Csv"],
    "data.readers": ["TrustSchema"],
    "errors": [
        "BudgetExceeded",
        "DataUnavailable",
        "FitChangedWarning",
        "HedgerowError",
        "InvalidInput",
        "InvalidRelease",
        "LedgerBroken",
        "LedgerUnavailable",
        "NotPrivateWarning",
        "PublicWarning",
        "TooLarge",
        "UnaccountedWarning",
    ],
    "generalise.holdout": ["Holdout"],
    "opening": ["open", "release"],
    "planning.plan": ["plan"],
    "planning.report": ["Plan"],
    "privacy.budget": ["Budget"],
    "privacy.ledger": ["Accountant"],
    "profiles": ["Practical", "Theory"],
    "universe.attributes": ["Categories", "Flag", "Integers", "MISSING", "OTHER", "Range", "not_"],
    "query.counts": [
        "Query",
        "any_of",
        "conjunction",
        "count",
        "interval",
        "linear",
        "marginal",
        "parity",
        "threshold",
    ],
    "universe.dates": ["Dates"],
    "query.ratios": ["mean", "share"],
    "query.row_statistic": ["statistic"],
    "query.statistics": [
        "compare",
        "correlation",
        "cramers_v",
        "difference",
        "group_by",
        "histogram",
        "interpolated_quantile",
        "median",
        "odds_ratio",
        "quantile",
        "ratio",
        "relative_risk",
        "top",
        "total",
        "survival",
        "trend",
        "variance",
    ],
    "universe.universe": ["Universe"],
    "query.workloads": ["Workload", "conjunctions", "intervals", "marginals", "parities", "thresholds"],
    "release_file.release": ["Release", "load"],
    "session": ["Session"],
}
_MODULES = (
    *("audit", "drafting", "erm", "estimators", "generalise", "ledger", "losses", "serialize", "textbook", "unsafe"),
    "wire",
)
_deprecated.install()
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_RENAMED = {"Typed": "TrustSchema", "isnt": "not_"}  # names of the version before
_SPELLINGS = {"generalize": "generalise"}  # another spelling of a module

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
    "FitChangedWarning",
    "Flag",
    "GroupL1Ball",
    "HedgerowError",
    "Holdout",
    "Integers",
    "InterpolationBall",
    "InvalidInput",
    "InvalidRelease",
    "L1Ball",
    "L2Ball",
    "LedgerBroken",
    "LedgerUnavailable",
    "NotPrivateWarning",
    "NuclearBall",
    "Plan",
    "Polytope",
    "Practical",
    "PublicWarning",
    "Query",
    "Range",
    "Release",
    "Session",
    "Simplex",
    "Theory",
    "TooLarge",
    "TrustSchema",
    "UnaccountedWarning",
    "Unconstrained",
    "Universe",
    "Workload",
    "any_of",
    "compare",
    "conjunction",
    "conjunctions",
    "connect",
    "correlation",
    "count",
    "cramers_v",
    "difference",
    "drafting",
    "group_by",
    "histogram",
    "interpolated_quantile",
    "interval",
    "intervals",
    "linear",
    "load",
    "losses",
    "marginal",
    "marginals",
    "mean",
    "median",
    "minimize",
    "not_",
    "odds_ratio",
    "open",
    "parities",
    "parity",
    "plan",
    "quantile",
    "ratio",
    "relative_risk",
    "release",
    "share",
    "statistic",
    "survival",
    "threshold",
    "thresholds",
    "top",
    "total",
    "trend",
    "variance",
]


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return _importlib.import_module(f"hedgerow.{name}")
    if name == "__version__":
        metadata = _importlib.import_module("importlib.metadata")
        try:
            return metadata.version("hedgerow")
        except metadata.PackageNotFoundError:
            return metadata.version("hedgerow-client")
    if name in _SPELLINGS:
        return __getattr__(_SPELLINGS[name])
    if name in _RENAMED:
        from hedgerow._renamed import warn_once

        warn_once(f"hr.{name}", f"hr.{_RENAMED[name]}")
        return __getattr__(_RENAMED[name])
    if name not in _HOME:
        former = _deprecated.find_moved(name)
        if former is not None:
            return former
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
    found = getattr(_importlib.import_module(f"hedgerow.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
