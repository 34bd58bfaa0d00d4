"""Ranges: numbers in bins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow._checks import number, whole
from hedgerow.errors import InvalidInput, TooLarge
from hedgerow.universe.attributes.attribute import MOST_BINS, NUMBERS, Attribute, Cover, values_with_extras, with_extras


@dataclass(frozen=True, init=False, repr=False)
class Range(Attribute):
    """A numeric column in public bins: ``bins`` equal ones between ``low`` and ``high``, or explicit ``edges``.

    A bin includes its lower edge but not its upper one; the last bin includes both. Numbers outside are clamped to the
    nearest bin. Missing values go to the first bin, or to an extra cell with ``missing=True`` or ``other=True``.

    Parameters
    ----------
    low, high : float
        Ends of the range, with ``bins``.
    bins : int
        Number of equal bins.
    edges : sequence of float
        Increasing edges of the bins, instead of ``low``, ``high`` and ``bins``.
    values : sequence of float, optional
        Representative value of each bin, for means and regressions. Default: the midpoints.
    other : bool
        Add a cell for values that are no numbers.
    whole : bool
        Declare that the numbers are whole; a fraction counts as the whole number below it. Edges between whole numbers
        are rounded up, which moves no whole number to another bin.
    missing : bool
        Add a cell for missing values.

    Example
    -------
    >>> Range(17, 90, bins=8)  # doctest: +SKIP
    """

    edges: tuple[float, ...] = ()
    whole: bool = False

    def draw(self, cells: NDArray[np.integer[Any]], uniforms: NDArray[np.float64]) -> NDArray[Any]:
        """Draw a number in each bin, whole if the attribute is declared whole; NaN for a cell that is no bin."""
        edges = np.asarray(self.edges)
        inside = cells < edges.size - 1
        bins = np.where(inside, cells, 0)
        low, high = edges[bins], edges[bins + 1]
        is_last = bins == edges.size - 2
        if self.whole:  # the edges are whole numbers, and the last bin includes its upper edge
            drawn = np.minimum(low + np.floor(uniforms * (high - low + is_last)), np.where(is_last, high, high - 1))
            return drawn.astype(np.int64) if inside.all() else np.where(inside, drawn, np.nan)
        most = np.where(is_last, high, np.nextafter(high, low))  # rounding must not move a number to the next bin
        return np.where(inside, np.minimum(low + uniforms * (high - low), most), np.nan)

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        bins: int | None = None,
        *,
        edges: Sequence[float] | None = None,
        values: Sequence[float] | None = None,
        other: bool = False,
        whole: bool = False,
        missing: bool = False,
    ) -> None:
        cuts = self._cuts(low, high, bins, edges) + 0.0  # turns −0.0 into 0.0
        if whole:
            cuts = _whole_cuts(cuts)
        # the highest number of each bin
        last = cuts[1:] - np.append(np.ones(len(cuts) - 2), 0.0) if whole else cuts[1:]
        middle = (cuts[:-1] + last) / 2 if values is None else np.asarray(values, float)
        if middle.shape != (len(cuts) - 1,) or not np.isfinite(middle).all():
            raise InvalidInput(
                f"Representative values must be {len(cuts) - 1} finite numbers, one per bin. Found {len(middle)}. "
                "Give one for each bin, or leave them out for the midpoints."
            )
        labels = [f"[{a:g}, {b:g})" for a, b in itertools.pairwise(cuts[:-1])]
        labels.append(f"[{cuts[-2]:g}, {cuts[-1]:g}]")
        extended = values_with_extras(middle, missing, other)
        super().__init__(with_extras(labels, missing, other), extended, other, True, missing)
        object.__setattr__(self, "edges", tuple(cuts.tolist()))
        object.__setattr__(self, "whole", bool(whole))

    @property
    def value_type(self) -> type:
        """The type of numbers."""
        return float

    @property
    def is_number(self) -> bool:
        """True: a model uses the number of each bin."""
        return True

    @property
    def _outer_numbers(self) -> tuple[float, float]:
        low, high = super()._outer_numbers
        return min(low, *self.edges), max(high, *self.edges)

    @property
    def has_bins(self) -> bool:
        """True: a cell is a bin."""
        return True

    @property
    def is_whole(self) -> bool:
        """True if declared with ``whole=True``."""
        return self.whole

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest number of each bin; NaN for an extra cell."""
        cuts, none = np.array(self.edges), np.full(self.size - len(self.edges) + 1, np.nan)
        last = cuts[1:] - np.append(np.ones(len(cuts) - 2), 0.0) if self.whole else cuts[1:]
        return np.append(cuts[:-1], none), np.append(last, none)

    def _cover_between(self, low: float, high: float) -> Cover:
        """Return the cover of an inclusive range.

        A bin includes its lower edge but not its upper one. A bin of whole numbers includes those from its lowest to
        its highest.
        """
        self.require_meeting(low, high)
        first, last = (bound[: len(self.edges) - 1] for bound in self.bounds)
        start, end = max(low, self.edges[0]), min(high, self.edges[-1])
        # the last number that each bin holds
        below = last if self.whole else np.append(np.nextafter(last[:-1], -math.inf), last[-1])
        inside = (low <= first) & (high >= below)
        if self.whole:
            overlap = np.minimum(math.floor(end), last) - np.maximum(math.ceil(start), first) + 1
            share = np.clip(overlap / (last - first + 1), 0.0, 1.0)
            touched = share > 0
        else:
            share = np.clip((np.minimum(end, last) - np.maximum(start, first)) / (last - first), 0.0, 1.0)
            share[inside] = 1.0
            touched = (low <= below) & (high >= first)
            ends = {float(v): self._share_of_one(v) for v in (start, end)}  # bins in which the range has a single value
            for value, part in ends.items():
                i = self.cell(value)
                share[i] = max(share[i], part) if touched[i] else share[i]
        none = np.zeros(self.size - len(share), bool)
        return Cover(np.append(inside, none), np.append(touched, none), np.append(share, none)).settle()

    def _cover_values(self, wanted: Iterable[Any]) -> Cover:
        """Return the cover of a list: a value is one of those in its bin, a label is the whole bin."""
        inside, share = np.zeros(self.size, bool), np.zeros(self.size)
        touched = inside.copy()
        listed = list(wanted)
        points = {float(v) for v in listed if _is_number(v)}
        for value in (v for v in listed if not _is_number(v)):
            inside[super().cell(value)] = True
        if self.whole and any(not v.is_integer() for v in points):
            raise self.unknown_value(next(v for v in listed if _is_number(v) and not float(v).is_integer()))
        for value in points:
            i = self.cell(value)
            touched[i] = True
            share[i] += self._share_of_one(value)
        if self.whole:
            inside |= share > 1 - 1e-9
        share = np.where(inside, 1.0, np.minimum(share, 1.0))
        return Cover(inside, touched | inside, share).settle()

    def _share_of_one(self, value: float) -> float:
        """Return the interpolated share of one value in its bin.

        In a range of whole numbers it is one over their number. Otherwise it is 0, except for a whole value in a bin
        wider than 1, whose values may all be whole.
        """
        i = self.cell(value)
        width = self.edges[i + 1] - self.edges[i]
        if self.whole:
            return 1.0 / (width + (i == len(self.edges) - 2))
        return 1.0 / width if width > 1 and float(value).is_integer() else 0.0

    @staticmethod
    def _cuts(
        low: float | None, high: float | None, bins: int | None, edges: Sequence[float] | None
    ) -> NDArray[np.float64]:
        """Return the edges of the bins, checked."""
        if edges is not None:
            if low is not None or high is not None or bins is not None:
                raise InvalidInput(
                    "A Range must have low, high and bins, or edges. Found both. Leave one of the two out."
                )
            if isinstance(edges, str) or not hasattr(edges, "__len__") or any(map(math.isnan, map(number, edges))):
                raise InvalidInput(
                    f"The edges of a Range must be a list of increasing numbers. Found {edges!r:.60}. Give one, as in "
                    "Range(edges=[0, 10, 100])."
                )
            if len(edges) - 1 > MOST_BINS:
                raise TooLarge(
                    f"The bins of a Range must be at most {MOST_BINS}. Found {len(edges) - 1}. Use wider ones."
                )
            cuts = np.asarray(edges, float)
        elif low is None or high is None or bins is None:
            raise InvalidInput(
                f"A Range must have low, high and bins, or edges. Found low={low!r}, high={high!r}, bins={bins!r}. For "
                "example Range(17, 90, bins=8)."
            )
        elif not (math.isfinite(number(low)) and math.isfinite(number(high))):
            raise InvalidInput(
                f"The ends of a Range must be finite numbers. Found ({low!r}, {high!r}). Give the least and the "
                "greatest number, or Dates for dates."
            )
        elif whole("bins", bins, "Give the number of bins.") > MOST_BINS:
            raise TooLarge(f"The bins of a Range must be at most {MOST_BINS}. Found {int(bins)}. Use wider ones.")
        else:
            cuts = np.linspace(low, high, int(bins) + 1)
        if len(cuts) < 2 or not np.isfinite(cuts).all() or not (np.diff(cuts) > 0).all():
            raise InvalidInput(
                f"The edges of a Range must be finite and increasing. Found {cuts.tolist()[:6]!r}. "
                "Give low < high, or at least two increasing edges."
            )
        return cuts

    def cell(self, value: Any) -> int:
        """Return the bin of a number in the range, or the cell of a label. Refuse any other value."""
        if _is_number(value) and self.edges[0] <= value <= self.edges[-1]:
            return min(int(np.searchsorted(self.edges, value, side="right")) - 1, len(self.edges) - 2)
        return super().cell(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, NUMBERS)


def _whole_cuts(cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the edges of bins of whole numbers up, and refuse bins that would be empty."""
    if not (float(cuts[0]).is_integer() and float(cuts[-1]).is_integer()):
        raise InvalidInput(
            f"The ends of a Range of whole numbers must be whole. Found {cuts[0]:g} and {cuts[-1]:g}. Round them."
        )
    rounded = np.ceil(cuts)
    if not (np.diff(rounded) > 0).all():
        raise InvalidInput(
            f"The bins of a Range of whole numbers must each hold one. Found {len(cuts) - 1} bins from {cuts[0]:g} to "
            f"{cuts[-1]:g}. Use fewer bins, or Integers."
        )
    return rounded
