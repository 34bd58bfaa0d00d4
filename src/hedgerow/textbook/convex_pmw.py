"""Online private multiplicative weights for convex minimization queries, with the guarantee of the paper.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, Figure 3, Claims 3.5–3.7, Theorems 3.8, 3.9. The
offline variant is in ``convex_offline``. Proof: docs/proofs/convex_pmw.md.

Symbols: D the data, D̂ the hypothesis, n rows, |X| cells, k queries, ℓ_x(θ) convex over Θ, S ≥ |⟨θ − θ′, ∇ℓ_x(θ)⟩|,
θ̂ = argmin ℓ_D̂, err = ℓ_D(θ̂) − min ℓ_D, A′ the single-query oracle with error α₀, u(x) = ℓ′_x(θ̂; θ − θ̂), η the
step, T updates at most, γ = α/4 the progress ⟨u, D̂ − D⟩ of an update, τ the numerical error of the computed n·err.

Differs:
- The update is exp(−η·u). Figure 3 prints exp(+η·u), which diverges: ⟨u, D̂ − D⟩ > 0 says that D̂ has too much mass
  where u is large.
- η = √(ln|X|/T)/S ("paper"), where the figure omits 1/S; or γ/S² ("hoeffding"), which needs half the updates.
- u is the one-sided directional derivative. The paper allows any subgradient, but Claim 3.5 needs ⟨u, D̂⟩ ≥ 0.
- n·err has sensitivity 2S (replace-one; S under add-remove) plus τ. The paper has 3S.
- Noise is calibrated by the ledger: the guard gets what its accuracy needs, and A′ the rest. The figure's ε₀ composes
  to more than its half of ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from hedgerow._checks import positive
from hedgerow._types import Array, Names
from hedgerow.convex.bound_loss import Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.excess import Excess, excess_of
from hedgerow.convex.solver.public_minimum import Minimum, minimize_over
from hedgerow.data.source import DataSource
from hedgerow.errors import InvalidInput
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import AboveThreshold, grid_at_most
from hedgerow.privacy.ledger import Entry, Ledger, one_at_a_time
from hedgerow.privacy.noise import Noise
from hedgerow.textbook import sparse_vector
from hedgerow.textbook.bounds import smallest_alpha
from hedgerow.textbook.multiplicative_weights import Step
from hedgerow.textbook.oracles import Oracle, OraclePlan

LEARNED = "convex pmw: oracle"  # purpose of the ledger entries that teach the hypothesis
NUMERICAL = 0.02  # τ as a share of S, where rounding allows it
MOST_DOUBLINGS = 30  # τ is at most NUMERICAL·S times a power of 2 below this
SURROGATE = 0.01  # share of α by which the err of a surrogate may differ from that of the loss (``excess``)
SLACK = 0.01  # share of α that the inexactness of θ̂ may cost an update
ORACLE = 0.25 - SLACK  # α₀ as a share of α


@final
@dataclass(frozen=True)
class ConvexPMWConfig:
    """The public parameters of a run, fixed before the first query. Made by ``configure``."""

    scale: float  # n, or under add-remove a public estimate of it
    cells: int
    queries: int
    alpha: float
    beta: float
    step: Step
    bound: float  # S
    rounds: int
    guard: AboveThreshold
    oracle: Oracle
    plan: OraclePlan
    numerical: float = NUMERICAL  # τ as a share of S

    @property
    def threshold(self) -> float:
        """The threshold ¾α in rows: errors above α give ⊤, errors below α/2 give ⊥."""
        return 0.75 * self.alpha * self.scale

    @property
    def reach(self) -> float:
        """The largest |u(x)|: S, or a little more for an oracle that leaves the set."""
        return reach_of(self.bound, self.alpha, self.cells, self.oracle)

    @property
    def eta(self) -> float:
        """η, the step of the update."""
        return step_size(self.alpha, self.reach, self.step)

    @property
    def grid(self) -> float:
        """The grid of n·err."""
        return grid_at_most(self.numerical * self.bound / 4)

    @property
    def sparse_vector(self) -> sparse_vector.SparseVector:
        """The guard as a sparse vector."""
        return sparse_vector.SparseVector(self.threshold, self.guard, self.rounds)


def update_bound(alpha: float, cells: int, bound: float, step: Step) -> int:
    """Return the most updates of progress γ = α/4: 64S²ln|X|/α² ("paper", Claim 3.7) or 2S²ln|X|/γ² ("hoeffding")."""
    factor = {"paper": 64.0, "hoeffding": 32.0}[step]
    return math.floor(factor * bound**2 * math.log(cells) / alpha**2)


def step_size(alpha: float, bound: float, step: Step) -> float:
    """Return η: √(ln|X|/T)/S = α/(8S²) ("paper"), or γ/S² = α/(4S²) ("hoeffding")."""
    return alpha / ({"paper": 8.0, "hoeffding": 4.0}[step] * bound**2)


def configure(
    budget: Budget,
    *,
    cells: int,
    rows: float,
    queries: int,
    beta: float,
    scale_S: float,
    oracle: Oracle,
    alpha: float | None = None,
    step: Step = "hoeffding",
    share: float = 1.0,
    numerical: float = NUMERICAL,
) -> ConvexPMWConfig:
    """Calibrate the mechanism to the whole budget.

    Parameters
    ----------
    rows : float
        n under replace-one. Under add-remove, a public estimate.
    scale_S : float
        S, which must hold for every loss that will be asked.
    oracle : Oracle
        The family of losses. Every loss that will be asked must belong to it.
    alpha : float, optional
        The error, in units of the loss, at most S. By default the smallest that ``rows`` can guarantee.
    share : float
        The share of the budget to use.
    numerical : float
        τ as a share of S. With very many rows, more than the default may be needed to guarantee n·err for every table.
    """
    require_parameters(budget, cells, rows, queries, beta, scale_S, step)
    S = float(scale_S)

    def calibrate(a: float) -> tuple[AboveThreshold, OraclePlan, int] | None:
        return _calibrate(budget, a, beta, queries, cells, S, oracle, step, rows, share, numerical)

    found = None if alpha is None or alpha > S else calibrate(alpha)
    if found is None:
        smallest = S * smallest_alpha(lambda a: math.inf if calibrate(a * S) is None else 0.0, rows)
        if math.isinf(smallest) or alpha is not None:
            wanted = 0.3 * S if alpha is None else alpha
            needed = rows_needed(budget, wanted, beta, queries, cells, S, oracle, step, share, numerical)
            raise InvalidInput(
                f"rows must be at least {needed:.0f} for alpha = {wanted:g}, which must be at most S. "
                f"Found {rows:g} rows"
                + ("" if math.isinf(smallest) else f", for which alpha can be {smallest:.4g}")
                + ". Use more rows, a larger budget, or a larger alpha."
            )
        alpha = smallest * (1 + 1e-6)
        found = calibrate(alpha)
    assert found is not None and alpha is not None
    guard, plan, rounds = found
    return ConvexPMWConfig(rows, cells, queries, alpha, beta, step, S, rounds, guard, oracle, plan, numerical)


def rows_needed(
    budget: Budget,
    alpha: float,
    beta: float,
    queries: int,
    cells: int,
    scale_S: float,
    oracle: Oracle,
    step: Step = "hoeffding",
    share: float = 1.0,
    numerical: float = NUMERICAL,
) -> float:
    """Return the rows for which ``configure`` guarantees α. They are fewer than those of Theorem 3.8."""
    if not 0 < alpha <= scale_S:
        return math.inf
    low, high = 0.0, 1.0
    while _calibrate(budget, alpha, beta, queries, cells, scale_S, oracle, step, high, share, numerical) is None:
        low, high = high, 4 * high
        if high > 1e18:
            return math.inf
    while high > low * (1 + 1e-6):
        middle = (low + high) / 2
        found = _calibrate(budget, alpha, beta, queries, cells, scale_S, oracle, step, middle, share, numerical)
        fits = found is not None
        low, high = (low, middle) if fits else (middle, high)
    return high


def suffices(
    budget: Budget,
    alpha: float,
    *,
    rows: float,
    beta: float,
    queries: int,
    cells: int,
    scale_S: float,
    oracle: Oracle,
    step: Step = "hoeffding",
    share: float = 1.0,
    numerical: float = NUMERICAL,
) -> bool:
    """Return True if ``configure`` guarantees α at so many rows."""
    if not 0 < alpha <= scale_S:
        return False
    found = _calibrate(budget, alpha, beta, queries, cells, scale_S, oracle, step, rows, share, numerical)
    return found is not None


def theorem_rows(alpha: float, beta: float, epsilon: float, delta: float, queries: int, cells: int, S: float) -> float:
    """Return the second term of Theorem 3.8: 4096·S²·√(ln|X|)·ln(4/δ)·ln(8k/β)/(εα²).

    The first term is the n′ of A′.
    """
    logs = math.sqrt(math.log(cells)) * math.log(4 / delta) * math.log(8 * queries / beta)
    return 4096 * S**2 * logs / (epsilon * alpha**2)


def reach_of(S: float, alpha: float, cells: int, oracle: Oracle) -> float:
    """Return the largest |u(x)|.

    For an unprojected θ = θ₀ + b, |⟨x, b⟩| over all cells is at most √(1 + ln|X|) times the part that α₀ allows.
    """
    return S + ORACLE * alpha * math.sqrt(1 + math.log(cells)) if oracle.leaves_the_set else S


def _calibrate(
    budget: Budget,
    alpha: float,
    beta: float,
    queries: int,
    cells: int,
    S: float,
    oracle: Oracle,
    step: Step,
    rows: float,
    share: float,
    numerical: float,
) -> tuple[AboveThreshold, OraclePlan, int] | None:
    """Return the events of a round and the number of rounds, or None if the rows are too few for α.

    All comparisons are right to within w = αn/4 − 2τ, less the effect of a surrogate, except with probability β/2. All
    T answers of A′ are within α₀, except with probability β/2.
    """
    T = update_bound(alpha, cells, reach_of(S, alpha, cells, oracle), step) + 1
    τ = numerical * S
    Δ = budget.bounded_sum(S) + 2 * τ
    w = (0.25 - SURROGATE) * alpha * rows - 2 * τ
    if w <= 0:
        return None
    G, ratio = sparse_vector.comparison_weight(T, queries, beta / 2)
    ε = G * Δ / w
    each = share * budget.total / T
    left = each - ε**2 / 2  # ε·tanh(ε/2) ≤ ε²/2
    if left <= each / 100 or ε < 2.0**-38 * Δ:
        return None
    allowed = ORACLE * alpha
    plan = oracle.plan(budget, left, rows, beta / (2 * T), allowed)
    if plan is None or not plan.error + plan.deficit <= allowed:
        return None
    return sparse_vector.guard_round(ε, ratio, Δ), plan, T


@final
@dataclass(frozen=True)
class ConvexAnswer:
    """The answer θ, its source, and its cost in the budget's currency."""

    theta: Array
    source: Literal["hypothesis", "oracle"]
    cost: float


@final
class OnlineConvexPMW:
    """A mechanism that answers adaptively chosen convex minimization queries about the data, one after the other.

    ``hypothesis`` is public. A round of the guard is charged when it opens, and the oracle's noise before it is drawn.
    A query that the hypothesis answers within an open round costs nothing. After T updates, ``ask`` raises
    BudgetExceeded.
    """

    def __init__(
        self,
        config: ConvexPMWConfig,
        data: DataSource,
        ledger: Ledger,
        noise: Noise,
        hypothesis: Hypothesis | None = None,
    ) -> None:
        require_rows(config, data, ledger)
        self.config, self._rows = config, rows_of(config, data, ledger)
        self.hypothesis = Hypothesis(data.universe) if hypothesis is None else hypothesis
        self.updates = 0
        self._data, self.ledger, self._noise = data, ledger, noise
        self._guard, self._progress = config.sparse_vector, sparse_vector.Progress()

    @one_at_a_time
    def ask(self, risk: Risk, over: ConvexSet) -> ConvexAnswer:
        """Answer one query: from the hypothesis if the guard says that its error is small, else from the oracle."""
        config = self.config
        require_family(config, risk, over, self.ledger.budget, self._rows)
        self.hypothesis.require(risk.attributes)  # refuse an update that would not fit, before the data are touched
        believed = minimizer_on(self.hypothesis, risk, over, config.alpha)  # θ̂, computed once and released as it is
        excess = excess_in(config, risk, over, believed.theta, self.ledger.budget, self._rows)
        self._progress, opening = sparse_vector.ready(self._guard, self._progress, self.ledger, self._noise)
        counts = self._data.marginal(risk.attributes)
        error = excess.value(counts, config.grid)
        outcome, self._progress = sparse_vector.step(self._guard, self._progress, error, self.ledger, self._noise)
        if not outcome.above:
            return ConvexAnswer(believed.theta, "hypothesis", opening)
        oracle, plan = chosen_oracle(config, risk, over, self.ledger.budget, self._rows)
        receipt = self.ledger.charge(plan.event, why=LEARNED, about={"attributes": risk.attributes}, keep=False)
        theta = oracle.answer(plan, risk, over, counts, self._noise, receipt, self.ledger.budget, self._rows)
        factor = log_factor(config, risk, believed, theta)
        self.ledger.record(receipt, factor, self._noise.private)  # instead of the oracle's many steps
        self._learn(risk.attributes, factor)
        return ConvexAnswer(theta, "oracle", opening + receipt.cost)

    def _learn(self, names: Names, factor: Array) -> None:
        """Apply one update to the hypothesis."""
        self.hypothesis.add_factor(names, factor)
        self.hypothesis.settle()
        self.updates += 1

    def resume(self, entries: Sequence[Entry]) -> None:
        """Restore the progress of the guard.

        ``relearn`` restores the updates, in the order of all mechanisms' entries.
        """
        self._progress = sparse_vector.resume_state(self._guard, entries, self._progress)

    def relearn(self, entry: Entry) -> None:
        """Repeat the update of one entry, if it is a released answer of the oracle."""
        if entry.why == LEARNED and entry.released:
            self._learn(tuple(entry.about["attributes"]), *entry.released)

    def __repr__(self) -> str:
        return f"OnlineConvexPMW(alpha={self.config.alpha:.4g}, {self.updates} of {self.config.rounds} updates)"


def require_rows(config: ConvexPMWConfig, data: DataSource, ledger: Ledger) -> None:
    """Refuse a table with fewer rows than configured: noise calibrated to a public n would be too small for it."""
    if ledger.budget.neighbours == "replace" and data.rows < config.scale:
        raise InvalidInput(
            f"The table must have at least the {config.scale:g} rows that were configured. Found {data.rows}. "
            "Configure for the table's own number of rows."
        )


def rows_of(config: ConvexPMWConfig, data: DataSource, ledger: Ledger) -> float:
    """Return n if it is public, else the configured estimate of it."""
    return float(data.rows) if ledger.budget.neighbours == "replace" else config.scale


def require_family(config: ConvexPMWConfig, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> None:
    """Refuse, from public constants, a loss beyond the configured S or outside the oracle's family."""
    S = risk.scale(over)
    if not config.bound * (1 + 1e-12) >= S:
        raise InvalidInput(
            f"S of a loss must be at most {config.bound:g}, as configured. Found {S:g}. "
            "Narrow the set, or configure for more."
        )
    config.oracle.fits(risk, over)
    chosen_oracle(config, risk, over, budget, rows)
    excess_in(config, risk, over, over.project(np.zeros(risk.dimension)), budget, rows)


def chosen_oracle(
    config: ConvexPMWConfig, risk: Risk, over: ConvexSet, budget: Budget, rows: float
) -> tuple[Oracle, OraclePlan]:
    """Return the oracle that answers this loss and its plan, by public facts. Refuse a loss without one.

    It is the configured oracle, or the member of a choice with the smallest error among those that the loss fits.
    """
    for oracle, plan in sorted(config.plan.members, key=lambda member: member[1].error + member[1].deficit):
        try:
            oracle.fits(risk, over)
        except InvalidInput:
            continue
        if plan.error + plan.deficit <= ORACLE * config.alpha and oracle.certain(plan, risk, over, budget, rows):
            return oracle, plan
    if config.plan.members:
        raise InvalidInput(
            "A loss must be within the constants of a declared one, and its minimum certain for every table. Found "
            f"{type(risk).__name__} on {math.prod(risk.shape)} cells over {over!r}. Declare it when the session is "
            "opened."
        )
    if not config.oracle.certain(config.plan, risk, over, budget, rows):
        raise _uncertain(risk, over)
    return config.oracle, config.plan


def excess_in(
    config: ConvexPMWConfig, risk: Risk, over: ConvexSet, theta: Array, budget: Budget, rows: float
) -> Excess:
    """Return the plan for n·err(D, θ), which one row moves by no more than the guard is billed for.

    Refuse, from public facts, a loss for which this cannot be guaranteed.
    """
    share = config.numerical * config.bound / 2 / budget.bounded_sum(risk.scale(over))
    hidden = config.numerical / 5
    excess = excess_of(risk, over, theta, budget, rows, SURROGATE * config.alpha, shares=(share,), hidden=hidden)
    grid = config.grid
    if excess is None or grid < excess.unit or excess.sensitivity(grid) > config.guard.sensitivity:
        raise _uncertain(risk, over)
    return excess


def numerical_share(
    budget: Budget, losses: Sequence[tuple[Risk, ConvexSet]], scale_S: float, alpha: float, rows: float
) -> float | None:
    """Return the least τ/S, of NUMERICAL and its multiples by powers of 2, with which n·err is certain for all losses.

    Return None if none is. With very many rows or cells, float64 cannot compute n·err to within a small part of S. A
    larger τ is billed, and compared with αn, beside which it is small.
    """
    for numerical in (NUMERICAL * 2.0**k for k in range(MOST_DOUBLINGS)):
        plans = (
            excess_of(
                risk, over, over.project(np.zeros(risk.dimension)), budget, rows, SURROGATE * alpha,
                shares=(numerical * scale_S / 2 / budget.bounded_sum(risk.scale(over)),), hidden=numerical / 5,
            )
            for risk, over in losses
        )  # fmt: skip
        if all(plan is not None for plan in plans):
            return numerical
    return None


def _uncertain(risk: Risk, over: ConvexSet) -> InvalidInput:
    """Return the refusal of a loss whose minimum cannot be guaranteed."""
    return InvalidInput(
        f"A loss must be one whose minimum is certain for every table. Found {type(risk).__name__} on "
        f"{math.prod(risk.shape)} cells over {over!r}. Use a smooth loss, fewer features, or a ball or box of another "
        "size."
    )


def minimizer_on(hypothesis: Hypothesis, risk: Risk, over: ConvexSet, alpha: float) -> Minimum:
    """Return θ̂, so close to the minimizer on D̂ that an update loses at most SLACK·α by it."""
    return minimize_over(risk, hypothesis.marginal(risk.attributes), over, SLACK * alpha / 10, stationary=True)


def direction(risk: Risk, believed: Minimum, theta: Array) -> Array:
    """Return u(x) = ℓ′_x(θ̂; θ − θ̂), one-sided.

    A predictor that the solver left close to its kink counts as lying on it.
    """
    return risk.directional(believed.theta, theta, believed.width)


def log_factor(config: ConvexPMWConfig, risk: Risk, believed: Minimum, theta: Array) -> Array:
    """Return −η·u. If an unprojected θ makes u larger than foreseen, a smaller step keeps the update a gain."""
    u = direction(risk, believed, theta)
    largest = float(np.abs(u).max())
    return -config.eta * min(1.0, (config.reach / max(largest, 1e-300)) ** 2) * u


def require_parameters(
    budget: Budget, cells: int, rows: float, queries: int, beta: float, scale_S: float, step: Step
) -> None:
    """Refuse parameters out of range."""
    if budget.pure:
        raise InvalidInput("delta must be above 0, for the oracles add Gaussian noise. Found 0. Give a delta.")
    if cells < 2:
        raise InvalidInput(f"The universe must have at least 2 cells. Found {cells}. Declare more attributes.")
    if not 1 <= rows < math.inf:
        raise InvalidInput(f"rows must be at least 1. Found {rows!r}. Open a table with rows.")
    if not (isinstance(queries, int) and queries >= 1):
        raise InvalidInput(
            f"queries must be a whole number of at least 1. Found {queries!r}. Say how many will be asked."
        )
    if not 0 < beta < 1:
        raise InvalidInput(f"beta must be between 0 and 1. Found {beta!r}. Give the probability of failure.")
    if step not in ("paper", "hoeffding"):
        raise InvalidInput(f"step must be 'paper' or 'hoeffding'. Found {step!r}. Choose one of the two.")
    positive("scale_S", scale_S)
