"""Table 1 of the geometry paper: the growth of the risk of private empirical risk minimization, row by row.

Paper: Talwar, Thakurta & Zhang, *Private Empirical Risk Minimization Beyond the Worst Case: The Effect of the
Constraint Set Geometry*, Table 1 with Theorems 3.2, 4.1, 5.5, 5.8, A.1 and B.2. [BST14] is Bassily, Smith & Thakurta,
[CMS11] Chaudhuri, Monteleoni & Sarwate.

Symbols: n rows, p features, k vertices of C, L the Lipschitz constant (ℓ2, or ℓ1 in the last rows), R the radius of C
in the same norm, λ the smoothness, Γ the curvature constant, Δ the strong convexity, G_C the Gaussian width.

These are orders of growth. Constants are dropped, as in the paper, and δ enters as √ln(1/δ) if the theorem has it. Use
them to compare methods and to plot slopes. The bound of one run, with constants, is in the result of its solver.

Differs: the printed rows set L = R = 1 and hide δ; here they scale as the theorems do. Lower bounds take ε as in the
text, a constant of about 0.1. The log(n/δ) of the theorems, from their composition of T steps, is √ln(1/δ) here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hedgerow._checks import positive
from hedgerow.errors import InvalidInput


@dataclass(frozen=True)
class Setting:
    """The public quantities on which the bounds of the table depend."""

    rows: int
    features: int
    epsilon: float
    delta: float
    vertices: float = math.inf
    lipschitz: float = 1.0
    radius: float = 1.0
    smoothness: float = 1.0
    curvature: float | None = None  # Γ; by default λ·R²
    strong_convexity: float | None = None
    width: float | None = None  # G_C; by default R·√p, or R·√ln k for few vertices
    potential_range: float | None = None  # maxΨ − minΨ of a Ψ that suits C; by default ln k, if there are k vertices

    def __post_init__(self) -> None:
        for name in ("rows", "features", "epsilon", "lipschitz", "radius", "smoothness"):
            positive(name.capitalize(), getattr(self, name), "Give a positive number.")
        for name in ("curvature", "strong_convexity", "width", "potential_range"):
            if getattr(self, name) is not None:
                positive(name.replace("_", " ").capitalize(), getattr(self, name), "Give a positive number or None.")
        if not 0 < self.delta < 1:
            raise InvalidInput(f"delta must be above 0 and below 1. Found {self.delta!r}. The table is for delta > 0.")
        if not self.vertices >= 2:
            raise InvalidInput(
                f"vertices must be at least 2. Found {self.vertices!r}. Leave it out where C has no list."
            )

    @property
    def _tail(self) -> float:
        """√ln(1/δ)."""
        return math.sqrt(math.log(1 / self.delta))

    @property
    def _spread(self) -> float:
        """G_C/R: the width if given, else √p, or √log k for a polytope of few vertices."""
        if self.width is not None:
            return self.width / self.radius
        return min(
            math.sqrt(self.features), math.sqrt(math.log(self.vertices)) if self.vertices < math.inf else math.inf
        )

    @property
    def _curvature(self) -> float:
        """Γ."""
        return self.smoothness * self.radius**2 if self.curvature is None else self.curvature


def noisy_gradient_descent(s: Setting) -> float:
    """Return the upper bound of [BST14]: L·R·√p/(εn)."""
    return s.lipschitz * s.radius * math.sqrt(s.features) * s._tail / (s.epsilon * s.rows)


def lipschitz_lower(s: Setting) -> float:
    """Return the lower bound of [BST14]: no private algorithm does better than min(1, √p/n)·L·R on the ℓ2 ball."""
    return s.lipschitz * s.radius * min(1.0, math.sqrt(s.features) / s.rows)


def mirror_descent(s: Setting) -> float:
    """Return the upper bound of Theorem 3.2: L·min(R·√p, G_C·√(range of Ψ))/(εn).

    R·√p is the Euclidean potential's. By default G_C is R·√ln k and the range ln k, for k vertices. A width alone does
    not replace R·√p, because the theorem needs a potential with it: give ``potential_range`` too.
    """
    spread = s.radius * math.sqrt(s.features)
    logarithm = math.log(s.vertices) if s.vertices < math.inf else math.inf
    span = logarithm if s.potential_range is None else s.potential_range
    width = s.radius * math.sqrt(logarithm) if s.width is None else s.width
    return s.lipschitz * min(spread, width * math.sqrt(span)) * s._tail / (s.epsilon * s.rows)


def strongly_convex(s: Setting) -> float:
    """Return the upper bound of Theorem A.1: L²·(G_C² + R²)/(Δ(εn)²), Δ the strong convexity in the norm of C."""
    if s.strong_convexity is None:
        raise InvalidInput("strong_convexity must be given for this bound. Found None. State it, or use another row.")
    spread = (s._spread**2 + 1) * s.radius**2
    return s.lipschitz**2 * spread * s._tail**2 / (s.strong_convexity * (s.epsilon * s.rows) ** 2)


def objective_perturbation_earlier(s: Setting) -> float:
    """Return the upper bound of [CMS11]: (L·R·√p + λR²)/(εn)."""
    noise = s.lipschitz * s.radius * math.sqrt(s.features) * s._tail
    return (noise + s.smoothness * s.radius**2) / (s.epsilon * s.rows)


def objective_perturbation(s: Setting) -> float:
    """Return the upper bound of Theorem 4.1: (L·G_C + λR²)/(εn)."""
    noise = s.lipschitz * s._spread * s.radius * s._tail
    return (noise + s.smoothness * s.radius**2) / (s.epsilon * s.rows)


def frank_wolfe_smooth(s: Setting) -> float:
    """Return the upper bound of Theorem B.2: Γ^(1/3)·(L·G_C)^(2/3)/(εn)^(2/3), Γ ≤ λR²."""
    scale = s.lipschitz * s._spread * s.radius * s._tail
    return float(s._curvature ** (1 / 3) * (scale / (s.epsilon * s.rows)) ** (2 / 3))


def frank_wolfe(s: Setting) -> float:
    """Return the upper bound of Theorem 5.5: Γ^(1/3)·(L₁‖C‖₁)^(2/3)·log(nk)·√ln(1/δ)/(εn)^(2/3)."""
    scale = s.lipschitz * s.radius / (s.epsilon * s.rows)
    return float(s._curvature ** (1 / 3) * scale ** (2 / 3) * math.log(s.rows * _vertices(s)) * s._tail)


def lasso(s: Setting) -> float:
    """Return Theorem 5.5 for |x|∞, |y| ≤ 1 and the unit ℓ1 ball: log(2np)·√ln(1/δ)/(εn)^(2/3).

    Differs: Corollary 5.7 prints log(np/δ), which is smaller and does not follow from the theorem.
    """
    return float(math.log(2 * s.rows * s.features) * s._tail / (s.epsilon * s.rows) ** (2 / 3))


def lasso_lower(s: Setting) -> float:
    """Return the lower bound of Theorem 5.8: 1/(n log n)^(2/3), for ε ≤ 0.1, δ = o(1/n²) and p ~ (n log n)^(2/3)."""
    return float((s.rows * math.log(max(s.rows, 3))) ** (-2 / 3))


def _vertices(s: Setting) -> float:
    return s.vertices if s.vertices < math.inf else 2.0 * s.features  # by default those of the ℓ1 ball


@dataclass(frozen=True)
class Row:
    """One cell of the table: an assumption, a method, and its bound."""

    assumption: Literal["lipschitz", "smooth", "strongly convex", "l1-lipschitz", "lasso"]
    method: str
    side: Literal["upper", "lower"]
    source: str
    bound: Callable[[Setting], float]


TABLE = (
    Row("lipschitz", "noisy gradient descent", "upper", "BST14", noisy_gradient_descent),
    Row("lipschitz", "any", "lower", "BST14", lipschitz_lower),
    Row("lipschitz", "mirror descent", "upper", "Theorem 3.2", mirror_descent),
    Row("smooth", "objective perturbation, earlier", "upper", "CMS11", objective_perturbation_earlier),
    Row("smooth", "any", "lower", "BST14, for λ = O(p)", lipschitz_lower),
    Row("smooth", "Frank–Wolfe", "upper", "Theorem B.2", frank_wolfe_smooth),
    Row("smooth", "objective perturbation", "upper", "Theorem 4.1", objective_perturbation),
    Row("strongly convex", "mirror descent", "upper", "Theorem A.1 (beside the table)", strongly_convex),
    Row("l1-lipschitz", "Frank–Wolfe", "upper", "Theorem 5.5", frank_wolfe),
    Row("lasso", "Frank–Wolfe", "upper", "Theorem 5.5, for Corollary 5.7", lasso),
    Row("lasso", "any", "lower", "Theorem 5.8", lasso_lower),
)
