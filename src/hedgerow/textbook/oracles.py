"""Single-query oracles: a private θ for one convex loss, for the families of Ullman's Table 1.

Papers: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §4 (A′; Theorems 4.1, 4.3, 4.5); Bassily, Smith
& Thakurta, *Private empirical risk minimization, revisited*; Jain & Thakurta, *(Near) dimension independent risk
bounds*. Proofs: docs/proofs/convex_pmw.md.

Symbols: n rows, p dimension, L Lipschitz constant (ℓ2), R radius, σ strong convexity, Λ the ridge on the **sum** of
losses, s the noise on each coordinate, ρ₀ the zCDP cost of one call, (α₀, β₀) its error and the probability of a larger
one, ϑ the distance of the numerical minimizer from the true one.

Everything is computed on sums over rows. Each oracle states, from public constants alone, the one event from which it
will draw (T Gaussian steps of one Δ and σ are one Gaussian with Δ√T), and the α₀ that this event gives.

Differs: every noise is calibrated by ρ, not by the papers' (ε₀, δ₀). The strongly convex family uses output
perturbation, n ~ √p/(σα₀), where Bassily et al. reach √(p/(σα₀)); Theorem 4.5 prints σ outside the root. The
unconstrained family leaves θ unprojected, because projecting would bring the dimension back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast, final

import numpy as np
from numpy.typing import NDArray

from hedgerow._types import Array
from hedgerow.convex.bound_loss import GlmRisk, Risk
from hedgerow.convex.sets import L2Ball
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.convex.solver.gradient_sums import SLOPE, GradientSums, taper_factor
from hedgerow.convex.solver.private_minimum import Surrogate, certain_place, locate_minimum
from hedgerow.errors import InvalidInput
from hedgerow.privacy import events
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Gaussian, Repeated
from hedgerow.privacy.ledger import Receipt
from hedgerow.privacy.noise import Noise

FINEST = 1e-12  # float64 gradients locate a minimizer up to this multiple of L/σ
MOST_STEPS = 10**6  # at most this many steps of gradient descent
ROUNDED = 2e-3  # share of the sensitivity kept for rounding: half for the grid of the noise, half for sums


@final
@dataclass(frozen=True)
class Phase:
    """One phase of a localized oracle: the ridge λ per row, ϑ, and the unit in which its minimizer is released."""

    ridge: float
    distance: float
    unit: float


@final
@dataclass(frozen=True)
class OraclePlan:
    """The event that one call draws from, and the accuracy it gives. All of it is public."""

    event: Gaussian | Repeated
    error: float  # α₀: ℓ_D(θ) − min ℓ_D, per row, with probability 1 − β₀
    deficit: float = 0.0  # the most by which ⟨u, D̂⟩ can be negative, because θ is outside the set
    steps: int = 1
    step: float = 0.0  # η, for gradients summed over rows
    distance: float = 0.0  # ϑ
    width: float = 0.0  # the half width over which kinks are rounded
    ridge: float = 0.0  # Λ
    phases: tuple[Phase, ...] = ()  # of a localized oracle
    members: tuple[tuple[Oracle, OraclePlan], ...] = ()  # of a choice of oracles

    @property
    def noise(self) -> Gaussian:
        """The noise on every release."""
        return self.event if isinstance(self.event, Gaussian) else cast(Gaussian, self.event.event)


class Oracle(Protocol):
    """The oracle A′ for a family of losses, given by its constants.

    ``plan`` is public. ``answer`` draws, once the plan's event is charged.
    """

    @property
    def leaves_the_set(self) -> bool:
        """True if θ may be outside Θ."""

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss outside the family."""

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Return the plan that the cost ρ₀ buys at this number of rows, or None if no grid is fine enough.

        If a plan reaches ``error``, a faster one that still reaches it may be returned.
        """

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the plan's sensitivity holds for every table, all arithmetic included.

        ``rows``: n, or its estimate.
        """

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
        """Return a private θ, with noise drawn against the receipt."""
        ...


@final
@dataclass(frozen=True)
class NoisyGradientDescentOracle:
    """The oracle for Lipschitz losses over a bounded set (Theorem 4.1): averaged projected steps on noisy gradients.

    D is the diameter of the set. With b_t ~ N(0, s²I) on the mean gradient, M = L + s(√p + √(2 ln(2/β₀)/T)) bounds the
    root mean square step, and η = r/(M√T) gives α₀ = rM/√T + sD√(2 ln(2/β₀)/T), r ≤ D the distance from the start:
    n ~ √p/(α₀√ρ₀).
    """

    lipschitz: float
    diameter: float
    dimension: int
    most_steps: int = MOST_STEPS

    leaves_the_set: ClassVar[bool] = False

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss or a set beyond the configured constants."""
        require_at_most("lipschitz", risk.lipschitz(over), self.lipschitz)
        require_at_most("diameter", over.diameter_l2(risk.dimension), self.diameter)
        require_at_most("dimension", risk.dimension, self.dimension)

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Plan the steps with the best bound, or the fewest steps that reach ``error`` if any do."""
        delta = budget.gradient(self.lipschitz) * taper_factor(budget) * (1 + ROUNDED)
        once = delta / math.sqrt(2 * cost) / rows  # s/√T
        noise = self.diameter * once * (math.sqrt(self.dimension) + math.sqrt(8 * math.log(2 / beta)))
        T = max(1, min(self.most_steps, math.ceil((4 * self.lipschitz * self.diameter / noise) ** 2)))
        best, low = self._plan_steps(delta, once, rows, T, beta), 1
        while low < T and best is not None and best.error <= error:
            middle = (low + T) // 2
            planned = self._plan_steps(delta, once, rows, middle, beta)
            enough = planned is not None and planned.error <= error
            low, T, best = (low, middle, planned) if enough else (middle + 1, T, best)
        return best

    def _plan_steps(self, delta: float, once: float, rows: float, T: int, beta: float) -> OraclePlan | None:
        """Return the plan of T steps."""
        z, s, D = math.sqrt(2 * math.log(2 / beta)), once * math.sqrt(T), self.diameter
        M = self.lipschitz + s * (math.sqrt(self.dimension) + z / math.sqrt(T))
        each = gaussian_on_grid(delta, s * rows, delta, self.dimension)
        eta = D / (M * math.sqrt(T))
        return each and OraclePlan(Repeated(each, T), D * (M + s * z) / math.sqrt(T), steps=T, step=eta / rows)

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the rounding of gradient sums fits into the plan's sensitivity."""
        sums = GradientSums(risk, over, budget, rows)
        each = plan.noise
        return sums.are_certain and sums.sensitivity + math.sqrt(risk.dimension) * each.grid <= each.sensitivity

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
        """Take the steps and return their projected average."""
        sums, theta = GradientSums(risk, over, budget, rows), over.project(np.zeros(risk.dimension))
        total = np.zeros(risk.dimension)
        for _ in range(plan.steps):
            total += theta
            noisy = noise.add(sums.at(theta, counts), receipt)  # Σ∇ℓ + b_t
            theta = over.project(theta - plan.step * noisy)
        return over.project(total / plan.steps)


@final
@dataclass(frozen=True)
class OutputPerturbationOracle:
    """The oracle for σ-strongly convex losses (Theorem 4.5): the minimizer plus noise, projected.

    The minimizer has sensitivity 2L/(nσ). α₀ = L·s(√p + √(2 ln(1/β₀))), s = Δ/√(2ρ₀), Δ = 2L/(nσ) + 2ϑ. It depends on n
    itself, so it works for replace-one only.
    """

    lipschitz: float
    strong_convexity: float
    dimension: int
    scale: float

    leaves_the_set: ClassVar[bool] = False

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss beyond the configured constants, or one that is not strongly convex enough."""
        require_at_most("lipschitz", risk.lipschitz(over), self.lipschitz)
        require_at_most("scale", risk.scale(over), self.scale)
        require_at_most("dimension", risk.dimension, self.dimension)
        if not risk.strong_convexity(over) >= self.strong_convexity * (1 - 1e-12):
            raise InvalidInput(
                f"A loss of this family must be {self.strong_convexity:g}-strongly convex. "
                f"Found {risk.strong_convexity(over):g}. Add a ridge, or use another oracle."
            )

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Plan one draw of noise on the minimizer. Refuse add-remove neighbours."""
        if budget.neighbours != "replace":
            raise InvalidInput(
                "Output perturbation must have neighbours that replace a row, for its noise depends on their number. "
                f"Found {budget.neighbours!r}. Use RegularisedOutputPerturbation or NoisyGradientDescent."
            )
        L, σ, p = self.lipschitz, self.strong_convexity, self.dimension
        change = 2 * L / (rows * σ)
        distance = max(change / 100, FINEST * L / σ)
        delta = (change + 2 * distance) * (1 + ROUNDED)
        s = delta / math.sqrt(2 * cost)
        reached = L * s * (math.sqrt(p) + math.sqrt(2 * math.log(1 / beta))) + L * distance
        width = reached / 50
        event = gaussian_on_grid(delta, s, delta, p)
        return event and OraclePlan(event, reached + width, distance=distance, width=width)

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the minimizer can be located for every table."""
        return certain_place(Surrogate(risk, over, plan.width), plan.distance)

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
        """Locate the minimizer, add noise, and project."""
        found = locate_minimum(Surrogate(risk, over, plan.width), counts, plan.distance)
        return over.project(noise.add(found, receipt))


@final
@dataclass(frozen=True)
class RegularizedOutputPerturbationOracle:
    """The dimension-free oracle for generalized linear losses over an ℓ2 ball (Theorem 4.3).

    It adds a ridge, minimizes, and adds noise. The minimizer of Σℓ + (Λ/2)‖θ‖² over the ball moves by at most Δ = 2L/Λ
    + 2ϑ. Its noise acts only through ⟨x, b⟩ ~ N(0, s²‖x‖²): α₀ = ΛR²/(2n) + Ls(√(2/π) + √(2 ln(2/β₀))), least at
    Λ ~ √n, where n ~ 1/(α₀²√ρ₀). θ is not projected. L must hold everywhere, so losses with unbounded slopes (squared)
    are refused.
    """

    lipschitz: float
    radius: float
    dimension: int
    scale: float

    leaves_the_set: ClassVar[bool] = True

    def fits(self, risk: Risk, over: ConvexSet) -> None:
        """Refuse a loss that is no GLM over an ℓ2 ball, has a ridge or unbounded slopes, or exceeds the constants."""
        if not (isinstance(risk, GlmRisk) and not risk.outputs and isinstance(over, L2Ball)):
            raise InvalidInput(
                f"A loss of this family must be of one linear predictor over an L2Ball. Found {type(over).__name__}. "
                "Use another oracle."
            )
        ends = (float(risk.labels.min()), float(risk.labels.max()))
        everywhere = risk.loss.lipschitz(math.inf, ends) * risk.features.row_norm_bound
        if not math.isfinite(everywhere) or risk.loss.ridge > 0:
            raise InvalidInput(
                f"A loss of this family must have bounded slopes and no ridge. Found {type(risk.loss).__name__} with "
                f"ridge {risk.loss.ridge:g}. Use Huber or Logistic, or another oracle."
            )
        require_at_most("lipschitz", everywhere, self.lipschitz)
        require_at_most("radius", over.radius, self.radius)
        require_at_most("dimension", risk.dimension, self.dimension)
        require_at_most("scale", risk.scale(over), self.scale)

    def plan(self, budget: Budget, cost: float, rows: float, beta: float, error: float = 0.0) -> OraclePlan | None:
        """Choose the ridge with the best bound, and plan one draw of noise on the minimizer."""
        L, R, z = self.lipschitz, self.radius, math.sqrt(2 * math.log(2 / beta))
        noise = L * (math.sqrt(2 / math.pi) + 2 * z) / math.sqrt(2 * cost)  # per unit of Δ, including the deficit
        Λ = math.sqrt(2 * rows * budget.gradient(L) * noise) / R
        change = budget.gradient(L) / Λ
        distance = max(change / 100, FINEST * L * rows / Λ)
        untapered = (change + 2 * distance) * (1 + ROUNDED)
        delta = untapered * taper_factor(budget)
        s = delta / math.sqrt(2 * cost)
        reached = Λ * R**2 / (2 * rows) + L * s * (math.sqrt(2 / math.pi) + z) + L * distance
        width = reached / 50
        event = gaussian_on_grid(delta, s, untapered, self.dimension)
        return event and OraclePlan(event, reached + width, deficit=L * s * z, distance=distance, width=width, ridge=Λ)

    def certain(self, plan: OraclePlan, risk: Risk, over: ConvexSet, budget: Budget, rows: float) -> bool:
        """Return True if the minimizer can be located for every table.

        The ridge is spread over the largest number of rows that is computed, for which the minimizer is hardest to
        find.
        """
        most = self._most_rows(plan, budget, rows)
        return certain_place(Surrogate(risk, over, plan.width, plan.ridge / most), plan.distance)

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
        """Locate the minimizer and add noise."""
        n, most = float(counts.sum()), self._most_rows(plan, budget, rows)
        found = np.zeros(risk.dimension)
        if 0 < n <= most:
            ridge = plan.ridge / n  # so that Λ acts on the sum, whatever the number of rows
            found = locate_minimum(Surrogate(risk, over, plan.width, ridge), counts, plan.distance)
        if budget.neighbours == "add-remove":  # clip to a radius that shrinks a little per row, down to 0 at ``most``
            room = plan.noise.sensitivity / (SLOPE + 1) * max(most - n, 0.0)
            with np.errstate(all="ignore"):
                found = found * min(1.0, room / max(float(np.linalg.norm(found)), 1e-300))
        return noise.add(found, receipt)

    def _most_rows(self, plan: OraclePlan, budget: Budget, rows: float) -> float:
        """Return the largest number of rows for which the minimizer is computed.

        If n is private, it is so large that the shrinking radius leaves tables of up to twice ``rows`` rows unchanged.
        """
        if budget.neighbours == "replace":
            return rows
        return 2 * rows + (SLOPE + 1) * self.radius / plan.noise.sensitivity


def gaussian_on_grid(delta: float, sigma: float, each: float, dimension: int) -> Gaussian | None:
    """Return noise on a fine grid, or None if no grid is fine enough.

    Rounding p values to the grid adds half of ROUNDED to the sensitivity of each release.
    """
    grid = events.grid_at_most(each / (1 + ROUNDED) * ROUNDED / 2 / math.sqrt(dimension))
    return Gaussian(delta, sigma, grid) if sigma / grid <= events.COARSEST / 2 else None


def require_at_most(name: str, found: float, stated: float) -> None:
    """Refuse a constant above the configured one."""
    if not found <= stated * (1 + 1e-12):
        raise InvalidInput(
            f"The {name} of a loss must be at most {stated:g}, as configured. Found {found:g}. "
            "Narrow the set, or configure for more."
        )
