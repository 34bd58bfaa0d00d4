"""Columns that a universe may declare: their cells, the labels of the cells and, for numbers, their values.

A value outside the declaration has a declared place. Numbers are clamped to the nearest end. Unknown categories and
missing values go to the first cell or, with ``other=True``, to one extra last cell. With ``missing=True`` missing
values have an extra cell of their own. Values are never dropped, counted or warned about, so nothing about them leaks.
``dates`` has the attribute for dates.

- ``attribute``: the base of attributes: predicates on cells, and the extra cells for missing and other values.
- ``categories``: categories: labels that are listed.
- ``flags``: flags: true or false, by the words that mean either.
- ``integers``: integers: whole numbers, one cell each.
- ``ranges``: ranges: numbers in bins.
"""

from __future__ import annotations

from hedgerow.universe.attributes.attribute import (
    BLANKS,
    MISSING,
    MOST_BINS,
    MOST_CELLS,
    NUMBERS,
    OTHER,
    Attribute,
    Cover,
    not_,
    values_with_extras,
    with_extras,
)
from hedgerow.universe.attributes.categories import Categories, spelling
from hedgerow.universe.attributes.flags import Flag
from hedgerow.universe.attributes.integers import LARGEST_NUMBER, Integers, WholeLabels
from hedgerow.universe.attributes.ranges import Range

__all__ = [
    "BLANKS",
    "LARGEST_NUMBER",
    "MISSING",
    "MOST_BINS",
    "MOST_CELLS",
    "NUMBERS",
    "OTHER",
    "Attribute",
    "Categories",
    "Cover",
    "Flag",
    "Integers",
    "Range",
    "WholeLabels",
    "not_",
    "spelling",
    "values_with_extras",
    "with_extras",
]
