"""Columns that a universe may declare: their cells, the labels of the cells and, for numbers, their values.

A value outside the declaration has a declared place. Numbers are clamped to the nearest end. Unknown categories and
missing values go to the first cell or, with ``other=True``, to one extra last cell. With ``missing=True`` missing
values have an extra cell of their own. Values are never dropped, counted or warned about, so nothing about them leaks.
``dates`` has the attribute for dates.
"""

from __future__ import annotations

import itertools
import math
import numbers
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow import _memory
from hedgerow.errors import InvalidInput, TooLarge

OTHER = "(other)"  # label of the extra cell of an attribute declared with other=True
MISSING = "(missing)"  # label of the extra cell of an attribute declared with missing=True
BLANKS = " \t\n\r\f\v"  # characters that are stripped around a text or a number
TRUE_WORDS = ("true", "t", "yes", "y")
FALSE_WORDS = ("false", "f", "no", "n")
LARGEST_NUMBER = 10**300  # largest end of Integers in absolute value, so that floats hold sums of many such numbers
MOST_BINS = 2**20  # a Range or Dates lists its bins, and has at most this many


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


@dataclass(frozen=True)
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
        """
        return [self.labels[cell] for cell in cells.tolist()]

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.labels)

    def require_room(self, each: int = 1) -> None:
        """Refuse to make an array of ``each`` bytes per cell if it exceeds the memory limit."""
        way_out = "Declare it in fewer cells, as a Range with bins"
        _memory.require(
            f"An array over the values of an attribute ({self._describe_labels()})", self.size, each, way_out
        )

    @property
    def listed(self) -> Sequence[Any]:
        """Labels without those of the extra cells."""
        return self.labels[: self.size - self.missing - self.other]

    @property
    def missing_cell(self) -> int | None:
        """Extra cell for missing values, or None."""
        return self.size - 1 - self.other if self.missing else None

    @property
    def other_cell(self) -> int | None:
        """Extra cell for undeclared values, or None."""
        return self.size - 1 if self.other else None

    def cell(self, value: Any) -> int:
        """Return the cell of a declared value. None stands for a missing value. Refuse any other value."""
        if value is None and self.missing_cell is not None:
            return self.missing_cell
        try:
            return self._positions[value]
        except (KeyError, TypeError):
            raise self._unknown(value) from None

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Lowest and highest number that each cell may hold, NaN for a cell without numbers; None for mere labels."""
        return None if self.values is None else (self.values, self.values)

    @property
    def is_whole(self) -> bool:
        """True if the numbers are whole numbers."""
        return False

    def cover(self, predicate: Any, *more: Any) -> Cover:
        """Return the cover of the cells by a predicate, or by several predicates together. See ``Cover``.

        A predicate is a value, a set, an inclusive (low, high) range in which ``None`` leaves an end open, a boolean
        mask of cells, or ``not_`` of one of these. Labels and masks mean whole cells. Numbers outside the declared
        range were clamped, so they count as its nearest end.
        """
        self.require_room()
        if not more:
            return self._cover(predicate)
        if all(isinstance(p, tuple) for p in (predicate, *more)):
            ends = [self._ends(p) for p in (predicate, *more)]
            low, high = max(e[0] for e in ends), min(e[1] for e in ends)
            return self._cover_between(low, high) if low <= high else Cover.exactly(np.zeros(self.size, bool))
        found = self._cover(predicate)
        for further in more:
            found = found & self._cover(further)
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
            return self._cover_between(*self._ends(predicate))
        return self._cover_values(_listed_values(predicate))

    def _cover_between(self, low: float, high: float) -> Cover:
        """Return the cover of an inclusive range."""
        self.require_meeting(low, high)
        assert self.values is not None
        return Cover.exactly((self.values >= low) & (self.values <= high))

    def require_meeting(self, low: float, high: float) -> None:
        """Refuse a range in which no declared value lies."""
        least, most = self._extent
        if low > most or high < least:
            raise InvalidInput(
                f"A range must overlap the declared range, {self._write_label(least)} to {self._write_label(most)}. Found "
                f"({low!r}, {high!r}), where no record can be. Ask about declared values, or declare more."
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
        low, high = self._ends(ends)
        assert self.values is not None
        inside: NDArray[np.bool_] = (self.values >= low) & (self.values <= high)
        return inside

    def _ends(self, ends: tuple[Any, ...]) -> tuple[float, float]:
        """Return the two ends of a range, infinite for an open end."""
        if not self.ordered or self.values is None:
            raise InvalidInput(
                f"A range must be for an attribute with an order. Found {ends!r} for {self._describe_labels()}. "
                "Give a set of values instead."
            )
        if len(ends) != 2:
            raise InvalidInput(f"A range must be (low, high). Found {ends!r}. Use a set for a list of values.")
        for end in ends:
            if end is not None and not isinstance(end, _NUMBERS) and not isinstance(end, numbers.Real):
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

    def _unknown(self, value: Any) -> InvalidInput:
        """Return the error about an undeclared value."""
        return InvalidInput(
            f"A value must be one that the universe declares: {self._describe_labels()}. Found {value!r}. "
            "Check the spelling, or declare it in the universe."
        )


def _listed_values(predicate: Any) -> Iterable[Any]:
    """Return the values that a predicate lists; a single value is a list of one."""
    return predicate if isinstance(predicate, set | frozenset | list | np.ndarray) else [predicate]


def with_extras(labels: Sequence[Any], missing: bool, other: bool) -> tuple[Any, ...]:
    """Return the labels of the declared cells followed by those of the extra cells."""
    return (*labels, *([MISSING] if missing else []), *([OTHER] if other else []))


def values_with_extras(values: NDArray[np.float64], missing: bool, other: bool) -> NDArray[np.float64]:
    """Append NaN for each extra cell, which has no value."""
    return np.append(values, [np.nan] * (missing + other))


@dataclass(frozen=True, init=False)
class Categories(Attribute):
    """A column with a fixed list of values.

    Unlisted values go to the first one, or to an extra cell with ``other=True``.

    Parameters
    ----------
    values : iterable
        The possible values.
    other : bool
        Add a cell for values that are not listed.
    spaces : {"strip", "exact"}, optional
        "strip" ignores blanks around a text. Default: "strip", unless two labels differ by blanks only.
    case : {"exact", "ignore"}
        "ignore" ignores upper and lower case.
    missing : bool
        Add a cell for missing values. A label None has the same effect under its own name.

    Example
    -------
    >>> Categories(["F", "M"], other=True)  # doctest: +SKIP
    """

    spaces: str = "strip"
    case: str = "exact"

    def __init__(
        self,
        values: Iterable[Any],
        *,
        other: bool = False,
        spaces: Literal["strip", "exact"] | None = None,
        case: Literal["exact", "ignore"] = "exact",
        missing: bool = False,
    ) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidInput(
                f"Categories must be a list of values. Found {values!r}. List them, as in Categories(['F', 'M'])."
            )
        labels = list(values)
        if not labels:
            raise InvalidInput(
                "Categories must have at least one value. Found none. List the values the column may take."
            )
        _require_distinct(labels)
        for label, extra, wanted in ((OTHER, "other", other), (MISSING, "missing", missing)):
            if wanted and label in labels:
                raise InvalidInput(
                    f"Categories must not list {label!r} with {extra}=True. Found it. Rename it, or drop one."
                )
        if missing and None in labels:
            raise InvalidInput("Categories must not list None with missing=True. Found it. Drop one of the two.")
        if spaces not in (None, "strip", "exact") or case not in ("exact", "ignore"):
            raise InvalidInput(
                f"spaces must be 'strip' or 'exact', and case 'exact' or 'ignore'. Found {spaces!r} and {case!r}. "
                "Choose from these."
            )
        texts = [label for label in labels if isinstance(label, str)]
        if spaces is None:
            alike = len({spelling(text, "strip", case) for text in texts}) < len(texts)
            spaces = "exact" if alike else "strip"
        if len({spelling(text, spaces, case) for text in texts}) < len(texts):
            raise InvalidInput(
                f"Categories must differ by more than spaces={spaces!r} and case={case!r} ignore. "
                "Found two that do not. Remove one, or declare that the difference matters."
            )
        super().__init__(with_extras(labels, missing, other), None, other, False, missing)
        object.__setattr__(self, "spaces", spaces)
        object.__setattr__(self, "case", case)

    def spell(self, text: str) -> str:
        """Return a text in the form in which this attribute compares it."""
        return spelling(text, self.spaces, self.case)

    def cell(self, value: Any) -> int:
        """Return the cell of a value, with blanks and case ignored as declared."""
        if isinstance(value, str) and value not in self.labels:
            for i, label in enumerate(self.listed):
                if isinstance(label, str) and self.spell(label) == self.spell(value):
                    return i
        return super().cell(value)


def spelling(text: str, spaces: str, case: str) -> str:
    """Strip blanks and fold case, as far as ``spaces`` and ``case`` say."""
    text = text.strip(BLANKS) if spaces == "strip" else text
    return text.casefold() if case == "ignore" else text


def _require_distinct(labels: list[Any]) -> None:
    """Refuse labels that are repeated or not hashable."""
    try:
        distinct = len(set(labels)) == len(labels)
    except TypeError:
        raise InvalidInput(
            "Categories must be plain values: texts, numbers, dates. Found one that has no hash, such as a list. Name "
            "it."
        ) from None
    if not distinct:
        raise InvalidInput("Categories must be distinct. Found a value twice. Remove the repeats.")


@dataclass(frozen=True, init=False)
class Flag(Attribute):
    """A yes/no column.

    A value is True if it is one of true, t, yes, y and 1, or one of the words in ``true``; blanks and case are ignored.
    Any other value is False. With ``other=True`` any other value goes to an extra cell, unless it is one of false, f,
    no, n and 0, or one of the words in ``false``. A boolean itself, and its text as a file has it, is always
    recognized.

    Parameters
    ----------
    true, false
        A word or number, or a list of these, instead of the usual words.
    other : bool
        Add a cell for values that are neither.
    missing : bool
        Add a cell for missing values.
    """

    true: tuple[Any, ...] = (*TRUE_WORDS, 1)
    false: tuple[Any, ...] = (*FALSE_WORDS, 0)

    def __init__(self, true: Any = None, false: Any = None, *, other: bool = False, missing: bool = False) -> None:
        words = _words("true", true, Flag.true), _words("false", false, Flag.false)
        both = {_word(word) for word in words[0]} & {_word(word) for word in words[1]}
        if both and true is not None and false is not None:
            raise InvalidInput(
                f"The words of a Flag must be either true or false. Found {min(both)!r} in both. Remove one."
            )
        # a word that the user lists overrules the usual meaning
        yes = tuple(word for word in words[0] if true is not None or _word(word) not in both)
        no = tuple(word for word in words[1] if false is not None or _word(word) not in both)
        values = values_with_extras(np.array([0.0, 1.0]), missing, other)
        super().__init__(with_extras((False, True), missing, other), values, other, False, missing)
        object.__setattr__(self, "true", yes)
        object.__setattr__(self, "false", no)


def _word(given: Any) -> str:
    return str(given).strip(BLANKS).casefold()


def _words(which: str, given: Any, usual: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the words given for one side of a flag, or the usual ones."""
    if given is None:
        return usual
    words = (given,) if isinstance(given, str | int | float) else tuple(given) if isinstance(given, Iterable) else ()
    if not words or not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
        raise InvalidInput(
            f"{which} must be a word or a number, or a list of these. Found {given!r}. For example Flag(true='ja', "
            "false='nein')."
        )
    return words


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
        raise self._unknown(value)

    def _between(self, ends: tuple[Any, ...]) -> NDArray[np.bool_]:
        return self._cells_between(*self._ends(ends))

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


@dataclass(frozen=True, init=False)
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
            raise self._unknown(next(v for v in listed if _is_number(v) and not float(v).is_integer()))
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
            if len(edges) - 1 > MOST_BINS:
                raise TooLarge(
                    f"The bins of a Range must be at most {MOST_BINS}. Found {len(edges) - 1}. Use wider ones."
                )
            cuts = np.asarray(edges, float)
        elif low is None or high is None or bins is None:
            raise InvalidInput(
                "A Range must have low, high and bins, or edges. Found neither. For example Range(17, 90, bins=8)."
            )
        elif int(bins) != bins or bins < 1:
            raise InvalidInput(f"bins must be a whole number of at least 1. Found {bins!r}. Give the number of bins.")
        elif bins > MOST_BINS:
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


_NUMBERS = (int, float, np.number)


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS)


def _is_whole(value: Any) -> bool:
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


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
