"""One open round of a guard, which compares values with a noisy threshold and keeps its noise secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from hedgerow.errors import InvalidInput
from hedgerow.privacy.process import NotCopyable

ABOVE = "above"
"""The value that a ledger records when a round has ended.

If it is missing, the ledger was left while the round was open.
"""


@final
class GuardRound(NotCopyable):
    """A round that compares values with one noisy threshold, in whole grid steps, until a value is above.

    Rounds are opened by ``noise``.
    """

    __slots__ = ("_draw", "_over", "_threshold")

    def __init__(self, threshold: int, draw: Callable[[], int], over: Callable[[], object]) -> None:
        """Open a round at a secret noisy threshold.

        ``threshold`` is T + τ. ``draw`` returns a fresh ν for each comparison. ``over`` records that the round has
        ended.
        """
        self._threshold: int | None = threshold
        self._draw, self._over = draw, over

    @property
    def is_open(self) -> bool:
        """True until a value was above the threshold."""
        return self._threshold is not None

    def excess(self, value: int) -> int | None:
        """Compare a value with the threshold. Return how far value + ν is above T + τ, or None if it is below.

        A value that is above (⊤) ends the round. After a value that is below (⊥) the round goes on.
        """
        threshold, self._threshold = self._threshold, None  # an exception ends the round; only ⊥ opens it again
        if threshold is None:
            raise InvalidInput("A round must be open for a comparison. Found one that has ended. Open the next round.")
        noisy = value + self._draw()  # q + ν ≥ T + τ, in whole grid steps, so nothing is rounded
        if noisy >= threshold:
            self._over()
            return noisy - threshold
        self._threshold = threshold
        return None
