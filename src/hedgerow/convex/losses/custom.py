"""User-defined convex losses, and a check of the constants that they declare.

Paper: Ullman, *Private Multiplicative Weights Beyond Linear Queries*, §2 (L, S, convexity).

The user's functions are called with public values only: every cell of the universe, and a θ from the set or from the
public hypothesis. The declared constants are checked on these values. The check finds gross mistakes and proves
nothing: convexity and smoothness cannot be established at finitely many points, and a function may do anything with its
arguments. A user-defined loss is therefore answered from the hypothesis and never minimized on the data, unless the
owner trusts it (``hr.open(trusted_losses=…)``). By trusting a loss the owner asserts two things: the loss is convex and
smooth as declared, and it does no harm with the private θ that it is given. Even then gradients are clipped to the
declared L, and excess losses to S, without any message, because a refusal at that point could depend on the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _scipy as scipy
from hedgerow._checks import positive
from hedgerow._types import Array
from hedgerow.convex.bound_loss import Risk
from hedgerow.convex.sets.convex_set import ConvexSet
from hedgerow.errors import InvalidInput
from hedgerow.universe.universe import Universe

Records = Mapping[str, NDArray[Any]]
CHECKED_CELLS = 20_000  # the check looks at no more cells than this: an evenly spaced selection of a larger universe
STEP = 2.0**-20  # step of the difference quotient that replaces a one-sided derivative
SLACK = 1e-7  # relative error that the check allows for float64


@dataclass(frozen=True)
class Custom:
    """A convex loss ℓ_x(θ) that the user defines by its value and its (sub)gradient.

    Each function is called for many records at once. ``records[name]`` holds the values of a named attribute: the
    representative value of a number (NaN in the extra cell), the label of anything else.

    Parameters
    ----------
    value : callable
        ``value(theta, records)`` returns one number per record.
    gradient : callable
        ``gradient(theta, records)`` returns one row of ``dimension`` numbers per record.
    attributes : list of str
        The attributes that the functions read.
    dimension : int
        The length of θ.
    lipschitz : float
        L, the largest gradient norm over the set of the question.
    scale : float, optional
        S, the largest |⟨θ − θ′, gradient⟩|. The default is the set's diameter times L.
    smoothness : float, optional
        A bound on the norm of the Hessian. The default, infinity, means that the loss may have kinks.
    strong_convexity : float, optional
        A lower bound on the eigenvalues of the Hessian.
    directional : callable, optional
        ``directional(theta, direction, records)`` returns the one-sided derivatives of a loss with kinks. Without it, u
        is a difference quotient over a tiny step. Ullman's Claim 3.5 holds for this quotient too, by convexity.

    Raises
    ------
    InvalidInput
        If a constant is out of range or no attribute is named.

    Example
    -------
    >>> distance = hr.losses.Custom(
    ...     value=lambda theta, records: np.abs(records["age"] / 90 - theta[0]),
    ...     gradient=lambda theta, records: np.sign(theta[0] - records["age"] / 90)[:, None],
    ...     attributes=["age"],
    ...     dimension=1,
    ...     lipschitz=1.0,
    ... )
    >>> distance.check(hr.Universe(age=hr.Integers(0, 90)), hr.Box(0.0, 1.0))
    """

    value: Callable[[Array, Records], Array]
    gradient: Callable[[Array, Records], Array]
    attributes: tuple[str, ...]
    dimension: int
    lipschitz: float
    scale: float | None = None
    smoothness: float = math.inf
    strong_convexity: float = 0.0
    directional: Callable[[Array, Array, Records], Array] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.attributes, str) or not self.attributes:
            raise InvalidInput(
                f"attributes must be a list of at least one name. Found {self.attributes!r}. Name what the loss reads."
            )
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if int(self.dimension) != self.dimension or self.dimension < 1:
            raise InvalidInput(
                f"dimension must be a whole number of at least 1. Found {self.dimension!r}. Give the length of θ."
            )
        positive("lipschitz", self.lipschitz, "State the largest gradient norm over the set.")
        if self.scale is not None:
            positive("scale", self.scale, "State the largest |⟨θ − θ′, gradient⟩| over the set, or leave it out.")
        if not self.smoothness > 0 or not (math.isfinite(self.strong_convexity) and self.strong_convexity >= 0):
            raise InvalidInput(
                "smoothness must be positive and strong_convexity finite and at least 0. "
                f"Found {self.smoothness!r} and {self.strong_convexity!r}. Correct them, or leave them out."
            )

    def on(self, universe: Universe) -> CustomRisk:
        """Bind the loss to a universe.

        Parameters
        ----------
        universe : Universe
            The declared columns.

        Returns
        -------
        CustomRisk

        Raises
        ------
        InvalidInput
            If the universe has no such attribute, or a function returns a wrong shape or numbers that are not finite.

        Example
        -------
        >>> def half_square(theta, records):
        ...     return theta[0] ** 2 / 2 + 0 * records["visits"]
        >>> def slope(theta, records):
        ...     return np.full((len(records["visits"]), 1), theta[0])
        >>> hr.losses.Custom(half_square, slope, ["visits"], dimension=1, lipschitz=1.0).on(universe).dimension
        1
        """
        return CustomRisk(self, universe)

    def check(self, universe: Universe, over: ConvexSet, points: int = 32) -> None:
        """Refuse a loss that is not convex, not finite, or exceeds its constants at some cell.

        The check compares extreme points of the set and evenly spread points with one another. It finds gross mistakes;
        it is no proof.

        Parameters
        ----------
        universe : Universe
            The declared columns.
        over : ConvexSet
            The set of the question.
        points : int
            The number of parameters to compare, beside a few extreme points.

        Raises
        ------
        InvalidInput
            If the check finds that the loss is not convex, not finite, or exceeds a declared constant.

        Example
        -------
        >>> def half_square(theta, records):
        ...     return theta[0] ** 2 / 2 + 0 * records["visits"]
        >>> def slope(theta, records):
        ...     return np.full((len(records["visits"]), 1), theta[0])
        >>> loss = hr.losses.Custom(half_square, slope, ["visits"], dimension=1, lipschitz=1.0)
        >>> loss.check(universe, over=hr.L2Ball(1.0))
        """
        self.on(universe).check(over, points)


class CustomRisk(Risk):
    """A user-defined loss bound to a universe."""

    is_glm = False

    def __init__(self, loss: Custom, universe: Universe) -> None:
        self.loss, self.universe = loss, universe
        self.attributes = universe.order(loss.attributes)
        self.shape = universe.sizes(self.attributes)
        self.dimension = int(loss.dimension)
        self.require_size(columns=[2 * math.prod(self.shape) * self.dimension])  # room for the gradients of all cells
        self.smoothness = float(loss.smoothness)
        self.records = self._records(np.arange(math.prod(self.shape)))

    def _records(self, cells: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the attribute values of the given cells, as the user's functions expect them."""
        columns: dict[str, NDArray[Any]] = {}
        for name, codes in zip(self.attributes, np.unravel_index(cells, self.shape), strict=True):
            attribute = self.universe[name]
            known: NDArray[Any] | None = attribute.values
            if known is None:
                known = np.empty(attribute.size, dtype=object)
                known[:] = attribute.labels
            columns[name] = known[codes]
        return columns

    def losses(self, theta: Array) -> Array:
        """Return the user's value for every cell."""
        return self._values(theta, self.records).reshape(self.shape)

    def directional(self, theta: Array, toward: Array, tolerance: float = 0.0) -> Array:
        """Return one-sided derivatives: the user's, else from the gradient if smooth, else a difference quotient."""
        direction = toward - theta
        if self.loss.directional is not None:
            slopes = self._finite("directional", self.loss.directional(theta, direction, self.records), ())
        elif self.is_smooth:
            slopes = self._gradients(theta, self.records) @ direction
        else:
            ahead = self._values(theta + STEP * direction, self.records)
            slopes = (ahead - self._values(theta, self.records)) / STEP
        return slopes.reshape(self.shape)

    def objective(self, marginal: NDArray[np.generic]) -> CustomObjective:
        """Return the objective on the marginal."""
        if marginal.shape != self.shape:
            raise InvalidInput(
                f"The marginal must be over {self.attributes!r}, of shape {self.shape}. Found shape {marginal.shape}. "
                "Ask for the marginal on the loss's attributes."
            )
        m = np.asarray(marginal, dtype=float).ravel()
        return CustomObjective(self, m, float(m.sum()))

    def lipschitz(self, over: ConvexSet) -> float:
        """Return the declared L."""
        over.require(self.dimension)
        return float(self.loss.lipschitz)

    def scale(self, over: ConvexSet) -> float:
        """Return the smaller of the declared S and the set's diameter times L."""
        over.require(self.dimension)
        bound = over.diameter_l2(self.dimension) * self.loss.lipschitz
        if self.loss.scale is None and not math.isfinite(bound):
            raise InvalidInput(
                f"A loss without a scale must be minimised over a bounded set. Found {over!r}. "
                "Give one, such as L2Ball(5.0), or state scale."
            )
        return bound if self.loss.scale is None else min(bound, float(self.loss.scale))

    def strong_convexity(self, over: ConvexSet) -> float:
        """Return the declared strong convexity."""
        return float(self.loss.strong_convexity)

    def magnitude(self, over: ConvexSet) -> float:
        """Return a bound on the losses over the set: the largest at one point, plus what S and L allow elsewhere."""
        start = over.project(np.zeros(self.dimension))
        return float(np.abs(self._values(start, self.records)).max()) + 2 * self.scale(over) + self.loss.lipschitz

    def __repr__(self) -> str:
        return f"Custom({', '.join(self.attributes)})"

    def _values(self, theta: Array, records: Records) -> Array:
        """Call the user's ``value`` and check its shape and finiteness."""
        return self._finite("value", self.loss.value(theta, records), ())

    def _gradients(self, theta: Array, records: Records) -> Array:
        """Call the user's ``gradient`` and check its shape and finiteness."""
        return self._finite("gradient", self.loss.gradient(theta, records), (self.dimension,))

    def _finite(self, role: str, given: Any, each: tuple[int, ...]) -> Array:
        """Return the result of a user's function as floats. Refuse a wrong shape, NaN and infinity."""
        rows, found = math.prod(self.shape), np.asarray(given, dtype=float)
        if found.shape[1:] != each or found.ndim != 1 + len(each):
            raise InvalidInput(
                f"The {role} of a loss must have shape {('records', *each)!r}. Found {found.shape}. "
                f"Return one entry per record ({rows} in all cells)."
            )
        if not np.isfinite(found).all():
            raise InvalidInput(
                f"The {role} of a loss must be finite. Found NaN or infinity. Check it on the universe's own values, "
                "the extra cell of an attribute with other=True included."
            )
        return found

    def check(self, over: ConvexSet, points: int) -> None:
        """Carry out ``Custom.check``."""
        over.require(self.dimension)
        total = math.prod(self.shape)
        count = min(total, CHECKED_CELLS)
        records = self._records(np.arange(count) * (total - 1) // max(count - 1, 1))
        thetas = _probes(over, self.dimension, points)
        values = np.array([self._values(theta, records) for theta in thetas])
        scale = self.scale(over)
        for i, theta in enumerate(thetas):
            g = self._gradients(theta, records)
            longest = float(np.linalg.norm(g, axis=1).max())
            if longest > self.loss.lipschitz * (1 + SLACK):
                raise InvalidInput(
                    f"Gradients must have norm at most lipschitz = {self.loss.lipschitz:g}. Found {longest:.6g}. "
                    "State the true constant, or narrow the set."
                )
            rises = g @ (thetas - theta).T  # ⟨∇ℓ_x(θ), θ′ − θ⟩, a table of cells × points
            if float(np.abs(rises).max()) > scale * (1 + SLACK) + SLACK * self.loss.lipschitz:
                raise InvalidInput(
                    f"|⟨θ − θ′, gradient⟩| must be at most scale = {scale:g}. Found {float(np.abs(rises).max()):.6g}. "
                    "State the true constant, or narrow the set."
                )
            apart = ((thetas - theta) ** 2).sum(axis=1) * self.loss.strong_convexity / 2
            lacking = values[i] + rises.T + apart[:, None] - values  # ≤ 0 for a convex loss and its subgradient
            if float(lacking.max()) > SLACK * (1 + float(np.abs(values).max())):
                raise InvalidInput(
                    "A loss must be convex and its gradient a subgradient: ℓ(θ′) ≥ ℓ(θ) + ⟨gradient(θ), θ′ − θ⟩"
                    f"{' + ½·strong_convexity·‖θ′ − θ‖²' if self.loss.strong_convexity else ''}. "
                    f"Found it short by {float(lacking.max()):.6g}. Correct the value or the gradient."
                )


@dataclass(frozen=True, eq=False, repr=False)
class CustomObjective:
    """The function Σ_x m(x)·ℓ_x(θ). It holds a marginal, so it has no repr and never raises on values."""

    risk: CustomRisk
    weights: Array
    mass: float

    def value(self, theta: Array) -> float:
        """Return Σ_x m(x)·ℓ_x(θ), with NaN counted as 0."""
        return float(self.weights @ np.nan_to_num(np.asarray(self.risk.loss.value(theta, self.risk.records), float)))

    def gradient(self, theta: Array) -> Array:
        """Return the sum of gradients, each clipped to the declared L."""
        each = np.nan_to_num(np.asarray(self.risk.loss.gradient(theta, self.risk.records), float))
        lengths = np.linalg.norm(each, axis=1)
        clip = np.minimum(1.0, self.risk.loss.lipschitz / np.maximum(lengths, 1e-300))
        total: Array = (self.weights * clip) @ each
        return total


def _probes(over: ConvexSet, p: int, points: int) -> Array:
    """Return points of the set, spread evenly and reproducibly.

    The points are a quasi-random normal sequence at several sizes, and extreme points.
    """
    uniform = halton(points, min(p, 500))
    normal = scipy.special.ndtri(np.resize(uniform, (points, p)))
    radius = over.radius_l2(p)
    sizes = np.resize([0.1, 0.5, 1.0, 2.0], points) * (radius if math.isfinite(radius) else 10.0)
    spread = [over.project(v * size / math.sqrt(p)) for v, size in zip(normal, sizes, strict=True)]
    extremes = [over.minimize(v) for v in (*normal[:8], np.ones(p), -np.ones(p))] if over.is_bounded else []
    return np.array([*spread, *extremes, over.project(np.zeros(p))])


def halton(points: int, dimension: int) -> Array:
    """Return the Halton sequence without its first point, which is 0.

    Each coordinate belongs to a prime. Its values are 1, 2, … written in that base, with the digits mirrored at the
    point.
    """
    primes: list[int] = []
    for number in itertools.count(2):
        if len(primes) == dimension:
            break
        if all(number % prime for prime in primes):
            primes.append(number)
    sequence = np.zeros((points, dimension))
    for column, prime in zip(sequence.T, primes, strict=True):
        left, digit = np.arange(1, points + 1), 1.0
        while left.any():
            digit /= prime
            column += digit * (left % prime)
            left //= prime
    return sequence
