"""Errata of [T], private empirical risk minimization and the geometry of the constraint set."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, NuclearBall, Simplex
from hedgerow.erm import frank_wolfe, rates
from hedgerow.erm.problem import prepare_problem
from hedgerow.erm.rows import Arrays
from hedgerow.erm.solvers import mirror_descent
from hedgerow.erm.solvers.descent import Terms, schedule
from hedgerow.erm.solvers.frank_wolfe import curvature
from hedgerow.privacy.allowance import Amount
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.conversion import gaussian_mu
from hedgerow.privacy.perturbed_objective import noise_scale
from hedgerow.research.errata.erratum import A_PROOF, TALWAR, ErratumFinding, NotedErratum, erratum
from hedgerow.research.errata.exact import binomial_delta

# Mirror descent


@erratum(
    "talwar-mirror-step",
    document=TALWAR,
    place="Algorithm 1, line 4",
    printed="θ_{t+1} = argmin ⟨η_{t+1}∇(L(θ_t; D) + b_t − Ψ(θ_t)), θ − θ_t⟩ + Ψ(θ)",
    wrong=(
        "η also multiplies ∇Ψ(θ_t), so every step keeps only a share η of its position. Here L = ½(θ − 1)² on [−2, "
        "2], Ψ = ½θ², there is no noise, and η = .02: iterates stay at η. The limit is (12): maxΨ/(ηT) + ηL²/2 at T = "
        "5000."
    ),
    instead="argmin ⟨η(∇L(θ_t) + b_t) − ∇Ψ(θ_t), θ⟩ + Ψ(θ)",
    module="hedgerow.convex.sets",
    in_the_copy=True,
)
def mirror_step() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the excess risk of both steps with the bound (12)."""
    eta, T, lipschitz = 0.02, 5_000, 3.0
    over = Box(-2.0, 2.0)
    potential = over.potential(1)

    def risk(step: Callable[[Array, Array], Array]) -> float:
        theta, total = potential.start, np.zeros(1)
        for _ in range(T):
            total += theta
            theta = step(theta, theta - 1)
        return float((total[0] / T - 1) ** 2) / 2

    limit = potential.range / (eta * T) + eta * lipschitz**2 / 2
    what = "excess risk of the average iterate"
    printed = risk(lambda theta, g: potential.minimizer(eta * (potential.gradient(theta) - g)))
    return ErratumFinding(what, printed, limit), ErratumFinding(
        what, risk(lambda t, g: potential.mirror_step(t, g, eta)), limit
    )


@erratum(
    "talwar-arbitrary-start",
    document=TALWAR,
    place="Algorithm 1, line 2, and the proof of Theorem 3.2, after (12)",
    printed="Let θ₁ be an arbitrary point in C … B_Ψ(θ*, θ₁) ≤ max Ψ(θ)",
    wrong=(
        "The Pythagorean inequality is the wrong way round unless θ₁ minimizes Ψ. For the entropy Σθ log θ on the "
        "simplex max Ψ is 0, and at a vertex the divergence is infinite. Here θ₁ = e₁ and θ* = e₂ in ten dimensions."
    ),
    instead="θ₁ = argmin Ψ, and maxΨ − minΨ in place of maxΨ",
    module="hedgerow.convex.sets.potentials",
)
def arbitrary_start() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the divergence from a vertex, and from the minimizer of Ψ."""
    potential = Simplex(1.0).potential(10)
    target = np.eye(10)[1]

    def divergence(start: Array) -> float:
        apart = target - start
        slopes = potential.gradient(start)[apart != 0]
        return potential.value(target) - potential.value(start) - float(slopes @ apart[apart != 0])

    return (
        ErratumFinding("B_Ψ(θ*, θ₁), against max Ψ", divergence(np.eye(10)[0]), 0.0),
        ErratumFinding("B_Ψ(θ*, θ₁), against maxΨ − minΨ", divergence(potential.start), potential.range),
    )


@erratum(
    "talwar-step-count",
    document=TALWAR,
    place="Theorem 3.2, T",
    printed="T = ‖Q‖₂²ε²n²/(L² log²(n/δ)(G_Q² + ‖Q‖₂²))",
    wrong=(
        "The L² does not belong here; the end of the proof does not have it. The noise and the step scale with L, so "
        "the number of steps cannot depend on the units of the loss."
    ),
    instead="steps and weights from range, noise and Lipschitz constant together (Corollary 3.6's form)",
    module="hedgerow.erm.solvers.descent",
    in_the_copy=True,
)
def step_count() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the number of steps for a loss in other units."""

    def printed(lipschitz: float) -> float:
        n, epsilon, delta, width, radius = 10_000, 1.0, 1e-6, 3.0, 1.0
        return (radius * epsilon * n / (lipschitz * math.log(n / delta))) ** 2 / (width**2 + radius**2)

    def ours(lipschitz: float) -> int:
        return schedule(Terms(1.0, 1e-4 * lipschitz**2, math.inf, lipschitz, 0.0), 2_000).count

    what = "T for a loss in units a tenth as large, over T"
    return ErratumFinding(what, printed(10) / printed(1), 1.0, "at least"), ErratumFinding(
        what, ours(10) / ours(1), 1.0, "at least"
    )


@erratum(
    "talwar-step-size",
    document=TALWAR,
    place="Proof of Theorem 3.2, the end (and the theorem's bound)",
    printed="η = √maxΨ/(L‖Q‖₂√T), and a risk of O(L√((G_Q² + ‖Q‖₂²)maxΨ) log(n/δ)/(εn))",
    wrong=(
        "maxΨ is 0 for the entropy Σθ log θ on the simplex. So nothing ever moves, and the bound says that the risk "
        "is 0. (The theorem's own η = 1/(L‖Q‖₂√T) is not scaled by Ψ; both leave out the noise, which Corollary 3.6's "
        "η has.) Here the loss is linear with slopes 0 at one of ten vertices and 1 at the others, there is no "
        "noise, and T = 1000. The limit is √(2(maxΨ − minΨ)/T), that of mirror descent with the right η."
    ),
    instead="η from maxΨ − minΨ and the noise together",
    module="hedgerow.convex.sets.potentials",
)
def step_size() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the excess risk with a step from maxΨ, and from maxΨ − minΨ."""
    T, slopes = 1000, np.where(np.arange(10) == 3, 0.0, 1.0)
    potential = Simplex(1.0).potential(10)

    def risk(spread: float) -> float:
        theta, total = potential.start, np.zeros(10)
        for _ in range(T):
            total += theta
            theta = potential.mirror_step(theta, slopes, math.sqrt(2 * spread / T))
        return float(slopes @ total) / T

    what = "excess risk of the average iterate"
    limit = math.sqrt(2 * potential.range / T)
    return ErratumFinding(what, risk(0.0), limit), ErratumFinding(what, risk(potential.range), limit)


def least_convexity(
    value: Callable[[Array], float], gradient: Callable[[Array], Array], at: Array, along: Array
) -> float:
    """Return 2·B_Ψ(y, x) of two points. Divided by ‖y − x‖² it is the strong convexity there."""
    to = at + along
    return 2 * (value(to) - value(at) - float(gradient(at) @ along))


def alternating_point(k: int) -> tuple[Array, Array]:
    """Return the middle of the ℓ1 sphere and a direction along it, in which a squared q-norm is least curved."""
    return np.full(k, 1 / k), 0.1 * np.where(np.arange(k) % 2, 1.0, -1.0) / k


@erratum(
    "talwar-q-norm",
    document=TALWAR,
    place="Fact 3.4",
    printed="Ψ(θ) = ‖θ‖²_{Q,q}/(4(q − 1)) is 1-strongly convex w.r.t. ‖·‖_{Q,q}",
    wrong=(
        "½‖·‖_q² is (q − 1)-strongly convex and no more, so the constant is ½ (and a further 1/e² in ‖·‖_Q, which the "
        "text calls O(1)). Here it is the ℓ1 ball in 64 dimensions, q = log k/(log k − 1), at its middle along ±1."
    ),
    instead="1/(2(q − 1)), times k^{2(1−1/q)} for ‖·‖_Q",
    module="hedgerow.convex.sets.potentials",
)
def q_norm() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the strong convexity of both potentials at one point."""
    k = 64
    q = math.log(k) / (math.log(k) - 1)
    at, along = alternating_point(k)

    def norm(x: Array) -> float:
        return float(np.sum(np.abs(x) ** q) ** (1 / q))

    def value(x: Array) -> float:
        return norm(x) ** 2 / (4 * (q - 1))

    def gradient(x: Array) -> Array:
        return np.asarray(norm(x) ** (2 - q) * np.abs(x) ** (q - 1) / (2 * (q - 1)))

    ours = L1Ball(1.0).potential(k, "q-norm")
    printed = least_convexity(value, gradient, at, along) / norm(along) ** 2
    own = least_convexity(ours.value, ours.gradient, at, along) / ours.norm(along) ** 2
    what = "strong convexity in the norm it is stated for"
    return ErratumFinding(what, printed, 1.0, "at least"), ErratumFinding(what, own, 1.0, "at least")


@erratum(
    "talwar-nuclear-norm",
    document=TALWAR,
    place="§3.2, low-rank matrices",
    printed="Ψ(θ) = 4√(e log(2m))/(2^q(1 + q))·Σ σ_i^{1+q}(θ), q = 1/(2 log(2m)), is 1-strongly convex w.r.t. ‖·‖_nuc",
    wrong=(
        "The root must cover e alone: 4√e·log(2m). As printed the constant at the middle is 2/√log(2m), which is "
        "below 1 from m = 28 on. (The text's max Ψ = O(log m) is true of both.) Here m = 128, with diagonal matrices."
    ),
    instead="the squared q-norm of the singular values",
    module="hedgerow.convex.sets.structured",
    in_the_copy=True,
)
def nuclear_norm() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the strong convexity of both potentials at a diagonal matrix."""
    m = 128
    q = 1 / (2 * math.log(2 * m))
    weight = 4 * math.sqrt(math.e * math.log(2 * m)) / 2**q
    at, along = alternating_point(m)
    printed = least_convexity(
        lambda s: weight / (1 + q) * float(np.sum(s ** (1 + q))), lambda s: weight * s**q, at, along
    ) / float(np.abs(along).sum() ** 2)
    ours = NuclearBall(1.0, (m, m)).potential(m * m)
    matrix_at, matrix_along = np.diag(at).reshape(-1), np.diag(along).reshape(-1)
    own = least_convexity(ours.value, ours.gradient, matrix_at, matrix_along) / ours.norm(matrix_along) ** 2
    what = "strong convexity in the nuclear norm"
    return ErratumFinding(what, printed, 1.0, "at least"), ErratumFinding(what, own, 1.0, "at least")


@erratum(
    "talwar-group-potential",
    document=TALWAR,
    place="§3.2, grouped ℓ1-norm",
    printed="one can show that max Ψ(θ) = O(√log(p/k))",
    wrong=(
        "The rate is O(log(p/k)): a unit vector in one block has Ψ = 1/(Mξ) = e·log(p/k)/(1 + 1/log(p/k)). From p/k = "
        "10³ to 10⁵ the constant in front of the root grows by a third, and it grows without limit. (M is also "
        "printed both as the exponent and as the number of blocks.)"
    ),
    instead="a range of about e·log(p/k)",
    module="hedgerow.convex.sets.structured",
)
def group_potential() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the growth of max Ψ with both rates."""
    few, many = 10**3, 10**5  # groups, of two coordinates each

    def printed(groups: int) -> float:
        logarithm = math.log(groups)
        return math.e * logarithm / (1 + 1 / logarithm) / math.sqrt(logarithm)

    def ours(groups: int) -> float:
        return GroupL1Ball(1.0, 2).potential(2 * groups).range / math.log(groups)

    return (
        ErratumFinding("max Ψ/√log(p/k) at p/k = 10⁵, in units of that at 10³", printed(many) / printed(few), 1.1),
        ErratumFinding("the range over log(p/k) at p/k = 10⁵, in units of that at 10³", ours(many) / ours(few), 1.1),
    )


@erratum(
    "talwar-noisy-rate",
    document=TALWAR,
    place="Corollary 3.6",
    printed="O(√maxΨ·√(T(L²‖C‖₂² + λ_max(Σ)(G_C² + ‖C‖₂²)))/√T)",
    wrong=(
        "The T under the root is carried over from η and does not belong here. As printed the bound does not fall "
        "with T at all."
    ),
    instead="√maxΨ·√(L²‖C‖₂² + λ_max(Σ)(G_C² + ‖C‖₂²))/√T",
    module="hedgerow.erm.solvers.descent",
    in_the_copy=True,
)
def noisy_rate() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the bounds of 400 and of 100 steps."""

    def printed(T: int) -> float:
        return math.sqrt(T * (1.0 + 0.5 * 10)) / math.sqrt(T)

    def ours(T: int) -> float:  # here the noise of a gradient does not grow with T
        return schedule(Terms(1.0, 5.0 / T, math.inf, 1.0, 0.0), T, T).bound

    what = "bound of 400 steps over that of 100"
    return ErratumFinding(what, printed(400) / printed(100), 0.5), ErratumFinding(what, ours(400) / ours(100), 0.5)


@erratum(
    "talwar-strong-convexity",
    document=TALWAR,
    place="Claim A.2, with the definition in §2.2",
    printed="L(θ_t) − L(θ*) ≤ ⟨γ_t, θ_t − θ*⟩ − Δ·B_Ψ(θ*, θ_t)",
    wrong=(
        "By the paper's own definition, −Δα(1 − α)/2·B_Ψ, the last term is Δ/2·B_Ψ. Hence η_t is 2/(Δt) in Theorem "
        "A.1 and 1/(Δt) in its proof. Here f = ½θ² and Ψ = ½θ², which has Δ = 2 by that definition; θ* = 0, θ_t = 1."
    ),
    instead=(
        "(Δ/2)·B_Ψ under that definition; Δ·B_Ψ and 1/(Δt) under the usual one, by which a ridge counts as Δ in "
        "hedgerow.erm.solvers.descent"
    ),
    module=A_PROOF,
)
def strong_convexity() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the difference of both sides of the inequality."""
    at, divergence = 1.0, 0.5
    mixture, alpha = 0.125, 0.5  # f at the middle of 0 and 1
    delta = (alpha * 0.5 - mixture) / (alpha * (1 - alpha) / 2 * divergence)  # where the definition is an equality
    what = "right side less left side"
    return (
        ErratumFinding(what, at * at - delta * divergence - at**2 / 2, 0.0, "at least"),
        ErratumFinding(what, at * at - delta / 2 * divergence - at**2 / 2, 0.0, "at least"),
    )


@erratum(
    "talwar-strongly-convex-logarithm",
    document=TALWAR,
    place="Theorem A.1, and (26)",
    printed="O(L²(G_C² + ‖C‖₂²)·log(n/δ)·log(‖C‖₂nε)/(Δ(nε)²))",
    wrong=(
        "The noise of Algorithm 1 has σ² = 32L²T·log²(T/δ)/(nε)², and σ² stands in (26) as it is: the logarithm must "
        "be squared. For f = (Δ/2)‖θ‖² without a boundary, the excess of the average is a multiple of σ²/T, exactly. "
        "Here n = T = 10⁶ and δ goes from 10⁻⁶ to 10⁻²⁴."
    ),
    instead="log²(n/δ) for that noise; with σ from the analytic Gaussian about log(1/δ), by its own factor",
    module="hedgerow.erm.solvers.mirror_descent",
)
def strongly_convex_logarithm() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the growth of the noise's part of the risk with that of the bound, for a smaller δ."""
    n, epsilon, few, many = 10**6, 1.0, 1e-6, 1e-24
    noise = (math.log(n / many) / math.log(n / few)) ** 2
    printed = math.log(n / many) / math.log(n / few)
    mu = {delta: gaussian_mu(epsilon, delta) for delta in (few, many)}
    euclid = L2Ball(1.0).potential(100)

    def bound(delta: float) -> float:
        return mirror_descent.risk_bound(n, mu[delta], 1.0, euclid, ridge=0.5)

    what = "growth of the noise's part of the risk, over that of the bound"
    return (
        ErratumFinding(what, noise / printed, 1.01),
        ErratumFinding(what, (mu[few] / mu[many]) ** 2 / (bound(many) / bound(few)), 1.01),
    )


# Objective perturbation


@erratum(
    "talwar-objective-perturbation",
    document=TALWAR,
    place="Algorithm 2",
    printed="b ∼ N(0, L²(2 log(1/δ))/(nε)² I): (ε, δ)-differentially private by [KST12]",
    wrong=(
        "A replaced row moves the average gradient by 2L/n, and nothing of ε is left for the Hessian. The claim is "
        "false even if the Hessian is zero: ℓ(θ; d) = dθ, d = ±L, on [−1, 1] has ζ = 0 and releases the sign of "
        "mean(d) + b, whose probabilities are known exactly. Here ε = 1, δ = 10⁻⁶, and the worst of all tables of 100 "
        "rows is taken."
    ),
    instead="σ from the privacy profile of the tilt and the Jacobian, for either kind of neighbours",
    module="hedgerow.privacy.perturbed_objective",
)
def objective_perturbation() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the δ of the sign at ε, for both noise scales."""
    epsilon, delta, lipschitz = 1.0, 1e-6, 1.0
    sums = lipschitz * np.arange(-100, 100, 2)

    def told(sigma: float) -> float:  # σ is the noise on the sum of the rows, whose sign is released
        return float((ndtr((sums + 2 * lipschitz) / sigma) - math.exp(epsilon) * ndtr(sums / sigma)).max())

    printed = lipschitz * math.sqrt(2 * math.log(1 / delta)) / epsilon
    ours = noise_scale(epsilon, delta, 0.0, lipschitz, 1.0, "replace")
    what = "δ at ε of the sign"
    return ErratumFinding(what, told(printed), delta), ErratumFinding(what, told(ours), delta)


# Frank–Wolfe


@erratum(
    "talwar-frank-wolfe-step",
    document=TALWAR,
    place="Algorithm 4, line 5; Algorithm 5, line 4; Theorems 5.2 and 5.6",
    printed="θ_{t+1} = (1 − μ)θ_t + μθ̃_t, μ = 1/(T + 2), and L(θ_T) − min L ≤ 2Γ/(T + 2)",
    wrong=(
        "A constant step leaves (1 − 1/(T + 2))^{T−1} → 1/e of θ_T at the start, however many steps there are. "
        "[Jag13] has 2/(t + 2). Here the loss is ½(θ + 1)² on [−1, 1], the start is 1, Γ = 4, T = 1000, and there is "
        "no noise. Ours is run by the solver at ε = 10⁶."
    ),
    instead="μ_t = 2/(t + 2)",
    module="hedgerow.erm.solvers.frank_wolfe",
    in_the_copy=True,
)
def frank_wolfe_step() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the excess risk after T steps of both lengths."""
    T, theta = 1000, 1.0
    for _ in range(T - 1):
        theta += (-1.0 - theta) / (T + 2)  # the gradient θ + 1 is positive: the vertex is −1
    found = frank_wolfe(
        np.ones((100, 1)), -np.ones(100), loss=losses.Squared(), over=L1Ball(1.0), label_bound=1.0,
        budget=Budget(1e6, 1e-6), iterations=T, seed=0,
    )  # fmt: skip
    limit = 2 * 4 / (T + 2)
    what = "excess risk after T steps, against Theorem 5.6's"
    return ErratumFinding(what, (theta + 1) ** 2 / 2, limit), ErratumFinding(
        what, float(found.theta[0] + 1) ** 2 / 2, limit
    )


@erratum(
    "talwar-frank-wolfe-noise",
    document=TALWAR,
    place="Algorithm 4, line 3, and Theorem 5.4",
    printed="Lap(L₁‖C‖₁√(8T log(1/δ))/(nε)): (ε, δ)-differentially private",
    wrong=(
        "A replaced row moves a score by 2L₁‖C‖₁/n, and a noisy minimum needs twice the sensitivity. So a step loses "
        "up to 4 times what the composition allows it. The demonstration is exact: ℓ(θ; d) = dθ, d = ±1, on [−1, 1], "
        "T = 1000, ε = 20, δ = 10⁻⁶, and θ_T determines every vertex that was picked. (Up to about ε = 8 the slack of "
        "the composition theorem hides the error on this instance.)"
    ),
    instead="Gumbel noise of scale 2Δ/ε₀, which costs ρ = ε₀²/8 per step",
    module="hedgerow.erm.solvers.frank_wolfe",
)
def frank_wolfe_noise() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the δ of all steps at ε, for both noises."""
    epsilon, delta, T = 20.0, 1e-6, 1000
    scale = math.sqrt(8 * T * math.log(1 / delta)) / epsilon  # in rows, for L₁ = ‖C‖₁ = 1

    def picked(gap: float) -> float:
        """Return P[the vertex whose score is larger by the gap has the smaller noisy score], by convolution."""
        u = abs(gap) / scale
        beyond = math.exp(-u) * (1 + u / 2) / 2
        return beyond if gap > 0 else 1 - beyond

    event = Amount.share_of(Budget(epsilon, delta), 1 / T).choice(2.0)  # one row moves each score by 2

    def chosen(gap: float) -> float:
        return 1 / (1 + math.exp(gap / event.scale))

    # The scores of the two vertices are ± the sum of d. One row moves their gap by 4, here from 2 to −2.
    what = "δ of all steps at ε"
    return (
        ErratumFinding(what, binomial_delta(epsilon, T - 1, picked(2.0), picked(-2.0)), delta),
        ErratumFinding(what, binomial_delta(epsilon, T, chosen(2.0), chosen(-2.0)), delta),
    )


@erratum(
    "talwar-frank-wolfe-gaussian",
    document=TALWAR,
    place="Algorithm 5, line 3, and the proof of Theorem B.2",
    printed="σ² = 32L₂T log²(n/δ)/(nε)²",
    wrong=(
        "The square on L₂ is missing: a standard deviation must scale with the loss. The demonstration is exact: ℓ(θ; "
        "d) = dθ, d = ±L₂, on [−1, 1], where each step sees the sign of a noisy sum; L₂ = 1000, n = 9999, T = 100, ε "
        "= 1, δ = 10⁻⁶."
    ),
    instead="σ from the sensitivity 2L₂/n, by the analytic Gaussian",
    module="hedgerow.privacy.allowance",
    in_the_copy=True,
)
def frank_wolfe_gaussian() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the δ of all steps at ε, for both noise scales."""
    epsilon, delta, lipschitz, n, T = 1.0, 1e-6, 1000.0, 9_999, 100
    budget = Budget(epsilon, delta)

    def told(sigma: float, steps: int) -> float:  # the sum of the rows goes from L₂ to −L₂
        return binomial_delta(epsilon, steps, float(ndtr(lipschitz / sigma)), float(ndtr(-lipschitz / sigma)))

    printed = math.sqrt(32 * lipschitz * T) * math.log(n / delta) / epsilon  # times n, for the sum
    ours = Amount(budget, budget.total, whole=True).fine_gaussian(budget.gradient(lipschitz), 1, T).sigma
    what = "δ of all steps at ε"
    return ErratumFinding(what, told(printed, T - 1), delta), ErratumFinding(what, told(ours, T), delta)


@erratum(
    "talwar-quadratic-curvature",
    document=TALWAR,
    place="Remark 5",
    printed="For L(θ) = θXᵀXθ + ⟨b, θ⟩, Γ ≤ max_{a,b ∈ X·C} ‖a − b‖₂²",
    wrong=(
        "Definition 5.1 has a factor 2/γ², so Γ = 2·max‖a − b‖² for this L (and max‖a − b‖² for ½θXᵀXθ). Here X = 1 "
        "on [−1, 1]."
    ),
    instead="Γ = sup ℓ″·⟨x, θ − θ′⟩²",
    module="hedgerow.erm.solvers.frank_wolfe",
)
def quadratic_curvature() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the curvature of two quadratic losses by Definition 5.1."""
    one, two = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    step = 0.5
    three = one + step * (two - one)
    half = float((2 / step**2 * (three**2 / 2 - one**2 / 2 - (three - one) * one)).max())  # of ½θ²
    problem = prepare_problem(
        Arrays(np.ones((2, 1)), np.zeros(2)), loss=losses.Squared(), over=L1Ball(1.0), budget=Budget(1.0, 1e-6),
        row_bound=1.0, norm="linf", label_bound=1.0, expected_rows=None,
    )  # fmt: skip
    return (
        ErratumFinding("the curvature of θ² by Definition 5.1, attained", 2 * half, float((two - one).max()) ** 2),
        ErratumFinding("the curvature of ½(θ − y)² by Definition 5.1, attained", half, curvature(problem)),
    )


@erratum(
    "talwar-lasso-logarithm",
    document=TALWAR,
    place="Corollary 5.7",
    printed="O(log(np/δ)/(nε)^(2/3)), “applying Theorem 5.5”",
    wrong=(
        "Theorem 5.5 has the product log(nk)·√log(1/δ), which log(np) + log(1/δ) does not bound. From np = 1/δ = 10⁶ "
        "to 10²⁴ the theorem's bound grows twice as much as the corollary's, and it grows without limit. Ours, whose "
        "choices are charged in zCDP, is a multiple of the product too."
    ),
    instead="log(np)·√log(1/δ)/(nε)^(2/3)",
    module="hedgerow.erm.rates",
)
def lasso_logarithm() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the growth of Theorem 5.5's bound with that of the corollary, printed and ours."""

    def setting(size: float) -> rates.Setting:
        return rates.Setting(
            rows=1000, features=round(size / 1000), epsilon=1.0, delta=1 / size, vertices=2 * size / 1000
        )

    few, many = setting(1e6), setting(1e24)
    theorem = rates.frank_wolfe(many) / rates.frank_wolfe(few)
    printed = math.log(1e24 / 1e-24) / math.log(1e6 / 1e-6)
    what = "growth of Theorem 5.5's bound, over that of the corollary"
    return ErratumFinding(what, theorem / printed, 1.01), ErratumFinding(
        what, theorem / (rates.lasso(many) / rates.lasso(few)), 1.01
    )


NOTED = (
    NotedErratum(
        TALWAR,
        "Proof of Theorem 4.1",
        "J(θ) has Δ/2·‖θ‖² where Algorithm 2 has ζ/2·‖θ − θ₀‖², which the later lines use.",
    ),
    NotedErratum(
        TALWAR,
        "§5.2, Theorem 5.5",
        "In Γ_L = max C_L, C_L is the Γ_L of one data set. Algorithm 5 is also called A_Noise-FW.",
    ),
    NotedErratum(
        TALWAR,
        "Algorithm 2",
        "The minimum is assumed exact. The cost of a numerical one (Iyengar et al. 2019) is in "
        "hedgerow.erm.solvers.objective_perturbation. This is an omission and not a formula, and has no "
        "demonstration here.",
    ),
    NotedErratum(
        TALWAR,
        "Theorem 5.8",
        "Taken literally it says nothing before p ~ 10¹⁰; hedgerow.research.hard_instance is scaled down.",
    ),
)
