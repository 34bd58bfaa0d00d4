"""Offline release: spend the whole budget at once on a workload, then answer every later question for free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.convex.minimize import BoundMinimize
from hedgerow.data.source import DataSource
from hedgerow.engine.offline_answers import ConvexReleaseEngine, ReleaseEngine
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Bound
from hedgerow.query.composed import BoundCount
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear, marginal_cells
from hedgerow.query.ratios import BoundMean
from hedgerow.textbook import convex_offline, mwem, small_db
from hedgerow.universe.universe import Universe

EMPTY = 1e-30  # the weight of a cell without rows, far below every promise
ROOM = 1.01  # largest factor on the least α, which is found by bisection


def run_mwem(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float
) -> ReleaseEngine:
    """Run MWEM, the offline mechanism of [W], on a workload of linear questions; a marginal enters cell by cell."""
    _require_public_rows(ledger, "mwem")
    queries = list(dict.fromkeys(query for bound in workload for query in linear_queries(bound, data.universe)))
    config = mwem.configure(
        ledger.budget, cells=data.universe.size, scale=float(data.rows), queries=len(queries), beta=beta
    )
    made = mwem.release(config, queries, data, ledger, noise)
    promised = {query.key: query for query in queries} if made.stopped else {}
    return ReleaseEngine(_rebuild(made.hypothesis), config.scale, config.error, promised)


def linear_queries(bound: Bound[Any], universe: Universe) -> Sequence[Linear]:
    """Return the linear queries whose answers determine the answer of ``bound``."""
    match bound:
        case Linear():
            return [bound]
        case BoundMarginal():
            return marginal_cells(universe, bound.attributes)
        case BoundCount():
            return [bound.low, bound.high]
        case BoundMean():
            return [bound.numerator, bound.denominator]
    raise InvalidInput(
        "The workload of this method must consist of counts, tables and means. Found another kind of question. "
        "Use method='adaptive'."
    )


def run_small_db(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[Bound[Any]], beta: float, vc: int | None
) -> ReleaseEngine:
    """Run SmallDB on a workload of linear questions, with the size that promises the least error.

    ``vc`` is the VC dimension of the questions, if it is known.
    """
    _require_public_rows(ledger, "small_db")
    universe = data.universe
    queries = list(dict.fromkeys(query for bound in workload for query in linear_queries(bound, universe)))
    known = vc if all(query.is_count for query in queries) else None
    size, error = small_db.best_size(universe.size, data.rows, len(queries), beta, ledger.budget.epsilon, known)
    chosen = small_db.release(queries, data, ledger, noise, size=size)
    hypothesis = Hypothesis.of_factors(universe, {universe.names: np.log(np.maximum(chosen.counts, EMPTY))})
    return ReleaseEngine(hypothesis, float(data.rows), error, {query.key: query for query in queries})


def run_convex(
    data: DataSource, ledger: Ledger, noise: Noise, *, workload: Sequence[BoundMinimize], beta: float
) -> ConvexReleaseEngine:
    """Run the offline convex mechanism on declared losses, at the least α that the budget allows."""
    _require_public_rows(ledger, "convex")
    if not workload or any(question.scale is None for question in workload):
        raise InvalidInput(
            "The workload of method='convex' must be convex questions over bounded sets. Found none, or an unbounded "
            "set. Use, for example, workload=[hr.minimize(loss, over=hr.L2Ball(1.0))]."
        )
    if not all(question.is_trusted(()) for question in workload):
        raise InvalidInput(
            "The losses of method='convex' must be those of hedgerow.losses. Found a user-defined one. "
            "Open a session with trusted_losses=[loss]."
        )
    questions = list(dict.fromkeys(workload))
    losses = [(question.risk, question.over) for question in questions]
    S = max(question.scale for question in questions if question.scale is not None)
    rows = float(data.rows)
    given: dict[str, Any] = {"cells": data.universe.size, "rows": rows, "queries": len(questions), "beta": beta}

    def configured(alpha: float) -> convex_offline.OfflineConfig | None:
        return convex_offline.best_configuration(ledger.budget, losses, alpha=alpha, **given)

    config, low, high = configured(S), S, S
    while config is not None and high == low:  # down to an α that is too small
        low = high / 4
        smaller = configured(low)
        config, high = (config, high) if smaller is None else (smaller, low)
    while config is not None and high > ROOM * low:
        middle = math.sqrt(low * high)
        found = configured(middle)
        config, low, high = (config, middle, high) if found is None else (found, low, middle)
    if config is None:
        raise InvalidInput(
            f"The table must have more rows for the convex questions of the workload. Found {data.rows}. Fit each by "
            "itself with hr.erm, or open a session with profile='practical'."
        )
    made = convex_offline.release(config, losses, data, ledger, noise)
    thetas = list(zip(questions, made.answers, strict=True))
    return ConvexReleaseEngine(_rebuild(made.hypothesis), rows, config.online.alpha if made.stopped else None, thetas)


def _rebuild(hypothesis: Hypothesis) -> Hypothesis:
    """Return the hypothesis as its factors make it: a release file then gives the same answers to the last bit."""
    return Hypothesis.of_factors(hypothesis.universe, hypothesis.factors, dense=hypothesis.dense)


def _require_public_rows(ledger: Ledger, method: str) -> None:
    """Refuse neighbours for which n is private."""
    if ledger.budget.neighbours != "replace":
        raise InvalidInput(
            f"neighbours must be 'replace' for method={method!r}, which needs a public n. Found 'add-remove'. "
            "Use method='adaptive'."
        )
