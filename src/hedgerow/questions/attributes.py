"""The columns a universe may declare: their cells, the labels of these and, where they are numbers, what they stand for.

Values outside the declaration have a declared place: numbers are clamped to the nearest end, unknown categories and
missing values go to the first cell, or, with ``other=True``, all of them go to one extra last cell. They are never
dropped, counted or warned about, so nothing about them escapes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput

OTHER = "(other)"  # the label of the extra cell of an attribute declared with other=True


@dataclass(frozen=True)
class isnt:
    """The negation of a predicate on one attribute: ``count(region=isnt("north"))``."""

    predicate: Any


@dataclass(frozen=True)
class Attribute:
    """One column of the universe: its cells, their labels and, where they are numbers, their representative values."""

    labels: tuple[Any, ...]
    values: NDArray[np.float64] | None = field(default=None, compare=False)
    other: bool = False
    ordered: bool = False

    def __post_init__(self) -> None:
        if self.values is not None:  # a universe is a value: what it means cannot change under a session
            fixed = self.values.copy()
            fixed.flags.writeable = False
            object.__setattr__(self, "values", fixed)

    @property
    def size(self) -> int:
        return len(self.labels)

    def cell(self, value: Any) -> int:
        """The cell a declared value belongs to; InvalidInput for any other."""
        if value == OTHER and self.other:
            return self.size - 1
        try:
            return self._positions[value]
        except (KeyError, TypeError):
            raise self._unknown(value) from None

    def mask(self, predicate: Any) -> NDArray[np.bool_]:
        """The cells that satisfy a predicate: a value, a set, a (low, high) range, a boolean mask, or ``isnt`` of one.

        A range is inclusive, ``None`` leaves an end open, and a cell is in the range when its representative value is.
        """
        if isinstance(predicate, np.ndarray):
            predicate = np.array(predicate)  # of numpy's own class: a subclass may lie, and would meet private counts
        if isinstance(predicate, np.ndarray) and predicate.dtype == bool:
            mask = np.array(
                predicate, dtype=bool
            )  # its own: the asker's array may change, or be of a class with methods
            if mask.shape != (self.size,):
                raise InvalidInput(
                    f"A mask must have one entry per cell ({self.size}). Found shape {mask.shape}. "
                    "Give one boolean for every cell of the attribute."
                )
            return mask
        if isinstance(predicate, isnt):
            return ~self.mask(predicate.predicate)
        if isinstance(predicate, tuple):
            return self._between(predicate)
        mask = np.zeros(self.size, bool)
        wanted = predicate if isinstance(predicate, set | frozenset | list | np.ndarray) else [predicate]
        for value in wanted:
            mask[self.cell(value)] = True
        return mask

    def _between(self, ends: tuple[Any, ...]) -> NDArray[np.bool_]:
        if not self.ordered or self.values is None:
            raise InvalidInput(
                f"A range must be asked of an attribute with an order. Found {ends!r} for {self._described()}. "
                "Give a set of values instead."
            )
        if len(ends) != 2:
            raise InvalidInput(f"A range must be (low, high). Found {ends!r}. Use a set for a list of values.")
        low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
        if not low <= high:
            raise InvalidInput(f"A range must have low <= high. Found ({low!r}, {high!r}). Swap the two ends.")
        inside: NDArray[np.bool_] = (self.values >= low) & (self.values <= high)
        return inside

    @property
    def _positions(self) -> dict[Any, int]:
        cached: dict[Any, int] | None = self.__dict__.get("_cached_positions")
        if cached is None:
            cached = {label: i for i, label in enumerate(self.labels)}
            self.__dict__["_cached_positions"] = cached
        return cached

    def _described(self) -> str:
        shown = ", ".join(repr(v) for v in self.labels[:6])
        return shown + (f", … ({self.size} in all)" if self.size > 6 else "")

    def _unknown(self, value: Any) -> InvalidInput:
        return InvalidInput(
            f"A value must be one the universe declares: {self._described()}. Found {value!r}. "
            "Check the spelling, or declare it in the universe."
        )


def _with_other(labels: Sequence[Any], other: bool) -> tuple[Any, ...]:
    return (*labels, OTHER) if other else tuple(labels)


def _values_with_other(values: NDArray[np.float64], other: bool) -> NDArray[np.float64]:
    return np.append(values, np.nan) if other else values


@dataclass(frozen=True, init=False)
class Categories(Attribute):
    """A column with a fixed list of values. Unlisted ones go to the first, or to an extra cell with ``other=True``."""

    def __init__(self, values: Iterable[Any], *, other: bool = False) -> None:
        labels = list(values)
        if not labels:
            raise InvalidInput(
                "Categories must have at least one value. Found none. List the values the column may take."
            )
        if len(set(labels)) != len(labels):
            raise InvalidInput("Categories must be distinct. Found a value twice. Remove the repeats.")
        if other and OTHER in labels:
            raise InvalidInput(f"Categories must not list {OTHER!r} with other=True. Found it. Rename it, or drop one.")
        super().__init__(_with_other(labels, other), None, other, False)


@dataclass(frozen=True, init=False)
class Flag(Attribute):
    """A yes/no column. Anything that is not true, 1, t, yes or y (in any case) is False."""

    def __init__(self) -> None:
        super().__init__((False, True), np.array([0.0, 1.0]), False, False)


@dataclass(frozen=True, init=False)
class Integers(Attribute):
    """Whole numbers from low to high, one cell each; others are clamped, missing ones go to low (or to ``other``)."""

    low: int = 0
    high: int = 0

    def __init__(self, low: int, high: int, *, other: bool = False) -> None:
        if int(low) != low or int(high) != high or low > high:
            raise InvalidInput(
                f"Integers must have whole ends with low <= high. Found ({low!r}, {high!r}). Give the least and greatest value."
            )
        numbers = np.arange(int(low), int(high) + 1)
        super().__init__(
            _with_other(numbers.tolist(), other), _values_with_other(numbers.astype(float), other), other, True
        )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))


@dataclass(frozen=True, init=False)
class Range(Attribute):
    """A numeric column in public bins: ``bins`` equal ones between low and high, or explicit ``edges``.

    A bin holds its lower edge and not its upper one, the last bin both. ``values`` are the representatives that means
    and regressions use, by default the midpoints. Numbers outside are clamped to the nearest bin; missing ones go to
    the first bin, or to an extra cell with ``other=True``.
    """

    edges: tuple[float, ...] = ()

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        bins: int | None = None,
        *,
        edges: Sequence[float] | None = None,
        values: Sequence[float] | None = None,
        other: bool = False,
    ) -> None:
        cuts = self._cuts(low, high, bins, edges)
        middle = (cuts[:-1] + cuts[1:]) / 2 if values is None else np.asarray(values, float)
        if middle.shape != (len(cuts) - 1,) or not np.isfinite(middle).all():
            raise InvalidInput(
                f"Representative values must be {len(cuts) - 1} finite numbers, one per bin. Found {len(middle)}. "
                "Give one for each bin, or leave them out for the midpoints."
            )
        labels = [f"[{a:g}, {b:g})" for a, b in itertools.pairwise(cuts[:-1])]
        labels.append(f"[{cuts[-2]:g}, {cuts[-1]:g}]")
        super().__init__(_with_other(labels, other), _values_with_other(middle, other), other, True)
        object.__setattr__(self, "edges", tuple(cuts.tolist()))

    @staticmethod
    def _cuts(
        low: float | None, high: float | None, bins: int | None, edges: Sequence[float] | None
    ) -> NDArray[np.float64]:
        if edges is not None:
            cuts = np.asarray(edges, float)
        elif low is None or high is None or bins is None:
            raise InvalidInput(
                "A Range must have low, high and bins, or edges. Found neither. For example Range(17, 90, bins=8)."
            )
        elif int(bins) != bins or bins < 1:
            raise InvalidInput(f"bins must be a whole number of at least 1. Found {bins!r}. Give the number of bins.")
        else:
            cuts = np.linspace(low, high, int(bins) + 1)
        if len(cuts) < 2 or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
            raise InvalidInput(
                f"The edges of a Range must be finite and increasing. Found {cuts.tolist()[:6]!r}. "
                "Give low < high, or at least two increasing edges."
            )
        return cuts

    def cell(self, value: Any) -> int:
        if isinstance(value, int | float | np.number) and self.edges[0] <= value <= self.edges[-1]:
            return min(int(np.searchsorted(self.edges, value, side="right")) - 1, len(self.edges) - 2)
        return super().cell(value)
