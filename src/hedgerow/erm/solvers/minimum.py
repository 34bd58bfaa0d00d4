"""The exact minimum inside a perturbation mechanism, up to a distance that holds for every dataset.

Papers: Iyengar et al. "Towards practical differentially private convex optimization" (approximate minima); ``descent``.

Symbols: F(θ) = Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩ over C; θ* its minimum; L, λ bounds on ‖φ'·x‖ and φ''·‖x‖².

F is Λ-strongly convex. So if r is the sum of ∇F(θ) and a vector of the normal cone of C at θ, then ‖θ − θ*‖ ≤ ‖r‖/Λ.
For any v, θ = Π(v) and β > 0, such a vector is r = β(v − θ) + ∇F(θ), or ∇F(θ) alone if v is in C. ``_proven`` computes
it with exact sums and adds an allowance for all rounding. So the returned point is within the requested distance for
every dataset, arithmetic included.

Newton's method gets there in a few steps if C does not bind. If C binds, it minimizes the second-order model of F over
C, which touches no row. Sums of very many rows have a larger rounding error than the proof allows; exact sums then
correct the result. If all this fails, accelerated descent runs for as many steps as its bound needs. It restarts from
its end with a smaller target until the proof is found. No failure needs to be reported: the requested distance is at
least ``rounding_distance``, for which the proof exists.

The proof trusts Π up to a few units in the last place. A ``Polytope`` has no such Π: its projection is found by a
solver, which may even fail. ``require_projection`` refuses it, which is a public fact.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.sets import Polytope
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.sets.potentials import Euclidean
from hedgerow.erm.exact_sums import EXACT, exact_row_products, exact_sum
from hedgerow.erm.problem import Problem
from hedgerow.erm.solvers.descent import Schedule, descend, fastest
from hedgerow.errors import InvalidInput

_UNIT_ROUNDOFF = 2.0**-53
_NEWTON_STEPS = 60  # at most this many steps of Newton's method
_NEWTON_UP_TO = 2000  # Newton's method is used for at most this many parameters
_EXACT_STEPS = 10  # at most this many steps of Newton's method with exact sums
_MODEL_STEPS = 20_000  # at most this many steps to minimize a second-order model over C
_MODEL_WORK = 8e9  # at most this many multiplications in all of these steps
_STAGES = 60  # at most this many restarts of accelerated descent
_MOST_ROWS = 1 << 32  # if n is a guess, the rounding of sums is bounded for at least this many rows


@dataclasses.dataclass(frozen=True)
class MinimumTarget:
    """The weight of a minimum, and the distance within which to find it. Details of a plan."""

    weight: float  # Λ
    distance: float


def require_smooth(problem: Problem, solver: str) -> None:
    """Refuse a loss with kinks."""
    if not problem.loss.is_smooth:
        raise InvalidInput(
            f"loss must be smooth for {solver}. Found {type(problem.loss).__name__}, which has kinks. "
            "Use SmoothedHinge or Huber, or mirror_descent."
        )


def require_projection(problem: Problem, solver: str) -> None:
    """Refuse a set whose projection has no closed form."""
    if isinstance(problem.over, Polytope):
        raise InvalidInput(
            f"over must be a set whose nearest points a formula gives for {solver}. Found Polytope, for which an "
            "iterative solver finds them. Use frank_wolfe or mirror_descent, or a set such as L1Ball, Simplex or Box."
        )


def rounding_distance(problem: Problem, over: ConvexSet, weight: float, tilt: float = 0.0) -> float:
    """Return the least distance that can be requested over C: twice the rounding error that the proof cannot see.

    The tilt is at most ``tilt`` long. It moves v farther from C by tilt/β, whatever the number of rows, and its own
    rounding is a few units of its length.
    """
    rows, p = problem.n if problem.budget.neighbours == "replace" else max(problem.most_rows, _MOST_ROWS), problem.p
    # the v of the proof is one gradient step of 1/β away from C, which bounds its distance from 0
    far = over.radius_l2(p) + problem.lipschitz / problem.smoothness if over.is_bounded else 0.0
    leaning = (4 * (p + 16) + 8) * _UNIT_ROUNDOFF * tilt
    return 2 * (_slack(problem, rows) + _projection_slack(problem, rows, weight, far) + leaning) / weight


def minimum(problem: Problem, over: ConvexSet, weight: float, tilt: Array, distance: float) -> Array:
    """Return a point within ``distance`` of θ*, whatever the data. Private.

    ``distance`` must be at least ``rounding_distance``, so that a proof of it exists.
    """
    start = over.project(np.zeros(problem.p))
    # a bound on ‖θ*‖ without a constraint
    farthest = (problem.X.shape[0] * problem.lipschitz + float(np.linalg.norm(tilt))) / weight
    spread = min(farthest + float(np.linalg.norm(start)), over.diameter_l2(problem.p))
    if problem.p <= _NEWTON_UP_TO:
        for newton in (_newton, _newton_over) if over.is_bounded else (_newton,):
            point, proven = _prove(
                problem, over, weight, tilt, newton(problem, over, weight, tilt, weight * distance / 8)
            )
            if proven <= distance:
                return point
            if proven < spread:
                start, spread = point, proven
        point, proven = _newton_exactly(problem, over, weight, tilt, start, distance)
        if proven <= distance:
            return point
    near, before, is_exact = distance / 2, math.inf, False
    point = start
    for _ in range(_STAGES):
        start = _descent(problem, over, weight, tilt, start, spread, near, is_exact)
        stepped = start - _gradient(problem, start, weight, tilt, is_exact)[0] / _steepest(problem, weight)
        point, proven = _prove(problem, over, weight, tilt, stepped)
        if proven <= distance:
            break
        is_exact = is_exact or proven > before / 2  # rounded sums no longer make progress
        before, spread, near = proven, near, near / 8
    return point


def _steepest(problem: Problem, weight: float) -> float:
    """Return β, for which F is β-smooth."""
    return float(problem.X.shape[0] * problem.smoothness + weight)


def _slack(problem: Problem, rows: int) -> float:
    """Return a bound on the rounding error in ‖∇F‖.

    Slopes are correct to 10·2^-53 of their bound, at scores that are correct to a relative 2^-52. Slopes are then
    truncated to 2^-52 of the bound, and their sum is rounded once for each digit (``exact_sums``) and once when it is
    added to the rest. No loss of this package has φ″(z)·|z| above ``bends``: each is flat, or fades, beyond the scores
    of its labels and its own scale.
    """
    loss, own = problem.loss, abs(float(getattr(problem.loss, "clip", 0.0)))
    bends = loss.smoothness * (1 + problem.label_bound + own) + problem.slope_bound
    digits = EXACT // max(EXACT - problem.bits - max(rows - 1, 0).bit_length(), 1)
    return (rows + 1) * _UNIT_ROUNDOFF * problem.row_l2 * ((14 + digits) * problem.slope_bound + 2 * bends)


def _projection_slack(problem: Problem, rows: int, weight: float, length: float) -> float:
    """Return a bound on the effect on r of rounding in Π(v), if neither v nor Π(v) is longer than ``length``.

    The nearest point to 0 may be rounded, too.
    """
    off = 2 * (problem.p + 16) * _UNIT_ROUNDOFF * length
    return 2 * (rows * problem.smoothness + weight) * off


def _prove(problem: Problem, over: ConvexSet, weight: float, tilt: Array, v: Array) -> tuple[Array, float]:
    """Return Π(v), and a proven bound on its distance from θ*."""
    point, β, n = over.project(v), _steepest(problem, weight), problem.X.shape[0]
    r = β * (v - point) + _gradient(problem, point, weight, tilt, is_exact=True)[0]
    slack = _slack(problem, n) + 8 * _UNIT_ROUNDOFF * (weight * np.linalg.norm(point) + np.linalg.norm(tilt))
    if over.is_bounded:
        slack += _projection_slack(problem, n, weight, float(max(np.linalg.norm(v), np.linalg.norm(point))))
    return point, (float(np.linalg.norm(r)) * (1 + 1e-9) + float(slack)) / weight


def _gradient(
    problem: Problem, theta: Array, weight: float, tilt: Array, is_exact: bool = False
) -> tuple[Array, Array, Array]:
    """Return ∇F, approximately or with exact sums, and the scores and slopes from which it was computed."""
    z = exact_row_products(problem.X, theta * problem.unit, problem.bits) if is_exact else problem.scores(theta)
    s = np.clip(problem.loss.derivative(z, problem.y), -problem.slope_bound, problem.slope_bound)
    if is_exact:
        fine = 2.0 ** (math.frexp(problem.slope_bound)[1] - EXACT)
        sums = exact_sum(problem.X, np.trunc(s / fine), problem.bits, EXACT) * (fine * problem.unit)
    else:
        sums = np.asarray(problem.X.T @ s) * problem.unit
    return sums + weight * theta + tilt, z, s


def _hessian(problem: Problem, z: Array, s: Array, weight: float) -> Array:
    """Return ∇²F approximately, for scores z and slopes s."""
    h = np.where(np.abs(s) < problem.slope_bound, problem.loss.curvature(z, problem.y), 0.0)
    X = problem.X
    H = (X.T * h) @ X if isinstance(X, np.ndarray) else (X.T @ X.multiply(h[:, None]).tocsr()).toarray()
    return np.asarray(H * problem.unit**2 + weight * np.eye(problem.p))


def _newton(problem: Problem, over: ConvexSet, weight: float, tilt: Array, γ: float) -> Array:
    """Run Newton's method on ∇F = 0, ignoring C. It backtracks on ‖∇F‖, which its direction decreases."""
    θ = np.zeros(problem.p)
    g, z, s = _gradient(problem, θ, weight, tilt)
    size = float(np.linalg.norm(g))
    for _ in range(_NEWTON_STEPS):
        if size <= γ:
            break
        try:
            move = np.linalg.solve(_hessian(problem, z, s, weight), g)
        except np.linalg.LinAlgError:  # singular up to rounding; the error depends on the rows and must stay invisible
            break
        step = 1.0
        while step > 1e-4:
            then, z_then, s_then = _gradient(problem, θ - step * move, weight, tilt)
            if float(np.linalg.norm(then)) <= (1 - step / 4) * size:
                break
            step /= 2
        else:
            break
        θ, g, z, s = θ - step * move, then, z_then, s_then
        size = float(np.linalg.norm(g))
    return θ


def _newton_over(problem: Problem, over: ConvexSet, weight: float, tilt: Array, γ: float) -> Array:
    """Run Newton's method over C: each step goes to the minimum of the second-order model.

    A step is halved while F rises too fast at its end. Return the v of the proof: θ less a step along ∇F.
    """
    θ, β = over.project(np.zeros(problem.p)), _steepest(problem, weight)
    g, z, s = _gradient(problem, θ, weight, tilt)
    for _ in range(_NEWTON_STEPS):
        if β * float(np.linalg.norm(θ - over.project(θ - g / β))) <= γ:
            break
        move = _model_minimum(_hessian(problem, z, s, weight), g, θ, over, γ / β) - θ
        falls, step = -float(g @ move), 1.0
        if not falls > 0:  # only rounding is left of the step
            break
        while step > 1e-4:
            then, z_then, s_then = _gradient(problem, θ + step * move, weight, tilt)
            if float(then @ move) <= falls / 4:
                break
            step /= 2
        else:
            break
        θ, g, z, s = θ + step * move, then, z_then, s_then
    return θ - g / β


def _newton_exactly(
    problem: Problem, over: ConvexSet, weight: float, tilt: Array, θ: Array, distance: float
) -> tuple[Array, float]:
    """Take full Newton steps over C with exact sums, from the point where rounded sums stopped.

    Return the nearest point and its proven distance.
    """
    β, best = _steepest(problem, weight), (θ, math.inf)
    for _ in range(_EXACT_STEPS):
        g, z, s = _gradient(problem, θ, weight, tilt, is_exact=True)
        found = _prove(problem, over, weight, tilt, θ - g / β)
        if found[1] >= best[1]:
            break
        best = found
        if best[1] <= distance:
            break
        θ = _model_minimum(_hessian(problem, z, s, weight), g, θ, over, weight * distance / (8 * β))
    return best


def _model_minimum(H: Array, g: Array, θ: Array, over: ConvexSet, near: float) -> Array:
    """Return argmin over C of ⟨g, u − θ⟩ + (u − θ)ᵀH(u − θ)/2, by accelerated projected steps.

    The steps end at a fixed point up to ``near``, or when only rounding is left.
    """
    try:
        eigenvalues = np.linalg.eigvalsh(H)
    except np.linalg.LinAlgError:  # the error depends on the rows and must stay invisible
        return θ
    least, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if not 0 < least <= largest < math.inf:
        return θ
    root = math.sqrt(largest / least)
    momentum, u, ahead = (root - 1) / (root + 1), θ, θ
    # 40√κ steps are enough: (1 − 1/√κ)^(40√κ) is less than 2^-53
    for _ in range(int(min(_MODEL_STEPS, _MODEL_WORK / g.size**2, 40 * root + 50))):
        before, u = u, over.project(ahead - (g + H @ (ahead - θ)) / largest)
        if float(np.linalg.norm(u - ahead)) <= near / 4:
            break
        ahead = u + momentum * (u - before)
    return u


def _descent(
    problem: Problem, over: ConvexSet, weight: float, tilt: Array, start: Array, spread: float, distance: float,
    is_exact: bool,
) -> Array:  # fmt: skip
    """Run accelerated descent from a point within ``spread`` of θ*, until its bound proves ``distance``.

    The bound is D/A_T ≤ (Λ/2n)·distance² on the average loss.
    """
    n = max(problem.X.shape[0], 1)
    D, Δ, β = spread**2 / 2, weight / n, problem.smoothness
    weights, A = [], 0.0
    while D / (Δ * distance**2 / 2) > A:
        weights.append(float(fastest(A, 1 + Δ * A, β)))
        A += weights[-1]
    plan = Schedule(np.array(weights), 0.0, True, Δ)
    Ψ = Euclidean(start, D, math.sqrt(problem.p), over.project)
    return descend(lambda θ: _gradient(problem, θ, 0.0, tilt, is_exact)[0] / n, Ψ, plan)
