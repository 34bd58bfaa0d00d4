"""Frank–Wolfe on polytopes: each step privately picks one vertex, so the price of dimension is a logarithm.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, §5.2, Algorithm 4 and Theorem 5.5; the convergence is Jaggi's "Revisiting Frank–Wolfe".

Symbols: C = conv(S), k = |S|; reach = max |⟨x, s⟩| over rows and vertices, ‖x‖∞·‖C‖₁ (or ‖x‖₂·‖C‖₂); B = |ℓ'|·reach,
the paper's L₁‖C‖₁; Γ the curvature of the average loss; n rows; T steps; ε₀ the cost of one step; ρ (or ε) the whole
budget.

- Step t takes s_t = argmin over S of ⟨s, Σ∇ℓ(θ_t)⟩ − Gumbel(2Δ/ε₀) and moves by μ_t = 2/(t+2), t = 0, 1, …
- A score is a sum over rows. One row moves it by at most Δ = 2B (replace) or B (add or remove). ε₀ = √(8ρ/T), or ε/T.
- E[risk] ≤ 2Γ/(T+2) + (2Δ/nε₀)·ln k. The T with the least bound is (Γnε/(B ln k))^(2/3) up to constants. A quarter of
  it is used: Γ is attained only if all rows agree, and with a quarter the bound is at most 5/3 of the least.

Differs: the printed Laplace scale B√(8T ln(1/δ))/(nε) is too small. B is half of what one replaced row can do to a
score, and a noisy minimum needs twice that again. Gumbel noise is the exponential mechanism, whose privacy loss has a
bounded range and costs ρ = ε₀²/8. The printed constant step 1/(T+2) leaves a share 1/e of θ_T at the start and does not
converge. The start is vertex 0: it is fixed publicly, and no weight of it remains after the first step, which has
μ_0 = 1.

θ has at most T + 1 non-zeros, and the scores ⟨x, θ⟩ are updated as θ moves: a step costs one product Xᵀr, one column,
and one pass over the vertices. Proof: docs/proofs/erm_frank_wolfe.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from hedgerow._types import Array, Matrix
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.sets import L1Ball, Simplex
from hedgerow.convex.sets.convex_set import SparsePoint, VertexSet
from hedgerow.erm.exact_sums import row_products
from hedgerow.erm.problem import Problem, require_steps
from hedgerow.erm.solver import Draw, SolverPlan, public
from hedgerow.errors import InvalidInput
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Exponential

MOST_STEPS = 10_000  # more steps would not improve the bound noticeably
PRACTICE = 0.25  # the steps taken, as a share of the T with the least bound (see the module's docstring)
_ROUNDING = 2.0**-46
"""Rounding error of a score, as a share of B per row. Covers a few roundings, and sums cut at 8 times as many rows."""


Picks = tuple[Exponential, ...]
"""The event of every step."""


class Steps(NamedTuple):
    """The number of steps and the bound of the theorem for them, from public quantities alone."""

    iterations: int
    risk_bound: float


@dataclass(frozen=True)
class FrankWolfe:
    """Minimize the average loss over an ℓ1 ball, a simplex or a polytope of listed vertices. Works with pure ε, too.

    X may be dense or sparse, with millions of features.

    Parameters
    ----------
    - iterations: the number of steps. By default chosen from the bound.

    Example
    -------
    >>> result = hr.erm.frank_wolfe(X, y, loss=loss, over=hr.L1Ball(1.0), budget=hr.Budget(1.0, 1e-6))
    """

    iterations: int | None = None
    name: ClassVar[str] = "frank_wolfe"

    def plan(self, problem: Problem, amount: Amount) -> SolverPlan[Picks]:
        """Plan one private choice of a vertex per step."""
        event, steps = plan_steps(problem, amount, self.iterations)
        picks = (event,) * steps.iterations
        return SolverPlan(self, picks, steps.risk_bound, steps.iterations, picks)

    def run(self, problem: Problem, plan: SolverPlan[Picks], draw: Draw) -> Array:
        """Take the steps."""
        return descend(problem, plan.details, draw)


def plan_steps(problem: Problem, amount: Amount, iterations: int | None = None) -> tuple[Exponential, Steps]:
    """Return the event of one step, and the number of steps with the bound on their expected excess risk."""
    over = vertices_of(problem)
    require_smooth(problem.loss)
    pure, available = amount.budget.pure, amount.left
    Δ = score_sensitivity(problem)
    scale = 2 * Δ * math.log(over.vertex_count(problem.p)) / problem.n
    noise = scale / (available if pure else math.sqrt(8 * available))
    steps = best_steps(2 * curvature(problem), noise, 1.0 if pure else 0.5, iterations)
    ε0 = available / steps.iterations if pure else math.sqrt(8 * available / steps.iterations)
    return Exponential(Δ, ε0 * (1 - 1e-12)), steps


def best_steps(fit: float, noise: float, power: float, iterations: int | None = None) -> Steps:
    """Return T and its bound fit/(T+2) + noise·T^power.

    T is the given one, or ``PRACTICE`` times the T with the least bound.
    """
    if iterations is None:
        T = (fit / (power * noise)) ** (1 / (1 + power)) if noise > 0 else math.inf  # where the derivative vanishes
        iterations = max(1, round(min(PRACTICE * T, MOST_STEPS)))
    steps = require_steps(iterations)
    return Steps(steps, fit / (steps + 2) + noise * steps**power)


def vertices_of(problem: Problem) -> VertexSet:
    """Return the set of the problem. Refuse a set without vertices."""
    if not isinstance(problem.over, VertexSet):
        raise InvalidInput(
            f"The set must have vertices: L1Ball, Simplex or Polytope. Found {type(problem.over).__name__}. "
            "Use frank_wolfe_general, or another set."
        )
    return problem.over


def score_sensitivity(problem: Problem) -> float:
    """Return Δ, the most by which one neighbour moves the score of a vertex, rounding included."""
    over = problem.over
    # The sum ⟨s, g⟩ is rounded, while g itself is exact. If g is cut by coordinates, ‖g‖ may be √p times as large.
    terms = 1 if isinstance(over, L1Ball | Simplex) else problem.p**1.5
    rounding = problem.n * terms * _ROUNDING
    ridge = problem.loss.ridge * over.radius_l2(problem.p) ** 2  # the ridge is added to g and rounded with it
    return problem.budget.gradient(problem.slope_bound * _reach(problem)) * (1 + rounding) + ridge * rounding


def curvature(problem: Problem) -> float:
    """Return Γ of the average loss over C: sup ℓ''·⟨x, θ − θ′⟩², plus that of the ridge."""
    diameter = problem.over.diameter_l2(problem.p)
    spread = 2 * _reach(problem) if problem.norm == "linf" else problem.row_bound * diameter
    return problem.loss.smoothness * spread**2 + problem.loss.ridge * diameter**2


def require_smooth(loss: Loss) -> None:
    """Refuse a loss with kinks."""
    if not loss.is_smooth:
        raise InvalidInput(
            f"The loss must be smooth for Frank–Wolfe. Found {type(loss).__name__}, which has kinks. "
            "Use SmoothedHinge or Huber, or mirror_descent."
        )


def _reach(problem: Problem) -> float:
    """Return a bound on |⟨x, s⟩| over rows and vertices."""
    over, p = problem.over, problem.p
    return problem.row_bound * (over.radius_l1(p) if problem.norm == "linf" else over.radius_l2(p))


@np.errstate(all="ignore")
def descend(problem: Problem, picks: Picks, draw: Draw) -> Array:
    """Return θ after one step for each event that was paid for.

    The events may have been planned before the bound on the slope was known. So scores are rescaled to their
    sensitivity.
    """
    over, T = vertices_of(problem), len(picks)
    p, n, ridge = problem.p, problem.n, problem.loss.ridge
    unit = score_sensitivity(problem) / picks[0].sensitivity
    s = over.vertex(0, p)
    theta = s.dense(p)
    walk = Walk(problem, s) if problem.is_here else Moves(problem, s)
    with draw.bar("Frank–Wolfe", T) as tick:
        for t in range(T):
            g = walk.gradient()
            if ridge:
                g = g + n * ridge * theta
            s = over.vertex(draw.choose(-over.vertex_scores(g) / unit), p)
            mu = 2 / (t + 2)
            theta *= 1 - mu
            theta[s.indices] += mu * s.values
            walk.move(mu, s)
            tick(t + 1)
    return theta


class Walk:
    """The scores ⟨x, θ⟩ of rows in memory, updated as θ moves."""

    def __init__(self, problem: Problem, start: SparsePoint) -> None:
        self._problem = problem
        self._columns = sp.csc_array(problem.X) if sp.issparse(problem.X) else problem.X
        self._z = _scores(self._columns, start, problem.unit)

    def move(self, mu: float, s: SparsePoint) -> None:
        """Move θ by the share mu towards the vertex s. Each row is updated by itself and sees no other row."""
        self._z = (1 - mu) * self._z + mu * _scores(self._columns, s, self._problem.unit)

    def slopes(self) -> Array:
        """Return the slope of the loss at each row's score."""
        return self._problem.loss.derivative(self._z, self._problem.y)

    def gradient(self) -> Array:
        """Return the sum of gradients at the current θ."""
        return self._problem.sum_of(self.slopes(), self._columns)


class Moves:
    """The same for rows on a cluster. All moves so far are sent there and replayed at every step."""

    def __init__(self, problem: Problem, start: SparsePoint) -> None:
        self._problem, self._start = problem, start
        self._moves: list[tuple[float, SparsePoint]] = []

    def move(self, mu: float, s: SparsePoint) -> None:
        """Remember a move towards the vertex s."""
        self._moves.append((mu, s))

    def gradient(self) -> Array:
        """Return the sum of gradients after all moves."""
        problem = self._problem
        rule = functools.partial(_after, start=self._start, moves=tuple(self._moves))
        return problem.capped_sum(problem.sums(rule, problem.bits, problem.slope_bits), problem.held_rows)


@np.errstate(all="ignore")
def _after(problem: Problem, start: SparsePoint, moves: tuple[tuple[float, SparsePoint], ...]) -> tuple[Matrix, Matrix]:
    """Return features and slopes after all moves, in whole units. Runs where the rows are."""
    walk = Walk(problem, start)
    for mu, s in moves:
        walk.move(mu, s)
    return problem.X, problem.slopes_in_units(walk.slopes())


def _scores(X: Any, s: SparsePoint, unit: float) -> Array:
    """Return ⟨x, s⟩ for every row, from the columns where s is not zero."""
    if sp.issparse(X):
        z = np.zeros(X.shape[0])
        for j, value in zip(s.indices.tolist(), (s.values * unit).tolist(), strict=True):
            held = slice(X.indptr[j], X.indptr[j + 1])
            z[X.indices[held]] += value * X.data[held]
        return z
    return row_products(X[:, s.indices], s.values * unit)


frank_wolfe = public(FrankWolfe, norm="linf")
