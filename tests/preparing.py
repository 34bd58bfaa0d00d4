"""Problems for tests of solvers, with the parameters that the front door would fill in."""

from __future__ import annotations

import inspect
from typing import Any

from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.erm import problem, solver
from hedgerow.erm.rows import Arrays
from hedgerow.privacy.budget import Budget

DEFAULTS = {
    name: inspect.signature(solver.solve).parameters[name].default for name in ("row_bound", "norm", "label_bound")
} | {"expected_rows": None}


def prepared(X: Any, y: Any, loss: Loss, over: ConvexSet, budget: Budget, **choices: Any) -> problem.Problem:
    return problem.prepare_problem(Arrays(X, y), loss=loss, over=over, budget=budget, **DEFAULTS | choices)
