"""The base of attributes: predicates on cells, and the extra cells for missing and other values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow._checks import did_you_mean
from hedgerow.errors import InvalidInput

OTHER = "(other)"  # label of the extra cell of an attribute declared with other=True
MISSING = "(missing)"  # label of the extra cell of an attribute declared with missing=True
BLANKS = " \t\n\r\f\v"  # characters that are stripped around a text or a number
MOST_BINS = 2**20  # a Range or Dates lists its bins, and has at most this many
# The attributes of a universe that is read have at most this many cells in total, because a short record, such as two
# ends of Integers, can declare any number of them.
MOST_CELLS = 2**21
KEPT_CELLS = 2**18  # most cells in the covers that an attribute keeps
LONGEST_NUMBER = 40  # characters of a number that a message shows whole
PLAIN = {int, float, str, bool, type(None)}  # a predicate of such values, and of no subclass, is known by them
NUMBERS = (int, float, np.number)


@dataclass(frozen=True)
class not_:
    """Negation of a predicate on one attribute.

    Parameters
    ----------
    predicate
        A value, a set of values or a range, as in ``count``.

    Example
    -------
    >>> count(region=not_("north"))  # doctest: +SKIP
    """

    predicate: Any


class Cover(NamedTuple):
    """Relation of a predicate on values to the cells: covered completely, in part, and by interpolation to which share.

    A cell that is ``inside`` holds only values that satisfy the predicate. A cell that is not ``touched`` holds none
    that do.
    """

    inside: NDArray[np.bool_]
    touched: NDArray[np.bool_]
    share: NDArray[Any]

    @classmethod
    def exactly(cls, mask: NDArray[np.bool_]) -> Cover:
        """Return the cover of whole cells: no cell is cut."""
        return cls(mask, mask, mask)

    @property
    def is_exact(self) -> bool:
        """True if no cell is cut."""
        return self.inside is self.touched

    def settle(self) -> Cover:
        """Return an equal cover that is marked as exact if no cell is cut."""
        return Cover.exactly(self.inside) if np.array_equal(self.inside, self.touched) else self

    def __invert__(self) -> Cover:
        if self.is_exact:
            return Cover.exactly(~self.inside)
        return Cover(~self.touched, ~self.inside, 1.0 - self.share)

    def __and__(self, other: Cover) -> Cover:
        if self.is_exact and other.is_exact:
            return Cover.exactly(self.inside & other.inside)
        share = self.share * other.share
        return Cover(self.inside & other.inside, self.touched & other.touched, share).settle()


@dataclass(frozen=True, repr=False)
class Attribute:
    """One column of the universe: its cells, their labels and, for numbers, their representative values."""

    labels: Sequence[Any]
    values: NDArray[np.float64] | None = field(default=None, compare=False)
    other: bool = False
    ordered: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if self.values is not None:  # a universe is immutable: its meaning cannot change during a session
            fixed = self.values.copy()
            fixed.flags.writeable = False
            object.__setattr__(self, "values", fixed)

    def draw(self, cells: NDArray[np.integer[Any]], uniforms: NDArray[np.float64]) -> list[Any] | NDArray[Any]:
        """Draw a value of each cell, for synthetic records.

        It is the label of the cell or, if the cell holds many values, the value that the uniform number in [0, 1)
        selects.

        Parameters
        ----------
        cells : array of int
            The cells, one for each record.
        uniforms : array of float
            Numbers in [0, 1), one for each record.

        Returns
        -------
        list or array

        Example
        -------
        >>> hr.Flag().draw(np.array([1, 0]), np.array([0.5, 0.5]))
        [True, False]
        """
        return [self.labels[cell] for cell in cells.tolist()]

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.labels)

    def require_room(self, each: int = 1) -> None:
        """Refuse to make an array of ``each`` bytes per cell if it exceeds the memory limit.

        Parameters
        ----------
        each : int
            The bytes that the array needs for one cell.

        Raises
        ------
        TooLarge
            If the array would exceed the memory limit.

        Example
        -------
        >>> hr.Integers(0, 9).require_room(8)
        """
        if _memory.fits(self.size, each):
            return
        way_out = "Declare it in fewer cells, as a Range with bins"
        _memory.require(
            f"An array over the values of an attribute ({self._describe_labels()})", self.size, each, way_out
        )

    @property
    def listed(self) -> Sequence[Any]:
        """Labels without those of the extra cells."""
        return self.labels[: self.size - self.missing - self.other]

    @property
    def plain_labels(self) -> Sequence[Any]:
        """Labels as values of the column; for bins of dates their first days."""
        return self.labels

    @property
    def missing_cell(self) -> int | None:
        """Extra cell for missing values, or None."""
        return self.size - 1 - self.other if self.missing else None

    @property
    def other_cell(self) -> int | None:
        """Extra cell for undeclared values, or None."""
        return self.size - 1 if self.other else None

    def cell(self, value: Any) -> int:
        """Return the cell of a declared value. None stands for a missing value. Refuse any other value.

        Parameters
        ----------
        value
            A value of the column.

        Returns
        -------
        int

        Raises
        ------
        InvalidInput
            If the attribute does not declare the value.

        Example
        -------
        >>> hr.Categories(["north", "south"]).cell("south")
        1
        """
        if value is None and self.missing_cell is not None:
            return self.missing_cell
        try:
            return self._positions[value]
        except (KeyError, TypeError):
            raise self.unknown_value(value) from None

    def has_label(self, value: Any) -> bool:
        """Return True for the label of a cell.

        Parameters
        ----------
        value
            Any value.

        Returns
        -------
        bool

        Example
        -------
        >>> hr.Categories(["north", "south"]).has_label("west")
        False
        """
        try:
            return value in self._positions
        except TypeError:  # a value without a hash
            return False

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Lowest and highest number that each cell may hold, NaN for a cell without numbers; None for mere labels."""
        return None if self.values is None else (self.values, self.values)

    @property
    def has_bins(self) -> bool:
        """True if a cell is a bin, which may hold many values."""
        return False

    @property
    def is_whole(self) -> bool:
        """True if the numbers are whole numbers."""
        return False

    @property
    def value_type(self) -> type:
        """The type of the values in SQL: bool, int, float or, by default, str."""
        return str

    @property
    def is_number(self) -> bool:
        """True if a model may use the column as one number. Of any other column it uses one number per label."""
        return False

    @property
    def days(self) -> range | None:
        """The days of a column of dates, as numbers; None for any other column."""
        return None

    @property
    def is_truth(self) -> bool:
        """True if each value is true or false, so that the column is a condition by itself."""
        return False

    @property
    def scale(self) -> tuple[float, float]:
        """Center and half width of the public bounds of the numbers: (value − center)/half width lies in [−1, 1]."""
        low, high = self._outer_numbers
        return float(low + high) / 2, float(high - low) / 2 or 1.0

    @property
    def _outer_numbers(self) -> tuple[float, float]:
        assert self.values is not None
        known = self.values[~np.isnan(self.values)]
        return known.min(), known.max()

    @property
    def absent_cells(self) -> NDArray[np.bool_]:
        """The cells whose records have no value in this column, as a mask: NULL in SQL."""
        absent = np.zeros(self.size, bool)
        if self.missing_cell is not None:
            absent[self.missing_cell] = True
        if self.other_cell is not None and self.values is not None:  # records in the extra cell have no number
            absent[self.other_cell] = True
        return absent

    @property
    def compared_with(self) -> tuple[type, ...]:
        """The types of values that < and > compare an ordered column with."""
        return int, float

    @property
    def texts(self) -> Sequence[Any] | None:
        """All values that the column may have, if these are labels that LIKE may compare; None otherwise."""
        return None

    @property
    def ignores_case(self) -> bool:
        """True if texts that differ in upper and lower case only are one value."""
        return False

    def read_literal(self, value: Any) -> Any:
        """Return a literal of SQL in the type in which the attribute declares its values.

        Parameters
        ----------
        value
            A number, text or truth value.

        Returns
        -------
        object

        Example
        -------
        >>> hr.Flag().read_literal(1), hr.Integers(0, 9).read_literal(2.0)
        (True, 2)
        """
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def cover(self, predicate: Any, *more: Any) -> Cover:
        """Return the cover of the cells by a predicate, or by several predicates together. See ``Cover``.

        A predicate is a value, a set, an inclusive (low, high) range in which ``None`` leaves an end open, a boolean
        mask of cells, or ``not_`` of one of these. Labels and masks mean whole cells. Numbers outside the declared
        range were clamped, so they count as its nearest end.

        Parameters
        ----------
        predicate
            A value, a set, a range, a mask, or ``not_`` of one of these.
        *more
            Further predicates, which must hold as well.

        Returns
        -------
        Cover

        Raises
        ------
        InvalidInput
            If a predicate does not fit the attribute.

        Example
        -------
        >>> hr.Integers(0, 4).cover((3, None)).inside.tolist()
        [False, False, False, True, True]
        """
        if not more:
            return self._kept_cover(predicate)
        self.require_room()
        if all(isinstance(p, tuple) for p in (predicate, *more)):
            ends = [self.ends_of_range(p) for p in (predicate, *more)]
            low, high = max(e[0] for e in ends), min(e[1] for e in ends)
            return self._cover_between(low, high) if low <= high else Cover.exactly(np.zeros(self.size, bool))
        found = self._cover(predicate)
        for further in more:
            found = found & self._cover(further)
        return found

    def _kept_cover(self, predicate: Any) -> Cover:
        """Return the cover of one predicate. Those of values and ranges are kept, because they come again."""
        kind = type(predicate)
        if kind in PLAIN:
            key: Hashable = kind, predicate  # True is no 1
        elif kind is tuple and len(predicate) == 2 and type(predicate[0]) in PLAIN and type(predicate[1]) in PLAIN:
            key = kind, type(predicate[0]), type(predicate[1]), predicate
        else:
            self.require_room()
            return self._cover(predicate)
        kept: dict[Hashable, Cover] = self.__dict__.setdefault("_covers", {})
        found = kept.get(key)
        if found is None:
            self.require_room()
            found = self._cover(predicate)
            for array in found:
                array.flags.writeable = False
            if len(kept) >= max(1, KEPT_CELLS // self.size):
                kept.clear()
            kept[key] = found
        return found

    def _cover(self, predicate: Any) -> Cover:
        """Return the cover of one predicate."""
        if isinstance(predicate, np.ndarray):
            predicate = np.asarray(predicate)  # drops a subclass of ndarray, as in ``mask``
            if predicate.dtype == bool:
                return Cover.exactly(self.mask(predicate))
        if isinstance(predicate, not_):
            return ~self._cover(predicate.predicate)
        if isinstance(predicate, tuple):
            return self._cover_between(*self.ends_of_range(predicate))
        return self._cover_values(_listed_values(predicate))

    def _cover_between(self, low: float, high: float) -> Cover:
        """Return the cover of an inclusive range."""
        self.require_meeting(low, high)
        assert self.values is not None
        return Cover.exactly((self.values >= low) & (self.values <= high))

    def require_meeting(self, low: float, high: float) -> None:
        """Refuse a range in which no declared value lies.

        Parameters
        ----------
        low, high : float
            The ends of the range.

        Raises
        ------
        InvalidInput
            If the range lies outside the declared one.

        Example
        -------
        >>> hr.Integers(0, 9).require_meeting(5, 20)
        """
        least, most = self._extent
        if low > most or high < least:
            raise InvalidInput(
                f"A range must overlap the declared range, {_brief(self._write_label(least))} to "
                f"{_brief(self._write_label(most))}. Found ({_brief(repr(low))}, {_brief(repr(high))}), where no record "
                "can be. Ask about declared values, or declare more."
            )

    def _write_label(self, number: float) -> str:
        return f"{number:g}"

    def _cover_values(self, wanted: Iterable[Any]) -> Cover:
        """Return the cover of a list of values."""
        mask = np.zeros(self.size, bool)
        for value in wanted:
            mask[self.cell(value)] = True
        return Cover.exactly(mask)

    def mask(self, predicate: Any) -> NDArray[np.bool_]:
        """Return the cells of the coded table that satisfy a predicate.

        A predicate is a value, a set, a range, a mask, or ``not_`` of one of these. A range is inclusive, and ``None``
        leaves an end open. A cell is in the range if its representative value is; a value stands for its whole cell.
        ``cover`` treats a predicate as a statement about values instead.

        Parameters
        ----------
        predicate
            A value, a set, a range, a mask, or ``not_`` of one of these.

        Returns
        -------
        array of bool
            One entry for each cell.

        Raises
        ------
        InvalidInput
            If the predicate does not fit the attribute.

        Example
        -------
        >>> hr.Categories(["north", "south"]).mask(hr.not_("north")).tolist()
        [False, True]
        """
        self.require_room()
        if isinstance(predicate, np.ndarray):
            predicate = np.array(predicate)  # drops a subclass of ndarray, which could misbehave and see private counts
        if isinstance(predicate, np.ndarray) and predicate.dtype == bool:
            # a copy, because the caller may change the array later, or pass a subclass with methods of its own
            mask = np.array(predicate, dtype=bool)
            if mask.shape != (self.size,):
                raise InvalidInput(
                    f"A mask must have one entry per cell ({self.size}). Found shape {mask.shape}. "
                    "Give one boolean for every cell of the attribute."
                )
            return mask
        if isinstance(predicate, not_):
            return ~self.mask(predicate.predicate)
        if isinstance(predicate, tuple):
            return self._between(predicate)
        mask = np.zeros(self.size, bool)
        for value in _listed_values(predicate):
            mask[self.cell(value)] = True
        return mask

    def _between(self, ends: tuple[Any, ...]) -> NDArray[np.bool_]:
        """Return the cells whose representative value lies in a range."""
        low, high = self.ends_of_range(ends)
        assert self.values is not None
        inside: NDArray[np.bool_] = (self.values >= low) & (self.values <= high)
        return inside

    def ends_of_range(self, ends: tuple[Any, ...]) -> tuple[float, float]:
        """Return the two ends of a range, infinite for an open end.

        Parameters
        ----------
        ends : tuple
            The pair (low, high). None leaves an end open.

        Returns
        -------
        tuple of two float

        Raises
        ------
        InvalidInput
            If the attribute has no order, or the ends are not two numbers in order.

        Example
        -------
        >>> hr.Integers(0, 9).ends_of_range((3, None))
        (3, inf)
        """
        if not self.ordered or self.values is None:
            raise InvalidInput(
                f"A range must be for an attribute with an order. Found {ends!r} for {self._describe_labels()}. "
                "Give a set of values instead."
            )
        if len(ends) != 2:
            raise InvalidInput(f"A range must be (low, high). Found {ends!r}. Use a set for a list of values.")
        for end in ends:
            if end is not None and not isinstance(end, NUMBERS) and not isinstance(end, numbers.Real):
                raise InvalidInput(
                    f"The ends of a range must be numbers, or None. Found {end!r}. Use a set for a list of values."
                )
        low, high = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
        if not low <= high:
            raise InvalidInput(f"A range must have low <= high. Found ({low!r}, {high!r}). Swap the two ends.")
        return low, high

    @cached_property
    def _extent(self) -> tuple[float, float]:
        """Least and greatest number that the attribute may hold."""
        assert self.bounds is not None
        return float(np.nanmin(self.bounds[0])), float(np.nanmax(self.bounds[1]))

    @property
    def _positions(self) -> dict[Any, int]:
        """Cells by label."""
        cached: dict[Any, int] | None = self.__dict__.get("_cached_positions")
        if cached is None:
            cached = {label: i for i, label in enumerate(self.labels)}
            self.__dict__["_cached_positions"] = cached
        return cached

    def _describe_labels(self) -> str:
        """Return the first labels as text, for messages."""
        shown = ", ".join(repr(v) for v in self.labels[:6])
        return shown + (f", … ({self.size} in all)" if self.size > 6 else "")

    def _likely_value(self, value: Any) -> str:
        """Return a question whether a declared value was meant, for messages, or nothing."""
        return did_you_mean(value, self.labels)

    def unknown_value(self, value: Any) -> InvalidInput:
        """Return the error about an undeclared value.

        Parameters
        ----------
        value
            The value that was given.

        Returns
        -------
        InvalidInput

        Example
        -------
        >>> "Did you mean 'north'?" in str(hr.Categories(["north", "south"]).unknown_value("noth"))
        True
        """
        return InvalidInput(
            f"A value must be one that the universe declares: {self._describe_labels()}. Found {value!r}."
            f"{self._likely_value(value)} Check the spelling, or declare it in the universe."
        )

    def __repr__(self) -> str:
        shown = [*map(repr, self.listed[:4]), *(["…", repr(self.listed[-1])] if len(self.listed) > 4 else [])]
        extras = "".join(f", {name}=True" for name in ("other", "missing") if getattr(self, name))
        return f"{type(self).__name__}({len(self.listed)} cells: {', '.join(shown)}{extras})"


def _listed_values(predicate: Any) -> Iterable[Any]:
    """Return the values that a predicate lists; a single value is a list of one."""
    return predicate if isinstance(predicate, set | frozenset | list | np.ndarray) else [predicate]


def with_extras(labels: Sequence[Any], missing: bool, other: bool) -> tuple[Any, ...]:
    """Return the labels of the declared cells followed by those of the extra cells."""
    return (*labels, *([MISSING] if missing else []), *([OTHER] if other else []))


def values_with_extras(values: NDArray[np.float64], missing: bool, other: bool) -> NDArray[np.float64]:
    """Append NaN for each extra cell, which has no value."""
    return np.append(values, [np.nan] * (missing + other))


def _brief(written: str) -> str:
    """Return a number as it is written, or its first digits and how many there are, if they would fill a page."""
    return written if len(written) <= LONGEST_NUMBER else f"{written[:12]}… ({len(written)} characters)"
