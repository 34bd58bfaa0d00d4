"""What a search for a model asks of a holdout besides single scores: which features, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray


class HasValue(Protocol):
    @property
    def value(self) -> float: ...


@final
@dataclass(frozen=True)
class Selected:
    """A column, the cut and the side of it that go with the positive class, and how often that is right."""

    column: Any
    cut: float
    above: bool
    score: Any


def best_side(values: NDArray[Any], positive: NDArray[np.bool_]) -> tuple[float, bool]:
    """The mean of a column, and whether rows above it are rather positive."""
    known = values[np.isfinite(values)]
    cut = float(np.mean(known)) if known.size else 0.0
    return cut, bool(np.mean((values > cut) == positive) >= 0.5)


@final
class EarlyStopping:
    """The best model so far, and how long ago it was."""

    def __init__(self, scored: Callable[[Any], HasValue], sign: int, patience: int) -> None:
        self._scored, self._sign, self._patience = scored, sign, patience
        self.best: HasValue | None = None
        self.best_update, self.updates = 0, 0

    def update(self, model: Any) -> bool:
        """Score it; True where no update since the best has been better for ``patience`` of them."""
        score = self._scored(model)
        self.updates += 1
        if self.best is None or self._sign * score.value > self._sign * self.best.value:
            self.best, self.best_update = score, self.updates
        return self.updates - self.best_update >= self._patience
