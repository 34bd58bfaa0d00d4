"""The guard of the practical profile: a sparse vector that says where the hypothesis is wrong.

Its share of the budget follows a public rule, ``planned_guard``: at small n its threshold would be too coarse to help, and it
gets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.textbook import sparse_vector

GUARD_ROUNDS = 8  # ⊤ the guard may answer; each is followed by a measurement and a refit
GUARD_SHARE = 0.1
GUARD_HELPS = 0.02  # a guard that cannot promise this much is not bought


@dataclass(frozen=True)
class Guard:
    """A sparse vector for the stream, and what it promises: after ⊥ the answer is this close."""

    config: sparse_vector.SparseVector
    promise: float
    share: float


def planned_guard(budget: Budget, rows: float, queries: int, beta: float, share: float | None = None) -> Guard | None:
    """The guard that this share of the budget buys; None where it would cost more than it gives.

    All k comparisons of c rounds are right to within w = weight·Δ/ε rows (``sparse_vector.comparison_weight``), so with
    its threshold at 2w it never fires at errors below w, and after ⊥ the error is at most 3w. It is bought when 3w/n is
    at most 2 %, or when the owner asks for a share. An error above 3w is ⊤ but with probability β/2k, and c ⊤ end the guard: with
    k ≥ c what ⊥ says holds of any number of questions.
    """
    wanted = GUARD_SHARE if share is None else share
    if wanted == 0:
        return None
    weight, ratio = sparse_vector.comparison_weight(GUARD_ROUNDS, max(queries, GUARD_ROUNDS), beta)
    epsilon = Amount.share_of(budget, wanted).round_epsilon(GUARD_ROUNDS)
    width = weight * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = sparse_vector.guard_round(epsilon, ratio, budget.linear())
    return Guard(sparse_vector.SparseVector(2 * width, round_, GUARD_ROUNDS), 3 * width / rows, wanted)


class Watch:
    """The guard at work: its rounds, paid as they open."""

    def __init__(self, guard: Guard, ledger: Ledger, noise: Noise) -> None:
        self.guard, self._ledger, self._noise = guard, ledger, noise
        self._progress = sparse_vector.Progress()

    @property
    def is_on(self) -> bool:
        if self._progress.tops >= self.guard.config.rounds:
            return False
        return self._progress.is_open or self._ledger.affords(self.guard.config.guard)

    @property
    def is_open(self) -> bool:
        """Whether a round is, so that one more "right" costs nothing."""
        return self._progress.is_open

    def ready(self) -> None:
        """Open a round, if none is: it is charged before the data are touched."""
        self._progress, _ = sparse_vector.ready(self.guard.config, self._progress, self._ledger, self._noise)

    def is_above(self, value: float) -> bool:
        """Whether a private value, in rows and 1-sensitive, is above the threshold. One bit, billed."""
        outcome, self._progress = sparse_vector.step(
            self.guard.config, self._progress, value, self._ledger, self._noise
        )
        return outcome.above

    @property
    def tops(self) -> int:
        """How many rounds have ended."""
        return self._progress.tops

    def resume(self, entries: Sequence[Entry], tops: int = 0) -> None:
        """``tops``: the rounds that ended before these entries."""
        before = replace(self._progress, tops=self._progress.tops + tops)
        self._progress = sparse_vector.resumed(self.guard.config, entries, before)
