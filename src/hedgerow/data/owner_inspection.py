"""Find rows of a table that its universe does not describe.

The result tells about individual rows, so it is for the owner's eyes only (``unsafe.unsafe_inspect``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hedgerow.data.coding import Coder, date_in, meaning
from hedgerow.data.schema import BatchSource
from hedgerow.data.value_counts import group_values
from hedgerow.universe.attributes import MISSING, OTHER, Attribute, Categories, Flag, Integers, Range
from hedgerow.universe.dates import Dates


@dataclass
class ColumnInspection:
    """The numbers of rows of one column that are missing, outside the declared range, or unlike anything declared.

    ``examples`` counts the values outside the range or unlike anything declared.
    """

    rows: int = 0
    missing: int = 0
    clamped: int = 0
    unmatched: int = 0
    examples: Counter[str] = field(default_factory=Counter)


def inspect_columns(source: BatchSource, positions: list[int], attributes: list[Attribute]) -> list[ColumnInspection]:
    """Inspect each column, value by value, under the rule by which it is coded."""
    found = [ColumnInspection() for _ in positions]
    judges = [_judge(attribute) for attribute in attributes]
    for batch in source.batches(positions):
        for inspection, judge, column in zip(found, judges, batch, strict=True):
            for value, times in group_values(column):
                inspection.rows += times
                verdict = judge(value)
                if verdict is not None:
                    setattr(inspection, verdict, getattr(inspection, verdict) + times)
                if verdict in ("clamped", "unmatched"):
                    inspection.examples[str(meaning(value)[0])] += times
    return found


def _judge(attribute: Attribute) -> Callable[[Any], str | None]:
    """Return a function that says whether a value is missing, clamped, unmatched, or none of these (None).

    It codes the value by the same attribute with an extra cell for missing values and one for others.
    """
    telling = _with_extra_cells(attribute)
    coder = Coder(telling)

    def judge(value: Any) -> str | None:
        """Return "missing", "clamped" or "unmatched" for a value that the universe does not describe, else None."""
        cell = coder.cell(value)
        if cell == telling.missing_cell:
            return "missing"
        if cell != telling.other_cell:
            return None
        text, number = meaning(value)
        within = date_in(text or "") if isinstance(attribute, Dates) else number
        return "clamped" if isinstance(attribute, Integers | Range | Dates) and within is not None else "unmatched"

    return judge


def _with_extra_cells(attribute: Attribute) -> Attribute:
    """Return the attribute with an extra cell for missing values and one for others."""
    extras: dict[str, Any] = {"other": True, "missing": True}
    match attribute:
        case Categories():
            labels = [label for label in attribute.listed if label is not None and label not in (OTHER, MISSING)]
            rules: dict[str, Any] = {"spaces": attribute.spaces, "case": attribute.case}
            return Categories(labels or ["\0"], **rules, **extras)
        case Flag():
            return Flag(attribute.true, attribute.false, **extras)
        case Integers():
            return Integers(attribute.low, attribute.high, **extras)
        case Dates() if attribute.by is None:
            return Dates(edges=attribute.edges, **extras)
        case Dates():
            by: Any = attribute.by
            return Dates(attribute.edges[0], attribute.edges[-1], by, **extras)
        case Range():
            return Range(edges=attribute.edges, **extras)
    raise TypeError(type(attribute).__name__)
