"""The interface of a loss of a linear predictor: slopes, constants, labels, and the fields that name attributes.

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
from hedgerow._registry import ClassRegistry
from hedgerow._types import Array
from hedgerow.errors import InvalidInput
from hedgerow.query.counts import Query

Labels = Literal["real", "binary", "count", "class"]
Interval = float | tuple[float, float]
CODINGS = ("reference", "full")


@dataclass(frozen=True)
class LinearLoss(ABC):
    """A loss φ(z, y), convex in z and vectorized over z and y.

    The fields, all optional, say which attributes of a universe a question is about (see ``families.Loss``).
    """

    target: str | None = field(default=None, kw_only=True)
    features: tuple[str, ...] = field(default=(), kw_only=True)
    intercept: bool = field(default=True, kw_only=True)
    interactions: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True)
    onehot: tuple[str, ...] = field(default=(), kw_only=True)
    where: Query | None = field(default=None, kw_only=True)
    ridge: float = field(default=0.0, kw_only=True)
    coding: str = field(default="reference", kw_only=True)

    labels: ClassVar[Labels] = "real"
    is_glm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("features", "onehot"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        crossed = tuple(_names("An interaction", pair) for pair in self.interactions)
        object.__setattr__(self, "interactions", crossed)
        if self.target is not None:
            object.__setattr__(self, "target", _plain(self.target))
        if self.coding not in CODINGS:
            raise InvalidInput(f"coding must be one of {', '.join(CODINGS)}. Found {self.coding!r}. Choose one.")
        ridge = number(self.ridge) if isinstance(self.ridge, int | float) else math.nan
        if not 0 <= ridge < math.inf:
            raise InvalidInput(f"ridge must be finite and at least 0. Found {self.ridge!r}. Give the weight of ½‖θ‖².")
        object.__setattr__(self, "ridge", ridge)

    @abstractmethod
    def value(self, z: Array, y: Array) -> Array:
        """Return φ(z, y).

        Parameters
        ----------
        z : array
            The predictors ⟨x, θ⟩.
        y : array
            The labels.

        Returns
        -------
        array

        Example
        -------
        >>> hr.losses.Squared().value(np.array([1.0, 3.0]), np.array([0.0, 3.0])).tolist()
        [0.5, 0.0]
        """
        ...

    @abstractmethod
    def slopes(self, z: Array, y: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
        """Return the left and right derivatives φ′(z−), φ′(z+).

        Within ``tolerance`` of a kink, return those at the kink.

        Parameters
        ----------
        z : array
            The predictors ⟨x, θ⟩.
        y : array
            The labels.
        tolerance : float
            The distance from a kink up to which a predictor is treated as lying on it.

        Returns
        -------
        tuple of two arrays

        Example
        -------
        >>> [slope.tolist() for slope in hr.losses.Absolute().slopes(np.array([1.0]), np.array([1.0]))]
        [[-1.0], [1.0]]
        """

    @abstractmethod
    def curvature(self, z: Array, y: Array) -> Array:
        """Return φ″(z, y), with 0 at kinks.

        Parameters
        ----------
        z : array
            The predictors ⟨x, θ⟩.
        y : array
            The labels.

        Returns
        -------
        array

        Example
        -------
        >>> hr.losses.Logistic().curvature(np.array([0.0]), np.array([1.0])).tolist()
        [0.25]
        """

    def derivative(self, z: Array, y: Array) -> Array:
        """Return φ′(z, y). At a kink this is the subgradient halfway between the two slopes.

        Parameters
        ----------
        z : array
            The predictors ⟨x, θ⟩.
        y : array
            The labels.

        Returns
        -------
        array

        Example
        -------
        >>> hr.losses.Squared().derivative(np.array([1.0, 3.0]), np.array([0.0, 3.0])).tolist()
        [1.0, 0.0]
        """
        left, right = self.slopes(z, y)
        return left if left is right else (left + right) / 2

    def directional(self, z: Array, y: Array, dz: Array, tolerance: float = 0.0) -> Array:
        """Return φ′(z; dz) = lim (φ(z + h·dz) − φ(z))/h as h ↓ 0.

        A predictor within ``tolerance`` of a kink is treated as lying on it. This serves a θ that is known only up to a
        solver's accuracy.

        Parameters
        ----------
        z : array
            The predictors ⟨x, θ⟩.
        y : array
            The labels.
        dz : array
            The directions in which the predictors move.
        tolerance : float
            The distance from a kink up to which a predictor is treated as lying on it.

        Returns
        -------
        array

        Example
        -------
        >>> hr.losses.Absolute().directional(np.array([1.0]), np.array([1.0]), np.array([-2.0])).tolist()
        [2.0]
        """
        left, right = self.slopes(z, y, tolerance)
        return np.where(dz > 0, right, left) * dz

    @property
    def smoothness(self) -> float:
        """sup φ″, infinite if φ has a kink."""
        return math.inf

    @property
    def mean_smoothness(self) -> float:
        """sup over z of the mean of φ″(z, y) over y, for labels distributed as z predicts."""
        return self.smoothness

    @property
    def is_smooth(self) -> bool:
        """True if φ has no kink."""
        return math.isfinite(self.smoothness)

    @property
    def strong_convexity(self) -> float:
        """The strong convexity in θ, for any features: the ridge."""
        return float(self.ridge)

    def lipschitz(self, z: Interval = math.inf, y: Interval = 1.0) -> float:
        """Return sup |φ′| for predictors z and labels y in the given intervals, or infinity if there is no bound.

        A number b stands for the interval [−b, b]. For every loss here φ′ is monotone in z and in y, so it is largest
        at a corner of the intervals.

        Parameters
        ----------
        z : float or tuple of two float
            The interval of the predictors.
        y : float or tuple of two float
            The interval of the labels.

        Returns
        -------
        float

        Example
        -------
        >>> hr.losses.Squared().lipschitz(z=2.0, y=1.0), hr.losses.Logistic().lipschitz()
        (3.0, 1.0)
        """
        zs, ys = ends_of(z), self._label_ends(y)
        corners = [self.slopes(np.array(a), np.array(b)) for a in zs for b in ys]
        return max(abs(float(slope)) for pair in corners for slope in pair)

    def curvature_floor(self, z: Interval) -> float:
        """Return inf φ″ for predictors in the interval, or a lower bound.

        Parameters
        ----------
        z : float or tuple of two float
            The interval of the predictors. A number b stands for [−b, b].

        Returns
        -------
        float

        Example
        -------
        >>> hr.losses.Logistic().curvature_floor(0.0)
        0.25
        """
        return 0.0

    def _label_ends(self, y: Interval) -> tuple[float, float]:
        """Return the ends of the interval of labels that the loss accepts."""
        low, high = ends_of(y)
        if self.labels == "binary":
            return 0.0, 1.0
        return (max(low, 0.0), max(high, 0.0)) if self.labels == "count" else (low, high)

    def as_labels(self, y: ArrayLike) -> Array:
        """Convert any numbers to labels that suit the loss. Values of a row are never refused.

        Missing values (NaN) become 0. Binary labels are 1 from ½ on, else 0. Counts are at least 0. Classes are whole
        numbers from 0.

        Parameters
        ----------
        y : array
            Numbers, NaN included.

        Returns
        -------
        array

        Example
        -------
        >>> hr.losses.Logistic().as_labels([0.2, 0.8, float("nan")]).tolist()
        [0.0, 1.0, 0.0]
        """
        given = np.nan_to_num(np.asarray(y, dtype=np.float64), nan=0.0)
        if self.labels == "binary":
            return (given >= 0.5).astype(np.float64)
        if self.labels == "real":
            return given
        return np.maximum(given if self.labels == "count" else np.floor(given), 0.0)


LOSSES: ClassRegistry[object] = ClassRegistry()
"""Losses that the package offers, by name. Others are refused: their methods would be called with private values."""


def _names(role: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return attribute names as a tuple. Refuse a single text, which is a likely mistake."""
    if isinstance(given, str):
        raise InvalidInput(f"{role} must be a list of names. Found the text {given!r}. Write [{given!r}].")
    return tuple(_plain(name) for name in given)


def _plain(name: str) -> str:
    """Return a name as a plain ``str``: a subclass could change between two uses what it is equal to."""
    return str.__str__(name) if isinstance(name, str) else name


def ends_of(bound: Interval) -> tuple[float, float]:
    """Return both ends of an interval. A number b stands for [−b, b]."""
    return bound if isinstance(bound, tuple) else (-bound, bound)
