"""The guard of the practical profile: a sparse vector that reports where the hypothesis is wrong.

The guard's share of the budget follows a public rule, ``plan_guard``. At small n its threshold would be too coarse
to help, and the guard gets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.ledger import Entry, Ledger
from hedgerow.privacy.noise import Noise
from hedgerow.privacy.renyi_events import HitRound
from hedgerow.textbook import sparse_vector

GUARD_ROUNDS = 8  # number of ⊤ ("wrong") the guard may answer; each is followed by a measurement and a refit
HIT_ROUNDS = 16  # the same of a guard that pays for hits: each is so cheap that there may be more
GUARD_SHARE = 0.1  # default share of the budget
HIT_SHARE = 0.03  # the same of a guard that pays for hits: its promise is then still narrower
GUARD_HELPS = 0.02  # a guard whose promised bar is wider than this is not bought by default


@dataclass(frozen=True)
class Guard:
    """A sparse vector for the stream.

    ``promise`` is the bar of an answer after ⊥, as a fraction of the rows; ``share`` is the guard's part of the
    budget.
    """

    config: sparse_vector.SparseVector
    promise: float
    share: float


def plan_guard(
    budget: Budget, rows: float, queries: int, beta: float, share: float | None = None, hits: bool = False
) -> Guard | None:
    """Return the guard that this share of the budget buys; None if its promise would be too wide to help.

    All k comparisons of c rounds are right to within w = weight·Δ/ε rows (``sparse_vector.comparison_weight``). With
    its threshold at 2w the guard never fires at errors below w, and after ⊥ the error is at most 3w. It is bought
    when 3w/n is at most 2 %, or when the owner asks for a share. An error above 3w gives ⊤ except with probability
    β/2k, and c ⊤ end the guard. So with k ≥ c, what ⊥ promises holds for any number of questions.

    With ``hits``, the rounds are rounds of hits: the threshold has no noise of its own, and w is less.
    """
    wanted = GUARD_SHARE if share is None else share
    if wanted == 0:
        return None
    if hits:
        return _guard_of_hits(budget, rows, queries, beta, share)
    weight, ratio = sparse_vector.comparison_weight(GUARD_ROUNDS, max(queries, GUARD_ROUNDS), beta)
    epsilon = Amount.share_of(budget, wanted).round_epsilon(GUARD_ROUNDS)
    width = weight * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = sparse_vector.guard_round(epsilon, ratio, budget.linear())
    return Guard(sparse_vector.SparseVector(2 * width, round_, GUARD_ROUNDS), 3 * width / rows, wanted)


def require_hits(budget: Budget) -> None:
    """Refuse a guard that pays for hits where the budget cannot price its rounds."""
    if budget.pure or budget.rows_per_unit > 1:
        raise InvalidInput(
            "pay_for_hits must come with a delta above 0 and one row a person. Found "
            f"{'delta = 0' if budget.pure else 'several rows a person'}. Leave it out."
        )


def _guard_of_hits(budget: Budget, rows: float, queries: int, beta: float, share: float | None) -> Guard | None:
    """Return the guard with a public threshold, by the same rule."""
    wanted = HIT_SHARE if share is None else share
    epsilon = Amount.share_of(budget, wanted).hit_epsilon(HIT_ROUNDS)
    width = sparse_vector.hit_weight(max(queries, HIT_ROUNDS), beta) * budget.linear() / epsilon
    if share is None and 3 * width > GUARD_HELPS * rows:
        return None
    round_ = HitRound(budget.linear(), epsilon)
    return Guard(sparse_vector.SparseVector(2 * width, round_, HIT_ROUNDS), 3 * width / rows, wanted)


class GuardWatch:
    """The running guard: its rounds, each charged when it opens."""

    def __init__(self, guard: Guard, ledger: Ledger, noise: Noise) -> None:
        self.guard, self._ledger, self._noise = guard, ledger, noise
        self._progress = sparse_vector.Progress()

    @property
    def is_on(self) -> bool:
        """True while the guard may still be asked: rounds are left, and one is open or can be paid for."""
        if self._progress.tops >= self.guard.config.rounds:
            return False
        return self._progress.is_open or self._ledger.affords(self.guard.config.guard)

    @property
    def is_open(self) -> bool:
        """True while a round is open, so that one more "right" costs nothing."""
        return self._progress.is_open

    def ready(self) -> None:
        """Open a round if none is open; the round is charged before the data are read."""
        self._progress, _ = sparse_vector.ready(self.guard.config, self._progress, self._ledger, self._noise)

    def is_above(self, value: float) -> bool:
        """Return whether a private value is above the threshold: one bit, billed.

        The value is in rows, and one row of the data moves it by at most 1.
        """
        outcome, self._progress = sparse_vector.step(
            self.guard.config, self._progress, value, self._ledger, self._noise
        )
        return outcome.above

    @property
    def tops(self) -> int:
        """The number of rounds that have ended."""
        return self._progress.tops

    def resume(self, entries: Sequence[Entry], tops: int = 0) -> None:
        """Take up the rounds that ``entries`` record, after ``tops`` rounds that ended before them."""
        before = replace(self._progress, tops=self._progress.tops + tops)
        self._progress = sparse_vector.resume_state(self.guard.config, entries, before)
