"""An open round of a guard: it compares, says "above" or "below", and keeps its noise to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from hedgerow.errors import InvalidInput
from hedgerow.privacy.process import OneOnly

ABOVE = "above"
"""What is written down of a round: that it ended. Without it the ledger was left in its course."""


@final
class GuardRound(OneOnly):
    """Compares values with one noisy threshold, in whole steps of a grid, until one is above. Opened by ``noise``."""

    __slots__ = ("_draw", "_over", "_threshold")

    def __init__(self, threshold: int, draw: Callable[[], int], over: Callable[[], object]) -> None:
        """``threshold``: T + τ, secret. ``draw``: a fresh ν. ``over``: writes down that the round is."""
        self._threshold: int | None = threshold
        self._draw, self._over = draw, over

    @property
    def is_open(self) -> bool:
        return self._threshold is not None

    def excess(self, value: int) -> int | None:
        """How far value + ν is above T + τ, if it is: ⊤, and the round is over. None is ⊥."""
        threshold, self._threshold = self._threshold, None  # over whatever happens now, and open again only after ⊥
        if threshold is None:
            raise InvalidInput("A round must be open to be compared with. Found one that is over. Open the next.")
        noisy = value + self._draw()  # q + ν ≥ T + τ, in whole steps: without rounding
        if noisy >= threshold:
            self._over()
            return noisy - threshold
        self._threshold = threshold
        return None
