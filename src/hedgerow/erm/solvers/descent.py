"""Accelerated dual averaging: the loop, its weights and its bound, with noisy or exact gradients.

Papers: Tseng "On accelerated proximal gradient methods for convex-concave optimization"; Lan "An optimal method for
stochastic composite optimization"; Nesterov "Primal-dual subgradient methods".

Symbols: f the average loss, β-smooth in the norm ‖·‖_Q of the potential Ψ (if f has kinks: f with its ridge is
G-Lipschitz); Δ the ridge; D = maxΨ − minΨ; step weights a_t, A_t = a_1 + … + a_t; θ_t the dual-averaging iterate, w_t
their weighted mean; V = E‖b_t‖²_{Q*} the noise of one gradient.

    v_t = (A_{t−1} w_{t−1} + a_t θ_{t−1})/A_t                 where the gradient is taken
    θ_t = argmin over C of Ψ(u) + Σ_{s≤t} a_s (⟨g_s + b_s, u⟩ + (Δ/2)‖u‖²)
    w_t = (A_{t−1} w_{t−1} + a_t θ_t)/A_t                     what is released

With 2βa_t² ≤ A_t(1 + ΔA_{t−1}) and c_t = 1 + ΔA_{t−1} − βa_t²/A_t,
    E f(w_T) − f(u) ≤ (D + V·Σ a_t²/(2c_t))/A_T                                  (docs/proofs/erm_mirror_descent.md).

If the loss has kinks, v_t = θ_{t−1}, w averages the θ_{t−1}, no condition limits a_t, β is 0, and 2(G² + V) replaces V.

If T noisy gradients share one Gaussian budget, then V = T·B², and the sum is smallest for a_t ∝ √(1 + ΔA_{t−1}): even
weights, once acceleration has reached them. So the weights grow as fast as allowed up to a cap, and the cap is the one
with the best bound.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow._types import Array
from hedgerow.convex.sets.potentials import Euclidean, Potential

_NEAR = 1.1  # a schedule takes the fewest steps whose bound is within this factor of the best


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
    """The weights a_1 … a_T and the bound on the expected excess risk that they prove."""

    weights: Array
    bound: float
    smooth: bool
    ridge: float

    @property
    def count(self) -> int:
        """T, the number of steps."""
        return int(self.weights.size)


@dataclasses.dataclass(frozen=True)
class Terms:
    """The public numbers on which a schedule depends, for the average loss."""

    spread: float  # D
    noise: float  # B² = V/T: the noise of the gradient if there were only one step
    smoothness: float  # β; infinite if the loss has kinks
    lipschitz: float  # G, in the dual norm of ‖·‖_Q
    ridge: float  # Δ

    @property
    def smooth(self) -> bool:
        """True if the loss has no kinks."""
        return math.isfinite(self.smoothness)


@functools.lru_cache(maxsize=64)
def schedule(terms: Terms, most_steps: int, steps: int | None = None) -> Schedule:
    """Return the weights of the fewest steps whose bound is within a tenth of the best that ``most_steps`` allow.

    If ``steps`` is given, return the weights of exactly that many steps.
    """
    if steps is not None:
        return _best_weights(terms, steps)
    ladder = sorted({min(most_steps, math.ceil(2 ** (k / 3))) for k in range(3 * most_steps.bit_length() + 1)})
    plans = [_best_weights(terms, T) for T in ladder]
    best = min(plan.bound for plan in plans)
    return next(plan for plan in plans if plan.bound <= _NEAR * best)


def _best_weights(terms: Terms, T: int) -> Schedule:
    # Try all candidate caps at once. They range from one that makes all weights equal to one that never binds.
    """Return the weights of T steps with the best bound, over a range of caps on the weights."""
    spread = max(terms.spread, 1e-30)  # a set of one point has spread 0
    V = T * terms.noise if terms.smooth else 2 * (T * terms.noise + terms.lipschitz**2)
    unit = math.sqrt(spread / max(V, 1e-300)) / math.sqrt(T)  # nearly the best even weight
    caps = unit * np.geomspace(1e-4, 1e4, 160)
    A, used, a = np.zeros_like(caps), np.zeros_like(caps), np.empty((T, caps.size))
    β = terms.smoothness if terms.smooth else 0.0
    for t in range(T):
        strength = 1 + terms.ridge * A
        a[t] = caps * np.sqrt(strength)
        if β > 0:
            a[t] = np.minimum(a[t], fastest(A, strength, β))
        A = A + a[t]
        used += V * a[t] ** 2 / (2 * (strength - β * a[t] ** 2 / A))
    bounds = (spread + used) / A
    i = int(np.argmin(bounds))
    chosen = a[:, i].copy()
    chosen.setflags(write=False)
    return Schedule(chosen, float(bounds[i]), terms.smooth, terms.ridge)


def fastest(A: Any, strength: Any, smoothness: float) -> Any:
    """Return the largest a with 2βa² ≤ (A + a)·strength, for strength = 1 + ΔA."""
    c = strength / (2 * smoothness)
    return (c + np.sqrt(c * c + 4 * c * A)) / 2


def descend(
    gradient: Callable[[Array], Array],
    potential: Potential,
    plan: Schedule,
    progress: Callable[[int], None] = lambda step: None,
) -> Array:
    """Run the schedule and return w_T. ``gradient`` is that of the average loss without the ridge, noisy or exact."""
    θ = w = potential.start
    dual, A = np.zeros_like(θ), 0.0
    for t, a in enumerate(plan.weights):
        v = (A * w + a * θ) / (A + a) if plan.smooth else θ
        dual = dual - a * gradient(v)
        A_next = A + a
        before, θ = θ, _minimizer(potential, dual, plan.ridge * A_next)
        w = (A * w + a * (θ if plan.smooth else before)) / A_next
        A = A_next
        progress(t + 1)
    return w


def _minimizer(potential: Potential, dual: Array, ridge: float) -> Array:
    """Return argmin over C of Ψ + (ridge/2)‖·‖² − ⟨dual, ·⟩. A ridge requires the Euclidean potential."""
    if ridge == 0:
        return potential.minimizer(dual)
    assert isinstance(potential, Euclidean)
    return potential.project((potential.start + dual) / (1 + ridge))
