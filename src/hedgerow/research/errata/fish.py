"""Errata of [F], sampling in adaptive data analysis."""

from __future__ import annotations

import math

import numpy as np
import scipy

from hedgerow.convex.sets import Box
from hedgerow.generalise import transfer
from hedgerow.privacy.amplification import inner_epsilon
from hedgerow.privacy.events import DistinctRows, Laplace, RepeatedRows
from hedgerow.research.errata.erratum import A_PROOF, FISH, ErratumFinding, NotedErratum, erratum
from hedgerow.textbook import subsampled


@erratum(
    "fish-linear-amplification",
    document=FISH,
    place="Algorithm 1, ε′, and the proof of Theorem 5",
    printed="ε′ = εn/(4ℓ√(2k log(1/δ))), and a single query is (2ℓε′/n)-private",
    wrong=(
        "log(1 + (ℓ/n)(e^ε′ − 1)) ≤ 2ℓε′/n needs ε′ ≤ 1, but ε′ grows with n, which the theorem only bounds from "
        "below. With Theorem 5's own parameters at α = .1, β = .05, k = 1000, and two hundred times the least n, ε′ "
        "is 9.4. The loss is exact, for a table of zeros against one with a single 1."
    ),
    instead="ε′ = log(1 + (n/ℓ)(e^ε″ − 1)), where ε″ is the cost allowed for a query",
    module="hedgerow.privacy.amplification",
)
def linear_amplification() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the loss of a query with the loss that is allowed for it."""
    alpha, beta, k = 0.1, 0.05, 1000
    epsilon, delta = alpha / 64, alpha * beta / 32
    sample = 2 * math.log(4 * k / beta) / alpha**2
    n = 200 * 4 * math.sqrt(2 * k * math.log(1 / delta)) * math.log(2 * k / beta) / (alpha * epsilon)
    allowed = epsilon / (2 * math.sqrt(2 * k * math.log(1 / delta)))
    printed = epsilon * n / (4 * sample * math.sqrt(2 * k * math.log(1 / delta)))
    ours = inner_epsilon(DistinctRows(math.ceil(sample), math.ceil(n)), allowed)

    # at an answer beyond both means; the row is in the sample with probability ℓ/n
    def loss(inner: float) -> float:
        return math.log1p(sample / n * math.expm1(inner))

    what = "privacy loss of a query, against what k of them may cost"
    return ErratumFinding(what, loss(printed), allowed), ErratumFinding(what, loss(ours), allowed)


@erratum(
    "fish-with-replacement",
    document=FISH,
    place="Proposition 7",
    printed="Sampling ℓ points with replacement before an ε-private P is log(1 + (1 − (1 − 1/n)^ℓ)(e^ε − 1))-private",
    wrong=(
        "A row that is drawn j times moves the sample in j places and costs jε. Here n = ℓ = 2, the tables are {1, 0} "
        "and {0, 0}, and the mean has Laplace noise of scale 1/(ℓε), ε = 1. The ratio of densities above 1 is ((1 + "
        "e)/2)²."
    ),
    instead="ℓ·log(1 + (e^ε − 1)/n)",
    module="hedgerow.privacy.events",
)
def with_replacement() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the loss of a noisy mean of a sample drawn with replacement."""
    n = size = 2
    epsilon = 1.0
    answers = np.linspace(-3.0, 4.0, 1401)
    times = np.arange(size + 1)
    drawn = np.array([math.comb(size, int(j)) * (1 / n) ** j * (1 - 1 / n) ** (size - j) for j in times])
    one = (drawn[:, None] * np.exp(-size * epsilon * np.abs(answers - times[:, None] / size))).sum(axis=0)
    loss = float(np.abs(np.log(one) + size * epsilon * np.abs(answers)).max())
    printed = math.log1p((1 - (1 - 1 / n) ** size) * math.expm1(epsilon))
    what = "privacy loss of the noisy mean"
    return ErratumFinding(what, loss, printed), ErratumFinding(what, loss, RepeatedRows(size, n).loss(epsilon))


@erratum(
    "fish-sample-size",
    document=FISH,
    place="Theorem 5",
    printed="ℓ = 2 log(4k/β)/α²; M is (α, β)-accurate on the distribution",
    wrong=(
        "This ℓ gives (α, β)-accuracy on the sample. Theorem 4, by which the claim is proved, needs (α/8, αβ/16). So "
        "the proof lacks a precondition; the claim itself is not refuted. The demonstration computes, at α = .1, β = "
        ".05, k = 1000 and for a q that is true of half of the rows, the probability that the mean of the subsample "
        "alone is off by more than α/8."
    ),
    instead="ℓ = 2 log(4k/β′)/α′² at α′ = α/8, β′ = αβ/16: about ninety times as many",
    module="hedgerow.textbook.subsampled",
)
def sample_size() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the probability that the mean of a subsample is off by more than α/8."""
    alpha, beta, k = 0.1, 0.05, 1000
    inner, failure = alpha / 8, alpha * beta / 16

    def outside(size: float) -> float:
        m = math.ceil(size)
        low = scipy.stats.binom.cdf(math.ceil(m * (0.5 - inner)) - 1, m, 0.5)
        return float(low + scipy.stats.binom.sf(math.floor(m * (0.5 + inner)), m, 0.5))

    what = "probability that one query's subsample is off by more than α/8, against αβ/16"
    return (
        ErratumFinding(what, outside(2 * math.log(4 * k / beta) / alpha**2), failure),
        ErratumFinding(what, outside(subsampled.sample_size(inner, failure, k)), failure),
    )


@erratum(
    "fish-laplace-tail",
    document=FISH,
    place="Proof of Theorem 5, part 2, the least ε′",
    printed="P[|a_q − q(S_ℓ)| ≥ α/2] ≤ e^(−αε′ℓ/2) … ≤ β/(2k) provided ε′ ≥ log(2k/β)/(ℓα)",
    wrong=(
        "The exponent has a ½ that the condition lacks: ε′ must be twice as large, and n with it. Here α = .1, β = "
        ".05, k = 1000, and the probability is that of Laplace noise of scale 1/(ℓε′) at the least ε′."
    ),
    instead="ε′ ≥ 2 log(2k/β)/(ℓα), and 8 in place of the 4 in the condition on n",
    module="hedgerow.textbook.subsampled",
)
def laplace_tail() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the probability that the noise alone exceeds its half of α, at the least ε′ and in our plan."""
    alpha, beta, k, n = 0.1, 0.05, 1000, 10**8
    allowed = beta / (2 * k)
    plan = subsampled.plan(n, alpha=alpha, beta=beta, queries=k)
    noise = plan.event.inner
    assert isinstance(noise, Laplace)
    left = alpha - noise.grid - subsampled.sampling_error(int(plan.scale), allowed, n)  # what the sample leaves of α
    steps = math.floor(left * plan.scale / noise.grid)
    what = "probability that the noise of a query exceeds its part of α"
    return (
        ErratumFinding(what, math.exp(-math.log(2 * k / beta) / 2), allowed),
        ErratumFinding(what, math.exp(-steps * noise.grid / noise.scale), allowed),
    )


@erratum(
    "fish-step-above-half",
    document=FISH,
    place="Proof of Theorem 21 (and of Theorem 14), the sum over t",
    printed="… + α′√d·E‖x_t − x*‖² is taken into (1 + α′√d)·E‖x_t − x*‖²/(2η_t), with η_t = 2/(Ht)",
    wrong=(
        "α′√d·v ≤ α′√d·v/(2η_t) needs η_t ≤ ½, which 2/(Ht) is only from t = 4/H on, and D/(G√t) from t = 4D²/G² on. "
        "Here H = 1, t = 1, α′√d = 1/T for T = 1, and v = ‖x_t − x*‖² = 1."
    ),
    instead=(
        "α′√d·v itself in the sum. An unbiased answer has no α′ and needs no such step: "
        "hedgerow.textbook.descent_by_queries"
    ),
    module=A_PROOF,
)
def step_above_half() -> tuple[ErratumFinding, ErratumFinding]:
    """Compare the term with its bound in the proof, at the first step and at the first step that is allowed."""
    H, v, bias = 1.0, 1.0, 1.0

    def replaced(t: float) -> float:
        return bias * v / (2 * (2 / (H * t)))

    what = "α′√d·‖x_t − x*‖², against what the proof puts in its place"
    return ErratumFinding(what, bias * v, replaced(1)), ErratumFinding(what, bias * v, replaced(4 / H))


@erratum(
    "fish-no-projection",
    document=FISH,
    place="Algorithm 4, the update",
    printed="x_t := x_{t−1} − η∇̃L(S, x_{t−1})",
    wrong=(
        "The projection onto Θ (Π), which the proofs of Theorems 14 and 21 use, is missing. Without it iterates leave "
        "Θ, where nothing is known about the gradient. Here L(x) = x on Θ = [0, 1], η_t = D/(G√t) with D = G = 1, "
        "and there are a hundred steps from 1."
    ),
    instead="x_t := Π_Θ(x_{t−1} − η_t∇̃L)",
    module="hedgerow.textbook.descent_by_queries",
)
def no_projection() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the distance of the returned average from Θ, with and without projection."""
    over = Box(0.0, 1.0)

    def average(projected: bool) -> float:
        x, total = np.array([1.0]), 0.0
        for t in range(1, 101):
            x = x - 1.0 / math.sqrt(t)
            x = over.project(x) if projected else x
            total += float(x[0])
        return total / 100

    def distance(x: float) -> float:
        return abs(x - float(over.project(np.array([x]))[0]))

    what = "distance of the returned average from Θ"
    return ErratumFinding(what, distance(average(False)), 0.0), ErratumFinding(what, distance(average(True)), 0.0)


@erratum(
    "fish-conditioned-transfer",
    document=FISH,
    place="Proposition 20 (and Theorem 8)",
    printed="Consider any possibility for the simulation … up to the first t − 1 rounds … E_{t−1}[|q_i(D) − a_i|] ≤ α",
    wrong=(
        "Given a history, S is no longer i.i.d., and Lemma 18 does not apply. Here the mechanism publishes S in its "
        "first answer with probability δ = α/4, and otherwise always answers ½. It is (0, α/4)-private. After a "
        "publication the analyst asks for the share of S, which is answered exactly; otherwise the analyst asks for a "
        "constant ½. α = .1, and ten rows are drawn from a million equally likely values."
    ),
    instead="the same without the conditioning: E|q(D) − a| ≤ E|q(S) − a| + e^ε − 1 + δ",
    module="hedgerow.generalise.transfer",
)
def conditioned_transfer() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute the expected error given a publication of the sample, and over all histories."""
    alpha, rows, cells = 0.1, 10, 10**6
    published = 1 - rows / cells  # |q(D) − a|: at most n of the cells are in S, and q(S) = a = 1
    return (
        ErratumFinding("E|q(D) − a| given that S was published", published, alpha),
        ErratumFinding(
            "E|q(D) − a| over all histories", alpha / 4 * published, transfer.in_expectation(0.0, alpha / 4, alpha / 2)
        ),
    )


@erratum(
    "fish-absolute-value",
    document=FISH,
    place="Proofs of Theorem 10, inequality (3), and of Proposition 20",
    printed="Γ = E|q*(S) − q*(D)| ≤ e^{2ε} − 1 + Tδ, by Lemma 18; n ≥ 1024 log(k/β)/α²",
    wrong=(
        "Lemma 18 bounds |E[q(D) − q(S)]|, and |E[X]| is not E|X|. A mechanism that says nothing is ε-private for "
        "every ε, and any query asked of it has E|q(S) − q(D)| > 0. Here ε = .001, δ = 0, k = T = 1, n = 1000, and q "
        "is true of a row with probability ½."
    ),
    instead=(
        "monitors that choose among q and 1 − q by the signed q(S) − q(D), as those of Bassily et al. do. Theorem 10 "
        "then needs n ≥ 1024 log(2k/β)/α²; the bound of Proposition 20 stands"
    ),
    module="hedgerow.generalise.transfer",
)
def absolute_value() -> tuple[ErratumFinding, ErratumFinding]:
    """Compute E|q*(S) − q*(D)|, and the expected gap of a monitor that chooses by sign."""
    epsilon, n = 0.001, 1000
    hits = np.arange(n + 1)
    law = scipy.stats.binom.pmf(hits, n, 0.5)
    gaps = hits / n - 0.5
    # among q and 1 − q the exponential mechanism takes q with probability ∝ exp(εn·gap/2)
    chosen = gaps * np.tanh(epsilon * n * gaps / 2)
    limit = math.expm1(2 * epsilon)
    return (
        ErratumFinding("E|q*(S) − q*(D)| of the only query", float(law @ np.abs(gaps)), limit),
        ErratumFinding(
            "E of the gap of the query or its negation that the monitor chooses", float(law @ chosen), limit
        ),
    )


NOTED = (
    NotedErratum(
        FISH,
        "Proof of Theorem 5, part 2",
        "|q(S_ℓ) + q(S)| should be a difference; “is ε-private” should be (ε, δ)-private.",
    ),
    NotedErratum(
        FISH,
        "Proposition 13",
        "The average of ℓ answers has the expectation i/n + α(1 − 2i/n), so its Hoeffding bound is around that "
        "value. Stopping at any time needs a bound for all numbers of answers at once.",
    ),
    NotedErratum(
        FISH,
        "Corollaries 15 and 16",
        "Choosing the best run by the exponential mechanism needs a bounded loss (at most D·G suffices), and "
        "scores of subsamples. There is no demonstration, because this is a missing assumption and not a formula.",
    ),
)
