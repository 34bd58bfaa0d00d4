"""Categories: labels that are listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.universe.attributes.attribute import BLANKS, MISSING, OTHER, Attribute, with_extras


@dataclass(frozen=True, init=False, repr=False)
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
        # the order of a set depends on the process, and the first label is where unlisted values go
        labels = sorted(values, key=repr) if isinstance(values, set | frozenset) else list(values)
        labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
        if any(isinstance(label, bytes | bytearray) for label in labels):
            raise InvalidInput(
                "Categories must be texts, numbers or dates. Found bytes. Decode them, as in value.decode()."
            )
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
                f"Categories must differ in more than what spaces={spaces!r} and case={case!r} ignore. "
                "Found two that do not. Remove one, or declare that the difference matters."
            )
        super().__init__(with_extras(labels, missing, other), None, other, False, missing)
        object.__setattr__(self, "spaces", spaces)
        object.__setattr__(self, "case", case)

    def spell(self, text: str) -> str:
        """Return a text in the form in which this attribute compares it.

        Parameters
        ----------
        text : str
            A text as it stands in the column.

        Returns
        -------
        str

        Example
        -------
        >>> hr.Categories(["north", "south"], case="ignore").spell("  North ")
        'north'
        """
        return spelling(text, self.spaces, self.case)

    @property
    def absent_cells(self) -> NDArray[np.bool_]:
        """The cells whose records have no value in this column, as a mask: also that of a label None."""
        absent = super().absent_cells
        if None in self.labels:
            absent[self.labels.index(None)] = True
        return absent

    @property
    def texts(self) -> Sequence[Any] | None:
        """All labels, or None if other values may occur."""
        return None if self.other else self.labels

    @property
    def ignores_case(self) -> bool:
        """True if declared with ``case="ignore"``."""
        return self.case == "ignore"

    def read_literal(self, value: Any) -> Any:
        """Return the literal itself: 1.0 and 1 are different labels."""
        return value

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
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise InvalidInput(f"Categories must be distinct. Found {twice!r} twice. Remove the repeats.")
    if any(label != label for label in labels):
        raise InvalidInput(
            "Categories must equal themselves. Found a label that does not, such as NaN. Use missing=True for missing "
            "values."
        )
