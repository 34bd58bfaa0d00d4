"""Errata of [U], private multiplicative weights for convex minimization."""

from __future__ import annotations

import math

import numpy as np

from hedgerow import losses
from hedgerow._types import Array
from hedgerow.convex.solver.public_minimum import Minimum
from hedgerow.erm import rates
from hedgerow.privacy.budget import Budget
from hedgerow.research.errata.erratum import ULLMAN, ErratumFinding, NotedErratum, erratum
from hedgerow.research.errata.exact import randomized_response_delta
from hedgerow.textbook import bounds, convex_pmw
from hedgerow.textbook.multiplicative_weights import normalize
from hedgerow.textbook.oracles import OutputPerturbationOracle
from hedgerow.universe.universe import Universe


@erratum(
    "ullman-update-sign",
    document=ULLMAN,
    place="Figure 3, the line before last",
    printed="D̂ᵗ⁺¹(x) ∝ exp(η·uᵗ(x))·D̂ᵗ(x)",
    wrong=(
        "The sign is wrong. By Claim 3.5 ⟨u, D̂ − D⟩ is positive, so D̂ has too much mass where u is large, and the "
        "printed update adds to it. Claim 3.7 bounds the updates by T = 64S²log|X|/α². Here the loss is ½(θ − x)² on "
        "{−1, 0, 1}, S = 4, α = .8, all data are at 1, the oracle is exact, and the same question is asked until its "
        "error is below α/2."
    ),
    instead="exp(−η·u)",
    module="hedgerow.textbook.convex_pmw",
    in_the_copy=True,
)
def update_sign() -> tuple[ErratumFinding, ErratumFinding]:
    """Count the updates until the error is small, with the printed sign and with ours."""
    alpha, S = 0.8, 4.0
    risk = losses.Squared(target="x", features=()).on(Universe.from_sizes({"x": 3}))  # θ is the intercept
    x, data = np.asarray(risk.label()).reshape(-1), np.array([0.0, 0.0, 1.0])
    config = convex_pmw.configure(
        Budget(1.0, 1e-6), cells=3, rows=1e9, queries=1, beta=0.1, scale_S=S, alpha=alpha, step="paper",
        oracle=OutputPerturbationOracle(2.0, 1.0, 1, S),
    )  # fmt: skip
    T = convex_pmw.update_bound(alpha, 3, S, "paper")

    def updates(sign: float) -> int:
        log_w = np.zeros(3)
        for made in range(T + 1):
            believed = np.array([normalize(log_w) @ x])  # θ̂
            if float(believed[0] - data @ x) ** 2 / 2 < alpha / 2:
                return made
            log_w = log_w + sign * convex_pmw.log_factor(config, risk, Minimum(believed, 0.0, 0.0), x[2:]).reshape(-1)
        return T + 1

    what = "updates until the error is below α/2 (it was stopped after T + 1)"
    return ErratumFinding(what, updates(-1.0), T), ErratumFinding(
        what, updates(1.0), T
    )  # the printed update has the opposite sign


@erratum(
    "ullman-step-without-scale",
    document=ULLMAN,
    place="Figure 3, η",
    printed="η = √(log|X| / T)",
    wrong=(
        "The factor 1/S is missing. Lemma 3.4 promises an average regret of at most 2S√(log|X|/T) for every u in [−S, "
        "S]^X. Here there are two cells, T = S = 100, and u is S on the cell that D̂ favors."
    ),
    instead="η = √(log|X| / T) / S",
    module="hedgerow.textbook.convex_pmw",
)
def step_without_scale() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the average regret of both steps with the bound of Lemma 3.4."""
    T, S = 100, 100.0
    alpha = 8 * S * math.sqrt(math.log(2) / T)  # for which 64S²log|X|/α² is T

    def regret(eta: float) -> float:
        """Return the average regret against the best cell, for this step size."""
        log_w, total, suffered = np.zeros(2), np.zeros(2), 0.0
        for _ in range(T):
            believed = normalize(log_w)
            u = np.array([S, -S]) if believed[0] >= believed[1] else np.array([-S, S])
            suffered += float(u @ believed)
            total += u
            log_w = log_w - eta * u
        return (suffered - float(total.min())) / T

    limit = 2 * S * math.sqrt(math.log(2) / T)
    ours = convex_pmw.step_size(alpha, S, "paper")
    what = "average regret, against Lemma 3.4's bound"
    return ErratumFinding(what, regret(math.sqrt(math.log(2) / T)), limit), ErratumFinding(what, regret(ours), limit)


@erratum(
    "ullman-any-subgradient",
    document=ULLMAN,
    place="§1.1, after the list of restrictions",
    printed=(
        "the assumption that ℓ is differentiable is unnecessary and ∇ℓ can be replaced with an arbitrary "
        "subgradient of ℓ"
    ),
    wrong=(
        "Claim 3.5, ⟨u, D̂ − D⟩ ≥ ℓ_D(θ̂) − ℓ_D(θ), needs ⟨u, D̂⟩ ≥ 0, which holds for some subgradients at θ̂ and "
        "not for others. Here the loss is |θ − x| on {−1, 0, 1}, D̂ = (.05, .9, .05), all data are at 1, and θ = 1. "
        "With the subgradient −1 at the kink, an error of 1 gives a progress of .1. This can happen to every loss "
        "with kinks."
    ),
    instead="the one-sided directional derivative u(x) = ℓ′_x(θ̂; θ − θ̂)",
    module="hedgerow.convex.bound_loss",
)
def any_subgradient() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the progress of an update with the error, for a subgradient and for the directional derivative."""
    risk = losses.Absolute(target="x", features=()).on(Universe.from_sizes({"x": 3}))  # θ is the intercept
    believed, data = np.array([0.05, 0.9, 0.05]), np.array([0.0, 0.0, 1.0])
    label = np.asarray(risk.label()).reshape(-1)  # −1, 0, 1
    middle, top = label[1:2], label[2:3]  # θ̂, the median of D̂, and θ
    ours = risk.directional(middle, top).reshape(-1)
    subgradient = np.sign(middle - label)
    subgradient[1] = -1.0  # one of the subgradients of |θ − x| at θ = x
    printed = subgradient * (top - middle)

    def progress(u: Array) -> float:
        return float(u @ (believed - data))

    error = float(data @ np.abs(middle - label))
    what = "progress ⟨u, D̂ − D⟩, against the error ℓ_D(θ̂) − ℓ_D(θ)"
    return ErratumFinding(what, progress(printed), error, "at least"), ErratumFinding(
        what, progress(ours), error, "at least"
    )


@erratum(
    "ullman-oracle-epsilon",
    document=ULLMAN,
    place="Figure 3, ε₀, and the end of the proof of Theorem 3.9",
    printed="ε₀ = ε/√(8T log(4/δ)), δ₀ = δ/(4T): the calls of A′ together are (ε/2, δ/2)-differentially private",
    wrong=(
        "By the paper's own Theorem 3.10 the calls compose to ε/2 + ε²/(4 log(4/δ)), which is more than the half that "
        "is left for them: ε₀ is twice what the theorem's corollary requires at (ε/2, δ/2). For large ε the claim "
        "itself is false, and exactly so: T = 1000 calls of an (ε₀, δ₀)-private randomized response at ε = 30, δ = "
        "10⁻⁶. (Up to ε = 10 the slack of the theorem hides the error.)"
    ),
    instead="the available ρ is divided among the calls",
    module="hedgerow.privacy.budget",
)
def oracle_epsilon() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the δ of all oracle calls at ε/2."""
    epsilon, delta, T = 30.0, 1e-6, 1000
    printed = epsilon / math.sqrt(8 * T * math.log(4 / delta))
    ours = math.sqrt(2 * Budget(epsilon / 2, delta / 2).total / T)  # an ε₀-private call costs ρ = ε₀²/2 at most
    what = "δ of all calls at ε/2, against δ/2"
    return (
        ErratumFinding(what, randomized_response_delta(epsilon / 2, printed, T, delta / (4 * T)), delta / 2),
        ErratumFinding(what, randomized_response_delta(epsilon / 2, ours, T), delta / 2),
    )


@erratum(
    "ullman-sensitivity",
    document=ULLMAN,
    place="Figure 3, the query qʲ (and §3.1, before Figure 2)",
    printed="Let qʲ be the (3/n)-sensitive query qʲ(D) = err_ℓ(D, D̂ᵗ)",
    wrong=(
        "The factor S, which §3.4.2 has, is missing: 3S/n. Even that is larger than needed by half: err is a supremum "
        "of averages of terms in [−S, S], so its sensitivity is 2S/n, and this is attained. Here ℓ_x(θ) = xθ on [−1, "
        "1], x = ±1, S = 2, θ̂ = 1, and one row changes from −1 to +1 in a table with as many +1 as −1."
    ),
    instead="2S/n if a row is replaced, S/n if one is added or removed",
    module="hedgerow.privacy.budget",
)
def sensitivity() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the most by which one row moves n·err."""
    n, S = 100, 2.0

    def error(positive: int) -> float:
        mean = (2 * positive - n) / n
        return mean + abs(mean)  # ℓ_D(1) − min ℓ_D

    moved = n * abs(error(n // 2 + 1) - error(n // 2))
    what = "how far one row moves n·err"
    return ErratumFinding(what, moved, 3.0), ErratumFinding(what, moved, Budget(1.0, 1e-6).bounded_sum(S))


@erratum(
    "ullman-histogram-distance",
    document=ULLMAN,
    place="§2.1, after Definition 2.1",
    printed="D ∼ D′ implies that their histograms satisfy ‖D − D′‖₁ ≤ 1/n",
    wrong="A row that is replaced leaves one cell and enters another, so the distance is 2/n.",
    instead="2/n",
    module="hedgerow.privacy.budget",
)
def histogram_distance() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the ℓ1 distance of two histograms that differ in one row."""
    n = 10
    one, other = np.array([n, 0]) / n, np.array([n - 1, 1]) / n
    moved = n * float(np.abs(one - other).sum())
    what = "n·‖D − D′‖₁ of two tables that differ in one row"
    return ErratumFinding(what, moved, 1.0), ErratumFinding(what, moved, Budget(1.0, 1e-6).marginal_l1())


@erratum(
    "ullman-rows-without-scale",
    document=ULLMAN,
    place="Claim 3.2",
    printed="n ≥ max{n′, 512·√(T·log(4/δ))·log(8k/β)/(εα)}",
    wrong=(
        "The factor S that Theorems 3.1 and 3.8 have is missing. The claim follows from Theorem 3.1 at (ε/2, δ/2, "
        "β/2), which requires S times as many rows. Here S = 8, α = 1/2, k = 1000, |X| = 1024."
    ),
    instead="Theorem 3.1 with its S",
    module="hedgerow.textbook.bounds",
)
def rows_without_scale() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the rows of the claim with those of Theorem 3.1."""
    S, alpha, beta, epsilon, delta, k = 8.0, 0.5, 0.1, 1.0, 1e-6, 1000
    T = convex_pmw.update_bound(alpha, 1024, S, "paper")
    claimed = 512 * math.sqrt(T * math.log(4 / delta)) * math.log(8 * k / beta) / (epsilon * alpha)
    needed = 256 * S * math.sqrt(T * math.log(2 / (delta / 2))) * math.log(4 * k / (beta / 2)) / (epsilon / 2 * alpha)
    ours = bounds.threshold_game_rows(alpha, beta / 2, epsilon / 2, delta / 2, k, T, S)
    what = "rows, against Theorem 3.1's"
    return ErratumFinding(what, claimed, needed, "at least"), ErratumFinding(what, ours, needed, "at least")


@erratum(
    "ullman-strongly-convex-rows",
    document=ULLMAN,
    place="Theorem 4.5",
    printed="n = O(√d/(√σ α₀ ε₀))",
    wrong=(
        "The root must include α₀: √d/(√(σα₀) ε₀), as in Table 1. Theorem 4.6, √d/(√σ α^(3/2)), follows from that "
        "with 1/ε₀ ~ 1/α, and does not follow from the printed formula. The demonstration shows the growth of the "
        "rows if α is divided by 4: Theorem 4.6 says that they grow by 8."
    ),
    instead="the rate of strongly convex losses, L²G²/(Δ(εn)²)",
    module="hedgerow.erm.rates",
    in_the_copy=True,
)
def strongly_convex_rows() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the growth of the rows for a smaller α with that of Theorem 4.6."""

    def risk(rows: int) -> float:
        return rates.strongly_convex(rates.Setting(rows, 10, 1.0, 1e-6, strong_convexity=0.5))

    power = -math.log(4) / math.log(risk(40_000) / risk(10_000))  # risk ∝ n^(−1/power)
    what = "n(α/4)/n(α) by Theorem 3.8, where 1/ε₀ grows by 4; against Theorem 4.6's"
    return ErratumFinding(what, 4 * 4.0, 8.0), ErratumFinding(what, 4 * 4.0**power, 8.0)


NOTED = (
    NotedErratum(
        ULLMAN,
        "Theorem 3.8",
        "√log|X|·log(4/δ) is more than Claim 3.2's T gives, √(log|X|·log(4/δ)). The statement is true, but larger "
        "than needed.",
    ),
    NotedErratum(ULLMAN, "§3.4.2", "ℓ(θ, x) ∈ [b_x, S] should read [b_x, b_x + S]: an interval of width S."),
)
