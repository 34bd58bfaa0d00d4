"""The oracle for Lipschitz and strongly convex losses that takes a few minimizers instead of many gradients.

Papers: Feldman, Koren & Talwar, *Private stochastic convex optimization: optimal rates in linear time* (the phased
minimizer); Bassily, Smith & Thakurta, *Private empirical risk minimization, revisited* (localization); Ullman,
*Private Multiplicative Weights Beyond Linear Queries*, Theorems 4.1 and 4.5, whose rates these are. Proof:
docs/proofs/convex_pmw.md.

Symbols: n rows, p dimension, L Lipschitz constant, D and R diameter and radius of Θ, σ ≥ 0 strong convexity, k phases,
λ_i the ridge of phase i per row, m_i = λ_i + σ, c_i its center, θ_i its minimizer, ϑ_i the distance up to which that is
computed, s the noise in units of a phase, (α₀, β₀) the error and its probability of failure.

Phase i minimizes ℓ_D(θ) + (λ_i/2)‖θ − c_i‖² over Θ, adds noise, projects, and hands the result to the next phase as its
center. Replacing a row moves the minimizer by at most 2L/(n·m_i), the computed one by at most that plus 2ϑ_i: the unit
in which it is released. So all phases together are k Gaussian releases of sensitivity 1. With r_i = (unit)·s·(√p +
√(2 ln(k/β₀))) + ϑ_i,

    α₀ = λ_1·D²/2 + Σ_{i≥2} λ_i·r_{i−1}²/2 + L·r_k.

The phases are those with the smallest α₀: n ~ √p/(α₀√ρ₀) for Lipschitz losses, and √(p/(σα₀))/√ρ₀ for σ-strongly
convex ones, up to √k.

Differs: the phases use all rows and share the budget, where Feldman et al. split the rows, because the excess here is
over the table. Works for replace-one only, because the noise depends on n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.private_minimum import (
    ULP,
    Surrogate,
    certain_place,
    has_kinks,
    locate_minimum,
    most_steps_on,
)
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Repeated
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise
from hedgerow.textbook.oracles import ROUNDED, OraclePlan, Phase, gaussian_on_grid, require_at_most

RATIOS = (2.0, 4.0, 8.0, 16.0, 64.0)  # of the strengths m of two consecutive phases
MOST_PHASES = 6
FARTHEST = 1e12  # a set is at most this many units of a phase wide, so that float64 holds the released point


@final
@dataclass(frozen=True)
class LocalizedOracle:
    """The oracle of phased output perturbation, for losses up to these constants.

    ``jump`` is 0 for a smooth loss. For one with kinks, rounding them over a half width h adds jump/h to
    ``smoothness``.
    """

    lipschitz: float
    diameter: float
    radius: float
    dimension: int
    cells: int
    smoothness: float
    jump: float = 0.0
    strong_convexity: float = 0.0

    leaves_the_set: ClassVar[bool] = False

    @classmethod
    def of(cls, risk: Risk, over: ConvexSet) -> LocalizedOracle:
        """Return the oracle with the constants of one loss."""
        p, kinks = risk.dimension, has_kinks(risk)
        smooth = risk.loss.ridge if kinks and isinstance(risk, GlmRisk) else risk.smoothness
        return cls(
            risk.lipschitz(over), over.diameter_l2(p), over.radius_l2(p), p, math.prod(risk.shape), smooth,
            _jump(risk), risk.strong_convexity(over),
        )  # fmt: skip

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss beyond the configured constants, or one that is not strongly convex enough."""
        own = LocalizedOracle.of(risk, over)
        for name in ("lipschitz", "diameter", "radius", "dimension", "cells", "smoothness", "jump"):
            require_at_most(name, getattr(own, name), getattr(self, name))
        if not own.strong_convexity >= self.strong_convexity * (1 - 1e-12):
            raise InvalidInput(
                f"A loss of this family must be {self.strong_convexity:g}-strongly convex. Found "
                f"{own.strong_convexity:g}. Add a ridge, or use another oracle."
            )

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Plan the phases with the best bound, or the fewest that reach ``error``. Refuse add-remove neighbours."""
        if budget.neighbours != "replace":
            raise InvalidInput(
                "Localized output perturbation must have neighbours that replace a row, for its noise depends on their "
                f"number. Found {budget.neighbours!r}. Use NoisyGradientDescent."
            )
        width = (error if error > 0 else self.lipschitz * self.diameter / 10) / 50 if self.jump > 0 else 0.0
        best: OraclePlan | None = None
        for k in range(1, MOST_PHASES + 1):
            for ratio in RATIOS if k > 1 else RATIOS[:1]:
                planned = self._plan_phases(k, ratio, cost, rows, beta, width)
                if planned is not None and (best is None or planned.error < best.error):
                    best = planned
            if best is not None and best.error <= error:
                return best
        return best

    def _plan_phases(
        self, k: int, ratio: float, cost: float, rows: float, beta: float, width: float
    ) -> OraclePlan | None:
        """Return the plan of k phases with the best first ridge, or None if no minimizer can be guaranteed."""
        L, D, R, p, σ = self.lipschitz, self.diameter, self.radius, self.dimension, self.strong_convexity
        s, z = math.sqrt(k / (2 * cost)), math.sqrt(p) + math.sqrt(2 * math.log(k / beta))
        first = L / D * np.geomspace(1e-9, 1e3, 97)
        m = (np.concatenate([[0.0], first] if σ > 0 else [first]) + σ)[:, None] * ratio ** np.arange(k)
        λ = m - σ
        β = self.smoothness + (self.jump / width if self.jump > 0 else 0.0) + λ
        change = 2 * L / (rows * m)
        finest = (
            12.2 * ULP * ((self.cells + p + 16) * (L + β * R) + (p + 16) * (3 * β * R + L)) / m
        )  # ``certain_place``
        ϑ = np.maximum(change / 100, finest)
        unit = (change + 2 * ϑ) * (1 + ROUNDED)
        r = unit * s * z + ϑ
        α = λ[:, 0] * D**2 / 2 + (λ[:, 1:] * np.minimum(r[:, :-1], D) ** 2).sum(axis=1) / 2 + L * r[:, -1]
        steps = 3 + np.log(np.maximum(4 * β * D**2 / (m * ϑ**2), 1)) / (2 * np.log1p(0.5 / np.sqrt(β / m)))
        possible = ((steps <= most_steps_on(self.cells)) & (FARTHEST * unit >= D)).all(axis=1)
        if not possible.any():
            return None
        i = int(np.argmin(np.where(possible, α, math.inf)))
        event = gaussian_on_grid(1.0, s, 1.0, p)
        phases = tuple(Phase(*map(float, phase)) for phase in zip(λ[i], ϑ[i], unit[i], strict=True))
        return event and OraclePlan(Repeated(event, k), float(α[i]) + width, steps=k, width=width, phases=phases)

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the minimizer of every phase can be located for every table."""
        center = over.project(np.zeros(risk.dimension))  # any point of the set: only its being there counts
        return all(
            certain_place(Surrogate(risk, over, plan.width, phase.ridge, center), phase.distance)
            for phase in plan.phases
        )

    def answer(
        self,
        plan: OraclePlan,
        risk: Risk,
        over: ConvexSet,
        counts: NDArray[np.int64],
        noise: Noise,
        receipt: Receipt,
        budget: Budget,
        rows: float,
    ) -> Array:
        """Locate the minimizer of each phase around the result of the one before, add noise, and project."""
        center = over.project(np.zeros(risk.dimension))
        for phase in plan.phases:
            surrogate = Surrogate(risk, over, plan.width, phase.ridge, center)
            found = locate_minimum(surrogate, counts, phase.distance)
            center = over.project(center + phase.unit * noise.add((found - center) / phase.unit, receipt))
        return center


def _jump(risk: Risk) -> float:
    """Return the smoothness that rounding the kinks of a loss over the half width 1 adds. It is 0 without kinks."""
    return risk.features.row_norm_bound**2 if has_kinks(risk) and isinstance(risk, GlmRisk) else 0.0
