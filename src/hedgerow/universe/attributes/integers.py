"""Integers: whole numbers, one cell each."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes.attribute import Attribute, Cover, with_extras

LARGEST_NUMBER = 10**300  # largest end of Integers in absolute value, so that floats hold sums of many such numbers


@dataclass(frozen=True, init=False)
class Integers(Attribute):
    """Whole numbers from ``low`` to ``high``, one cell each.

    Other numbers are clamped. Missing values go to ``low``, or to an extra cell with ``missing=True`` or
    ``other=True``.

    Parameters
    ----------
    low, high : int
        Least and greatest value, both included.
    other : bool
        Add a cell for values that are no numbers.
    missing : bool
        Add a cell for missing values.

    Raises
    ------
    InvalidInput
        If the ends are not whole numbers in order, or exceed 10^300.

    Example
    -------
    >>> hr.Integers(0, 9, missing=True).size
    11
    """

    low: int = 0
    high: int = 0

    def __init__(self, low: int, high: int, *, other: bool = False, missing: bool = False) -> None:
        if not (_is_whole(low) and _is_whole(high)) or low > high:
            raise InvalidInput(
                f"Integers must have whole ends with low <= high. Found ({low!r}, {high!r}). Give the least and "
                "greatest value."
            )
        low, high = int(low), int(high)
        if max(abs(low), abs(high)) > LARGEST_NUMBER:
            raise InvalidInput(
                "Integers must have ends of at most 10^300, because means are computed in floats. Found larger ones. "
                "Declare Categories."
            )
        labels = WholeLabels(low, high, with_extras((), missing, other))
        fields = {"labels": labels, "other": other, "ordered": True, "missing": missing, "low": low, "high": high}
        for name, given in fields.items():  # all fields but ``values``, a large array that is made on demand
            object.__setattr__(self, name, given)

    @cached_property  # type: ignore[misc]
    def values(self) -> NDArray[np.float64]:
        """The numbers as floats, NaN for an extra cell. The array is made when it is first needed."""
        self.require_room(_memory.ARRAY)
        found = np.full(self.size, np.nan)
        plain = self.low >= -(2**63) and self.high < 2**63 - 1  # all numbers fit into 64-bit integers
        found[: len(self.listed)] = np.arange(self.low, self.high + 1) if plain else list(map(float, self.listed))
        found.flags.writeable = False
        return found

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.high - self.low + 1 + self.missing + self.other

    @property
    def listed(self) -> range:
        """The declared numbers, without the extra cells."""
        return range(self.low, self.high + 1)

    @property
    def value_type(self) -> type:
        """The type of whole numbers."""
        return int

    @property
    def is_number(self) -> bool:
        """True: a model uses the number itself."""
        return True

    @property
    def is_whole(self) -> bool:
        """True."""
        return True

    def cell(self, value: Any) -> int:
        """Return the cell of a declared number or extra label. Refuse any other value."""
        found = self.labels.position(value)  # type: ignore[attr-defined]
        if found is not None:
            return int(found)
        if value is None and self.missing_cell is not None:
            return self.missing_cell
        raise self.unknown_value(value)

    def _likely_value(self, value: Any) -> str:
        if isinstance(value, str) and number_of_text(value) in self.listed:
            return f" Did you mean {number_of_text(value)}?"
        return ""

    def _cover_values(self, wanted: Iterable[Any]) -> Cover:
        values = list(wanted)
        if set(map(type, values)) == {int} and self.low <= min(values) and max(values) <= self.high:
            mask = np.zeros(self.size, bool)
            mask[[value - self.low for value in values] if self.low else values] = True
            return Cover.exactly(mask)
        return super()._cover_values(values)

    def _between(self, ends: tuple[Any, ...]) -> NDArray[np.bool_]:
        return self._cells_between(*self.ends_of_range(ends))

    def _cover_between(self, low: float, high: float) -> Cover:
        self.require_meeting(low, high)
        return Cover.exactly(self._cells_between(low, high))

    def _cells_between(self, low: float, high: float) -> NDArray[np.bool_]:
        """Return the cells in a range, computed in whole numbers because floats cannot tell them apart above 2^53."""
        first = self.low if low == -math.inf else max(self.low, math.ceil(low))
        last = self.high if high == math.inf else min(self.high, math.floor(high))
        mask = np.zeros(self.size, bool)
        if first <= last:
            mask[first - self.low : last - self.low + 1] = True
        return mask

    @property
    def _extent(self) -> tuple[int, int]:
        return self.low, self.high

    def _write_label(self, number: float) -> str:
        return str(number)

    def __hash__(self) -> int:
        return hash((Integers, self.low, self.high, self.missing, self.other))

    def __repr__(self) -> str:
        extras = "".join(f", {name}=True" for name in ("other", "missing") if getattr(self, name))
        return f"Integers({self.low}, {self.high}{extras})"


class WholeLabels(Sequence[Any]):
    """Labels of Integers: whole numbers from low to high, then the extra labels. Nothing is stored per number.

    It equals the tuple of all these labels.
    """

    def __init__(self, low: int, high: int, extras: tuple[str, ...]) -> None:
        self._numbers, self._extras = range(low, high + 1), extras
        self._count = high - low + 1

    def __len__(self) -> int:
        return self._count + len(self._extras)

    def __getitem__(self, place: Any) -> Any:
        size = self._count + len(self._extras)
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(size)))
        place = operator.index(place)
        if not -size <= place < size:
            raise IndexError("The place of a label must be a cell of the attribute.")
        place %= size
        return self._numbers[place] if place < self._count else self._extras[place - self._count]

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain(self._numbers, self._extras)

    def __contains__(self, value: Any) -> bool:
        return self.position(value) is not None

    def position(self, value: Any) -> int | None:
        """Return the cell of a label, or None. As in a dictionary, 3, 3.0 and NumPy's 3 are the same."""
        try:
            hash(value)
            number = int(value)
            if number == value:
                return number - self._numbers.start if number in self._numbers else None
        except (TypeError, ValueError, ArithmeticError):  # not a number, or infinite
            pass
        return self._count + self._extras.index(value) if value in self._extras else None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WholeLabels):
            return (self._numbers, self._extras) == (other._numbers, other._extras)
        if not isinstance(other, tuple):
            return NotImplemented
        return len(other) == self._count + len(self._extras) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"{self._numbers[0]!r} … {self._numbers[-1]!r}" + "".join(f", {extra!r}" for extra in self._extras)


def number_of_text(text: str) -> int | None:
    """Return the whole number that a text spells, or None."""
    try:
        return int(text.strip())
    except ValueError:
        return None


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def integer_coded(name: str, size: int) -> Integers:
    """Return the attribute of an integer-coded column with this many values: 0 … size − 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InvalidInput(
            f"The size of {name!r} must be a whole number of at least 1. Found {size!r}. Correct the domain."
        )
    return Integers(0, size - 1)
