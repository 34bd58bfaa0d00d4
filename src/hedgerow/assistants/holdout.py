"""A holdout for models that an assistant proposes: a separate table, scored within a budget of its own.

A model arrives as data, its prediction for a row depends on that row alone, and its code is the package's own. So the
assumptions of ``hr.Holdout`` hold, and its intervals are valid for any number of models, however they were chosen. The
guess for a score is that of records drawn from the released model of the other table, which is public; as long as the
two agree, a score costs nothing within an open round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.assistants.quoting import column_words
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.features import standardize
from hedgerow.data.coding import cells_of
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.generalise.holdout import Holdout, Score
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import public_generator
from hedgerow.universe.universe import Universe

GUESSED = 20_000  # records of the released model that a guess is computed from
LEAST = 0.01  # share of the budget with which a holdout can still be opened
CLASSIFIERS = ("logistic", "multinomial", "svm")
Cells = NDArray[np.int64]


class ModelHoldout:
    """The held-out rows, coded by the universe of the session's table."""

    def __init__(
        self, frame: Any, universe: Universe, budget: Budget, *, ledger: Ledger | None = None, rounds: int = 10,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        """Code the rows. ``frame`` must have every column of the universe, and none of the table's own rows."""
        missing = [name for name in universe.names if name not in frame.columns]
        if missing:
            raise InvalidInput(
                f"A holdout must have the columns of the table. Found none called {column_words(missing[0])}. Add it."
            )
        if ledger is not None and ledger.remaining < LEAST * budget.total:
            raise BudgetExceeded(
                "A holdout must have budget left. Found that it is exhausted. Hold out fresh rows, or go on without a "
                "holdout."
            )
        self._universe = universe
        cells: Cells = np.column_stack([cells_of(universe, name, frame) for name in universe.names]).astype(np.int64)
        self._holdout = Holdout((cells, np.zeros(len(cells))), budget, ledger=ledger, rounds=rounds, seed=seed)
        self._known: dict[bytes, Score] = {}  # by digest, because a model may be large

    @property
    def rows(self) -> int:
        """Number of rows held out, which is public."""
        return self._holdout.rows

    @property
    def remaining(self) -> float:
        """Share of the holdout's own budget that is left."""
        ledger = self._holdout.ledger
        return ledger.remaining / ledger.budget.total

    def score(self, key: str, risk: GlmRisk, theta: Array, family: str, hypothesis: Hypothesis) -> Score:
        """Return the score of a model. The same ``key`` gets the same score again, at no cost."""
        digest = hashlib.sha256(key.encode()).digest()
        if digest not in self._known:
            value = self._value_of(risk, theta, family)
            drawn = np.asarray(hypothesis.sample(GUESSED, public_generator(0), rounded=True), dtype=np.int64)
            guess = float(np.clip(value(drawn, None), 0.0, 1.0).mean())
            self._known[digest] = self._holdout.mean(value, guess=guess, name=metric_of_family(family))
        return self._known[digest]

    def _value_of(self, risk: GlmRisk, theta: Array, family: str) -> Callable[[Any, Any], Array]:
        """Return the function that gives each coded row its value in [0, 1], from that row alone."""
        places = {name: i for i, name in enumerate(self._universe.names)}
        attribute, at = self._universe[risk.target], places[risk.target]

        def value(rows: Cells, _: Any) -> Array:
            """Return the score or the error of the model on each row, from 0 to 1."""
            cells = {name: rows[:, places[name]] for name in risk.features.attributes}
            features = risk.features.rows(cells)
            if not cells:  # no features: one constant row for all
                features = np.repeat(features, len(rows), axis=0)
            z = features @ theta
            if family in CLASSIFIERS:
                predicted = z.argmax(axis=1) if risk.outputs else (z > 0).astype(np.int64)
                return np.asarray(predicted == rows[:, at], dtype=float)
            if family == "poisson":
                counts = np.nan_to_num(np.asarray(attribute.values))
                error = np.abs(np.exp(np.minimum(z, 50.0)) - counts[rows[:, at]]) / max(1.0, float(np.ptp(counts)))
            else:
                error = np.abs(z - standardize(attribute)[rows[:, at]]) / 2
            return np.asarray(np.clip(error, 0.0, 1.0))

        return value


def metric_of_family(family: str) -> str:
    """Return the name of the score of a family."""
    return "accuracy" if family in CLASSIFIERS else "mean absolute error, as a share of the declared range"
