"""Convex questions in the practical profile: answered on the fitted hypothesis, guarded, and bought with ``within``.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, Figure 3. Proof: docs/proofs/practical_convex.md.

Symbols: D the data and D̂ the hypothesis, as fractions on the risk's attributes; θ̂ = argmin ℓ_D̂; err(D, θ) =
ℓ_D(θ) − min ℓ_D; S the scale of the loss; τ what the solver may leave, per row; g(x) = ∇ℓ_x(θ̂), v = θ − θ̂.

A free answer is θ̂. Its bar is the excess risk that the measured tables leave possible (``excess_bound``). Where that is
not enough,

    the guard   compares n·err(D, θ̂)/(2S), which one row moves by at most 1, with the threshold it has for counts, and
    within=     measures n·err(D, θ̂), which one row moves by 2S (S where rows come and go). If the released value is not
                good enough it teaches: the marginal on the risk's attributes where its noise leaves something to see,
                else θ by noisy gradient descent and the one linear query ⟨u, D⟩ that tells θ̂ from θ (Figure 3's
                update); then it refits and measures again.

Differs: err is 2S-sensitive in rows, a supremum over θ of sums of terms in [−S, S]; the paper's 3S is loose. It is computed
as a whole number (``excess``), whose sensitivity includes what the solver may leave on any table and all rounding.

A user's own functions see public values only: their loss is answered on the hypothesis, and neither guarded nor measured
unless the owner vouched for it when the session was opened.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.convex.losses.families import Logistic, Squared
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.convex.solver.excess import Excess, excess_of, in_rows, per_row
from hedgerow.convex.solver.gradient_sums import GradientSums
from hedgerow.convex.solver.public_minimum import Minimum, minimised
from hedgerow.engines.practical.prefit import LARGEST_MODEL_CELLS
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.model.hypothesis import Hypothesis
from hedgerow.model.junction_tree import junction_cells
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.events import Gaussian, Laplace, grid_at_most
from hedgerow.questions.linear import Linear
from hedgerow.textbook import sparse_vector

if TYPE_CHECKING:
    from hedgerow.engines.practical.engine import Practical

Source = Literal["hypothesis", "measured"]
TOLERANCE, COARSE = 1e-6, 1e-4  # of θ̂, per unit of mass; the coarse one for kinks on many cells, slow to certify
FEW_CELLS = 2_000
FINE = 2.0**-10  # of sensitivity and noise: the grid of released numbers
SURROGATE = 0.01  # of what is asked for, or promised: how far the surrogate's err may be from the loss's
CHECK = 2 / 3  # of ``within``, for the noise of a measured err; the rest is for err itself
ATTEMPTS = 3  # to bring err below ``within``
STEPS = 40  # of noisy gradient descent


def fitted(hypothesis: Hypothesis, query: BoundMinimize) -> tuple[Minimum, Array]:
    """θ̂ and the hypothesis' marginal it was found on. Public."""
    try:
        marginal = hypothesis.marginal(query.attributes)
    except TooLarge:
        cells = math.prod(query.shape)
        raise TooLarge(
            f"The marginal on the attributes of a convex question must fit in memory. Found {cells} cells on "
            f"{', '.join(query.attributes)}. Use fewer features, declare coarser bins, or fit it once with hedgerow.erm."
        ) from None
    tolerance = TOLERANCE if query.risk.is_smooth or marginal.size <= FEW_CELLS else COARSE
    return minimised(query.risk, marginal, query.over, tolerance), marginal


class Convex:
    """What a practical engine does with convex questions. It measures, learns and refits through the engine."""

    def __init__(self, engine: Practical) -> None:
        self._engine = engine

    def answer(self, query: BoundMinimize, within: float | None) -> tuple[Array, float | None, Source]:
        theta, error = self._free(query)
        if within is not None and error > within:
            return self._bought(query, theta, error, within)
        if self._engine.guard is not None and self._engine._guarding and query.scale:  # a set of one point has none
            return self._guarded(query, theta, error)
        return theta, _stated(error), "hypothesis"

    def _free(self, query: BoundMinimize) -> tuple[Array, float]:
        found, marginal = fitted(self._engine.hypothesis, query)
        distance = self._engine._bars.distance(query.attributes, marginal, self._engine._rows)
        return found.theta, excess_bound(query, marginal, found, distance)

    # The guard

    def _guarded(self, query: BoundMinimize, theta: Array, error: float) -> tuple[Array, float | None, Source]:
        engine, guard = self._engine, self._engine.guard
        assert guard is not None and query.scale is not None
        unit = engine.ledger.budget.bounded(query.scale)  # of err: what counts as one row of a linear query
        excess = self._excess(query, theta, SURROGATE * guard.promise * unit)
        if excess is None or error <= guard.promise * unit:
            return theta, _stated(error), "hypothesis"
        engine._progress, _ = sparse_vector.ready(guard.config, engine._progress, engine.ledger, engine._noise)
        value = in_rows(excess, engine._data.marginal(query.attributes), sparse_vector.FINEST)
        outcome, engine._progress = sparse_vector.step(
            guard.config, engine._progress, value, engine.ledger, engine._noise
        )
        if not outcome.above:
            most = 1.5 * guard.config.threshold + 3 * sparse_vector.FINEST  # 3w, the threshold being 2w on the grid
            row = per_row(excess, sparse_vector.FINEST) * excess.unit
            promised = (most * row + excess.below) / engine._rows.low
            return theta, _stated(min(error, promised)), "hypothesis"
        allowance = min(guard.share * engine.ledger.budget.total / guard.config.rounds, self._left())
        if allowance > 0:
            self._teach(query, theta, allowance)
            theta, error = self._free(query)
        return theta, _stated(error), "measured"

    # Buying

    def _bought(
        self, query: BoundMinimize, theta: Array, error: float, within: float
    ) -> tuple[Array, float | None, Source]:
        """Measure err until it is good enough or nothing is left; the answer with the best bar, which may be wider."""
        engine = self._engine
        excess, event = self._check(query, theta, within)
        cost = engine.ledger.budget.cost(event)
        best = theta, error
        for attempt in range(ATTEMPTS):
            if attempt and not engine.ledger.affords(event):
                break
            bound = min(error, self._measured(query, replace(excess, theta=theta), event))
            if bound < best[1]:
                best = theta, bound
            allowance = (self._left() - cost) / (ATTEMPTS - attempt)
            if bound <= within or attempt == ATTEMPTS - 1 or allowance <= 0:
                break
            proposed = self._teach(query, theta, allowance)
            theta, error = self._free(query)
            if proposed is not None:
                theta, error = proposed, math.inf
        return best[0], _stated(best[1]), "measured"

    def _excess(self, query: BoundMinimize, theta: Array, error: float) -> Excess | None:
        """How err of a public θ is computed on the data; None where that is not sure to be right for every table."""
        engine = self._engine
        if query.scale is None or not query.is_vouched(engine.vouched):
            return None
        return excess_of(query.risk, query.over, theta, engine.ledger.budget, engine._rows.high, error)

    def _check(self, query: BoundMinimize, theta: Array, within: float) -> tuple[Excess, Laplace | Gaussian]:
        """How n·err is computed and the noise on it that leaves CHECK·within: the same for every θ, whatever is learned."""
        engine, budget = self._engine, self._engine.ledger.budget
        excess = self._excess(query, theta, SURROGATE * within)
        if excess is None:
            if not query.is_vouched(engine.vouched):
                raise InvalidInput(
                    f"within must be asked of a loss of hedgerow.losses, or of one the owner vouched for. Found {query.risk!r}. "
                    "Ask without within, or let the owner open the session with vouched=[loss]."
                )
            raise InvalidInput(
                f"within must be asked of a loss whose excess risk can be measured: over a bounded set, of a scale that "
                f"numbers resolve at {engine._rows.high:.0f} rows, and small enough for a certain minimum. "
                f"Found {query.over!r} and {math.prod(query.shape)} cells. "
                "Change the set, use fewer features, or ask without within."
            )
        room = max(CHECK * within * engine._rows.low - excess.below, 0.1 * within * engine._rows.low)
        sensitivity = excess.sensitivity(0.0)
        unit: Laplace | Gaussian = Laplace(sensitivity, 1.0) if budget.pure else Gaussian(sensitivity, 1.0)
        scale = room / engine._bars.number(unit)
        grid = max(grid_at_most(min(sensitivity, scale) * FINE), excess.unit)
        kind = Laplace if budget.pure else Gaussian
        return excess, kind(excess.sensitivity(grid), scale, grid)

    def _measured(self, query: BoundMinimize, excess: Excess, event: Laplace | Gaussian) -> float:
        """An upper bound on err(D, θ) for a public θ, from a billed measurement."""
        engine = self._engine
        receipt = engine.ledger.charge(event, why="excess risk")
        width = engine._bars.number(event)
        engine._bars.add_number()
        noisy = float(engine._noise.add(excess.value(engine._data.marginal(query.attributes), event.grid), receipt))
        return (max(noisy, 0.0) + width + excess.below) / engine._rows.low

    # Teaching

    def _left(self) -> float:
        return self._engine.ledger.remaining

    def _teach(self, query: BoundMinimize, theta: Array, allowance: float) -> Array | None:
        """Spend up to the allowance on what D̂ gets wrong here, and refit. θ itself, where a private oracle found one."""
        engine, names = self._engine, query.attributes
        whole = Amount(engine.ledger.budget, allowance).marginal()
        noise = whole.scale if isinstance(whole, Laplace) else whole.sigma
        fits = junction_cells(engine._data.universe, [*engine._learned.model.tops, names]) <= LARGEST_MODEL_CELLS
        if fits and noise * math.prod(query.shape) <= engine._rows.estimate:
            engine._learn(names, whole)
            return None
        proposed = self._oracle(query, theta, 0.75 * allowance)
        if proposed is None:
            return None
        u = query.risk.directional(theta, proposed)
        size = float(np.abs(u).max())
        if not (fits and size > 0):
            return proposed
        linear = Linear.from_table(engine._data.universe, names, np.clip((u / size + 1) / 2, 0.0, 1.0))
        if linear.attributes:
            event = Amount(engine.ledger.budget, 0.25 * allowance * (1 - 1e-9)).count()
            engine._learn(linear.attributes, event, linear)
        return proposed

    def _oracle(self, query: BoundMinimize, theta: Array, allowance: float) -> Array | None:
        """θ by projected descent on noisy sums of gradients from θ̂: the average of the later steps. Billed step by step."""
        engine, budget, p = self._engine, self._engine.ledger.budget, query.risk.dimension
        L, n = query.risk.lipschitz(query.over), engine._rows.estimate
        sums = GradientSums(query.risk, query.over, budget, engine._rows.high)
        if not sums.are_certain:
            return None
        each, l2 = allowance / STEPS * (1 - 1e-9), sums.sensitivity
        grid = grid_at_most(min(l2, l2 / math.sqrt(2 * each)) * FINE / p)
        l1, l2 = math.sqrt(p) * l2 + p * grid, l2 + math.sqrt(p) * grid
        event = Amount(budget, each).noise(l1, l2, grid)
        variance = 2 * event.scale**2 if isinstance(event, Laplace) else event.sigma**2
        diameter = query.over.diameter_l2(p)
        step = diameter / math.sqrt(STEPS * (L**2 + p * variance / n**2))
        if query.risk.is_smooth:  # steps of 1/β, unless their noise would carry θ across the set
            step = max(step, min(1 / query.risk.smoothness, diameter * n / math.sqrt(STEPS * p * variance)))
        counts = engine._data.marginal(query.attributes)
        total: Array = np.zeros(p)
        for k in range(STEPS):
            receipt = engine.ledger.charge(event, why="gradient")
            noisy = np.asarray(engine._noise.add(sums.at(theta, counts), receipt))
            theta = query.over.project(theta - step * noisy / n)
            total += theta if k >= STEPS // 2 else 0.0
        return query.over.project(total / (STEPS - STEPS // 2))


# The bar of a free answer


def excess_bound(query: BoundMinimize, marginal: Array, found: Minimum, distance: float) -> float:
    """A bound on err(D, θ̂) for every D with ‖D − D̂‖₂ ≤ distance; infinite where there is none worth stating.

    With f_v(x) = ℓ_x(θ̂) − ℓ_x(θ̂ + v), err = sup over v of ⟨f_v, D̂⟩ + ⟨f_v, D − D̂⟩. The first term is at most the
    solver's gap, and at most the Frank–Wolfe gap less the curvature of ℓ_D̂; the second at most distance·‖f_v‖₂, where
    |f_v(x)| ≤ min(S, sup|φ′|·|⟨x, v⟩|). Or, by convexity on D, err ≤ sup −⟨∇ℓ_D(θ̂), v⟩.
    """
    risk, over = query.risk, query.over
    if query.scale is None or not math.isfinite(distance):
        return math.inf
    bounds = [found.gap + distance * math.sqrt(marginal.size) * query.scale]
    if isinstance(risk, GlmRisk):
        if risk.loss.labels != "count":  # no loss is negative, so err ≤ ℓ_D(θ̂)
            each = risk.losses(found.theta)
            bounds.append(float((each * marginal).sum()) + distance * float(np.linalg.norm(each - each.mean())))
        C = risk.features.gram(_per_feature(risk, np.ones(risk.shape)))  # Σ x xᵀ over the cells, each once
        R = min(over.diameter_l2(risk.dimension), over.radius_l2(risk.dimension) + float(np.linalg.norm(found.theta)))
        a = distance * risk.slope_bound(over)
        bounds.append(found.gap + a * R * _root_of_largest(C))
        if not risk.outputs:
            r = risk.loss.derivative(risk.predictor(found.theta), risk.label()) ** 2
            G = risk.features.gram(_per_feature(risk, np.broadcast_to(r, risk.shape)))  # Σ g gᵀ without the ridge
            slope = risk.objective(marginal).gradient(found.theta)
            uphill = float(slope @ (found.theta - over.minimise(slope)))
            bounds.append(uphill + distance * R * _root_of_largest(G))
            if risk.is_smooth:
                bounds.append(uphill + _sup_quadratic(a, C, _curvature(risk, marginal, found.theta, R), R))
    found_bound = min(bounds)
    return found_bound if found_bound < _trivial(query, found.theta) else math.inf


def _trivial(query: BoundMinimize, theta: Array) -> float:
    """What bounds err whatever the data: S, and the largest loss at θ̂ where no loss is negative."""
    assert query.scale is not None
    if isinstance(query.risk, GlmRisk) and query.risk.loss.labels != "count":
        return min(query.scale, float(query.risk.losses(theta).max()))
    return query.scale


def _per_feature(risk: GlmRisk, weights: Array) -> Array:
    """Weights over the cells, 0 outside ``where``, summed to the features' own cells."""
    objective = risk.objective(weights)
    return objective._collect(objective.weights)


def _curvature(risk: GlmRisk, marginal: Array, theta: Array, reach: float) -> Array:
    """H with ℓ_D̂(θ̂ + v) ≥ ℓ_D̂(θ̂) + ⟨∇, v⟩ + ½vᵀHv for ‖v‖ ≤ reach.

    Logistic: φ(z + d) − φ(z) − φ′(z)d ≥ φ″(z)(e^{−|d|} + |d| − 1) ≥ φ″(z)d²/(2 + |d|), as |φ‴| ≤ φ″.
    """
    p = risk.features.dimension
    if type(risk.loss) not in (Squared, Logistic):
        return risk.loss.ridge * np.eye(p)
    kept = 1.0 if type(risk.loss) is Squared else 2 / (2 + reach * risk.features.row_norm_bound)
    ridge = risk.loss.ridge * np.eye(p)
    hessian: Array = kept * (risk.objective(marginal).hessian(theta) - ridge) + ridge
    return hessian


def _sup_quadratic(a: float, C: Array, H: Array, reach: float) -> float:
    """A bound on sup over ‖v‖ ≤ reach of a·√(vᵀCv) − ½vᵀHv: by a√q ≤ κ/2 + a²q/(2κ), for the best of many κ."""
    best = widest = a * reach * _root_of_largest(C)
    for κ in widest * np.geomspace(1e-4, 1.0, 13) if widest > 0 else ():  # a set of one point leaves nothing
        excess = float(np.linalg.eigvalsh(a * a / κ * C - H)[-1])
        best = min(best, κ / 2 + reach**2 / 2 * max(0.0, excess))
    return best


def _root_of_largest(A: Array) -> float:
    return math.sqrt(max(0.0, float(np.linalg.eigvalsh(A)[-1])))


def _stated(error: float) -> float | None:
    return error if math.isfinite(error) else None
