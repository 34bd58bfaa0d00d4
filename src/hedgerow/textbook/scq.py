"""Sampling counting queries: one random row answers yes or no, and lies now and then. Many of them give a count.

A count can be stopped at any time.

Paper: Fish, Reyzin & Rubinstein, *Sampling without compromising accuracy in adaptive data analysis*, Algorithm 3, Lemma
12, Theorem 11, Proposition 13 and §5. Proof: docs/proofs/scq.md. The intervals: Robbins' mixture of Bernoulli
likelihoods, with Ville's inequality.

Symbols: n rows, i of which say yes; α the probability of a lie; k queries; P[yes] = α + (1 − 2α)i/n.

Differs: the loss is exact, log(1 + (1 − 2α)/(αn)), where Lemma 12 bounds it by 1/(αn). Counts take the lies into
account: Proposition 13 averages the answers, which biases them towards one half by up to α, while this module solves
for i/n. The proposition's Hoeffding bound is for a number of flips fixed beforehand. An iterator that may be stopped at
a time chosen from its intervals needs a bound for all numbers at once. The module is only for neighbours that replace a
row, because n is in the loss. The probability of a lie is a multiple of 2^-32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from hedgerow._checks import positive, whole
from hedgerow._types import Integers
from hedgerow.data.row_values import STEPS, Valued
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import COIN, FlippedRows, Laplace
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.noise import Noise

WHY = "sampling counting query"  # purpose of the ledger entries
PRIOR = 0.5  # both parameters of the beta distribution over which an interval's likelihoods are mixed
BLOCK = 1 << 20  # rows that the naive converse reads at a time


@final
@dataclass(frozen=True)
class SCQ:
    """The public facts of a query: n, and the rate of lies in units of 2^-32. Made by ``scq``."""

    rows: int
    heads: int

    @property
    def flip(self) -> float:
        """α, the probability of a lie. The expectation of an answer is this close to the fraction of the table."""
        return self.heads / COIN

    def event(self, times: int = 1) -> FlippedRows:
        """Return the event of the given number of answers."""
        return FlippedRows(self.heads, self.rows, times)


def scq(rows: int, alpha: float) -> SCQ:
    """Return a query that lies with probability α, rounded down."""
    if not 2**-32 <= positive("alpha", alpha) < 0.5:
        raise InvalidInput(f"alpha must be at least 2^-32 and below 1/2. Found {alpha!r}. Give the share of lies.")
    return SCQ(whole("rows", rows), math.floor(alpha * COIN))


def true_rows(valued: Valued) -> Callable[[Integers], NDArray[np.bool_]]:
    """Return a predicate of rows by number: yes for values of at least one half."""
    return lambda indices: valued(indices) * 2 >= STEPS


def sample_yes_no(
    config: SCQ, valued: Valued, rows: int, ledger: Ledger, noise: Noise, times: int = 1
) -> NDArray[np.bool_]:
    """Return ``times`` answers to one question, each about a random row, in a time that does not depend on n."""
    if config.rows != rows:
        raise InvalidInput(f"A query must be for the table's {rows} rows. Found {config.rows}. Make it again.")
    with ledger.exclusively():
        receipt = ledger.charge(config.event(whole("times", times)), why=WHY)

        def holds(indices: Integers) -> NDArray[np.bool_]:
            with ledger.closed():
                return true_rows(valued)(indices)

        return noise.flips(holds, receipt)


# Counts


@final
@dataclass(frozen=True)
class FlipInterval:
    """A fraction of the rows after a number of flips, with an interval [low, high].

    The intervals after all numbers of flips hold at once, except with probability β.
    """

    value: float
    low: float
    high: float
    flips: int
    cost: float

    @property
    def error(self) -> float:
        """The distance to the farther end. ``value`` is the estimate from the flips, not the middle of the interval."""
        return max(self.high - self.value, self.value - self.low)


def count_by_flips(
    config: SCQ, valued: Valued, rows: int, ledger: Ledger, noise: Noise, *, beta: float, at_once: int | None = None
) -> Iterator[FlipInterval]:
    """Yield counts whose interval narrows with more flips, to be stopped at any time (Proposition 13).

    All intervals hold at once with probability 1 − β, so the time to stop may depend on them. ``at_once`` is the number
    of flips between two intervals; by default it is a tenth of all flips so far. The iterator ends with the budget, and
    the last interval is the result.
    """
    if not 0 < positive("beta", beta) < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    yes = asked = 0
    spent, low, high = 0.0, 0.0, 1.0
    while True:
        times = max(1, asked // 10) if at_once is None else at_once
        try:
            answers = sample_yes_no(config, valued, rows, ledger, noise, times)
        except BudgetExceeded:
            if asked == 0:
                raise
            return
        spent += ledger.budget.cost(config.event(times))
        yes, asked = yes + int(answers.sum()), asked + times
        ends = interval(yes, asked, beta)
        low = max(low, honest(ends[0], config.flip))
        high = max(low, min(high, honest(ends[1], config.flip)))
        yield FlipInterval(min(high, max(low, honest(yes / asked, config.flip))), low, high, asked, spent)


def honest(said: float, flip: float) -> float:
    """Return the fraction of rows that say yes, given the fraction of answers that do."""
    return min(1.0, max(0.0, (said - flip) / (1 - 2 * flip)))


def interval(yes: int, asked: int, beta: float) -> tuple[float, float]:
    """Return the interval of probabilities of yes that the answers do not rule out, whenever one stops.

    Under p, M_t(p) = ∫ θ^s(1 − θ)^(t−s) dBeta(½, ½)(θ) / p^s(1 − p)^(t−s) is a martingale that starts at 1, so it ever
    reaches 1/β with probability at most β. It is convex in the logit of p and least at s/t, so the p that remain form
    an interval.
    """
    no = asked - yes
    mixed = float(scipy.special.betaln(PRIOR + yes, PRIOR + no) - scipy.special.betaln(PRIOR, PRIOR))

    def excess(p: float) -> float:
        likelihood = (yes * math.log(p) if yes else 0.0) + (no * math.log1p(-p) if no else 0.0)
        return mixed - likelihood - math.log(1 / beta)

    middle, tiny = min(max(yes / asked, 1e-15), 1 - 1e-15), 1e-300
    if excess(middle) >= 0:  # only rounding can cause this, because the best p is never ruled out
        return 0.0, 1.0
    low = 0.0 if yes == 0 else float(scipy.optimize.brentq(excess, tiny, middle, xtol=1e-12))
    high = 1.0 if no == 0 else float(scipy.optimize.brentq(excess, middle, 1 - 1e-16, xtol=1e-12))
    return max(0.0, low - 2e-12), min(1.0, high + 2e-12)


def samples_for(alpha: float, beta: float, queries: int = 1) -> int:
    """Return ℓ = 2 log(4k/β)/α², the flips of each query if their number is fixed beforehand (Proposition 13)."""
    return math.ceil(2 * math.log(4 * queries / beta) / alpha**2)


# The population, and the converse


def for_population(rows: int, *, alpha: float, beta: float, queries: int) -> tuple[SCQ, Budget]:
    """Return a query and a budget with which every expectation is within α of the population's (Theorem 11).

    The lies are α/2, and all k queries together are (α/64, αβ/16)-private.
    """
    config, budget = scq(rows, alpha / 2), Budget(alpha / 64, alpha * beta / 16)
    least = population_rows(alpha=alpha, beta=beta, queries=queries)
    if rows < least:
        raise InvalidInput(f"rows must be at least {least} for this. Found {rows}. Use more rows, or a larger alpha.")
    return config, budget


def population_rows(*, alpha: float, beta: float, queries: int) -> int:
    """Return the least n of Theorem 11: for the privacy of k flips, and for Theorem 10's 1024 ln(2k/β)/α².

    The theorem prints log(k/β). Its monitor must choose among q and 1 − q for each query, so it has 2kT candidates
    (docs/proofs/scq.md).
    """
    total = Budget(alpha / 64, alpha * beta / 16).total
    high = math.ceil(1024 * math.log(2 * queries / beta) / alpha**2)
    low = high - 1

    def enough(n: int) -> bool:
        return scq(n, alpha / 2).event(queries).rho <= total

    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def naive_flip(alpha: float, beta: float, valued: Valued, rows: int, ledger: Ledger, noise: Noise) -> bool:
    """Flip a coin the naive way, for comparison (§5's converse).

    It counts all rows, adds noise that is within α except with probability β, and flips a coin of that bias. It reads
    the whole table, and its noise costs log(1/β)/(αn), where a sampled flip costs less than 1/(αn).
    """
    event = Laplace(1.0, alpha * rows / math.log(1 / beta), 1 / STEPS)
    with ledger.exclusively():
        receipt = ledger.charge(event, why="naive flip")
        holds = true_rows(valued)
        with ledger.closed():
            total = sum(int(holds(np.arange(s, min(s + BLOCK, rows))).sum()) for s in range(0, rows, BLOCK))
        share = noise.add(float(total), receipt) / rows
    return bool(noise.generator().random() < share)
