"""What every loss of a linear predictor can do: slopes, constants, labels, and what it is asked about.

Paper and symbols: see ``families``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._checks import number
from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.questions.counts import Query

Labels = Literal["real", "binary", "count", "class"]
Interval = float | tuple[float, float]


@dataclass(frozen=True)
class LinearLoss(ABC):
    """φ(z, y), convex in z; vectorised over z and y. The optional fields say what it is asked about in a universe."""

    target: str | None = field(default=None, kw_only=True)
    features: tuple[str, ...] = field(default=(), kw_only=True)
    intercept: bool = field(default=True, kw_only=True)
    interactions: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)
    onehot: tuple[str, ...] = field(default=(), kw_only=True)
    where: Query | None = field(default=None, kw_only=True)
    ridge: float = field(default=0.0, kw_only=True)

    labels: ClassVar[Labels] = "real"
    is_glm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("features", "onehot"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        crossed = tuple(_names("An interaction", pair) for pair in self.interactions)
        object.__setattr__(self, "interactions", crossed)
        if self.target is not None:
            object.__setattr__(self, "target", _plain(self.target))
        ridge = number(self.ridge) if isinstance(self.ridge, int | float) else math.nan
        if not 0 <= ridge < math.inf:
            raise InvalidInput(f"ridge must be finite and at least 0. Found {self.ridge!r}. Give the weight of ½‖θ‖².")
        object.__setattr__(self, "ridge", ridge)

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array: ...

    @abstractmethod
    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """The left and right derivatives φ′(z−), φ′(z+); within ``tolerance`` of a kink, those at the kink."""

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """φ″(z, y), 0 at kinks."""

    def derivative(self, z: Array, y: Array) -> Array:
        """φ′(z, y): the one subgradient halfway between the two slopes at a kink."""
        left, right = self.slopes(z, y)
        return left if left is right else (left + right) / 2

    def directional(self, z: Array, y: Array, dz: Array, tolerance: float = 0.0) -> Array:
        """φ′(z; dz) = lim (φ(z + h·dz) − φ(z))/h as h ↓ 0.

        A ``tolerance`` treats a predictor that close to a kink as at it, for a θ known up to a solver's accuracy.
        """
        left, right = self.slopes(z, y, tolerance)
        return np.where(dz > 0, right, left) * dz

    @property
    def smoothness(self) -> float:
        """sup φ″, infinite where there is a kink."""
        return math.inf

    @property
    def mean_smoothness(self) -> float:
        """sup over z of the mean of φ″(z, y) over labels as likely as z says they are."""
        return self.smoothness

    @property
    def is_smooth(self) -> bool:
        return math.isfinite(self.smoothness)

    @property
    def strong_convexity(self) -> float:
        """In θ, whatever the features: the ridge."""
        return float(self.ridge)

    def lipschitz(self, z: Interval = math.inf, y: Interval = 1.0) -> float:
        """sup |φ′| for predictors and labels in the intervals (a number b means [−b, b]); inf where there is no bound.

        φ′ is monotone in z and in y for every loss here, so the corners decide.
        """
        zs, ys = ends_of(z), self._label_ends(y)
        corners = [self.slopes(np.array(a), np.array(b)) for a in zs for b in ys]
        return max(abs(float(slope)) for pair in corners for slope in pair)

    def curvature_floor(self, z: Interval) -> float:
        """inf φ″ for predictors in the interval."""
        return 0.0

    def _label_ends(self, y: Interval) -> tuple[float, float]:
        low, high = ends_of(y)
        if self.labels == "binary":
            return 0.0, 1.0
        return (max(low, 0.0), max(high, 0.0)) if self.labels == "count" else (low, high)

    def as_labels(self, y: ArrayLike) -> Array:
        """Labels that suit the loss, whatever is given: what a row holds is never refused.

        Missing (NaN) is 0. Binary labels are 1 from ½ on, else 0; counts are at least 0; classes are whole numbers from 0.
        """
        given = np.nan_to_num(np.asarray(y, dtype=np.float64), nan=0.0)
        if self.labels == "binary":
            return (given >= 0.5).astype(np.float64)
        if self.labels == "real":
            return given
        return np.maximum(given if self.labels == "count" else np.floor(given), 0.0)


def _names(role: str, given: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidInput(f"{role} must be a list of names. Found the text {given!r}. Write [{given!r}].")
    return tuple(_plain(name) for name in given)


def _plain(name: str) -> str:
    """Of Python's own class: what a subclass is equal to may change between two uses."""
    return str.__str__(name) if isinstance(name, str) else name


def ends_of(bound: Interval) -> tuple[float, float]:
    return bound if isinstance(bound, tuple) else (-bound, bound)
