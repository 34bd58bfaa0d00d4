"""A holdout in scikit-learn's words: what ``GridSearchCV`` takes as ``scoring`` and ``cv``. scikit-learn itself is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from hedgerow._types import Integers
from hedgerow.privacy.process import OneOnly


@final
class HoldoutScorer(OneOnly):
    """``scorer(estimator, X, y)``: the holdout's score, guessed from X and y. It stays in its process: no ``n_jobs``."""

    def __init__(self, scored: Callable[[Any, Any, Any], float]) -> None:
        self._scored = scored

    def __call__(self, estimator: Any, X: Any, y: Any = None, **ignored: Any) -> float:
        return self._scored(estimator, X, y)


@final
class WholeTrainingSet:
    """One split: every row to fit on, and every row to guess from. The test set is the holdout."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Integers, Integers]]:
        rows = np.arange(len(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 1
