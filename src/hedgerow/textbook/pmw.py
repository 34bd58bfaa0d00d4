"""Online private multiplicative weights for linear queries, with the guarantee of the papers.

Papers: Hardt & Rothblum, *A multiplicative weights mechanism for privacy-preserving data analysis*; Dwork & Roth, *The
Algorithmic Foundations of Differential Privacy*, Algorithm 6, Theorems 4.13–4.15; Ullman, *Private multiplicative
weights beyond linear queries*, §1.2. Proof: docs/proofs/pmw.md.

Symbols: D the data, D̂ the hypothesis, n rows, |X| cells, k queries in all, c rounds of the guard, η step of the
update, w the width in rows within which every comparison and every measurement must stay, β the probability that one
does not. The threshold is 2α, a mistake is an error above α, and every answer is within 3α with probability 1 − β.

Differs: noise is calibrated by the ledger, not by the book's constants. It is smaller, so the rows that Theorems 4.14
(with 36 for 32) and 4.15 require are more than enough. With δ > 0 the mechanism is (ε, δ)-DP, where Theorem 4.13 says
(ε, 0). One guard on |⟨q,D⟩ − ⟨q,D̂⟩|, in whole rows, replaces the book's two one-sided ones. There are ⌊L⌋ + 1 rounds,
L the bound of Theorem 4.10, so that a round is always left unless something failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

from hedgerow.data import counting
from hedgerow.data.source import DataSource
from hedgerow.errors import BudgetExceeded, InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, Gaussian, Laplace
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.query.linear import Linear, require_table
from hedgerow.textbook import multiplicative_weights as experts
from hedgerow.textbook import sparse_vector
from hedgerow.textbook.bounds import smallest_alpha
from hedgerow.textbook.multiplicative_weights import Step

MEASURED = "pmw: measurement"  # purpose of the ledger entries that teach the hypothesis


@final
@dataclass(frozen=True)
class PMWConfig:
    """The public parameters of a run, fixed before the first query. Made by ``configure``."""

    scale: float  # n, or under add-remove a public estimate of it
    cells: int
    queries: int
    alpha: float
    beta: float
    step: Step
    rounds: int
    guard: AboveThreshold
    measurement: Laplace | Gaussian

    @property
    def threshold(self) -> float:
        """The threshold 2α in whole rows, so that the guard compares multiples of its noise's grid without rounding."""
        return float(round(2 * self.alpha * self.scale))

    @property
    def eta(self) -> float:
        """η, the step of the update."""
        return experts.step_size(self.alpha, self.step)

    @property
    def error(self) -> float:
        """3α: every answer is this close to the data, with probability 1 − β."""
        return 3 * self.alpha

    @property
    def grid(self) -> float:
        """The grid of the values of queries that are not counts."""
        return counting.grid_for(self.scale, _spread(self.measurement))

    @property
    def sparse_vector(self) -> sparse_vector.SparseVector:
        """The guard as a sparse vector."""
        return sparse_vector.SparseVector(self.threshold, self.guard, self.rounds)


def configure(
    budget: Budget,
    *,
    cells: int,
    scale: float,
    queries: int,
    beta: float,
    alpha: float | None = None,
    step: Step = "hoeffding",
    share: float = 1.0,
) -> PMWConfig:
    """Calibrate to the whole budget. By default α is the smallest that ``scale`` rows can guarantee.

    ``scale`` is n under replace-one. Under add-remove n is private, so give a public estimate ñ. Each statement about
    errors then has an additional term |n − ñ|/ñ, which the code that states the error must add (``theory``). Answers
    stay that close, but the mechanism may stop before all queries are asked, because an update at an error near |n −
    ñ|/ñ need not improve the hypothesis. ``share`` is the share of the budget to use, if the rest paid for ñ.
    """
    _require(cells, scale, queries, beta)
    smallest = smallest_alpha(lambda a: rows_needed(budget, a, beta, queries, cells, step, share), scale)
    if math.isinf(smallest) or (alpha is not None and alpha < smallest):
        least = rows_needed(budget, alpha or 0.3, beta, queries, cells, step, share)
        raise InvalidInput(
            f"rows must be at least {math.ceil(least)} for alpha = {alpha or 0.3:g}. Found {scale:g}"
            + ("" if math.isinf(smallest) else f", for which alpha can be {smallest:.4g}")
            + ". Use more rows, a larger budget, or a larger alpha."
        )
    alpha = smallest if alpha is None else alpha
    guard, measurement, rounds, _ = _calibrate(budget, alpha, beta, queries, cells, step, share)
    return PMWConfig(scale, cells, queries, alpha, beta, step, rounds, guard, measurement)


def rows_needed(
    budget: Budget,
    alpha: float,
    beta: float,
    queries: int,
    cells: int,
    step: Step = "hoeffding",
    share: float = 1.0,
) -> float:
    """Return the rows for which ``configure`` guarantees α. The calibrated noise needs fewer than the book states."""
    *_, width = _calibrate(budget, alpha, beta, queries, cells, step, share)
    return (width + 2) / alpha  # rounding the hypothesis, the threshold and all noise loses less than two rows


def _calibrate(
    budget: Budget, alpha: float, beta: float, queries: int, cells: int, step: Step, share: float
) -> tuple[AboveThreshold, Laplace | Gaussian, int, float]:
    """Return the events of one round, the number of rounds, and the width w that they reach. All scale with w.

    Together they spend the whole share. Guard: ε = G/w, G from ``comparison_weight`` at 2β/3. Measurement: c draws stay
    within w except with probability β/3, by c·exp(−w/b) for Laplace and 2c·exp(−w²/2σ²) for Gaussian noise.
    """
    delta = budget.linear()
    c = experts.update_bound(alpha, cells, step) + 1
    G, ratio = sparse_vector.comparison_weight(c, queries, 2 * beta / 3)
    if budget.pure:
        M = math.log(3 * c / beta)
        w = delta * c * (G + M) / (share * budget.total)  # c(G + M)Δ/w = ε
        measurement: Laplace | Gaussian = Laplace(delta, w / M)
    else:
        M = math.sqrt(2 * math.log(6 * c / beta))
        # c(G² + M²)Δ²/(2w²) = ρ, because ε·tanh(ε/2) ≤ ε²/2
        w = delta * math.sqrt(c * (G**2 + M**2) / 2 / (share * budget.total))
        measurement = Gaussian(delta, w / M)
    return sparse_vector.guard_round(G * delta / w, ratio, delta), measurement, c, w


@final
@dataclass(frozen=True)
class PMWAnswer:
    """An answer as a fraction, its source, and its cost in the budget's currency."""

    value: float
    source: Literal["hypothesis", "measured"]
    cost: float
    measured_rows: float | None = None
    """The raw, unclipped measurement, from which the hypothesis can be rebuilt."""


@final
class OnlinePMW:
    """A mechanism that answers adaptively chosen linear queries about the data, one after the other.

    ``hypothesis`` is public. A round of the guard is charged when it opens. A query that the hypothesis answers within
    an open round costs nothing. After c updates, or when the ledger refuses, ``ask`` raises BudgetExceeded.
    """

    def __init__(
        self,
        config: PMWConfig,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        hypothesis: Hypothesis | None = None,
    ) -> None:
        self.config = config
        self.hypothesis = Hypothesis(data.universe) if hypothesis is None else hypothesis
        self.updates = 0
        self._data, self.ledger, self._noise = data, ledger, noise
        self._guard, self._grid = config.sparse_vector, config.grid
        self._progress = sparse_vector.Progress()
        self._measurements = {step: replace(config.measurement, grid=step) for step in (1.0, self._grid)}

    @one_at_a_time
    def ask(self, query: Linear) -> PMWAnswer:
        """Answer one query: from the hypothesis if the guard says that its error is small, else by a measurement."""
        query = counting.on_grid(self.hypothesis.universe, query)
        # Refuse what is too large before the data are touched: the answer, the update, and the table of counts.
        believed = self.hypothesis.answer(query)  # ⟨q, D̂⟩
        self.hypothesis.require(query.attributes)
        require_table(query.attributes, query.shape)
        self._progress, opening = sparse_vector.ready(self._guard, self._progress, self.ledger, self._noise)
        step = counting.step_of(query, self._grid)
        measurement = self._measurements[step]
        self._require_afforded(measurement)
        N = counting.exact_count(query, self._data.marginal(query.attributes), step)
        gap = abs(N - counting.nearest(self.config.scale * believed, step))
        outcome, self._progress = sparse_vector.step(self._guard, self._progress, gap, self.ledger, self._noise)
        if not outcome.above:
            return PMWAnswer(believed, "hypothesis", opening)
        receipt = self.ledger.charge(measurement, why=MEASURED, about={"query": query})
        measured = float(self._noise.add(N, receipt))
        cost = opening + receipt.cost
        self._learn(query, measured, believed)
        return PMWAnswer(min(1.0, max(0.0, measured / self.config.scale)), "measured", cost, measured)

    def resume(self, entries: Sequence[Entry]) -> None:
        """Restore the progress of the guard.

        ``relearn`` restores the updates, in the order of all mechanisms' entries.
        """
        self._progress = sparse_vector.resume_state(self._guard, entries, self._progress)

    def relearn(self, entry: Entry) -> None:
        """Repeat the update of one entry, if it is a released measurement."""
        if entry.why == MEASURED and entry.is_complete:
            query, (measured,) = entry.about["query"], entry.released
            self._learn(query, measured, self.hypothesis.answer(query))

    def _require_afforded(self, measurement: Laplace | Gaussian) -> None:
        """Refuse before the guard is asked, so that a refusal says nothing about the guard's answer."""
        if not self.ledger.affords(measurement):
            raise BudgetExceeded(
                f"The budget must afford a measurement of {self.ledger.budget.cost(measurement):.4g}. "
                f"Found {self.ledger.remaining:.4g} left of {self.ledger.limit}. Stop here."
            )

    def _learn(self, query: Linear, measured: float, believed: float) -> None:
        """Apply one update to the hypothesis."""
        overshoots = measured < self.config.scale * believed
        factor = experts.log_factor(query.table, overshoots=overshoots, eta=self.config.eta)
        self.hypothesis.add_factor(query.attributes, factor)
        self.hypothesis.settle()
        self.updates += 1

    def __repr__(self) -> str:
        return f"OnlinePMW(alpha={self.config.alpha:.4g}, {self.updates} of {self.config.rounds} updates)"


def _spread(measurement: Laplace | Gaussian) -> float:
    return measurement.scale if isinstance(measurement, Laplace) else measurement.sigma


def _require(cells: int, scale: float, queries: int, beta: float) -> None:
    """Refuse parameters out of range."""
    if cells < 2:
        raise InvalidInput(f"The universe must have at least 2 cells. Found {cells}. Declare more attributes.")
    if not 1 <= scale < math.inf:
        raise InvalidInput(f"rows must be at least 1. Found {scale!r}. Open a table with rows.")
    if not (isinstance(queries, int) and queries >= 1):
        raise InvalidInput(
            f"queries must be a whole number of at least 1. Found {queries!r}. Say how many will be asked."
        )
    if not 0 < beta < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
