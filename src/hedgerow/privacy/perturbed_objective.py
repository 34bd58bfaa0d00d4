"""Privacy of a minimum whose objective was tilted at random: how much noise it takes, and that an event claims no more.

Papers: Kifer, Smith & Thakurta "Private convex empirical risk minimization and high-dimensional regression"; Iyengar et al.
"Towards practical differentially private convex optimization" (approximate minima); Redberg, Koskela & Wang "Improving the
privacy and practicality of objective perturbation" (the privacy profile).

Symbols: θ̂ = argmin over a convex set of Σ φ(⟨x, θ⟩, y) + (Λ/2)‖θ‖² + ⟨b, θ⟩, b ~ N(0, σ²I); L bounds |φ'|·‖x‖, λ bounds φ''·‖x‖²; s = L/σ;
H_ε(μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), the analytic Gaussian's δ.

θ̂ determines b, so densities change by the Jacobian, a factor of at most 1 + λ/Λ as a row is a rank-one term of the Hessian,
and by the Gaussian's density at b and at b + v, v the change of the row's gradient. A row that comes or goes has v = tx with x
fixed and |t|·‖x‖ ≤ L, whatever θ̂, so that
    loss ≤ log(1 + λ/Λ) + s|N| + s²/2,  N ~ N(0, 1):     δ(ε) ≤ 2·H_{ε − log(1 + λ/Λ)}(s).
A replaced row has v in a rhombus of the plane of x and x', whose diagonals are orthogonal with squares that add up to
(2L)²: δ(ε) ≤ max over φ of 2·H(2s·cos φ) + 2·H(2s·sin φ), each at ε − log(1 + λ/Λ).
A set changes none of it: it is the limit of smooth penalties, which add to the Hessian and are the same for neighbours.
The minimum is known up to a distance g only, and b is drawn on a grid, which is a distance too: noise for sensitivity 2g
is added at the end, and a hundredth of ε and δ pays for it (docs/proofs/erm_objective_perturbation.md).
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # which loads its parts when they are first named

from hedgerow.errors import InvalidInput
from hedgerow.privacy.conversion import gaussian_delta, gaussian_mu
from hedgerow.privacy.events import PerturbedObjective

_SHARE = 0.01  # of ε and δ, for the noise that hides how near the minimum was
_MARGIN = 1e-6  # of ε and δ, for noise on a grid
_TILT_GRID = 2.0**-32  # of σ at most: the density that the proof is about is a continuous one,
_HIDE_GRID = 1e-3  # and of Δ: rounding to it is part of the distance that is hidden


def for_the_tilt(epsilon: float, delta: float) -> tuple[float, float]:
    """The part of (ε, δ) that pays for the exact minimum."""
    return (1 - _SHARE) * (1 - _MARGIN) * epsilon, (1 - _SHARE) * (1 - _MARGIN) * delta


def for_hiding(epsilon: float, delta: float) -> tuple[float, float]:
    """The part of (ε, δ) that pays for hiding how near to it was found."""
    return _SHARE * (1 - _MARGIN) * epsilon, _SHARE * (1 - _MARGIN) * delta


def hiding_mu(epsilon: float, delta: float) -> float:
    """Δ/σ of the noise that hides how near the minimum was: all that its part of ε and δ allows."""
    return gaussian_mu(*for_hiding(epsilon, delta))


def require_private(event: PerturbedObjective, neighbours: str) -> None:
    """Refuse an event that claims less loss than its draws have."""
    lipschitz = event.tilt.sensitivity / (2 if neighbours == "replace" else 1)
    ε, δ = for_the_tilt(event.epsilon, event.delta)
    tilted = privacy_delta(ε, event.curvature, lipschitz, 1.0, event.tilt.sigma, neighbours) <= δ
    ε, δ = for_hiding(event.epsilon, event.delta)
    hidden = gaussian_delta(event.hide.sensitivity / event.hide.sigma, ε) <= δ
    if not (
        event.tilt.grid <= event.tilt.sigma * _TILT_GRID and event.hide.grid <= event.hide.sensitivity * _HIDE_GRID
    ):
        raise InvalidInput(
            f"grids of a perturbed objective must be at most {_TILT_GRID:.3g} of the tilt's sigma and {_HIDE_GRID:g} of the "
            f"distance that is hidden. Found {event.tilt.grid:.4g} and {event.hide.grid:.4g}. Draw on finer grids."
        )
    if not (tilted and hidden):
        raise InvalidInput(
            "epsilon and delta of a perturbed objective must be what its two draws have. Found less, "
            f"{event.epsilon:.4g} and {event.delta:.4g}. Take the noise that noise_scale and hiding_mu give."
        )


def noise_scale(
    epsilon: float, delta: float, smoothness: float, lipschitz: float, weight: float, neighbours: str
) -> float:
    """σ of the tilt: the least for which `privacy_delta` is at most delta, rounded up."""
    left = epsilon - math.log1p(smoothness / weight)
    if left <= 0:
        raise InvalidInput(
            f"weight must be above smoothness / (e^epsilon − 1) = {smoothness / math.expm1(epsilon):.4g}. "
            f"Found {weight:.4g}. Raise it."
        )
    low = high = lipschitz / gaussian_mu(epsilon, delta)
    while privacy_delta(epsilon, smoothness, lipschitz, weight, high, neighbours) > delta:
        high *= 2
    while privacy_delta(epsilon, smoothness, lipschitz, weight, low, neighbours) <= delta:
        low /= 2
    root = scipy.optimize.brentq(
        lambda σ: privacy_delta(epsilon, smoothness, lipschitz, weight, σ, neighbours) - delta, low, high, rtol=1e-12
    )
    return float(root) * (1 + 1e-9)


def privacy_delta(
    epsilon: float, smoothness: float, lipschitz: float, weight: float, sigma: float, neighbours: str
) -> float:
    """The δ at which the exact minimum of the tilted objective is certified (epsilon, δ)-private; at most 1."""
    left, s = epsilon - math.log1p(smoothness / weight), lipschitz / sigma
    if neighbours == "add-remove":
        return min(1.0, _two_sided(s, left))
    angles = np.linspace(0.0, math.pi / 4, 25)
    # both terms grow with their argument, so the ends of an interval bound all angles in it
    largest = [_two_sided(2 * s * math.cos(a), left) for a in angles[:-1]]
    smallest = [_two_sided(2 * s * math.sin(a), left) for a in angles[1:]]
    return min(1.0, max(map(sum, zip(largest, smallest, strict=True))))


def _two_sided(mu: float, epsilon: float) -> float:
    """E max(0, 1 − exp(ε − μ|N| − μ²/2)) for N ~ N(0, 1)."""
    if mu < 1e-12:
        return 0.0 if epsilon >= 0 else -math.expm1(epsilon)
    if epsilon >= mu**2 / 2:
        return 2 * gaussian_delta(mu, epsilon)
    return -math.expm1(epsilon + math.log(2) + float(scipy.special.log_ndtr(-mu)))
