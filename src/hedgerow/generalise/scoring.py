"""Adapters for scikit-learn: the ``scoring`` and ``cv`` that ``GridSearchCV`` takes. scikit-learn is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from hedgerow._types import Integers
from hedgerow.privacy.process import NotCopyable


@final
class HoldoutScorer(NotCopyable):
    """A scorer for scikit-learn, called as ``scorer(estimator, X, y)``.

    It returns the holdout's score, guessed from X and y. It cannot leave its process, so ``n_jobs`` must not be used.
    """

    def __init__(self, scored: Callable[[Any, Any, Any], float]) -> None:
        self._scored = scored

    def __call__(self, estimator: Any, X: Any, y: Any = None, **ignored: Any) -> float:
        return self._scored(estimator, X, y)


@final
class WholeTrainingSet:
    """A splitter with one split: every row to fit on, and every row to guess from. The test set is the holdout."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Integers, Integers]]:
        """Yield the one split: all rows twice."""
        rows = np.arange(len(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1
