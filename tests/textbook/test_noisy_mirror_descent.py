"""Corollary 3.6 and Theorem A.1: noisy mirror descent converges as it says, for any potential and any covariance.

Runs are seeded. Every mean is over enough runs that its standard error, times five, is inside the margin to the bound.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow.convex.sets import Box, GroupL1Ball, L1Ball, L2Ball, NuclearBall, Simplex
from hedgerow.errors import InvalidInput
from hedgerow.textbook import noisy_mirror_descent as noisy

P = 12
POTENTIALS = {
    "euclidean": L2Ball(1.0).potential(P),
    "box": Box(-0.3, 0.3).potential(P),
    "entropy": Simplex(1.0).potential(P),
    "hyperbolic": L1Ball(1.0).potential(P),
    "q-norm": L1Ball(1.0).potential(P, "q-norm"),
    "groups": GroupL1Ball(1.0, 3).potential(P),
    "nuclear": NuclearBall(1.0, (3, 4)).potential(P),
}
RNG = np.random.default_rng(5)
ROOT = RNG.normal(size=(P, P)) / math.sqrt(P)
COVARIANCES = {
    "isotropic": np.eye(P),
    "one coordinate": np.diag([1.0, *[0.0] * (P - 1)]),
    "correlated": ROOT @ ROOT.T,
    "common": np.ones((P, P)),
}


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("name", POTENTIALS)
def test_the_noise_of_a_gradient_is_at_most_what_is_stated(name, covariance) -> None:
    potential, Σ = POTENTIALS[name], COVARIANCES[covariance]
    b = np.random.default_rng(1).multivariate_normal(np.zeros(P), Σ, size=1_000, method="eigh")
    squares = np.array([potential.dual_norm(one) ** 2 for one in b])
    stated = noisy.noise_in_dual_norm(potential, Σ)
    assert squares.mean() - 5 * squares.std() / math.sqrt(squares.size) <= stated


def test_noise_along_one_direction_costs_less_than_noise_in_all() -> None:
    one = np.diag([1.0, *[0.0] * (P - 1)])
    euclid = POTENTIALS["euclidean"]
    assert noisy.noise_in_dual_norm(euclid, one) == pytest.approx(noisy.noise_in_dual_norm(euclid, np.eye(P)) / P)
    scaled = np.diag(np.linspace(0.1, 1.0, P))  # in the ℓ1 norm the largest variance counts
    assert noisy.noise_in_dual_norm(POTENTIALS["entropy"], scaled) == noisy.noise_in_dual_norm(
        POTENTIALS["entropy"], np.eye(P)
    )


@pytest.mark.parametrize("covariance", ["isotropic", "correlated"])
@pytest.mark.parametrize("name", POTENTIALS)
def test_corollary_3_6_bounds_the_excess_for_every_norm_and_covariance(name, covariance) -> None:
    """f is linear with slope g, the hardest convex function: its minimum is at the boundary."""
    potential, Σ = POTENTIALS[name], 0.25 * COVARIANCES[covariance]
    g = np.random.default_rng(2).normal(size=P)
    g /= potential.dual_norm(g)
    V, T = noisy.noise_in_dual_norm(potential, Σ), 100
    least = float(g @ potential.minimizer(-1e5 * g))  # with so long a step, the potential hardly matters
    root = np.linalg.cholesky(Σ + 1e-12 * np.eye(P))

    def run(seed: int) -> float:
        rng = np.random.default_rng(seed)
        gradient = lambda _: g + root @ rng.normal(size=P)  # noqa: E731
        return float(g @ noisy.noisy_descent(potential, gradient, slope=1.0, noise=V, steps=T)) - least

    excess = [run(seed) for seed in range(10)]
    bound = noisy.noisy_descent_bound(potential, 1.0, V, T)
    assert 0 < np.mean(excess) + 5 * np.std(excess) / math.sqrt(10) <= bound


@pytest.mark.parametrize("name", ["q-norm", "groups", "nuclear", "euclidean"])
def test_theorem_a_1_bounds_the_excess_relative_to_every_potential(name) -> None:
    """f = ⟨g, ·⟩ + Δ·Ψ is Δ-strongly convex relative to Ψ by definition; its minimum is known from the potential."""
    potential, Δ, T = POTENTIALS[name], 0.5, 120
    g = np.random.default_rng(3).normal(size=P)
    g *= 0.2 / potential.dual_norm(g)
    steepest = max(
        potential.dual_norm(potential.gradient(potential.minimizer(1e5 * v)))
        for v in np.random.default_rng(4).normal(size=(200, P))
    )  # ∇Ψ is longest on the boundary; a potential ½c‖·‖_q² has the same length everywhere there, up to the norm's shape
    slope = 0.2 + 1.5 * Δ * steepest
    best = potential.minimizer(-g / Δ)
    f = lambda θ: float(g @ θ) + Δ * potential.value(θ)  # noqa: E731
    V = noisy.noise_in_dual_norm(potential, 0.04 * np.eye(P))

    def run(seed: int) -> float:
        rng = np.random.default_rng(seed)
        gradient = lambda θ: g + Δ * potential.gradient(θ) + 0.2 * rng.normal(size=P)  # noqa: E731
        return f(noisy.strongly_convex_descent(potential, gradient, strong_convexity=Δ, steps=T)) - f(best)

    excess = [run(seed) for seed in range(5)]
    assert -1e-9 < np.mean(excess) <= noisy.strongly_convex_bound(Δ, slope, V, T)


def test_strongly_convex_descent_gains_a_factor_of_four_from_four_times_the_steps() -> None:
    bounds = [noisy.strongly_convex_bound(0.5, 1.0, 2.0, T) for T in (999, 3999)]
    assert bounds[0] / bounds[1] == pytest.approx(4.0)
    even = [noisy.noisy_descent_bound(POTENTIALS["entropy"], 1.0, 2.0, T) for T in (1000, 4000)]
    assert even[0] / even[1] == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [np.eye(P - 1), -np.eye(P), np.full((P, P), math.nan), np.triu(np.ones((P, P)))])
def test_a_covariance_that_is_none_is_refused(wrong) -> None:
    with pytest.raises(InvalidInput, match="covariance"):
        noisy.noise_in_dual_norm(POTENTIALS["euclidean"], wrong)


def test_slopes_and_steps_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="slope"):
        noisy.noisy_descent_bound(POTENTIALS["entropy"], -1.0, 1.0, 10)
    with pytest.raises(InvalidInput, match="strong_convexity"):
        noisy.strongly_convex_bound(0.0, 1.0, 1.0, 10)
    with pytest.raises(InvalidInput, match="steps"):
        noisy.noisy_descent_bound(POTENTIALS["entropy"], 1.0, 1.0, 0)
